//! The sandbox over real HTTP/1.1 on a listener that the caller bound.
//!
//! A dropped answer closes the connection. A withheld one has its whole content
//! length announced and all but the last byte sent; the last follows a release.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::sandbox::amocrm;
use crate::sandbox::door::{BODY_BYTES_MAX, Sandbox};
use crate::sandbox::message::{Delivery, Reply, Request};

/// How long `accept` waits after an error of the machine, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// A sandbox that is being served; dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    stop: watch::Sender<()>,
    acceptor: JoinSet<()>,
}

impl Running {
    /// Closes the listener and every connection, withheld answers included.
    pub async fn stop(self) {
        let Self { stop, mut acceptor, .. } = self;
        drop(stop);
        while acceptor.join_next().await.is_some() {}
    }
}

/// The answer is lost on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the answer is dropped")]
struct Dropped;

impl Sandbox {
    /// Serves calls until stopped.
    ///
    /// # Errors
    /// When the listener has no local address.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Running> {
        let addr = listener.local_addr()?;
        let (stop, stopped) = watch::channel(());
        let mut acceptor = JoinSet::new();
        acceptor.spawn(accept(self.clone(), listener, stopped));
        Ok(Running { addr, stop, acceptor })
    }
}

async fn accept(sandbox: Sandbox, listener: TcpListener, mut stopped: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(connections.spawn(talk(sandbox.clone(), stream))),
            Err(_) => tokio::select! {
                _ = stopped.changed() => break,
                () = sandbox.clock().sleep(ACCEPT_PAUSE) => {}
            },
        }
    }
    connections.shutdown().await;
}

async fn talk(sandbox: Sandbox, stream: TcpStream) {
    let service = service_fn(move |request| answer(sandbox.clone(), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that ends badly concerns its client alone.
    drop(connection.await);
}

async fn answer(sandbox: Sandbox, request: hyper::Request<Incoming>) -> Result<Response<Body>, Dropped> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return Ok(response(amocrm::too_large(), None));
    };
    let headers =
        parts.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    let request = Request::new(parts.method.as_str(), &parts.uri.to_string(), headers.collect(), body.to_bytes());
    // Taken before the call is handled: a release after its signal must be noticed.
    let releases = sandbox.releases();
    let reply = sandbox.handle(&request);
    match reply.delivery {
        Delivery::Whole => Ok(response(reply, None)),
        Delivery::Dropped => Err(Dropped),
        Delivery::WithholdLastByte => Ok(response(reply, Some(releases))),
        Delivery::Delayed(pause) => {
            sandbox.clock().sleep(pause).await;
            Ok(response(reply, None))
        }
    }
}

/// Makes a response; with `releases` its last byte waits for the next release.
fn response(reply: Reply, releases: Option<watch::Receiver<u64>>) -> Response<Body> {
    let length = reply.body.len();
    let body = match releases {
        Some(releases) if length > 0 => withheld(reply.body, releases),
        _ => Full::new(reply.body).boxed_unsync(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    if length > 0 {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

fn withheld(mut body: Bytes, mut releases: watch::Receiver<u64>) -> Body {
    let last = body.split_off(body.len().saturating_sub(1));
    let last = stream::once(async move {
        // An error means that the sandbox is gone, and the connection with it.
        if releases.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        Ok(Frame::data(last))
    });
    let first = stream::iter([Ok(Frame::data(body))]);
    StreamBody::new(first.chain(last)).boxed_unsync()
}
