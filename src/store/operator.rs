//! What a person may do to the queue, each time with a row in the audit trail.

use redb::ReadableTable as _;

use crate::domain::{NotNow, Stimulus, TaskId, Verdict, apply};
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::queue::standing;
use crate::store::record::{AuditRecord, Record as _};
use crate::store::schema;
use crate::store::writer::Command;

/// A person's wish for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The next attempt now; a dead task works again.
    Retry,
    /// It is not to be done.
    Close,
    /// It runs again whatever its state; what happened outside is found, not repeated.
    Replay,
}

impl Wish {
    const fn stimulus(self) -> Stimulus {
        match self {
            Self::Retry => Stimulus::Retry,
            Self::Close => Stimulus::Close,
            Self::Replay => Stimulus::Replay,
        }
    }

    /// The word in the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Close => "close",
            Self::Replay => "replay",
        }
    }
}

/// What became of a person's wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// Done.
    Yes,
    /// Not in this state.
    No(NotNow),
    /// There is no such task.
    NoSuchTask,
}

pub(super) struct Operate {
    pub(super) task: TaskId,
    pub(super) wish: Wish,
    pub(super) who: String,
    pub(super) why: String,
}

impl Command for Operate {
    type Reply = Granted;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Granted, Broken> {
        let Some(old) = batch.task(self.task.get())? else { return Ok(Granted::NoSuchTask) };
        let spent = batch.task_key(&old.key)?.is_some_and(|key| key.spent);
        let verdict = apply(old.mode.into(), &standing(&old, spent), self.wish.stimulus());
        if let Verdict::Refuse(not_now) = verdict {
            return Ok(Granted::No(not_now));
        }
        let mut new = old.clone();
        match self.wish {
            Wish::Retry => {}
            Wish::Close => new.text = format!("closed by {}{}", self.who, because(&self.why)),
            Wish::Replay => new.replays = new.replays.saturating_add(1),
        }
        batch.carry_out(self.task, old, new, verdict)?;
        batch.audit(&self.who, self.wish.as_str(), &format!("{}{}", self.task, because(&self.why)))?;
        Ok(Granted::Yes)
    }
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

/// Ends the hold of a target.
pub(super) struct Resume {
    pub(super) target: String,
    pub(super) who: String,
}

impl Command for Resume {
    /// Whether the target was held.
    type Reply = bool;

    fn apply(self, batch: &mut Batch<'_>) -> Result<bool, Broken> {
        let was_held = batch.tables.holds.remove(self.target.as_str())?.is_some();
        if was_held {
            batch.audit(&self.who, "resume", &self.target)?;
        }
        Ok(was_held)
    }
}

/// Notes when a route first went live; the first time stands.
pub(super) struct RoutesLive {
    pub(super) names: Vec<String>,
}

impl Command for RoutesLive {
    /// The first live moment of each, in the same order.
    type Reply = Vec<crate::domain::Timestamp>;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Self::Reply, Broken> {
        let mut since = Vec::with_capacity(self.names.len());
        for name in self.names {
            let known = batch.tables.routes.get(name.as_str())?.map(|at| at.value());
            let at = known.unwrap_or_else(|| batch.now.as_millis());
            if known.is_none() {
                batch.tables.routes.insert(name.as_str(), at)?;
            }
            since.push(crate::domain::Timestamp::from_millis(at));
        }
        Ok(since)
    }
}

impl Batch<'_> {
    pub(super) fn audit(&mut self, who: &str, action: &str, what: &str) -> Result<(), Broken> {
        let ordinal = self.next(schema::META_LAST_AUDIT)?;
        let row = AuditRecord {
            at: self.now.as_millis(),
            who: who.to_owned(),
            action: action.to_owned(),
            what: what.to_owned(),
        };
        self.tables.audit.insert(ordinal, row.encode()?.as_slice())?;
        Ok(())
    }
}

/// The mark of an orderly stop.
pub(super) struct CleanStop;

impl Command for CleanStop {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        batch.tables.meta.insert(schema::META_CLEAN_STOP, 1)?;
        Ok(())
    }
}
