//! `[targets.<name>]`: what we change, and how hard we may press.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::raw::{NamedSection, Reported, Section, Value};
use crate::config::{AmocrmTarget, Target, TargetKind, defaults};

const IN_FLIGHT: RangeInclusive<usize> = 1..=64;
/// Up to what amoCRM sells for a whole account (amoCRM API recommendations, "limits", read 2026-11).
const CALLS_PER_SECOND: RangeInclusive<u32> = 1..=200;
const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(5);
/// Zero is for a target that finds at once what it made; an hour blocks a lane long enough.
const DOUBT: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_hours(1);

#[derive(Clone, Copy)]
enum Kind {
    Amocrm,
}

/// Reads one target.
pub(super) fn read(NamedSection { name, mut section, .. }: NamedSection<'_>) -> Result<Target, Reported> {
    // The kind decides which other keys there are, so without it none can be judged.
    let Kind::Amocrm = section.required("kind", |value| value.one_of(&[("amocrm", Kind::Amocrm)]))?;
    let account = amocrm(&mut section);
    let in_flight = section.or("in_flight", defaults::IN_FLIGHT_MAX, |value| value.number(&IN_FLIGHT));
    let rate = section.or("rate", defaults::CALLS_PER_SECOND, |value| value.number(&CALLS_PER_SECOND));
    let timeout = section.or("timeout", defaults::TARGET_TIMEOUT, |value| value.duration(&TIMEOUT));
    let search_lag = section.or("search_lag", defaults::SEARCH_LAG, |value| value.duration(&DOUBT));
    let doubt_tail = section.or("doubt_tail", defaults::DOUBT_TAIL, |value| value.duration(&DOUBT));
    section.finish()?;
    Ok(Target {
        name,
        kind: TargetKind::Amocrm(account?),
        in_flight_max: in_flight?,
        calls_per_second: rate?,
        timeout: timeout?,
        search_lag: search_lag?,
        doubt_tail: doubt_tail?,
    })
}

fn amocrm(section: &mut Section<'_>) -> Result<AmocrmTarget, Reported> {
    let url = section.required("url", Value::base_url);
    let account_id = section.required("account_id", Value::id);
    let token = section.required("token", Value::secret);
    let responsible_user_id = section.required("responsible_user_id", Value::id);
    let currency = section.required("currency", currency);
    Ok(AmocrmTarget {
        url: url?,
        account_id: account_id?,
        token: token?,
        responsible_user_id: responsible_user_id?,
        currency: currency?,
    })
}

fn currency(value: &Value<'_>) -> Result<String, Reported> {
    let text = value.text()?;
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { Ok(text.to_owned()) } else { Err(value.refuse("must be an ISO 4217 code, such as \"RUB\"")) }
}
