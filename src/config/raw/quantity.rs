//! Durations (`3.5s`, `1h`) and sizes (`1MiB`) as people write them.

use std::time::Duration;

const DURATION_UNITS_MS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000), ("d", 24 * 60 * 60 * 1000)];
const SIZE_UNITS_BYTES: [(&str, usize); 3] = [("KiB", 1024), ("MiB", 1024 * 1024), ("GiB", 1024 * 1024 * 1024)];

/// A number with at most three decimals and a unit: `500ms`, `1.4s`, `15m`, `1h`, `30d`.
///
/// `None` for anything else, also for parts of a millisecond.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let (_, unit_ms) = DURATION_UNITS_MS.into_iter().find(|(name, _)| *name == unit)?;
    let thousandths = thousandths(number)?.checked_mul(unit_ms)?;
    (thousandths % 1000 == 0).then(|| Duration::from_millis(thousandths / 1000))
}

/// A whole number and a unit: `64KiB`, `1MiB`, `2GiB`. Bare bytes are a TOML number.
pub(super) fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = split_unit(text)?;
    let (_, unit_bytes) = SIZE_UNITS_BYTES.into_iter().find(|(name, _)| *name == unit)?;
    usize::try_from(digits(number)?).ok()?.checked_mul(unit_bytes)
}

/// The largest unit that needs no decimals: `90s`, `1m`; `0s`.
pub(super) fn show_duration(duration: Duration) -> String {
    if duration.is_zero() {
        return "0s".to_owned();
    }
    let millis = duration.as_millis();
    let unit = DURATION_UNITS_MS.into_iter().rev().find(|&(_, unit)| millis.is_multiple_of(u128::from(unit)));
    let (name, unit) = unit.unwrap_or(("ms", 1));
    format!("{}{name}", millis / u128::from(unit))
}

/// The largest unit that needs no decimals: `1536KiB`, `8MiB`.
pub(super) fn show_bytes(bytes: usize) -> String {
    let unit = SIZE_UNITS_BYTES.into_iter().rev().find(|&(_, unit)| bytes.is_multiple_of(unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(name, unit)| format!("{}{name}", bytes / unit))
}

fn split_unit(text: &str) -> Option<(&str, &str)> {
    text.split_at_checked(text.find(|c: char| c.is_ascii_alphabetic())?)
}

fn thousandths(number: &str) -> Option<u64> {
    let Some((whole, decimals)) = number.split_once('.') else {
        return digits(number)?.checked_mul(1000);
    };
    let scale = match decimals.len() {
        1 => 100,
        2 => 10,
        3 => 1,
        _ => return None,
    };
    digits(whole)?.checked_mul(1000)?.checked_add(digits(decimals)? * scale)
}

/// Digits only: `parse` alone would take a plus sign.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_no_surprise() {
        let check = |text, expected: Option<u64>| {
            assert_eq!(duration(text), expected.map(Duration::from_millis), "{text}");
        };
        check("500ms", Some(500));
        check("1.4s", Some(1400));
        check("3.25s", Some(3250));
        check("0.001s", Some(1));
        check("1m", Some(60_000));
        check("1.5h", Some(5_400_000));
        check("1d", Some(86_400_000));
        check("0s", Some(0));
        for bad in ["", "5", "s", ".5s", "1.s", "1.2345s", "0.5ms", "+1s", "-1s", "1 s", "1S", "1m30s", "1e3s", "１s"]
        {
            check(bad, None);
        }
        check("18446744073709551615d", None);
        check("18446744073709551s", None);
    }

    #[test]
    fn sizes_are_binary() {
        let check = |text, expected: Option<usize>| assert_eq!(bytes(text), expected, "{text}");
        check("1MiB", Some(1_048_576));
        check("64KiB", Some(65_536));
        check("2GiB", Some(2_147_483_648));
        for bad in ["1MB", "1M", "1.5MiB", "65536", "MiB", "-1MiB", "18446744073709551615MiB"] {
            check(bad, None);
        }
    }

    #[test]
    fn quantities_print_as_they_are_written() {
        for text in ["0s", "1400ms", "90s", "1m", "25h", "1d"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
        assert_eq!(show_bytes(8 * 1024 * 1024), "8MiB");
        assert_eq!(show_bytes(1536 * 1024), "1536KiB");
        assert_eq!(show_bytes(64 << 30), "64GiB");
        assert_eq!(show_bytes(1000), "1000 bytes");
    }
}
