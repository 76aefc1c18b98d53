//! How an attempt ends before its work is done.

use std::time::Duration;

use crate::domain::{Ending, ReasonCode, Refusal, Settlement};
use crate::store;

/// Ends an attempt; texts are for people and hold no personal data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Worth repeating.
    Retry {
        /// Not sooner than this.
        after: Option<Duration>,
        /// What happened.
        text: String,
    },
    /// A person must act.
    Dead {
        /// The stable code.
        reason: ReasonCode,
        /// What happened and what to do.
        text: String,
    },
    /// Nobody wants it any more.
    Superseded {
        /// The stable code.
        reason: ReasonCode,
        /// What happened.
        text: String,
    },
    /// The target is unusable.
    Hold {
        /// What happened and what to do.
        text: String,
    },
    /// Another's intent or a doubt must end first; counts as no attempt.
    Wait {
        /// How long.
        pause: Duration,
        /// For what.
        text: String,
    },
    /// The lease is not ours any more, or the file takes no writes.
    Lost(String),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Retry { after, text } => Self::Retry { after, text },
            Refusal::Dead { reason, text } => Self::Dead { reason, text },
            Refusal::Hold { text } => Self::Hold { text },
            // Only a write can be in doubt, and the step has recorded it.
            Refusal::Unknown { text } => Self::Retry { after: None, text },
        }
    }
}

impl From<store::Error> for Stop {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Busy | store::Error::Stopped => Self::Lost(error.to_string()),
            store::Error::Read(broken) => Self::Retry { after: None, text: broken.to_string() },
        }
    }
}

impl From<store::Broken> for Stop {
    fn from(broken: store::Broken) -> Self {
        store::Error::from(broken).into()
    }
}

impl From<Stop> for Settlement {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Retry { after, text } => Self::new(Ending::Retry(after), text),
            Stop::Dead { reason, text } => Self::new(Ending::Dead(reason), text),
            Stop::Superseded { reason, text } => Self::new(Ending::Superseded(reason), text),
            Stop::Hold { text } => Self::new(Ending::Hold, text),
            Stop::Wait { pause, text } => Self::new(Ending::Wait(pause), text),
            Stop::Lost(text) => Self::new(Ending::Lost, text),
        }
    }
}
