//! The accept loop: as many connections as allowed, each in a task that the loop owns.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tracing::{error, warn};

use crate::listener::Limits;
use crate::listener::connection::Connection;
use crate::listener::tcp::accept;

/// Answers requests; plugged in by the composition root.
pub trait Service: Clone + Send + Sync + 'static {
    /// Answers one request of `peer`.
    ///
    /// The body is unread: [`read_whole`](crate::listener::read_whole) bounds it.
    /// No deadline of the listener runs meanwhile, so the service keeps its own.
    /// Dropped when the client goes away.
    fn call(&self, request: Request<Incoming>, peer: SocketAddr) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Serves one bound port.
pub struct Server {
    tls: Option<TlsAcceptor>,
    limits: Limits,
}

impl Server {
    /// HTTP over TLS, with what [`load`](crate::listener::load) read.
    pub fn tls(config: Arc<rustls::ServerConfig>, limits: Limits) -> Self {
        Self { tls: Some(config.into()), limits }
    }

    /// HTTP without TLS: for loopback, and behind a proxy on the same machine.
    pub fn plain(limits: Limits) -> Self {
        Self { tls: None, limits }
    }

    /// Serves until `stop` is ready, then lets open requests end.
    ///
    /// After the stop the port is closed, idle connections are closed at once,
    /// and what still runs after `drain_within` is cut.
    pub async fn run(self, listener: TcpListener, service: impl Service, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let stopping = watch::Sender::new(false);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = connections.join_next() => report(ended),
                (stream, peer) = accept(&listener), if connections.len() < self.limits.connections_max => {
                    let connection = Connection {
                        peer,
                        limits: self.limits,
                        service: service.clone(),
                        stopping: stopping.subscribe(),
                    };
                    connections.spawn(connection.run(stream, self.tls.clone()));
                }
            }
        }
        drop(listener);
        stopping.send_replace(true);
        drain(connections, self.limits).await;
    }
}

async fn drain(mut connections: JoinSet<()>, limits: Limits) {
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(limits.drain_within, all_ended).await.is_err() {
        warn!(connections = connections.len(), "requests still open after the drain are cut");
        connections.shutdown().await;
    }
}

/// A panic of a service ends its own connection; it is our mistake, so a person must see it.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        error!(%error, "a connection's task panicked");
    }
}
