//! Whether a process lives: once it is dead, nothing of it reaches disk or network.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The life of one process, shared by all that it touches the world with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    ended: Arc<AtomicBool>,
    doomed: Arc<AtomicBool>,
}

impl Life {
    pub(crate) fn lasts(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Its disk failed: it must stop by itself.
    pub(crate) fn doom(&self) {
        self.doomed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.lasts() && self.doomed.load(Ordering::Relaxed)
    }

    /// The value, or nothing in a process that is dead; a living one must not fail, and
    /// one whose disk failed must.
    pub(crate) fn unless_it_ended<T, E: fmt::Debug>(&self, result: Result<T, E>) -> Option<T> {
        if self.is_doomed() {
            assert!(result.is_err(), "a failure of the disk went unnoticed");
            return None;
        }
        if self.lasts() { Some(result.unwrap()) } else { None }
    }
}
