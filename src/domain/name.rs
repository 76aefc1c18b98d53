//! The names that keys are built with, and so must stay.

use std::fmt;

use crate::domain::Timestamp;

/// What a name in keys names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// Who sends.
    Source,
    /// What we change.
    Target,
    /// What is done.
    Task,
}

impl NameKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Source, Self::Target, Self::Task];

    /// The word in the file and in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Target => "target",
            Self::Task => "task",
        }
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A name that keys were built with. Prints as `task deal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedName {
    /// What it names.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// Since when keys hold it.
    pub since: Timestamp,
}

impl fmt::Display for UsedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}
