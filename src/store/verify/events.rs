//! Events: their bodies, their dedup entries, and what people find them by.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};
use sha2::{Digest as _, Sha256};

use crate::domain::EventId;
use crate::store::accept::{EventState, entity_id, entity_key};
use crate::store::body;
use crate::store::dedup::KeyHash;
use crate::store::error::Broken;
use crate::store::open::split_dedup;
use crate::store::record::{EventRecord, ItemRecord};
use crate::store::schema;
use crate::store::verify::{Ids, Scan, exists, hashed, named};

pub(super) fn events(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let indexes = Indexes::open(scan.txn)?;
    for row in scan.txn.open_table(schema::EVENTS)?.iter()? {
        let (id, value) = row?;
        let (id, name) = (id.value(), EventId::new(id.value()));
        scan.given(schema::META_LAST_EVENT, id);
        let Some(event) = scan.decode::<EventRecord>(name, value.value()) else { continue };
        scan.sum(format!("events/{}", event.state), 1);
        scan.sum("events/copies".to_owned(), u64::from(event.copies));
        if let Some(wrong) = indexes.body_is_wrong(id, &event)? {
            scan.findings.add("bodies", name, wrong);
        }
        scan.must(indexes.finds(id, &event)?, "events", name, "an entity in it does not lead to it");
        let first = event.conflicts_with.map(|first| exists(&indexes.events, first)).transpose()?;
        scan.must(first != Some(false), "events", name, "the event that it conflicts with is absent");
    }
    Ok(())
}

struct Indexes {
    events: Ids,
    bodies: Ids,
    entity_events: ReadOnlyTable<(&'static [u8], u64), (i64, bool)>,
    entities: ReadOnlyTable<(&'static str, &'static [u8]), ()>,
}

impl Indexes {
    fn open(txn: &ReadTransaction) -> Result<Self, Broken> {
        Ok(Self {
            events: txn.open_table(schema::EVENTS)?,
            bodies: txn.open_table(schema::BODIES)?,
            entity_events: txn.open_table(schema::ENTITY_EVENTS)?,
            entities: txn.open_table(schema::ENTITIES)?,
        })
    }

    /// What is wrong with the body of an event.
    fn body_is_wrong(&self, id: u64, event: &EventRecord) -> Result<Option<String>, Broken> {
        let Some(stored) = self.bodies.get(id)? else { return Ok(Some("it is absent".to_owned())) };
        let body = match body::unpack(stored.value()) {
            Ok(body) => body,
            Err(malformed) => return Ok(Some(format!("it cannot be unpacked: {}", malformed.why))),
        };
        if u32::try_from(body.len()).ok() != Some(event.body_len) {
            return Ok(Some("its length is not the event's".to_owned()));
        }
        let is_same = <[u8; 32]>::from(Sha256::digest(&body)) == event.body_sha256;
        Ok((!is_same).then(|| "its hash is not the event's".to_owned()))
    }

    /// Whether everything in an event leads to it; a conflict is found by nothing, since it makes no task.
    fn finds(&self, id: u64, event: &EventRecord) -> Result<bool, Broken> {
        if event.state == EventState::Conflict.as_str() {
            return Ok(true);
        }
        for item in &event.items {
            let Some(key) = key_of(event, item) else { continue };
            let is_found = exists(&self.entity_events, (key.as_bytes(), id))?;
            let ItemRecord::Fact { entity_id: text, .. } = item else { continue };
            if !is_found || !exists(&self.entities, (entity_id(text).as_str(), key.as_bytes()))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn key_of(event: &EventRecord, item: &ItemRecord) -> Option<crate::domain::Key> {
    match item {
        ItemRecord::Fact { entity_kind, entity_id, .. } => {
            Some(entity_key(&event.source, &event.account, entity_kind, entity_id))
        }
        ItemRecord::Unreadable { .. } => None,
    }
}

/// The content is looked at with the event; here only bodies that nobody owns are left.
pub(super) fn bodies(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let events = scan.txn.open_table(schema::EVENTS)?;
    for row in scan.txn.open_table(schema::BODIES)?.iter()? {
        scan.row("bodies");
        let id = row?.0.value();
        scan.must(exists(&events, id)?, "bodies", EventId::new(id), "its event is absent");
    }
    Ok(())
}

pub(super) fn dedup(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let events = scan.txn.open_table(schema::EVENTS)?;
    for row in scan.txn.open_table(schema::DEDUP)?.iter()? {
        scan.row("dedup");
        let (id, value) = row?;
        let (id, name) = (id.value(), EventId::new(id.value()));
        let Ok((hash, _)) = split_dedup(value.value()) else {
            scan.findings.add("dedup", name, "is malformed: its length");
            continue;
        };
        let Some(event) = named::<EventRecord>(&events, id)? else {
            scan.findings.add("dedup", name, "its event is absent");
            continue;
        };
        let expected = event.dedup_key.as_deref().map(|key| match event.conflicts_with {
            None => KeyHash::of(key),
            Some(_) => KeyHash::of_conflict(key, &event.fingerprint),
        });
        scan.must(expected == Some(hash), "dedup", name, "its hash is not that of the event's key");
    }
    Ok(())
}

pub(super) fn entity_events(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let events = scan.txn.open_table(schema::EVENTS)?;
    for row in scan.txn.open_table(schema::ENTITY_EVENTS)?.iter()? {
        scan.row("entity_events");
        let key = row?.0;
        let (entity, id) = key.value();
        let event = named::<EventRecord>(&events, id)?;
        let holds = event.is_some_and(|event| {
            event.items.iter().any(|item| key_of(&event, item).is_some_and(|key| key.as_bytes() == entity))
        });
        scan.must(holds, "entity_events", EventId::new(id), "it is absent or without that entity");
    }
    Ok(())
}

pub(super) fn entities(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let events = scan.txn.open_table(schema::ENTITY_EVENTS)?;
    for row in scan.txn.open_table(schema::ENTITIES)?.iter()? {
        scan.row("entities");
        let key = row?.0;
        let (_, entity) = key.value();
        let has_event = events.range((entity, 0)..=(entity, u64::MAX))?.next().transpose()?.is_some();
        scan.must(has_event, "entities", hashed(entity), "it has no event");
    }
    Ok(())
}

pub(super) fn aliases(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let events = scan.txn.open_table(schema::EVENTS)?;
    for row in scan.txn.open_table(schema::ALIASES)?.iter()? {
        scan.row("aliases");
        let key = row?.0;
        let (_, id) = key.value();
        scan.must(exists(&events, id)?, "aliases", EventId::new(id), "an alias names it, and it is absent");
    }
    Ok(())
}
