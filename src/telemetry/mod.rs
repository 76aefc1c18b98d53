//! What the process says about itself: the log, the metrics, and trace ids.
//!
//! Log lines are a constant lower-case message with fields. One word, one
//! thing: `trace_id` runs from delivery to effect; `event_id`, `task_id`,
//! `source`, `target`, `kind`, `attempt`, `reason` and `error` stand for what
//! they are called everywhere else. `error` = a person must act, `warn` = it
//! heals, `info` = one line for each delivery, attempt and decision. Bodies,
//! secrets, names, phones and e-mails are never fields and never in messages.
//!
//! Metrics are counted where the decision is taken and rendered as text; their
//! labels come from the configuration or from fixed words, never from a peer.

mod log;
mod metrics;
mod trace_id;

pub use log::{Format, init};
pub use metrics::{AcceptedAs, CONTENT_TYPE, Metrics, SOURCE_UNKNOWN, names};
pub use trace_id::new_trace_id;

/// Why the process cannot speak or number its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log was opened before in this process.
    #[error("failed to open the log")]
    Log(#[source] tracing::subscriber::SetGlobalDefaultError),
    /// The kernel gives no random bytes: usually a sandbox that forbids getrandom(2).
    #[error("failed to get random bytes")]
    Random(#[source] getrandom::Error),
}
