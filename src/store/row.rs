//! Rows of the file as the rooms above see them, and how they are made from records.

use crate::domain::{Attempt, EventId, IntentId, Key, LeaseToken, Mode, ReasonCode, State, TaskId, Timestamp, TraceId};
use crate::store::intent::{ObjectView, OpenIntent};
use crate::store::record::{EventRecord, IntentRecord, IntentStateRecord, ItemRecord, ShapeRecord, TaskRecord};

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

/// What we know of an object under each of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectsView(pub(super) Vec<ObjectView>);

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

pub(super) fn event_view(id: EventId, event: EventRecord) -> EventView {
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
