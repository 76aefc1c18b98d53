//! The dedup index in memory: which delivery keys are known.
//!
//! Durable as an append-only table, rebuilt at the opening. It maps a 64-bit
//! fingerprint of the key to the event; the writer confirms a hit against the
//! hash on disk. It learns a key only after its commit; keys of the batch in
//! work stand in an overlay. It is bounded: entries lapse with their sender's
//! retry horizon, and above [`KEYS_MAX`] the oldest go first. Longer protection
//! is the business of task keys and markers.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest as _, Sha256};

use crate::domain::{EventId, Timestamp};

/// On a machine of 2 GB: by arithmetic about 140 MB, 25 bytes in each of 2^22
/// slots of the map and 16 in each of 2^21 places of the order of arrival.
const KEYS_MAX: usize = 2_000_000;

/// SHA-256 of a dedup key, cut to 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash([u8; 16]);

impl KeyHash {
    /// The hash of a delivery's key.
    pub(super) fn of(key: &[u8]) -> Self {
        Self::cut(&Sha256::digest(key))
    }

    /// The hash of a key together with other content under it (a conflict).
    pub(super) fn of_conflict(key: &[u8], fingerprint: &[u8; 16]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"conflict");
        hash.update(key);
        hash.update(fingerprint);
        Self::cut(&hash.finalize())
    }

    fn cut(hash: &[u8]) -> Self {
        let mut out = [0; 16];
        out.iter_mut().zip(hash).for_each(|(to, from)| *to = *from);
        Self(out)
    }

    pub(super) const fn bytes(&self) -> [u8; 16] {
        self.0
    }

    pub(super) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    event: EventId,
    lapses_at: Timestamp,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct DedupIndex {
    entries: HashMap<u64, Entry>,
    /// In order of arrival, for the bound.
    arrivals: VecDeque<(u64, EventId)>,
    /// What the batch in work adds.
    overlay: Vec<(u64, Entry)>,
}

impl DedupIndex {
    /// The event that has this key, if its horizon has not passed.
    pub(super) fn find(&self, hash: KeyHash, now: Timestamp) -> Option<EventId> {
        let in_work = self.overlay.iter().rev().find(|(short, _)| *short == hash.short()).map(|(_, e)| *e);
        in_work
            .or_else(|| self.entries.get(&hash.short()).copied())
            .filter(|entry| entry.lapses_at > now)
            .map(|entry| entry.event)
    }

    /// Notes a key of the batch in work.
    pub(super) fn add(&mut self, hash: KeyHash, event: EventId, lapses_at: Timestamp) {
        self.overlay.push((hash.short(), Entry { event, lapses_at }));
    }

    /// Learns the batch: call it after its commit.
    pub(super) fn commit(&mut self) {
        for (short, entry) in std::mem::take(&mut self.overlay) {
            self.entries.insert(short, entry);
            self.arrivals.push_back((short, entry.event));
        }
        // A key that lapsed and came again arrived twice, so there are never more entries than arrivals.
        while self.arrivals.len() > KEYS_MAX {
            let Some((short, event)) = self.arrivals.pop_front() else { break };
            if self.entries.get(&short).is_some_and(|entry| entry.event == event) {
                self.entries.remove(&short);
            }
        }
    }

    /// How many keys are known.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes an entry of the file, at the opening.
    pub(super) fn load(&mut self, hash: KeyHash, event: EventId, lapses_at: Timestamp) {
        self.add(hash, event, lapses_at);
        self.commit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_in_its_batch_and_after_until_it_lapses() {
        let mut index = DedupIndex::default();
        let hash = KeyHash::of(b"k");
        let (now, later) = (Timestamp::from_secs(10), Timestamp::from_secs(20));
        assert_eq!(index.find(hash, now), None);
        index.add(hash, EventId::new(1), later);
        assert_eq!(index.find(hash, now), Some(EventId::new(1)));
        index.commit();
        assert_eq!(index.find(hash, now), Some(EventId::new(1)));
        assert_eq!(index.find(hash, later), None);
        assert_eq!(index.find(KeyHash::of(b"other"), now), None);
        assert_ne!(KeyHash::of_conflict(b"k", &[0; 16]), KeyHash::of_conflict(b"k", &[1; 16]));
    }
}
