//! How long an open intent of an ended attempt stays in doubt.

use std::time::Duration;

use crate::domain::Monotonic;

/// What is left of the wait before a doubtful change may be looked for.
///
/// `opened` is absent for an intent of an earlier process: then the whole wait
/// counts from this process's start, since nobody knows how long it was down.
pub(super) fn remaining(opened: Option<Monotonic>, now: Monotonic, wait: Duration) -> Duration {
    wait.saturating_sub(now.since(opened.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_counts_from_the_intent_or_from_the_start() {
        let at = |secs| Monotonic::from_start(Duration::from_secs(secs));
        let wait = Duration::from_secs(90);
        assert_eq!(remaining(Some(at(10)), at(10), wait), wait);
        assert_eq!(remaining(Some(at(10)), at(70), wait), Duration::from_secs(30));
        assert_eq!(remaining(Some(at(10)), at(100), wait), Duration::ZERO);
        assert_eq!(remaining(None, at(10), wait), Duration::from_secs(80));
        assert_eq!(remaining(None, at(90), wait), Duration::ZERO);
    }
}
