//! What an answer, or its absence, means for the task.
//!
//! A question may be asked again, so whatever says nothing about it heals by
//! itself. A change may have happened, so whatever says nothing about it is
//! [`Refusal::Unknown`]. Both are decided from the status and a few fields
//! that hold no values: never from a message's wording.

use std::time::{Duration, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Answer, Failure};
use crate::domain::{ReasonCode, Refusal, Timestamp};

/// Validation errors that a text lists; the first ones are enough to see the cause.
const ERRORS_SHOWN_MAX: usize = 5;

/// Codes and paths are short words; anything longer may hold a value.
const WORD_CHARS_MAX: usize = 80;

/// What the call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To read what always exists at the right address: the account, a list, a search.
    List,
    /// To read one entity or what belongs to it.
    Entity,
    /// To create or change.
    Change,
}

impl Asked {
    /// The word in metrics.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Entity => "entity",
            Self::Change => "change",
        }
    }
}

/// Passes a 2xx; the body is still to be read.
pub(super) fn answer_class(asked: Asked, answer: &Answer, now: Timestamp) -> Result<(), Refusal> {
    let status = answer.status;
    let hold = |cause: &str| Err(Refusal::Hold { text: format!("HTTP {status}: {cause}") });
    match (status, asked) {
        (200..=299, _) => Ok(()),
        (300..=399, _) => hold("the address redirects; set the address that it leads to"),
        (401, _) => hold("the token is not accepted; set a valid one"),
        (402, _) => hold("the account is not paid for; have it paid"),
        (403, _) => {
            hold("access is refused, by missing rights or a block after too many calls; clear it with the vendor")
        }
        (404 | 410, Asked::List) => hold("there is no such API at the address; check it"),
        (404 | 410, _) => Err(Refusal::Dead {
            reason: ReasonCode::ENTITY_GONE,
            text: format!("HTTP {status}: the entity does not exist any more; close the task or restore the entity"),
        }),
        (423, _) => retry(answer, now, "the entity or account is locked"),
        (429, _) => retry(answer, now, "too many calls"),
        (..=199 | 408 | 500.., Asked::Change) => {
            Err(Refusal::Unknown { text: format!("HTTP {status} to a change: it may have happened") })
        }
        (..=199 | 408 | 500.., _) => retry(answer, now, "the other side failed to answer"),
        (400..=499, _) => Err(invalid(answer)),
    }
}

/// Says what a missing answer means.
pub(super) fn failure_class(asked: Asked, failure: &Failure) -> Refusal {
    match (failure, asked) {
        (Failure::Certificate(_), _) => {
            Refusal::Hold { text: format!("{failure}; have it renewed or check the address") }
        }
        (Failure::Lost(_), Asked::Change) => {
            Refusal::Unknown { text: format!("{failure}; the change may have happened") }
        }
        _ => Refusal::Retry { after: None, text: failure.to_string() },
    }
}

/// The body of a 2xx as JSON of the expected shape.
pub(super) fn read_json<T: DeserializeOwned>(asked: Asked, answer: &Answer) -> Result<T, Refusal> {
    // serde's own text may quote a value, so it is left out.
    serde_json::from_slice(&answer.body).map_err(|_| unreadable(asked, answer.status))
}

/// A 2xx whose body does not say what was asked.
pub(super) fn unreadable(asked: Asked, status: u16) -> Refusal {
    match asked {
        Asked::Change => Refusal::Unknown {
            text: format!("HTTP {status} to a change, without a readable result: it may have happened"),
        },
        Asked::List | Asked::Entity => {
            Refusal::Retry { after: None, text: format!("HTTP {status} with an answer that cannot be read") }
        }
    }
}

/// The content was refused, with amoCRM's list of errors if there is one.
pub(super) fn invalid(answer: &Answer) -> Refusal {
    let errors = validation_errors(&answer.body);
    let listed = if errors.is_empty() { String::new() } else { format!(" ({})", errors.join(", ")) };
    Refusal::Dead {
        reason: ReasonCode::VALIDATION,
        text: format!(
            "HTTP {}: the content was refused{listed}; correct what it is made from, then retry",
            answer.status
        ),
    }
}

/// `<code> at <path>` of each entry of `validation-errors`, without its free text.
pub(super) fn validation_errors(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let entries = body.get("validation-errors").and_then(Value::as_array).into_iter().flatten();
    let errors = entries.filter_map(|entry| entry.get("errors")?.as_array()).flatten();
    let word = |error: &Value, name: &str| error.get(name).and_then(Value::as_str).map(plain_word);
    errors
        .map(|error| match (word(error, "code"), word(error, "path")) {
            (Some(code), Some(path)) => format!("{code} at {path}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "no code".to_owned(),
        })
        .take(ERRORS_SHOWN_MAX)
        .collect()
}

/// A code or path as it may be shown; anything that could be more than that becomes `?`.
pub(super) fn plain_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-[]".contains(c);
    if text.len() <= WORD_CHARS_MAX && text.chars().all(plain) { text.to_owned() } else { "?".to_owned() }
}

fn retry(answer: &Answer, now: Timestamp, cause: &str) -> Result<(), Refusal> {
    Err(Refusal::Retry { after: retry_after(answer, now), text: format!("HTTP {}: {cause}", answer.status) })
}

/// The pause that the other side asks for, by header or, as amoCRM does, in the body.
///
/// Source: RFC 9110 section 10.2.3 (seconds or a date); Kommo documentation,
/// "http-codes", read 2026-11 (`retry_after`, seconds). Shopify sends seconds
/// with a decimal part. Zero, the past and junk are absent.
fn retry_after(answer: &Answer, now: Timestamp) -> Option<Duration> {
    let by_header = answer.header("retry-after").and_then(|text| seconds(text).or_else(|| until_date(text, now)));
    let by_body = || {
        let body: Value = serde_json::from_slice(&answer.body).ok()?;
        match body.get("retry_after")? {
            Value::Number(number) => seconds(&number.to_string()),
            Value::String(text) => seconds(text),
            _ => None,
        }
    };
    by_header.or_else(by_body).filter(|pause| !pause.is_zero())
}

/// Whole seconds, rounded up.
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let up = u64::from(part.bytes().any(|b| b != b'0'));
    Some(Duration::from_secs(whole.parse::<u64>().ok()?.saturating_add(up)))
}

fn until_date(text: &str, now: Timestamp) -> Option<Duration> {
    let since_epoch = httpdate::parse_http_date(text.trim()).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_secs(0).plus(since_epoch).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scripted::{answer, sample};

    const NOW: Timestamp = Timestamp::from_secs(1_796_036_400);

    fn word(class: &Result<(), Refusal>) -> &'static str {
        match class {
            Ok(()) => "ok",
            Err(Refusal::Retry { .. }) => "retry",
            Err(Refusal::Dead { reason, .. }) if *reason == ReasonCode::ENTITY_GONE => "gone",
            Err(Refusal::Dead { reason, .. }) if *reason == ReasonCode::VALIDATION => "invalid",
            Err(Refusal::Dead { .. }) => "dead",
            Err(Refusal::Hold { .. }) => "hold",
            Err(Refusal::Unknown { .. }) => "unknown",
        }
    }

    /// B33, B41, B42: statuses against what was asked.
    #[test]
    fn each_status_has_one_class() {
        let check = |statuses: &[u16], list: &str, entity: &str, change: &str| {
            for &status in statuses {
                for (asked, expected) in [(Asked::List, list), (Asked::Entity, entity), (Asked::Change, change)] {
                    let class = answer_class(asked, &answer(status, "<html>Анна</html>"), NOW);
                    assert_eq!(word(&class), expected, "HTTP {status} to {asked:?}");
                    if let Err(refusal) = class {
                        let text = refusal.text();
                        assert!(text.contains(&status.to_string()) && !text.contains("Анна"), "{text}");
                    }
                }
            }
        };
        check(&[200, 201, 202, 204], "ok", "ok", "ok");
        check(&[300, 301, 302, 303, 304, 307, 308], "hold", "hold", "hold");
        check(&[401, 402, 403], "hold", "hold", "hold");
        check(&[404, 410], "hold", "gone", "gone");
        check(&[400, 405, 409, 413, 422, 451], "invalid", "invalid", "invalid");
        check(&[423, 429], "retry", "retry", "retry");
        check(&[100, 408, 500, 502, 503, 504, 520, 999], "retry", "retry", "unknown");
    }

    /// B41: what never left may be sent again; what may have left is a doubt for changes alone.
    #[test]
    fn each_failure_has_one_class() {
        let check = |failure: Failure, read: &str, change: &str| {
            for (asked, expected) in [(Asked::List, read), (Asked::Entity, read), (Asked::Change, change)] {
                let refusal = failure_class(asked, &failure);
                assert!(refusal.text().contains("cause"), "{refusal}");
                assert_eq!(word(&Err(refusal)), expected, "{failure} to {asked:?}");
            }
        };
        check(Failure::NotSent("cause".to_owned()), "retry", "retry");
        check(Failure::Lost("cause".to_owned()), "retry", "unknown");
        check(Failure::Certificate("cause".to_owned()), "hold", "hold");
    }

    /// B33, and a proxy's HTML page in place of an answer.
    #[test]
    fn a_success_that_says_nothing_is_a_doubt_for_changes() {
        for body in ["", "<html>login</html>", "{\"id\":", "[]"] {
            for (asked, expected) in [(Asked::List, "retry"), (Asked::Entity, "retry"), (Asked::Change, "unknown")] {
                let read = read_json::<serde_json::Map<String, Value>>(asked, &answer(200, body)).map(drop);
                assert_eq!(word(&read), expected, "{body} to {asked:?}");
            }
        }
    }

    /// B37: any form is understood, and the pause is never shorter than asked.
    #[test]
    fn retry_after_in_any_form() {
        let check = |header: Option<&str>, body: &str, expected: Option<u64>| {
            let mut answer = answer(429, body.to_owned());
            answer.headers.extend(header.map(|value| ("retry-after".to_owned(), value.to_owned())));
            let Err(Refusal::Retry { after, .. }) = answer_class(Asked::Change, &answer, NOW) else { panic!() };
            assert_eq!(after, expected.map(Duration::from_secs), "{header:?} {body}");
        };
        check(Some("120"), "", Some(120));
        check(Some(" 7 "), "", Some(7));
        check(Some("2.0"), "", Some(2));
        check(Some("0.2"), "", Some(1));
        check(Some("Mon, 30 Nov 2026 11:02:00 GMT"), "", Some(120));
        check(Some("Monday, 30-Nov-26 11:02:00 GMT"), "", Some(120));
        check(Some("Mon, 30 Nov 2026 10:59:59 GMT"), "", None);
        for junk in ["", "soon", "-5", "0", "1e3", ".", "5.", "+5", "99999999999999999999", "2026-11-30T11:02:00Z"] {
            check(Some(junk), "", None);
        }
        check(None, "{\"retry_after\":300}", Some(300));
        check(None, "{\"retry_after\":1.5}", Some(2));
        check(None, "{\"retry_after\":\"30\"}", Some(30));
        check(Some("junk"), "{\"retry_after\":30}", Some(30));
        check(Some("60"), "{\"retry_after\":30}", Some(60));
        for junk in ["{\"retry_after\":-1}", "{\"retry_after\":null}", "{\"retry_after\":0}", "[]", "<html>"] {
            check(None, junk, None);
        }
    }

    #[test]
    fn recorded_amocrm_errors() {
        let check = |status, file: &str, expected: &Result<(), Refusal>| {
            let answer = answer(status, sample(&format!("amocrm-api/{file}")));
            assert_eq!(&answer_class(Asked::Change, &answer, NOW), expected, "{file}");
        };
        let hold = |text: &str| Err(Refusal::Hold { text: text.to_owned() });
        let retry = |after: Option<u64>| {
            Err(Refusal::Retry { after: after.map(Duration::from_secs), text: "HTTP 429: too many calls".to_owned() })
        };
        check(401, "error-401.json", &hold("HTTP 401: the token is not accepted; set a valid one"));
        check(
            403,
            "error-403.json",
            &hold(
                "HTTP 403: access is refused, by missing rights or a block after too many calls; \
                 clear it with the vendor",
            ),
        );
        check(429, "error-429.json", &retry(Some(300)));
        check(429, "error-429-not-json.html", &retry(None));
        check(
            404,
            "error-404.json",
            &Err(Refusal::Dead {
                reason: ReasonCode::ENTITY_GONE,
                text: "HTTP 404: the entity does not exist any more; close the task or restore the entity".to_owned(),
            }),
        );
        check(
            400,
            "error-400-validation.json",
            &Err(Refusal::Dead {
                reason: ReasonCode::VALIDATION,
                text: "HTTP 400: the content was refused (NotSupportedChoice at custom_fields_values.0.field_id, \
                       FieldMissing at name); correct what it is made from, then retry"
                    .to_owned(),
            }),
        );
    }

    /// The text of a refusal is read by people who may not see the customer.
    #[test]
    fn validation_texts_hold_no_values() {
        let body = serde_json::json!({"validation-errors": [
            {"errors": [{"code": "Анна Тестова", "path": "a b", "detail": "+79000000001"}, {}, {"code": "x".repeat(81)}]},
            {"errors": [{"path": "name"}, {"code": "A"}, {"code": "B"}]},
            {"errors": "none"},
        ]});
        assert_eq!(validation_errors(body.to_string().as_bytes()), ["? at ?", "no code", "?", "name", "A"]);
        assert_eq!(validation_errors(b"<html>"), Vec::<String>::new());
    }
}
