//! The only place that reads a clock.
//!
//! Everything above takes a [`Clock`]: the system's in `serve`, a manual one in
//! tests and simulations, so that no test waits and every run can be repeated.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::domain::{Monotonic, Timestamp};

/// Tells both times and sleeps.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The wall clock; may jump.
    fn now(&self) -> Timestamp;

    /// Time since this process started; never jumps.
    fn monotonic(&self) -> Monotonic;

    /// Returns once the monotonic clock has reached `at`.
    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()>;

    /// Returns after `pause`.
    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.monotonic().plus(pause))
    }
}

/// A clock that everybody may hold.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// Starts counting monotonic time now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn start() -> SharedClock {
        Arc::new(Self { started: std::time::Instant::now() })
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn now(&self) -> Timestamp {
        let millis = match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        Timestamp::from_millis(millis)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.started.elapsed())
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        let pause = at.since(self.monotonic());
        Box::pin(tokio::time::sleep(pause))
    }
}

/// A clock that moves only when told.
#[derive(Debug)]
pub struct ManualClock {
    time: watch::Sender<(Timestamp, Monotonic)>,
}

impl ManualClock {
    /// Starts at `now`, with zero monotonic time.
    pub fn starting_at(now: Timestamp) -> Arc<Self> {
        Arc::new(Self { time: watch::Sender::new((now, Monotonic::default())) })
    }

    /// Moves both clocks on and wakes those whose time has come.
    pub fn advance(&self, by: Duration) {
        self.time.send_modify(|(wall, monotonic)| {
            *wall = wall.plus(by);
            *monotonic = monotonic.plus(by);
        });
    }

    /// Sets the wall clock alone, as a wrong clock at boot or a time server does.
    pub fn set_wall(&self, now: Timestamp) {
        self.time.send_modify(|(wall, _)| *wall = now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.time.borrow().0
    }

    fn monotonic(&self) -> Monotonic {
        self.time.borrow().1
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        let mut time = self.time.subscribe();
        Box::pin(async move {
            if time.wait_for(|(_, monotonic)| *monotonic >= at).await.is_err() {
                // The clock is gone, so its time never comes.
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_when_told() {
        let clock = ManualClock::starting_at(Timestamp::from_secs(100));
        let sleeper = clock.sleep(Duration::from_secs(5));
        clock.advance(Duration::from_secs(4));
        clock.set_wall(Timestamp::from_secs(0));
        assert_eq!(clock.monotonic().since_start(), Duration::from_secs(4));
        clock.advance(Duration::from_secs(1));
        sleeper.await;
        assert_eq!(clock.now(), Timestamp::from_secs(1));
    }
}
