//! amoCRM (abroad: Kommo), REST API v4.
//!
//! [`Amocrm`] reads by itself and writes only with an intent on disk. Shapes
//! are ours; `wire.rs` knows theirs. Nothing is idempotent over there: a
//! repeated create makes a second object, so the caller searches first
//! (Kommo and amoCRM developer pages, read 2026-11). Searches match
//! substrings and show new objects late, so the caller compares hits exactly.
//!
//! "Nothing found" is 204 without a body. A missing entity answers 204 or 404,
//! and a deleted one may still be served with `is_deleted`: all are `None`.

mod new;
mod reader;
mod wire;
mod writer;

use std::sync::Arc;

use crate::client::SharedTransport;
use crate::client::limits::Limits;
use crate::client::peer::Peer;
use crate::clock::SharedClock;
use crate::config::{Secret, Target, TargetKind};
use crate::domain::Timestamp;
use crate::telemetry::Metrics;

pub use new::{ContactLink, FieldRef, LeadPatch, NewContact, NewCrmTask, NewField, NewLead, NewNote, Stage};

/// An amoCRM account; cheap to clone, clones share the account's limits.
#[derive(Clone, Debug)]
pub struct Amocrm {
    peer: Arc<Peer>,
}

impl Amocrm {
    /// Prepares calls to the target's account; makes none.
    ///
    /// One account gets one `Amocrm`, since its limits are held here.
    pub fn new(target: &Target, transport: SharedTransport, clock: SharedClock, metrics: Arc<Metrics>) -> Self {
        let TargetKind::Amocrm(access) = &target.kind;
        let peer = Peer {
            url: format!("{}/api/v4", access.url),
            credential: ("authorization", Secret::new(format!("Bearer {}", access.token.expose()))),
            timeout: target.timeout,
            limits: Limits::new(target.in_flight_max, target.calls_per_second, Arc::clone(&clock)),
            transport,
            clock,
            name: target.name.clone(),
            metrics,
        };
        Self { peer: Arc::new(peer) }
    }
}

/// The account that the token belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number, which never changes.
    pub id: u64,
    /// ISO 4217 code of all sums.
    pub currency: String,
    /// The first part of its host name; changes when the account is renamed.
    pub subdomain: String,
}

/// A pipeline with its stages in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whether deals without a pipeline go here.
    pub is_main: bool,
    /// Its stages; 142 (won) and 143 (lost) are in every pipeline.
    pub statuses: Vec<Status>,
}

/// A stage of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
}

/// A user of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The id.
    pub id: u64,
    /// The name.
    pub name: String,
}

/// A custom field of deals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its code, if it has one.
    pub code: Option<String>,
    /// Its type over there: `text`, `numeric`, `select`.
    pub kind: String,
}

/// A deal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Its id.
    pub id: u64,
    /// Its name; may be empty.
    pub name: String,
    /// Its sum in whole units; 0 when none is set.
    pub price: i64,
    /// Its stage.
    pub status_id: u64,
    /// Its pipeline.
    pub pipeline_id: u64,
    /// Its responsible user.
    pub responsible_user_id: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed; equal values do not mean equal states.
    pub updated_at: Timestamp,
    /// The values of custom fields, one entry a value.
    pub custom: Vec<CustomValue>,
    /// Its contacts, the main one first.
    pub contact_ids: Vec<u64>,
}

/// One value of a custom field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomValue {
    /// The field's id.
    pub field_id: u64,
    /// The field's code, if it has one.
    pub code: Option<String>,
    /// The value as text; an object as JSON.
    pub text: String,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The id.
    pub id: u64,
    /// The name; may be empty.
    pub name: String,
    /// The phones as people wrote them.
    pub phones: Vec<String>,
    /// The e-mail addresses as people wrote them.
    pub emails: Vec<String>,
    /// The responsible user.
    pub responsible_user_id: u64,
    /// The deals of the person.
    pub lead_ids: Vec<u64>,
}

/// A text note of a deal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its id.
    pub id: u64,
    /// Its text.
    pub text: String,
}

/// A task in the CRM, for a person; no task of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrmTask {
    /// Its id.
    pub id: u64,
    /// Its text.
    pub text: String,
}
