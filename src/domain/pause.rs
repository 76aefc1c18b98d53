//! How long a task waits before its next attempt.

use std::time::Duration;

use crate::domain::{Attempt, TaskId};

/// The first pause; also the most by which an event may bring a waiting task forward.
pub const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// After so many settled attempts a task that only ever met `Retry` is dead.
///
/// 75 attempts by the schedule below are about three days.
pub const ATTEMPTS_MAX: u32 = 75;

/// A `Retry-After` beyond this is cut: usually a mistake of the other side.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const SCHEDULE: [Duration; 4] =
    [FIRST_PAUSE, Duration::from_secs(5 * 60), Duration::from_secs(15 * 60), Duration::from_secs(60 * 60)];
const HOURLY: Duration = Duration::from_secs(60 * 60);

/// The pause after `attempt` settled runs, and how many attempts it counts as.
///
/// Jittered upwards by at most a tenth, from the task's id and attempt, so
/// that the same run gives the same pauses. Not shorter than `retry_after`,
/// and an obeyed `retry_after` that is shorter than the schedule's own pause
/// waits out the schedule, so it spends no more attempts than the schedule would.
///
/// ```
/// # use tambour::domain::*;
/// # use std::time::Duration;
/// let pause = pause_after(TaskId::new(1), Attempt::new(1), None);
/// assert!(pause >= Duration::from_secs(60) && pause <= Duration::from_secs(66));
/// ```
pub fn pause_after(task: TaskId, attempt: Attempt, retry_after: Option<Duration>) -> Duration {
    let index = usize::try_from(attempt.get().saturating_sub(1)).unwrap_or(usize::MAX);
    let base = SCHEDULE.get(index).copied().unwrap_or(HOURLY);
    let wished = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
    let floor = base.max(wished);
    floor + jitter(task, attempt, floor / 10)
}

/// A value in `0..most`, spread evenly over tasks (SplitMix64 of id and attempt).
fn jitter(task: TaskId, attempt: Attempt, most: Duration) -> Duration {
    let mut x =
        task.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(attempt.get()).wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^= x >> 31;
    let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(x % most_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_then_stay_hourly_with_jitter_above() {
        let expected = [60, 300, 900, 3600, 3600, 3600];
        for (i, secs) in expected.into_iter().enumerate() {
            let attempt = Attempt::new(u32::try_from(i).unwrap() + 1);
            for task in 0..50 {
                let pause = pause_after(TaskId::new(task), attempt, None);
                let base = Duration::from_secs(secs);
                assert!(pause >= base && pause <= base + base / 10, "{pause:?} for {attempt:?}");
            }
        }
    }

    /// P12: `Retry-After: 7` must not burn through the attempts in seconds; B37: never less than asked.
    #[test]
    fn retry_after_only_lengthens() {
        let at = |secs| pause_after(TaskId::new(7), Attempt::new(1), Some(Duration::from_secs(secs)));
        assert!(at(7) >= Duration::from_secs(60));
        assert!(at(120) >= Duration::from_secs(120) && at(120) <= Duration::from_secs(132));
        assert!(at(u64::MAX) <= Duration::from_secs(24 * 3600 + 24 * 360));
    }
}
