//! Every table of the data file, its keys, and what its values hold.
//!
//! ```text
//! table          key                             value
//! meta           name                            see the META_ constants
//! events         event id                        EventRecord: all of an event but its body
//! bodies         event id                        codec u8, dictionary u32 LE, length u32 LE, bytes
//! dedup          event id                        key hash (16 bytes), then lapses_at (i64 BE)
//! entity_events  (entity key, event id)          source time in ms (absent = i64::MIN), 1 = whole entity
//! entities       (entity id as text, entity key) -        finds an entity by what people paste
//! aliases        (alias, event id)               -        order names, last digits of phones
//! tasks          task id                         TaskRecord
//! task_keys      key bytes                       KeyRecord: the task's id, whether it is spent
//! task_events    (task id, event id)             how the event first met the task (Meeting as u8)
//! event_tasks    (event id, task id)              -        the same pairs, from the event's side
//! follow_ups     (parent's task id, task id)     -
//! unfinished     (since in ms, task id)          -        the first is the oldest unfinished
//! lanes          (lane bytes, place)             task id; the first is the head
//! ready          (target, due in ms, task id)    -        heads in `new` or `retry` only
//! running        task id                         -
//! suspects       task id                         -        ran when the process died
//! intents        intent id                       IntentRecord
//! task_intents   (task id, intent id)            -
//! doubts         intent id                       -        open intents
//! objects        object key bytes                ObjectRecord: what we know of one object outside
//! external       (target/kind, external id)      object key bytes
//! evidence       intent id                       zstd: the reads and the request of an attempt, as JSON
//! counts         name                            u64
//! holds          target                          HoldRecord
//! audit          ordinal                         AuditRecord
//! routes         route name                      when it first went live, in ms
//! windows        (source, reason, from in ms)    WindowRecord; of a source and reason the last alone can be open
//! alerts         (kind, source)                  AlertRecord
//! identity       `instance`, `host`,             which instance this is, and the place that it is tied to
//!                `machine`, `inode`
//! names          (kind, name)                    when a key was first built with it, in ms
//! ```
//!
//! Ids are u64 and ascend; keys are the bytes of `domain::Key`. Values are
//! postcard, each an enum of versions whose index is the first byte, with
//! variants only appended; bytes left over after decoding are refused. The
//! records stand in `record.rs`.
//!
//! Random keys stay out of the write path: the dedup index is this append-only
//! table and lives in memory (`dedup.rs`); all other keys ascend with the
//! numbers of their source.
//!
//! Version history: 1, the first.

use redb::TableDefinition as Table;

/// The version of everything drawn above; a file with a higher one is refused.
pub(super) const FORMAT_VERSION: u64 = 1;

pub(super) const META: Table<'_, &str, u64> = Table::new("meta");
/// The format of the file.
pub(super) const META_FORMAT: &str = "format_version";
/// Last assigned ids and ordinals.
pub(super) const META_LAST_EVENT: &str = "last_event";
pub(super) const META_LAST_TASK: &str = "last_task";
pub(super) const META_LAST_INTENT: &str = "last_intent";
pub(super) const META_LAST_TOKEN: &str = "last_token";
pub(super) const META_LAST_PLACE: &str = "last_place";
pub(super) const META_LAST_AUDIT: &str = "last_audit";
/// Openings so far: numbers the processes that worked on the file.
pub(super) const META_PROCESS: &str = "process";
/// 1 after an orderly stop, 0 while a process works.
pub(super) const META_CLEAN_STOP: &str = "clean_stop";

pub(super) const EVENTS: Table<'_, u64, &[u8]> = Table::new("events");
pub(super) const BODIES: Table<'_, u64, &[u8]> = Table::new("bodies");
pub(super) const DEDUP: Table<'_, u64, &[u8]> = Table::new("dedup");
pub(super) const ENTITY_EVENTS: Table<'_, (&[u8], u64), (i64, bool)> = Table::new("entity_events");
pub(super) const ENTITIES: Table<'_, (&str, &[u8]), ()> = Table::new("entities");
pub(super) const ALIASES: Table<'_, (&str, u64), ()> = Table::new("aliases");
pub(super) const TASKS: Table<'_, u64, &[u8]> = Table::new("tasks");
pub(super) const TASK_KEYS: Table<'_, &[u8], &[u8]> = Table::new("task_keys");
pub(super) const TASK_EVENTS: Table<'_, (u64, u64), u8> = Table::new("task_events");
pub(super) const EVENT_TASKS: Table<'_, (u64, u64), ()> = Table::new("event_tasks");
pub(super) const FOLLOW_UPS: Table<'_, (u64, u64), ()> = Table::new("follow_ups");
pub(super) const UNFINISHED: Table<'_, (i64, u64), ()> = Table::new("unfinished");
pub(super) const LANES: Table<'_, (&[u8], u64), u64> = Table::new("lanes");
pub(super) const READY: Table<'_, (&str, i64, u64), ()> = Table::new("ready");
pub(super) const RUNNING: Table<'_, u64, ()> = Table::new("running");
pub(super) const SUSPECTS: Table<'_, u64, ()> = Table::new("suspects");
pub(super) const INTENTS: Table<'_, u64, &[u8]> = Table::new("intents");
pub(super) const TASK_INTENTS: Table<'_, (u64, u64), ()> = Table::new("task_intents");
pub(super) const DOUBTS: Table<'_, u64, ()> = Table::new("doubts");
pub(super) const OBJECTS: Table<'_, &[u8], &[u8]> = Table::new("objects");
pub(super) const EXTERNAL: Table<'_, (&str, &str), &[u8]> = Table::new("external");
pub(super) const EVIDENCE: Table<'_, u64, &[u8]> = Table::new("evidence");
pub(super) const COUNTS: Table<'_, &str, u64> = Table::new("counts");
pub(super) const HOLDS: Table<'_, &str, &[u8]> = Table::new("holds");
pub(super) const AUDIT: Table<'_, u64, &[u8]> = Table::new("audit");
pub(super) const ROUTES: Table<'_, &str, i64> = Table::new("routes");
pub(super) const WINDOWS: Table<'_, (&str, &str, i64), &[u8]> = Table::new("windows");
pub(super) const ALERTS: Table<'_, (&str, &str), &[u8]> = Table::new("alerts");
pub(super) const IDENTITY: Table<'_, &str, &str> = Table::new("identity");
pub(super) const NAMES: Table<'_, (&str, &str), i64> = Table::new("names");
