//! How many calls one external account gets: at a time and in a second.
//!
//! amoCRM counts requests over the whole account, other integrations included,
//! and blocks one that repeatedly asks too much (amoCRM developer pages,
//! "recommendations", read 2026-11). So calls are spaced evenly, without
//! bursts, and each 429 halves the rate until the others leave room again. The
//! pause that a 429 asks for is the account's: no call of ours leaves in it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::clock::SharedClock;
use crate::domain::Monotonic;

/// After a 429 nobody gets a turn for so long; answers 429 within it count as one.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause of a whole account, whatever one answer asks for.
const PAUSE_MAX: Duration = Duration::from_hours(1);

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

    /// Waits for the end of a pause, for a place among the calls in flight, then for its turn.
    ///
    /// Gives `None` as soon as it is sure that this takes longer than `patience`.
    pub(super) async fn enter(&self, patience: Duration) -> Option<Permit<'_>> {
        let begun = self.clock.monotonic();
        let is_late = |at: Monotonic| at.since(begun) > patience;
        loop {
            // Without a place: those who wait for hours leave the places to others.
            let opens = self.with_pace(|pace, _| pace.opens);
            if is_late(opens) {
                return None;
            }
            self.clock.sleep_until(opens).await;
            let place = self.in_flight.acquire().await.expect("the semaphore is never closed");
            let Some(turn) = self.with_pace(|pace, now| pace.is_open(now).then(|| pace.take_turn(now))) else {
                continue;
            };
            self.clock.sleep_until(turn).await;
            if is_late(self.clock.monotonic()) {
                return None;
            }
            if self.with_pace(|pace, now| pace.is_open(now)) {
                return Some(Permit { _place: place });
            }
        }
    }

    /// The account said 429, and asked for a pause if it gave a `wish`.
    pub(super) fn slow_down(&self, wish: Option<Duration>) {
        self.with_pace(|pace, now| pace.slow_down(now, wish));
    }

    /// What is left of the pause that the account asked for.
    pub(super) fn pause_left(&self) -> Duration {
        self.with_pace(|pace, now| pace.opens.since(now))
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
    /// The end of a pause that was asked for: nothing leaves before, not even what had its turn.
    opens: Monotonic,
    halvings: u32,
    /// When one halving is taken back; means nothing while there is none.
    easier_at: Monotonic,
}

impl Pace {
    fn every(interval: Duration) -> Self {
        let zero = Monotonic::default();
        Self { interval, next: zero, opens: zero, halvings: 0, easier_at: zero }
    }

    fn is_open(&self, now: Monotonic) -> bool {
        now >= self.opens
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

    fn slow_down(&mut self, now: Monotonic, wish: Option<Duration>) {
        if let Some(wish) = wish {
            self.opens = self.opens.max(now.plus(wish.min(PAUSE_MAX)));
            self.next = self.next.max(self.opens);
        }
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
        pace.slow_down(at(0), None);
        pace.slow_down(at(300), None);
        assert_eq!(pace.take_turn(at(300)), at(1000), "nothing leaves for a second");
        assert_eq!(gap_at(&mut pace, 5000), Duration::from_millis(400), "429 to calls in flight together count once");
        for now in [10_000, 12_000, 14_000, 16_000, 18_000] {
            pace.slow_down(at(now), None);
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
        let first = limits.enter(Duration::MAX).await.unwrap();
        let mut second = Box::pin(limits.enter(Duration::MAX));
        assert!(second.as_mut().now_or_never().is_none(), "its turn is 100 ms later");
        clock.advance(Duration::from_millis(100));
        let second = second.await.unwrap();
        clock.advance(Duration::from_secs(1));
        let mut third = Box::pin(limits.enter(Duration::MAX));
        assert!(third.as_mut().now_or_never().is_none(), "both places are taken");
        drop(first);
        third.await.unwrap();
        drop(second);
    }

    /// B37: what one call was asked to wait for, every call of the account waits for.
    #[test]
    fn a_pause_that_was_asked_for_is_the_whole_accounts() {
        let check = |wishes: &[Option<u64>], opens: u64| {
            let mut pace = Pace::every(Duration::from_millis(200));
            for wish in wishes {
                pace.slow_down(at(100), wish.map(Duration::from_secs));
            }
            assert_eq!(pace.take_turn(at(100)), at(opens), "{wishes:?}");
            assert!(!pace.is_open(at(opens - 1)) && pace.is_open(at(opens)), "{wishes:?}");
        };
        check(&[Some(120)], 120_100);
        check(&[None, Some(120)], 120_100);
        check(&[Some(120), Some(5)], 120_100);
        check(&[Some(86_400)], 3_600_100);
    }

    #[tokio::test]
    async fn a_call_that_had_its_turn_waits_for_the_pause_and_an_impatient_one_does_not() {
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let limits = Limits::new(2, 1, clock.clone());
        drop(limits.enter(Duration::MAX).await);
        let mut waits = Box::pin(limits.enter(Duration::MAX));
        assert!(waits.as_mut().now_or_never().is_none(), "its turn is in a second");
        limits.slow_down(Some(Duration::from_secs(120)));
        assert!(limits.enter(Duration::from_secs(10)).await.is_none());
        assert_eq!(limits.pause_left(), Duration::from_secs(120));
        for passed in [1, 118] {
            clock.advance(Duration::from_secs(passed));
            assert!(waits.as_mut().now_or_never().is_none());
        }
        clock.advance(Duration::from_secs(1));
        assert!(waits.await.is_some());
    }
}
