//! Which event met which task: the same pairs from both sides, of rows that are there.

use redb::ReadableTable as _;

use crate::domain::{EventId, TaskId};
use crate::store::error::Broken;
use crate::store::queue::Meeting;
use crate::store::schema;
use crate::store::verify::{Scan, exists};

pub(super) fn task_events(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let (tasks, events) = (scan.txn.open_table(schema::TASKS)?, scan.txn.open_table(schema::EVENTS)?);
    let mirror = scan.txn.open_table(schema::EVENT_TASKS)?;
    for row in scan.txn.open_table(schema::TASK_EVENTS)?.iter()? {
        scan.row("task_events");
        let (key, code) = row?;
        let (task, event) = key.value();
        let id = pair(task, event);
        scan.must(exists(&tasks, task)?, "task_events", &id, "the task is absent");
        scan.must(exists(&events, event)?, "task_events", &id, "the event is absent");
        scan.must(exists(&mirror, (event, task))?, "task_events", &id, "event_tasks lacks the pair");
        let is_known = Meeting::from_code(code.value()).code() == code.value();
        scan.must(is_known, "task_events", &id, "how they met is no known code");
    }
    Ok(())
}

pub(super) fn event_tasks(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let mirror = scan.txn.open_table(schema::TASK_EVENTS)?;
    for row in scan.txn.open_table(schema::EVENT_TASKS)?.iter()? {
        scan.row("event_tasks");
        let (event, task) = row?.0.value();
        scan.must(exists(&mirror, (task, event))?, "event_tasks", pair(task, event), "task_events lacks the pair");
    }
    Ok(())
}

fn pair(task: u64, event: u64) -> String {
    format!("{}/{}", TaskId::new(task), EventId::new(event))
}
