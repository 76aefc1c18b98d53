//! A thing with its last past, so that replicas can lag.

use std::time::Duration;

use crate::domain::Monotonic;

/// The present state of a thing and the one before its last change.
#[derive(Debug)]
pub(super) struct Kept<T> {
    now: T,
    before: Option<T>,
    created: Monotonic,
    changed: Monotonic,
}

impl<T: Clone> Kept<T> {
    pub(super) fn new(value: T, at: Monotonic) -> Self {
        Self { now: value, before: None, created: at, changed: at }
    }

    /// The truth.
    pub(super) fn now(&self) -> &T {
        &self.now
    }

    /// Puts a new state in place; what was becomes what a lagging read shows.
    pub(super) fn change(&mut self, value: T, at: Monotonic) {
        self.before = Some(std::mem::replace(&mut self.now, value));
        self.changed = at;
    }

    /// What a read by id shows: the state before the last change, until `lag` has passed since it.
    pub(super) fn read(&self, at: Monotonic, lag: Duration) -> &T {
        match &self.before {
            Some(before) if at.since(self.changed) < lag => before,
            _ => &self.now,
        }
    }

    /// Whether lists and searches show it: once `lag` has passed since it was made.
    pub(super) fn is_listed(&self, at: Monotonic, lag: Duration) -> bool {
        at.since(self.created) >= lag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lags_end_when_their_time_has_passed() {
        let at = |secs| Monotonic::from_start(Duration::from_secs(secs));
        let lag = Duration::from_secs(10);
        let mut kept = Kept::new("old", at(100));
        assert!(!kept.is_listed(at(109), lag) && kept.is_listed(at(110), lag));
        assert_eq!(*kept.read(at(100), lag), "old", "a new thing is read at once");
        kept.change("new", at(120));
        assert_eq!((*kept.now(), *kept.read(at(129), lag), *kept.read(at(130), lag)), ("new", "old", "new"));
        assert!(kept.is_listed(at(121), lag), "a change does not hide it");
    }
}
