//! The bytes of every record stand in users' files: a change of a struct without a new version fails here.
//!
//! `tests/data/records/v1-*.hex` hold records of the first format, 32 bytes a line.

use std::fmt::Debug;

use crate::source::samples;
use crate::store::record::{
    AlertRecord, AuditRecord, EventRecord, HoldRecord, IntentRecord, IntentStateRecord, ItemRecord, LeaseRecord,
    ModeRecord, Record, ShapeRecord, StateRecord, TaskRecord, VersionRecord, WindowRecord,
};

/// The bytes of a file.
pub(super) fn hex(name: &str) -> Vec<u8> {
    let text = String::from_utf8(samples::file(&format!("records/{name}.hex"))).unwrap();
    let digits: String = text.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The file decodes to this record, and the record encodes to the file.
fn check<T: Record + Debug + PartialEq>(name: &str, record: &T) {
    let bytes = hex(&format!("v1-{name}"));
    assert_eq!(&T::decode(&bytes).unwrap(), record, "{name}");
    assert_eq!(record.encode().unwrap(), bytes, "{name}");
}

fn counting<const N: usize>() -> [u8; N] {
    std::array::from_fn(|i| u8::try_from(i).unwrap())
}

fn event() -> EventRecord {
    EventRecord {
        source: "shop".to_owned(),
        account: "tambour-test.myshopify.com".to_owned(),
        topic: "orders/create".to_owned(),
        state: "routed".to_owned(),
        received_at: 1_796_036_720_000,
        source_time: Some(-1),
        correlation: Some("e0000000".to_owned()),
        dedup_key: Some(vec![2, 1, 0x2d]),
        fingerprint: counting(),
        secret_label: Some("now".to_owned()),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        items: vec![
            ItemRecord::Fact {
                kind: "orders/create".to_owned(),
                entity_kind: "order".to_owned(),
                entity_id: "912345678901234567".to_owned(),
                source_time: Some(1_796_036_710_000),
            },
            ItemRecord::Unreadable { at: "leads[status][3]".to_owned(), why: "нет id".to_owned() },
        ],
        body_len: 300,
        body_sha256: counting(),
        trace: u128::MAX - 1,
        copies: 2,
        last_seen: 1_796_036_999_000,
        conflicts_with: Some(17),
    }
}

fn task() -> TaskRecord {
    TaskRecord {
        name: "deal".to_owned(),
        kind: "deal".to_owned(),
        key: vec![1, 0, 0, 0, 0, 0, 0, 4, 0x12],
        lane: vec![2, 1, 0x2d],
        target: "crm".to_owned(),
        entity: "1042".to_owned(),
        mode: ModeRecord::Latest,
        state: StateRecord::Running,
        due: 1_796_036_720_000,
        not_before: 1_796_036_900_000,
        place: Some(7),
        since: Some(1_796_036_720_001),
        attempts: 3,
        losses: 1,
        lease: Some(LeaseRecord { token: 9, until: 1_796_036_840_000, from: StateRecord::Retry, process: 2 }),
        memory_event: true,
        memory_replay: false,
        reason: None,
        text: "busy".to_owned(),
        created_at: 1,
        updated_at: 2,
        trace: 7,
        first_event: Some(1),
        last_event: Some(300),
        newest_source_time: Some(i64::MIN),
        parent: None,
        replays: 1,
    }
}

fn intent() -> IntentRecord {
    IntentRecord {
        objects: vec![vec![2, 1, 0x2d], vec![3; 4]],
        task: 1,
        token: 9,
        target: "crm".to_owned(),
        object_kind: "contact".to_owned(),
        shape: ShapeRecord::Set,
        version: Some(VersionRecord { at: 1_796_036_710_000, hash: counting() }),
        opened_at: 1_796_036_720_000,
        opened_mono_ms: 5_000,
        process: 2,
        state: IntentStateRecord::Applied,
        external_id: Some("70000001".to_owned()),
        settled_at: Some(1_796_036_721_000),
        text: String::new(),
    }
}

#[test]
fn records_of_the_first_format_are_read_and_written() {
    check("event", &event());
    check("task", &task());
    check("intent", &intent());
    check("hold", &HoldRecord { since: 1_796_036_720_000, text: "оплатите CRM".to_owned(), task: Some(4) });
    let audit = AuditRecord {
        at: 1_796_036_720_000,
        who: "anna".to_owned(),
        action: "replay".to_owned(),
        what: "t1: the customer called".to_owned(),
    };
    check("audit", &audit);
    check("window", &WindowRecord { to: 1_796_036_720_000, count: 300, open: true });
    let alert = AlertRecord {
        first: 1_796_036_720_000,
        last: 1_796_036_721_000,
        count: 3,
        text: "секрет".to_owned(),
        resolved_at: Some(-1),
    };
    check("alert", &alert);
}

/// Variants are numbered by their place, so they may only be appended.
#[test]
fn words_keep_their_numbers() {
    let states = [
        StateRecord::New,
        StateRecord::Running,
        StateRecord::Retry,
        StateRecord::Done,
        StateRecord::Superseded,
        StateRecord::Dead,
    ];
    let numbers = |words: Vec<Vec<u8>>| words.into_iter().flatten().collect::<Vec<u8>>();
    assert_eq!(numbers(states.iter().map(|s| postcard::to_stdvec(s).unwrap()).collect()), [0, 1, 2, 3, 4, 5]);
    let modes = [ModeRecord::OnceKeep, ModeRecord::Latest];
    assert_eq!(numbers(modes.iter().map(|m| postcard::to_stdvec(m).unwrap()).collect()), [0, 1]);
    let shapes = [ShapeRecord::Create, ShapeRecord::Set];
    assert_eq!(numbers(shapes.iter().map(|s| postcard::to_stdvec(s).unwrap()).collect()), [0, 1]);
    let intents = [
        IntentStateRecord::Open,
        IntentStateRecord::Unknown,
        IntentStateRecord::Applied,
        IntentStateRecord::Refused,
        IntentStateRecord::Closed,
    ];
    assert_eq!(numbers(intents.iter().map(|i| postcard::to_stdvec(i).unwrap()).collect()), [0, 1, 2, 3, 4]);
}
