//! The composition root: binds the ports, opens the file, starts the rooms, owns the shutdown.
//!
//! In this order, so that no moment is silent: the public port is bound before
//! the file is opened (a request waits up to its source's `answer_within`);
//! then the file, the routes' live moments, the worker, the admin faces. A stop
//! goes the other way: no new deliveries, open ones answered, running tasks
//! ended, the file closed with the mark of an orderly stop.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::admin::{self, Admin};
use crate::client::{Amocrm, SharedTransport, Shop};
use crate::clock::SharedClock;
use crate::config::{Config, Front, LostNames, Source, SourceKind};
use crate::domain::UsedName;
use crate::ingress::{Door, Inbox, Refusals};
use crate::intake::{Intake, route_names};
use crate::listener::{self, Certificate, CertificateState, Limits, Server};
use crate::store::{self, OpenError, Store, Terms};
use crate::systemd;
use crate::telemetry::Metrics;
use crate::worker::{Context, Worker};

/// Why the appliance does not start, or why it ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A port or the certificate.
    #[error("failed to open the door")]
    Listener(#[from] listener::Error),
    /// The data file.
    #[error("failed to open the inbox")]
    Open(#[from] OpenError),
    /// The configuration lost names that keys in the file hold.
    #[error(transparent)]
    Names(#[from] LostNames),
    /// The unix socket.
    #[error("failed to open the socket")]
    Socket(#[from] admin::ListenError),
    /// A write failed: the process ends, and the next start checks the file.
    #[error("the data file takes no more writes")]
    Stopped(#[source] store::Error),
    /// A service of ours panicked.
    #[error("an internal service failed")]
    Service(#[from] JoinError),
    /// A service of ours ended that never should.
    #[error("an internal service ended by itself")]
    Ended,
    /// SIGHUP cannot be heard.
    #[error("failed to listen for signals")]
    Signal(#[source] io::Error),
}

/// The bound ports; port 0 in the configuration takes a free one.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The public door.
    pub door: SocketAddr,
    /// Metrics and health.
    pub admin: SocketAddr,
}

/// A started appliance, before its file is open.
pub struct Appliance {
    config: Arc<Config>,
    clock: SharedClock,
    metrics: Arc<Metrics>,
    services: JoinSet<()>,
    stop: watch::Sender<bool>,
    inbox: watch::Sender<Option<Inbox>>,
    refusals: Refusals,
    admin: Admin,
    certificate_state: Option<watch::Receiver<CertificateState>>,
    bound: Bound,
    /// Who says that the file's other machine is off.
    take_over: Option<String>,
}

impl Appliance {
    /// Binds both ports and starts to answer on them.
    ///
    /// # Errors
    /// [`Error::Listener`].
    pub async fn bind(config: Config, clock: SharedClock) -> Result<Self, Error> {
        // Before other work: it takes what systemd passes out of the environment.
        let door = listener::inherit_or_bind(config.listener.address).await?;
        let faces = listener::bind(config.admin).await?;
        let bound = Bound { door: local(&door, config.listener.address), admin: local(&faces, config.admin) };
        let config = Arc::new(config);
        let metrics = Arc::new(Metrics::default());
        let (stop, stopped) = watch::channel(false);
        let (inbox, opened) = watch::channel(None);
        let mut services = JoinSet::new();
        let (server, certificate) = match &config.listener.front {
            Front::Tls { certificate, key } => {
                let certificate = Certificate::load(certificate, key, clock.clone())?;
                services.spawn(certificate.clone().watch(on(stopped.clone())));
                (Server::tls(&certificate, Limits::default(), metrics.clone()), Some(certificate))
            }
            Front::Proxies { trusted } => (Server::behind(trusted.clone(), Limits::default(), metrics.clone()), None),
        };
        let hangups = signal(SignalKind::hangup()).map_err(Error::Signal)?;
        let admin = Admin::new(clock.clone(), metrics.clone());
        let certificate_state = certificate.as_ref().map(Certificate::state);
        let service = Door::new(config.clone(), clock.clone(), metrics.clone(), opened);
        let refusals = service.refusals();
        services.spawn(reload_when_told(certificate, hangups, on(stopped.clone())));
        services.spawn(server.run(door, service, on(stopped.clone())));
        services.spawn(Server::plain(Limits::default(), metrics.clone()).run(faces, admin.clone(), on(stopped)));
        Ok(Self {
            config,
            clock,
            metrics,
            services,
            stop,
            inbox,
            refusals,
            admin,
            certificate_state,
            bound,
            take_over: None,
        })
    }

    /// The bound ports.
    pub const fn bound(&self) -> Bound {
        self.bound
    }

    /// Takes over a file that belongs to another machine; `who` says that this one is off.
    #[must_use]
    pub fn taking_over(self, who: Option<String>) -> Self {
        Self { take_over: who, ..self }
    }

    /// Opens the file and works until `stop` comes.
    ///
    /// # Errors
    /// [`Error::Open`] when the file cannot be used; [`Error::Stopped`] after a failed write.
    pub async fn run(mut self, transport: SharedTransport, stop: impl Future<Output = ()>) -> Result<(), Error> {
        systemd::status("opening the data file");
        let store = self.open().await?;
        self.config.keeps(names(&store)?)?;
        let first_live = store.routes_live(route_names(&self.config)).await.map_err(Error::Stopped)?;
        let context = self.context(&store, &transport);
        let socket = admin::listen(&self.config.data)?;
        self.admin.opened(self.faces(&context));
        self.services.spawn(self.admin.clone().serve_socket(socket, on(self.stop.subscribe())));
        self.refusals.resume(&store).map_err(Error::Stopped)?;
        self.services.spawn(self.refusals.clone().record(store.clone(), on(self.stop.subscribe())));
        let intake = Intake::new(self.config.clone(), &first_live);
        self.inbox.send_modify(|slot| *slot = Some(Inbox { store: store.clone(), intake }));
        tracing::info!(door = %self.bound.door, admin = %self.bound.admin, "ready");
        systemd::ready();
        let writes = || async { store.probe().await.is_ok() };

        let (worker_stop, worker_stopped) = watch::channel(false);
        let mut worker = JoinSet::new();
        worker.spawn(Worker::new(context).run(worker_stopped));
        let ended = tokio::select! {
            () = stop => Ok(()),
            () = failed(&store) => Err(Error::Stopped(store::Error::Stopped)),
            Some(ended) = worker.join_next() => outcome(ended),
            Some(ended) = self.services.join_next() => Err(ended.err().map_or(Error::Ended, Error::Service)),
            never = systemd::watchdog(self.clock.clone(), writes) => match never {},
        };
        tracing::info!("stopping");
        systemd::stopping();
        self.stop.send_replace(true);
        while self.services.join_next().await.is_some() {}
        self.refusals.flush(&store).await;
        worker_stop.send_replace(true);
        let drained = worker.join_next().await.map_or(Ok(()), outcome);
        store.close().await;
        ended.and(drained)
    }

    async fn open(&self) -> Result<Store, Error> {
        let (folder, clock, pauses) = (self.config.data.clone(), self.clock.clone(), self.config.pauses.clone());
        let metrics = self.metrics.clone();
        let terms = Terms { take_over: self.take_over.clone(), progress: self.admin.progress() };
        let open = move || Store::open_on(&terms, &folder, clock, pauses, metrics);
        let store = tokio::task::spawn_blocking(open).await??;
        let opened = store.opened();
        tracing::info!(
            process = opened.process,
            clean = opened.clean,
            dedup_keys = opened.dedup_keys,
            "data file open"
        );
        Ok(store)
    }

    fn context(&self, store: &Store, transport: &SharedTransport) -> Context {
        Context {
            store: store.clone(),
            clock: self.clock.clone(),
            accounts: accounts(&self.config, transport, &self.clock, &self.metrics),
            shops: shops(&self.config, transport, &self.clock, &self.metrics),
            config: self.config.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// What the faces need of what the worker has.
    fn faces(&self, context: &Context) -> admin::Context {
        admin::Context {
            store: context.store.clone(),
            clock: context.clock.clone(),
            config: context.config.clone(),
            accounts: context.accounts.clone(),
            metrics: context.metrics.clone(),
            certificate: self.certificate_state.clone(),
        }
    }
}

/// The accounts that the configuration names as targets.
pub fn accounts(
    config: &Config,
    transport: &SharedTransport,
    clock: &SharedClock,
    metrics: &Arc<Metrics>,
) -> BTreeMap<String, Amocrm> {
    let account = |target| Amocrm::new(target, transport.clone(), clock.clone(), metrics.clone());
    config.targets.values().map(|target| (target.name.clone(), account(target))).collect()
}

/// The shops whose API the configuration names.
pub fn shops(
    config: &Config,
    transport: &SharedTransport,
    clock: &SharedClock,
    metrics: &Arc<Metrics>,
) -> BTreeMap<String, Shop> {
    let shop = |source: &Source| match &source.kind {
        SourceKind::Shopify { api: Some(api), .. } => {
            Some(Shop::new(&source.name, api, transport.clone(), clock.clone(), metrics.clone()))
        }
        SourceKind::Shopify { .. } | SourceKind::Amocrm { .. } => None,
    };
    config.sources.values().filter_map(|source| Some((source.name.clone(), shop(source)?))).collect()
}

fn names(store: &Store) -> Result<Vec<UsedName>, Error> {
    let names = store.view().and_then(|view| Ok(view.names()?));
    names.map_err(Error::Stopped)
}

fn local(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}

/// Ends once the switch is on, or its owner is gone.
async fn on(mut switch: watch::Receiver<bool>) {
    let _gone = switch.wait_for(|on| *on).await.is_err();
}

/// Ends once a write failed.
async fn failed(store: &Store) {
    let mut pulse = store.pulse();
    if pulse.wait_for(|pulse| pulse.failed).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Reads the certificate again at each SIGHUP, which without a listener would end the process.
async fn reload_when_told(certificate: Option<Certificate>, mut hangups: Signal, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            Some(()) = hangups.recv() => {
                if let Some(certificate) = &certificate {
                    certificate.reload().await;
                }
            }
        }
    }
}

fn outcome(ended: Result<Result<(), store::Error>, JoinError>) -> Result<(), Error> {
    ended?.map_err(Error::Stopped)
}
