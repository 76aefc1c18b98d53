//! One file a system that we call: shapes, answers and what they mean.
//!
//! Each client is a reader and a writer. A writing method takes
//! `&IntentDurable`, which only the store makes, so nothing outside is changed
//! without an intent on disk. A call is made once: retrying is the queue's
//! work. Redirects are not followed.

mod transport;

pub use transport::{Answer, Call, Failure, Method, SharedTransport, Transport};
