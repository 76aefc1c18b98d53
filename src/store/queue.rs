//! The task row and everything that must agree with it.
//!
//! [`Batch::replace_task`] is the one place that writes a task row; it keeps
//! lanes, ready heads, the running set, suspects, ages and counts in step, in the same
//! commit. The rules are `domain/task.rs`; here verdicts are carried out.

use redb::ReadableTable as _;

use crate::domain::{
    Attempt, EventId, NameKind, ReasonCode, Standing, State, Stimulus, TaskId, TaskSeed, Timestamp, Verdict, apply,
};
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::record::{KeyRecord, Record as _, StateRecord, TaskRecord};
use crate::store::schema;

/// How an event met a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// The event made the task.
    Made,
    /// The waiting task does this event's work too.
    Absorbed,
    /// The task was running; it looks again when its run ends.
    Remembered,
    /// An ended task works again.
    Renewed,
    /// Nothing but the record: the key is spent, or a person must decide first.
    Recorded,
}

impl Meeting {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Made => 1,
            Self::Absorbed => 2,
            Self::Remembered => 3,
            Self::Renewed => 4,
            Self::Recorded => 5,
        }
    }

    pub(super) const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Made,
            2 => Self::Absorbed,
            3 => Self::Remembered,
            4 => Self::Renewed,
            _ => Self::Recorded,
        }
    }

    /// The word in lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Absorbed => "absorbed",
            Self::Remembered => "remembered",
            Self::Renewed => "renewed",
            Self::Recorded => "recorded",
        }
    }
}

/// Where a new or repeated task comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin {
    pub(super) event: Option<EventId>,
    pub(super) source_time: Option<Timestamp>,
    pub(super) parent: Option<TaskId>,
}

impl Batch<'_> {
    /// Makes the task of a seed, or lets the seed's event meet the task of that key.
    pub(super) fn seed_task(&mut self, seed: &TaskSeed, origin: Origin) -> Result<(TaskId, Meeting), Broken> {
        let (id, meeting) = match self.task_key(seed.key.as_bytes())? {
            None => (self.make_task(seed, origin)?, Meeting::Made),
            Some(key) => (TaskId::new(key.task), self.meet_task(key, origin)?),
        };
        if let Some(event) = origin.event {
            let key = (id.get(), event.get());
            // A second item of the event finds what the first one did.
            if self.tables.task_events.get(key)?.is_none() {
                self.tables.task_events.insert(key, meeting.code())?;
                self.tables.event_tasks.insert((event.get(), id.get()), ())?;
            }
        }
        if let Some(parent) = origin.parent {
            self.tables.follow_ups.insert((parent.get(), id.get()), ())?;
        }
        Ok((id, meeting))
    }

    fn make_task(&mut self, seed: &TaskSeed, origin: Origin) -> Result<TaskId, Broken> {
        let id = TaskId::new(self.next(schema::META_LAST_TASK)?);
        let now = self.now.as_millis();
        let record = TaskRecord {
            name: seed.name.clone(),
            kind: seed.kind.clone(),
            key: seed.key.as_bytes().to_vec(),
            lane: seed.lane.as_bytes().to_vec(),
            target: seed.target.clone(),
            entity: seed.entity.clone(),
            mode: seed.mode.into(),
            state: StateRecord::New,
            due: now,
            not_before: 0,
            place: None,
            since: None,
            attempts: 0,
            losses: 0,
            lease: None,
            memory_event: false,
            memory_replay: false,
            reason: None,
            text: String::new(),
            created_at: now,
            updated_at: now,
            trace: seed.trace.get(),
            first_event: origin.event.map(EventId::get),
            last_event: origin.event.map(EventId::get),
            newest_source_time: origin.source_time.map(Timestamp::as_millis),
            parent: origin.parent.map(TaskId::get),
            replays: 0,
        };
        self.use_name(NameKind::Task, &seed.name)?;
        self.use_name(NameKind::Target, &seed.target)?;
        self.put_task_key(seed.key.as_bytes(), KeyRecord { task: id.get(), spent: false })?;
        self.replace_task(id, None, record)?;
        Ok(id)
    }

    fn meet_task(&mut self, key: KeyRecord, origin: Origin) -> Result<Meeting, Broken> {
        let id = TaskId::new(key.task);
        let old = self.named_task(key.task, "task_keys")?;
        let verdict = apply(old.mode.into(), &standing(&old, key.spent), Stimulus::Event);
        let mut new = old.clone();
        new.last_event = origin.event.map(EventId::get).or(new.last_event);
        new.newest_source_time = new.newest_source_time.max(origin.source_time.map(Timestamp::as_millis));
        let meeting = match verdict {
            Verdict::Absorb | Verdict::AbsorbEarlier => Meeting::Absorbed,
            Verdict::Remember(_) => Meeting::Remembered,
            Verdict::Renew => Meeting::Renewed,
            Verdict::RecordOnly | Verdict::DueNow | Verdict::Close { .. } | Verdict::Spend | Verdict::Refuse(_) => {
                Meeting::Recorded
            }
        };
        if verdict == Verdict::Renew && old.state == StateRecord::Dead {
            let event = origin.event.map_or_else(|| "a task".to_owned(), |e| format!("event {e}"));
            new.text = format!("overtaken by {event}");
        }
        self.carry_out(id, old, new, verdict)?;
        Ok(meeting)
    }

    /// Writes a verdict into the row; `new` may hold further changes of the caller.
    pub(super) fn carry_out(
        &mut self,
        id: TaskId,
        old: TaskRecord,
        mut new: TaskRecord,
        verdict: Verdict,
    ) -> Result<(), Broken> {
        let now = self.now.as_millis();
        match verdict {
            Verdict::Absorb | Verdict::RecordOnly | Verdict::Spend | Verdict::Refuse(_) => {}
            Verdict::AbsorbEarlier => {
                if !self.is_held(&new.target)? {
                    let soon = self.now.plus(self.pauses.first()).as_millis();
                    new.due = new.due.min(soon.max(new.not_before));
                }
            }
            Verdict::DueNow => new.due = now,
            Verdict::Remember(memory) => {
                new.memory_event = memory.event;
                new.memory_replay = memory.replay;
            }
            Verdict::Renew => {
                new.state = StateRecord::New;
                new.attempts = 0;
                new.losses = 0;
                new.reason = None;
                new.due = now;
            }
            Verdict::Close { .. } => {
                new.state = StateRecord::Superseded;
                new.reason = Some(ReasonCode::CLOSED.as_str().to_owned());
            }
        }
        if matches!(verdict, Verdict::Close { spends: true } | Verdict::Spend) {
            self.put_task_key(&new.key, KeyRecord { task: id.get(), spent: true })?;
        }
        self.replace_task(id, Some(old), new)
    }

    /// Writes the row and everything that follows from it.
    pub(super) fn replace_task(
        &mut self,
        id: TaskId,
        old: Option<TaskRecord>,
        mut new: TaskRecord,
    ) -> Result<(), Broken> {
        let was_unfinished = old.as_ref().is_some_and(|t| State::from(t.state).is_unfinished());
        let is_unfinished = State::from(new.state).is_unfinished();
        new.updated_at = self.now.as_millis();
        if let Some(old) = &old {
            self.tables.ready.remove((old.target.as_str(), old.due, id.get()))?;
            self.tables.running.remove(id.get())?;
            self.count_task(old, -1)?;
        }
        if is_unfinished && !was_unfinished {
            let place = self.next(schema::META_LAST_PLACE)?;
            let since = self.now.as_millis();
            self.tables.lanes.insert((new.lane.as_slice(), place), id.get())?;
            self.tables.unfinished.insert((since, id.get()), ())?;
            new.place = Some(place);
            new.since = Some(since);
        } else if was_unfinished && !is_unfinished {
            if let Some(place) = new.place.take() {
                self.tables.lanes.remove((new.lane.as_slice(), place))?;
            }
            if let Some(since) = new.since.take() {
                self.tables.unfinished.remove((since, id.get()))?;
            }
            self.tables.suspects.remove(id.get())?;
            new.due = 0;
        }
        if new.state == StateRecord::Running {
            self.tables.running.insert(id.get(), ())?;
        }
        self.count_task(&new, 1)?;
        self.tables.tasks.insert(id.get(), new.encode()?.as_slice())?;
        self.ready_head(&new.lane)
    }

    /// Puts the head of a lane among the ready ones, unless it runs.
    fn ready_head(&mut self, lane: &[u8]) -> Result<(), Broken> {
        let Some(head) = self.head_of(lane)? else { return Ok(()) };
        let task = self.named_task(head, "lanes")?;
        if task.state != StateRecord::Running {
            self.tables.ready.insert((task.target.as_str(), task.due, head), ())?;
        }
        Ok(())
    }

    fn head_of(&self, lane: &[u8]) -> Result<Option<u64>, Broken> {
        let mut places = self.tables.lanes.range((lane, 0)..=(lane, u64::MAX))?;
        Ok(places.next().transpose()?.map(|(_, task)| task.value()))
    }

    fn count_task(&mut self, task: &TaskRecord, by: i64) -> Result<(), Broken> {
        let state = State::from(task.state);
        self.count(&format!("tasks/{}", state.as_str()), by)?;
        if state == State::Dead {
            self.count(&format!("dead/{}", task.reason.as_deref().unwrap_or("-")), by)?;
        }
        Ok(())
    }

    pub(super) fn is_held(&self, target: &str) -> Result<bool, Broken> {
        Ok(self.tables.holds.get(target)?.is_some())
    }
}

/// What the rules need to know of a row.
pub(super) fn standing(task: &TaskRecord, spent: bool) -> Standing {
    Standing {
        state: task.state.into(),
        spent,
        reason: task.reason.as_deref().map(ReasonCode::from_stored),
        memory: task.memory(),
    }
}

/// The settled attempts of a row.
pub(super) const fn attempts(task: &TaskRecord) -> Attempt {
    Attempt::new(task.attempts)
}
