//! Records as they lie on disk, and the way there and back.
//!
//! Each struct is one version; the enum around it on disk numbers the versions
//! by its first byte. To change a shape: keep the old struct in `mod v1`, append
//! a variant, migrate in `decode` (`tests/migration.rs` does it once). Fields are plain types; the rooms above see
//! the views of `view.rs`.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::domain::{Memory, Mode, OnReturn, State};

/// Bytes of the file that are not what the schema says; names the table, not the content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a record of {what} is malformed: {why}")]
pub struct Malformed {
    pub(super) what: &'static str,
    pub(super) why: String,
}

/// A value with versions.
pub(super) trait Record: Serialize + DeserializeOwned {
    const WHAT: &'static str;

    fn encode(&self) -> Result<Vec<u8>, Malformed> {
        #[derive(Serialize)]
        enum Versions<'a, T> {
            V1(&'a T),
        }
        encode_version::<Self>(&Versions::V1(self))
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        enum Versions<T> {
            V1(T),
        }
        let Versions::V1(record) = whole::<Self, _>(bytes)?;
        Ok(record)
    }
}

/// The bytes of one version of `T`.
pub(super) fn encode_version<T: Record>(version: &impl Serialize) -> Result<Vec<u8>, Malformed> {
    postcard::to_stdvec(version).map_err(|e| malformed::<T>(&e))
}

/// Whichever version of `T` the bytes hold; all of them.
pub(super) fn whole<T: Record, V: DeserializeOwned>(bytes: &[u8]) -> Result<V, Malformed> {
    let (version, rest) = postcard::take_from_bytes(bytes).map_err(|e| malformed::<T>(&e))?;
    if rest.is_empty() { Ok(version) } else { Err(malformed::<T>(&"bytes are left over")) }
}

fn malformed<T: Record>(why: &dyn std::fmt::Display) -> Malformed {
    Malformed { what: T::WHAT, why: why.to_string() }
}

/// All of an event but its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EventRecord {
    pub source: String,
    pub account: String,
    pub topic: String,
    /// `EventState` as its word.
    pub state: String,
    pub received_at: i64,
    pub source_time: Option<i64>,
    pub correlation: Option<String>,
    /// The sender's identity of the delivery; absent when it gives none.
    pub dedup_key: Option<Vec<u8>>,
    pub fingerprint: [u8; 16],
    /// The label of the secret that verified it; absent where nothing is signed.
    pub secret_label: Option<String>,
    pub headers: Vec<(String, String)>,
    pub items: Vec<ItemRecord>,
    pub body_len: u32,
    pub body_sha256: [u8; 32],
    pub trace: u128,
    /// Repeats of the same delivery, and when the last came.
    pub copies: u32,
    pub last_seen: i64,
    /// The event whose key it repeats with other content (state `conflict`).
    pub conflicts_with: Option<u64>,
}

/// One thing in a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ItemRecord {
    Fact { kind: String, entity_kind: String, entity_id: String, source_time: Option<i64> },
    Unreadable { at: String, why: String },
}

/// A task row: small, rewritten at every step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    pub name: String,
    pub kind: String,
    pub key: Vec<u8>,
    pub lane: Vec<u8>,
    pub target: String,
    pub entity: String,
    pub mode: ModeRecord,
    pub state: StateRecord,
    /// Set while unfinished, zero otherwise.
    pub due: i64,
    /// The target asked not to be called sooner; no event brings the task forward past it. Zero for no such wish.
    pub not_before: i64,
    /// The place in its lane; absent when ended.
    pub place: Option<u64>,
    /// Since when it is unfinished; absent when ended.
    pub since: Option<i64>,
    pub attempts: u32,
    /// How often the process died while it ran alone.
    pub losses: u32,
    pub lease: Option<LeaseRecord>,
    pub memory_event: bool,
    pub memory_replay: bool,
    /// Why it is dead or superseded; absent otherwise.
    pub reason: Option<String>,
    /// What the last attempt said.
    pub text: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub trace: u128,
    /// The event that made it, and the newest that met it.
    pub first_event: Option<u64>,
    pub last_event: Option<u64>,
    /// The newest source time of its events: a fresh read older than it lags.
    pub newest_source_time: Option<i64>,
    /// The task whose settlement made it.
    pub parent: Option<u64>,
    pub replays: u32,
}

/// A lease; set while running, absent otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeaseRecord {
    pub token: u64,
    pub until: i64,
    pub from: StateRecord,
    pub process: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StateRecord {
    New,
    Running,
    Retry,
    Done,
    Superseded,
    Dead,
}

impl From<State> for StateRecord {
    fn from(state: State) -> Self {
        match state {
            State::New => Self::New,
            State::Running => Self::Running,
            State::Retry => Self::Retry,
            State::Done => Self::Done,
            State::Superseded => Self::Superseded,
            State::Dead => Self::Dead,
        }
    }
}

impl From<StateRecord> for State {
    fn from(state: StateRecord) -> Self {
        match state {
            StateRecord::New => Self::New,
            StateRecord::Running => Self::Running,
            StateRecord::Retry => Self::Retry,
            StateRecord::Done => Self::Done,
            StateRecord::Superseded => Self::Superseded,
            StateRecord::Dead => Self::Dead,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ModeRecord {
    OnceKeep,
    Latest,
}

impl From<Mode> for ModeRecord {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Once(OnReturn::Keep) => Self::OnceKeep,
            Mode::Latest => Self::Latest,
        }
    }
}

impl From<ModeRecord> for Mode {
    fn from(mode: ModeRecord) -> Self {
        match mode {
            ModeRecord::OnceKeep => Self::Once(OnReturn::Keep),
            ModeRecord::Latest => Self::Latest,
        }
    }
}

impl TaskRecord {
    pub(super) const fn memory(&self) -> Memory {
        Memory { event: self.memory_event, replay: self.memory_replay }
    }
}

/// What a task key leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    pub task: u64,
    /// Never cleared.
    pub spent: bool,
}

/// One planned change outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IntentRecord {
    /// A contact with phone and e-mail has two.
    pub objects: Vec<Vec<u8>>,
    pub task: u64,
    pub token: u64,
    pub target: String,
    /// `contact`, `lead`, `note`: for people and the external index.
    pub object_kind: String,
    pub shape: ShapeRecord,
    /// What is applied once it happened.
    pub version: Option<VersionRecord>,
    pub opened_at: i64,
    /// Monotonic milliseconds of the process with that number.
    pub opened_mono_ms: u64,
    pub process: u64,
    pub state: IntentStateRecord,
    pub external_id: Option<String>,
    /// When the outcome was recorded, and what it said.
    pub settled_at: Option<i64>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ShapeRecord {
    Create,
    Set,
}

/// What a `Set` writes: the source's time of change and a hash of the mapped fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VersionRecord {
    pub at: i64,
    pub hash: [u8; 16],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum IntentStateRecord {
    Open,
    /// Sent, and the answer is missing or says nothing; still open.
    Unknown,
    Applied,
    Refused,
    /// Looked for after the doubt and not found, or decided anew.
    Closed,
}

/// What we know of one object outside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectRecord {
    pub open: Option<u64>,
    pub external_id: Option<String>,
    pub version: Option<VersionRecord>,
    /// A read said that the object is gone; until it is found again.
    pub gone: bool,
}

/// A paused target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HoldRecord {
    pub since: i64,
    pub text: String,
    pub task: Option<u64>,
}

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuditRecord {
    pub at: i64,
    pub who: String,
    pub action: String,
    pub what: String,
}

/// A span of time in which deliveries may have been lost; source, reason and begin are its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WindowRecord {
    pub to: i64,
    pub count: u64,
    /// Until a sweep has covered it.
    pub open: bool,
}

/// What a person must look at; kind and source are its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AlertRecord {
    pub first: i64,
    pub last: i64,
    pub count: u64,
    pub text: String,
    /// Absent while it stands.
    pub resolved_at: Option<i64>,
}

macro_rules! records {
    ($($name:ident = $what:literal),* $(,)?) => {
        $(impl Record for $name { const WHAT: &'static str = $what; })*
    };
}

records! {
    EventRecord = "events",
    TaskRecord = "tasks",
    KeyRecord = "task_keys",
    IntentRecord = "intents",
    ObjectRecord = "objects",
    HoldRecord = "holds",
    AuditRecord = "audit",
    WindowRecord = "windows",
    AlertRecord = "alerts",
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes stand in users' files: a change of a struct without a new version fails here.
    #[test]
    fn golden_bytes_of_small_records() {
        let key = KeyRecord { task: 300, spent: true };
        assert_eq!(key.encode().unwrap(), [0, 0xac, 2, 1]);
        let object = ObjectRecord {
            open: Some(7),
            external_id: Some("50".to_owned()),
            version: Some(VersionRecord { at: -1, hash: [9; 16] }),
            gone: false,
        };
        let mut expected = vec![0, 1, 7, 1, 2, b'5', b'0', 1, 1];
        expected.extend([9; 16]);
        expected.push(0);
        assert_eq!(object.encode().unwrap(), expected);
        assert_eq!(ObjectRecord::decode(&expected).unwrap(), object);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = KeyRecord { task: 1, spent: false }.encode().unwrap();
        let mut longer = good.clone();
        longer.push(0);
        let mut newer = good.clone();
        newer[0] = 1;
        for bytes in [&longer[..], &newer[..], &good[..good.len() - 1], &[][..]] {
            assert!(KeyRecord::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
