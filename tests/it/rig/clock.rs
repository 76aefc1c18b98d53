//! Time that moves only when the rig moves it, and tells what waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tambour::clock::{Clock, ManualClock};
use tambour::domain::{Monotonic, Timestamp};

/// The clocks of one process: the wall clock is the world's, the monotonic one starts anew.
#[derive(Clone, Debug)]
pub(crate) struct ProcessClock {
    world: Arc<ManualClock>,
    started: Monotonic,
    /// How many wait for each moment of the world's monotonic clock.
    sleepers: Arc<Mutex<BTreeMap<Monotonic, usize>>>,
}

impl ProcessClock {
    pub(crate) fn starting_now(world: &Arc<ManualClock>) -> Self {
        Self { world: world.clone(), started: world.monotonic(), sleepers: Arc::default() }
    }

    /// How long until the first sleeper wakes, in whole milliseconds, rounded up; at least one.
    pub(crate) fn until_next_sleeper(&self) -> Option<Duration> {
        let first = *self.sleepers.lock().unwrap().keys().next()?;
        let pause = first.since(self.world.monotonic());
        Some(Duration::from_millis(u64::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap().max(1)))
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.world.monotonic().since(self.started))
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        let moment = self.started.plus(at.since_start());
        let sleeper = Sleeper::new(self.sleepers.clone(), moment);
        let wake = self.world.sleep_until(moment);
        Box::pin(async move {
            wake.await;
            drop(sleeper);
        })
    }
}

/// An entry among the sleepers; leaves when its future ends or is dropped.
struct Sleeper {
    all: Arc<Mutex<BTreeMap<Monotonic, usize>>>,
    moment: Monotonic,
}

impl Sleeper {
    fn new(all: Arc<Mutex<BTreeMap<Monotonic, usize>>>, moment: Monotonic) -> Self {
        *all.lock().unwrap().entry(moment).or_default() += 1;
        Self { all, moment }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap();
        let count = all.get_mut(&self.moment).unwrap();
        *count -= 1;
        if *count == 0 {
            all.remove(&self.moment);
        }
    }
}
