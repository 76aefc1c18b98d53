//! A delivery that proved where it comes from.

use bytes::Bytes;

use crate::domain::Timestamp;
use crate::source::RawDelivery;

/// A delivery whose sender is proven; only this room can make one.
#[derive(Clone)]
pub struct VerifiedDelivery {
    source: String,
    raw: RawDelivery,
    secret_label: Option<String>,
}

impl VerifiedDelivery {
    /// Wraps a delivery that was checked, now or when it was stored.
    pub(crate) fn assume_verified(source: &str, raw: RawDelivery, secret_label: Option<String>) -> Self {
        Self { source: source.to_owned(), raw, secret_label }
    }

    /// The name of the source, as in the configuration.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The whole body, byte for byte.
    pub fn body(&self) -> &Bytes {
        &self.raw.body
    }

    /// All headers as they came, signature included: for reading, never for keeping.
    pub fn headers(&self) -> &[(String, Bytes)] {
        &self.raw.headers
    }

    /// When the last byte was here.
    pub fn received_at(&self) -> Timestamp {
        self.raw.received_at
    }

    /// The label of the secret that made the signature; absent where the sender signs nothing.
    pub fn secret_label(&self) -> Option<&str> {
        self.secret_label.as_deref()
    }
}

impl std::fmt::Debug for VerifiedDelivery {
    /// Shows neither body nor headers, which hold personal data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifiedDelivery")
            .field("source", &self.source)
            .field("body_bytes", &self.raw.body.len())
            .field("received_at", &self.raw.received_at)
            .field("secret_label", &self.secret_label)
            .finish_non_exhaustive()
    }
}
