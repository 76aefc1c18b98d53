//! The certificate that is served, renewed while the door is open.
//!
//! ```text
//! files ──changed, or reload──▶ read whole and fitting? ──yes──▶ new handshakes use it
//!                                        └──no──▶ the old one stays; one error line, and the state says why
//! ```
//!
//! Only the pair is exchanged: open connections and session tickets stay as they are.

use std::error::Error as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::{error, info};

use crate::clock::SharedClock;
use crate::domain::Timestamp;
use crate::listener::Error;
use crate::listener::tls::{Pair, PairFiles, server_config};

/// How often the files are looked at; a renewal is served that much later.
pub const CERTIFICATE_LOOK_EVERY: Duration = Duration::from_secs(10);

/// How the served certificate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateState {
    /// When it was read.
    pub loaded_at: Timestamp,
    /// When the first certificate of its chain ends.
    pub not_after: Timestamp,
    /// Why the files on disk are not served; absent while they are.
    pub last_error: Option<String>,
}

/// The served certificate; cheap to clone.
#[derive(Clone, Debug)]
pub struct Certificate {
    shared: Arc<Shared>,
    config: Arc<ServerConfig>,
}

#[derive(Debug)]
struct Shared {
    files: PairFiles,
    clock: SharedClock,
    served: Served,
    /// The files as they were last read; held while they are read.
    seen: Mutex<[Stamp; 2]>,
    state: watch::Sender<CertificateState>,
}

/// What every handshake is given.
#[derive(Clone, Debug)]
struct Served(Arc<ArcSwap<CertifiedKey>>);

/// What changes with a file's content, owner or mode: inode, size and change time; `None` without it.
type Stamp = Option<(u64, u64, i64, i64)>;

impl Certificate {
    /// Reads a PEM chain (leaf first) and its PEM private key.
    ///
    /// # Errors
    /// [`Error::Certificate`] or [`Error::Key`] for a file that cannot be read,
    /// [`Error::Mismatch`] when the key is of another certificate,
    /// [`Error::Unusable`] when TLS cannot use them.
    pub fn load(certificate: &Path, key: &Path, clock: SharedClock) -> Result<Self, Error> {
        let files = PairFiles { certificate: certificate.into(), key: key.into() };
        let seen = Mutex::new(stamps(&files));
        let Pair { served, not_after } = files.read()?;
        let served = Served(Arc::new(ArcSwap::new(served)));
        let config = server_config(Arc::new(served.clone())).map_err(|error| files.unusable(error))?;
        let state = CertificateState { loaded_at: clock.now(), not_after, last_error: None };
        let shared = Shared { files, clock, served, seen, state: watch::Sender::new(state) };
        Ok(Self { shared: Arc::new(shared), config })
    }

    /// How it stands, now and after every look at changed files.
    pub fn state(&self) -> watch::Receiver<CertificateState> {
        self.shared.state.subscribe()
    }

    /// Reads the files again, changed or not; the old pair stays when they are no good.
    pub async fn reload(&self) {
        self.work(Shared::reload).await;
    }

    /// Reads the files again whenever they change, until `stop` is ready.
    pub async fn watch(self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                () = self.shared.clock.sleep(CERTIFICATE_LOOK_EVERY) => self.work(Shared::reload_if_changed).await,
            }
        }
    }

    pub(super) fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// The disk may be slow, so the work gets a thread that may wait.
    async fn work(&self, work: fn(&Shared)) {
        let shared = Arc::clone(&self.shared);
        if let Err(error) = tokio::task::spawn_blocking(move || work(&shared)).await {
            error!(%error, "looking at the certificate panicked");
        }
    }
}

impl Shared {
    fn reload_if_changed(&self) {
        let mut seen = self.seen();
        if *seen != stamps(&self.files) {
            self.read(&mut seen);
        }
    }

    fn reload(&self) {
        self.read(&mut self.seen());
    }

    fn read(&self, seen: &mut [Stamp; 2]) {
        // Before the reading, so that what changes meanwhile counts as a change.
        *seen = stamps(&self.files);
        match self.files.read() {
            Ok(Pair { served, not_after }) => {
                self.served.0.store(served);
                self.state.send_replace(CertificateState { loaded_at: self.clock.now(), not_after, last_error: None });
                info!(%not_after, "certificate loaded");
            }
            Err(error) => {
                let text = one_line(&error);
                error!(
                    error = text,
                    hint = error.hint(),
                    "certificate not loaded, the old one is served until it ends"
                );
                self.state.send_modify(|state| state.last_error = Some(text));
            }
        }
    }

    fn seen(&self) -> MutexGuard<'_, [Stamp; 2]> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn stamps(PairFiles { certificate, key }: &PairFiles) -> [Stamp; 2] {
    let stamp = |path: &Path| {
        let file = path.metadata().ok()?;
        Some((file.ino(), file.size(), file.ctime(), file.ctime_nsec()))
    };
    [stamp(certificate), stamp(key)]
}

/// An error with its cause.
fn one_line(error: &Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::listener::tests::TestPair;

    /// A person reads one line for each change, however often the files are looked at.
    #[test]
    fn a_change_is_read_once() {
        let (pair, renewed) = (TestPair::ending_in(2030), TestPair::ending_in(2031));
        let clock = ManualClock::starting_at(Timestamp::from_secs(100));
        let certificate = Certificate::load(&pair.certificate, &pair.key, clock.clone()).unwrap();
        let mut state = certificate.state();
        let mut look = || {
            clock.advance(CERTIFICATE_LOOK_EVERY);
            certificate.shared.reload_if_changed();
            let changed = state.has_changed().unwrap();
            (changed, state.borrow_and_update().clone())
        };
        let (changed, state) = look();
        assert!(!changed);
        assert_eq!(state.loaded_at, Timestamp::from_secs(100));
        assert_eq!(state.last_error, None);

        std::fs::write(&pair.key, "-----BEGIN PRIVATE KEY-----\nMIGH").unwrap();
        let (changed, state) = look();
        assert!(changed);
        assert_eq!(state.not_after.to_string(), "2030-01-01T00:00:00.000Z", "the old one stays");
        let error = state.last_error.unwrap();
        assert!(error.ends_with("key.pem`: the file is not whole PEM"), "{error}");
        assert!(!look().0, "read once");

        std::fs::remove_file(&pair.key).unwrap();
        let (changed, state) = look();
        assert!(changed && state.last_error.is_some_and(|error| error.contains("No such file")));
        assert!(!look().0, "read once");

        pair.replace_with(&renewed);
        let (changed, state) = look();
        assert!(changed);
        assert_eq!(state.loaded_at, clock.now());
        assert_eq!(state.not_after.to_string(), "2031-01-01T00:00:00.000Z");
        assert_eq!(state.last_error, None);
        assert!(!look().0, "read once");
    }
}
