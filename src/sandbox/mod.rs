//! An emulated amoCRM account and shop on loopback, with fault switches: the oracle of demo and tests.
//!
//! [`Sandbox`] is one account and one shop in memory. Calls enter through
//! [`Sandbox::handle`] (the same call at the same time with the same seed gives
//! the same answer) or through [`Sandbox::serve`], which carries them over real
//! HTTP and carries out what a [`Delivery`] says on the wire.
//!
//! | path | what |
//! |---|---|
//! | `/api/v4/...` | amoCRM API v4: account, pipelines, users, fields, leads, contacts, notes, tasks |
//! | `/admin/api/{version}/graphql.json` | the shop's Admin GraphQL API: one order by its id |
//! | `POST /_sandbox/faults` | replaces all fault switches ([`Faults`] as JSON) |
//! | `GET /_sandbox/counts` | what exists and how often each operation was called ([`Counts`] as JSON) |
//! | `POST /_sandbox/release` | lets withheld answers go |
//!
//! People act through methods (`move_lead`, `rename`, `put_order`, ...), which
//! give back the webhook that the real system would send; nothing is sent here.
//!
//! The oracle counts by its own truth (phones, links, texts), never by a marker
//! that a client wrote, and nothing of `client` is used: a misreading of the
//! API there must show as a difference here.
//!
//! What is not emulated is refused: an unknown path with 404, an unknown filter
//! with 400. No call makes it panic.

mod amocrm;
mod control;
mod desk;
mod door;
mod faults;
mod hook;
mod http;
mod kept;
mod message;
mod operation;
mod oracle;
mod order;
mod random;
mod scene;
mod sender;
mod settings;
mod shop;
mod world;

pub use door::Sandbox;
pub use faults::{Fault, Faults, Rate, Rule, When};
pub use http::Running;
pub use message::{Delivery, Reply, Request};
pub use operation::{Operation, UnknownOperation};
pub use oracle::{ContactSnapshot, Counts, LeadSnapshot, TaskSnapshot};
pub use order::{OrderLine, OrderSketch, shopify_headers, sign};
pub use scene::Error;
pub use sender::{Answered, Line, SendError, Sender};
pub use settings::{Pipeline, Settings, Stage, User};

#[cfg(test)]
mod tests;
