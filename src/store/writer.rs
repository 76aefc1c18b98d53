//! The one writer: takes what waits, applies it in one transaction, commits once, then answers.
//!
//! Three bounded queues (door, worker, background) are emptied in that order,
//! each with a guaranteed share of a batch. A command that says no leaves the
//! others alone; a storage error fails the whole batch and every later one,
//! and the process must end: after a failed sync nobody knows what the disk holds.
//! A panic in the writer does the same. Either leaves a mark for the next opening.
//!
//! While the file is small every commit writes what a fast opening needs too. A
//! large file gets that in a commit of its own, once the writer was idle for a
//! moment and before it ends.
//!
//! The batch step can be called inline, without the thread, for simulations.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::Database;
use tokio::sync::{oneshot, watch};

use crate::clock::SharedClock;
use crate::domain::Pauses;
use crate::store::batch::{Batch, Tables};
use crate::store::dedup::DedupIndex;
use crate::store::error::{Broken, Error};
use crate::store::open::Tools;
use crate::store::place::Place;
use crate::telemetry::Metrics;

/// A change of the file. Applying it must not fail for reasons of its own: what
/// says no says it in the reply.
pub(super) trait Command: Send + 'static {
    type Reply: Send + 'static;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Self::Reply, Broken>;
}

/// Which queue a command waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Door,
    Worker,
    Background,
}

/// Commands of one batch, by queue: the door first, and none starves.
const SHARES: [usize; 3] = [512, 256, 64];

/// Deliveries that may wait for the writer: about 250 ms of work.
pub const DOOR_WAITING_MAX: usize = 4096;

/// What may wait, by queue; the worker is bounded by its own tasks, far below this.
const WAITING_MAX: [usize; 3] = [DOOR_WAITING_MAX, 4096, 256];

/// Waited for company only when the last batch had some.
const LINGER: Duration = Duration::from_millis(1);

/// How long the writer is idle before it makes a large file fast to open.
const IDLE: Duration = Duration::from_millis(200);

type Step = Box<dyn FnOnce(&mut Batch<'_>) -> Result<Box<dyn FnOnce() + Send>, Broken> + Send>;

#[derive(Default)]
struct Queues {
    waiting: [VecDeque<Step>; 3],
    closed: bool,
}

impl Queues {
    fn take(&mut self) -> Vec<Step> {
        let mut batch = Vec::new();
        for (queue, share) in self.waiting.iter_mut().zip(SHARES) {
            batch.extend(queue.drain(..share.min(queue.len())));
        }
        batch
    }

    fn is_empty(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }
}

/// What the writer tells others after each batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Commits so far.
    pub commits: u64,
    /// Whether a write failed; then nothing is written any more.
    pub failed: bool,
}

struct Shared {
    queues: Mutex<Queues>,
    arrival: Condvar,
    pulse: watch::Sender<Pulse>,
}

impl Shared {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        // A panic cannot leave half a push behind, so the queues are whole.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The batch step and all it needs.
pub(super) struct Engine {
    pub(super) database: Arc<Database>,
    pub(super) clock: SharedClock,
    pub(super) dedup: DedupIndex,
    pub(super) pauses: Pauses,
    pub(super) metrics: Arc<Metrics>,
    pub(super) process: u64,
    pub(super) place: Place,
    /// Whether the last commit left the file without what a fast opening needs.
    owes_quick: bool,
}

impl Engine {
    pub(super) fn new(database: Database, tools: Tools) -> Self {
        let Tools { clock, pauses, metrics, place } = tools;
        let (database, dedup) = (Arc::new(database), DedupIndex::default());
        Self { database, clock, dedup, pauses, metrics, process: 0, place, owes_quick: false }
    }

    /// One transaction, one durable commit; the replies are given only after it.
    fn run(&mut self, steps: Vec<Step>) -> Result<(), Broken> {
        let begun = self.clock.monotonic();
        let commands = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        let mut txn = self.database.begin_write()?;
        let is_quick = self.place.is_small();
        txn.set_quick_repair(is_quick);
        let mut replies = Vec::with_capacity(steps.len());
        {
            let mut batch = Batch {
                tables: Tables::open(&txn)?,
                dedup: &mut self.dedup,
                pauses: &self.pauses,
                now: self.clock.now(),
                monotonic: self.clock.monotonic(),
                process: self.process,
            };
            for step in steps {
                replies.push(step(&mut batch)?);
            }
        }
        txn.commit()?;
        self.owes_quick = !is_quick;
        self.dedup.commit();
        self.metrics.committed(commands, self.clock.monotonic().since(begun));
        for reply in replies {
            reply();
        }
        Ok(())
    }

    /// Commits nothing but what a fast opening needs, if that is owed.
    fn pay_quick(&mut self) -> Result<(), Broken> {
        if self.owes_quick {
            let mut txn = self.database.begin_write()?;
            txn.set_quick_repair(true);
            txn.commit()?;
            self.owes_quick = false;
        }
        Ok(())
    }
}

enum Mechanism {
    Thread { shared: Arc<Shared>, thread: Mutex<Option<std::thread::JoinHandle<()>>> },
    Inline { engine: Mutex<Option<Engine>>, pulse: watch::Sender<Pulse> },
}

/// Hands commands to the one writer.
pub(super) struct Writer {
    mechanism: Mechanism,
}

impl Writer {
    /// Starts the writer's own thread.
    pub(super) fn threaded(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            arrival: Condvar::new(),
            pulse: watch::Sender::new(Pulse::default()),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || serve(&theirs, engine))?;
        Ok(Self { mechanism: Mechanism::Thread { shared, thread: Mutex::new(Some(thread)) } })
    }

    /// Applies each command on its caller's thread, one by one.
    pub(super) fn inline(engine: Engine) -> Self {
        let pulse = watch::Sender::new(Pulse::default());
        Self { mechanism: Mechanism::Inline { engine: Mutex::new(Some(engine)), pulse } }
    }

    /// Waits until the command is durable and gives its reply.
    pub(super) async fn submit<C: Command>(&self, lane: Lane, command: C) -> Result<C::Reply, Error> {
        let (answer, answered) = oneshot::channel();
        let step: Step = Box::new(move |batch| {
            let reply = command.apply(batch)?;
            // The asker may have gone; what it asked for is durable all the same.
            Ok(Box::new(move || drop(answer.send(reply))))
        });
        match &self.mechanism {
            Mechanism::Thread { shared, .. } => push(shared, lane, step)?,
            Mechanism::Inline { engine, pulse } => run_inline(engine, pulse, step)?,
        }
        answered.await.map_err(|_| Error::Stopped)
    }

    /// Tells of every commit and of a failure.
    pub(super) fn pulse(&self) -> watch::Receiver<Pulse> {
        match &self.mechanism {
            Mechanism::Thread { shared, .. } => shared.pulse.subscribe(),
            Mechanism::Inline { pulse, .. } => pulse.subscribe(),
        }
    }

    /// Writes what waits, then takes nothing more. May be called twice.
    pub(super) fn close(&self) {
        match &self.mechanism {
            Mechanism::Thread { shared, thread } => {
                shared.queues().closed = true;
                shared.arrival.notify_all();
                let handle = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
                if handle.is_some_and(|handle| handle.join().is_err()) {
                    tracing::error!("the writer thread panicked");
                }
            }
            Mechanism::Inline { engine, pulse } => {
                let engine = engine.lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some(mut engine) = engine else { return };
                if let Err(broken) = engine.pay_quick() {
                    report(&engine.place, &broken);
                    pulse.send_modify(|p| p.failed = true);
                }
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn push(shared: &Shared, lane: Lane, step: Step) -> Result<(), Error> {
    let mut queues = shared.queues();
    if queues.closed {
        return Err(Error::Stopped);
    }
    let (index, most) = match lane {
        Lane::Door => (0, WAITING_MAX[0]),
        Lane::Worker => (1, WAITING_MAX[1]),
        Lane::Background => (2, WAITING_MAX[2]),
    };
    let Some(queue) = queues.waiting.get_mut(index) else { return Err(Error::Stopped) };
    if queue.len() >= most {
        return Err(Error::Busy);
    }
    queue.push_back(step);
    drop(queues);
    shared.arrival.notify_one();
    Ok(())
}

fn run_inline(engine: &Mutex<Option<Engine>>, pulse: &watch::Sender<Pulse>, step: Step) -> Result<(), Error> {
    let mut guard = engine.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(running) = guard.as_mut() else { return Err(Error::Stopped) };
    if let Err(broken) = running.run(vec![step]) {
        report(&running.place, &broken);
        *guard = None;
        pulse.send_modify(|p| p.failed = true);
        return Err(Error::Stopped);
    }
    pulse.send_modify(|p| p.commits += 1);
    Ok(())
}

/// The writer's thread: works until closed or broken, and lets nobody wait for it afterwards.
fn serve(shared: &Shared, engine: Engine) {
    let place = engine.place.clone();
    // Nothing of the engine is looked at after a panic; the queues are whole at any time.
    match catch_unwind(AssertUnwindSafe(|| work(shared, engine))) {
        Ok(Ok(())) => return,
        Ok(Err(broken)) => report(&place, &broken),
        Err(_) => {
            tracing::error!("the writer panicked; nothing is accepted until the next start");
            place.mark_failed("the writer panicked");
        }
    }
    let mut queues = shared.queues();
    queues.closed = true;
    // Dropping the steps drops their answers, which says `Stopped`.
    queues.waiting.iter_mut().for_each(VecDeque::clear);
    drop(queues);
    shared.pulse.send_modify(|p| p.failed = true);
}

/// One batch after another until closed.
fn work(shared: &Shared, mut engine: Engine) -> Result<(), Broken> {
    let mut had_company = false;
    loop {
        match wait(shared, had_company, engine.owes_quick) {
            Woken::Batch(steps) => {
                had_company = steps.len() > 1;
                engine.run(steps)?;
            }
            Woken::Idle => engine.pay_quick()?,
            Woken::Closed => return engine.pay_quick(),
        }
        shared.pulse.send_modify(|p| p.commits += 1);
    }
}

enum Woken {
    Batch(Vec<Step>),
    /// Nothing came for a while; only where `owes_quick`.
    Idle,
    Closed,
}

fn wait(shared: &Shared, had_company: bool, owes_quick: bool) -> Woken {
    let mut queues = shared.queues();
    while queues.is_empty() {
        if queues.closed {
            return Woken::Closed;
        }
        if owes_quick {
            let waited = shared.arrival.wait_timeout(queues, IDLE).unwrap_or_else(PoisonError::into_inner);
            queues = waited.0;
            if waited.1.timed_out() && queues.is_empty() && !queues.closed {
                return Woken::Idle;
            }
        } else {
            queues = shared.arrival.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }
    if had_company && !queues.closed {
        let waited = shared.arrival.wait_timeout(queues, LINGER).unwrap_or_else(PoisonError::into_inner);
        queues = waited.0;
    }
    Woken::Batch(queues.take())
}

fn report(place: &Place, broken: &Broken) {
    let cause = std::error::Error::source(broken).map(ToString::to_string).unwrap_or_default();
    tracing::error!(error = %broken, cause, "a write failed; nothing is accepted until the next start");
    place.mark_failed(&format!("{broken}: {cause}"));
}
