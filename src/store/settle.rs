//! Ends an attempt: the new state, the follow-ups and a hold, in one commit.

use crate::domain::{Ending, Settlement, State, TaskId, Timestamp};
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::lease::LeaseTicket;
use crate::store::queue::Origin;
use crate::store::record::{HoldRecord, Record as _, StateRecord};
use crate::store::writer::Command;

/// How a task stands after its settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The settlement counts.
    Now {
        /// The state that follows.
        state: State,
        /// When it runs next; absent when it has ended.
        due: Option<Timestamp>,
    },
    /// The lease is not ours any more; nothing was written.
    StaleLease,
}

#[derive(Debug)]
pub(super) struct Settle {
    pub(super) ticket: LeaseTicket,
    pub(super) settlement: Settlement,
}

impl Command for Settle {
    type Reply = Settled;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Settled, Broken> {
        let id = self.ticket.task();
        let Some((old, _)) = batch.held_lease(self.ticket)? else { return Ok(Settled::StaleLease) };
        let Settlement { ending, text, follow_ups, notice } = self.settlement;
        if ending == Ending::Hold {
            batch.hold(&old.target, id, &text)?;
        }
        // A wait or a hold ends before the lines that may be fatal, so it clears no
        // suspicion: poison that dies after its intent meets the doubt first, each time.
        let outlived = !matches!(ending, Ending::Wait(_) | Ending::Hold);
        let mut new = batch.after_run(id, &old, ending)?;
        new.text = text;
        if outlived {
            batch.tables.suspects.remove(id.get())?;
            new.losses = 0;
        }
        let state = State::from(new.state);
        let due = state.is_unfinished().then(|| Timestamp::from_millis(new.due));
        let dead = new.state == StateRecord::Dead;
        batch.replace_task(id, Some(old), new)?;
        for seed in follow_ups.iter().chain(notice.iter().filter(|_| dead)) {
            batch.seed_task(seed, Origin { parent: Some(id), ..Origin::default() })?;
        }
        Ok(Settled::Now { state, due })
    }
}

impl Batch<'_> {
    /// Pauses a target; the first reason stands until it is resumed.
    fn hold(&mut self, target: &str, task: TaskId, text: &str) -> Result<(), Broken> {
        if self.is_held(target)? {
            return Ok(());
        }
        let hold = HoldRecord { since: self.now.as_millis(), text: text.to_owned(), task: Some(task.get()) };
        self.tables.holds.insert(target, hold.encode()?.as_slice())?;
        Ok(())
    }
}
