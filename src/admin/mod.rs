//! The faces for people: a unix socket for the CLI, a loopback address for metrics and health.
//!
//! | face | address | what |
//! |---|---|---|
//! | HTTP | `GET /metrics` | OpenMetrics text; the gauges are read from the file at that moment |
//! | HTTP | `GET /health` | JSON ([`view::Health`]); 200, or 503 while the file is opened and after a failed write |
//! | socket | `<data>/tambour.sock` | one JSON line ([`Call`]), one JSON line back, mode 0600 |
//!
//! [`answer`] carries out a [`Request`] for the socket and, while no `serve`
//! runs, for the CLI itself. What it gives are the types of [`view`], which
//! hold no body, no secret and no personal data; [`Request::Sample`] alone gives
//! an order's data, for `check`.
//!
//! A hold, a dead task, an alert or an open window is shown and changes no
//! status: the appliance is well, and a person has something to do.

pub mod fix;
pub mod view;

mod error;
mod filter;
mod health;
mod http;
mod operate;
mod request;
mod sample;
mod socket;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

pub use error::{Error, Failure, FailureKind};
pub use filter::{EventFilter, PAGE_MAX, TaskFilter};
pub use request::{Request, Wish, answer, routes};
pub use socket::{AskError, Call, ListenError, Socket, ask, listen};

use crate::client::Amocrm;
use crate::clock::SharedClock;
use crate::config::Config;
use crate::listener::CertificateState;
use crate::store::{Broken, Progress, Store, View};
use crate::telemetry::Metrics;

/// What requests work on.
#[derive(Clone)]
pub struct Context {
    /// The data file.
    pub store: Store,
    /// Both clocks.
    pub clock: SharedClock,
    /// The checked configuration.
    pub config: Arc<Config>,
    /// The accounts that can be changed, by target.
    pub accounts: BTreeMap<String, Amocrm>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How the served certificate stands; absent behind proxies and while nobody serves.
    pub certificate: Option<watch::Receiver<CertificateState>>,
}

impl Context {
    /// Reads the file on a thread of its own: a read may be long, and disks may be slow.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View) -> Result<T, Broken> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.store.clone();
        let read = move || work(&store.view()?).map_err(crate::store::Error::from);
        tokio::task::spawn_blocking(read).await?.map_err(Error::from)
    }
}

/// The faces; cheap to clone.
#[derive(Clone)]
pub struct Admin {
    clock: SharedClock,
    metrics: Arc<Metrics>,
    progress: Progress,
    context: Arc<watch::Sender<Option<Context>>>,
}

impl Admin {
    /// Answers health as `opening` until [`Admin::opened`].
    pub fn new(clock: SharedClock, metrics: Arc<Metrics>) -> Self {
        Self { clock, metrics, progress: Progress::default(), context: Arc::new(watch::Sender::new(None)) }
    }

    /// What health shows of the opening.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Takes what requests work on, once the file is open.
    pub fn opened(&self, context: Context) {
        self.context.send_modify(|slot| *slot = Some(context));
    }

    fn context(&self) -> Option<Context> {
        self.context.borrow().clone()
    }
}
