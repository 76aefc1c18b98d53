//! Ids: each a newtype that prints as people paste it into the CLI.

use std::fmt;
use std::str::FromStr;

macro_rules! ascending_id {
    ($name:ident, $prefix:literal, $word:literal, $what:literal) => {
        #[doc = concat!($what, "; ascending, assigned by the writer, never reused.")]
        ///
        #[doc = concat!("Prints as `", $prefix, "17`; parses with or without the letter.")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number that the writer assigned or a record held.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The bare number, for keys and records.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .unwrap_or(text)
                    .parse()
                    .map(Self)
                    .map_err(|_| ParseIdError { kind: concat!($word, " id (", $prefix, "17)") })
            }
        }
    };
}

ascending_id!(EventId, "e", "an event", "A stored event");
ascending_id!(TaskId, "t", "a task", "A task");
ascending_id!(IntentId, "i", "an intent", "An intent: one planned change outside");
ascending_id!(LeaseToken, "l", "a lease", "The right to run a task; changes on every lease");

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {kind}")]
pub struct ParseIdError {
    kind: &'static str,
}

/// The ordinal of one run of a task; 0 = not yet run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(u32);

impl Attempt {
    /// Wraps a count of settled runs.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The count of settled runs.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// One more; stays at the maximum instead of wrapping.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A random 128-bit id that runs from delivery to effect; prints as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

impl TraceId {
    /// Wraps random or stored bits.
    pub const fn new(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits, for records.
    pub const fn get(self) -> u128 {
        self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TraceId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let well_formed = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        well_formed
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten()
            .map(Self)
            .ok_or(ParseIdError { kind: "a trace id (32 hex digits)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_as_pasted_and_parse_both_ways() {
        assert_eq!(EventId::new(17).to_string(), "e17");
        assert_eq!("e17".parse(), Ok(EventId::new(17)));
        assert_eq!("17".parse(), Ok(TaskId::new(17)));
        assert!("t17".parse::<EventId>().is_err());
        assert!("".parse::<EventId>().is_err());
    }

    #[test]
    fn trace_ids_are_32_hex_digits() {
        let id = TraceId::new(0xab);
        assert_eq!(id.to_string(), "000000000000000000000000000000ab");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("ab".parse::<TraceId>().is_err());
        assert!("+00000000000000000000000000000ab".parse::<TraceId>().is_err());
    }
}
