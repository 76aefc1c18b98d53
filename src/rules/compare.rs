//! Values compared as people see them, because systems send numbers as text.

use serde_json::Value;

/// Whether two texts are equal, or are the same decimal number (`142`, `142.0`, `0142`).
///
/// Digits are compared as text, so numbers of any length are compared exactly;
/// an exponent makes no number.
pub(super) fn same(left: &str, right: &str) -> bool {
    left == right || matches!((decimal(left), decimal(right)), (Some(l), Some(r)) if l == r)
}

/// A scalar as text: null is empty; lists and objects have none.
pub(super) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Sign, whole part and fraction without zeros that mean nothing.
fn decimal(text: &str) -> Option<(bool, &str, &str)> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let is_zero = whole.is_empty() && fraction.is_empty();
    Some((negative && !is_zero, whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &str, right: &str, expected: bool) {
        assert_eq!(same(left, right), expected, "{left:?} {right:?}");
        assert_eq!(same(right, left), expected, "{right:?} {left:?}");
    }

    #[test]
    fn numbers_are_compared_with_tolerance_and_exactly() {
        check("142", "142", true);
        check("142", "142.0", true);
        check("007", "7", true);
        check("-0.0", "0", true);
        check("4980.00", "4980", true);
        check("-5", "5", false);
        check("0.1", "0.10000000000000001", false);
        check("9007199254740992", "9007199254740993", false);
        check("1524831183200260097000000000000001", "1524831183200260097000000000000001.0", true);
        check("1524831183200260097000000000000001", "1524831183200260097000000000000002", false);
        check("1e3", "1000", false);
        check("", "0", false);
        check("", "", true);
        check(".", "0", false);
        check("VIP", "vip", false);
        check(" 7", "7", false);
    }
}
