//! How long a task waits before its next attempt.

use std::time::Duration;

use crate::domain::{Attempt, TaskId};

/// After so many settled attempts a task that only ever met `Retry` is dead.
///
/// 75 attempts by the default pauses are about three days.
pub const ATTEMPTS_MAX: u32 = 75;

/// A `Retry-After` beyond this is cut: usually a mistake of the other side.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The growing pauses between attempts; the last one repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pauses {
    first: Duration,
    later: Vec<Duration>,
}

impl Default for Pauses {
    /// 1, 5, 15 and 60 minutes, then hourly.
    fn default() -> Self {
        Self {
            first: Duration::from_mins(1),
            later: vec![Duration::from_mins(5), Duration::from_mins(15), Duration::from_mins(60)],
        }
    }
}

impl Pauses {
    /// Takes pauses in order; `None` when there are none.
    pub fn new(pauses: &[Duration]) -> Option<Self> {
        let (&first, later) = pauses.split_first()?;
        Some(Self { first, later: later.to_vec() })
    }

    /// The first pause; also the most by which an event leaves a waiting task waiting.
    pub const fn first(&self) -> Duration {
        self.first
    }

    /// The pause after `attempt` settled runs of `task`.
    ///
    /// Jittered upwards by at most a tenth, from the task's id and attempt, so
    /// that the same run gives the same pauses. Never shorter than
    /// `retry_after` nor than the schedule's own pause, so obeying a short
    /// `retry_after` spends no more attempts than the schedule would.
    pub fn after(&self, task: TaskId, attempt: Attempt, retry_after: Option<Duration>) -> Duration {
        let base = match attempt.get() {
            0 | 1 => self.first,
            n => {
                let index = usize::try_from(n - 2).unwrap_or(usize::MAX);
                self.later.get(index).or_else(|| self.later.last()).copied().unwrap_or(self.first)
            }
        };
        let floor = base.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
        floor + jitter(task, attempt, floor / 10)
    }
}

/// A value in `0..most`, spread evenly over tasks (SplitMix64 of id and attempt).
fn jitter(task: TaskId, attempt: Attempt, most: Duration) -> Duration {
    let seed =
        task.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(attempt.get()).wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis((mixed ^ (mixed >> 31)) % most_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_then_stay_hourly_with_jitter_above() {
        for (i, mins) in [1, 5, 15, 60, 60, 60].into_iter().enumerate() {
            let attempt = Attempt::new(u32::try_from(i).unwrap() + 1);
            for task in 0..50 {
                let pause = Pauses::default().after(TaskId::new(task), attempt, None);
                let base = Duration::from_mins(mins);
                assert!(pause >= base && pause <= base + base / 10, "{pause:?} for {attempt:?}");
            }
        }
    }

    /// P12: `Retry-After: 7` must not burn through the attempts in seconds; B37: never less than asked.
    #[test]
    fn retry_after_only_lengthens() {
        let at = |secs| Pauses::default().after(TaskId::new(7), Attempt::new(1), Some(Duration::from_secs(secs)));
        assert!(at(7) >= Duration::from_secs(60));
        assert!(at(120) >= Duration::from_secs(120) && at(120) <= Duration::from_secs(132));
        assert!(at(u64::MAX) <= Duration::from_hours(24) + Duration::from_mins(144));
    }

    #[test]
    fn one_pause_repeats() {
        let pauses = Pauses::new(&[Duration::from_secs(2)]).unwrap();
        assert!(pauses.after(TaskId::new(1), Attempt::new(9), None) < Duration::from_secs(3));
        assert_eq!(Pauses::new(&[]), None);
    }
}
