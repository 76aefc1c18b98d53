//! What each source may have, so that a flood of one never makes another's delivery meet 503.
//!
//! | what | of one source | of all |
//! |---|---|---|
//! | room for bodies | [`BODY_BYTES_IN_FLIGHT_MAX`] divided by the sources, or one `max_body` if that is more | at most [`BODY_BYTES_IN_FLIGHT_MAX`] and one `max_body` of each |
//! | places at work | `inflight`, or [`DOOR_WAITING_MAX`] divided by the sources if that is less | at most [`DOOR_WAITING_MAX`]: the writer's queue holds them all |
//! | new events | `events_per_hour` | |
//! | bytes of their bodies | `bytes_per_day` | |
//!
//! Room is taken by whoever reaches the address; the rest only by what was
//! verified, so that a forger spends nothing of it. A place is left when the
//! writer has carried the command out, though its request may have been answered
//! 503 long before. A repeat or a conflict gives back what it counted.
//!
//! Hours and days are those of the monotonic clock, and the counts live in
//! memory: after a restart they begin at zero. Connections are shared by all
//! sources and capped by address (`listener`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::{Quota, Source};
use crate::domain::Monotonic;
use crate::listener::{BODY_BYTES_IN_FLIGHT_MAX, BodyRoom};
use crate::store::DOOR_WAITING_MAX;

/// Parts of a period that are forgotten one by one, so that a full period empties little by little.
const SLOTS: u64 = 60;
const HOUR_SECS: u64 = 60 * 60;
const DAY_SECS: u64 = 24 * HOUR_SECS;

/// The part of one source.
#[derive(Debug)]
pub(super) struct Share {
    bodies: BodyRoom,
    places: Arc<Semaphore>,
    used: Mutex<Used>,
}

#[derive(Debug)]
struct Used {
    events: Period,
    bytes: Period,
}

/// What was admitted: a place, left when its last holder goes, and a count, given back unless kept.
#[derive(Debug)]
pub(super) struct Admission<'s> {
    share: &'s Share,
    place: Arc<OwnedSemaphorePermit>,
    at: Monotonic,
    bytes: u64,
    is_kept: bool,
}

/// The source has used up its part; more fits after about so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) retry_after: Duration,
}

/// Divides what there is.
pub(super) fn shares(sources: &BTreeMap<String, Source>) -> BTreeMap<String, Share> {
    let of = |source: &Source| {
        let room = (BODY_BYTES_IN_FLIGHT_MAX / sources.len()).max(source.body_bytes_max);
        let places = source.quota.inflight.min(DOOR_WAITING_MAX / sources.len()).max(1);
        Share::new(BodyRoom::new(room), places, source.quota)
    };
    sources.values().map(|source| (source.name.clone(), of(source))).collect()
}

impl Share {
    fn new(bodies: BodyRoom, places: usize, quota: Quota) -> Self {
        let used = Used {
            events: Period::new(HOUR_SECS, quota.events_per_hour),
            bytes: Period::new(DAY_SECS, quota.bytes_per_day),
        };
        Self { bodies, places: Arc::new(Semaphore::new(places)), used: Mutex::new(used) }
    }

    /// The room for its bodies.
    pub(super) const fn bodies(&self) -> &BodyRoom {
        &self.bodies
    }

    /// Takes a place for a verified delivery and counts it as a new event.
    pub(super) fn admit(&self, body_bytes: usize, at: Monotonic) -> Result<Admission<'_>, Over> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Over { retry_after: Duration::ZERO })?;
        let bytes = u64::try_from(body_bytes).unwrap_or(u64::MAX);
        let mut used = self.used();
        let wait = used.events.wait_for(1, at).max(used.bytes.wait_for(bytes, at));
        if !wait.is_zero() {
            return Err(Over { retry_after: wait });
        }
        used.events.add(1, at);
        used.bytes.add(bytes, at);
        Ok(Admission { share: self, place: Arc::new(place), at, bytes, is_kept: false })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        // No panic can leave a count half changed.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission<'_> {
    /// Says whether the delivery counts; it does as soon as its event may be stored.
    pub(super) const fn keep(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// The place, for whoever works on the delivery.
    pub(super) fn place(&self) -> Arc<OwnedSemaphorePermit> {
        Arc::clone(&self.place)
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let mut used = self.share.used();
            used.events.give_back(1, self.at);
            used.bytes.give_back(self.bytes, self.at);
        }
    }
}

/// What was counted within a period that ends now.
#[derive(Debug)]
struct Period {
    slot_secs: u64,
    most: u64,
    total: u64,
    /// Number of a slot, and what was counted in it; oldest first.
    slots: VecDeque<(u64, u64)>,
}

impl Period {
    const fn new(secs: u64, most: u64) -> Self {
        Self { slot_secs: secs / SLOTS, most, total: 0, slots: VecDeque::new() }
    }

    /// How long until so much more may fit; zero when it does.
    fn wait_for(&mut self, more: u64, at: Monotonic) -> Duration {
        let now = self.slot(at);
        // A slot goes when all of it is a whole period old.
        while let Some((_, count)) = self.slots.front().filter(|(slot, _)| *slot + SLOTS < now) {
            self.total -= count;
            self.slots.pop_front();
        }
        match self.slots.front() {
            Some((oldest, _)) if self.total.saturating_add(more) > self.most => {
                Duration::from_secs((oldest + SLOTS + 1) * self.slot_secs).saturating_sub(at.since_start())
            }
            _ => Duration::ZERO,
        }
    }

    fn add(&mut self, count: u64, at: Monotonic) {
        let now = self.slot(at);
        match self.slots.back_mut() {
            Some((slot, counted)) if *slot >= now => *counted += count,
            _ => self.slots.push_back((now, count)),
        }
        self.total += count;
    }

    fn give_back(&mut self, count: u64, at: Monotonic) {
        let then = self.slot(at);
        // Absent once it has left the period.
        if let Some((_, counted)) = self.slots.iter_mut().find(|(slot, counted)| *slot == then && *counted >= count) {
            *counted -= count;
            self.total -= count;
        }
    }

    const fn slot(&self, at: Monotonic) -> u64 {
        at.since_start().as_secs() / self.slot_secs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(secs))
    }

    fn share(events_per_hour: u64, bytes_per_day: u64, inflight: usize) -> Share {
        Share::new(BodyRoom::default(), inflight, Quota { events_per_hour, bytes_per_day, inflight })
    }

    /// Counts a new event; else says how many seconds are to be waited.
    fn stored(share: &Share, body_bytes: usize, secs: u64) -> Result<(), u64> {
        let admitted = share.admit(body_bytes, at(secs));
        admitted.map(|mut admission| admission.keep(true)).map_err(|over| over.retry_after.as_secs())
    }

    #[test]
    fn no_hour_holds_more_than_its_quota_and_it_empties_little_by_little() {
        let share = share(3, 1000, 10);
        let check = |secs, expected| assert_eq!(stored(&share, 1, secs), expected, "at {secs}");
        check(0, Ok(()));
        check(59, Ok(()));
        check(600, Ok(()));
        check(601, Err(3660 - 601));
        // 59 s and 3658 s lie within one hour.
        check(3658, Err(2));
        check(3660, Ok(()));
        check(3660, Ok(()));
        check(3660, Err(4260 - 3660));
        check(4260, Ok(()));
    }

    #[test]
    fn no_day_holds_more_bytes_than_its_quota() {
        let share = share(100, 1000, 10);
        let check = |bytes, secs, expected| assert_eq!(stored(&share, bytes, secs), expected, "{bytes} at {secs}");
        let day = 24 * 3600;
        check(600, 0, Ok(()));
        check(401, 10, Err(day + 24 * 60 - 10));
        check(400, 10, Ok(()));
        check(1, day, Err(24 * 60));
        check(1000, day + 24 * 60, Ok(()));
    }

    #[test]
    fn what_makes_no_event_gives_back_what_it_counted() {
        let share = share(2, 1000, 10);
        assert_eq!(stored(&share, 1, 0), Ok(()));
        let repeat = share.admit(1, at(70)).unwrap();
        stored(&share, 1, 80).unwrap_err();
        drop(repeat);
        assert_eq!(stored(&share, 1, 80), Ok(()));
        // What has left the period by then is not given back a second time.
        let late = share.admit(1, at(5000)).unwrap();
        assert_eq!(stored(&share, 1, 20_000), Ok(()));
        drop(late);
        assert_eq!(stored(&share, 1, 20_000), Ok(()));
        stored(&share, 1, 20_000).unwrap_err();
    }

    #[test]
    fn a_place_is_left_with_its_last_holder() {
        let share = share(100, 1000, 2);
        let (first, _second) = (share.admit(1, at(0)).unwrap(), share.admit(1, at(0)).unwrap());
        let in_the_queue = first.place();
        drop(first);
        assert_eq!(stored(&share, 1, 0), Err(0));
        drop(in_the_queue);
        assert_eq!(stored(&share, 1, 0), Ok(()));
    }

    /// The arithmetic of the module's table.
    #[test]
    fn all_sources_together_fit() {
        let source = crate::source::samples::shopify_source();
        let check = |sources: usize, inflight: usize, body_bytes_max: usize, places: usize, room: usize| {
            let named = (0..sources).map(|n| {
                let quota = Quota { inflight, ..source.quota };
                (n.to_string(), Source { name: n.to_string(), quota, body_bytes_max, ..source.clone() })
            });
            let shares = shares(&named.collect());
            assert!(shares.values().all(|share| share.places.available_permits() == places), "{sources}");
            assert!(shares.values().all(|share| share.bodies.bytes_left() == room), "{sources}");
            assert!(places * sources <= DOOR_WAITING_MAX || places == 1);
            assert!(room * sources <= BODY_BYTES_IN_FLIGHT_MAX + body_bytes_max * sources);
        };
        check(1, 4096, 1 << 20, 4096, 64 << 20);
        check(2, 1024, 8 << 20, 1024, 32 << 20);
        check(8, 1024, 8 << 20, 512, 8 << 20);
        check(32, 100, 8 << 20, 100, 8 << 20);
    }
}
