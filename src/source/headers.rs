//! Looking headers up, and choosing those worth keeping.

use bytes::Bytes;

/// The value of a header that must be there once, as visible ASCII.
///
/// `names` are spellings of one header, the preferred one first; the first
/// that came at all counts. `None` when none came, when it came twice (nobody
/// can say which one is meant), or when it holds anything but visible ASCII.
pub(super) fn only<'a>(headers: &'a [(String, Bytes)], names: &[&str]) -> Option<&'a str> {
    let name = names.iter().find(|name| headers.iter().any(|(found, _)| found == *name))?;
    let mut values = headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value);
    let (value, None) = (values.next()?, values.next()) else { return None };
    let is_visible = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
    is_visible.then(|| str::from_utf8(value).ok()).flatten()
}

/// The headers with an allowed name, in order of arrival; bad UTF-8 becomes U+FFFD.
pub(super) fn kept(headers: &[(String, Bytes)], is_allowed: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| is_allowed(name))
        .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_counts_when_it_came_once() {
        let check = |headers: &[(&str, &[u8])], expected: Option<&str>| {
            let headers: Vec<(String, Bytes)> =
                headers.iter().map(|(name, value)| ((*name).to_owned(), Bytes::copy_from_slice(value))).collect();
            assert_eq!(only(&headers, &["x-topic", "topic"]), expected, "{headers:?}");
        };
        check(&[("a", b"1"), ("x-topic", b"orders/create")], Some("orders/create"));
        check(&[("topic", b"b"), ("x-topic", b"a")], Some("a"));
        check(&[("topic", b"b")], Some("b"));
        check(&[("x-topic", b"a"), ("x-topic", b"a")], None);
        check(&[("x-topic", b"")], None);
        check(&[("x-topic", b"a b")], None);
        check(&[("x-topic", b"\xff")], None);
        check(&[], None);
    }
}
