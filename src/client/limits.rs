//! How many calls one external account gets: at a time and in a second.
//!
//! amoCRM counts requests over the whole account, other integrations included,
//! and blocks one that repeatedly asks too much (amoCRM developer pages,
//! "recommendations", read 2026-11). So calls are spaced evenly, without
//! bursts, and each 429 halves the rate until the others leave room again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::clock::SharedClock;
use crate::domain::Monotonic;

/// After a 429 nothing leaves for so long; answers 429 within it count as one.
const PAUSE: Duration = Duration::from_secs(1);

/// One halving is taken back after so long without a 429.
const RECOVERY: Duration = Duration::from_mins(1);

/// The slowest rate is 1/16 of the configured one.
const HALVINGS_MAX: u32 = 4;

/// The limits of one external account.
#[derive(Debug)]
pub(super) struct Limits {
    clock: SharedClock,
    in_flight: Semaphore,
    pace: Mutex<Pace>,
}

/// The right to make one call; give it back by dropping it after the answer.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    _place: SemaphorePermit<'a>,
}

impl Limits {
    pub(super) fn new(in_flight_max: usize, calls_per_second: u32, clock: SharedClock) -> Self {
        let interval = Duration::from_secs(1) / calls_per_second.max(1);
        Self { clock, in_flight: Semaphore::new(in_flight_max.max(1)), pace: Mutex::new(Pace::every(interval)) }
    }

    /// Waits for a place among the calls in flight, then for its turn.
    pub(super) async fn enter(&self) -> Permit<'_> {
        let place = self.in_flight.acquire().await.expect("the semaphore is never closed");
        let turn = self.with_pace(Pace::take_turn);
        self.clock.sleep_until(turn).await;
        Permit { _place: place }
    }

    /// The account said 429.
    pub(super) fn slow_down(&self) {
        self.with_pace(Pace::slow_down);
    }

    fn with_pace<T>(&self, change: impl FnOnce(&mut Pace, Monotonic) -> T) -> T {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut pace, self.clock.monotonic())
    }
}

/// When the next call may leave.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    next: Monotonic,
    halvings: u32,
    /// When one halving is taken back; means nothing while there is none.
    easier_at: Monotonic,
}

impl Pace {
    fn every(interval: Duration) -> Self {
        Self { interval, next: Monotonic::default(), halvings: 0, easier_at: Monotonic::default() }
    }

    /// Reserves the next turn and says when it is.
    fn take_turn(&mut self, now: Monotonic) -> Monotonic {
        while self.halvings > 0 && now >= self.easier_at {
            self.halvings -= 1;
            self.easier_at = self.easier_at.plus(RECOVERY);
        }
        let turn = self.next.max(now);
        self.next = turn.plus(self.interval * 2_u32.pow(self.halvings));
        turn
    }

    fn slow_down(&mut self, now: Monotonic) {
        let last = self.easier_at.since_start().saturating_sub(RECOVERY);
        if self.halvings > 0 && now.since_start() < last + PAUSE {
            return;
        }
        self.halvings = (self.halvings + 1).min(HALVINGS_MAX);
        self.easier_at = now.plus(RECOVERY);
        self.next = self.next.max(now.plus(PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::ManualClock;
    use crate::domain::Timestamp;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    #[test]
    fn turns_are_spaced_without_bursts() {
        let mut pace = Pace::every(Duration::from_millis(200));
        let turns = [5000, 5000, 5050, 9000].map(|now| pace.take_turn(at(now)));
        assert_eq!(turns, [at(5000), at(5200), at(5400), at(9000)]);
    }

    /// B44: each 429 leaves more room to the account's other integrations.
    #[test]
    fn each_429_halves_the_rate_and_it_recovers_step_by_step() {
        let mut pace = Pace::every(Duration::from_millis(200));
        let gap_at = |pace: &mut Pace, now| {
            let first = pace.take_turn(at(now));
            pace.take_turn(at(now)).since(first)
        };
        pace.slow_down(at(0));
        pace.slow_down(at(300));
        assert_eq!(pace.take_turn(at(300)), at(1000), "nothing leaves for a second");
        assert_eq!(gap_at(&mut pace, 5000), Duration::from_millis(400), "429 to calls in flight together count once");
        for now in [10_000, 12_000, 14_000, 16_000, 18_000] {
            pace.slow_down(at(now));
        }
        let slowest = Duration::from_millis(3200);
        for (now, gap) in [(20_000, slowest), (77_000, slowest), (78_000, slowest / 2), (138_000, slowest / 4)] {
            assert_eq!(gap_at(&mut pace, now), gap, "at {now}");
        }
        assert_eq!(gap_at(&mut pace, 900_000), Duration::from_millis(200));
    }

    #[tokio::test]
    async fn a_call_waits_for_its_turn_and_for_a_place() {
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let limits = Limits::new(2, 10, clock.clone());
        let first = limits.enter().await;
        let mut second = Box::pin(limits.enter());
        assert!(second.as_mut().now_or_never().is_none(), "its turn is 100 ms later");
        clock.advance(Duration::from_millis(100));
        let second = second.await;
        clock.advance(Duration::from_secs(1));
        let mut third = Box::pin(limits.enter());
        assert!(third.as_mut().now_or_never().is_none(), "both places are taken");
        drop(first);
        third.await;
        drop(second);
    }
}
