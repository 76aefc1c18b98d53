//! The outer door: verify, commit, answer; never a call to anyone.
//!
//! | address | method | what |
//! |---|---|---|
//! | `/in/<source>`, `/in/<source>/<address token>` | POST | a delivery |
//! | the same | GET, HEAD | 200: senders probe the address when it is saved |
//!
//! With and without a trailing slash, never a redirect. The order in the
//! handler, and nothing else in it: limits, whole body, verify, read, one
//! commit, answer. Every answer has a deadline, `answer_within` of its source,
//! from the moment the header was here; while the file is being opened a
//! request waits for it that long. Each source has its own share of room, places
//! and counts (`quota.rs`). A refusal that may have lost a genuine delivery
//! leaves a window and perhaps an alert behind (`refusals.rs`). `reply.rs` is the only place with status codes.

mod door;
mod quota;
mod refusals;
mod reply;

pub use door::{Door, Inbox};
pub use refusals::Refusals;
