//! One connection: its phases, each with a deadline of its own.
//!
//! ```text
//! (handshake) ─▶ Fresh ──first byte──▶ Header ──whole header──▶ Answering
//!                                        ▲                          │ answer made
//!                                        └───────first byte─── Idle ◀┘
//! ```
//!
//! hyper has one timer for header and idle time together, and none that tells
//! a silent connection from a slow one; so the stream is watched here and
//! hyper's timer is off. A late header is answered 408, everything else that
//! is late is closed without a word.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::listener::callers::{Callers, Place};
use crate::listener::limits::{BUFFER_BYTES_MAX, HEADER_BYTES_MAX, HEADERS_MAX, Limits};
use crate::listener::serve::Service;

/// The last word to a client whose header took too long.
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A place is free once one of the open requests is answered, at the latest by its source's deadline.
const RETRY_AFTER_SECS: u64 = 5;

/// How long the last word and the end of TLS may take; a peer that does not read loses them.
const FAREWELL_WITHIN: Duration = Duration::from_secs(1);

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No byte has come yet.
    Fresh,
    /// A request has begun and its header is not whole.
    Header,
    /// The service has the request.
    Answering,
    /// The answer is made and the next request has not begun.
    Idle,
}

impl Phase {
    fn within(self, limits: &Limits) -> Duration {
        match self {
            Self::Fresh => limits.first_request_within,
            Self::Header => limits.header_within,
            Self::Answering => Duration::MAX,
            Self::Idle => limits.idle_within,
        }
    }
}

/// What a connection needs besides its stream.
pub(super) struct Connection<S> {
    pub(super) peer: SocketAddr,
    pub(super) place: Place,
    pub(super) callers: Callers,
    pub(super) limits: Limits,
    pub(super) service: S,
    pub(super) stopping: watch::Receiver<bool>,
}

impl<S: Service> Connection<S> {
    /// Serves the stream until one side ends it, a deadline passes, or the server stops.
    pub(super) async fn run(mut self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Answers are small and whole: waiting to fill a segment only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "connection lost after accept");
            return;
        }
        let Some(acceptor) = tls else {
            return self.serve(stream).await;
        };
        let handshake = timeout(self.limits.handshake_within, acceptor.accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = stopped(&mut self.stopping) => return,
        };
        match shaken {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => debug!(%error, "handshake failed"),
            Err(_) => debug!("handshake too slow"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Self { peer, place: _place, callers, limits, service, mut stopping } = self;
        let phase = Arc::new(watch::Sender::new(Phase::Fresh));
        let answer = |request: Request<Incoming>| {
            let (callers, service, phase) = (callers.clone(), service.clone(), Arc::clone(&phase));
            async move {
                phase.send_replace(Phase::Answering);
                let answer = match callers.request(peer, request.headers()) {
                    Some((client, _place)) => service.call(request, client).await,
                    None => too_many_requests(),
                };
                phase.send_replace(Phase::Idle);
                Ok::<_, Infallible>(answer)
            }
        };
        let stream = Watched { stream, phase: Arc::clone(&phase) };
        let mut http = http1::Builder::new()
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEADER_BYTES_MAX)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service_fn(answer));

        let overdue = overdue(&phase, &limits);
        tokio::pin!(overdue);
        let mut told = false;
        let last = loop {
            tokio::select! {
                ended = &mut http => return log_end(ended),
                last = &mut overdue => break last,
                () = stopped(&mut stopping), if !told => {
                    told = true;
                    Pin::new(&mut http).graceful_shutdown();
                    // hyper would wait for the first request.
                    if *phase.borrow() == Phase::Fresh {
                        break Phase::Fresh;
                    }
                }
            }
        };
        debug!(phase = ?last, "connection closed by its deadline or a stop");
        farewell(http.into_parts().io.into_inner(), last).await;
    }
}

/// Waits until the connection has stayed in one phase for longer than allowed.
async fn overdue(phase: &watch::Sender<Phase>, limits: &Limits) -> Phase {
    let mut seen = phase.subscribe();
    loop {
        let now = *seen.borrow_and_update();
        if timeout(now.within(limits), seen.changed()).await.is_err() {
            return now;
        }
    }
}

/// Ready once the server stops, or is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let told = stopping.wait_for(|stopping| *stopping).await;
    drop(told);
}

/// The answer to a proxy's client that has too many requests open.
fn too_many_requests() -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS));
    answer
}

async fn farewell(mut stream: impl AsyncWrite + Unpin, last: Phase) {
    let words = async {
        if last == Phase::Header {
            stream.write_all(REQUEST_TIMEOUT).await?;
        }
        stream.shutdown().await
    };
    match timeout(FAREWELL_WITHIN, words).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "connection lost before its end"),
        Err(_) => debug!("the peer does not take the end of its connection"),
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        debug!(%error, "connection failed");
    }
}

/// A stream that notes when a request begins.
struct Watched<IO> {
    stream: IO,
    phase: Arc<watch::Sender<Phase>>,
}

impl<IO> Watched<IO> {
    /// Bytes of a body come while answering and begin nothing.
    fn note_bytes(&self) {
        self.phase.send_if_modified(|phase| {
            let begins = matches!(phase, Phase::Fresh | Phase::Idle);
            if begins {
                *phase = Phase::Header;
            }
            begins
        });
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Watched<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.note_bytes();
        }
        polled
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Watched<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
