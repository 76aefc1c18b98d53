//! The emulated source's way out: posts deliveries over real TLS, as senders do.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Posts to one address, each delivery on a connection of its own.
#[derive(Clone)]
pub struct Sender {
    address: SocketAddr,
    host: ServerName<'static>,
    tls: TlsConnector,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The body as text.
    pub text: String,
}

/// Why a delivery got no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The certificate to trust cannot be used.
    #[error("the certificate cannot be trusted")]
    Certificate(#[source] rustls::Error),
    /// No connection, or it broke.
    #[error("no answer from {0}")]
    Connection(SocketAddr, #[source] std::io::Error),
    /// Not HTTP, or it broke.
    #[error("no answer from {0}")]
    Http(SocketAddr, #[source] hyper::Error),
    /// A header that HTTP does not allow.
    #[error("a header is not allowed")]
    Header(#[source] hyper::http::Error),
}

impl Sender {
    /// Trusts exactly one self-signed certificate, made for `localhost`.
    ///
    /// # Errors
    /// [`SendError::Certificate`].
    pub fn trusting(address: SocketAddr, certificate: CertificateDer<'static>) -> Result<Self, SendError> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(SendError::Certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(SendError::Certificate)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let host = ServerName::try_from("localhost")
            .map_err(|e| SendError::Certificate(rustls::Error::General(e.to_string())))?;
        Ok(Self { address, host, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Posts a body and waits for the answer.
    ///
    /// # Errors
    /// [`SendError`] when no whole answer came.
    pub async fn post(&self, path: &str, headers: &[(String, String)], body: Bytes) -> Result<Answered, SendError> {
        let mut request = Request::post(path).header(HOST, "localhost");
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| SendError::Header(e.into()))?;
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|e| SendError::Header(e.into()))?;
            request = request.header(name, value);
        }
        self.exchange(request.body(Full::new(body)).map_err(SendError::Header)?).await
    }

    /// Sends any request and waits for the answer.
    ///
    /// # Errors
    /// [`SendError`] when no whole answer came.
    pub async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answered, SendError> {
        let broken = |e| SendError::Connection(self.address, e);
        let http = |e| SendError::Http(self.address, e);
        let tcp = TcpStream::connect(self.address).await.map_err(broken)?;
        let stream = self.tls.connect(self.host.clone(), tcp).await.map_err(broken)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(http)?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(http)?.to_bytes();
            Ok(Answered { status, text: String::from_utf8_lossy(&body).into_owned() })
        };
        tokio::pin!(exchange);
        tokio::select! {
            answered = &mut exchange => answered,
            ended = connection => match ended {
                // The answer may be whole although the connection is closed.
                Ok(()) => exchange.await,
                Err(error) => Err(http(error)),
            },
        }
    }
}
