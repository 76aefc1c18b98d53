//! Binding a port, and accepting whatever goes wrong.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, warn};

use crate::listener::Error;

/// The pause after an accept that failed for want of descriptors or memory.
///
/// Trying at once would spin: the kernel reports the same until something is freed.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Binds `address`; port 0 takes a free one, which `local_addr` tells.
///
/// # Errors
/// [`Error::Bind`] with the address; its hint says what to do.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Bind { address, source })
}

/// The next connection; an error of the kernel costs a pause, never the loop.
pub(super) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_connection(error.kind()) => debug!(%error, "connection lost before accept"),
            Err(error) => {
                warn!(%error, "accept failed, pausing");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether the next accept may well succeed at once (accept(2), "Error handling").
fn concerns_one_connection(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_resources_pause_the_loop() {
        const EMFILE: i32 = 24;
        const ECONNABORTED: i32 = 103;
        assert!(!concerns_one_connection(io::Error::from_raw_os_error(EMFILE).kind()));
        assert!(concerns_one_connection(io::Error::from_raw_os_error(ECONNABORTED).kind()));
    }

    #[tokio::test]
    async fn a_port_in_use_is_named_with_a_hint() {
        let holder = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = holder.local_addr().unwrap();
        let error = bind(address).await.unwrap_err();
        assert_eq!(error.to_string(), format!("failed to listen on {address}"));
        assert_eq!(error.hint(), Some("another process listens there; find it with: ss -ltnp"));
    }

    #[test]
    fn a_forbidden_port_is_explained() {
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Error::Bind { address: SocketAddr::from(([0, 0, 0, 0], 443)), source };
        assert!(error.hint().is_some_and(|hint| hint.contains("CAP_NET_BIND_SERVICE")));
    }
}
