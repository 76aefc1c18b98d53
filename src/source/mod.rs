//! One file a sender: headers and bytes become a verified delivery, then facts.
//!
//! [`verify`] looks only at raw bytes, [`read`] only at what was verified.
//! Nothing here does I/O, and no input makes it panic or allocate much: what
//! cannot be read becomes an [`Item::Unreadable`] with the reason, because a
//! correctly addressed delivery is stored whatever it holds.
//!
//! A reading needs of the headers only those that it keeps, so a stored
//! delivery reads the same again. [`brackets`] is public for the fuzzer alone.

use std::time::Duration;

use bytes::Bytes;

use crate::config::{Source, SourceKind};
use crate::domain::{Key, Timestamp};

mod amocrm;
pub mod brackets;
mod fingerprint;
mod headers;
mod json;
#[cfg(test)]
pub(crate) mod samples;
mod shopify;
mod signature;
mod verified;

pub use json::parse as parse_json;
pub use verified::VerifiedDelivery;

/// Checks that a delivery comes from the sender that `source` names.
///
/// An amoCRM delivery carries no proof but the token in its address, which the
/// door has compared before; here it passes as it is.
///
/// # Errors
/// `Refused::Signature` when no secret made the signature over these bytes,
/// `Refused::HeaderMissing` when they are signed but say not which delivery they are.
pub fn verify(source: &Source, raw: RawDelivery) -> Result<VerifiedDelivery, Refused> {
    let secret_label = match &source.kind {
        SourceKind::Shopify { secrets, .. } => Some(shopify::verify(secrets, &raw)?.to_owned()),
        SourceKind::Amocrm { .. } => None,
    };
    Ok(VerifiedDelivery::assume_verified(&source.name, raw, secret_label))
}

/// What usually spoils the signature of a delivery that otherwise looks as its sender's own.
///
/// For a delivery that [`verify`] refused; `None` when it looks like a stranger's.
pub fn causes_of_wrong_signature(source: &Source, raw: &RawDelivery) -> Option<&'static str> {
    match &source.kind {
        SourceKind::Shopify { .. } => shopify::looks_genuine(raw).then_some(shopify::WRONG_SIGNATURE),
        SourceKind::Amocrm { .. } => None,
    }
}

/// Reads what a verified delivery tells; whatever it holds, there is a reading.
pub fn read(source: &Source, delivery: &VerifiedDelivery) -> Reading {
    match &source.kind {
        SourceKind::Shopify { shops, .. } => shopify::read(shops, delivery),
        SourceKind::Amocrm { account_id } => amocrm::read(*account_id, delivery),
    }
}

/// A request body with its headers, as they came; nothing is proven yet.
#[derive(Clone, Debug)]
pub struct RawDelivery {
    /// Header names in lower case with their values, in order of arrival.
    pub headers: Vec<(String, Bytes)>,
    /// The whole body, byte for byte.
    pub body: Bytes,
    /// When the last byte was here.
    pub received_at: Timestamp,
}

/// What a delivery says about itself, read from verified bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The sender's own account: a `*.myshopify.com` domain, a numeric amoCRM account id; `-` if unstated.
    pub account: String,
    /// Whether the account is not one that the configuration lists.
    pub foreign: bool,
    /// The sender's word for what happened: `orders/create`; for amoCRM the
    /// kinds of all items joined by `,`, each once.
    pub topic: String,
    /// What makes two deliveries one event; absent when the sender gives nothing
    /// that would tell a repeat from a second change.
    pub identity: Option<Identity>,
    /// When the source says it happened.
    pub source_time: Option<Timestamp>,
    /// Shared by all deliveries that one action caused, where the sender says so.
    pub correlation: Option<String>,
    /// Headers worth keeping (an allow-list; never a signature or a token).
    pub headers: Vec<(String, String)>,
    /// The things that changed, and those that could not be read.
    pub items: Vec<Item>,
}

/// What makes two deliveries one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Source, account and the sender's delivery id (or a digest of the content).
    pub key: Key,
    /// SHA-256 of the content that must then agree, cut to 16 bytes.
    pub fingerprint: [u8; 16],
    /// How long a repeat may come: the sender's retry horizon.
    pub horizon: Duration,
}

/// One thing in a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// It says what changed.
    Fact(Fact),
    /// It cannot be read.
    Unreadable {
        /// Where in the body: a path such as `leads[status][3]`.
        at: String,
        /// Why, without the content itself.
        why: String,
    },
}

/// One change that the source tells of; a hint, not the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What routes name: `orders/create`, `leads.status`.
    pub kind: String,
    /// The kind of thing: `order`, `lead`, `contact`, `company`; `other` where nobody cares.
    pub entity_kind: String,
    /// The thing's id in the source's words.
    pub entity_id: String,
    /// When the source says this item changed.
    pub source_time: Option<Timestamp>,
    /// Whether `data` is the whole entity (a shop's order), fit to be worked from.
    pub is_whole: bool,
    /// The item as JSON: for conditions, keys and templates.
    pub data: serde_json::Value,
}

/// Why a delivery is refused before anything is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No signature, or one that no secret makes: usually the wrong secret, or a proxy that rewrote the body.
    #[error("the signature is missing or wrong")]
    Signature,
    /// The header that carries the sender's delivery id is missing.
    #[error("the header {0} is missing or malformed")]
    HeaderMissing(&'static str),
}
