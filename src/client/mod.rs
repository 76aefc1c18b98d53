//! One file a system that we call: shapes, answers and what they mean.
//!
//! Each client is a reader and a writer. A writing method takes
//! `&IntentDurable`, which only the store makes, so nothing outside is changed
//! without an intent on disk. A call is made once: retrying is the queue's
//! work. Redirects are not followed.
//!
//! The way of a call: a client builds it, `peer.rs` waits for the account's
//! limits and sends it through the [`Transport`], `classify.rs` says what the
//! answer means. Whatever is not a success leaves as a
//! [`Refusal`](crate::domain::Refusal), whose text holds no body, no secret
//! and no personal data.

mod transport;

mod http;

mod amocrm;
mod classify;
mod limits;
mod peer;
#[cfg(test)]
mod scripted;
mod shopify;

pub use amocrm::{
    Account, Amocrm, Contact, ContactLink, CrmTask, CustomValue, Field, FieldRef, Lead, LeadPatch, NewContact,
    NewCrmTask, NewField, NewLead, NewNote, Note, Pipeline, Stage, Status, User,
};
pub use http::{ANSWER_BYTES_MAX, HttpTransport, SetupError};
pub use shopify::Shop;
pub use transport::{Answer, Call, Failure, Method, SharedTransport, Transport};
