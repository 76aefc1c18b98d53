//! A flood of one source never makes another's delivery meet 503: the real door over real TLS.
//!
//! The door, the listener and the file are those of `serve`; the clock moves when
//! told, so no deadline passes while a test holds requests: in front of the file
//! that is not open yet, or with half a body.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tambour::clock::{Clock as _, ManualClock};
use tambour::config::{Config, Quota, defaults};
use tambour::ingress::{Door, Inbox};
use tambour::intake::Intake;
use tambour::listener::{BODY_BYTES_IN_FLIGHT_MAX, Certificate, Limits, Server, bind};
use tambour::sandbox::{OrderSketch, Sender, shopify_headers, sign};
use tambour::store::Store;
use tambour::telemetry::Metrics;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::rig::{SHOP, SHOP_SECRET, START, Setup};

const CRM: &str = "/in/crm/0123456789abcdef0123";
const HANGS_AFTER: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_hours(1);

/// The door of a shop and a CRM.
struct Gate {
    clock: Arc<ManualClock>,
    sender: Sender,
    address: std::net::SocketAddr,
    root: CertificateDer<'static>,
    metrics: Arc<Metrics>,
    inbox: watch::Sender<Option<Inbox>>,
    ready: Inbox,
    _folder: TempDir,
    _serving: JoinSet<()>,
}

impl Gate {
    /// Requests wait in front of the file until [`Gate::open`].
    async fn closed(shop: Quota, crm: Quota) -> Self {
        let mut config = Setup::default().load();
        for (name, quota) in [("shop", shop), ("crm", crm)] {
            let source = config.sources.get_mut(name).unwrap();
            source.quota = quota;
            // A body's own deadline is a real timer.
            source.answer_within = HOUR;
        }
        let (clock, metrics) = (ManualClock::starting_at(START), Arc::<Metrics>::default());
        let folder = tempfile::tempdir().unwrap();
        let (certificate, root) = certificate(&folder, &clock);
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = Arc::new(config);
        let ready = inbox_in(&folder, &config, &clock, &metrics);
        let (inbox, opened) = watch::channel(None);
        let door = Door::new(config, clock.clone(), metrics.clone(), opened);
        let mut serving = JoinSet::new();
        let limits = Limits { connections_per_address_max: 4096, ..Limits::default() };
        serving.spawn(Server::tls(&certificate, limits, metrics.clone()).run(listener, door, std::future::pending()));
        let sender = Sender::trusting(address, root.clone()).unwrap();
        Self { clock, sender, address, root, metrics, inbox, ready, _folder: folder, _serving: serving }
    }

    async fn opened(shop: Quota, crm: Quota) -> Self {
        let gate = Self::closed(shop, crm).await;
        gate.open();
        gate
    }

    fn open(&self) {
        self.inbox.send_replace(Some(self.ready.clone()));
    }

    /// A hook of the CRM like no other.
    fn hook(&self, n: usize) -> impl Future<Output = u16> + Send + 'static {
        self.post(CRM, Vec::new(), format!("account[id]=31000001&leads[add][0][id]={n}").into())
    }

    /// A delivery of the shop about an order of its own.
    fn order(&self, id: u64, secret: &str) -> impl Future<Output = u16> + Send + 'static {
        let body = Bytes::from(OrderSketch::new(id, &format!("#{id}"), "10.00", START).to_json().to_string());
        let webhook = format!("w-{id}");
        let headers =
            shopify_headers("orders/create", SHOP, &webhook, &webhook, self.clock.now(), &sign(secret, &body));
        self.post("/in/shop", headers, body)
    }

    fn post(
        &self,
        path: &str,
        headers: Vec<(String, String)>,
        body: Bytes,
    ) -> impl Future<Output = u16> + Send + 'static {
        let (sender, path) = (self.sender.clone(), path.to_owned());
        async move { within(sender.post(&path, &headers, body)).await.unwrap().status }
    }

    async fn tls(&self) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
        let tcp = TcpStream::connect(self.address).await.unwrap();
        connector.connect(ServerName::try_from("localhost").unwrap(), tcp).await.unwrap()
    }
}

fn certificate(folder: &TempDir, clock: &Arc<ManualClock>) -> (Certificate, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (Certificate::load(&chain, &key, clock.clone()).unwrap(), made.cert.der().clone())
}

fn inbox_in(folder: &TempDir, config: &Arc<Config>, clock: &Arc<ManualClock>, metrics: &Arc<Metrics>) -> Inbox {
    let store = Store::open(folder.path(), clock.clone(), config.pauses.clone(), metrics.clone()).unwrap();
    Inbox { store, intake: Intake::new(config.clone(), &[]) }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANGS_AFTER, future).await.expect("this takes far too long; something hangs")
}

async fn next(posts: &mut JoinSet<u16>) -> u16 {
    posts.join_next().await.unwrap().unwrap()
}

/// Twenty hooks at once with places for eight: twelve are refused at once, and the shop's
/// delivery finds its place all the same. Once the file is open all that have one are kept.
#[tokio::test]
async fn requests_at_work_leave_other_sources_their_places() {
    let shop = Quota { inflight: 1, ..defaults::SHOPIFY_QUOTA };
    let gate = Gate::closed(shop, Quota { inflight: 8, ..defaults::AMOCRM_QUOTA }).await;
    let mut hooks = JoinSet::new();
    for n in 1..=20 {
        hooks.spawn(gate.hook(n));
    }
    for _ in 0..12 {
        assert_eq!(next(&mut hooks).await, 503);
    }
    let mut orders = JoinSet::new();
    orders.spawn(gate.order(1, SHOP_SECRET));
    orders.spawn(gate.order(2, SHOP_SECRET));
    // One meets the shop's own limit, so the other is at work by now.
    assert_eq!(next(&mut orders).await, 503);
    gate.open();
    assert_eq!(next(&mut orders).await, 200);
    for _ in 0..8 {
        assert_eq!(next(&mut hooks).await, 200);
    }
    let metrics = gate.metrics.render();
    for (source, count) in [("crm", 12), ("shop", 1)] {
        let line = format!("tambour_refusals_total{{source=\"{source}\",reason=\"over_quota\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    assert_eq!(gate.hook(21).await, 200, "places are left");
}

/// Half bodies take all the room that the CRM's address has; the shop has its own.
#[tokio::test]
async fn held_bodies_leave_other_sources_their_room() {
    let gate = Gate::opened(defaults::SHOPIFY_QUOTA, defaults::AMOCRM_QUOTA).await;
    let body_bytes_max = 8 << 20;
    let head = format!(
        "POST {CRM} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {body_bytes_max}\r\nconnection: close\r\n\r\n"
    );
    let piece = vec![b'a'; body_bytes_max - 1];
    let mut held = Vec::new();
    for _ in 0..BODY_BYTES_IN_FLIGHT_MAX / 2 / body_bytes_max {
        let mut stream = gate.tls().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&piece).await.unwrap();
        stream.flush().await.unwrap();
        held.push(stream);
    }
    // The last pieces are read once a small body finds no room.
    within(async {
        for n in 1.. {
            if gate.hook(n).await == 503 {
                break;
            }
        }
    })
    .await;
    assert_eq!(gate.order(1, SHOP_SECRET).await, 200);
    for mut stream in held {
        stream.write_all(b"a").await.unwrap();
        let mut answer = Vec::new();
        within(stream.read_to_end(&mut answer)).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{:?}", String::from_utf8_lossy(&answer));
    }
}

/// The quota of an hour: only what is new and verified counts, and an hour later there is room again.
#[tokio::test]
async fn an_hours_events_are_counted_by_source() {
    let shop = Quota { events_per_hour: 2, ..defaults::SHOPIFY_QUOTA };
    let gate = Gate::opened(shop, Quota { events_per_hour: 1, ..defaults::AMOCRM_QUOTA }).await;
    assert_eq!(gate.hook(1).await, 200);
    assert_eq!(gate.hook(2).await, 503);
    for id in 1..=5 {
        assert_eq!(gate.order(id, "a-forger's").await, 401);
    }
    assert_eq!(gate.order(1, SHOP_SECRET).await, 200);
    assert_eq!(gate.order(1, SHOP_SECRET).await, 200, "a repeat counts nothing");
    assert_eq!(gate.order(2, SHOP_SECRET).await, 200);
    assert_eq!(gate.order(3, SHOP_SECRET).await, 503);
    gate.clock.advance(HOUR + Duration::from_mins(1));
    assert_eq!(gate.hook(2).await, 200);
    assert_eq!(gate.order(3, SHOP_SECRET).await, 200);
}
