//! The measured server: listener with TLS, door and threaded store on a temporary folder.
//!
//! Its configuration is the demo's: one shop that signs, one CRM that does not,
//! and a task for each order. No worker runs, so nothing is called.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::demo::folder::Folder;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::clock::SharedClock;
use crate::config::{self, Front, SourceKind};
use crate::ingress::{Door, Inbox};
use crate::intake::{Intake, route_names};
use crate::listener::{self, Certificate, Limits, Server};
use crate::sandbox::Sender;
use crate::store::Store;

/// Nobody is called, so nobody listens there.
const NOBODY: ([u8; 4], u16) = ([127, 0, 0, 1], 9);

/// The running stand; its folder goes with it.
pub(super) struct Stand {
    folder: TempDir,
    store: Store,
    sender: Sender,
    server: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Stand {
    /// Opens a stand in a new folder below `place`.
    pub(super) async fn open(place: &Path, clock: &SharedClock) -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix("tambour-bench-").tempdir_in(place);
        let folder = made.map_err(|error| Error::new(Exit::Usage, &error).hint("give a folder with --dir"))?;
        let files = Folder::make(Some(folder.path().to_owned()), NOBODY.into())?;
        let mut config = config::load(&files.config(), &|_| None)?;
        // The measured shop sends more in a minute than an honest one in an hour; the flooded source keeps its quota.
        for source in config.sources.values_mut().filter(|source| matches!(source.kind, SourceKind::Shopify { .. })) {
            source.quota.events_per_hour = u64::MAX;
            source.quota.bytes_per_day = u64::MAX;
        }
        let config = Arc::new(config);
        let metrics = Arc::default();
        let (data, pauses) = (config.data.clone(), config.pauses.clone());
        let store = Store::open(&data, clock.clone(), pauses, Arc::clone(&metrics))?;
        let first_live = store.routes_live(route_names(&config)).await.map_err(|e| Error::new(Exit::DataFile, &e))?;
        let intake = Intake::new(config.clone(), &first_live);
        let inbox = watch::Sender::new(Some(Inbox { store: store.clone(), intake }));
        let Front::Tls { certificate, key } = &config.listener.front else {
            return Err(Error::of(Exit::Internal, "the stand has no certificate"));
        };
        let certificate = Certificate::load(certificate, key, clock.clone())?;
        let port = listener::bind(config.listener.address).await?;
        let address = port.local_addr()?;
        let sender = Sender::trusting(address, files.certificate()).map_err(|e| Error::new(Exit::Internal, &e))?;
        let door = Door::new(config.clone(), clock.clone(), Arc::clone(&metrics), inbox.subscribe());
        let (stop, mut stopped) = watch::channel(false);
        let mut server = JoinSet::new();
        server.spawn(async move {
            // The door hears of the inbox as long as its sender lives.
            let _inbox = inbox;
            let stop = async move {
                let _gone = stopped.wait_for(|stop| *stop).await.is_err();
            };
            Server::tls(&certificate, Limits::default(), metrics).run(port, door, stop).await;
        });
        Ok(Self { folder, store, sender, server, stop })
    }

    /// The folder of the stand.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sends to the stand.
    pub(super) const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Stops it and removes its folder.
    pub(super) async fn close(mut self) -> Result<(), Error> {
        self.stop.send_replace(true);
        while self.server.join_next().await.is_some() {}
        self.store.close().await;
        Ok(self.folder.close()?)
    }
}
