//! One write transaction with all tables open, and the typed ways into them.

use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::domain::{Monotonic, Pauses, Timestamp};
use crate::store::dedup::DedupIndex;
use crate::store::error::Broken;
use crate::store::record::{EventRecord, IntentRecord, KeyRecord, ObjectRecord, Record, TaskRecord};
use crate::store::schema;

type Rows<'t> = Table<'t, u64, &'static [u8]>;
type Keyed<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// All tables of the schema, open for writing.
pub(super) struct Tables<'t> {
    pub(super) meta: Table<'t, &'static str, u64>,
    pub(super) events: Rows<'t>,
    pub(super) bodies: Rows<'t>,
    pub(super) dedup: Rows<'t>,
    pub(super) entity_events: Table<'t, (&'static [u8], u64), (i64, bool)>,
    pub(super) entities: Table<'t, (&'static str, &'static [u8]), ()>,
    pub(super) aliases: Table<'t, (&'static str, u64), ()>,
    pub(super) tasks: Rows<'t>,
    pub(super) task_keys: Keyed<'t>,
    pub(super) task_events: Table<'t, (u64, u64), u8>,
    pub(super) event_tasks: Table<'t, (u64, u64), ()>,
    pub(super) follow_ups: Table<'t, (u64, u64), ()>,
    pub(super) unfinished: Table<'t, (i64, u64), ()>,
    pub(super) lanes: Table<'t, (&'static [u8], u64), u64>,
    pub(super) ready: Table<'t, (&'static str, i64, u64), ()>,
    pub(super) running: Table<'t, u64, ()>,
    pub(super) suspects: Table<'t, u64, ()>,
    pub(super) intents: Rows<'t>,
    pub(super) task_intents: Table<'t, (u64, u64), ()>,
    pub(super) doubts: Table<'t, u64, ()>,
    pub(super) objects: Keyed<'t>,
    pub(super) external: Table<'t, (&'static str, &'static str), &'static [u8]>,
    pub(super) evidence: Rows<'t>,
    pub(super) counts: Table<'t, &'static str, u64>,
    pub(super) holds: Table<'t, &'static str, &'static [u8]>,
    pub(super) audit: Rows<'t>,
    pub(super) routes: Table<'t, &'static str, i64>,
    pub(super) windows: Table<'t, (&'static str, &'static str, i64), &'static [u8]>,
    pub(super) alerts: Table<'t, (&'static str, &'static str), &'static [u8]>,
    pub(super) identity: Table<'t, &'static str, &'static str>,
    pub(super) names: Table<'t, (&'static str, &'static str), i64>,
}

impl<'t> Tables<'t> {
    pub(super) fn open(txn: &'t WriteTransaction) -> Result<Self, Broken> {
        Ok(Self {
            meta: txn.open_table(schema::META)?,
            events: txn.open_table(schema::EVENTS)?,
            bodies: txn.open_table(schema::BODIES)?,
            dedup: txn.open_table(schema::DEDUP)?,
            entity_events: txn.open_table(schema::ENTITY_EVENTS)?,
            entities: txn.open_table(schema::ENTITIES)?,
            aliases: txn.open_table(schema::ALIASES)?,
            tasks: txn.open_table(schema::TASKS)?,
            task_keys: txn.open_table(schema::TASK_KEYS)?,
            task_events: txn.open_table(schema::TASK_EVENTS)?,
            event_tasks: txn.open_table(schema::EVENT_TASKS)?,
            follow_ups: txn.open_table(schema::FOLLOW_UPS)?,
            unfinished: txn.open_table(schema::UNFINISHED)?,
            lanes: txn.open_table(schema::LANES)?,
            ready: txn.open_table(schema::READY)?,
            running: txn.open_table(schema::RUNNING)?,
            suspects: txn.open_table(schema::SUSPECTS)?,
            intents: txn.open_table(schema::INTENTS)?,
            task_intents: txn.open_table(schema::TASK_INTENTS)?,
            doubts: txn.open_table(schema::DOUBTS)?,
            objects: txn.open_table(schema::OBJECTS)?,
            external: txn.open_table(schema::EXTERNAL)?,
            evidence: txn.open_table(schema::EVIDENCE)?,
            counts: txn.open_table(schema::COUNTS)?,
            holds: txn.open_table(schema::HOLDS)?,
            audit: txn.open_table(schema::AUDIT)?,
            routes: txn.open_table(schema::ROUTES)?,
            windows: txn.open_table(schema::WINDOWS)?,
            alerts: txn.open_table(schema::ALERTS)?,
            identity: txn.open_table(schema::IDENTITY)?,
            names: txn.open_table(schema::NAMES)?,
        })
    }
}

/// What commands work on: the tables, the time of the batch, the dedup index.
pub(super) struct Batch<'t> {
    pub(super) tables: Tables<'t>,
    pub(super) dedup: &'t mut DedupIndex,
    pub(super) pauses: &'t Pauses,
    pub(super) now: Timestamp,
    pub(super) monotonic: Monotonic,
    pub(super) process: u64,
}

impl Batch<'_> {
    pub(super) fn meta(&self, name: &str) -> Result<u64, Broken> {
        Ok(self.tables.meta.get(name)?.map_or(0, |v| v.value()))
    }

    /// The next id of a sequence; never given twice.
    pub(super) fn next(&mut self, sequence: &str) -> Result<u64, Broken> {
        let next = self.meta(sequence)?.saturating_add(1);
        self.tables.meta.insert(sequence, next)?;
        Ok(next)
    }

    pub(super) fn count(&mut self, name: &str, by: i64) -> Result<(), Broken> {
        let before = self.tables.counts.get(name)?.map_or(0, |v| v.value());
        let after = before.checked_add_signed(by).ok_or_else(|| Broken::Dangling(format!("the count {name}")))?;
        self.tables.counts.insert(name, after)?;
        Ok(())
    }

    pub(super) fn task(&self, id: u64) -> Result<Option<TaskRecord>, Broken> {
        read(&self.tables.tasks, id)
    }

    /// A task that another row names.
    pub(super) fn named_task(&self, id: u64, by: &str) -> Result<TaskRecord, Broken> {
        self.task(id)?.ok_or_else(|| Broken::Dangling(format!("{by} (task {id})")))
    }

    pub(super) fn event(&self, id: u64) -> Result<Option<EventRecord>, Broken> {
        read(&self.tables.events, id)
    }

    pub(super) fn put_event(&mut self, id: u64, event: &EventRecord) -> Result<(), Broken> {
        self.tables.events.insert(id, event.encode()?.as_slice())?;
        Ok(())
    }

    pub(super) fn task_key(&self, key: &[u8]) -> Result<Option<KeyRecord>, Broken> {
        read_keyed(&self.tables.task_keys, key)
    }

    pub(super) fn put_task_key(&mut self, key: &[u8], record: KeyRecord) -> Result<(), Broken> {
        self.tables.task_keys.insert(key, record.encode()?.as_slice())?;
        Ok(())
    }

    pub(super) fn intent(&self, id: u64) -> Result<Option<IntentRecord>, Broken> {
        read(&self.tables.intents, id)
    }

    pub(super) fn put_intent(&mut self, id: u64, intent: &IntentRecord) -> Result<(), Broken> {
        self.tables.intents.insert(id, intent.encode()?.as_slice())?;
        Ok(())
    }

    pub(super) fn object(&self, key: &[u8]) -> Result<ObjectRecord, Broken> {
        Ok(read_keyed(&self.tables.objects, key)?.unwrap_or_default())
    }

    pub(super) fn put_object(&mut self, key: &[u8], object: &ObjectRecord) -> Result<(), Broken> {
        self.tables.objects.insert(key, object.encode()?.as_slice())?;
        Ok(())
    }
}

fn read<T: Record>(table: &Rows<'_>, id: u64) -> Result<Option<T>, Broken> {
    Ok(table.get(id)?.map(|v| T::decode(v.value())).transpose()?)
}

fn read_keyed<T: Record>(table: &Keyed<'_>, key: &[u8]) -> Result<Option<T>, Broken> {
    Ok(table.get(key)?.map(|v| T::decode(v.value())).transpose()?)
}
