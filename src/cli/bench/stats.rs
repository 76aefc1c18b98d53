//! Percentiles of measured times.

use std::time::Duration;

use serde::Serialize;

/// Measured times, for percentiles.
pub(super) struct Latencies(Vec<Duration>);

/// The percentiles that a report shows, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
}

impl Latencies {
    /// Sorts what was measured.
    pub(super) fn of(mut measured: Vec<Duration>) -> Self {
        measured.sort_unstable();
        Self(measured)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The percentiles of a report; absent when nothing was measured.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let ms = |per_mille| self.at(per_mille).map(|time| time.as_secs_f64() * 1000.0);
        Some(Percentiles { p50_ms: ms(500)?, p99_ms: ms(990)?, p999_ms: ms(999)? })
    }

    /// Nearest rank: the least time within which that share of all was done.
    fn at(&self, per_mille: usize) -> Option<Duration> {
        let rank = self.0.len().saturating_mul(per_mille).div_ceil(1000);
        self.0.get(rank.max(1) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values_by_nearest_rank() {
        let check = |count: u64, per_mille: usize, expected: Option<u64>| {
            let shuffled = (1..=count).rev().map(Duration::from_millis).collect();
            assert_eq!(
                Latencies::of(shuffled).at(per_mille),
                expected.map(Duration::from_millis),
                "{count} {per_mille}"
            );
        };
        check(0, 500, None);
        check(1, 500, Some(1));
        check(1, 999, Some(1));
        check(2, 500, Some(1));
        check(3, 500, Some(2));
        check(100, 990, Some(99));
        check(101, 990, Some(100));
        check(1000, 999, Some(999));
        check(1000, 1000, Some(1000));
        check(1000, 0, Some(1));
    }

    #[test]
    fn reports_are_in_milliseconds() {
        let times = Latencies::of(vec![Duration::from_micros(2500); 10]);
        let all = Percentiles { p50_ms: 2.5, p99_ms: 2.5, p999_ms: 2.5 };
        assert_eq!((times.count(), times.percentiles()), (10, Some(all)));
        assert_eq!(Latencies::of(Vec::new()).percentiles(), None);
    }
}
