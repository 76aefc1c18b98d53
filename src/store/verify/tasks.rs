//! Task rows: each fits itself, has its key, and stands in every index that its state asks for.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::domain::{State, TaskId};
use crate::store::error::Broken;
use crate::store::record::{KeyRecord, ModeRecord, Record as _, TaskRecord};
use crate::store::schema;
use crate::store::verify::{Scan, exists, hashed, tasks_of};

type Checks<const N: usize> = [(bool, &'static str); N];

pub(super) fn tasks(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let indexes = Indexes::open(scan.txn)?;
    for row in scan.txn.open_table(schema::TASKS)?.iter()? {
        let (id, value) = row?;
        let id = id.value();
        scan.given(schema::META_LAST_TASK, id);
        let Some(task) = scan.decode::<TaskRecord>(TaskId::new(id), value.value()) else { continue };
        let checks = fits_itself(&task).into_iter().chain(indexes.agree(id, &task)?);
        for (holds, otherwise) in checks {
            scan.must(holds, "tasks", TaskId::new(id), otherwise);
        }
        sum(scan, &task);
    }
    Ok(())
}

fn sum(scan: &mut Scan<'_>, task: &TaskRecord) {
    let state = State::from(task.state);
    scan.sum(format!("tasks/{}", state.as_str()), 1);
    if state == State::Dead {
        scan.sum(format!("dead/{}", task.reason.as_deref().unwrap_or("-")), 1);
    }
    if let Some(lease) = task.lease {
        scan.given(schema::META_LAST_TOKEN, lease.token);
        scan.given(schema::META_PROCESS, lease.process);
    }
}

/// What a state asks of the row itself.
fn fits_itself(task: &TaskRecord) -> Checks<7> {
    let state = State::from(task.state);
    let is_refused = matches!(state, State::Dead | State::Superseded);
    [
        (task.lease.is_some() == (state == State::Running), "its lease does not fit its state"),
        (task.place.is_some() == state.is_unfinished(), "its place does not fit its state"),
        (task.since.is_some() == state.is_unfinished(), "its age does not fit its state"),
        (task.reason.is_some() == is_refused, "its reason does not fit its state"),
        (task.due == 0 || state.is_unfinished(), "it has ended and is due"),
        (state == State::Running || !(task.memory_event || task.memory_replay), "it remembers and does not run"),
        (
            task.lease.is_none_or(|lease| matches!(lease.from.into(), State::New | State::Retry)),
            "its lease began in no state that can run",
        ),
    ]
}

struct Indexes {
    keys: ReadOnlyTable<&'static [u8], &'static [u8]>,
    task_events: ReadOnlyTable<(u64, u64), u8>,
    follow_ups: ReadOnlyTable<(u64, u64), ()>,
    unfinished: ReadOnlyTable<(i64, u64), ()>,
    lanes: ReadOnlyTable<(&'static [u8], u64), u64>,
    running: ReadOnlyTable<u64, ()>,
}

impl Indexes {
    fn open(txn: &ReadTransaction) -> Result<Self, Broken> {
        Ok(Self {
            keys: txn.open_table(schema::TASK_KEYS)?,
            task_events: txn.open_table(schema::TASK_EVENTS)?,
            follow_ups: txn.open_table(schema::FOLLOW_UPS)?,
            unfinished: txn.open_table(schema::UNFINISHED)?,
            lanes: txn.open_table(schema::LANES)?,
            running: txn.open_table(schema::RUNNING)?,
        })
    }

    fn agree(&self, id: u64, task: &TaskRecord) -> Result<Checks<7>, Broken> {
        let state = State::from(task.state);
        let key = self.keys.get(task.key.as_slice())?.and_then(|key| KeyRecord::decode(key.value()).ok());
        let done_once = task.mode == ModeRecord::OnceKeep && state == State::Done;
        let place = task.place.map(|place| self.lanes.get((task.lane.as_slice(), place))).transpose()?.flatten();
        Ok([
            (key.is_some_and(|key| key.task == id), "its key does not lead to it"),
            (key.is_none_or(|key| key.spent) || !done_once, "it is done once and its key is not spent"),
            (self.met(id, task.first_event)? && self.met(id, task.last_event)?, "an event of it is not among those"),
            (
                task.parent.map(|parent| exists(&self.follow_ups, (parent, id))).transpose()? != Some(false),
                "it is not among the follow-ups of its parent",
            ),
            (
                task.since.map(|since| exists(&self.unfinished, (since, id))).transpose()? != Some(false),
                "it is not among the unfinished",
            ),
            (task.place.is_none() || place.is_some_and(|found| found.value() == id), "it is not in its lane"),
            (state != State::Running || exists(&self.running, id)?, "it is not among the running"),
        ])
    }

    fn met(&self, id: u64, event: Option<u64>) -> Result<bool, Broken> {
        event.map_or(Ok(true), |event| exists(&self.task_events, (id, event)))
    }
}

pub(super) fn task_keys(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let task = tasks_of(scan.txn)?;
    for row in scan.txn.open_table(schema::TASK_KEYS)?.iter()? {
        let (key, value) = row?;
        let Some(record) = scan.decode::<KeyRecord>(hashed(key.value()), value.value()) else { continue };
        let has_task = task(record.task)?.is_some_and(|task| task.key == key.value());
        scan.must(has_task, "task_keys", TaskId::new(record.task), "a key names it, and it is absent or has another");
    }
    Ok(())
}

pub(super) fn follow_ups(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let task = tasks_of(scan.txn)?;
    for row in scan.txn.open_table(schema::FOLLOW_UPS)?.iter()? {
        scan.row("follow_ups");
        let (parent, child) = row?.0.value();
        let id = format!("{}/{}", TaskId::new(parent), TaskId::new(child));
        scan.must(task(parent)?.is_some() && task(child)?.is_some(), "follow_ups", id, "one of the two is absent");
    }
    Ok(())
}
