//! One shop with its CRM and the appliance between them, in a folder of its own.
//!
//! Tests wait for signals: an operation that the sandbox has seen, or a line of
//! the appliance's JSON log. When a test fails, the log is printed.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tambour::clock::{SharedClock, SystemClock};
use tambour::sandbox::{
    Answered, OrderSketch, Request, Running, Sandbox, SendError, Sender, Settings, shopify_headers, sign,
};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

pub(crate) const SHOP: &str = "tambour-test.myshopify.com";
pub(crate) const SECRET: &str = "shpss_test_secret";
pub(crate) const ADDRESS_TOKEN: &str = "0123456789abcdef-address";
pub(crate) const STAGE_CONTRACT: u64 = 61_000_003;
pub(crate) const STAGE_FIRST: u64 = 61_000_002;

/// Nothing in a test takes this long; it turns a hanging test into a failing one.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// A folder with certificate, secrets and configuration, and the systems outside.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: SharedClock,
    dir: TempDir,
    certificate: CertificateDer<'static>,
    outside: Running,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// `more` is TOML that is appended to the configuration.
    pub(crate) async fn with(more: &str) -> Self {
        Self::make(tempfile::tempdir().unwrap(), |configuration| configuration + more).await
    }

    /// For many short lives: syncs cost nothing, and retries and doubts wait as short as they
    /// may. What was written outlives a kill, synced or not, so this hides nothing of one.
    pub(crate) async fn in_a_hurry() -> Self {
        let waits = [(r#"pauses = ["200ms"]"#, r#"pauses = ["100ms"]"#), (r#"lag = "200ms""#, r#"lag = "0s""#)];
        let shorten = |text: String, (from, to): (&str, &str)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
        Self::make(in_memory, |configuration| waits.into_iter().fold(configuration, shorten)).await
    }

    async fn make(dir: TempDir, edit: impl FnOnce(String) -> String) -> Self {
        let clock = SystemClock::start();
        let sandbox = Sandbox::new(clock.clone(), Settings::default());
        make_fields(&sandbox);
        let outside = sandbox.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let world = Self { sandbox, clock, dir, certificate: made.cert.der().clone(), outside };
        world.write("certificate.pem", &made.cert.pem());
        world.write("key.pem", &made.signing_key.serialize_pem());
        world.write("shopify.secret", SECRET);
        world.write("address.secret", ADDRESS_TOKEN);
        world.write("amocrm.secret", &Settings::default().amocrm_token);
        world.write("tambour.toml", &edit(world.configuration()));
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Replaces a piece of the configuration.
    pub(crate) fn configure(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.path("tambour.toml")).unwrap();
        assert!(text.contains(from), "{from}");
        self.write("tambour.toml", &text.replace(from, to));
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(self.path(name)).unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
    }

    fn configuration(&self) -> String {
        include_str!("tambour.toml").replace("SANDBOX", &self.outside.addr.to_string())
    }

    /// A command of the binary on this world's configuration.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tambour"));
        command.arg("--config").arg(self.path("tambour.toml")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        let output = within(self.command(arguments).output()).await.unwrap();
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts `serve` and waits for its ports.
    pub(crate) async fn serve(&self) -> Served {
        self.serve_crashing(None).await
    }

    /// The same with further arguments.
    pub(crate) async fn serve_with(&self, more: &[&str]) -> Served {
        let arguments = [&["serve", "--log", "json"], more].concat();
        Served::start(self.command(&arguments), self.certificate.clone()).await
    }

    /// The same on a disk that takes no file longer than this, in KiB.
    pub(crate) async fn serve_on_full_disk(&self, file_kib_max: u32) -> Served {
        // An ignored signal stays so in the program, and the write fails instead.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", file_kib_max * 2);
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_tambour"), "--config"]).arg(self.path("tambour.toml"));
        command.args(["serve", "--log", "json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Served::start(command, self.certificate.clone()).await
    }

    /// The same, dying at a crash point.
    pub(crate) async fn serve_crashing(&self, crash_at: Option<&str>) -> Served {
        let mut command = self.command(&["serve", "--log", "json"]);
        if let Some(point) = crash_at {
            command.env("TAMBOUR_CRASH_AT", point);
        }
        Served::start(command, self.certificate.clone()).await
    }

    /// A signed delivery of an order.
    pub(crate) fn order(&self, order: &OrderSketch, topic: &str, webhook_id: &str) -> Delivery {
        self.signed(SECRET, SHOP, topic, webhook_id, Bytes::from(order.to_json().to_string()))
    }

    /// A delivery of any shop, signed with any secret.
    pub(crate) fn signed(&self, secret: &str, shop: &str, topic: &str, webhook_id: &str, body: Bytes) -> Delivery {
        let event = format!("event-{webhook_id}");
        let headers = shopify_headers(topic, shop, webhook_id, &event, self.clock.now(), &sign(secret, &body));
        Delivery { path: "/in/shop".to_owned(), headers, body }
    }

    /// A new order of Anna's.
    pub(crate) fn annas_order(&self, id: u64, total: &str) -> OrderSketch {
        let mut order = OrderSketch::new(id, &format!("#{}", id % 10_000), total, self.clock.now());
        order.first_name = "Анна".to_owned();
        order.last_name = "Канарейкина".to_owned();
        order.phone = Some("8 (900) 000-00-01".to_owned());
        order.email = Some("anna.canary@example.com".to_owned());
        order
    }

    pub(crate) fn hook(&self, body: Bytes) -> Delivery {
        let headers = vec![("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        Delivery { path: format!("/in/crm/{ADDRESS_TOKEN}"), headers, body }
    }
}

fn make_fields(sandbox: &Sandbox) {
    let token = format!("Bearer {}", Settings::default().amocrm_token);
    for code in ["TAMBOUR_ID", "TAMBOUR_VERSION", "TAMBOUR_TOTAL"] {
        let body = format!(r#"[{{"name":"{code}","code":"{code}","type":"text"}}]"#);
        let headers = vec![("authorization".to_owned(), token.clone())];
        let reply = sandbox.handle(&Request::new("POST", "/api/v4/leads/custom_fields", headers, body.into()));
        assert_eq!(reply.status, 200);
    }
}

/// Bytes to post.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Delivery {
    pub(crate) async fn send(&self, sender: &Sender) -> Result<Answered, SendError> {
        sender.post(&self.path, &self.headers, self.body.clone()).await
    }
}

/// What a command of the CLI came to.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }
}

/// A running appliance.
pub(crate) struct Served {
    child: Child,
    pub(crate) door: SocketAddr,
    pub(crate) admin: SocketAddr,
    certificate: CertificateDer<'static>,
    log: watch::Receiver<Vec<String>>,
    readers: JoinSet<()>,
}

impl Served {
    async fn start(mut command: Command, certificate: CertificateDer<'static>) -> Self {
        let mut child = command.spawn().unwrap();
        let (lines, log) = watch::channel(Vec::new());
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut readers = JoinSet::new();
        readers.spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                lines.send_modify(|all: &mut Vec<String>| all.push(line));
            }
        });
        let mut first = String::new();
        within(BufReader::new(child.stdout.take().unwrap()).read_line(&mut first)).await.unwrap();
        let port = |scheme| first.split_whitespace().find_map(|word| word.strip_prefix(scheme)?.parse().ok());
        let (Some(door), Some(admin)) = (port("https://"), port("http://")) else {
            panic!("`serve` did not start: {first:?} {:#?}", log.borrow());
        };
        Self { child, door, admin, certificate, log, readers }
    }

    pub(crate) fn sender(&self) -> Sender {
        Sender::trusting(self.door, self.certificate.clone()).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) async fn post(&self, delivery: &Delivery) -> Answered {
        self.try_post(delivery).await.unwrap()
    }

    /// A post whose answer may go down with the process.
    pub(crate) async fn try_post(&self, delivery: &Delivery) -> Result<Answered, SendError> {
        within(delivery.send(&self.sender())).await
    }

    /// Sends text over TLS and reads until the door closes.
    pub(crate) async fn exchange(&self, sent: &str) -> String {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, TcpStream::connect(self.door).await.unwrap()).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        // A reset is a close too; what came before it counts.
        drop(within(stream.read_to_end(&mut read)).await);
        String::from_utf8(read).unwrap()
    }

    /// What the loopback face answers.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.admin).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within(stream.read_to_string(&mut answer)).await.unwrap();
        answer
    }

    /// Asks the loopback face until the answer fits.
    pub(crate) async fn get_until(&self, path: &str, fits: impl Fn(&str) -> bool) -> String {
        within(async {
            loop {
                let answer = self.get(path).await;
                if fits(&answer) {
                    return answer;
                }
            }
        })
        .await
    }

    /// Waits until the log holds `count` lines that fit; gives them.
    pub(crate) async fn logged(&self, count: usize, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut log = self.log.clone();
        let fitting = |lines: &Vec<String>| -> Vec<Value> {
            lines.iter().filter_map(|line| serde_json::from_str(line).ok()).filter(|line| fits(line)).collect()
        };
        let found = within(log.wait_for(|lines| fitting(lines).len() >= count)).await;
        match found {
            Ok(lines) => fitting(&lines),
            Err(_) => panic!("the appliance ended: {:#?}", self.log.borrow()),
        }
    }

    /// Waits until `count` tasks have ended for now.
    pub(crate) async fn ended(&self, count: usize) -> Vec<Value> {
        let states = ["done", "superseded", "dead"];
        self.logged(count, |line| field(line, "message") == "attempt settled" && states.contains(&field(line, "state")))
            .await
    }

    /// All log lines so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Waits until the process dies by itself.
    pub(crate) async fn died(mut self) -> ExitStatus {
        within(self.child.wait()).await.unwrap()
    }

    /// SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGTERM and the orderly end; gives the whole log.
    pub(crate) async fn stop(mut self) -> Vec<String> {
        let status = Command::new("kill").arg(self.pid().to_string()).status().await.unwrap();
        assert!(status.success());
        let status = within(self.child.wait()).await.unwrap();
        while self.readers.join_next().await.is_some() {}
        assert!(status.success(), "{status}: {:#?}", self.log());
        self.log()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("log of the appliance: {:#?}", self.log());
        }
    }
}

/// A field of a JSON log line, wherever the formatter puts it.
pub(crate) fn field<'a>(line: &'a Value, name: &str) -> &'a str {
    let fields = line.get("fields").unwrap_or(line);
    fields.get(name).or_else(|| line.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANGS_AFTER, future).await.expect("this takes far too long; something hangs")
}
