//! The look at a whole file: clean after any life, and every kind of damage is named.

use std::fs;

use redb::{ReadableTable as _, TableDefinition, WriteTransaction};

use super::{CRM, Desk, LATEST, MINUTE, ONCE, in_lane, key, notice_of, open, seed};
use crate::clock::{Clock as _, SharedClock, SystemClock};
use crate::domain::{Ending, Pauses, ReasonCode, Settlement, TaskId};
use crate::source::samples;
use crate::store::body;
use crate::store::record::{
    EventRecord, HoldRecord, IntentRecord, KeyRecord, ObjectRecord, Record, StateRecord, TaskRecord,
};
use crate::store::schema;
use crate::store::verify::{Damage, Findings, scan, verify};
use crate::store::{
    AlertChange, AlertKind, EventState, Holder, IntentSpec, ObjectRef, OpenError, Opening, Outcome, Shape, Store,
    WindowReason, WindowSpan, Wish,
};

/// Panics when the file does not agree with itself.
pub(super) fn check(store: &Store) {
    assert_eq!(look(store).named, []);
}

fn look(store: &Store) -> Findings {
    scan(&store.inner.database, Findings::default(), &mut |_, _| {}).unwrap()
}

/// A file with something in every table.
///
/// | task | stands |
/// |---|---|
/// | t1 | running, a suspect, holds the open i2 on object `1` |
/// | t2 | waits behind t1 |
/// | t3 | dead; made object `2`, which is `50` outside, by i1 |
/// | t4 | t3's notice, ready |
/// | t5 | closed |
/// | t6 | done for good |
///
/// Event e1 met t1 to t3 and came twice, e2 has its id and other content, e3 met t5 and t6.
async fn full() -> Desk {
    let mut desk = Desk::new();
    let tasks = vec![seed("a", ONCE), in_lane(seed("b", LATEST), "a"), seed("c", LATEST)];
    desk.accept(samples::signed("w-1", b"{\"id\":1}"), EventState::Routed, tasks).await;
    for body in [b"{\"id\":1}", b"{\"id\":2}"] {
        desk.accept(samples::signed("w-1", body), EventState::Routed, Vec::new()).await;
    }
    let mut runs = desk.lease(2).await;
    let third = runs.remove(1);
    let proof = open_intent(&desk, Holder::Task(third.ticket()), "2").await;
    desk.store.record_outcome(proof, Outcome::Applied { external_id: "50".to_owned() }).await.unwrap();
    let notice = Some(notice_of("c"));
    let dead = Settlement { notice, ..Settlement::new(Ending::Dead(ReasonCode::VALIDATION), "") };
    desk.store.settle(third, dead).await.unwrap();
    desk.event_for(vec![seed("e", LATEST), seed("f", ONCE)]).await;
    desk.store.operate(TaskId::new(5), Wish::Close, "anna", "").await.unwrap();
    let last = desk.lease(9).await.into_iter().find(|task| task.id() == TaskId::new(6)).unwrap();
    desk.settle(last, Ending::Done).await;
    desk.kill();
    desk.reap().await;
    desk.clock.advance(MINUTE);
    let run = desk.lease(1).await.remove(0);
    open_intent(&desk, Holder::Task(run.ticket()), "1").await;
    let now = desk.clock.now();
    let lost = WindowSpan { source: "shop".to_owned(), reason: WindowReason::Signature, from: now, to: now, count: 3 };
    desk.store.extend_windows(vec![lost]).await.unwrap();
    let raised = AlertChange::Raised { first: now, last: now, count: 3, text: "wrong secret" };
    desk.store.change_alert(AlertKind::Signature, "shop", raised).await.unwrap();
    desk
}

async fn open_intent(desk: &Desk, holder: Holder, object: &str) -> crate::domain::IntentId {
    let object = ObjectRef::new(CRM, "lead", vec![key(&[object])]);
    let spec =
        IntentSpec { object, shape: Shape::Create, version: None, replaces: Vec::new(), evidence: b"{}".to_vec() };
    match desk.store.open_intent(holder, spec).await.unwrap() {
        Opening::Durable(proof) => proof.id(),
        other => panic!("{other:?}"),
    }
}

type Rows = TableDefinition<'static, u64, &'static [u8]>;
type Plant = fn(&WriteTransaction);

fn put(txn: &WriteTransaction, table: Rows, id: u64, bytes: &[u8]) {
    txn.open_table(table).unwrap().insert(id, bytes).unwrap();
}

fn remove(txn: &WriteTransaction, table: Rows, id: u64) {
    txn.open_table(table).unwrap().remove(id).unwrap().expect("the row is there");
}

fn empty<K: redb::Key + 'static, V: redb::Value + 'static>(txn: &WriteTransaction, table: TableDefinition<'_, K, V>) {
    assert!(txn.delete_table(table).unwrap());
    drop(txn.open_table(table).unwrap());
}

/// Changes a record and nothing that follows from it.
fn edit<T: Record>(txn: &WriteTransaction, table: Rows, id: u64, change: fn(&mut T)) {
    let mut table = txn.open_table(table).unwrap();
    let mut record = T::decode(table.get(id).unwrap().unwrap().value()).unwrap();
    change(&mut record);
    table.insert(id, record.encode().unwrap().as_slice()).unwrap();
}

fn event(txn: &WriteTransaction, id: u64, change: fn(&mut EventRecord)) {
    edit(txn, schema::EVENTS, id, change);
}

fn task(txn: &WriteTransaction, id: u64, change: fn(&mut TaskRecord)) {
    edit(txn, schema::TASKS, id, change);
}

fn intent(txn: &WriteTransaction, id: u64, change: fn(&mut IntentRecord)) {
    edit(txn, schema::INTENTS, id, change);
}

fn object(txn: &WriteTransaction, name: &str, record: &ObjectRecord) {
    let mut table = txn.open_table(schema::OBJECTS).unwrap();
    table.insert(key(&[name]).as_bytes(), record.encode().unwrap().as_slice()).unwrap();
}

fn meta(txn: &WriteTransaction, name: &str, number: u64) {
    txn.open_table(schema::META).unwrap().insert(name, number).unwrap();
}

macro_rules! insert {
    ($txn:ident, $table:ident, $key:expr, $value:expr) => {
        drop($txn.open_table(schema::$table).unwrap().insert($key, $value).unwrap())
    };
}

macro_rules! take {
    ($txn:ident, $table:ident, $key:expr) => {
        drop($txn.open_table(schema::$table).unwrap().remove($key).unwrap().expect("the row is there"))
    };
}

/// What is planted in tasks and their queues, and where it must be named.
const IN_TASKS: &[(&str, &str, Plant)] = &[
    ("tasks", "t2", |txn| put(txn, schema::TASKS, 2, &[0, 1, 2])),
    ("tasks", "t2", |txn| put(txn, schema::TASKS, 2, &[9])),
    ("tasks", "t2", |txn| task(txn, 2, |task| task.memory_event = true)),
    ("tasks", "t3", |txn| task(txn, 3, |task| task.reason = None)),
    ("tasks", "t3", |txn| task(txn, 3, |task| task.due = 5)),
    ("tasks", "t1", |txn| task(txn, 1, |task| task.lease = None)),
    ("tasks", "t2", |txn| task(txn, 2, |task| task.place = None)),
    ("tasks", "t2", |txn| task(txn, 2, |task| task.since = None)),
    ("tasks", "t3", |txn| take!(txn, TASK_KEYS, key(&["shop", "deal", "c"]).as_bytes())),
    ("tasks", "t2", |txn| task(txn, 2, |task| task.last_event = Some(2))),
    ("tasks", "t4", |txn| task(txn, 4, |task| task.parent = Some(1))),
    ("tasks", "t6", |txn| {
        let unspent = KeyRecord { task: 6, spent: false }.encode().unwrap();
        insert!(txn, TASK_KEYS, key(&["shop", "deal", "f"]).as_bytes(), unspent.as_slice());
    }),
    ("task_keys", "t3", |txn| remove(txn, schema::TASKS, 3)),
    ("task_keys", "t77", |txn| {
        let record = KeyRecord { task: 77, spent: false }.encode().unwrap();
        insert!(txn, TASK_KEYS, key(&["nobody"]).as_bytes(), record.as_slice());
    }),
    ("follow_ups", "t1/t77", |txn| insert!(txn, FOLLOW_UPS, (1, 77), ())),
    ("tasks", "t4", |txn| take!(txn, FOLLOW_UPS, (3, 4))),
    ("tasks", "t2", |txn| empty(txn, schema::UNFINISHED)),
    ("unfinished", "t3", |txn| insert!(txn, UNFINISHED, (5, 3), ())),
    ("unfinished", "t2", |txn| insert!(txn, UNFINISHED, (5, 2), ())),
    ("lanes", "t2", |txn| insert!(txn, LANES, (key(&[CRM, "z"]).as_bytes(), 3), 2)),
    ("lanes", "t3", |txn| insert!(txn, LANES, (key(&[CRM, "c"]).as_bytes(), 3), 3)),
    ("lanes", "t77", |txn| insert!(txn, LANES, (key(&[CRM, "c"]).as_bytes(), 3), 77)),
    ("lanes", "t2", |txn| task(txn, 2, |task| task.state = StateRecord::Running)),
    ("tasks", "t2", |txn| take!(txn, LANES, (key(&[CRM, "a"]).as_bytes(), 2))),
    ("ready", "t4", |txn| empty(txn, schema::READY)),
    ("ready", "t4", |txn| task(txn, 4, |task| task.due += 1)),
    ("ready", "t1", |txn| insert!(txn, READY, (CRM, 5, 1), ())),
    ("ready", "t2", |txn| insert!(txn, READY, (CRM, 5, 2), ())),
    ("ready", "t77", |txn| insert!(txn, READY, (CRM, 5, 77), ())),
    ("tasks", "t1", |txn| take!(txn, RUNNING, 1)),
    ("running", "t2", |txn| insert!(txn, RUNNING, 2, ())),
    ("suspects", "t3", |txn| insert!(txn, SUSPECTS, 3, ())),
];

const IN_EVENTS: &[(&str, &str, Plant)] = &[
    ("events", "e1", |txn| put(txn, schema::EVENTS, 1, &[0])),
    ("bodies", "e1", |txn| remove(txn, schema::BODIES, 1)),
    ("bodies", "e1", |txn| put(txn, schema::BODIES, 1, &body::pack(b"{\"id\":9}"))),
    ("bodies", "e1", |txn| put(txn, schema::BODIES, 1, &body::pack(b"{\"id\":10}"))),
    ("bodies", "e1", |txn| put(txn, schema::BODIES, 1, &[1, 2, 3])),
    ("bodies", "e77", |txn| put(txn, schema::BODIES, 77, &body::pack(b"{}"))),
    ("dedup", "e77", |txn| put(txn, schema::DEDUP, 77, &[0; 24])),
    ("dedup", "e1", |txn| put(txn, schema::DEDUP, 1, &[0; 24])),
    ("dedup", "e1", |txn| put(txn, schema::DEDUP, 1, &[0; 23])),
    ("dedup", "e2", |txn| event(txn, 2, |event| event.conflicts_with = None)),
    ("events", "e2", |txn| event(txn, 2, |event| event.conflicts_with = Some(77))),
    ("entity_events", "e77", |txn| insert!(txn, ENTITY_EVENTS, (key(&["x"]).as_bytes(), 77), (0, true))),
    ("entity_events", "e1", |txn| insert!(txn, ENTITY_EVENTS, (key(&["x"]).as_bytes(), 1), (0, true))),
    ("events", "e1", |txn| empty(txn, schema::ENTITIES)),
    ("events", "e3", |txn| event(txn, 3, |event| event.account = "another".to_owned())),
    ("aliases", "e77", |txn| insert!(txn, ALIASES, ("1042", 77), ())),
    ("event_tasks", "t1/e1", |txn| take!(txn, TASK_EVENTS, (1, 1))),
    ("task_events", "t1/e1", |txn| take!(txn, EVENT_TASKS, (1, 1))),
    ("task_events", "t1/e1", |txn| insert!(txn, TASK_EVENTS, (1, 1), 9)),
    ("task_events", "t1/e1", |txn| remove(txn, schema::EVENTS, 1)),
    ("task_events", "t1/e1", |txn| remove(txn, schema::TASKS, 1)),
];

const IN_INTENTS_AND_COUNTS: &[(&str, &str, Plant)] = &[
    ("intents", "i2", |txn| put(txn, schema::INTENTS, 2, &[0])),
    ("intents", "i2", |txn| intent(txn, 2, |intent| intent.task = 77)),
    ("intents", "i2", |txn| intent(txn, 2, |intent| intent.objects.push(vec![1, 2]))),
    ("intents", "i2", |txn| intent(txn, 2, |intent| intent.external_id = Some("5".to_owned()))),
    ("intents", "i2", |txn| take!(txn, DOUBTS, 2)),
    ("intents", "i2", |txn| take!(txn, TASK_INTENTS, (1, 2))),
    ("task_intents", "i2", |txn| insert!(txn, TASK_INTENTS, (3, 2), ())),
    ("doubts", "i1", |txn| insert!(txn, DOUBTS, 1, ())),
    ("doubts", "i77", |txn| insert!(txn, DOUBTS, 77, ())),
    ("evidence", "i77", |txn| put(txn, schema::EVIDENCE, 77, &body::pack(b"{}"))),
    ("evidence", "i1", |txn| put(txn, schema::EVIDENCE, 1, &[9])),
    ("intents", "i2", |txn| object(txn, "1", &ObjectRecord::default())),
    ("objects", "sha256:", |txn| object(txn, "3", &ObjectRecord { open: Some(2), ..ObjectRecord::default() })),
    ("objects", "sha256:", |txn| object(txn, "2", &ObjectRecord { open: Some(1), ..ObjectRecord::default() })),
    ("objects", "sha256:", |txn| {
        let known = Some("9".to_owned());
        object(txn, "3", &ObjectRecord { gone: true, external_id: known, ..ObjectRecord::default() });
    }),
    ("external", "crm/lead/51", |txn| insert!(txn, EXTERNAL, ("crm/lead", "51"), &[7_u8][..])),
    ("entities", "sha256:", |txn| insert!(txn, ENTITIES, ("1", &[7_u8][..]), ())),
    ("holds", "crm", |txn| {
        let hold = HoldRecord { since: 0, text: String::new(), task: Some(77) }.encode().unwrap();
        insert!(txn, HOLDS, CRM, hold.as_slice());
    }),
    ("audit", "1", |txn| put(txn, schema::AUDIT, 1, &[3])),
    ("counts", "tasks/done", |txn| insert!(txn, COUNTS, "tasks/done", 2)),
    ("counts", "dead/validation", |txn| take!(txn, COUNTS, "dead/validation")),
    ("counts", "dead/ambiguous", |txn| insert!(txn, COUNTS, "dead/ambiguous", 1)),
    ("counts", "events/routed", |txn| insert!(txn, COUNTS, "events/routed", 0)),
    ("counts", "events/copies", |txn| insert!(txn, COUNTS, "events/copies", 0)),
    ("counts", "intents/open", |txn| insert!(txn, COUNTS, "intents/open", 0)),
    ("meta", "last_event", |txn| meta(txn, schema::META_LAST_EVENT, 2)),
    ("meta", "last_task", |txn| meta(txn, schema::META_LAST_TASK, 5)),
    ("meta", "last_intent", |txn| meta(txn, schema::META_LAST_INTENT, 1)),
    ("meta", "last_token", |txn| meta(txn, schema::META_LAST_TOKEN, 1)),
    ("meta", "last_place", |txn| meta(txn, schema::META_LAST_PLACE, 1)),
    ("meta", "last_audit", |txn| meta(txn, schema::META_LAST_AUDIT, 0)),
    ("tasks", "-", |txn| assert!(txn.delete_table(schema::TASKS).unwrap())),
];

#[tokio::test]
async fn every_kind_of_damage_is_named() {
    let desk = full().await;
    check(&desk.store);
    for (place, plants) in [("tasks", IN_TASKS), ("events", IN_EVENTS), ("the rest", IN_INTENTS_AND_COUNTS)] {
        for (number, (table, id, plant)) in plants.iter().enumerate() {
            let damaged = open(&desk.disk.copy(), &desk.clock);
            let txn = damaged.inner.database.begin_write().unwrap();
            plant(&txn);
            txn.commit().unwrap();
            let found = look(&damaged);
            let is_named = |damage: &Damage| damage.table == *table && damage.id.starts_with(id);
            assert!(found.named.iter().any(is_named), "{place} {number}: {table} {id} is not in {:?}", found.named);
            assert_eq!(usize::try_from(found.damages).unwrap(), found.named.len());
        }
    }
}

/// The full file has rows wherever a look reads, so that no check passes for want of rows.
#[tokio::test]
async fn a_look_reads_every_table() {
    let rows = look(&full().await.store).rows;
    let unread = ["holds", "aliases", "identity"];
    for table in schema_tables().filter(|table| !unread.contains(&table.as_str())) {
        assert!(rows.get(table.as_str()).is_some_and(|rows| *rows > 0), "{table}: {rows:?}");
    }
}

/// The tables drawn at the top of `schema.rs`, but `meta` and `routes`, which have no rules of their own.
fn schema_tables() -> impl Iterator<Item = String> {
    let drawn = include_str!("../schema.rs").split("```").nth(1).unwrap();
    let names = drawn.lines().skip(2).filter_map(|line| line.strip_prefix("//! ")?.split(' ').next());
    names.map(str::to_owned).filter(|name| !name.is_empty() && name != "meta" && name != "routes")
}

#[tokio::test]
async fn many_damages_are_counted_and_a_thousand_named() {
    let desk = Desk::new();
    let damaged = open(&desk.disk.copy(), &desk.clock);
    let txn = damaged.inner.database.begin_write().unwrap();
    {
        let mut table = txn.open_table(schema::SUSPECTS).unwrap();
        (1..=1500).for_each(|id| drop(table.insert(id, ()).unwrap()));
    }
    txn.commit().unwrap();
    let found = look(&damaged);
    assert_eq!((found.damages, found.named.len()), (1500, 1000));
}

fn offline(folder: &std::path::Path) -> Result<Findings, OpenError> {
    verify(folder, &mut |_, _| {})
}

/// A file in use is left alone, a healthy one is clean, and flipped bits are found.
#[tokio::test]
async fn a_real_file_is_verified_while_nobody_works_on_it() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(offline(folder.path()), Err(OpenError::Absent { .. })));
    let clock: SharedClock = SystemClock::start();
    let store = Store::open(folder.path(), clock, Pauses::default(), std::sync::Arc::default()).unwrap();
    for number in 0..20 {
        let raw = samples::signed(&format!("w-{number}"), b"{\"id\":1}");
        store.accept(super::shop_command(raw, EventState::Routed, vec![seed("a", ONCE)])).await.unwrap();
    }
    assert!(matches!(offline(folder.path()), Err(OpenError::InUse { .. })));
    store.close().await;
    drop(store);
    let before = offline(folder.path()).unwrap();
    assert_eq!((before.damages, before.rows["events"], before.rows["tasks"]), (0, 20, 1));

    // Every copy of a body that the engine has in the file, in pages that count and in freed ones.
    let path = folder.path().join(super::super::FILE_NAME);
    let mut bytes = fs::read(&path).unwrap();
    let packed = body::pack(b"{\"id\":1}");
    let starts: Vec<usize> =
        bytes.windows(packed.len()).enumerate().filter(|(_, window)| *window == packed).map(|(at, _)| at).collect();
    starts.into_iter().for_each(|at| bytes[at + packed.len() - 1] ^= 1);
    fs::write(&path, bytes).unwrap();
    let found = offline(folder.path()).unwrap();
    assert_eq!((found.damages, found.named[0].table), (1, "file"), "{found:?}");
}
