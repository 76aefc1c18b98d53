//! Money as an integer of minor units: exact, or refused.
//!
//! A sum is read from decimal text, printed as `4980.00` and rounded only where
//! a target takes whole units. Two decimals are assumed, as in RUB, USD and EUR;
//! a third one that is not zero is refused, so a currency with three is refused
//! instead of cut.

use std::fmt;
use std::str::FromStr;

const MINOR_PER_UNIT: i64 = 100;
const DECIMALS: usize = 2;

/// A sum in minor units (kopecks, cents); `Display` is `4980.00`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i64);

/// Why a text is no exact sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not decimal digits with at most one point: usually an exponent or a comma.
    #[error("not a decimal number")]
    Syntax,
    /// More than two decimals: usually a calculation that was not rounded.
    #[error("less than one minor unit")]
    SubMinor,
    /// Over 90 000 000 000 000 000 units.
    #[error("too large")]
    TooLarge,
}

impl Money {
    /// Wraps minor units.
    pub const fn from_minor(minor: i64) -> Self {
        Self(minor)
    }

    /// The minor units.
    pub const fn minor(self) -> i64 {
        self.0
    }

    /// Whole units; half a unit goes up (`0.50` is 1, `-0.50` is 0).
    pub const fn rounded_units(self) -> i64 {
        let half_or_more = self.0.rem_euclid(MINOR_PER_UNIT) * 2 >= MINOR_PER_UNIT;
        self.0.div_euclid(MINOR_PER_UNIT) + if half_or_more { 1 } else { 0 }
    }
}

impl FromStr for Money {
    type Err = MoneyError;

    /// Reads `4980`, `4980.0`, `-4980.00`; zeros after the second decimal are fine.
    ///
    /// An exponent (`1e2`), a comma, blanks, a leading `+` or point are refused.
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (units, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(units) || !is_number(fraction) {
            return Err(MoneyError::Syntax);
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > DECIMALS {
            return Err(MoneyError::SubMinor);
        }
        let parse = |part: &str| part.parse::<i64>().map_err(|_| MoneyError::TooLarge);
        let minor = parse(&format!("{fraction:0<DECIMALS$}"))?;
        let units = parse(units)?.checked_mul(MINOR_PER_UNIT).ok_or(MoneyError::TooLarge)?;
        Ok(Self(sign * units.checked_add(minor).ok_or(MoneyError::TooLarge)?))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (minor, per_unit) = (self.0.unsigned_abs(), MINOR_PER_UNIT.unsigned_abs());
        write!(f, "{sign}{}.{:02}", minor / per_unit, minor % per_unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<(&str, i64), MoneyError>) {
        let got = text.parse::<Money>().map(|sum| (sum.to_string(), sum.rounded_units()));
        assert_eq!(got, expected.map(|(shown, units)| (shown.to_owned(), units)), "{text:?}");
    }

    /// Bug B35: a shop's `1999.995` was rounded in silence; here it is refused.
    #[test]
    fn sums_are_exact_or_refused() {
        check("4980.00", Ok(("4980.00", 4980)));
        check("4980.0", Ok(("4980.00", 4980)));
        check("4980", Ok(("4980.00", 4980)));
        check("4980.010000", Ok(("4980.01", 4980)));
        check("0", Ok(("0.00", 0)));
        check("0.3", Ok(("0.30", 0)));
        check("1999.49", Ok(("1999.49", 1999)));
        check("1999.50", Ok(("1999.50", 2000)));
        check("-0.50", Ok(("-0.50", 0)));
        check("-0.51", Ok(("-0.51", -1)));
        check("92233720368547758.07", Ok(("92233720368547758.07", 92_233_720_368_547_758)));
        check("1999.995", Err(MoneyError::SubMinor));
        check("0.30000000000000004", Err(MoneyError::SubMinor));
        check("92233720368547758.08", Err(MoneyError::TooLarge));
        check("99999999999999999999", Err(MoneyError::TooLarge));
        for text in ["", "-", ".", "1.", ".5", "+1", "1e2", "1,50", " 1", "1 000", "0x1", "--1", "1.2.3", "٣", "NaN"] {
            check(text, Err(MoneyError::Syntax));
        }
    }

    #[test]
    fn rounding_and_printing_hold_at_the_ends() {
        assert_eq!(Money::from_minor(i64::MAX).rounded_units(), 92_233_720_368_547_758);
        assert_eq!(Money::from_minor(i64::MIN).rounded_units(), -92_233_720_368_547_758);
        assert_eq!(Money::from_minor(i64::MIN).to_string(), "-92233720368547758.08");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(minor in -i64::MAX..=i64::MAX) {
            let sum = Money::from_minor(minor);
            prop_assert_eq!(sum.to_string().parse(), Ok(sum));
        }

        #[test]
        fn any_text_reads_without_panic(text in "[0-9.e+-]{0,30}|\\PC{0,20}") {
            let _read = text.parse::<Money>();
        }
    }
}
