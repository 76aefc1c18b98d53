//! Whether a file agrees with itself: every index and count against a scan of the rows.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::domain::State;
use crate::store::record::{EventRecord, IntentRecord, KeyRecord, ModeRecord, ObjectRecord, Record, TaskRecord};
use crate::store::schema;
use crate::store::{Store, WindowView};

type Tasks = BTreeMap<u64, TaskRecord>;

/// Panics at the first index or count that does not say what the rows say.
pub(super) fn check(store: &Store) {
    let txn = store.inner.database.begin_read().unwrap();
    let tasks: Tasks = records(&txn, schema::TASKS);
    tasks.iter().for_each(|(id, task)| check_row(*id, task));
    check_lanes(&txn, &tasks);
    check_keys(&txn, &tasks);
    check_intents(&txn);
    check_events(&txn);
    check_counts(&txn, &tasks);
    check_windows(&txn, &store.view().unwrap().windows().unwrap());
}

fn check_row(id: u64, task: &TaskRecord) {
    let state = State::from(task.state);
    assert_eq!(task.lease.is_some(), state == State::Running, "the lease of task {id}");
    assert_eq!(task.place.is_some(), state.is_unfinished(), "the place of task {id}");
    assert_eq!(task.since.is_some(), state.is_unfinished(), "the age of task {id}");
    assert_eq!(task.reason.is_some(), matches!(state, State::Dead | State::Superseded), "the reason of task {id}");
    assert!(task.due == 0 || state.is_unfinished(), "the due time of task {id}");
    assert!(state == State::Running || !(task.memory_event || task.memory_replay), "the memory of task {id}");
    assert!(task.lease.is_none_or(|lease| matches!(lease.from.into(), State::New | State::Retry)), "task {id}");
}

/// Lanes, ages, the running and the ready follow from the rows.
fn check_lanes(txn: &ReadTransaction, tasks: &Tasks) {
    let mut lanes = BTreeMap::<&[u8], BTreeSet<(u64, u64)>>::new();
    for (id, task) in tasks {
        if let Some(place) = task.place {
            lanes.entry(&task.lane).or_default().insert((place, *id));
        }
    }
    let all = lanes.iter().flat_map(|(lane, tasks)| tasks.iter().map(|(place, id)| (lane.to_vec(), *place, *id)));
    let table = txn.open_table(schema::LANES).unwrap();
    let found = table.iter().unwrap().map(|row| {
        let (key, id) = row.unwrap();
        (key.value().0.to_vec(), key.value().1, id.value())
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), all.collect::<BTreeSet<_>>(), "lanes");

    let heads: BTreeSet<u64> = lanes.values().filter_map(|tasks| tasks.first().map(|(_, id)| *id)).collect();
    let running: BTreeSet<u64> =
        tasks.iter().filter(|(_, task)| State::from(task.state) == State::Running).map(|(id, _)| *id).collect();
    assert_eq!(ids(txn, schema::RUNNING), running, "running");
    assert!(running.is_subset(&heads), "only heads run: {running:?} of {heads:?}");

    let ready = heads.difference(&running).map(|id| (tasks[id].target.clone(), tasks[id].due, *id));
    let table = txn.open_table(schema::READY).unwrap();
    let found = table.iter().unwrap().map(|row| {
        let key = row.unwrap().0;
        let (target, due, id) = key.value();
        (target.to_owned(), due, id)
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), ready.collect::<BTreeSet<_>>(), "ready");

    let ages = tasks.iter().filter_map(|(id, task)| Some((task.since?, *id)));
    let table = txn.open_table(schema::UNFINISHED).unwrap();
    let found = table.iter().unwrap().map(|row| row.unwrap().0.value());
    assert_eq!(found.collect::<BTreeSet<_>>(), ages.collect::<BTreeSet<_>>(), "unfinished");

    let suspects = ids(txn, schema::SUSPECTS);
    assert!(suspects.iter().all(|id| tasks[id].place.is_some()), "an ended task is a suspect: {suspects:?}");
}

/// One key a task, one task a key; what is done once is spent.
fn check_keys(txn: &ReadTransaction, tasks: &Tasks) {
    let table = txn.open_table(schema::TASK_KEYS).unwrap();
    let rows = table.iter().unwrap().map(|row| {
        let (key, value) = row.unwrap();
        (key.value().to_vec(), KeyRecord::decode(value.value()).unwrap())
    });
    let keys: BTreeMap<Vec<u8>, KeyRecord> = rows.collect();
    assert_eq!(keys.len(), tasks.len(), "keys and tasks");
    for (id, task) in tasks {
        let key = keys[&task.key];
        assert_eq!(key.task, *id, "the key of task {id}");
        let done_once = task.mode == ModeRecord::OnceKeep && State::from(task.state) == State::Done;
        assert!(key.spent || !done_once, "task {id} is done and its key is not spent");
    }
}

/// Open intents and the objects that they hold name each other.
fn check_intents(txn: &ReadTransaction) {
    let intents: BTreeMap<u64, IntentRecord> = records(txn, schema::INTENTS);
    let open: BTreeSet<u64> = intents.iter().filter(|(_, intent)| intent.is_open()).map(|(id, _)| *id).collect();
    assert_eq!(ids(txn, schema::DOUBTS), open, "doubts");
    assert_eq!(count(txn, "intents/open"), open.len() as u64, "intents/open");

    let held = open.iter().flat_map(|id| intents[id].objects.iter().map(move |key| (key.clone(), *id)));
    let table = txn.open_table(schema::OBJECTS).unwrap();
    let objects: BTreeMap<Vec<u8>, ObjectRecord> = table
        .iter()
        .unwrap()
        .map(|row| {
            let (key, value) = row.unwrap();
            (key.value().to_vec(), ObjectRecord::decode(value.value()).unwrap())
        })
        .collect();
    let holding = objects.iter().filter_map(|(key, object)| Some((key.clone(), object.open?)));
    assert_eq!(holding.collect::<BTreeSet<_>>(), held.collect::<BTreeSet<_>>(), "objects held by open intents");

    let external = txn.open_table(schema::EXTERNAL).unwrap();
    for row in external.iter().unwrap() {
        assert!(objects.contains_key(row.unwrap().1.value()), "an external id leads nowhere");
    }
    assert!(objects.values().all(|object| !object.gone || object.external_id.is_none()), "gone and known");
}

fn check_events(txn: &ReadTransaction) {
    let events: BTreeMap<u64, EventRecord> = records(txn, schema::EVENTS);
    let bodies: BTreeSet<u64> = keys(txn, schema::BODIES);
    assert_eq!(bodies, events.keys().copied().collect(), "bodies");
    assert!(keys(txn, schema::DEDUP).is_subset(&bodies), "a dedup entry without an event");
    let copies: u64 = events.values().map(|event| u64::from(event.copies)).sum();
    assert_eq!(count(txn, "events/copies"), copies, "events/copies");
    let mut states = BTreeMap::<String, u64>::new();
    events.into_values().for_each(|event| *states.entry(format!("events/{}", event.state)).or_default() += 1);
    for state in ["routed", "unrouted", "unreadable", "foreign", "conflict"].map(|state| format!("events/{state}")) {
        assert_eq!(count(txn, &state), states.get(&state).copied().unwrap_or_default(), "{state}");
    }
}

/// One open window for a source and reason, the newest.
fn check_windows(txn: &ReadTransaction, windows: &[WindowView]) {
    let open = windows.iter().filter(|window| window.open);
    assert_eq!(count(txn, "windows/open"), open.count() as u64, "windows/open");
    for pair in windows.windows(2) {
        let is_same = (&pair[0].source, &pair[0].reason) == (&pair[1].source, &pair[1].reason);
        assert!(!(is_same && pair[0].open), "an older window is open: {pair:?}");
    }
}

fn check_counts(txn: &ReadTransaction, tasks: &Tasks) {
    let mut scanned = BTreeMap::<String, u64>::new();
    for task in tasks.values() {
        let state = State::from(task.state);
        *scanned.entry(format!("tasks/{}", state.as_str())).or_default() += 1;
        if state == State::Dead {
            *scanned.entry(format!("dead/{}", task.reason.as_deref().unwrap_or("-"))).or_default() += 1;
        }
    }
    let table = txn.open_table(schema::COUNTS).unwrap();
    let kept = table.iter().unwrap().map(|row| {
        let (name, count) = row.unwrap();
        (name.value().to_owned(), count.value())
    });
    let of_tasks = |name: &str| name.starts_with("tasks/") || name.starts_with("dead/");
    let kept: BTreeMap<String, u64> = kept.filter(|(name, count)| of_tasks(name) && *count > 0).collect();
    assert_eq!(kept, scanned, "counts of tasks");
}

fn count(txn: &ReadTransaction, name: &str) -> u64 {
    txn.open_table(schema::COUNTS).unwrap().get(name).unwrap().map_or(0, |count| count.value())
}

fn ids(txn: &ReadTransaction, table: TableDefinition<'_, u64, ()>) -> BTreeSet<u64> {
    txn.open_table(table).unwrap().iter().unwrap().map(|row| row.unwrap().0.value()).collect()
}

fn keys(txn: &ReadTransaction, table: TableDefinition<'_, u64, &'static [u8]>) -> BTreeSet<u64> {
    txn.open_table(table).unwrap().iter().unwrap().map(|row| row.unwrap().0.value()).collect()
}

fn records<T: Record>(txn: &ReadTransaction, table: TableDefinition<'_, u64, &'static [u8]>) -> BTreeMap<u64, T> {
    let table = txn.open_table(table).unwrap();
    let rows = table.iter().unwrap().map(|row| {
        let (id, value) = row.unwrap();
        (id.value(), T::decode(value.value()).unwrap())
    });
    rows.collect()
}
