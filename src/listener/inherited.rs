//! The port that systemd opened for us (`tambour.socket`): it stays open while we are replaced.

use std::net::SocketAddr;

use listenfd::ListenFd;
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::listener::{Error, bind};

/// The first socket that systemd passes (sd_listen_fds(3)), else `address`, bound.
///
/// Call it once and before other work: it takes the sockets out of the
/// process's environment, which nobody may read meanwhile.
///
/// # Errors
/// As [`bind`]; [`Error::Inherited`] for what is not a TCP socket, and
/// [`Error::OtherAddress`] for one of another address: the configuration was
/// checked for its own.
pub async fn inherit_or_bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let mut passed = ListenFd::from_env();
    if passed.len() > 1 {
        warn!(sockets = passed.len(), "only the first of the sockets that systemd passes is served");
    }
    let inherited = passed.take_tcp_listener(0).map_err(Error::Inherited)?;
    let Some(inherited) = inherited else { return bind(address).await };
    inherited.set_nonblocking(true).map_err(Error::Inherited)?;
    let inherited = TcpListener::from_std(inherited).map_err(Error::Inherited)?;
    let passed = inherited.local_addr().map_err(Error::Inherited)?;
    if !is_meant(address, passed) {
        return Err(Error::OtherAddress { address, passed });
    }
    info!(%address, "serving the socket that systemd passes");
    Ok(inherited)
}

/// Port 0 takes any port, here too.
fn is_meant(address: SocketAddr, passed: SocketAddr) -> bool {
    address.ip() == passed.ip() && (address.port() == 0 || address.port() == passed.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_socket_must_be_of_the_configured_address() {
        let check = |address: &str, passed: &str, expected| {
            assert_eq!(is_meant(address.parse().unwrap(), passed.parse().unwrap()), expected, "{passed} for {address}");
        };
        check("0.0.0.0:443", "0.0.0.0:443", true);
        check("0.0.0.0:443", "[::]:443", false);
        check("0.0.0.0:443", "0.0.0.0:8443", false);
        check("127.0.0.1:80", "0.0.0.0:80", false);
        check("127.0.0.1:0", "127.0.0.1:40000", true);
        check("127.0.0.1:0", "0.0.0.0:40000", false);
    }
}
