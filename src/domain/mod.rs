//! The queue's core: ids, time, keys, task arrows, pauses and settlements.
//!
//! Nothing here knows shops, CRMs, files or sockets, and nothing reads a
//! clock: time enters as a [`Timestamp`]. Types of this room are not
//! serializable; `store/record.rs` is for disk and `admin/view.rs` for people.

mod error_class;
mod id;
mod key;
mod name;
mod pause;
mod seed;
mod task;
mod time;

pub use error_class::{ReasonCode, Refusal};
pub use id::{Attempt, EventId, IntentId, LeaseToken, ParseIdError, TaskId, TraceId};
pub use key::{Key, KeyBuilder, PART_BYTES_MAX, TEXT_PART_ABSENT};
pub use name::{NameKind, UsedName};
pub use pause::{ATTEMPTS_MAX, Pauses};
pub use seed::{FollowUp, Settlement, TaskSeed};
pub use task::{Ended, Ending, Memory, Mode, NotNow, OnReturn, Standing, State, Stimulus, Verdict, apply, end};
pub use time::{Monotonic, Timestamp};
