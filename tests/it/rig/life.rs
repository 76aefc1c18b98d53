//! Whether a process lives: once it is dead, nothing of it reaches disk or network.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The life of one process, shared by all that it touches the world with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    ended: Arc<AtomicBool>,
}

impl Life {
    pub(crate) fn lasts(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The value, or nothing in a process that is dead; a living one must not fail.
    pub(crate) fn unless_it_ended<T, E: fmt::Debug>(&self, result: Result<T, E>) -> Option<T> {
        if self.lasts() { Some(result.unwrap()) } else { None }
    }
}
