//! E-mail addresses as people write them.
//!
//! Only what is safe is changed: blanks, `mailto:` and `<>` around the address,
//! the case of the domain, a dot at its end. Letters of the local part stay as
//! written for sending; matching ignores their case too. Dots and `+tag` stay:
//! they mean something at most mail hosts. Whether the mailbox exists is never
//! asked.

use std::fmt;

/// RFC 5321 limits a path to 256 bytes with its angle brackets.
const ADDRESS_BYTES_MAX: usize = 254;
/// RFC 5321, section 4.5.3.1.1.
const LOCAL_BYTES_MAX: usize = 64;
/// RFC 1035, section 2.3.4.
const LABEL_BYTES_MAX: usize = 63;

/// An e-mail address; `Display` is the form for sending, `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

impl Email {
    /// The address in lower case: two addresses are one contact when these agree.
    pub fn compare_key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(..)")
    }
}

/// Reads an address; absent when the text is not one address.
///
/// Quoted local parts and addresses in brackets (`a@[127.0.0.1]`) are not read:
/// customers have none.
pub fn normalize_email(raw: &str) -> Option<Email> {
    let (local, domain) = strip(raw).split_once('@')?;
    let domain = domain.strip_suffix('.').unwrap_or(domain).to_lowercase();
    let fits = local.len() <= LOCAL_BYTES_MAX && local.len() + 1 + domain.len() <= ADDRESS_BYTES_MAX;
    (fits && is_local(local) && is_domain(&domain)).then(|| Email(format!("{local}@{domain}")))
}

/// Takes off what stands around an address: blanks, quotes, a name before `<>`, `mailto:`.
fn strip(raw: &str) -> &str {
    let bracketed = raw.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(inside, _)| inside);
    let text = bracketed.unwrap_or(raw).trim_matches(surrounds);
    match text.split_at_checked("mailto:".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("mailto:") => {
            rest.split_once('?').map_or(rest, |(address, _)| address).trim_matches(surrounds)
        }
        _ => text,
    }
}

fn surrounds(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(letter, '"' | '\'' | '«' | '»' | ',' | ';' | '\u{200b}'..='\u{200f}' | '\u{feff}')
}

fn is_local(local: &str) -> bool {
    let is_atom =
        |atom: &str| !atom.is_empty() && atom.chars().all(|c| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c));
    local.split('.').all(is_atom)
}

fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    domain.contains('.') && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(raw: &str, expected: Option<&str>) {
        assert_eq!(normalize_email(raw).map(|email| email.to_string()).as_deref(), expected, "{raw:?}");
    }

    #[test]
    fn addresses_keep_their_local_part() {
        check(" Anna.Test+tea@Example.COM. ", Some("Anna.Test+tea@example.com"));
        check("<anna@example.com>", Some("anna@example.com"));
        check("Анна Тестова <anna@example.com>", Some("anna@example.com"));
        check("MailTo:anna@example.com?subject=x", Some("anna@example.com"));
        check("\u{feff}anna@example.com\u{200b}\r\n", Some("anna@example.com"));
        check("\"anna@example.com\",", Some("anna@example.com"));
        check("анна@пример.рф", Some("анна@пример.рф"));
        check("o'hara_1@mail.example.com", Some("o'hara_1@mail.example.com"));
    }

    #[test]
    fn other_texts_are_absent() {
        for raw in [
            "",
            "@",
            "anna",
            "anna@",
            "@example.com",
            "anna@localhost",
            "anna@@example.com",
            "a@b@example.com",
            "an na@example.com",
            "anna@exam ple.com",
            "anna@example..com",
            "anna@-example.com",
            ".anna@example.com",
            "anna@example.com, boris@example.com",
            "an\u{0}na@example.com",
            "<>",
            "mailto:",
            "<anna@example.com",
            "anna@[127.0.0.1]",
        ] {
            check(raw, None);
        }
        check(&format!("{}@example.com", "a".repeat(65)), None);
        check(&format!("a@{}.com", "b".repeat(64)), None);
        check(&format!("a@{}com", "b.".repeat(130)), None);
    }

    #[test]
    fn matching_ignores_case_and_debug_shows_nothing() {
        let written = normalize_email("Anna@Example.com").unwrap();
        assert_eq!(written.compare_key(), normalize_email("anna@EXAMPLE.com").unwrap().compare_key());
        assert_eq!(format!("{written:?}"), "Email(..)");
    }

    proptest! {
        #[test]
        fn any_text_reads_without_panic(raw in "[a@.<> :\\PC]{0,40}") {
            if let Some(email) = normalize_email(&raw) {
                prop_assert_eq!(normalize_email(&email.to_string()), Some(email));
            }
        }
    }
}
