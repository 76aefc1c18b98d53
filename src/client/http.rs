//! The real transport: reqwest over rustls.
//!
//! One call is one request: no redirect is followed, no proxy is taken from
//! the environment, and reqwest's own retries are off, since a repeated write
//! could make a second object. (What stays is hyper's: a request that meets a
//! closed idle connection before its first byte goes to a new one.) Certificates are checked against the system's
//! store, so an operator adds a private authority in the usual way.

use std::error::Error;
use std::io;
use std::iter;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::client::{Answer, Call, Failure, Method, Transport};

/// A longer answer counts as lost; the longest honest one is a page of 250 deals, below 2 MiB.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// As in amoCRM's own client; within it a call that cannot connect is known as not sent.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Below the usual keep-alive of servers (60 s), so that a call seldom meets a closing connection.
const IDLE_MAX: Duration = Duration::from_secs(30);

const USER_AGENT: &str = concat!("tambour/", env!("CARGO_PKG_VERSION"));

/// Carries calls over HTTP and HTTPS; cheap to clone, clones share connections.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: reqwest::Client,
}

/// The transport cannot be made: usually no certificate authority is installed.
#[derive(Debug, thiserror::Error)]
#[error("failed to prepare outgoing TLS")]
pub struct SetupError(#[source] reqwest::Error);

impl HttpTransport {
    /// Prepares connections; dials none.
    ///
    /// # Errors
    /// [`SetupError`] when the system's certificate store cannot be used.
    ///
    /// # Panics
    /// When the process has not installed a rustls provider before.
    pub fn new() -> Result<Self, SetupError> {
        Self::of(reqwest::Client::builder())
    }

    /// As [`Self::new`], but takes any certificate: for a look at one's own door.
    ///
    /// # Errors
    /// As [`Self::new`].
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn without_certificate_checks() -> Result<Self, SetupError> {
        Self::of(reqwest::Client::builder().tls_danger_accept_invalid_certs(true))
    }

    fn of(builder: reqwest::ClientBuilder) -> Result<Self, SetupError> {
        let client = builder
            .user_agent(USER_AGENT)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_WITHIN)
            .pool_idle_timeout(IDLE_MAX)
            .build()
            .map_err(SetupError)?;
        Ok(Self { client })
    }
}

impl Transport for HttpTransport {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Failure>> {
        exchange(self.client.clone(), call).boxed()
    }
}

async fn exchange(client: reqwest::Client, call: Call) -> Result<Answer, Failure> {
    let method = match call.method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    };
    let mut request = client.request(method, &call.url).timeout(call.timeout);
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    if !call.body.is_empty() {
        request = request.body(call.body);
    }
    let response = request.send().await.map_err(failure)?;
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let body = whole_body(response).await?;
    Ok(Answer { status, headers, body })
}

async fn whole_body(mut response: reqwest::Response) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(failure)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(Failure::Lost(format!("longer than {ANSWER_BYTES_MAX} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Only what happened before a connection stood is certainly not sent.
fn failure(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    if error.is_builder() {
        return Failure::NotSent(last_cause(&error));
    }
    if !error.is_connect() {
        return Failure::Lost(if error.is_timeout() { "timed out".to_owned() } else { last_cause(&error) });
    }
    let certificate = causes(&error).find_map(|cause| match cause.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(reason)) => Some(reason.to_string()),
        _ => None,
    });
    match certificate {
        Some(reason) => Failure::Certificate(reason),
        None => Failure::NotSent(last_cause(&error)),
    }
}

fn last_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// The error and its causes, outermost first, looking into I/O errors, whose
/// `source` passes over the error that they wrap.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn transport() -> HttpTransport {
        // Another test of this process may have installed it.
        drop(rustls::crypto::ring::default_provider().install_default());
        HttpTransport::new().unwrap()
    }

    fn call_to(scheme: &str, listener: &TcpListener) -> Call {
        Call {
            method: Method::Post,
            url: format!("{scheme}://127.0.0.1:{}/leads?query=secret", listener.local_addr().unwrap().port()),
            headers: vec![("authorization".to_owned(), "Bearer secret".to_owned())],
            body: Bytes::from_static(b"{\"end\":1}"),
            timeout: Duration::from_secs(30),
        }
    }

    async fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").await.unwrap()
    }

    /// Takes one connection and reads one request from it.
    async fn accept_request(listener: &TcpListener) -> (TcpStream, String) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\"end\":1}") {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0, "the request was cut");
        }
        (stream, String::from_utf8(request).unwrap())
    }

    #[tokio::test]
    async fn a_call_arrives_whole_and_its_answer_comes_back() {
        let listener = listener().await;
        let server = async {
            let (mut stream, request) = accept_request(&listener).await;
            stream.write_all(b"HTTP/1.1 201 Created\r\nX-Id: 7\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
            request
        };
        let transport = transport();
        let (request, answer) = tokio::join!(server, transport.call(call_to("http", &listener)));
        let request = request.to_lowercase();
        assert!(request.starts_with("post /leads?query=secret http/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("user-agent: {USER_AGENT}\r\n")), "{request}");
        assert!(request.contains("authorization: bearer secret\r\n"), "{request}");
        let answer = answer.unwrap();
        assert_eq!((answer.status, answer.header("x-id"), &*answer.body), (201, Some("7"), &b"{}"[..]));
    }

    /// B41: a refused connection is known as not sent.
    #[tokio::test]
    async fn a_refused_connection_was_not_sent() {
        let listener = listener().await;
        let call = call_to("http", &listener);
        drop(listener);
        let failure = transport().call(call).await.unwrap_err();
        assert!(matches!(&failure, Failure::NotSent(_)), "{failure}");
        assert!(failure.to_string().contains("refused"), "{failure}");
    }

    /// B41: a request that was read and never answered may have been carried out.
    #[tokio::test]
    async fn a_cut_connection_is_a_lost_answer() {
        let listener = listener().await;
        let server = async { drop(accept_request(&listener).await) };
        let transport = transport();
        let ((), answer) = tokio::join!(server, transport.call(call_to("http", &listener)));
        let failure = answer.unwrap_err();
        assert!(matches!(&failure, Failure::Lost(_)), "{failure}");
        assert!(!failure.to_string().contains("secret"), "{failure}");
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_a_lost_answer() {
        let listener = listener().await;
        let server = async {
            let (mut stream, _) = accept_request(&listener).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{").await.unwrap();
        };
        let transport = transport();
        let ((), answer) = tokio::join!(server, transport.call(call_to("http", &listener)));
        assert!(matches!(answer.unwrap_err(), Failure::Lost(_)));
    }

    #[tokio::test]
    async fn an_answer_that_never_comes_is_lost_after_the_timeout() {
        let listener = listener().await;
        let mut call = call_to("http", &listener);
        call.timeout = Duration::from_millis(20);
        let failure = transport().call(call).await.unwrap_err();
        assert_eq!(failure, Failure::Lost("timed out".to_owned()));
    }

    /// B42: following it would turn POST into GET and lose the body.
    #[tokio::test]
    async fn a_redirect_is_an_answer() {
        let listener = listener().await;
        let server = async {
            let (mut stream, _) = accept_request(&listener).await;
            stream.write_all(b"HTTP/1.1 301 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        };
        let transport = transport();
        let ((), answer) = tokio::join!(server, transport.call(call_to("http", &listener)));
        assert_eq!(answer.unwrap().status, 301);
    }

    #[tokio::test]
    async fn an_oversized_answer_is_lost() {
        let listener = listener().await;
        let server = async {
            let (mut stream, _) = accept_request(&listener).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", ANSWER_BYTES_MAX + 1);
            stream.write_all(head.as_bytes()).await.unwrap();
            // The client hangs up at the limit, so the rest may not be taken.
            stream.write_all(&vec![b' '; ANSWER_BYTES_MAX + 1]).await.ok();
        };
        let transport = transport();
        let ((), answer) = tokio::join!(server, transport.call(call_to("http", &listener)));
        assert_eq!(answer.unwrap_err(), Failure::Lost(format!("longer than {ANSWER_BYTES_MAX} bytes")));
    }

    #[tokio::test]
    async fn a_certificate_of_an_unknown_issuer_is_refused() {
        let transport = transport();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = listener().await;
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            assert!(acceptor.accept(stream).await.is_err());
        };
        let ((), answer) = tokio::join!(server, transport.call(call_to("https", &listener)));
        let failure = answer.unwrap_err();
        assert!(matches!(&failure, Failure::Certificate(_)), "{failure}");
    }

    /// A server that speaks no TLS has not understood a request.
    #[tokio::test]
    async fn a_failed_handshake_was_not_sent() {
        let listener = listener().await;
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        };
        let transport = transport();
        let ((), answer) = tokio::join!(server, transport.call(call_to("https", &listener)));
        let failure = answer.unwrap_err();
        assert!(matches!(&failure, Failure::NotSent(_)), "{failure}");
    }
}
