//! The disk, or the opening of the file, takes longer than a sender waits.
//!
//! The real door behind real TLS, with a disk that holds every sync back until the test
//! lets it go, and a clock that the test moves.

use std::future::pending;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use redb::StorageBackend;
use tambour::clock::{Clock, ManualClock, SharedClock};
use tambour::config::Config;
use tambour::domain::{Monotonic, Pauses, Timestamp};
use tambour::ingress::{Door, Inbox};
use tambour::intake::{Intake, route_names};
use tambour::listener::{Certificate, Limits, Server};
use tambour::sandbox::{Answered, Sender, shopify_headers, sign};
use tambour::store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::crash::order;
use crate::process::within;
use crate::rig::{Disk, Life, SHOP, SHOP_SECRET, START, Setup};

/// What Shopify sources have when nothing is configured.
const ANSWER_WITHIN: Duration = Duration::from_millis(3500);

/// A clock that tells how often somebody began to wait for it.
#[derive(Debug)]
struct WatchedClock {
    time: Arc<ManualClock>,
    waits: watch::Sender<u32>,
}

impl Clock for WatchedClock {
    fn now(&self) -> Timestamp {
        self.time.now()
    }

    fn monotonic(&self) -> Monotonic {
        self.time.monotonic()
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        self.waits.send_modify(|waits| *waits += 1);
        self.time.sleep_until(at)
    }
}

/// Where syncs wait while it is shut.
#[derive(Clone, Debug)]
struct Gate {
    door: Arc<(Mutex<bool>, Condvar)>,
    /// How many syncs came to it.
    arrivals: watch::Sender<u32>,
}

impl Gate {
    fn open() -> Self {
        Self { door: Arc::new((Mutex::new(true), Condvar::new())), arrivals: watch::Sender::new(0) }
    }

    fn set(&self, is_open: bool) {
        *self.door.0.lock().unwrap() = is_open;
        self.door.1.notify_all();
    }

    fn pass(&self) {
        self.arrivals.send_modify(|arrivals| *arrivals += 1);
        let is_open = self.door.0.lock().unwrap();
        drop(self.door.1.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

/// A disk with a gate before its syncs.
#[derive(Debug)]
struct Gated<B> {
    disk: B,
    gate: Gate,
}

impl<B: StorageBackend> StorageBackend for Gated<B> {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }
}

/// A door that answers, before its file is open.
struct Scene {
    config: Arc<Config>,
    clock: Arc<WatchedClock>,
    gate: Gate,
    store: Store,
    inbox: watch::Sender<Option<Inbox>>,
    sender: Sender,
    posts: JoinSet<Answered>,
    _server: JoinSet<()>,
}

impl Scene {
    /// `shop` are further lines of the source.
    async fn new(shop: &'static str) -> Self {
        let clock = Arc::new(WatchedClock { time: ManualClock::starting_at(START), waits: watch::Sender::new(0) });
        let (gate, shared): (_, SharedClock) = (Gate::open(), clock.clone());
        let gated = Gated { disk: Disk::default().mounted(Life::default()), gate: gate.clone() };
        let store = Store::threaded(gated, shared.clone(), Pauses::default()).unwrap();
        let config = Arc::new(Setup { shop, ..Setup::default() }.load());
        let (inbox, opened) = watch::channel(None);

        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let certificate = Certificate::load(&certificate, &key, shared.clone()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sender = Sender::trusting(listener.local_addr().unwrap(), made.cert.der().clone()).unwrap();
        let door = Door::new(config.clone(), shared, Arc::default(), opened);
        let mut server = JoinSet::new();
        server.spawn(Server::tls(&certificate, Limits::default(), Arc::default()).run(listener, door, pending()));
        Self { config, clock, gate, store, inbox, sender, posts: JoinSet::new(), _server: server }
    }

    /// The file is open now.
    async fn open(&self) {
        let first_live = self.store.routes_live(route_names(&self.config)).await.unwrap();
        let intake = Intake::new(self.config.clone(), &first_live);
        self.inbox.send_replace(Some(Inbox { store: self.store.clone(), intake }));
    }

    /// Posts the one delivery, and returns once the door waits with it for file or disk.
    async fn post(&mut self) {
        let waits = *self.clock.waits.borrow();
        let body = order("100.00", 0).to_json().to_string();
        let signature = sign(SHOP_SECRET, body.as_bytes());
        let headers = shopify_headers("orders/create", SHOP, "w", "e", START, &signature);
        let sender = self.sender.clone();
        self.posts.spawn(async move { sender.post("/in/shop", &headers, body.into()).await.unwrap() });
        within(self.clock.waits.subscribe().wait_for(|now| *now > waits)).await.unwrap();
    }

    async fn answered(&mut self) -> Answered {
        within(self.posts.join_next()).await.unwrap().unwrap()
    }

    /// The copies of each event.
    fn copies(&self) -> Vec<u32> {
        let events = self.store.view().unwrap().events(None, usize::MAX, &|_| true).unwrap();
        events.into_iter().map(|event| event.copies).collect()
    }
}

/// Story: a sync takes three seconds. A sender that would wait longer is told 200 at its end;
/// one that would not is told 503 in time, and finds its delivery stored when it repeats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_sync_is_answered_in_time_and_the_repeat_is_a_duplicate() {
    for (shop, waits_for_it) in [("", true), (r#"answer_within = "2s""#, false)] {
        let mut scene = Scene::new(shop).await;
        scene.open().await;
        scene.gate.set(false);
        let syncs = *scene.gate.arrivals.borrow();
        scene.post().await;
        within(scene.gate.arrivals.subscribe().wait_for(|now| *now > syncs)).await.unwrap();
        scene.clock.time.advance(Duration::from_secs(3));
        if !waits_for_it {
            let answered = scene.answered().await;
            assert_eq!(answered.status, 503);
            assert!(answered.text.starts_with("the disk is slow"), "{answered:?}");
        }
        scene.gate.set(true);
        if waits_for_it {
            assert_eq!(scene.answered().await.status, 200);
        }
        scene.post().await;
        assert_eq!(scene.answered().await.status, 200);
        assert_eq!(scene.copies(), [1]);
    }
}

/// Story: the opening takes five seconds. A delivery waits for it, is told 503 in time, and
/// stored when it is repeated; the repeat waits only for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_wait_for_a_slow_opening_and_are_answered_in_time() {
    let mut scene = Scene::new("").await;
    scene.post().await;
    scene.clock.time.advance(ANSWER_WITHIN);
    let answered = scene.answered().await;
    assert_eq!(answered.status, 503);
    assert!(answered.text.starts_with("the data file is being opened"), "{answered:?}");

    scene.post().await;
    scene.clock.time.advance(Duration::from_secs(5).saturating_sub(ANSWER_WITHIN));
    scene.open().await;
    assert_eq!(scene.answered().await.status, 200);
    assert_eq!(scene.copies(), [0]);
}
