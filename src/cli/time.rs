//! Times on the command line.

use crate::domain::Timestamp;

/// Reads `2026-11-30T11:00:00Z`, or how long ago: `90s`, `15m`, `2h`, `7d`.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    ago(text, now).or_else(|| {
        let at: jiff::Timestamp = text.parse().ok()?;
        Some(Timestamp::from_millis(at.as_millisecond()))
    })
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_ms = match unit {
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    now.as_millis().checked_sub(i64::from(number).checked_mul(unit_ms)?).map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_spans_are_read() {
        let now = Timestamp::from_secs(1_796_036_400);
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(parse(text, now).map(Timestamp::as_secs), expected, "{text}");
        };
        check("2026-11-30T11:00:00Z", Some(1_796_036_400));
        check("2026-11-30T14:00:00+03:00", Some(1_796_036_400));
        check("90s", Some(1_796_036_310));
        check("2h", Some(1_796_029_200));
        check("7d", Some(1_795_431_600));
        check("7", None);
        check("-1h", None);
        check("yesterday", None);
        check("ж", None);
        check("", None);
    }
}
