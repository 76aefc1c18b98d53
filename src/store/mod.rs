//! The data file. (Being written; only what other rooms name stands here.)

/// Proof that an intent is on disk; only the store makes it.
#[derive(Debug)]
pub struct IntentDurable {
    id: crate::domain::IntentId,
}

impl IntentDurable {
    /// The intent's id.
    pub const fn id(&self) -> crate::domain::IntentId {
        self.id
    }

    /// For tests of clients only.
    #[cfg(test)]
    pub(crate) const fn for_test() -> Self {
        Self { id: crate::domain::IntentId::new(1) }
    }
}
