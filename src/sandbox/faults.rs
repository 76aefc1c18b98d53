//! The switches that make the emulated systems misbehave.
//!
//! Two kinds: standing ones (lags, a rate limit) and rules that hit single
//! calls. A rule is chosen by its operation and either the nth call from the
//! moment it was set, once, or a chance that the seed decides; of several rules
//! that fit one call the first wins, and an nth-call rule that lost waits for
//! the next call.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::domain::Monotonic;
use crate::sandbox::message::{Delivery, Reply};
use crate::sandbox::operation::Operation;
use crate::sandbox::random::SplitMix;
use crate::sandbox::{amocrm, shop};

/// All switches; the default is a system without faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// New objects stay out of lists and searches for so long; reads by id see them at once (`search_lag_ms`).
    #[serde(rename = "search_lag_ms", deserialize_with = "millis")]
    pub search_lag: Duration,
    /// Reads by id show the state before the last change for so long (`read_lag_ms`).
    #[serde(rename = "read_lag_ms", deserialize_with = "millis")]
    pub read_lag: Duration,
    /// The account's limit of calls; absent for none.
    pub rate: Option<Rate>,
    /// Faults of single calls, in order of precedence.
    pub rules: Vec<Rule>,
}

/// How many amoCRM calls a second the account admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Calls a second over all clients of the account.
    pub per_second: u32,
    /// How many of them another client uses all the time.
    #[serde(default)]
    pub foreign_per_second: u32,
}

/// Which calls get which fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The operation that is hit.
    pub operation: Operation,
    /// Which of its calls.
    pub when: When,
    /// What happens to them.
    pub fault: Fault,
}

/// Which calls of an operation a rule hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The nth from now, once; 1 is the next.
    Nth(u32),
    /// Each with this chance of a hundred.
    Percent(u8),
}

/// What happens to a call that a rule hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing is done, and the connection is closed without an answer.
    LostRequest,
    /// The call is done, and the connection is closed without an answer.
    LostAnswer,
    /// Nothing is done; this status with an HTML page.
    FailBefore(u16),
    /// The call is done; this status with an HTML page.
    FailAfter(u16),
    /// Nothing is done; 429, with the seconds to wait where given (a body field at amoCRM, `Retry-After` at the shop).
    TooMany {
        /// Seconds.
        retry_after: Option<u64>,
    },
    /// Nothing is done; the shop's `THROTTLED` inside 200, a bare 429 at amoCRM.
    Throttled,
    /// An HTML page with this status; the call is done if the status is 2xx.
    Html(u16),
    /// The call is done; 204 without a body.
    NoContent,
    /// The call is done at once and answered so much later.
    #[serde(rename = "slow_ms", deserialize_with = "millis")]
    Slow(Duration),
    /// The call is done; the last byte of its answer waits for a release.
    WithholdLastByte,
}

impl Fault {
    /// Answers for `call`, which is made or not.
    pub(super) fn answer(self, operation: Operation, call: impl FnOnce() -> Reply) -> Reply {
        match self {
            Self::LostRequest => Reply { delivery: Delivery::Dropped, ..Reply::empty(204) },
            Self::LostAnswer => Reply { delivery: Delivery::Dropped, ..call() },
            Self::FailBefore(status) => Reply::html(status),
            Self::FailAfter(status) => done(call, Reply::html(status)),
            Self::TooMany { retry_after } if operation.is_of_shop() => shop::too_many(retry_after),
            Self::TooMany { retry_after } => amocrm::too_many(retry_after),
            Self::Throttled if operation.is_of_shop() => shop::throttled(),
            Self::Throttled => amocrm::too_many(None),
            Self::Html(status) if (200..300).contains(&status) => done(call, Reply::html(status)),
            Self::Html(status) => Reply::html(status),
            Self::NoContent => done(call, Reply::empty(204)),
            Self::Slow(pause) => Reply { delivery: Delivery::Delayed(pause), ..call() },
            Self::WithholdLastByte => Reply { delivery: Delivery::WithholdLastByte, ..call() },
        }
    }
}

/// Makes the call and answers with something else.
fn done(call: impl FnOnce() -> Reply, instead: Reply) -> Reply {
    call();
    instead
}

/// How far replicas lag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lags {
    pub(super) search: Duration,
    pub(super) read: Duration,
}

/// The switches as they stand: what was set, and how far rules and rate have come.
#[derive(Debug, Default)]
pub(super) struct Switches {
    faults: Faults,
    /// The second that `used` counts in.
    second: u64,
    used: u32,
}

impl Switches {
    /// Replaces everything.
    pub(super) fn set(&mut self, faults: Faults) {
        self.faults = faults;
    }

    pub(super) fn add(&mut self, rule: Rule) {
        self.faults.rules.push(rule);
    }

    pub(super) fn lags(&self) -> Lags {
        Lags { search: self.faults.search_lag, read: self.faults.read_lag }
    }

    /// Counts one call of ours; says whether the account still admits it in this second.
    pub(super) fn admit(&mut self, now: Monotonic) -> bool {
        let second = now.since_start().as_secs();
        if second != self.second {
            (self.second, self.used) = (second, 0);
        }
        self.used = self.used.saturating_add(1);
        self.faults.rate.is_none_or(|rate| self.used.saturating_add(rate.foreign_per_second) <= rate.per_second)
    }

    /// The fault of this call, if a rule hits it.
    pub(super) fn pick(&mut self, operation: Operation, random: &mut SplitMix) -> Option<Fault> {
        let mut chosen = None;
        self.faults.rules.retain_mut(|rule| {
            if rule.operation != operation {
                return true;
            }
            match &mut rule.when {
                When::Percent(percent) => {
                    if random.happens(*percent) {
                        chosen.get_or_insert(rule.fault);
                    }
                    true
                }
                When::Nth(nth) if *nth > 1 => {
                    *nth -= 1;
                    true
                }
                When::Nth(_) if chosen.is_some() => true,
                When::Nth(_) => {
                    chosen = Some(rule.fault);
                    false
                }
            }
        });
        chosen
    }
}

fn millis<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(operation: Operation, when: When, fault: Fault) -> Rule {
        Rule { operation, when, fault }
    }

    #[test]
    fn switches_are_read_from_json() {
        let text = r#"{"search_lag_ms":60000,"rate":{"per_second":7,"foreign_per_second":5},"rules":[
            {"operation":"lead.create","when":{"nth":2},"fault":"lost_answer"},
            {"operation":"note.create","when":{"percent":10},"fault":{"too_many":{"retry_after":3}}},
            {"operation":"order.get","when":{"nth":1},"fault":{"slow_ms":300}},
            {"operation":"contact.create","when":{"nth":1},"fault":{"fail_after":502}}]}"#;
        let faults: Faults = serde_json::from_str(text).unwrap();
        let expected = Faults {
            search_lag: Duration::from_secs(60),
            read_lag: Duration::ZERO,
            rate: Some(Rate { per_second: 7, foreign_per_second: 5 }),
            rules: vec![
                rule(Operation::LeadCreate, When::Nth(2), Fault::LostAnswer),
                rule(Operation::NoteCreate, When::Percent(10), Fault::TooMany { retry_after: Some(3) }),
                rule(Operation::OrderGet, When::Nth(1), Fault::Slow(Duration::from_millis(300))),
                rule(Operation::ContactCreate, When::Nth(1), Fault::FailAfter(502)),
            ],
        };
        assert_eq!(faults, expected);
        for bad in
            [r#"{"serch_lag_ms":1}"#, r#"{"rules":[{"operation":"lead.eat","when":{"nth":1},"fault":"throttled"}]}"#]
        {
            assert!(serde_json::from_str::<Faults>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_nth_rule_hits_once_and_the_loser_waits() {
        let mut switches = Switches::default();
        let mut random = SplitMix::seeded(1);
        switches.add(rule(Operation::LeadCreate, When::Nth(2), Fault::LostAnswer));
        switches.add(rule(Operation::LeadCreate, When::Nth(2), Fault::NoContent));
        switches.add(rule(Operation::LeadGet, When::Percent(100), Fault::Html(200)));
        let mut pick = |operation| switches.pick(operation, &mut random);
        assert_eq!(pick(Operation::LeadGet), Some(Fault::Html(200)));
        assert_eq!(pick(Operation::LeadCreate), None);
        assert_eq!(pick(Operation::LeadCreate), Some(Fault::LostAnswer));
        assert_eq!(pick(Operation::LeadCreate), Some(Fault::NoContent));
        assert_eq!(pick(Operation::LeadCreate), None);
        assert_eq!(pick(Operation::LeadGet), Some(Fault::Html(200)));
    }

    #[test]
    fn a_foreign_client_takes_its_share_of_the_rate() {
        let mut switches = Switches::default();
        switches.set(Faults { rate: Some(Rate { per_second: 7, foreign_per_second: 5 }), ..Faults::default() });
        let at = |ms| Monotonic::from_start(Duration::from_millis(ms));
        assert_eq!([at(0), at(400), at(999), at(1000)].map(|now| switches.admit(now)), [true, true, false, true]);
    }
}
