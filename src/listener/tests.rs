//! The door over real sockets and real TLS.
//!
//! Nobody sleeps: a deadline is short where it is the subject and an hour
//! everywhere else, and a test waits for the end of the stream.

mod caps;
mod certificates;
mod inherited;
mod proxies;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::clock::ManualClock;
use crate::domain::Timestamp;
use crate::listener::{BodyError, BodyRoom, Certificate, Limits, Server, Service, bind};

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(3600);
/// A test that waits this long for the end of a stream has failed.
const HUNG: Duration = Duration::from_secs(60);
const BODY_BYTES_MAX: usize = 16;

/// No deadline passes during a test.
const PATIENT: Limits = Limits {
    connections_max: 256,
    connections_per_address_max: 256,
    handshake_within: LONG,
    first_request_within: LONG,
    header_within: LONG,
    idle_within: LONG,
    drain_within: LONG,
};

/// A self-signed certificate for `localhost` and its key, as PEM files.
pub(super) struct TestPair {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    _folder: tempfile::TempDir,
}

impl TestPair {
    pub(super) fn generate() -> Self {
        Self::ending_in(2100)
    }

    /// Ends with the first moment of the year.
    pub(super) fn ending_in(year: i32) -> Self {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pair =
            Self { certificate: folder.path().join("chain.pem"), key: folder.path().join("key.pem"), _folder: folder };
        std::fs::write(&pair.certificate, params.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }

    /// Puts the other pair in the place of this one, each file whole at once, as renewal programs do.
    pub(super) fn replace_with(&self, other: &Self) {
        for (ours, theirs) in [(&self.certificate, &other.certificate), (&self.key, &other.key)] {
            let fresh = ours.with_extension("new");
            std::fs::copy(theirs, &fresh).unwrap();
            std::fs::rename(&fresh, ours).unwrap();
        }
    }

    /// The certificate as it is on disk now.
    fn root(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(&self.certificate).unwrap()
    }
}

/// Answers with the body it got, or at `/who` with the caller's address; holds `/held` until told.
#[derive(Clone)]
struct Echo {
    room: BodyRoom,
    body_within: Duration,
    calls: watch::Sender<usize>,
    began: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Echo {
    fn new(room: BodyRoom, body_within: Duration) -> Self {
        Self { room, body_within, calls: watch::Sender::new(0), began: Arc::default(), go_on: Arc::default() }
    }

    /// Returns once the service has been called so often.
    async fn called(&self, times: usize) {
        let mut calls = self.calls.subscribe();
        timeout(HUNG, calls.wait_for(|calls| *calls >= times)).await.expect("all are called").unwrap();
    }
}

impl Service for Echo {
    async fn call(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        self.calls.send_modify(|calls| *calls += 1);
        match request.uri().path() {
            "/who" => return Response::new(Full::from(peer.to_string())),
            "/held" => {
                self.began.notify_one();
                self.go_on.notified().await;
            }
            _ => {}
        }
        let body = self.room.read_whole(request.into_body(), BODY_BYTES_MAX, self.body_within).await;
        let (status, body) = match body {
            Ok(body) => (StatusCode::OK, body),
            Err(BodyError::TooLarge { .. }) => (StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()),
            Err(BodyError::NoRoom) => (StatusCode::SERVICE_UNAVAILABLE, Bytes::new()),
            Err(BodyError::TooSlow) => (StatusCode::REQUEST_TIMEOUT, Bytes::new()),
            Err(BodyError::Broken) => (StatusCode::BAD_REQUEST, Bytes::new()),
        };
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = status;
        answer
    }
}

/// A running server; dropping it aborts it.
struct Running {
    address: SocketAddr,
    echo: Echo,
    stop: oneshot::Sender<Infallible>,
    running: JoinSet<()>,
}

impl Running {
    async fn start(server: Server, echo: Echo) -> Self {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let mut running = JoinSet::new();
        running.spawn(server.run(listener, echo.clone(), async move {
            assert!(stopped.await.is_err());
        }));
        Self { address, echo, stop, running }
    }

    async fn plain(limits: Limits, room: BodyRoom) -> Self {
        Self::start(Server::plain(limits, Arc::default()), Echo::new(room, LONG)).await
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends one request over a connection of its own and reads the answer to its end.
    async fn ask(&self, request: &str) -> String {
        last_words(self.tcp().await, &request.replacen("\r\n", "\r\nconnection: close\r\n", 1)).await
    }

    /// Asks until the answer has this status: what it waits for is under way.
    async fn ask_until(&self, status: &str, request: &str) -> String {
        let asked = async {
            loop {
                let answer = self.ask(request).await;
                if status_of(&answer) == status {
                    return answer;
                }
            }
        };
        timeout(HUNG, asked).await.expect("the answer comes")
    }
}

/// A running server with TLS.
struct Door {
    running: Running,
    pair: TestPair,
    certificate: Certificate,
}

impl Deref for Door {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl Door {
    async fn open(limits: Limits) -> Self {
        Self::open_with(limits, LONG).await
    }

    async fn open_with(limits: Limits, body_within: Duration) -> Self {
        let pair = TestPair::generate();
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let certificate = Certificate::load(&pair.certificate, &pair.key, clock).unwrap();
        let server = Server::tls(&certificate, limits, Arc::default());
        let running = Running::start(server, Echo::new(BodyRoom::default(), body_within)).await;
        Self { running, pair, certificate }
    }

    async fn tls(&self) -> TlsStream<TcpStream> {
        self.tls_offering(&[b"h2", b"http/1.1"]).await.unwrap()
    }

    async fn tls_offering(&self, protocols: &[&[u8]]) -> std::io::Result<TlsStream<TcpStream>> {
        self.tls_trusting(self.pair.root(), protocols).await
    }

    async fn tls_trusting(
        &self,
        root: CertificateDer<'static>,
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.tcp().await).await
    }
}

/// Sends text and reads until the server closes.
async fn last_words(mut stream: impl AsyncRead + AsyncWrite + Unpin, sent: &str) -> String {
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    // A reset is a close too; what came before it counts.
    drop(timeout(HUNG, stream.read_to_end(&mut read)).await.expect("the server closes"));
    String::from_utf8(read).unwrap()
}

/// Reads one answer's header and leaves the connection open.
async fn answer_header(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(read).unwrap()
}

fn status_of(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed without an answer")
}

const GET: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn a_request_over_tls_is_answered() {
    let door = Door::open(PATIENT).await;
    let stream = door.tls().await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));

    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    let mut client = JoinSet::new();
    client.spawn(connection);
    for body in ["first", "second"] {
        let request = Request::post("/").header("host", "localhost").body(Full::new(Bytes::from(body))).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), body);
    }
}

#[tokio::test]
async fn a_client_that_only_speaks_http_2_is_refused_in_the_handshake() {
    let door = Door::open(PATIENT).await;
    let error = door.tls_offering(&[b"h2"]).await.unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}

#[tokio::test]
async fn a_silent_handshake_is_closed() {
    let door = Door::open(Limits { handshake_within: SHORT, ..PATIENT }).await;
    assert_eq!(last_words(door.tcp().await, "").await, "");
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let door = Door::open(Limits { first_request_within: SHORT, ..PATIENT }).await;
    assert_eq!(last_words(door.tls().await, "").await, "");
}

#[tokio::test]
async fn half_a_header_is_answered_408_and_closed() {
    let door = Door::open(Limits { header_within: SHORT, ..PATIENT }).await;
    let answer = last_words(door.tls().await, "GET / HTTP/1.1\r\nhost: loc").await;
    assert_eq!(status_of(&answer), "408");
}

#[tokio::test]
async fn half_a_second_header_is_answered_408_and_closed() {
    let door = Door::open(Limits { header_within: SHORT, ..PATIENT }).await;
    let mut stream = door.tls().await;
    stream.write_all(GET.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut stream).await), "200");
    assert_eq!(status_of(&last_words(stream, "GET /").await), "408");
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let door = Door::open(Limits { idle_within: SHORT, ..PATIENT }).await;
    let answer = last_words(door.tls().await, GET).await;
    assert_eq!(status_of(&answer), "200");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "nothing follows the answer: {answer}");
}

#[tokio::test]
async fn no_deadline_of_the_listener_runs_while_the_service_works() {
    let limits = Limits { header_within: SHORT, idle_within: SHORT, ..PATIENT };
    let door = Door::open_with(limits, SHORT * 4).await;
    let begun = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n12";
    let answer = last_words(door.tls().await, begun).await;
    assert_eq!(status_of(&answer), "408", "the body's own deadline answers");
    assert!(answer.contains("date:"), "and it is the service that does: {answer}");
}

#[tokio::test]
async fn an_announced_body_that_is_too_large_is_refused() {
    let door = Door::open(PATIENT).await;
    let mut stream = door.tls().await;
    stream.write_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 17\r\n\r\n").await.unwrap();
    assert_eq!(status_of(&answer_header(&mut stream).await), "413");
}

#[tokio::test]
async fn a_chunked_body_is_refused_at_the_first_byte_over() {
    let door = Door::open(PATIENT).await;
    let mut stream = door.tls().await;
    let chunks = "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n11\r\n0123456789abcdefg\r\n";
    stream.write_all(chunks.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut stream).await), "413");
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read() {
    let door = Door::open(PATIENT).await;
    let mut stream = door.tls().await;
    let whole = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16\r\n\r\n0123456789abcdef";
    stream.write_all(whole.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut stream).await), "200");
}

#[tokio::test]
async fn a_header_that_is_too_long_is_answered_431() {
    let door = Door::open(PATIENT).await;
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nlong: {}", "x".repeat(super::HEADER_BYTES_MAX));
    let mut stream = door.tls().await;
    stream.write_all(long.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut stream).await), "431");
}

/// One connection takes the only place; the next client is served once it is gone.
#[tokio::test]
async fn a_client_over_the_cap_waits_for_a_place() {
    let door = Door::open(Limits { connections_max: 1, ..PATIENT }).await;
    let first = door.tls().await;
    let second = door.tls();
    tokio::pin!(second);
    assert!(timeout(SHORT, &mut second).await.is_err(), "the handshake does not begin");
    drop(first);
    let mut second = second.await;
    second.write_all(GET.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut second).await), "200");
}

#[tokio::test]
async fn a_stop_lets_an_open_request_end_and_closes_the_others() {
    let mut door = Door::open(PATIENT).await;
    let (silent, fresh, mut idle, mut held) = (door.tcp().await, door.tls().await, door.tls().await, door.tls().await);
    idle.write_all(GET.as_bytes()).await.unwrap();
    answer_header(&mut idle).await;
    held.write_all(b"GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    door.echo.began.notified().await;

    drop(door.running.stop);
    assert_eq!(last_words(silent, "").await, "");
    assert_eq!(last_words(fresh, "").await, "");
    assert_eq!(last_words(idle, "").await, "");
    assert!(TcpStream::connect(door.running.address).await.is_err(), "the port is closed");

    door.running.echo.go_on.notify_one();
    assert_eq!(status_of(&last_words(held, "").await), "200");
    door.running.running.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_cuts_what_does_not_end() {
    let mut door = Door::open(Limits { drain_within: SHORT, ..PATIENT }).await;
    let mut held = door.tls().await;
    held.write_all(b"GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    door.echo.began.notified().await;
    drop(door.running.stop);
    door.running.running.join_next().await.unwrap().unwrap();
    assert_eq!(last_words(held, "").await, "");
}

#[tokio::test]
async fn a_plain_server_answers_without_tls() {
    let door = Running::plain(PATIENT, BodyRoom::default()).await;
    assert_eq!(status_of(&door.ask(GET).await), "200");
}
