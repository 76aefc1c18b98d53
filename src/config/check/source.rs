//! `[sources.<name>]`: who sends, and how it proves itself.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::raw::{NamedSection, Reported, Section, Value};
use crate::config::{LabelledSecret, Quota, Secret, ShopApi, Source, SourceKind, defaults};

/// Under 1 KiB no order fits; over 64 MiB a few bodies fill a small machine.
const BODY_BYTES: RangeInclusive<usize> = 1024..=64 * 1024 * 1024;
/// Up to Shopify's own deadline (Shopify documentation, "delivery structure", read 2026-11).
const SHOPIFY_ANSWER: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(5);
/// Up to amoCRM's own deadline (amoCRM "webhooks format", read 2026-11).
const AMOCRM_ANSWER: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(2);
/// More events fill the file before anybody looks.
const EVENTS_PER_HOUR: RangeInclusive<u64> = 1..=10_000_000;
/// As many as the disk of a small machine holds; the least is one `max_body`.
const BYTES_PER_DAY_MAX: usize = 64 << 30;
/// The door's queue at the writer is as long.
const INFLIGHT: RangeInclusive<usize> = 1..=4096;
const API_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(5);
/// Shorter ones can be guessed.
const ADDRESS_TOKEN_CHARS_MIN: usize = 16;
const SHOP_DOMAIN: &str = ".myshopify.com";
/// The source of our own alerts.
const BUILT_IN: &str = "tambour";

#[derive(Clone, Copy)]
enum Kind {
    Shopify,
    Amocrm,
}

const KINDS: [(&str, Kind); 2] = [("shopify", Kind::Shopify), ("amocrm", Kind::Amocrm)];

/// Reads one source.
pub(super) fn read(NamedSection { name, written, mut section }: NamedSection<'_>) -> Result<Source, Reported> {
    if name == BUILT_IN || written == BUILT_IN {
        return Err(section.refuse("has the name of the built-in source", None));
    }
    // The kind decides which other keys there are, so without it none can be judged.
    match section.required("kind", |value| value.one_of(&KINDS))? {
        Kind::Shopify => shopify(name, section),
        Kind::Amocrm => amocrm(name, section),
    }
}

fn shopify(name: String, mut section: Section<'_>) -> Result<Source, Reported> {
    let shops = section.required("shops", shops);
    let secrets = section.required("secrets", secrets);
    let api = section.optional("api", |value| {
        let one_shop = match shops.as_deref() {
            Ok([shop]) => Ok(format!("https://{shop}")),
            Ok(_) => Err(value.refuse_with(
                "reaches one shop, but `shops` lists more",
                Some("make a source for each shop".to_owned()),
            )),
            Err(&reported) => Err(reported),
        };
        api(value, one_shop)
    });
    let body = section.or("max_body", defaults::SHOPIFY_BODY_BYTES_MAX, |value| value.size(&BODY_BYTES));
    let answer = section.or("answer_within", defaults::SHOPIFY_ANSWER_WITHIN, |value| value.duration(&SHOPIFY_ANSWER));
    let quota = section.or("quota", defaults::SHOPIFY_QUOTA, |value| quota(value, defaults::SHOPIFY_QUOTA, body));
    section.finish()?;
    Ok(Source {
        name,
        kind: SourceKind::Shopify { shops: shops?, secrets: secrets?, api: api? },
        address_token: None,
        body_bytes_max: body?,
        answer_within: answer?,
        quota: quota?,
    })
}

fn amocrm(name: String, mut section: Section<'_>) -> Result<Source, Reported> {
    let account_id = section.required("account_id", Value::id);
    let token = section.required("address_token", address_token);
    let body = section.or("max_body", defaults::AMOCRM_BODY_BYTES_MAX, |value| value.size(&BODY_BYTES));
    let answer = section.or("answer_within", defaults::AMOCRM_ANSWER_WITHIN, |value| value.duration(&AMOCRM_ANSWER));
    let quota = section.or("quota", defaults::AMOCRM_QUOTA, |value| quota(value, defaults::AMOCRM_QUOTA, body));
    section.finish()?;
    Ok(Source {
        name,
        kind: SourceKind::Amocrm { account_id: account_id? },
        address_token: Some(token?),
        body_bytes_max: body?,
        answer_within: answer?,
        quota: quota?,
    })
}

/// `body` is the source's `max_body`.
fn quota(value: &Value<'_>, default: Quota, body: Result<usize, Reported>) -> Result<Quota, Reported> {
    let bytes_per_day = body.unwrap_or(*BODY_BYTES.start())..=BYTES_PER_DAY_MAX;
    let mut section = value.section()?;
    let events = section.or("events_per_hour", default.events_per_hour, |value| value.number(&EVENTS_PER_HOUR));
    let bytes = section.optional("bytes_per_day", |value| value.size(&bytes_per_day));
    let inflight = section.or("inflight", default.inflight, |value| value.number(&INFLIGHT));
    section.finish()?;
    let bytes_per_day = bytes?.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(default.bytes_per_day);
    Ok(Quota { events_per_hour: events?, bytes_per_day, inflight: inflight? })
}

fn shops(list: &Value<'_>) -> Result<Vec<String>, Reported> {
    let mut seen = BTreeSet::new();
    list.each_of_some(|value| {
        let shop = value.text()?.to_ascii_lowercase();
        let is_label =
            |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !shop.strip_suffix(SHOP_DOMAIN).is_some_and(is_label) {
            return Err(value.refuse("must be the shop's own domain, such as \"my-shop.myshopify.com\""));
        }
        if seen.insert(shop.clone()) { Ok(shop) } else { Err(value.refuse("lists a shop twice")) }
    })
}

fn secrets(list: &Value<'_>) -> Result<Vec<LabelledSecret>, Reported> {
    let mut seen = BTreeSet::new();
    list.each_of_some(|value| {
        let secret = value.labelled_secret()?;
        if seen.insert(secret.label.clone()) { Ok(secret) } else { Err(value.refuse("has two secrets of one label")) }
    })
}

fn api(value: &Value<'_>, url_default: Result<String, Reported>) -> Result<ShopApi, Reported> {
    let mut section = value.section()?;
    let url = section.optional("url", Value::base_url);
    let version = section.required("version", api_version);
    let token = section.required("token", Value::secret);
    let timeout = section.or("timeout", defaults::SHOP_API_TIMEOUT, |value| value.duration(&API_TIMEOUT));
    section.finish()?;
    Ok(ShopApi { url: url?.unwrap_or(url_default?), version: version?, token: token?, timeout: timeout? })
}

/// Year and month of a quarter's version (Shopify documentation, "API versioning", read 2026-11).
fn api_version(value: &Value<'_>) -> Result<String, Reported> {
    let text = value.text()?;
    let is_version = text.split_once('-').is_some_and(|(year, month)| {
        year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()) && ["01", "04", "07", "10"].contains(&month)
    });
    if is_version { Ok(text.to_owned()) } else { Err(value.refuse("must be a quarter's version, such as \"2026-10\"")) }
}

/// It is a part of an address, so it holds only what needs no escape there.
fn address_token(value: &Value<'_>) -> Result<Secret, Reported> {
    let token = value.secret()?;
    let Some(text) = token.known() else { return Ok(token) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if text.len() < ADDRESS_TOKEN_CHARS_MIN {
        Err(value.refuse(format_args!("must have {ADDRESS_TOKEN_CHARS_MIN} characters or more")))
    } else if !text.bytes().all(is_plain) {
        Err(value.refuse("must hold only letters, digits, `-`, `.`, `_` and `~`"))
    } else {
        Ok(token)
    }
}
