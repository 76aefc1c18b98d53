//! A certificate chain and its key from PEM files, and what is offered in a handshake.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore, ServerConfig};

use crate::domain::Timestamp;
use crate::listener::error::{Error, PemError};

/// What ALPN offers; only what is served.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// Where the chain, leaf first, and its private key lie.
#[derive(Clone, Debug)]
pub(super) struct PairFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// A chain with the key that belongs to it.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) served: Arc<CertifiedKey>,
    pub(super) not_after: Timestamp,
}

impl PairFiles {
    /// Reads both files.
    pub(super) fn read(&self) -> Result<Pair, Error> {
        let refuse_chain = |source| Error::Certificate { path: self.certificate.clone(), source };
        let chain = CertificateDer::pem_file_iter(&self.certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| refuse_chain(error.into()))?;
        let leaf = chain.first().ok_or_else(|| refuse_chain(PemError::Absent))?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| Error::Key { path: self.key.clone(), source: error.into() })?;

        let provider = ring::default_provider();
        let not_after = not_after(leaf, &provider).map_err(|error| self.unusable(error))?;
        let served = CertifiedKey::from_der(chain, key, &provider).map_err(|error| self.unusable(error))?;
        Ok(Pair { served: Arc::new(served), not_after })
    }

    pub(super) fn unusable(&self, source: rustls::Error) -> Error {
        let Self { certificate, key } = self.clone();
        match source {
            rustls::Error::InconsistentKeys(_) => Error::Mismatch { certificate, key },
            source => Error::Unusable { certificate, key, source },
        }
    }
}

/// TLS 1.2 and 1.3, HTTP/1.1.
pub(super) fn server_config(certificate: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

/// When a certificate ends.
///
/// rustls has no getter for it, but tells it when it refuses the certificate at
/// the end of time; that is what it looks at first (rustls-webpki 0.103,
/// `check_issuer_independent_properties`).
fn not_after(certificate: &CertificateDer<'_>, provider: &CryptoProvider) -> Result<Timestamp, rustls::Error> {
    let end_of_time = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let checked = verify_server_cert_signed_by_trust_anchor(
        &ParsedCertificate::try_from(certificate)?,
        &RootCertStore::empty(),
        &[],
        end_of_time,
        provider.signature_verification_algorithms.all,
    );
    match checked {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Ok(Timestamp::from_secs(0).plus(Duration::from_secs(not_after.as_secs())))
        }
        Err(error) => Err(error),
        Ok(()) => Err(CertificateError::UnknownIssuer.into()),
    }
}

impl From<pem::Error> for PemError {
    /// The other errors quote the file, which may be a key on one line.
    fn from(error: pem::Error) -> Self {
        match error {
            pem::Error::Io(error) => Self::Read(error),
            pem::Error::NoItemsFound => Self::Absent,
            _ => Self::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::tests::TestPair;

    fn read(certificate: PathBuf, key: PathBuf) -> Result<Pair, Error> {
        PairFiles { certificate, key }.read()
    }

    #[test]
    fn a_pair_tells_when_it_ends() {
        let pair = TestPair::ending_in(2031);
        let read = read(pair.certificate.clone(), pair.key.clone()).unwrap();
        assert_eq!(read.not_after.to_string(), "2031-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (ours, other) = (TestPair::generate(), TestPair::generate());
        let error = read(ours.certificate.clone(), other.key.clone()).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("does not belong to") && text.contains(&other.key.display().to_string()), "{text}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_missing_file_is_named() {
        let pair = TestPair::generate();
        let absent = pair.key.with_file_name("absent.pem");
        let error = read(absent.clone(), pair.key.clone()).unwrap_err();
        assert!(error.to_string().contains("absent.pem"), "{error}");
        assert_eq!(error.hint(), Some("name a PEM file with the chain, leaf first"));
        let error = read(pair.certificate.clone(), absent).unwrap_err();
        assert!(matches!(error, Error::Key { source: PemError::Read(_), .. }), "{error:?}");
    }

    #[test]
    fn a_file_without_the_wanted_section_is_refused() {
        let pair = TestPair::generate();
        let error = read(pair.key.clone(), pair.key.clone()).unwrap_err();
        assert!(matches!(error, Error::Certificate { source: PemError::Absent, .. }), "{error:?}");
        let error = read(pair.certificate.clone(), pair.certificate.clone()).unwrap_err();
        assert!(matches!(error, Error::Key { source: PemError::Absent, .. }), "{error:?}");
    }

    /// The parser quotes the line that it does not like; of a key on one line that is the key.
    #[test]
    fn a_damaged_key_is_not_shown() {
        let pair = TestPair::generate();
        let key = std::fs::read_to_string(&pair.key).unwrap();
        let secret = key.lines().nth(1).unwrap().to_owned();
        for damaged in [key.replace('\n', " "), key.replace('\n', ""), key.replacen("KEY-----\n", "KEY----\n", 1)] {
            std::fs::write(&pair.key, damaged).unwrap();
            let error = read(pair.certificate.clone(), pair.key.clone()).unwrap_err();
            assert!(matches!(error, Error::Key { source: PemError::Damaged | PemError::Absent, .. }), "{error:?}");
            let shown = format!("{error:?}");
            let as_numbers = format!("{:?}", secret.as_bytes()).replace(['[', ']'], "");
            assert!(!shown.contains(&secret) && !shown.contains(&as_numbers), "{shown}");
        }
    }
}
