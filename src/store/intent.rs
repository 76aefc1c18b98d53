//! Intents and outcomes: what makes an outside change happen once.
//!
//! An open intent belongs to the keys of its object. While its holder's lease
//! lives nobody else opens one; afterwards the next comer settles the doubt. An
//! intent is opened only if the object still stands as its holder's look saw it.
//! An outcome is accepted by the id of its open intent, whatever became of the
//! lease: true knowledge is never thrown away.

use crate::domain::{IntentId, Key, Monotonic, TaskId, Timestamp};
use crate::store::batch::Batch;
use crate::store::body;
use crate::store::error::Broken;
use crate::store::lease::LeaseTicket;
use crate::store::record::{IntentRecord, IntentStateRecord, ObjectRecord, ShapeRecord, StateRecord, VersionRecord};
use crate::store::schema;
use crate::store::writer::Command;

/// What a change writes: the source's time of change and a hash of the mapped fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The source's `updated_at`.
    pub at: Timestamp,
    /// SHA-256 of the mapped fields, cut to 16 bytes.
    pub hash: [u8; 16],
}

impl From<Version> for VersionRecord {
    fn from(version: Version) -> Self {
        Self { at: version.at.as_millis(), hash: version.hash }
    }
}

impl From<VersionRecord> for Version {
    fn from(version: VersionRecord) -> Self {
        Self { at: Timestamp::from_millis(version.at), hash: version.hash }
    }
}

/// One planned change.
#[derive(Debug, Clone)]
pub struct IntentSpec {
    /// Which object, outside of our process, by all of its keys.
    pub object: ObjectRef,
    /// Whether the object is made or set.
    pub shape: Shape,
    /// What is applied once it happened.
    pub version: Option<Version>,
    /// The doubtful intents that were looked after, at most one a key; closed in the same commit.
    pub replaces: Vec<IntentId>,
    /// The reads it was decided on and the request to be sent, as JSON.
    pub evidence: Vec<u8>,
}

/// An object outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRef {
    /// The configured target.
    pub target: String,
    /// `contact`, `lead`, `note`, `task`.
    pub kind: &'static str,
    /// All keys of the object, the most trusted first: a contact with phone and e-mail has two.
    keys: Vec<Key>,
}

impl ObjectRef {
    /// Names an object by its keys, the most trusted first; each key once.
    pub fn new(target: &str, kind: &'static str, keys: Vec<Key>) -> Self {
        Self { target: target.to_owned(), kind, keys }
    }

    /// The keys, the most trusted first.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// The two shapes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Makes the object.
    Create,
    /// Sets fields of it.
    Set,
}

/// Proof that an intent is on disk; only the store makes it, after the commit.
///
/// A client's writing methods take it, so nothing outside is changed without one.
#[derive(Debug)]
pub struct IntentDurable {
    id: IntentId,
    opened: Monotonic,
}

impl IntentDurable {
    pub(super) const fn after_commit(id: IntentId, opened: Monotonic) -> Self {
        Self { id, opened }
    }

    /// The intent's id.
    pub const fn id(&self) -> IntentId {
        self.id
    }

    /// When it was written, on this process's monotonic clock.
    pub const fn opened(&self) -> Monotonic {
        self.opened
    }

    /// For tests of clients, which take the proof and look no further.
    #[cfg(test)]
    pub(crate) const fn for_test() -> Self {
        Self::after_commit(IntentId::new(1), Monotonic::from_start(std::time::Duration::ZERO))
    }
}

/// What the store says to an intent.
#[derive(Debug)]
pub enum Opening {
    /// It is on disk; the change may be sent.
    Durable(IntentDurable),
    /// The object is not as it was when the holder looked: another intent stands
    /// on one of its keys, the doubt was settled, or what was to be made is made.
    Busy,
    /// The lease is not ours any more.
    StaleLease,
}

/// Who opens an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A task under its lease.
    Task(LeaseTicket),
    /// A person at the CLI; it holds nothing beyond its own call.
    Person,
}

impl Holder {
    /// The task; absent for a person.
    pub const fn task(&self) -> Option<TaskId> {
        match self {
            Self::Task(ticket) => Some(ticket.task()),
            Self::Person => None,
        }
    }
}

pub(super) struct Open {
    pub(super) holder: Holder,
    pub(super) spec: IntentSpec,
}

/// Stands for a person in place of a task's id and token; real ones begin at 1.
pub(super) const NO_TASK: u64 = 0;

/// `Opening` before the commit.
pub(super) enum Opened {
    Written(IntentId, Monotonic),
    Busy,
    StaleLease,
}

impl Command for Open {
    type Reply = Opened;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Opened, Broken> {
        if !batch.may_open(self.holder)? {
            return Ok(Opened::StaleLease);
        }
        let (task, token) = match self.holder {
            Holder::Task(ticket) => (ticket.task().get(), ticket.token().get()),
            Holder::Person => (NO_TASK, NO_TASK),
        };
        let spec = self.spec;
        let mut objects = Vec::with_capacity(spec.object.keys.len());
        for key in &spec.object.keys {
            objects.push((key.as_bytes().to_vec(), batch.object(key.as_bytes())?));
        }
        if !still_holds(&spec, &objects) {
            return Ok(Opened::Busy);
        }
        for old in &spec.replaces {
            batch.close(old.get(), IntentStateRecord::Closed, "looked for after the doubt, and decided anew")?;
        }
        let id = batch.next(schema::META_LAST_INTENT)?;
        let intent = IntentRecord {
            objects: objects.iter().map(|(key, _)| key.clone()).collect(),
            task,
            token,
            target: spec.object.target,
            object_kind: spec.object.kind.to_owned(),
            shape: match spec.shape {
                Shape::Create => ShapeRecord::Create,
                Shape::Set => ShapeRecord::Set,
            },
            version: spec.version.map(VersionRecord::from),
            opened_at: batch.now.as_millis(),
            opened_mono_ms: u64::try_from(batch.monotonic.since_start().as_millis()).unwrap_or(u64::MAX),
            process: batch.process,
            state: IntentStateRecord::Open,
            external_id: None,
            settled_at: None,
            text: String::new(),
        };
        batch.put_intent(id, &intent)?;
        batch.tables.task_intents.insert((intent.task, id), ())?;
        batch.tables.doubts.insert(id, ())?;
        batch.tables.evidence.insert(id, body::pack(&spec.evidence).as_slice())?;
        for (key, object) in objects {
            batch.put_object(&key, &ObjectRecord { open: Some(id), ..object })?;
        }
        batch.count("intents/open", 1)?;
        Ok(Opened::Written(IntentId::new(id), batch.monotonic))
    }
}

/// Whether the objects stand as their holder's look saw them: nothing is open on
/// them but the doubt it looked after, and what it wants to make is not yet made.
///
/// Between a look and this commit another task may have made the object or
/// settled the doubt; the look is out of date then.
fn still_holds(spec: &IntentSpec, objects: &[(Vec<u8>, ObjectRecord)]) -> bool {
    let open: Vec<IntentId> = objects.iter().filter_map(|(_, object)| object.open).map(IntentId::new).collect();
    let is_made = objects.iter().any(|(_, object)| object.external_id.is_some());
    let is_open_as_seen =
        open.iter().all(|id| spec.replaces.contains(id)) && spec.replaces.iter().all(|id| open.contains(id));
    is_open_as_seen && !(spec.shape == Shape::Create && is_made)
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It happened; the object has this id outside.
    Applied {
        /// The id in the target's words.
        external_id: String,
    },
    /// The target refused it; nothing changed.
    Refused {
        /// Why.
        text: String,
    },
    /// It was sent, and nobody can say yet; the intent stays open.
    Unknown {
        /// What is known.
        text: String,
    },
    /// The doubt was settled by a look, and the task decides anew.
    Closed,
}

impl Outcome {
    /// The word in metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Refused { .. } => "refused",
            Self::Unknown { .. } => "unknown",
            Self::Closed => "closed",
        }
    }
}

pub(super) struct RecordOutcome {
    pub(super) intent: IntentId,
    pub(super) outcome: Outcome,
}

impl Command for RecordOutcome {
    /// Whether the intent was open, so that the outcome counts.
    type Reply = bool;

    fn apply(self, batch: &mut Batch<'_>) -> Result<bool, Broken> {
        let id = self.intent.get();
        let Some(intent) = batch.intent(id)?.filter(IntentRecord::is_open) else { return Ok(false) };
        match self.outcome {
            Outcome::Unknown { text } => {
                batch.put_intent(id, &IntentRecord { state: IntentStateRecord::Unknown, text, ..intent })?;
            }
            Outcome::Refused { text } => batch.close(id, IntentStateRecord::Refused, &text)?,
            Outcome::Closed => batch.close(id, IntentStateRecord::Closed, "settled by a look")?,
            Outcome::Applied { external_id } => {
                batch.close(id, IntentStateRecord::Applied, "")?;
                let applied = IntentRecord {
                    external_id: Some(external_id.clone()),
                    ..batch.intent(id)?.ok_or_else(|| Broken::Dangling("intents".to_owned()))?
                };
                batch.put_intent(id, &applied)?;
                let keys: Vec<&[u8]> = intent.objects.iter().map(Vec::as_slice).collect();
                batch.apply_object(&intent.target, &intent.object_kind, &keys, &external_id, intent.version)?;
            }
        }
        Ok(true)
    }
}

/// An object was found outside: ours from an earlier attempt, or made by someone else.
pub(super) struct RecordFound {
    pub(super) object: ObjectRef,
    pub(super) external_id: String,
}

impl Command for RecordFound {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        let mut unknown = Vec::new();
        for key in &self.object.keys {
            // A key that leads elsewhere stays: a phone and an e-mail may belong to two contacts.
            if batch.object(key.as_bytes())?.external_id.is_none() {
                unknown.push(key.as_bytes());
            }
        }
        batch.apply_object(&self.object.target, self.object.kind, &unknown, &self.external_id, None)
    }
}

/// A read said that an object is gone.
pub(super) struct RecordGone {
    pub(super) object: ObjectRef,
}

impl Command for RecordGone {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        for key in &self.object.keys {
            let object = batch.object(key.as_bytes())?;
            if object.external_id.is_some() {
                batch.put_object(key.as_bytes(), &ObjectRecord { external_id: None, gone: true, ..object })?;
            }
        }
        Ok(())
    }
}

impl IntentRecord {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, IntentStateRecord::Open | IntentStateRecord::Unknown)
    }
}

impl Batch<'_> {
    fn may_open(&self, holder: Holder) -> Result<bool, Broken> {
        let Holder::Task(ticket) = holder else { return Ok(true) };
        let lease = self.held_lease(ticket)?;
        Ok(lease.is_some_and(|(_, lease)| lease.until > self.now.as_millis()))
    }

    /// Ends an open intent and frees its keys.
    fn close(&mut self, id: u64, state: IntentStateRecord, text: &str) -> Result<(), Broken> {
        let intent = self.intent(id)?.ok_or_else(|| Broken::Dangling(format!("intent {id}")))?;
        for key in &intent.objects {
            let object = self.object(key)?;
            if object.open == Some(id) {
                self.put_object(key, &ObjectRecord { open: None, ..object })?;
            }
        }
        self.tables.doubts.remove(id)?;
        self.count("intents/open", -1)?;
        let settled_at = Some(self.now.as_millis());
        self.put_intent(id, &IntentRecord { state, text: text.to_owned(), settled_at, ..intent })
    }

    fn apply_object(
        &mut self,
        target: &str,
        kind: &str,
        keys: &[&[u8]],
        external_id: &str,
        version: Option<VersionRecord>,
    ) -> Result<(), Broken> {
        for key in keys {
            let object = self.object(key)?;
            let version = version.or(object.version);
            let known = Some(external_id.to_owned());
            self.put_object(key, &ObjectRecord { external_id: known, version, gone: false, ..object })?;
            self.tables.external.insert((format!("{target}/{kind}").as_str(), external_id), *key)?;
        }
        Ok(())
    }
}

/// What the effect room must know of an object before it acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectView {
    /// The object's id outside, if a commit recorded it and no read denied it.
    pub external_id: Option<String>,
    /// What was last applied.
    pub version: Option<Version>,
    /// A read said that it is gone.
    pub gone: bool,
    /// The open intent on one of its keys.
    pub open: Option<OpenIntent>,
}

/// An open intent, as the next comer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// Its id.
    pub id: IntentId,
    /// The task that opened it.
    pub task: TaskId,
    /// Whether its holder's lease lives: wait, it is being worked on.
    pub is_held: bool,
    /// When it was opened on this process's monotonic clock; absent when an
    /// earlier process opened it, which counts as the start of this one.
    pub opened: Option<Monotonic>,
}

pub(super) fn is_held(holder: Option<(StateRecord, Option<u64>)>, token: u64) -> bool {
    holder.is_some_and(|(state, lease)| state == StateRecord::Running && lease == Some(token))
}
