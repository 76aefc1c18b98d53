//! JSON bodies of strangers.
//!
//! Deep nesting ends at the parser's own limit (128 levels), so no body
//! overflows the stack. Integers up to `u64::MAX` keep every digit.

use serde_json::Value;

/// Reads a JSON body.
///
/// Half of a surrogate pair, as left by software that cuts texts between the
/// two, becomes U+FFFD instead of making the whole body unreadable.
///
/// # Errors
/// Says what is wrong and where, never what the body holds.
pub fn parse(body: &[u8]) -> Result<Value, String> {
    let text = str::from_utf8(body).map_err(|error| format!("not UTF-8 text: {error}"))?;
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&with_whole_surrogates(text)))
        .map_err(|error| format!("not JSON: {error}"))
}

/// Replaces each `\uD800`..`\uDFFF` without its other half by `\uFFFD`.
fn with_whole_surrogates(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let taken = match (escaped_unit(escape), escape.get(6..).and_then(escaped_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => escape.split_at_checked(12),
            (Some(0xD800..=0xDFFF), _) => Some((r"\uFFFD", escape.get(6..).unwrap_or_default())),
            // The second byte may be another backslash, so both are taken at once.
            _ => escape.split_at_checked(2),
        };
        let (kept, after) = taken.unwrap_or((escape, ""));
        whole.push_str(kept);
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// The UTF-16 unit of a `\uXXXX` at the start of `text`.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(r"\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// B13: four-byte characters, half a pair and NUL all come through.
    #[test]
    fn odd_characters_are_read() {
        let check = |body: &str, expected: Value| assert_eq!(parse(body.as_bytes()), Ok(expected), "{body}");
        check(r#"["Мария 👩‍👩‍👧 𝐏"]"#, json!(["Мария 👩‍👩‍👧 𝐏"]));
        check(r#"["\ud83d\ude42"]"#, json!(["🙂"]));
        check(r#"["a\ud83d"]"#, json!(["a\u{fffd}"]));
        check(r#"["\ud83d","\ude42 \uD83D\ud83d\ude42"]"#, json!(["\u{fffd}", "\u{fffd} \u{fffd}🙂"]));
        check(r#"["\\ud83d \ud83d"]"#, json!(["\\ud83d \u{fffd}"]));
        check(r#"["\u0000"]"#, json!(["\0"]));
        check("[9196877626998785,18446744073709551615]", json!([9_196_877_626_998_785_u64, u64::MAX]));
    }

    #[test]
    fn what_is_not_json_is_told_without_its_content() {
        let check = |body: &[u8], expected: &str| {
            let error = parse(body).expect_err("unreadable");
            assert!(error.starts_with(expected), "{error}");
        };
        check(b"", "not JSON: EOF");
        check(b"anna=1", "not JSON: expected value at line 1 column 1");
        check(b"\"\\", "not JSON: EOF");
        check("[\"\\Ж\"]".as_bytes(), "not JSON: invalid escape");
        check(b"\"\xca\xf0\"", "not UTF-8 text: invalid utf-8 sequence of 1 bytes from index 1");
        check("[".repeat(100_000).as_bytes(), "not JSON: recursion limit exceeded");
    }

    proptest! {
        #[test]
        fn mending_leaves_readable_text_alone(text in r#"([a-zЖ🙂"\\u]|\\u[0-9a-f]{4}|\\u[dD]8[0-9a-f]{2}){0,12}"#) {
            let body = format!("\"{text}\"");
            if let Ok(value) = serde_json::from_str::<Value>(&body) {
                prop_assert_eq!(serde_json::from_str::<Value>(&with_whole_surrogates(&body)).ok(), Some(value));
            }
        }
    }
}
