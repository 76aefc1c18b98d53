//! The emulated source's way out: posts deliveries over real TLS, as senders do.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

/// Posts to one address, each delivery on a connection of its own or all on one [`Line`].
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

    /// Posts a body on a connection of its own and waits for the answer.
    ///
    /// # Errors
    /// [`SendError`] when no whole answer came.
    pub async fn post(&self, path: &str, headers: &[(String, String)], body: Bytes) -> Result<Answered, SendError> {
        self.line(None).await?.post(path, headers, body).await
    }

    /// Sends any request on a connection of its own and waits for the answer.
    ///
    /// # Errors
    /// [`SendError`] when no whole answer came.
    pub async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answered, SendError> {
        self.line(None).await?.exchange(request).await
    }

    /// Opens a connection for requests one after another, from one of the machine's addresses or any.
    ///
    /// # Errors
    /// [`SendError`] when there is none.
    pub async fn line(&self, from: Option<IpAddr>) -> Result<Line, SendError> {
        let stream = TokioIo::new(self.connect(from).await?);
        let (requests, connection) =
            http1::handshake(stream).await.map_err(|error| SendError::Http(self.address, error))?;
        Ok(Line { address: self.address, requests, connection: connection.boxed().fuse() })
    }

    /// Opens a bare connection, for a peer that does not behave.
    ///
    /// # Errors
    /// [`SendError`] when there is none.
    pub async fn connect(
        &self,
        from: Option<IpAddr>,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, SendError> {
        let broken = |error| SendError::Connection(self.address, error);
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(broken)?;
        if let Some(from) = from {
            socket.bind(SocketAddr::new(from, 0)).map_err(broken)?;
        }
        let tcp = socket.connect(self.address).await.map_err(broken)?;
        tcp.set_nodelay(true).map_err(broken)?;
        self.tls.connect(self.host.clone(), tcp).await.map_err(broken)
    }
}

/// One open connection; after an error it is of no more use.
pub struct Line {
    address: SocketAddr,
    requests: http1::SendRequest<Full<Bytes>>,
    /// Carries the bytes while an exchange waits.
    connection: futures_util::future::Fuse<BoxFuture<'static, Result<(), hyper::Error>>>,
}

impl Line {
    /// Posts a body and waits for the answer.
    ///
    /// # Errors
    /// [`SendError`] when no whole answer came.
    pub async fn post(&mut self, path: &str, headers: &[(String, String)], body: Bytes) -> Result<Answered, SendError> {
        let mut request = Request::post(path).header(HOST, "localhost");
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| SendError::Header(e.into()))?;
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|e| SendError::Header(e.into()))?;
            request = request.header(name, value);
        }
        self.exchange(request.body(Full::new(body)).map_err(SendError::Header)?).await
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Answered, SendError> {
        let http = |error| SendError::Http(self.address, error);
        let requests = &mut self.requests;
        let exchange = async {
            requests.ready().await.map_err(http)?;
            let response = requests.send_request(request).await.map_err(http)?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(http)?.to_bytes();
            Ok(Answered { status, text: String::from_utf8_lossy(&body).into_owned() })
        };
        tokio::pin!(exchange);
        tokio::select! {
            answered = &mut exchange => answered,
            ended = &mut self.connection => match ended {
                // The answer may be whole although the connection is closed.
                Ok(()) => exchange.await,
                Err(error) => Err(http(error)),
            },
        }
    }
}
