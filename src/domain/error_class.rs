//! What a failure means for the task: decided where the answer is still in hand.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A stable code of why a task is dead or superseded; each has a README section.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReasonCode(Cow<'static, str>);

impl ReasonCode {
    /// The target refused the content of a request.
    pub const VALIDATION: Self = Self(Cow::Borrowed("validation"));
    /// The order's currency is not the account's.
    pub const WRONG_CURRENCY: Self = Self(Cow::Borrowed("wrong_currency"));
    /// A sum that the account cannot hold exactly.
    pub const BAD_MONEY: Self = Self(Cow::Borrowed("bad_money"));
    /// The entity that the task is about does not exist any more.
    pub const ENTITY_GONE: Self = Self(Cow::Borrowed("entity_gone"));
    /// An object of ours was deleted outside; it is never re-created silently.
    pub const DELETED_OUTSIDE: Self = Self(Cow::Borrowed("deleted_outside"));
    /// Two objects carry the same marker.
    pub const AMBIGUOUS: Self = Self(Cow::Borrowed("ambiguous"));
    /// A change was sent and nobody can say whether it happened.
    pub const OUTCOME_UNKNOWN: Self = Self(Cow::Borrowed("outcome_unknown"));
    /// The process died three times while this task ran alone.
    pub const WORKER_LOST: Self = Self(Cow::Borrowed("worker_lost"));
    /// All attempts are spent.
    pub const ATTEMPTS_SPENT: Self = Self(Cow::Borrowed("attempts_spent"));
    /// A template of the configuration failed on this event.
    pub const TEMPLATE: Self = Self(Cow::Borrowed("template"));
    /// The configuration names something that the target does not have.
    pub const CONFIGURATION: Self = Self(Cow::Borrowed("configuration"));
    /// The stored body cannot be read as what the task needs.
    pub const UNREADABLE: Self = Self(Cow::Borrowed("unreadable"));
    /// A person closed it.
    pub const CLOSED: Self = Self(Cow::Borrowed("closed"));
    /// The deal has left the stage.
    pub const LEFT_STAGE: Self = Self(Cow::Borrowed("left_stage"));
    /// What is applied is newer.
    pub const OLDER_THAN_APPLIED: Self = Self(Cow::Borrowed("older_than_applied"));
    /// A test order makes no deal.
    pub const TEST_ORDER: Self = Self(Cow::Borrowed("test_order"));

    /// All codes that this build can write, for the README check.
    pub const ALL: [Self; 16] = [
        Self::VALIDATION,
        Self::WRONG_CURRENCY,
        Self::BAD_MONEY,
        Self::ENTITY_GONE,
        Self::DELETED_OUTSIDE,
        Self::AMBIGUOUS,
        Self::OUTCOME_UNKNOWN,
        Self::WORKER_LOST,
        Self::ATTEMPTS_SPENT,
        Self::TEMPLATE,
        Self::CONFIGURATION,
        Self::UNREADABLE,
        Self::CLOSED,
        Self::LEFT_STAGE,
        Self::OLDER_THAN_APPLIED,
        Self::TEST_ORDER,
    ];

    /// Takes a code back that a record held; a later build may have written it.
    pub fn from_stored(code: &str) -> Self {
        Self(Cow::Owned(code.to_owned()))
    }

    /// The code as it stands in records, filters and the README.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only a person can say what happened, so that a new event must
    /// not start the task again by itself.
    pub fn waits_for_a_person(&self) -> bool {
        [Self::OUTCOME_UNKNOWN, Self::AMBIGUOUS, Self::WORKER_LOST].contains(self)
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a call outside did not do its work, and what follows.
///
/// `text` is for people: it names the cause and never holds a body, a secret
/// or personal data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Heals by itself: usually the target is busy, away or lagging.
    Retry {
        /// The target's own wish for the pause (`Retry-After`), if it gave one.
        after: Option<Duration>,
        /// What happened.
        text: String,
    },
    /// Repeating changes nothing; a person must act.
    Dead {
        /// The stable code.
        reason: ReasonCode,
        /// What happened and what to do.
        text: String,
    },
    /// The whole target is unusable: usually a revoked token or an unpaid account.
    Hold {
        /// What happened and what to do.
        text: String,
    },
    /// A change was sent and the answer is missing or says nothing.
    Unknown {
        /// What happened.
        text: String,
    },
}

impl Refusal {
    /// The text for people.
    pub fn text(&self) -> &str {
        match self {
            Self::Retry { text, .. } | Self::Dead { text, .. } | Self::Hold { text } | Self::Unknown { text } => text,
        }
    }

    /// The other side's own wish for the pause.
    pub const fn after(&self) -> Option<Duration> {
        match self {
            Self::Retry { after, .. } => *after,
            Self::Dead { .. } | Self::Hold { .. } | Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}
