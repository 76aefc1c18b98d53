//! The queues that follow from task rows: ages, lanes, ready heads, the running, suspects.

use redb::ReadableTable as _;

use crate::domain::{State, TaskId};
use crate::store::error::Broken;
use crate::store::schema;
use crate::store::verify::{Scan, each_id, exists, tasks_of};

pub(super) fn unfinished(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let task = tasks_of(scan.txn)?;
    for row in scan.txn.open_table(schema::UNFINISHED)?.iter()? {
        scan.row("unfinished");
        let (since, id) = row?.0.value();
        let holds = task(id)?.is_some_and(|task| task.since == Some(since));
        scan.must(holds, "unfinished", TaskId::new(id), "its row says another age");
    }
    Ok(())
}

/// Every row is the place of its task; the first of each lane runs or is ready, the others wait.
pub(super) fn lanes(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let (task, ready) = (tasks_of(scan.txn)?, scan.txn.open_table(schema::READY)?);
    let mut last_lane: Option<Vec<u8>> = None;
    for row in scan.txn.open_table(schema::LANES)?.iter()? {
        scan.row("lanes");
        let (key, id) = row?;
        let ((lane, place), id) = (key.value(), id.value());
        scan.given(schema::META_LAST_PLACE, place);
        let is_head = last_lane.as_deref() != Some(lane);
        if is_head {
            last_lane = Some(lane.to_vec());
        }
        let Some(task) = task(id)? else {
            scan.findings.add("lanes", TaskId::new(id), "it is absent");
            continue;
        };
        let is_placed = task.lane == lane && task.place == Some(place);
        scan.must(is_placed, "lanes", TaskId::new(id), "its row says another place");
        let runs = State::from(task.state) == State::Running;
        if is_head && !runs {
            let is_ready = exists(&ready, (task.target.as_str(), task.due, id))?;
            scan.must(is_ready, "ready", TaskId::new(id), "the head of a lane is missing");
        }
        scan.must(is_head || !runs, "lanes", TaskId::new(id), "it runs and is not the head of its lane");
    }
    Ok(())
}

pub(super) fn ready(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let (task, lanes) = (tasks_of(scan.txn)?, scan.txn.open_table(schema::LANES)?);
    for row in scan.txn.open_table(schema::READY)?.iter()? {
        scan.row("ready");
        let key = row?.0;
        let (target, due, id) = key.value();
        let Some(task) = task(id)? else {
            scan.findings.add("ready", TaskId::new(id), "it is absent");
            continue;
        };
        let lane = task.lane.as_slice();
        let head = lanes.range((lane, 0)..=(lane, u64::MAX))?.next().transpose()?.map(|(_, id)| id.value());
        let is_as_said = task.target == target && task.due == due;
        scan.must(is_as_said, "ready", TaskId::new(id), "its row says another target or time");
        scan.must(head == Some(id), "ready", TaskId::new(id), "it is not the head of its lane");
        scan.must(State::from(task.state) != State::Running, "ready", TaskId::new(id), "it runs");
    }
    Ok(())
}

pub(super) fn running(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let task = tasks_of(scan.txn)?;
    each_id(scan, "running", schema::RUNNING, |scan, id| {
        let runs = task(id)?.is_some_and(|task| State::from(task.state) == State::Running);
        scan.must(runs, "running", TaskId::new(id), "its row does not run");
        Ok(())
    })
}

pub(super) fn suspects(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let task = tasks_of(scan.txn)?;
    each_id(scan, "suspects", schema::SUSPECTS, |scan, id| {
        let waits = task(id)?.is_some_and(|task| task.place.is_some());
        scan.must(waits, "suspects", TaskId::new(id), "it is absent or has ended");
        Ok(())
    })
}
