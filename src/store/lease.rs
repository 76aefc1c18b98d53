//! Leases: the right to run a task until a time, under a token that changes with every lease.

use std::time::Duration;

use redb::ReadableTable as _;

use crate::domain::{
    Attempt, Ending, EventId, Key, LeaseToken, Mode, ReasonCode, State, TaskId, TaskSeed, Timestamp, TraceId, end,
};
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::queue::{Origin, attempts, standing};
use crate::store::record::{KeyRecord, LeaseRecord, StateRecord, TaskRecord};
use crate::store::row::TaskView;
use crate::store::schema;
use crate::store::writer::Command;

/// Long enough for one task's calls; running tasks extend it.
pub const LEASE: Duration = Duration::from_mins(2);

/// After so many deaths of the process with this task alone, the task is dead.
const LOSSES_MAX: u32 = 3;

/// A task of ours to run. Not cloneable: settling takes it, so nothing settles twice.
#[derive(Debug)]
pub struct LeasedTask {
    ticket: LeaseTicket,
    seed: TaskSeed,
    attempts: Attempt,
    last_event: Option<EventId>,
    parent: Option<TaskId>,
    created_at: Timestamp,
    newest_source_time: Option<Timestamp>,
}

/// Names a lease without the right to settle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseTicket {
    task: TaskId,
    token: LeaseToken,
}

impl LeaseTicket {
    /// The leased task.
    pub const fn task(&self) -> TaskId {
        self.task
    }

    pub(super) const fn token(&self) -> LeaseToken {
        self.token
    }
}

impl LeasedTask {
    fn new(id: TaskId, token: LeaseToken, task: &TaskRecord) -> Self {
        Self {
            ticket: LeaseTicket { task: id, token },
            seed: TaskSeed {
                name: task.name.clone(),
                kind: task.kind.clone(),
                key: Key::from_stored(&task.key),
                lane: Key::from_stored(&task.lane),
                target: task.target.clone(),
                entity: task.entity.clone(),
                mode: task.mode.into(),
                trace: TraceId::new(task.trace),
            },
            attempts: attempts(task),
            last_event: task.last_event.map(EventId::new),
            parent: task.parent.map(TaskId::new),
            created_at: Timestamp::from_millis(task.created_at),
            newest_source_time: task.newest_source_time.map(Timestamp::from_millis),
        }
    }

    /// The task's id.
    pub const fn id(&self) -> TaskId {
        self.ticket.task
    }

    /// Names the lease.
    pub const fn ticket(&self) -> LeaseTicket {
        self.ticket
    }

    /// What it was made from.
    pub const fn seed(&self) -> &TaskSeed {
        &self.seed
    }

    /// Attempts settled before this one.
    pub const fn attempts(&self) -> Attempt {
        self.attempts
    }

    /// The newest event that met it; absent for a follow-up.
    pub const fn last_event(&self) -> Option<EventId> {
        self.last_event
    }

    /// The task whose settlement made it.
    pub const fn parent(&self) -> Option<TaskId> {
        self.parent
    }

    /// When it was made.
    pub const fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The newest source time of its events: a fresh read older than it lags.
    pub const fn newest_source_time(&self) -> Option<Timestamp> {
        self.newest_source_time
    }
}

/// Leases what starts now.
#[derive(Debug)]
pub(super) struct Lease {
    /// Free slots by target.
    pub(super) slots: Vec<(String, usize)>,
    /// Kinds that this build can run; others wait.
    pub(super) kinds: Vec<String>,
    /// Over all targets.
    pub(super) most: usize,
}

impl Command for Lease {
    type Reply = Vec<LeasedTask>;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Vec<LeasedTask>, Broken> {
        let mut leased = Vec::new();
        for id in batch.pick(&self)? {
            let old = batch.named_task(id, "ready")?;
            let token = LeaseToken::new(batch.next(schema::META_LAST_TOKEN)?);
            let lease = LeaseRecord {
                token: token.get(),
                until: batch.now.plus(LEASE).as_millis(),
                from: old.state,
                process: batch.process,
            };
            let new = TaskRecord { state: StateRecord::Running, lease: Some(lease), ..old.clone() };
            leased.push(LeasedTask::new(TaskId::new(id), token, &new));
            batch.replace_task(TaskId::new(id), Some(old), new)?;
        }
        Ok(leased)
    }
}

impl Batch<'_> {
    /// The ready tasks to start: suspects before the rest, and each alone.
    fn pick(&self, wish: &Lease) -> Result<Vec<u64>, Broken> {
        let mut picked = match self.suspect(wish)? {
            Some(suspect) => suspect,
            None => self.ready(wish)?,
        };
        picked.truncate(wish.most);
        Ok(picked)
    }

    /// The suspect to start, or none while something runs; absent when no suspect runs or could start.
    fn suspect(&self, wish: &Lease) -> Result<Option<Vec<u64>>, Broken> {
        for row in self.tables.suspects.iter()? {
            let id = row?.0.value();
            if self.tables.running.get(id)?.is_some() || self.could_start(id, wish)? {
                let nothing_runs = self.tables.running.first()?.is_none();
                return Ok(Some(if nothing_runs { vec![id] } else { Vec::new() }));
            }
        }
        Ok(None)
    }

    fn could_start(&self, id: u64, wish: &Lease) -> Result<bool, Broken> {
        let task = self.named_task(id, "suspects")?;
        let is_head = self.tables.ready.get((task.target.as_str(), task.due, id))?.is_some();
        let has_slot = wish.slots.iter().any(|(target, slots)| *target == task.target && *slots > 0);
        let is_wanted = has_slot && wish.kinds.contains(&task.kind);
        Ok(is_head && is_wanted && task.due <= self.now.as_millis() && !self.is_held(&task.target)?)
    }

    /// Ready tasks up to the free slots of each target.
    fn ready(&self, wish: &Lease) -> Result<Vec<u64>, Broken> {
        let mut picked = Vec::new();
        for (target, slots) in &wish.slots {
            if self.is_held(target)? {
                continue;
            }
            let from = (target.as_str(), i64::MIN, 0);
            let to = (target.as_str(), self.now.as_millis(), u64::MAX);
            let mut of_target = 0;
            for row in self.tables.ready.range(from..=to)? {
                if of_target >= *slots {
                    break;
                }
                let (_, _, id) = row?.0.value();
                if wish.kinds.contains(&self.named_task(id, "ready")?.kind) {
                    picked.push(id);
                    of_target += 1;
                }
            }
        }
        Ok(picked)
    }
}

/// Extends the leases of tasks that still run.
#[derive(Debug)]
pub(super) struct Extend(pub(super) Vec<LeaseTicket>);

impl Command for Extend {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        for ticket in self.0 {
            if let Some((old, lease)) = batch.held_lease(ticket)? {
                let lease = LeaseRecord { until: batch.now.plus(LEASE).as_millis(), ..lease };
                let new = TaskRecord { lease: Some(lease), ..old.clone() };
                batch.replace_task(ticket.task, Some(old), new)?;
            }
        }
        Ok(())
    }
}

impl Batch<'_> {
    /// The row of a task that runs under exactly this lease.
    pub(super) fn held_lease(&self, ticket: LeaseTicket) -> Result<Option<(TaskRecord, LeaseRecord)>, Broken> {
        let task = self.task(ticket.task.get())?;
        Ok(task.and_then(|task| {
            let lease = task.lease.filter(|lease| lease.token == ticket.token.get())?;
            (task.state == StateRecord::Running).then_some((task, lease))
        }))
    }
}

/// Makes the notice of a dead task; asked by the store where a task dies without a run.
pub type NoticeFor = Box<dyn Fn(&TaskView) -> Option<TaskSeed> + Send>;

/// The reaper at the start: leases of earlier processes are void.
///
/// After an unclean stop the tasks that were running are suspects; one that was
/// alone while it was a suspect already takes the loss.
pub(super) struct Reap {
    pub(super) notice_for: NoticeFor,
}

impl Command for Reap {
    type Reply = usize;

    fn apply(self, batch: &mut Batch<'_>) -> Result<usize, Broken> {
        let running: Vec<u64> =
            batch.tables.running.iter()?.map(|row| row.map(|(id, _)| id.value())).collect::<Result<_, _>>()?;
        let was_alone = running.len() == 1;
        let mut reaped = 0;
        for id in running {
            let old = batch.named_task(id, "running")?;
            if old.lease.is_some_and(|lease| lease.process == batch.process) {
                continue;
            }
            reaped += 1;
            let was_suspect = batch.tables.suspects.insert(id, ())?.is_some();
            let losses = old.losses + u32::from(was_alone && was_suspect);
            let ending = if losses >= LOSSES_MAX { Ending::Dead(ReasonCode::WORKER_LOST) } else { Ending::Lost };
            let mut new = batch.after_run(TaskId::new(id), &old, ending)?;
            new.losses = losses;
            // Not so after a remembered replay, which is one more run for a suspect.
            let is_dead = new.state == StateRecord::Dead;
            if is_dead {
                new.text = format!("the process died {losses} times while this task ran alone");
            }
            let notice = is_dead.then(|| (self.notice_for)(&TaskView::new(TaskId::new(id), &new))).flatten();
            batch.replace_task(TaskId::new(id), Some(old), new)?;
            if let Some(seed) = notice {
                batch.seed_task(&seed, Origin { parent: Some(TaskId::new(id)), ..Origin::default() })?;
            }
        }
        Ok(reaped)
    }
}

impl Batch<'_> {
    /// The row after a run, by the rules; marks the key if it is spent by it.
    pub(super) fn after_run(&mut self, id: TaskId, old: &TaskRecord, ending: Ending) -> Result<TaskRecord, Broken> {
        let key = self.task_key(&old.key)?.ok_or_else(|| Broken::Dangling(format!("task {id} (its key)")))?;
        let leased_from = old.lease.map_or(State::New, |lease| lease.from.into());
        let mode: Mode = old.mode.into();
        let ended = end(mode, leased_from, attempts(old), &standing(old, key.spent), ending);
        if ended.spends && !key.spent {
            self.put_task_key(&old.key, KeyRecord { spent: true, ..key })?;
        }
        let pause = ended.due_in.unwrap_or_else(|| self.pauses.after(id, ended.attempts, ended.retry_after));
        let due = self.now.plus(pause).as_millis();
        Ok(TaskRecord {
            state: ended.state.into(),
            attempts: ended.attempts.get(),
            reason: ended.reason.map(|reason| reason.as_str().to_owned()),
            due,
            not_before: if ended.retry_after.is_some() { due } else { 0 },
            lease: None,
            memory_event: false,
            memory_replay: false,
            ..old.clone()
        })
    }
}
