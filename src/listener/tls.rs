//! The certificate and what is offered in a handshake: TLS 1.2 and 1.3, HTTP/1.1.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::listener::Error;

/// What ALPN offers; only what is served.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// Reads a PEM chain (leaf first) and its PEM private key.
///
/// # Errors
/// [`Error::Certificate`] or [`Error::Key`] for a file that cannot be read,
/// [`Error::Mismatch`] when the key is of another certificate,
/// [`Error::Unusable`] when TLS cannot use them.
pub fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Error> {
    let chain = read_chain(certificate).map_err(|source| Error::Certificate { path: certificate.into(), source })?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| Error::Key { path: key.into(), source })?;

    let unusable = |source| match source {
        rustls::Error::InconsistentKeys(_) => Error::Mismatch { certificate: certificate.into(), key: key.into() },
        source => Error::Unusable { certificate: certificate.into(), key: key.into(), source },
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let chain = CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>()?;
    if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::tests::Pair;

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (ours, other) = (Pair::generate(), Pair::generate());
        let error = load(&ours.certificate, &other.key).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("does not belong to") && text.contains(&other.key.display().to_string()), "{text}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_missing_file_is_named() {
        let pair = Pair::generate();
        let absent = pair.key.with_file_name("absent.pem");
        let error = load(&absent, &pair.key).unwrap_err();
        assert!(error.to_string().contains("absent.pem"), "{error}");
        assert_eq!(error.hint(), Some("name a PEM file with the chain, leaf first"));
        let error = load(&pair.certificate, &absent).unwrap_err();
        assert!(matches!(error, Error::Key { .. }), "{error:?}");
    }

    #[test]
    fn a_file_without_the_wanted_section_is_refused() {
        let pair = Pair::generate();
        let error = load(&pair.key, &pair.key).unwrap_err();
        assert!(matches!(error, Error::Certificate { source: pem::Error::NoItemsFound, .. }), "{error:?}");
        let error = load(&pair.certificate, &pair.certificate).unwrap_err();
        assert!(matches!(error, Error::Key { source: pem::Error::NoItemsFound, .. }), "{error:?}");
    }
}
