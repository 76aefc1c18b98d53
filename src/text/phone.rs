//! Phone numbers as people write them, brought to E.164.
//!
//! A field is cut at everything that cannot stand inside a number, so two
//! numbers in one field come apart and an extension (`доб. 12`, `#12`, `,12`)
//! falls off as a piece too short to be a number. Each piece is then read by the
//! rules of a Russian shop; what no rule reads is absent, never guessed:
//!
//! ```text
//! +<digits>                as written; +8 9.. is the common slip for +7 9..
//! 8 10 <digits>            international call from Russia: +<digits>
//! 8 0 <9 digits>           national form of Belarus: +375 <9 digits>
//! 8 <10> or 7 <10 digits>  Russia and Kazakhstan: +7 <10 digits>
//! 9 <9 digits>             a Russian mobile number without prefix: +7 9..
//! ```
//!
//! The number plan then decides: under +7 a number must be valid, elsewhere its
//! length must be possible, because foreign plans change faster than the plan
//! that is compiled in.

use std::fmt;

use rlibphonenumber::{NumberLengthType, PhoneNumber, PhoneNumberFormat};

/// A longer text is prose, not a phone field; it holds no phones for us.
const FIELD_CHARS_MAX: usize = 200;
/// CRMs hold mixed forms of one number, which agree in their last digits.
const SEARCH_DIGITS: usize = 10;
const COUNTRY_CODE_RUSSIA: i32 = 7;

/// A phone number in E.164; `Display` is `+79000000001`, `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phone(String);

impl Phone {
    /// The last ten digits: a CRM search with them meets `8 900..` and `+7 900..` alike.
    pub fn search_digits(&self) -> String {
        self.last(SEARCH_DIGITS)
    }

    /// The last four digits, by which people recognise a number.
    pub fn last4(&self) -> String {
        self.last(4)
    }

    fn last(&self, count: usize) -> String {
        let digits = self.0.trim_start_matches('+');
        digits.get(digits.len().saturating_sub(count)..).unwrap_or(digits).to_owned()
    }
}

impl fmt::Display for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Phone(..)")
    }
}

/// The first phone number in a field; absent when none can be read.
pub fn normalize_phone(raw: &str) -> Option<Phone> {
    normalize_phones(raw).into_iter().next()
}

/// All phone numbers in a field, in order, each once.
pub fn normalize_phones(raw: &str) -> Vec<Phone> {
    let mut phones: Vec<Phone> = Vec::new();
    if raw.chars().nth(FIELD_CHARS_MAX).is_some() {
        return phones;
    }
    let plain: String = raw.chars().map(to_ascii).collect();
    for piece in plain.replace('+', "|+").split('|') {
        let found = read_number(piece).map_or_else(|| read_row(piece), |phone| vec![phone]);
        for phone in found {
            if !phones.contains(&phone) {
                phones.push(phone);
            }
        }
    }
    phones
}

/// A digit, a plus, a blank for what may stand inside a number, `|` for what may not
/// and cuts the field there.
fn to_ascii(letter: char) -> char {
    match letter {
        '0'..='9' | '+' => letter,
        '\u{ff10}'..='\u{ff19}' => char::from_digit(u32::from(letter) - 0xff10, 10).unwrap_or('|'),
        '\u{ff0b}' => '+',
        '\n' | '\r' => '|',
        '(' | ')' | '.' | '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}' => ' ',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => ' ',
        _ if letter.is_whitespace() => ' ',
        _ => '|',
    }
}

/// Several numbers with only blanks between: taken apart only where each is a
/// +7 number, whose length is fixed.
fn read_row(piece: &str) -> Vec<Phone> {
    let mut phones = Vec::new();
    let mut row = String::new();
    for word in piece.split(' ').filter(|word| !word.is_empty()) {
        row.push_str(word);
        if let Some(phone) = read_number(&row).filter(|phone| phone.0.starts_with("+7")) {
            phones.push(phone);
            row.clear();
        }
    }
    phones
}

fn read_number(piece: &str) -> Option<Phone> {
    let text: String = piece.chars().filter(|letter| *letter != ' ').collect();
    let international = match (text.strip_prefix('+'), text.len()) {
        (Some(digits), 12) if digits.starts_with("89") => format!("+7{}", digits.get(1..)?),
        (Some(_), _) => text,
        (None, 11) if text.starts_with("80") => format!("+375{}", text.get(2..)?),
        (None, 11) if text.starts_with(['7', '8']) && !text.starts_with("81") => format!("+7{}", text.get(1..)?),
        (None, 10) if text.starts_with('9') => format!("+7{text}"),
        (None, _) => format!("+{}", text.strip_prefix("810")?),
    };
    let number = PhoneNumber::parse(&international, None).ok()?;
    let known = if number.country_code == COUNTRY_CODE_RUSSIA {
        number.is_valid()
    } else {
        number.is_possible_with_reason() == Ok(NumberLengthType::IsPossible)
    };
    known.then(|| Phone(number.format_as(PhoneNumberFormat::E164).into_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(raw: &str, expected: &[&str]) {
        let got: Vec<String> = normalize_phones(raw).iter().map(Phone::to_string).collect();
        assert_eq!(got, expected, "{raw:?}");
        assert_eq!(normalize_phone(raw).map(|phone| phone.to_string()).as_deref(), expected.first().copied());
    }

    /// Forms people type; the first block is bug B31 (8 -> +7, one contact), the
    /// fact sheet's table follows.
    #[test]
    fn golden_table() {
        for raw in ["8 (926) 123-45-67", "+7 926 123 45 67", "79261234567", "9261234567"] {
            check(raw, &["+79261234567"]);
        }
        for raw in [
            "8 (900) 000-00-01",
            "89000000001",
            "+7 900 000-00-01",
            "7 900 000 00 01",
            "9000000001",
            "+7\u{a0}900\u{a0}000\u{2011}00\u{2011}01",
            "\u{202a}+7 900 000-00-01\u{202c}",
            "＋７９００００００００１",
            "+8 900 000 00 01",
            "+7 (8900) 000-00-01",
            "8-10-7-900-000-00-01",
            "тел.: 8.900.000.00.01 (Анна)",
        ] {
            check(raw, &["+79000000001"]);
        }
        check("+7 701 000 0001", &["+77010000001"]);
        check("8 701 000 00 01", &["+77010000001"]);
        check("8 800 000-00-01", &["+78000000001"]);
        check("8 (495) 123-45-67", &["+74951234567"]);
        check("+375 29 000 00 01", &["+375290000001"]);
        check("+998 90 000 00 01", &["+998900000001"]);
        check("+996 700 000 001", &["+996700000001"]);
        check("8-10-44-20-7946-0000", &["+442079460000"]);
        check("8 029 000 00 01", &["+375290000001"]);
    }

    #[test]
    fn extensions_fall_off() {
        for raw in [
            "8 (495) 123-45-67 доб. 12",
            "84951234567#12",
            "8 495 123 45 67,12",
            "+74951234567 ext. 1234",
            "84951234567;9",
        ] {
            check(raw, &["+74951234567"]);
        }
    }

    #[test]
    fn two_numbers_in_one_field() {
        let both = ["+79000000001", "+79000000002"];
        for raw in [
            "89000000001, 89000000002",
            "89000000001/89000000002",
            "8 900 000 00 01 8 900 000 00 02",
            "+79000000001+79000000002",
            "8 900 000-00-01\n9000000002",
            "89000000001 или 8 (900) 000-00-02",
        ] {
            check(raw, &both);
        }
        check("89000000001, +7 900 000 00 01", &["+79000000001"]);
        check("+375 29 000 00 01; 8 900 000 00 01", &["+375290000001", "+79000000001"]);
    }

    #[test]
    fn what_no_rule_reads_is_absent() {
        for raw in [
            "",
            "нет",
            "+",
            "12",
            "1234567890",
            "4951234567",
            "+7 029 000 00 01",
            "+7 000 000 00 00",
            "+999 123 456 789",
            "890000000011",
            "8900000000",
            "00000000000",
            "4276 9000 0000 0001 2345",
            "99999999999999999999999999",
            "\u{0}\u{0}",
            "💥",
        ] {
            check(raw, &[]);
        }
        check(&"89000000001 ".repeat(50), &[]);
    }

    #[test]
    fn shows_only_the_digits_that_were_asked_for() {
        let phone = normalize_phone("8 900 000-00-01").unwrap();
        assert_eq!((phone.search_digits().as_str(), phone.last4().as_str()), ("9000000001", "0001"));
        assert_eq!(format!("{phone:?}"), "Phone(..)");
    }

    proptest! {
        #[test]
        fn any_text_reads_without_panic(raw in "\\PC{0,60}") {
            normalize_phones(&raw);
        }

        #[test]
        fn texts_like_phones_give_e164_that_reads_as_itself(raw in "[+0-9 ()#,.доб-]{0,40}") {
            for phone in normalize_phones(&raw) {
                let text = phone.to_string();
                prop_assert!(text.len() <= 16 && text.starts_with('+'));
                prop_assert_eq!(normalize_phone(&text), Some(phone));
            }
        }
    }
}
