//! Why the door cannot open.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the door cannot open; each is found before anything is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Usually another process has the port, or the port is below 1024.
    #[error("failed to listen on {address}")]
    Bind {
        /// The configured address.
        address: SocketAddr,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Usually `ListenDatagram=` or a unix path in `tambour.socket`.
    #[error("failed to take the socket that systemd passes")]
    Inherited(#[source] io::Error),
    /// Usually `ListenStream=` with a port alone, which means `[::]`.
    #[error("the socket that systemd passes is of {passed}, not of {address} as configured")]
    OtherAddress {
        /// The configured address.
        address: SocketAddr,
        /// The address of the socket.
        passed: SocketAddr,
    },
    /// Usually a wrong path, or a file that the service's user may not read.
    #[error("failed to read the certificate chain from `{}`", path.display())]
    Certificate {
        /// The configured file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PemError,
    },
    /// Usually a wrong path, or a file that the service's user may not read.
    #[error("failed to read the private key from `{}`", path.display())]
    Key {
        /// The configured file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PemError,
    },
    /// Usually only one of the two files was renewed, or the chain is not leaf first.
    #[error("the private key `{}` does not belong to the first certificate of `{}`", key.display(), certificate.display())]
    Mismatch {
        /// The configured chain.
        certificate: PathBuf,
        /// The configured key.
        key: PathBuf,
    },
    /// Usually a key of a kind that TLS does not use here, or a damaged certificate.
    #[error("failed to serve TLS with `{}` and `{}`", certificate.display(), key.display())]
    Unusable {
        /// The configured chain.
        certificate: PathBuf,
        /// The configured key.
        key: PathBuf,
        /// What rustls said.
        #[source]
        source: rustls::Error,
    },
}

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Bind { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => Some("another process listens there; find it with: ss -ltnp"),
                io::ErrorKind::PermissionDenied => {
                    Some("ports below 1024 need CAP_NET_BIND_SERVICE: AmbientCapabilities= in the unit, or setcap")
                }
                io::ErrorKind::AddrNotAvailable => Some("no interface has this address; list them with: ip address"),
                _ => None,
            },
            Self::Inherited(_) => Some("write ListenStream= with an IP address and a port into tambour.socket"),
            Self::OtherAddress { .. } => Some("write the same into ListenStream= and into `address` in [listener]"),
            Self::Certificate { source, .. } => pem_hint(source, "name a PEM file with the chain, leaf first"),
            Self::Key { source, .. } => pem_hint(source, "name a PEM file with the unencrypted private key"),
            Self::Mismatch { .. } => {
                Some("the two must print the same: openssl x509 -noout -pubkey -in CHAIN, openssl pkey -pubout -in KEY")
            }
            Self::Unusable { .. } => Some("use an ECDSA P-256 or RSA key and the chain that was issued for it"),
        }
    }
}

/// What is wrong with a PEM file; never what stands in it, for that may be a key.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// Usually a wrong path, or missing rights.
    #[error("{0}")]
    Read(io::Error),
    /// Usually the other file of the pair, or an empty one.
    #[error("the file has no such section")]
    Absent,
    /// Usually a file that is being written, or a copy on one line.
    #[error("the file is not whole PEM")]
    Damaged,
}

fn pem_hint(source: &PemError, content: &'static str) -> Option<&'static str> {
    match source {
        PemError::Read(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Some("the user that runs tambour must be able to read the file")
        }
        _ => Some(content),
    }
}
