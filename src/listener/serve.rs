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
use tracing::{debug, error, warn};

use crate::config::Network;
use crate::listener::callers::Callers;
use crate::listener::connection::Connection;
use crate::listener::tcp::accept;
use crate::listener::{Certificate, Limits};
use crate::telemetry::Metrics;

/// Answers requests; plugged in by the composition root.
pub trait Service: Clone + Send + Sync + 'static {
    /// Answers one request of `peer`, which behind a trusted proxy is the proxy's client.
    ///
    /// The body is unread: a [`BodyRoom`](crate::listener::BodyRoom) bounds it.
    /// No deadline of the listener runs meanwhile, so the service keeps its own.
    /// Dropped when the client goes away.
    fn call(&self, request: Request<Incoming>, peer: SocketAddr) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Serves one bound port.
pub struct Server {
    tls: Option<TlsAcceptor>,
    callers: Callers,
    limits: Limits,
}

impl Server {
    /// HTTP over TLS.
    pub fn tls(certificate: &Certificate, limits: Limits, metrics: Arc<Metrics>) -> Self {
        Self { tls: Some(certificate.server_config().into()), ..Self::plain(limits, metrics) }
    }

    /// HTTP without TLS: for loopback.
    pub fn plain(limits: Limits, metrics: Arc<Metrics>) -> Self {
        Self::behind(Vec::new(), limits, metrics)
    }

    /// HTTP without TLS, whose word on a client's address is taken from these proxies.
    pub fn behind(proxies: Vec<Network>, limits: Limits, metrics: Arc<Metrics>) -> Self {
        Self { tls: None, callers: Callers::new(proxies, limits.connections_per_address_max, metrics), limits }
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
                    let Some(place) = self.callers.connection(peer.ip()) else {
                        debug!("connection over the cap of its address closed");
                        continue;
                    };
                    let connection = Connection {
                        peer,
                        place,
                        callers: self.callers.clone(),
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
