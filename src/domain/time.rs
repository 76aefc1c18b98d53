//! Two times that are never mixed: the wall and the monotonic clock.

use std::fmt;
use std::time::Duration;

/// A wall-clock instant: whole milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// From seconds since the epoch (amoCRM's unit).
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This instant moved on by `by`; stays at the end of time instead of wrapping.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long `earlier` lies back; zero when it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds; the bare number outside the years 0-9999.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A monotonic instant: time since this process started.
///
/// Instants of two processes are not comparable; a record that keeps one keeps
/// the number of its process beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// From the time since the process started.
    pub const fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Time since the process started.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// This instant moved on by `by`.
    #[must_use]
    pub const fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// How long `earlier` lies back; zero when it lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_utc_with_milliseconds() {
        assert_eq!(Timestamp::from_secs(1_796_036_400).to_string(), "2026-11-30T11:00:00.000Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), i64::MAX.to_string());
    }

    #[test]
    fn differences_never_go_below_zero() {
        let (early, late) = (Timestamp::from_secs(1), Timestamp::from_secs(3));
        assert_eq!(late.since(early), Duration::from_secs(2));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early.plus(Duration::MAX), Timestamp::from_millis(i64::MAX));
        assert_eq!(Timestamp::from_millis(-1).as_secs(), -1);
    }
}
