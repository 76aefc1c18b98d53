//! Reads: consistent, never waiting for the writer, paged where they can be long.

use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::domain::{
    Attempt, EventId, IntentId, Key, LeaseToken, Mode, Monotonic, ReasonCode, State, TaskId, Timestamp, TraceId,
};
use crate::store::body;
use crate::store::error::Broken;
use crate::store::intent::{ObjectRef, ObjectView, OpenIntent, is_held};
use crate::store::queue::Meeting;
use crate::store::record::{
    AuditRecord, EventRecord, HoldRecord, IntentRecord, IntentStateRecord, ItemRecord, KeyRecord, ObjectRecord, Record,
    ShapeRecord, TaskRecord,
};
use crate::store::schema;

/// An event as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventView {
    /// Its id.
    pub id: EventId,
    /// The configured source.
    pub source: String,
    /// The sender's own account.
    pub account: String,
    /// The sender's word for what happened.
    pub topic: String,
    /// `routed`, `unrouted`, `unreadable`, `foreign`, `conflict`.
    pub state: String,
    /// When its body was whole here.
    pub received_at: Timestamp,
    /// When the source says it happened.
    pub source_time: Option<Timestamp>,
    /// Shared by deliveries of one action.
    pub correlation: Option<String>,
    /// The label of the secret that verified it.
    pub secret_label: Option<String>,
    /// Kept headers.
    pub headers: Vec<(String, String)>,
    /// What is in it.
    pub items: Vec<ItemView>,
    /// Length of the body in bytes.
    pub body_len: u32,
    /// SHA-256 of the body.
    pub body_sha256: [u8; 32],
    /// The id that runs through to effects.
    pub trace: TraceId,
    /// How often it was repeated, and when last.
    pub copies: u32,
    /// The last delivery of it.
    pub last_seen: Timestamp,
    /// The event whose id it repeats with other content.
    pub conflicts_with: Option<EventId>,
}

/// One thing in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemView {
    /// A readable item.
    Fact {
        /// `leads.status`.
        kind: String,
        /// `lead`.
        entity_kind: String,
        /// The id in the source's words.
        entity_id: String,
        /// When the source says it changed.
        source_time: Option<Timestamp>,
    },
    /// An unreadable item.
    Unreadable {
        /// Where in the body.
        at: String,
        /// Why.
        why: String,
    },
}

/// A task as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// The configured name.
    pub name: String,
    /// The kind of work.
    pub kind: String,
    /// What makes it unique.
    pub key: Key,
    /// The lane that it stands in.
    pub lane: Key,
    /// Its target.
    pub target: String,
    /// What it is about.
    pub entity: String,
    /// What repeats do.
    pub mode: Mode,
    /// Where it stands.
    pub state: State,
    /// When it runs next; absent when ended or running.
    pub due: Option<Timestamp>,
    /// Since when it is unfinished; absent when ended.
    pub since: Option<Timestamp>,
    /// Settled attempts.
    pub attempts: Attempt,
    /// How often the process died while it ran alone.
    pub losses: u32,
    /// Until when it is leased; absent unless running.
    pub leased_until: Option<Timestamp>,
    /// Why it is dead or superseded.
    pub reason: Option<ReasonCode>,
    /// What the last attempt said.
    pub text: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its row changed last.
    pub updated_at: Timestamp,
    /// The id that runs from delivery to effect.
    pub trace: TraceId,
    /// The event that made it.
    pub first_event: Option<EventId>,
    /// The newest event that met it.
    pub last_event: Option<EventId>,
    /// The task whose settlement made it.
    pub parent: Option<TaskId>,
    /// How often a person replayed it.
    pub replays: u32,
}

impl TaskView {
    pub(super) fn new(id: TaskId, task: &TaskRecord) -> Self {
        let state = State::from(task.state);
        let waits = state.is_unfinished() && state != State::Running;
        Self {
            id,
            name: task.name.clone(),
            kind: task.kind.clone(),
            key: Key::from_stored(&task.key),
            lane: Key::from_stored(&task.lane),
            target: task.target.clone(),
            entity: task.entity.clone(),
            mode: task.mode.into(),
            state,
            due: waits.then(|| Timestamp::from_millis(task.due)),
            since: task.since.map(Timestamp::from_millis),
            attempts: Attempt::new(task.attempts),
            losses: task.losses,
            leased_until: task.lease.map(|lease| Timestamp::from_millis(lease.until)),
            reason: task.reason.as_deref().map(ReasonCode::from_stored),
            text: task.text.clone(),
            created_at: Timestamp::from_millis(task.created_at),
            updated_at: Timestamp::from_millis(task.updated_at),
            trace: TraceId::new(task.trace),
            first_event: task.first_event.map(EventId::new),
            last_event: task.last_event.map(EventId::new),
            parent: task.parent.map(TaskId::new),
            replays: task.replays,
        }
    }
}

/// An intent with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentView {
    /// Its id.
    pub id: IntentId,
    /// The task that opened it.
    pub task: TaskId,
    /// The lease under which it was opened.
    pub token: LeaseToken,
    /// The target.
    pub target: String,
    /// `contact`, `lead`, `note`.
    pub object_kind: String,
    /// Its object's keys.
    pub objects: Vec<Key>,
    /// `create` or `set`.
    pub shape: &'static str,
    /// `open`, `unknown`, `applied`, `refused`, `closed`.
    pub state: &'static str,
    /// The object's id outside, once applied.
    pub external_id: Option<String>,
    /// When it was written.
    pub opened_at: Timestamp,
    /// When its outcome was written.
    pub settled_at: Option<Timestamp>,
    /// What the outcome said.
    pub text: String,
}

/// A paused target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldView {
    /// The target.
    pub target: String,
    /// Since when.
    pub since: Timestamp,
    /// Why, and what to do.
    pub text: String,
}

/// A row of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditView {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub who: String,
    /// `retry`, `close`, `replay`, `resume`.
    pub action: String,
    /// To what, and why.
    pub what: String,
}

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

    /// The earliest due time among ready tasks of these targets that are not held.
    pub fn next_due(&self, targets: &[String]) -> Result<Option<Timestamp>, Broken> {
        let ready = self.txn.open_table(schema::READY)?;
        let holds = self.txn.open_table(schema::HOLDS)?;
        let mut earliest = None;
        for target in targets {
            if holds.get(target.as_str())?.is_some() {
                continue;
            }
            let first = ready.range((target.as_str(), i64::MIN, 0)..=(target.as_str(), i64::MAX, u64::MAX))?.next();
            if let Some((key, _)) = first.transpose()? {
                let due = Timestamp::from_millis(key.value().1);
                earliest = Some(earliest.map_or(due, |e: Timestamp| e.min(due)));
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

/// What we know of an object under each of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectsView(Vec<ObjectView>);

impl ObjectsView {
    /// The open intent on any key.
    pub fn open(&self) -> Option<&OpenIntent> {
        self.opens().next()
    }

    /// The open intents on all keys; one that stands on two keys comes twice.
    pub fn opens(&self) -> impl Iterator<Item = &OpenIntent> {
        self.0.iter().filter_map(|object| object.open.as_ref())
    }

    /// The external id, where any key has one; the first key wins.
    pub fn external_id(&self) -> Option<&str> {
        self.0.iter().find_map(|object| object.external_id.as_deref())
    }

    /// Whether every key knows the external id, so that nothing is left to record.
    pub fn is_known_under_all_keys(&self) -> bool {
        self.0.iter().all(|object| object.external_id.is_some())
    }

    /// Whether a read said that it is gone, and nothing was found since.
    pub fn is_gone(&self) -> bool {
        self.0.iter().any(|object| object.gone) && self.external_id().is_none()
    }

    /// The newest applied version.
    pub fn version_at(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|object| object.version.map(|v| v.at)).max()
    }
}

fn event_view(id: EventId, event: EventRecord) -> EventView {
    EventView {
        id,
        source: event.source,
        account: event.account,
        topic: event.topic,
        state: event.state,
        received_at: Timestamp::from_millis(event.received_at),
        source_time: event.source_time.map(Timestamp::from_millis),
        correlation: event.correlation,
        secret_label: event.secret_label,
        headers: event.headers,
        items: event.items.into_iter().map(item_view).collect(),
        body_len: event.body_len,
        body_sha256: event.body_sha256,
        trace: TraceId::new(event.trace),
        copies: event.copies,
        last_seen: Timestamp::from_millis(event.last_seen),
        conflicts_with: event.conflicts_with.map(EventId::new),
    }
}

fn item_view(item: ItemRecord) -> ItemView {
    match item {
        ItemRecord::Fact { kind, entity_kind, entity_id, source_time } => {
            ItemView::Fact { kind, entity_kind, entity_id, source_time: source_time.map(Timestamp::from_millis) }
        }
        ItemRecord::Unreadable { at, why } => ItemView::Unreadable { at, why },
    }
}

pub(super) fn intent_view(id: IntentId, intent: IntentRecord) -> IntentView {
    IntentView {
        id,
        task: TaskId::new(intent.task),
        token: LeaseToken::new(intent.token),
        target: intent.target,
        object_kind: intent.object_kind,
        objects: intent.objects.iter().map(|key| Key::from_stored(key)).collect(),
        shape: match intent.shape {
            ShapeRecord::Create => "create",
            ShapeRecord::Set => "set",
        },
        state: match intent.state {
            IntentStateRecord::Open => "open",
            IntentStateRecord::Unknown => "unknown",
            IntentStateRecord::Applied => "applied",
            IntentStateRecord::Refused => "refused",
            IntentStateRecord::Closed => "closed",
        },
        external_id: intent.external_id,
        opened_at: Timestamp::from_millis(intent.opened_at),
        settled_at: intent.settled_at.map(Timestamp::from_millis),
        text: intent.text,
    }
}
