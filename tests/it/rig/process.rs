//! One process of the appliance, from its start to its death.

use std::sync::Arc;
use std::time::Duration;

use tambour::clock::{ManualClock, SharedClock};
use tambour::config::{Config, Source};
use tambour::domain::TraceId;
use tambour::intake::{Intake, route_names};
use tambour::server::{accounts, shops};
use tambour::source::{RawDelivery, Refused, read, verify};
use tambour::store::{Error, Receipt, Store};
use tambour::worker::{Context, Worker};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::rig::clock::ProcessClock;
use crate::rig::disk::Disk;
use crate::rig::life::Life;
use crate::rig::network::Network;

/// Why a delivery gets no 2xx.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAccepted {
    /// It proves nothing.
    Refused(Refused),
    /// The commit failed.
    Failed,
}

/// A running appliance.
pub(super) struct Process {
    /// `None` once it was killed.
    parts: Option<Parts>,
    life: Life,
}

/// In the order in which they go down.
struct Parts {
    worker: JoinHandle<Result<(), Error>>,
    runtime: Runtime,
    store: Store,
    intake: Intake,
    clock: ProcessClock,
    _stop: watch::Sender<bool>,
}

impl Process {
    /// Gives `None` when it died while it opened the file.
    pub(super) fn start(config: &Arc<Config>, time: &Arc<ManualClock>, disk: &Disk, network: &Network) -> Option<Self> {
        let life = Life::default();
        let clock = ProcessClock::starting_now(time);
        let shared: SharedClock = Arc::new(clock.clone());
        let opened = Store::inline(disk.mounted(life.clone()), shared.clone(), config.pauses.clone());
        let store = life.unless_it_ended(opened)?;
        let lost = store.view().ok().and_then(|view| config.keeps(view.names().unwrap()).err());
        assert_eq!(lost, None, "`serve` refuses such a configuration");
        let runtime = Builder::new_current_thread().build().unwrap();
        let first_live = life.unless_it_ended(runtime.block_on(store.routes_live(route_names(config))))?;
        let worker = Worker::new(context(config, &store, shared, network, &clock, &life));
        let (stop, stopped) = watch::channel(false);
        let worker = runtime.spawn(worker.run(stopped));
        let intake = Intake::new(config.clone(), &first_live);
        Some(Self { parts: Some(Parts { worker, runtime, store, intake, clock, _stop: stop }), life })
    }

    /// Whether it goes on; one whose disk failed ends by itself.
    pub(super) fn lives(&self) -> bool {
        self.life.lasts() && !self.life.is_doomed()
    }

    /// Ends it at once: nothing of it runs any more, and nothing it still holds reaches the disk.
    pub(super) fn kill(&mut self) {
        if self.life.is_doomed() {
            let store = self.store();
            assert!(matches!(self.block_on(store.probe()), Err(Error::Stopped)), "it goes on after a failure");
            assert!(store.pulse().borrow().failed, "the server is not told to end");
        }
        self.life.end();
        self.parts = None;
    }

    pub(super) fn store(&self) -> &Store {
        &self.parts().store
    }

    pub(super) fn until_next_sleeper(&self) -> Duration {
        self.parts().clock.until_next_sleeper().expect("the dispatcher always waits for something")
    }

    /// Runs every future that is ready; a current-thread runtime comes back to a yield
    /// once its queue is empty, and what was woken then has its turn in the next round.
    pub(super) fn settle(&self) {
        let Parts { runtime, worker, store, .. } = self.parts();
        runtime.block_on(async {
            let mut commits = store.pulse();
            let mut quiet_rounds = 0;
            while quiet_rounds < 3 {
                tokio::task::yield_now().await;
                quiet_rounds = if commits.has_changed().unwrap_or(false) { 0 } else { quiet_rounds + 1 };
                commits.borrow_and_update();
            }
        });
        assert!(!worker.is_finished() || !self.lives(), "the worker never ends by itself");
    }

    /// The door without its socket: verify, read, plan, one commit.
    pub(super) fn deliver(&self, source: &Source, raw: RawDelivery, trace: TraceId) -> Result<Receipt, NotAccepted> {
        let Parts { runtime, store, intake, .. } = self.parts();
        let delivery = verify(source, raw).map_err(NotAccepted::Refused)?;
        let command = intake.plan(&delivery, &read(source, &delivery), trace);
        let accepted = runtime.block_on(store.accept(command)).map_err(|_| NotAccepted::Failed)?;
        Ok(accepted.receipt().clone())
    }

    pub(super) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.parts().runtime.block_on(work)
    }

    fn parts(&self) -> &Parts {
        self.parts.as_ref().expect("nothing is asked of a killed process")
    }
}

fn context(
    config: &Arc<Config>,
    store: &Store,
    shared: SharedClock,
    network: &Network,
    clock: &ProcessClock,
    life: &Life,
) -> Context {
    let line = network.line(clock, life);
    let metrics = Arc::default();
    Context {
        store: store.clone(),
        shops: shops(config, &line, &shared, &metrics),
        accounts: accounts(config, &line, &shared, &metrics),
        clock: shared,
        config: config.clone(),
        metrics,
    }
}
