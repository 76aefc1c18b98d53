//! Sockets, TLS and the limits of a connection; what is answered is plugged in.
//!
//! ```text
//! inherit_or_bind ─▶ Server::run: accept ─▶ TLS ─▶ HTTP/1.1 ─▶ Service::call ─▶ answer
//!                    at most CONNECTIONS_MAX,       each phase has its own deadline;
//!                    a few for each address         all bodies share one BodyRoom
//! ```
//!
//! A bound port and a loaded certificate are checked before anything is
//! served: [`Error`] says what to change. Once served, nothing that a peer does
//! ends the loop: a connection that fails, is too slow or one too many of its
//! address is closed alone, and the reason is a debug line without the peer's
//! data. A certificate that is renewed on disk is served from then on; a bad
//! one changes nothing but [`CertificateState`].
//!
//! Behind trusted proxies HTTP is plain, and `X-Forwarded-For` or `Forwarded`
//! says whose request it is. HTTP/1.1 only, and ALPN offers only that.
//! Upgrades, HTTP/2 and streamed answers are not served.

mod body;
mod callers;
mod certificate;
mod connection;
mod error;
mod forwarded;
mod inherited;
mod limits;
mod serve;
mod tcp;
mod tls;

#[cfg(test)]
mod tests;

pub use body::{BodyError, BodyRoom, discard};
pub use certificate::{CERTIFICATE_LOOK_EVERY, Certificate, CertificateState};
pub use error::{Error, PemError};
pub use inherited::inherit_or_bind;
pub use limits::{
    BODY_BYTES_IN_FLIGHT_MAX, BUFFER_BYTES_MAX, CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX, DISCARD_BYTES_MAX,
    DISCARD_WITHIN, DRAIN_WITHIN, FIRST_REQUEST_WITHIN, HANDSHAKE_WITHIN, HEADER_BYTES_MAX, HEADER_WITHIN, HEADERS_MAX,
    IDLE_WITHIN, Limits,
};
pub use serve::{Server, Service};
pub use tcp::bind;
