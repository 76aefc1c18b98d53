//! What people see, as JSON: times in RFC 3339 UTC, ids as they are pasted, keys as joined parts.
//!
//! Each type is made from the store's view by the function of its name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::{Mode, NameKind, Timestamp, UsedName};
use crate::listener::CertificateState;
use crate::store;

/// [`Health::status`] when all is well.
pub const OK: &str = "ok";
/// [`Health::status`] while the file is being opened.
pub const OPENING: &str = "opening";
/// [`Health::status`] after a failed write, or when the file cannot be read.
pub const FAILED: &str = "failed";

/// How the appliance stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// [`OK`], [`OPENING`] or [`FAILED`].
    pub status: String,
    /// The version of this build.
    pub version: String,
    /// Age of the oldest unfinished task; 0 without one.
    pub oldest_unfinished_seconds: u64,
    /// How many tasks stand in each state.
    pub tasks: BTreeMap<String, u64>,
    /// Tasks that wait for a person.
    pub dead: u64,
    /// Held targets.
    pub holds: Vec<Hold>,
    /// What a person must look at.
    pub alerts: Vec<Alert>,
    /// Spans of time in which deliveries may have been lost.
    pub open_windows: u64,
    /// Changes outside whose outcome is not recorded.
    pub open_intents: u64,
    /// The served certificate; absent behind proxies and while nobody serves.
    pub certificate: Option<Certificate>,
    /// How far the opening is; absent once it is done.
    pub opening: Option<Opening>,
}

/// What the opening of the file does now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// `repairing`, `checking`, `reading`.
    pub step: String,
    /// How much of it is done.
    pub percent: u8,
}

pub(super) fn opening((step, percent): (store::Step, u8)) -> Opening {
    Opening { step: step.as_str().to_owned(), percent }
}

/// How the served certificate stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// When it was read.
    pub loaded_at: String,
    /// When it ends.
    pub not_after: String,
    /// Why the files on disk are not served; absent while they are.
    pub last_error: Option<String>,
}

pub(super) fn certificate(state: &CertificateState) -> Certificate {
    Certificate {
        loaded_at: state.loaded_at.to_string(),
        not_after: state.not_after.to_string(),
        last_error: state.last_error.clone(),
    }
}

impl Health {
    pub(super) fn of_nothing(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            oldest_unfinished_seconds: 0,
            tasks: BTreeMap::new(),
            dead: 0,
            holds: Vec::new(),
            alerts: Vec::new(),
            open_windows: 0,
            open_intents: 0,
            certificate: None,
            opening: None,
        }
    }
}

/// A name that keys hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// `source`, `target`, `task`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Since when, in milliseconds of the epoch.
    pub since_ms: i64,
}

pub(super) fn name(used: UsedName) -> Name {
    Name { kind: used.kind.as_str().to_owned(), name: used.name, since_ms: used.since.as_millis() }
}

impl Name {
    /// As the configuration is asked about it; `None` for a kind of a later build.
    pub fn used(self) -> Option<UsedName> {
        let kind = NameKind::from_word(&self.kind)?;
        Some(UsedName { kind, name: self.name, since: Timestamp::from_millis(self.since_ms) })
    }
}

/// A held target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The target.
    pub target: String,
    /// Since when.
    pub since: String,
    /// Why, and what to do.
    pub text: String,
}

/// A hold as people see it.
pub(super) fn hold(hold: store::HoldView) -> Hold {
    Hold { target: hold.target, since: hold.since.to_string(), text: hold.text }
}

/// What a person must look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// `signature`.
    pub kind: String,
    /// The source.
    pub source: String,
    /// The first occurrence.
    pub first: String,
    /// The last one.
    pub last: String,
    /// How many there were.
    pub count: u64,
    /// What is wrong and what usually causes it.
    pub text: String,
}

/// An alert as people see it; none when it is resolved.
pub(super) fn alert(alert: store::AlertView) -> Option<Alert> {
    let store::AlertView { kind, source, first, last, count, text, resolved_at } = alert;
    let standing = Alert { kind, source, first: first.to_string(), last: last.to_string(), count, text };
    resolved_at.is_none().then_some(standing)
}

/// A span of time in which deliveries of a source may have been lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The source.
    pub source: String,
    /// `too_large`, `over_quota`, `unavailable`, `signature`.
    pub reason: String,
    /// The first refusal.
    pub from: String,
    /// The last one.
    pub to: String,
    /// How many there were.
    pub count: u64,
    /// Whether no sweep has covered it yet.
    pub open: bool,
}

/// A window as people see it.
pub(super) fn window(window: store::WindowView) -> Window {
    let store::WindowView { source, reason, from, to, count, open } = window;
    Window { source, reason, from: from.to_string(), to: to.to_string(), count, open }
}

/// A part of a list, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// What `before` must be for the next page; absent on the last one.
    pub next: Option<String>,
}

/// A stored delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `e17`.
    pub id: String,
    /// The configured source.
    pub source: String,
    /// The sender's own account.
    pub account: String,
    /// The sender's word for what happened.
    pub topic: String,
    /// `routed`, `unrouted`, `unreadable`, `foreign`, `conflict`.
    pub state: String,
    /// When its body was whole here.
    pub received_at: String,
    /// When the source says it happened.
    pub source_time: Option<String>,
    /// Shared by deliveries of one action.
    pub correlation: Option<String>,
    /// The label of the secret that verified it.
    pub secret: Option<String>,
    /// What is in it.
    pub items: Vec<Item>,
    /// Length of the body.
    pub body_bytes: u32,
    /// SHA-256 of the body, in hex.
    pub body_sha256: String,
    /// The id that runs through to effects.
    pub trace: String,
    /// How often it was repeated.
    pub copies: u32,
    /// The last delivery of it.
    pub last_seen: String,
    /// The event whose id it repeats with other content.
    pub conflicts_with: Option<String>,
}

/// One thing in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A readable item.
    Fact {
        /// `leads.status`.
        kind: String,
        /// `lead`.
        entity_kind: String,
        /// The id in the source's words.
        entity_id: String,
        /// When the source says it changed.
        source_time: Option<String>,
    },
    /// An unreadable item.
    Unreadable {
        /// Where in the body.
        at: String,
        /// Why.
        why: String,
    },
}

/// An event as people see it.
pub(super) fn event(event: store::EventView) -> Event {
    Event {
        id: event.id.to_string(),
        source: event.source,
        account: event.account,
        topic: event.topic,
        state: event.state,
        received_at: event.received_at.to_string(),
        source_time: time(event.source_time),
        correlation: event.correlation,
        secret: event.secret_label,
        items: event.items.into_iter().map(item).collect(),
        body_bytes: event.body_len,
        body_sha256: event.body_sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
        trace: event.trace.to_string(),
        copies: event.copies,
        last_seen: event.last_seen.to_string(),
        conflicts_with: event.conflicts_with.map(|id| id.to_string()),
    }
}

fn item(item: store::ItemView) -> Item {
    match item {
        store::ItemView::Fact { kind, entity_kind, entity_id, source_time } => {
            Item::Fact { kind, entity_kind, entity_id, source_time: time(source_time) }
        }
        store::ItemView::Unreadable { at, why } => Item::Unreadable { at, why },
    }
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// `t42`.
    pub id: String,
    /// The configured name.
    pub name: String,
    /// The kind of work.
    pub kind: String,
    /// What makes it unique.
    pub key: String,
    /// The lane that it stands in.
    pub lane: String,
    /// Its target.
    pub target: String,
    /// What it is about.
    pub entity: String,
    /// `once` or `latest`.
    pub mode: String,
    /// Where it stands.
    pub state: String,
    /// Why it is dead or superseded.
    pub reason: Option<String>,
    /// What the last attempt said.
    pub text: String,
    /// Settled attempts.
    pub attempts: u32,
    /// How often the process died while it ran alone.
    pub losses: u32,
    /// How often a person replayed it.
    pub replays: u32,
    /// When it runs next; absent when ended or running.
    pub due: Option<String>,
    /// Since when it is unfinished; absent when ended.
    pub since: Option<String>,
    /// Until when it is leased; absent unless running.
    pub leased_until: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When its row changed last.
    pub updated_at: String,
    /// The id that runs from delivery to effect.
    pub trace: String,
    /// The event that made it.
    pub first_event: Option<String>,
    /// The newest event that met it.
    pub last_event: Option<String>,
    /// The task whose settlement made it.
    pub parent: Option<String>,
}

/// A task as people see it.
pub(super) fn task(task: store::TaskView) -> Task {
    Task {
        id: task.id.to_string(),
        name: task.name,
        kind: task.kind,
        key: task.key.to_string(),
        lane: task.lane.to_string(),
        target: task.target,
        entity: task.entity,
        mode: match task.mode {
            Mode::Once(_) => "once",
            Mode::Latest => "latest",
        }
        .to_owned(),
        state: task.state.as_str().to_owned(),
        reason: task.reason.map(|reason| reason.to_string()),
        text: task.text,
        attempts: task.attempts.get(),
        losses: task.losses,
        replays: task.replays,
        due: time(task.due),
        since: time(task.since),
        leased_until: time(task.leased_until),
        created_at: task.created_at.to_string(),
        updated_at: task.updated_at.to_string(),
        trace: task.trace.to_string(),
        first_event: task.first_event.map(|id| id.to_string()),
        last_event: task.last_event.map(|id| id.to_string()),
        parent: task.parent.map(|id| id.to_string()),
    }
}

/// One planned change outside, and what it came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// `i3`.
    pub id: String,
    /// The target.
    pub target: String,
    /// `contact`, `lead`, `note`, `task`.
    pub object: String,
    /// The object's keys.
    pub keys: Vec<String>,
    /// `create` or `set`.
    pub shape: String,
    /// `open`, `unknown`, `applied`, `refused`, `closed`.
    pub state: String,
    /// The object's id outside, once applied.
    pub external_id: Option<String>,
    /// When it was written.
    pub opened_at: String,
    /// When its outcome was written.
    pub settled_at: Option<String>,
    /// What the outcome said.
    pub text: String,
}

/// An intent as people see it.
pub(super) fn intent(intent: store::IntentView) -> Intent {
    Intent {
        id: intent.id.to_string(),
        target: intent.target,
        object: intent.object_kind,
        keys: intent.objects.iter().map(ToString::to_string).collect(),
        shape: intent.shape.to_owned(),
        state: intent.state.to_owned(),
        external_id: intent.external_id,
        opened_at: intent.opened_at.to_string(),
        settled_at: time(intent.settled_at),
        text: intent.text,
    }
}

/// All that is known of one thing, from delivery to effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// What happened, in time order.
    pub story: Vec<Line>,
    /// The deliveries, oldest first.
    pub events: Vec<Event>,
    /// The tasks, oldest first.
    pub tasks: Vec<TracedTask>,
    /// Whether older deliveries or tasks were left out.
    pub cut: bool,
}

/// One moment of a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: String,
    /// To what: an event's, task's or intent's id, or who acted.
    pub who: String,
    /// What happened.
    pub text: String,
}

/// A task with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedTask {
    /// The task itself.
    #[serde(flatten)]
    pub task: Task,
    /// The events that met it, oldest first, and how.
    pub met: Vec<Met>,
    /// Its changes outside, oldest first.
    pub intents: Vec<Intent>,
    /// The tasks that its settlements made.
    pub follow_ups: Vec<String>,
    /// The task that stands before it in its lane.
    pub waits_behind: Option<Task>,
}

/// How an event met a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// The event.
    pub event: String,
    /// `made`, `absorbed`, `remembered`, `renewed`, `recorded`.
    pub how: String,
}

/// What starts what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The source.
    pub source: String,
    /// The event kinds.
    pub events: Vec<String>,
    /// The conditions, as text; empty for none.
    pub conditions: String,
    /// The task.
    pub task: String,
    /// The task's kind.
    pub kind: String,
    /// The task's target.
    pub target: String,
    /// The configured start, if there is one.
    pub since: Option<String>,
    /// When it first went live in this file; absent before the first `serve`.
    pub first_live: Option<String>,
}

/// What a wish for many tasks would touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// How many tasks.
    pub count: u64,
    /// The newest of them.
    pub first: Vec<Task>,
}

/// What a wish for one page of tasks came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operated {
    /// How many tasks it was done to.
    pub done: u64,
    /// To which not, and why.
    pub refused: Vec<Refused>,
    /// What `before` must be for the rest; absent when nothing is left.
    pub next: Option<String>,
}

/// A task to which a wish was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The task.
    pub id: String,
    /// Why.
    pub why: String,
}

/// Whether a target was held until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Whether it was.
    pub was_held: bool,
}

/// The newest stored order of some event kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The event.
    pub event: String,
    /// The body of its delivery.
    pub body: serde_json::Value,
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// A time of these views without its milliseconds, for tables and stories.
pub fn seconds(at: &str) -> String {
    at.split_once('.').map_or_else(|| at.to_owned(), |(whole, _)| format!("{whole}Z"))
}
