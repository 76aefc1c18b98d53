//! The door of the inbox: one commit stores a delivery, its dedup entry and its tasks.

use std::any::Any;

use redb::ReadableTable as _;
use sha2::{Digest as _, Sha256};

use crate::domain::{EventId, Key, KeyBuilder, NameKind, TaskId, TaskSeed, Timestamp, TraceId};
use crate::source::{Item, Reading, VerifiedDelivery};
use crate::store::batch::Batch;
use crate::store::body;
use crate::store::dedup::KeyHash;
use crate::store::error::Broken;
use crate::store::queue::{Meeting, Origin};
use crate::store::record::{EventRecord, ItemRecord};
use crate::store::schema;
use crate::store::writer::Command;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventState {
    /// At least one route wanted it.
    Routed,
    /// No route wanted it; usually a superfluous subscription.
    Unrouted,
    /// Nothing in it can be read.
    Unreadable,
    /// It is correctly proven and of an account that is not configured.
    Foreign,
    /// A known delivery id with other content; a person looks.
    Conflict,
}

impl EventState {
    /// The word in records, counts and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Routed => "routed",
            Self::Unrouted => "unrouted",
            Self::Unreadable => "unreadable",
            Self::Foreign => "foreign",
            Self::Conflict => "conflict",
        }
    }
}

/// A task that an event starts, and when the source says its item changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedTask {
    /// The task.
    pub seed: TaskSeed,
    /// The source time of the item that it came from.
    pub source_time: Option<Timestamp>,
}

/// Everything that one commit stores for a delivery. Made on the door's side,
/// so that hashing and compression stay out of the writer.
#[derive(Debug)]
pub struct AcceptCommand {
    state: EventState,
    event: EventRecord,
    dedup: Option<Dedup>,
    packed_body: Vec<u8>,
    entities: Vec<EntityRow>,
    aliases: Vec<String>,
    tasks: Vec<RoutedTask>,
    #[expect(dead_code, reason = "it is held, and goes with the command")]
    place: Option<Place>,
}

/// Whatever takes room as long as a delivery is worked on.
type Place = Box<dyn Any + Send>;

#[derive(Debug)]
struct Dedup {
    hash: KeyHash,
    conflict: KeyHash,
    lapses_at: Timestamp,
}

#[derive(Debug)]
struct EntityRow {
    id: String,
    key: Key,
    source_time: Option<Timestamp>,
    is_whole: bool,
}

/// The key under which an entity of a source stands in the file.
pub fn entity_key(source: &str, account: &str, entity_kind: &str, entity_id: &str) -> Key {
    KeyBuilder::new().part(source).part(account).part(entity_kind).part(entity_id).finish()
}

/// The text under which an entity is found; a longer id is cut.
pub(super) fn entity_id(id: &str) -> String {
    id.chars().take(100).collect()
}

impl AcceptCommand {
    /// Puts the command together.
    ///
    /// `aliases` are further texts by which people look for the event: an order
    /// name, the last digits of a phone.
    pub fn new(
        delivery: &VerifiedDelivery,
        reading: &Reading,
        state: EventState,
        trace: TraceId,
        tasks: Vec<RoutedTask>,
        aliases: Vec<String>,
    ) -> Self {
        let body = delivery.body();
        let received_at = delivery.received_at();
        let dedup = reading.identity.as_ref().map(|identity| Dedup {
            hash: KeyHash::of(identity.key.as_bytes()),
            conflict: KeyHash::of_conflict(identity.key.as_bytes(), &identity.fingerprint),
            lapses_at: received_at.plus(identity.horizon),
        });
        let event = EventRecord {
            source: delivery.source().to_owned(),
            account: reading.account.clone(),
            topic: reading.topic.clone(),
            state: state.as_str().to_owned(),
            received_at: received_at.as_millis(),
            source_time: reading.source_time.map(Timestamp::as_millis),
            correlation: reading.correlation.clone(),
            dedup_key: reading.identity.as_ref().map(|i| i.key.as_bytes().to_vec()),
            fingerprint: reading.identity.as_ref().map_or([0; 16], |i| i.fingerprint),
            secret_label: delivery.secret_label().map(str::to_owned),
            headers: reading.headers.clone(),
            items: reading.items.iter().map(item_record).collect(),
            body_len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            body_sha256: Sha256::digest(body).into(),
            trace: trace.get(),
            copies: 0,
            last_seen: received_at.as_millis(),
            conflicts_with: None,
        };
        let entities = reading.items.iter().filter_map(|item| entity_row(delivery.source(), &reading.account, item));
        Self {
            entities: entities.collect(),
            packed_body: body::pack(body),
            event,
            dedup,
            aliases,
            tasks,
            state,
            place: None,
        }
    }

    /// Keeps what takes room until the command is carried out, though its asker may be gone by then.
    #[must_use]
    pub fn in_place(self, place: impl Any + Send) -> Self {
        Self { place: Some(Box::new(place)), ..self }
    }

    /// What the event is, unless the commit finds a repeat.
    pub const fn state(&self) -> EventState {
        self.state
    }
}

fn item_record(item: &Item) -> ItemRecord {
    match item {
        Item::Fact(fact) => ItemRecord::Fact {
            kind: fact.kind.clone(),
            entity_kind: fact.entity_kind.clone(),
            entity_id: fact.entity_id.clone(),
            source_time: fact.source_time.map(Timestamp::as_millis),
        },
        Item::Unreadable { at, why } => ItemRecord::Unreadable { at: at.clone(), why: why.clone() },
    }
}

fn entity_row(source: &str, account: &str, item: &Item) -> Option<EntityRow> {
    let Item::Fact(fact) = item else { return None };
    Some(EntityRow {
        id: entity_id(&fact.entity_id),
        key: entity_key(source, account, &fact.entity_kind, &fact.entity_id),
        source_time: fact.source_time,
        is_whole: fact.is_whole,
    })
}

/// Says that a delivery is durable; only a commit makes one, and only from it
/// may a 2xx be made.
#[derive(Debug)]
pub struct Accepted {
    receipt: Receipt,
}

/// What the commit found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// A new event, and how it met its tasks.
    New {
        /// The event.
        event: EventId,
        /// Its tasks.
        tasks: Vec<(TaskId, Meeting)>,
    },
    /// A repeat of a known delivery.
    Duplicate {
        /// The event it repeats.
        event: EventId,
    },
    /// A known delivery id with other content, kept as an event of its own.
    Conflict {
        /// The event that keeps the other content.
        event: EventId,
    },
}

impl Accepted {
    /// Wraps what a command said; called by the handle after the commit.
    pub(super) const fn durable(receipt: Receipt) -> Self {
        Self { receipt }
    }

    /// What the commit found.
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

impl Command for AcceptCommand {
    type Reply = Receipt;

    fn apply(self, batch: &mut Batch<'_>) -> Result<Receipt, Broken> {
        let Some(dedup) = &self.dedup else { return self.store_new(batch) };
        let Some(known) = batch.known(dedup.hash)? else { return self.store_new(batch) };
        let first = batch.event(known.get())?.ok_or_else(|| Broken::Dangling("dedup".to_owned()))?;
        if first.fingerprint == self.event.fingerprint {
            batch.count_copy(known, first, self.event.received_at)?;
            return Ok(Receipt::Duplicate { event: known });
        }
        if let Some(kept) = batch.known(dedup.conflict)? {
            let record = batch.event(kept.get())?.ok_or_else(|| Broken::Dangling("dedup".to_owned()))?;
            batch.count_copy(kept, record, self.event.received_at)?;
            return Ok(Receipt::Conflict { event: kept });
        }
        self.store_conflict(batch, known)
    }
}

impl AcceptCommand {
    fn store_new(self, batch: &mut Batch<'_>) -> Result<Receipt, Broken> {
        let id = EventId::new(batch.next(schema::META_LAST_EVENT)?);
        if let Some(dedup) = &self.dedup {
            batch.learn(dedup.hash, id, dedup.lapses_at)?;
        }
        self.write_event(batch, id)?;
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let origin = Origin { event: Some(id), source_time: task.source_time, parent: None };
            tasks.push(batch.seed_task(&task.seed, origin)?);
        }
        Ok(Receipt::New { event: id, tasks })
    }

    /// Keeps the other body under a known id, for a person; it makes no task.
    fn store_conflict(mut self, batch: &mut Batch<'_>, first: EventId) -> Result<Receipt, Broken> {
        let id = EventId::new(batch.next(schema::META_LAST_EVENT)?);
        if let Some(dedup) = &self.dedup {
            batch.learn(dedup.conflict, id, dedup.lapses_at)?;
        }
        self.event.state = EventState::Conflict.as_str().to_owned();
        self.event.conflicts_with = Some(first.get());
        self.entities.clear();
        self.write_event(batch, id)?;
        Ok(Receipt::Conflict { event: id })
    }

    fn write_event(&self, batch: &mut Batch<'_>, id: EventId) -> Result<(), Broken> {
        batch.use_name(NameKind::Source, &self.event.source)?;
        batch.put_event(id.get(), &self.event)?;
        batch.tables.bodies.insert(id.get(), self.packed_body.as_slice())?;
        batch.count(&format!("events/{}", self.event.state), 1)?;
        for row in &self.entities {
            let time = row.source_time.map_or(i64::MIN, Timestamp::as_millis);
            batch.tables.entity_events.insert((row.key.as_bytes(), id.get()), (time, row.is_whole))?;
            batch.tables.entities.insert((row.id.as_str(), row.key.as_bytes()), ())?;
        }
        for alias in &self.aliases {
            batch.tables.aliases.insert((alias.as_str(), id.get()), ())?;
        }
        Ok(())
    }
}

impl Batch<'_> {
    /// The event with this key; the short fingerprint in memory is confirmed on disk.
    fn known(&self, hash: KeyHash) -> Result<Option<EventId>, Broken> {
        let Some(event) = self.dedup.find(hash, self.now) else { return Ok(None) };
        let stored = self.tables.dedup.get(event.get())?;
        let confirmed = stored.is_some_and(|row| row.value().starts_with(&hash.bytes()));
        Ok(confirmed.then_some(event))
    }

    fn learn(&mut self, hash: KeyHash, event: EventId, lapses_at: Timestamp) -> Result<(), Broken> {
        let mut row = hash.bytes().to_vec();
        row.extend_from_slice(&lapses_at.as_millis().to_be_bytes());
        self.tables.dedup.insert(event.get(), row.as_slice())?;
        self.dedup.add(hash, event, lapses_at);
        Ok(())
    }

    fn count_copy(&mut self, id: EventId, mut event: EventRecord, received_at: i64) -> Result<(), Broken> {
        event.copies = event.copies.saturating_add(1);
        event.last_seen = event.last_seen.max(received_at);
        self.count("events/copies", 1)?;
        self.put_event(id.get(), &event)
    }
}
