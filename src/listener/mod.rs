//! Sockets, TLS and the limits of a connection; what is answered is plugged in.
//!
//! ```text
//! tcp::bind ─▶ Server::run: accept ─▶ TLS ─▶ HTTP/1.1 ─▶ Service::call ─▶ answer
//!              at most CONNECTIONS_MAX    each phase has its own deadline
//! ```
//!
//! A bound port and a loaded certificate are checked before anything is
//! served: [`Error`] says what to change. Once served, nothing that a peer does
//! ends the loop: a connection that fails or is too slow is closed alone, and
//! the reason is a debug line without the peer's data.
//!
//! HTTP/1.1 only, and ALPN offers only that. Upgrades, HTTP/2 and streamed
//! answers are not served.

mod body;
mod connection;
mod error;
mod limits;
mod serve;
mod tcp;
mod tls;

#[cfg(test)]
mod tests;

pub use body::{BodyError, read_whole};
pub use error::Error;
pub use limits::{
    BUFFER_BYTES_MAX, CONNECTIONS_MAX, DRAIN_WITHIN, FIRST_REQUEST_WITHIN, HANDSHAKE_WITHIN, HEADER_BYTES_MAX,
    HEADER_WITHIN, HEADERS_MAX, IDLE_WITHIN, Limits,
};
pub use serve::{Server, Service};
pub use tcp::bind;
pub use tls::load;
