//! Why a request is not answered, here and over the socket.

use serde::{Deserialize, Serialize};

use crate::domain::Refusal;
use crate::effect::Stop;
use crate::store;

/// Why a request is not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An id, a filter or a line that means nothing.
    #[error("{0}")]
    Invalid(String),
    /// Nothing is stored or configured under that name.
    #[error("{0}")]
    Unknown(String),
    /// The data file.
    #[error("the data file did not do it")]
    Store(#[from] store::Error),
    /// A system outside did not do it.
    #[error("{0}")]
    Outside(String),
    /// A thread of ours ended; our mistake.
    #[error("the reading ended by itself")]
    Reading(#[from] tokio::task::JoinError),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Outside(refusal.text().to_owned())
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Retry { text, .. }
            | Stop::Dead { text, .. }
            | Stop::Superseded { text, .. }
            | Stop::Hold { text }
            | Stop::Wait { text, .. }
            | Stop::Lost(text) => Self::Outside(text),
        }
    }
}

/// An [`Error`] as it travels: what callers branch on, and the text with its causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// What callers branch on.
    pub kind: FailureKind,
    /// For people: the error, then its causes.
    pub text: String,
}

/// The kinds of [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The request means nothing.
    Invalid,
    /// Nothing is stored or configured under that name.
    Unknown,
    /// The data file cannot be read or takes no more writes.
    Store,
    /// A system outside did not do it.
    Outside,
    /// It took too long, or the other side is ending.
    Unavailable,
    /// Our mistake.
    Internal,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Invalid(_) => FailureKind::Invalid,
            Error::Unknown(_) => FailureKind::Unknown,
            Error::Store(_) => FailureKind::Store,
            Error::Outside(_) => FailureKind::Outside,
            Error::Reading(_) => FailureKind::Internal,
        };
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        Self { kind, text }
    }
}
