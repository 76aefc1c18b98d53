//! Leases what starts now, owns every running task, and takes back what is lost.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::domain::{Ending, Monotonic, NameKind, ReasonCode, Settlement, TaskSeed, Timestamp};
use crate::store::{Error, LEASE, LeaseTicket, LeasedTask};
use crate::worker::attempt;
use crate::worker::{Context, notice};

/// A run longer than this is aborted; every call in it has its own, shorter limit.
const RUN_MAX: Duration = Duration::from_mins(10);

/// Running tasks keep their leases by this.
const EXTEND_EVERY: Duration = Duration::from_secs(40);

/// How long running tasks may go on after a stop was asked for.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Looked again after an empty lease: what was ready is held back by something that sends no signal.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The dispatcher with the tasks that it runs.
pub struct Worker {
    context: Context,
    running: JoinSet<()>,
    leases: HashMap<Id, Running>,
}

struct Running {
    ticket: LeaseTicket,
    target: String,
    /// Made if the run ends dead without settling by itself.
    notice: Option<TaskSeed>,
    started: Monotonic,
    abort: AbortHandle,
}

impl Worker {
    /// Makes a worker that runs nothing yet.
    pub fn new(context: Context) -> Self {
        Self { context, running: JoinSet::new(), leases: HashMap::new() }
    }

    /// Works until `stop` turns true, then lets running tasks end.
    ///
    /// # Errors
    /// [`Error`] when the file takes no more writes; the process must end.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let config = self.context.config.clone();
        let reaped = self.context.store.reap(Box::new(move |dead| notice::for_dead(&config, dead))).await?;
        if reaped > 0 {
            tracing::warn!(tasks = reaped, "tasks were running when the process before ended; they run again");
        }
        let mut pulse = self.context.store.pulse();
        let mut extended = self.context.clock.monotonic();
        while !*stop.borrow() {
            // Before the look: a commit after it must wake us.
            pulse.borrow_and_update();
            let leased = self.lease_and_start().await?;
            if matches!(leased, Leased::Empty) {
                // Our own empty lease must not; what it hides is seen within `LOOK_AGAIN`.
                pulse.borrow_and_update();
            }
            let wake_at = self.next_wake(leased, extended)?;
            tokio::select! {
                // In this order, not by chance, so that a simulation can be repeated.
                biased;
                _ = stop.changed() => {}
                Some(ended) = self.running.join_next_with_id() => self.ended(ended, TOO_LONG).await?,
                changed = pulse.changed() => if changed.is_err() { return Err(Error::Stopped) },
                () = self.context.clock.sleep_until(wake_at) => {}
            }
            if self.context.clock.monotonic().since(extended) >= EXTEND_EVERY {
                extended = self.context.clock.monotonic();
                self.abort_overlong();
                self.extend().await?;
            }
        }
        self.drain().await
    }

    /// Leases and starts what is due and has a free slot; says whether anything due was left behind.
    async fn lease_and_start(&mut self) -> Result<Leased, Error> {
        let slots = self.free_slots();
        let targets: Vec<String> = slots.iter().map(|(target, _)| target.clone()).collect();
        let most = self.context.config.workers.saturating_sub(self.leases.len());
        if most == 0 || targets.is_empty() {
            return Ok(Leased::Full);
        }
        let now = self.context.clock.now();
        match self.context.store.view()?.next_due(&targets, &attempt::kinds())? {
            Some(due) if due <= now => {}
            due => return Ok(Leased::Nothing(due)),
        }
        let tasks = self.context.store.lease(slots, attempt::kinds(), most).await?;
        if tasks.is_empty() {
            return Ok(Leased::Empty);
        }
        for task in tasks {
            self.start(task);
        }
        Ok(Leased::Some)
    }

    fn start(&mut self, task: LeasedTask) {
        let ticket = task.ticket();
        let target = task.seed().target.clone();
        let notice = notice::for_dead_attempt(&self.context.config, &task);
        let started = self.context.clock.monotonic();
        let abort = self.running.spawn(attempt::run(self.context.clone(), task));
        self.leases.insert(abort.id(), Running { ticket, target, notice, started, abort });
    }

    /// Free slots by target, the least busy first, so that one target's backlog starves no other.
    ///
    /// A retired target has one too: its tasks end `configuration`, where people see them.
    fn free_slots(&self) -> Vec<(String, usize)> {
        let config = &self.context.config;
        let targets = config.targets.values().map(|target| (target.name.as_str(), target.in_flight_max));
        let retired = config.names.retired(NameKind::Target).map(|name| (name, 1));
        let mut free: Vec<(usize, String, usize)> = targets
            .chain(retired)
            .map(|(name, most)| {
                let busy = self.leases.values().filter(|running| running.target == name).count();
                (busy, name.to_owned(), most.saturating_sub(busy))
            })
            .filter(|(_, _, slots)| *slots > 0)
            .collect();
        free.sort();
        free.into_iter().map(|(_, target, slots)| (target, slots)).collect()
    }

    fn next_wake(&self, leased: Leased, extended: Monotonic) -> Result<Monotonic, Error> {
        let now = self.context.clock.monotonic();
        let extend_at = extended.plus(EXTEND_EVERY);
        let until = |due: Timestamp| now.plus(due.since(self.context.clock.now()));
        Ok(match leased {
            Leased::Some => now,
            Leased::Empty => now.plus(LOOK_AGAIN).min(extend_at),
            Leased::Nothing(Some(due)) => until(due).min(extend_at),
            Leased::Full | Leased::Nothing(None) => extend_at,
        })
    }

    async fn extend(&self) -> Result<(), Error> {
        let tickets: Vec<LeaseTicket> = self.leases.values().map(|running| running.ticket).collect();
        if tickets.is_empty() { Ok(()) } else { self.context.store.extend(tickets).await }
    }

    fn abort_overlong(&self) {
        let now = self.context.clock.monotonic();
        for running in self.leases.values().filter(|running| now.since(running.started) > RUN_MAX) {
            tracing::warn!(task = %running.ticket.task(), "the run takes too long and is aborted");
            running.abort.abort();
        }
    }

    /// Takes an ended future off the books; one that did not settle is settled here.
    async fn ended(&mut self, ended: Result<(Id, ()), JoinError>, aborted: Aborted) -> Result<(), Error> {
        let (id, error) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(error)),
        };
        let Some(running) = self.leases.remove(&id) else { return Ok(()) };
        let Some(error) = error else { return Ok(()) };
        let settlement = if error.is_panic() {
            tracing::error!(task = %running.ticket.task(), "the task's code panicked");
            Settlement::new(Ending::Dead(ReasonCode::WORKER_LOST), "its code panicked; the log says where")
        } else {
            Settlement::new(aborted.ending, aborted.text)
        };
        let settlement = Settlement { notice: running.notice, ..settlement };
        self.context.store.settle_ticket(running.ticket, settlement).await.map(drop)
    }

    async fn drain(mut self) -> Result<(), Error> {
        let deadline = self.context.clock.sleep(DRAIN_MAX);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                ended = self.running.join_next_with_id() => match ended {
                    Some(ended) => self.ended(ended, STOPPING).await?,
                    None => return Ok(()),
                },
                () = &mut deadline => break,
            }
        }
        self.running.abort_all();
        while let Some(ended) = self.running.join_next_with_id().await {
            self.ended(ended, STOPPING).await?;
        }
        Ok(())
    }
}

/// How an aborted run is settled.
struct Aborted {
    ending: Ending,
    text: &'static str,
}

/// Counts as an attempt, so that a run that always hangs ends as dead.
const TOO_LONG: Aborted = Aborted { ending: Ending::Retry(None), text: "the run took too long and was aborted" };

/// Counts as no attempt: it was our own stop.
const STOPPING: Aborted = Aborted { ending: Ending::Lost, text: "aborted, because the appliance stops" };

/// What an attempt to lease came to.
enum Leased {
    /// Tasks were started; there may be more.
    Some,
    /// No slot is free.
    Full,
    /// Something was due and could not be leased: a suspect waits to run alone, or does.
    Empty,
    /// Nothing is due; the next thing is at that time.
    Nothing(Option<Timestamp>),
}

// A lease outlives the pause between two extensions, with room for a slow commit.
const _: () = assert!(EXTEND_EVERY.as_secs() * 2 < LEASE.as_secs());
