//! Every limit of a connection: its name, unit and reason.

use std::time::Duration;

/// Connections open at the same time; further ones wait in the kernel's queue.
///
/// An idle TLS connection costs about 40 KB, so all together stay under a tenth
/// of the machine's 2 GB. The process needs as many file descriptors; with
/// fewer, accepting pauses until one is free.
pub const CONNECTIONS_MAX: usize = 4096;

/// Connections that one IPv4 address, or one IPv6 /64, may have open; a further one is closed unread.
///
/// Senders keep a few; a site has one /64 (RFC 6177). From trusted proxies come
/// everybody's connections, so there it counts the requests of one client
/// address, and a further one is answered 429.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 64;

/// Bytes of bodies that are held at the same time; a body that finds no room is refused.
///
/// Eight of the largest default bodies, or a thousand common ones. Buffers grow
/// by doubling, so memory stays below twice this.
pub const BODY_BYTES_IN_FLIGHT_MAX: usize = 64 * 1024 * 1024;

/// So many bytes of a refused body are read and thrown away, so that an honest
/// sender of a body that is too long sees why; past it the connection is reset.
pub const DISCARD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// So long they are read: a moment for a sender that is sending, and all that one gets who sends nothing.
pub const DISCARD_WITHIN: Duration = Duration::from_secs(2);

/// From accept to the end of the TLS handshake; then the connection is closed.
///
/// Two round trips: seconds even on a mobile line.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// How long a fresh connection may stay silent; then it is closed.
///
/// A sender connects because it has something to send.
pub const FIRST_REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// From the first byte of a request to the end of its header; then 408 and closed.
///
/// It is a total: a client that sends a byte now and then does not extend it.
pub const HEADER_WITHIN: Duration = Duration::from_secs(10);

/// From an answer to the first byte of the next request; then the connection is closed.
///
/// Taking the answer counts too, so a client that does not read is closed as well.
pub const IDLE_WITHIN: Duration = Duration::from_secs(60);

/// How long open requests may take after a stop; then their connections are cut.
///
/// A sender repeats what was cut; the longest answer at the door takes 3.5 s.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Longest request line and header together; a longer one is answered 431.
///
/// Common proxies pass at most this much (nginx: four buffers of 8 KiB).
pub const HEADER_BYTES_MAX: usize = 32 * 1024;

/// What one connection may hold that is read and not yet taken, or not yet written.
///
/// Beyond it hyper stops reading until the service takes more. Its own default
/// (400 KB) would let [`CONNECTIONS_MAX`] connections fill the machine.
pub const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Header fields of one request; more are answered 431. Senders use about 30.
pub const HEADERS_MAX: usize = 100;

/// The limits that a server keeps; tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// See [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// See [`CONNECTIONS_PER_ADDRESS_MAX`].
    pub connections_per_address_max: usize,
    /// See [`HANDSHAKE_WITHIN`].
    pub handshake_within: Duration,
    /// See [`FIRST_REQUEST_WITHIN`].
    pub first_request_within: Duration,
    /// See [`HEADER_WITHIN`].
    pub header_within: Duration,
    /// See [`IDLE_WITHIN`].
    pub idle_within: Duration,
    /// See [`DRAIN_WITHIN`].
    pub drain_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            connections_per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
            handshake_within: HANDSHAKE_WITHIN,
            first_request_within: FIRST_REQUEST_WITHIN,
            header_within: HEADER_WITHIN,
            idle_within: IDLE_WITHIN,
            drain_within: DRAIN_WITHIN,
        }
    }
}
