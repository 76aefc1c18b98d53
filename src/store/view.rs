//! Reads: consistent, never waiting for the writer, paged where they can be long.

use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::domain::{EventId, IntentId, Key, Monotonic, TaskId, Timestamp};
use crate::store::body;
use crate::store::error::Broken;
use crate::store::intent::{ObjectRef, ObjectView, OpenIntent, is_held};
use crate::store::queue::Meeting;
use crate::store::record::{
    AuditRecord, EventRecord, HoldRecord, IntentRecord, KeyRecord, ObjectRecord, Record, TaskRecord,
};
use crate::store::row::{AuditView, EventView, HoldView, IntentView, ObjectsView, TaskView, event_view, intent_view};
use crate::store::schema;

/// A consistent view of the file at one moment.
pub struct View {
    pub(super) txn: ReadTransaction,
    process: u64,
}

impl View {
    pub(super) fn begin(database: &Arc<Database>, process: u64) -> Result<Self, Broken> {
        Ok(Self { txn: database.begin_read()?, process })
    }

    pub(super) fn row<T: Record>(
        &self,
        table: TableDefinition<'_, u64, &'static [u8]>,
        id: u64,
    ) -> Result<Option<T>, Broken> {
        let table = self.txn.open_table(table)?;
        let row = table.get(id)?;
        Ok(row.map(|v| T::decode(v.value())).transpose()?)
    }

    fn keyed<T: Record>(
        &self,
        table: TableDefinition<'_, &'static [u8], &'static [u8]>,
        key: &[u8],
    ) -> Result<Option<T>, Broken> {
        let table = self.txn.open_table(table)?;
        let row = table.get(key)?;
        Ok(row.map(|v| T::decode(v.value())).transpose()?)
    }

    /// One event.
    ///
    /// # Errors
    /// [`Broken`] when the file cannot be read, as everywhere here.
    pub fn event(&self, id: EventId) -> Result<Option<EventView>, Broken> {
        Ok(self.row::<EventRecord>(schema::EVENTS, id.get())?.map(|event| event_view(id, event)))
    }

    /// An event's body, byte for byte; absent once retention took it.
    pub fn body(&self, id: EventId) -> Result<Option<Vec<u8>>, Broken> {
        let table = self.txn.open_table(schema::BODIES)?;
        let row = table.get(id.get())?;
        Ok(row.map(|v| body::unpack(v.value())).transpose()?)
    }

    /// One task.
    pub fn task(&self, id: TaskId) -> Result<Option<TaskView>, Broken> {
        Ok(self.row::<TaskRecord>(schema::TASKS, id.get())?.map(|task| TaskView::new(id, &task)))
    }

    /// The task of a key, and whether the key is spent.
    pub fn task_of_key(&self, key: &Key) -> Result<Option<(TaskId, bool)>, Broken> {
        Ok(self.keyed::<KeyRecord>(schema::TASK_KEYS, key.as_bytes())?.map(|k| (TaskId::new(k.task), k.spent)))
    }

    /// Events newest first, at most `limit`, with ids below `before`.
    pub fn events(
        &self,
        before: Option<EventId>,
        limit: usize,
        wanted: &dyn Fn(&EventView) -> bool,
    ) -> Result<Vec<EventView>, Broken> {
        let table = self.txn.open_table(schema::EVENTS)?;
        let mut found = Vec::new();
        for row in table.range(..before.map_or(u64::MAX, EventId::get))?.rev() {
            let (id, value) = row?;
            let event = event_view(EventId::new(id.value()), EventRecord::decode(value.value())?);
            if wanted(&event) {
                found.push(event);
                if found.len() >= limit {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Tasks newest first, at most `limit`, with ids below `before`.
    pub fn tasks(
        &self,
        before: Option<TaskId>,
        limit: usize,
        wanted: &dyn Fn(&TaskView) -> bool,
    ) -> Result<Vec<TaskView>, Broken> {
        let table = self.txn.open_table(schema::TASKS)?;
        let mut found = Vec::new();
        for row in table.range(..before.map_or(u64::MAX, TaskId::get))?.rev() {
            let (id, value) = row?;
            let task = TaskView::new(TaskId::new(id.value()), &TaskRecord::decode(value.value())?);
            if wanted(&task) {
                found.push(task);
                if found.len() >= limit {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// The events that met a task, oldest first.
    pub fn events_of_task(&self, task: TaskId) -> Result<Vec<(EventId, Meeting)>, Broken> {
        let table = self.txn.open_table(schema::TASK_EVENTS)?;
        let rows = table.range((task.get(), 0)..=(task.get(), u64::MAX))?;
        rows.map(|row| {
            let (key, code) = row?;
            Ok((EventId::new(key.value().1), Meeting::from_code(code.value())))
        })
        .collect()
    }

    /// The intents of a task, oldest first.
    pub fn intents_of_task(&self, task: TaskId) -> Result<Vec<IntentView>, Broken> {
        let table = self.txn.open_table(schema::TASK_INTENTS)?;
        let mut intents = Vec::new();
        for row in table.range((task.get(), 0)..=(task.get(), u64::MAX))? {
            let id = row?.0.value().1;
            if let Some(intent) = self.row::<IntentRecord>(schema::INTENTS, id)? {
                intents.push(intent_view(IntentId::new(id), intent));
            }
        }
        Ok(intents)
    }

    /// The reads and the request beside an intent, as JSON text.
    pub fn evidence(&self, intent: IntentId) -> Result<Option<Vec<u8>>, Broken> {
        let table = self.txn.open_table(schema::EVIDENCE)?;
        let row = table.get(intent.get())?;
        Ok(row.map(|v| body::unpack(v.value())).transpose()?)
    }

    /// The task that stands before this one in its lane.
    pub fn waits_behind(&self, task: &TaskView) -> Result<Option<TaskId>, Broken> {
        let table = self.txn.open_table(schema::LANES)?;
        let lane = task.lane.as_bytes();
        let head = table.range((lane, 0)..=(lane, u64::MAX))?.next().transpose()?.map(|(_, id)| id.value());
        Ok(head.map(TaskId::new).filter(|head| task.state.is_unfinished() && *head != task.id))
    }

    /// What we know of an object outside, over all of its keys.
    ///
    /// Keys that name two different external ids give both, for the caller to judge.
    pub fn object(&self, object: &ObjectRef) -> Result<ObjectsView, Broken> {
        let mut view = ObjectsView::default();
        for key in object.keys() {
            let record = self.keyed::<ObjectRecord>(schema::OBJECTS, key.as_bytes())?.unwrap_or_default();
            let open = record.open.map(|id| self.open_intent(id)).transpose()?.flatten();
            view.0.push(ObjectView {
                external_id: record.external_id,
                version: record.version.map(Into::into),
                gone: record.gone,
                open,
            });
        }
        Ok(view)
    }

    fn open_intent(&self, id: u64) -> Result<Option<OpenIntent>, Broken> {
        let Some(intent) = self.row::<IntentRecord>(schema::INTENTS, id)? else { return Ok(None) };
        let holder = self.row::<TaskRecord>(schema::TASKS, intent.task)?;
        let holder = holder.map(|task| (task.state, task.lease.map(|lease| lease.token)));
        let ours = intent.process == self.process;
        Ok(Some(OpenIntent {
            id: IntentId::new(id),
            task: TaskId::new(intent.task),
            is_held: is_held(holder, intent.token),
            opened: ours.then(|| Monotonic::from_start(std::time::Duration::from_millis(intent.opened_mono_ms))),
        }))
    }

    /// Open intents, oldest first.
    pub fn doubts(&self, limit: usize) -> Result<Vec<IntentView>, Broken> {
        let table = self.txn.open_table(schema::DOUBTS)?;
        let mut doubts = Vec::new();
        for row in table.iter()?.take(limit) {
            let id = row?.0.value();
            if let Some(intent) = self.row::<IntentRecord>(schema::INTENTS, id)? {
                doubts.push(intent_view(IntentId::new(id), intent));
            }
        }
        Ok(doubts)
    }

    /// The newest stored whole body of an entity, by the source's time, then by arrival.
    pub fn newest_whole(&self, entity: &Key) -> Result<Option<EventId>, Broken> {
        let table = self.txn.open_table(schema::ENTITY_EVENTS)?;
        let mut newest: Option<(i64, u64)> = None;
        for row in table.range((entity.as_bytes(), 0)..=(entity.as_bytes(), u64::MAX))? {
            let (key, value) = row?;
            let (time, is_whole) = value.value();
            if is_whole {
                newest = newest.max(Some((time, key.value().1)));
            }
        }
        Ok(newest.map(|(_, event)| EventId::new(event)))
    }

    /// The events of an entity, oldest first.
    pub fn events_of_entity(&self, entity: &Key) -> Result<Vec<EventId>, Broken> {
        let table = self.txn.open_table(schema::ENTITY_EVENTS)?;
        let rows = table.range((entity.as_bytes(), 0)..=(entity.as_bytes(), u64::MAX))?;
        rows.map(|row| Ok(EventId::new(row?.0.value().1))).collect()
    }

    /// The keys of the entities with that id, in any source.
    pub fn entities(&self, id: &str) -> Result<Vec<Key>, Broken> {
        let table = self.txn.open_table(schema::ENTITIES)?;
        let mut keys = Vec::new();
        for row in table.range((id, &[][..])..)? {
            let row = row?.0;
            let (entity, key) = row.value();
            if entity != id {
                break;
            }
            keys.push(Key::from_stored(key));
        }
        Ok(keys)
    }

    /// The events under an alias: an order's name, the last digits of a phone.
    pub fn events_of_alias(&self, alias: &str, limit: usize) -> Result<Vec<EventId>, Broken> {
        let table = self.txn.open_table(schema::ALIASES)?;
        let rows = table.range((alias, 0)..=(alias, u64::MAX))?.rev().take(limit);
        rows.map(|row| Ok(EventId::new(row?.0.value().1))).collect()
    }

    /// The key of the object with that id outside; `place` is `<target>/<kind>`.
    pub fn object_of_external(&self, place: &str, external_id: &str) -> Result<Option<Key>, Broken> {
        let table = self.txn.open_table(schema::EXTERNAL)?;
        let row = table.get((place, external_id))?;
        Ok(row.map(|key| Key::from_stored(key.value())))
    }

    /// All counts, by name.
    pub fn counts(&self) -> Result<Vec<(String, u64)>, Broken> {
        let table = self.txn.open_table(schema::COUNTS)?;
        table.iter()?.map(|row| row.map(|(name, n)| (name.value().to_owned(), n.value())).map_err(Into::into)).collect()
    }

    /// The oldest unfinished task, and since when.
    pub fn oldest_unfinished(&self) -> Result<Option<(TaskId, Timestamp)>, Broken> {
        let table = self.txn.open_table(schema::UNFINISHED)?;
        let first = table.first()?;
        Ok(first.map(|(key, _)| (TaskId::new(key.value().1), Timestamp::from_millis(key.value().0))))
    }

    /// The earliest due time among ready tasks of these targets that are not held,
    /// of these kinds: a task of a later build's kind wakes nobody.
    pub fn next_due(&self, targets: &[String], kinds: &[String]) -> Result<Option<Timestamp>, Broken> {
        let ready = self.txn.open_table(schema::READY)?;
        let holds = self.txn.open_table(schema::HOLDS)?;
        let mut earliest = None;
        for target in targets {
            if holds.get(target.as_str())?.is_some() {
                continue;
            }
            for row in ready.range((target.as_str(), i64::MIN, 0)..=(target.as_str(), i64::MAX, u64::MAX))? {
                let (_, due, task) = row?.0.value();
                let kind = self.row::<TaskRecord>(schema::TASKS, task)?.map(|task| task.kind);
                if kind.is_some_and(|kind| kinds.contains(&kind)) {
                    let due = Timestamp::from_millis(due);
                    earliest = Some(earliest.map_or(due, |e: Timestamp| e.min(due)));
                    break;
                }
            }
        }
        Ok(earliest)
    }

    /// All held targets.
    pub fn holds(&self) -> Result<Vec<HoldView>, Broken> {
        let table = self.txn.open_table(schema::HOLDS)?;
        let mut holds = Vec::new();
        for row in table.iter()? {
            let (target, value) = row?;
            let hold = HoldRecord::decode(value.value())?;
            holds.push(HoldView {
                target: target.value().to_owned(),
                since: Timestamp::from_millis(hold.since),
                text: hold.text,
            });
        }
        Ok(holds)
    }

    /// The newest rows of the audit trail.
    pub fn audit(&self, limit: usize) -> Result<Vec<AuditView>, Broken> {
        let table = self.txn.open_table(schema::AUDIT)?;
        let mut rows = Vec::new();
        for row in table.iter()?.rev().take(limit) {
            let AuditRecord { at, who, action, what } = AuditRecord::decode(row?.1.value())?;
            rows.push(AuditView { at: Timestamp::from_millis(at), who, action, what });
        }
        Ok(rows)
    }
}
