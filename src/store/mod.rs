//! The data file: inbox, dedup log, tasks, keys, intents, objects outside, audit trail.
//!
//! `schema.rs` draws every table. One writer ([`writer`](self)) commits in
//! groups and answers after the commit is durable; reads take a [`View`] and
//! never wait for it. [`Store`] is the handle that every room holds.
//!
//! After a failed write or sync nothing is written any more: every call says
//! [`Error::Stopped`], [`Pulse::failed`] turns true, and the process must end.
//!
//! Three types are proofs that only a commit makes: [`Accepted`] (a delivery
//! is durable, so 2xx may be said), [`LeasedTask`] (a task is ours to run) and
//! [`IntentDurable`] (a change outside may be sent).

mod accept;
mod alert;
mod batch;
mod body;
mod dedup;
mod error;
mod instance;
mod intent;
mod lease;
mod names;
mod open;
mod operator;
mod place;
mod queue;
mod record;
mod row;
mod schema;
mod settle;
#[cfg(test)]
mod tests;
mod trace;
mod verify;
mod view;
mod window;
mod writer;

use std::path::Path;
use std::sync::Arc;

use redb::Database;
use tokio::sync::watch;

pub use accept::{AcceptCommand, Accepted, EventState, Receipt, RoutedTask, entity_key};
pub use alert::{AlertChange, AlertKind, AlertView};
pub use error::{Broken, Error, OpenError};
pub use intent::{
    Holder, IntentDurable, IntentSpec, ObjectRef, ObjectView, OpenIntent, Opening, Outcome, Shape, Version,
};
pub use lease::{LEASE, LeaseTicket, LeasedTask, NoticeFor};
pub use open::{FILE_NAME, Opened, Progress, Step, Terms};
pub use operator::{Granted, Wish};
pub use queue::Meeting;
pub use record::Malformed;
pub use row::{AuditView, EventView, HoldView, IntentView, ItemView, ObjectsView, TaskView};
pub use settle::Settled;
pub use verify::{Damage, Findings, LookProgress, verify};
pub use view::View;
pub use window::{WindowReason, WindowSpan, WindowView};
pub use writer::{DOOR_WAITING_MAX, Pulse};

use crate::clock::SharedClock;
use crate::domain::{IntentId, Pauses, Settlement, TaskId, Timestamp};
use crate::telemetry::Metrics;
use intent::Opened as OpenedIntent;
use open::Tools;
use place::{Place, QUICK_BYTES_MAX};
use writer::{Lane, Writer};

/// The handle of the data file; cheap to clone, closed by [`Store::close`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Writer,
    database: Arc<Database>,
    opened: Opened,
    /// Whether an orderly close makes the file clean: an offline command after an
    /// unclean stop changes nothing about that.
    closes_clean: bool,
}

impl Store {
    /// Opens or makes the data file in `folder` and starts the writer's thread.
    ///
    /// # Errors
    /// [`OpenError`] says which process holds the file, or what is wrong with it.
    pub fn open(folder: &Path, clock: SharedClock, pauses: Pauses, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        Self::open_on(&Terms::default(), folder, clock, pauses, metrics)
    }

    /// The same for `serve`, on its terms.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(
        terms: &Terms,
        folder: &Path,
        clock: SharedClock,
        pauses: Pauses,
        metrics: Arc<Metrics>,
    ) -> Result<Self, OpenError> {
        let (database, path) = open::open_in(folder, true, &terms.progress)?;
        let place = Place::at(path.clone(), QUICK_BYTES_MAX);
        let tools = Tools { clock, pauses, metrics, place };
        let (engine, opened) = open::prepare(database, tools, Some(terms)).map_err(|e| e.at(&path))?;
        let database = Arc::clone(&engine.database);
        let writer = Writer::threaded(engine).map_err(|source| OpenError::Folder { path, source })?;
        Ok(Self::new(writer, database, opened, true))
    }

    /// Opens an existing file for a command of the CLI while no `serve` runs; a copy too.
    ///
    /// # Errors
    /// As [`Store::open`], and [`OpenError::Absent`].
    pub fn open_offline(folder: &Path, clock: SharedClock, pauses: Pauses) -> Result<Self, OpenError> {
        let (database, path) = open::open_in(folder, false, &Progress::default())?;
        let place = Place::at(path.clone(), QUICK_BYTES_MAX);
        let tools = Tools { clock, pauses, metrics: Arc::default(), place };
        let (engine, opened) = open::prepare(database, tools, None).map_err(|e| e.at(&path))?;
        let database = Arc::clone(&engine.database);
        Ok(Self::new(Writer::inline(engine), database, opened, opened.clean))
    }

    /// Works on any storage, each batch on its caller's thread: for simulations.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn inline(backend: impl redb::StorageBackend, clock: SharedClock, pauses: Pauses) -> Result<Self, OpenError> {
        let (engine, opened) = open::prepare_on(backend, clock, pauses)?;
        let database = Arc::clone(&engine.database);
        Ok(Self::new(Writer::inline(engine), database, opened, true))
    }

    /// Works on any storage with the writer's own thread: for storage that takes its time.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn threaded(backend: impl redb::StorageBackend, clock: SharedClock, pauses: Pauses) -> Result<Self, OpenError> {
        let (engine, opened) = open::prepare_on(backend, clock, pauses)?;
        let database = Arc::clone(&engine.database);
        let writer =
            Writer::threaded(engine).map_err(|source| OpenError::Folder { path: open::ON_BACKEND.into(), source })?;
        Ok(Self::new(writer, database, opened, true))
    }

    fn new(writer: Writer, database: Arc<Database>, opened: Opened, closes_clean: bool) -> Self {
        Self { inner: Arc::new(Inner { writer, database, opened, closes_clean }) }
    }

    /// What the opening found.
    pub fn opened(&self) -> Opened {
        self.inner.opened
    }

    /// A consistent view of the file as of now.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn view(&self) -> Result<View, Error> {
        Ok(View::begin(&self.inner.database, self.inner.opened.process)?)
    }

    /// Tells of every commit, and of a failed one.
    pub fn pulse(&self) -> watch::Receiver<Pulse> {
        self.inner.writer.pulse()
    }

    /// Stores a verified delivery and its tasks in one commit.
    ///
    /// Returns after the commit is durable; only then may the caller answer 2xx.
    ///
    /// # Errors
    /// [`Error::Busy`] when the door's queue is full; [`Error::Stopped`] after a failed write.
    pub async fn accept(&self, command: AcceptCommand) -> Result<Accepted, Error> {
        self.inner.writer.submit(Lane::Door, command).await.map(Accepted::durable)
    }

    /// Leases ready tasks: `slots` are free slots by target, `most` over all.
    ///
    /// # Errors
    /// [`Error::Stopped`] after a failed write, as for all that follow.
    pub async fn lease(
        &self,
        slots: Vec<(String, usize)>,
        kinds: Vec<String>,
        most: usize,
    ) -> Result<Vec<LeasedTask>, Error> {
        self.inner.writer.submit(Lane::Worker, lease::Lease { slots, kinds, most }).await
    }

    /// Extends leases that still stand.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn extend(&self, tickets: Vec<LeaseTicket>) -> Result<(), Error> {
        self.inner.writer.submit(Lane::Worker, lease::Extend(tickets)).await
    }

    /// Ends an attempt.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn settle(&self, task: LeasedTask, settlement: Settlement) -> Result<Settled, Error> {
        self.settle_ticket(task.ticket(), settlement).await
    }

    /// Ends an attempt whose task went down with its future.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn settle_ticket(&self, ticket: LeaseTicket, settlement: Settlement) -> Result<Settled, Error> {
        self.inner.writer.submit(Lane::Worker, settle::Settle { ticket, settlement }).await
    }

    /// Voids the leases of earlier processes; returns how many there were.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn reap(&self, notice_for: NoticeFor) -> Result<usize, Error> {
        self.inner.writer.submit(Lane::Worker, lease::Reap { notice_for }).await
    }

    /// Writes an intent; the change may be sent once this returns `Durable`.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn open_intent(&self, holder: Holder, spec: IntentSpec) -> Result<Opening, Error> {
        let opened = self.inner.writer.submit(Lane::Worker, intent::Open { holder, spec }).await?;
        Ok(match opened {
            OpenedIntent::Written(id, at) => Opening::Durable(IntentDurable::after_commit(id, at)),
            OpenedIntent::Busy => Opening::Busy,
            OpenedIntent::StaleLease => Opening::StaleLease,
        })
    }

    /// Writes what a change came to; says whether its intent was still open.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn record_outcome(&self, intent: IntentId, outcome: Outcome) -> Result<bool, Error> {
        self.inner.writer.submit(Lane::Worker, intent::RecordOutcome { intent, outcome }).await
    }

    /// Writes that an object was found outside.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn record_found(&self, object: ObjectRef, external_id: String) -> Result<(), Error> {
        self.inner.writer.submit(Lane::Worker, intent::RecordFound { object, external_id }).await
    }

    /// Writes that a read found an object gone.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn record_gone(&self, object: ObjectRef) -> Result<(), Error> {
        self.inner.writer.submit(Lane::Worker, intent::RecordGone { object }).await
    }

    /// Carries out a person's wish for one task.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn operate(&self, task: TaskId, wish: Wish, who: &str, why: &str) -> Result<Granted, Error> {
        let command = operator::Operate { task, wish, who: who.to_owned(), why: why.to_owned() };
        self.inner.writer.submit(Lane::Background, command).await
    }

    /// Ends the hold of a target; says whether it was held.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn resume(&self, target: &str, who: &str) -> Result<bool, Error> {
        let command = operator::Resume { target: target.to_owned(), who: who.to_owned() };
        self.inner.writer.submit(Lane::Background, command).await
    }

    /// Notes when routes first went live; gives that moment of each, in the same order.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn routes_live(&self, names: Vec<String>) -> Result<Vec<Timestamp>, Error> {
        self.inner.writer.submit(Lane::Background, operator::RoutesLive { names }).await
    }

    /// Opens windows and extends those that are open.
    ///
    /// # Errors
    /// [`Error::Busy`] when too much waits; [`Error::Stopped`].
    pub async fn extend_windows(&self, spans: Vec<WindowSpan>) -> Result<(), Error> {
        self.inner.writer.submit(Lane::Background, window::ExtendWindows(spans)).await
    }

    /// Raises an alert of a source, counts on, or resolves it.
    ///
    /// # Errors
    /// As [`Store::extend_windows`].
    pub async fn change_alert(&self, kind: AlertKind, source: &str, change: AlertChange) -> Result<(), Error> {
        let command = alert::ChangeAlert { kind, source: source.to_owned(), change };
        self.inner.writer.submit(Lane::Background, command).await
    }

    /// Goes the whole way to the disk and changes nothing: says whether the writer answers.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn probe(&self) -> Result<(), Error> {
        self.inner.writer.submit(Lane::Worker, lease::Extend(Vec::new())).await
    }

    /// Writes what waits and the mark of an orderly stop, then takes nothing more.
    pub async fn close(&self) {
        let marks = self.inner.closes_clean;
        if marks && self.inner.writer.submit(Lane::Background, operator::CleanStop).await.is_err() {
            tracing::warn!("the mark of an orderly stop was not written");
        }
        self.inner.writer.close();
    }
}
