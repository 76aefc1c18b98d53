//! What a task is made from, and what ends an attempt.

use crate::domain::{Ending, Key, Mode, TraceId};

/// All that is fixed when a task is made; no business data, which is read fresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSeed {
    /// The configured task name (`deal`); part of the key.
    pub name: String,
    /// The kind of work (`deal`, `note`, `notice`); an unknown one waits.
    pub kind: String,
    /// What makes two tasks the same; one row for a key.
    pub key: Key,
    /// Tasks of one lane run one after another, oldest first.
    pub lane: Key,
    /// The configured target whose cap, rate and hold apply.
    pub target: String,
    /// What the task is about, in its source's words: an order id, a lead id.
    pub entity: String,
    /// What repeats of the key do.
    pub mode: Mode,
    /// The id that runs from delivery to effect.
    pub trace: TraceId,
}

/// A task that a settlement makes, in the same commit.
pub type FollowUp = TaskSeed;

/// Ends an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What the run came to.
    pub ending: Ending,
    /// What happened, for people; no secrets and no personal data. Empty when all is well.
    pub text: String,
    /// Tasks to make in the same commit.
    pub follow_ups: Vec<FollowUp>,
    /// A task to make in the same commit if this one ends dead.
    pub notice: Option<FollowUp>,
}

impl Settlement {
    /// An end without follow-ups.
    pub fn new(ending: Ending, text: impl Into<String>) -> Self {
        Self { ending, text: text.into(), follow_ups: Vec::new(), notice: None }
    }
}
