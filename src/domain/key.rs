//! Key bytes: what makes two pieces of work, or two objects outside, the same.
//!
//! A key is a list of parts, each under a tag of its own, so that no separator
//! can be forged by a value:
//!
//! ```text
//! 0x01  8 bytes big endian          a canonical decimal number up to u64::MAX
//! 0x02  1 byte length, the bytes    any other text, at most PART_BYTES_MAX
//! 0x03  32 bytes                    SHA-256 of a longer text
//! ```
//!
//! `7` is a number and `007` is text, so the two differ. Numbers sort by value,
//! hence new keys of one source land on the same few pages of the file. An
//! absent part is the text `-`. The bytes live in the file for good: they are
//! held by golden tests.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The longest text that is kept as it is; a longer one is replaced by its hash.
pub const PART_BYTES_MAX: usize = 200;

/// What stands for a part that is absent.
pub const TEXT_PART_ABSENT: &str = "-";

const TAG_NUMBER: u8 = 1;
const TAG_TEXT: u8 = 2;
const TAG_HASH: u8 = 3;

/// Finished key bytes; `Display` shows the parts joined by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// Takes bytes back that a record held.
    pub fn from_stored(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The bytes, as they stand in tables.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The parts as people read them; a hashed part prints as `sha256:<16 hex>`.
    ///
    /// Bytes that are not a key give the parts read so far and a last part `?`.
    pub fn parts(&self) -> Vec<String> {
        let mut rest = self.0.as_slice();
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let Some((part, after)) = split_part(rest) else {
                parts.push("?".to_owned());
                break;
            };
            parts.push(part);
            rest = after;
        }
        parts
    }
}

fn split_part(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    match tag {
        TAG_NUMBER => {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*number).to_string(), rest))
        }
        TAG_TEXT => {
            let (&len, rest) = rest.split_first()?;
            let (text, rest) = rest.split_at_checked(usize::from(len))?;
            Some((String::from_utf8_lossy(text).into_owned(), rest))
        }
        TAG_HASH => {
            let (hash, rest) = rest.split_first_chunk::<32>()?;
            let short: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
            Some((format!("sha256:{short}"), rest))
        }
        _ => None,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join("/"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Puts a key together, part by part.
#[derive(Clone, Debug, Default)]
pub struct KeyBuilder(Vec<u8>);

impl KeyBuilder {
    /// Starts an empty key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part; a canonical decimal number goes under its own tag, an empty
    /// text counts as absent.
    #[must_use]
    pub fn part(mut self, text: &str) -> Self {
        let text = if text.is_empty() { TEXT_PART_ABSENT } else { text };
        if let Some(number) = canonical_number(text) {
            self.0.push(TAG_NUMBER);
            self.0.extend_from_slice(&number.to_be_bytes());
        } else if text.len() <= PART_BYTES_MAX {
            self.0.push(TAG_TEXT);
            self.0.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
            self.0.extend_from_slice(text.as_bytes());
        } else {
            self.0.push(TAG_HASH);
            self.0.extend_from_slice(&Sha256::digest(text.as_bytes()));
        }
        self
    }

    /// Adds a part that may be absent.
    #[must_use]
    pub fn optional(self, text: Option<&str>) -> Self {
        self.part(text.unwrap_or(TEXT_PART_ABSENT))
    }

    /// Ends the key.
    pub fn finish(self) -> Key {
        Key(self.0)
    }
}

/// `Some` only for text that a number prints back to: no sign, no leading zero.
fn canonical_number(text: &str) -> Option<u64> {
    let canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    canonical.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(key: &Key) -> String {
        key.as_bytes().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The bytes stand in users' files for good; a change here is a new format.
    #[test]
    fn golden_bytes() {
        let task = KeyBuilder::new()
            .part("shopify")
            .part("tambour-test.myshopify.com")
            .part("deal")
            .part("deal")
            .part("912345678901234567")
            .finish();
        assert_eq!(
            hex(&task),
            "020773686f70696679\
             021a74616d626f75722d746573742e6d7973686f706966792e636f6d\
             02046465616c\
             02046465616c\
             010ca94d8fa7454b87"
        );
        assert_eq!(task.to_string(), "shopify/tambour-test.myshopify.com/deal/deal/912345678901234567");
        assert_eq!(hex(&KeyBuilder::new().part("").finish()), "02012d");
        assert_eq!(hex(&KeyBuilder::new().optional(None).finish()), "02012d");
        assert_eq!(hex(&KeyBuilder::new().part("0").finish()), "010000000000000000");
        assert_eq!(
            hex(&KeyBuilder::new().part(&"я".repeat(101)).finish()),
            "03ed89be2639933e905f29eff4dfda63ade8e96e1c01de5051bb0d01a0bbf34b4f"
        );
    }

    /// B29: ids above 2^53, exponents and leading zeros stay apart.
    #[test]
    fn numbers_keep_all_digits_and_text_forms_stay_apart() {
        let texts = [
            "9196877626998784",
            "9196877626998785",
            "1524831183200260097",
            "1e3",
            "1000",
            "007",
            "7",
            "+7",
            "-7",
            "18446744073709551615",
            "18446744073709551616",
            "7 ",
            "",
        ];
        let keys: Vec<Key> = texts.iter().map(|t| KeyBuilder::new().part(t).finish()).collect();
        for (i, a) in keys.iter().enumerate() {
            for b in keys.iter().skip(i + 1) {
                assert_ne!(a, b);
            }
        }
        assert_eq!(keys[2].to_string(), "1524831183200260097");
        assert_eq!(keys[5].to_string(), "007");
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        let a = KeyBuilder::new().part("ab").part("c").finish();
        let b = KeyBuilder::new().part("a").part("bc").finish();
        let c = KeyBuilder::new().part("ab/c").finish();
        assert!(a != b && a != c && b != c);
        assert_eq!(a.parts(), ["ab", "c"]);
        assert_eq!(Key::from_stored(&[9, 9]).parts(), ["?"]);
    }
}
