//! `check` against the sandbox: the whole way from a configuration to fields in the account.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};

use super::*;
use crate::client::{Answer, Call, Failure, SharedTransport, Transport};
use crate::clock::ManualClock;
use crate::domain::{Pauses, Timestamp, TraceId};
use crate::sandbox::{Operation, Request, Sandbox, Settings};
use crate::source::{read, samples, verify};
use crate::store::{AcceptCommand, EventState, Store};

const NOW: Timestamp = Timestamp::from_secs(1_796_036_400);

/// Calls that go to the sandbox of the same process.
#[derive(Debug)]
struct ToSandbox(Sandbox);

impl Transport for ToSandbox {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Failure>> {
        let reply = self.0.handle(&Request::new(call.method.as_str(), &call.url, call.headers, call.body));
        future::ready(Ok(Answer { status: reply.status, headers: reply.headers, body: reply.body })).boxed()
    }
}

/// A folder with the packaged configuration and all that it names.
struct Fixture {
    folder: tempfile::TempDir,
    setting: Setting,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("fullchain.pem", &pair.cert.pem());
        write("privkey.pem", &pair.signing_key.serialize_pem());
        for (name, secret) in [
            ("shopify", "shpss_test_secret"),
            ("shopify-api", "sandbox-shop-token"),
            ("amocrm-address", "address-token-0001"),
            ("amocrm-token", "sandbox-amocrm-token"),
        ] {
            write(name, secret);
        }
        let packaged = include_str!("../../../packaging/tambour.toml").replace("credential =", "file =");
        let config = packaged.replace("/var/lib/tambour", "data").replace("0.0.0.0:443", "127.0.0.1:0");
        write("tambour.toml", &config);
        let setting = Setting { config_path: folder.path().join("tambour.toml"), clock: ManualClock::starting_at(NOW) };
        Self { folder, setting }
    }

    fn change(&self, from: &str, to: &str) {
        let text = fs::read_to_string(&self.setting.config_path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&self.setting.config_path, text.replace(from, to)).unwrap();
    }

    fn data(&self) -> &Path {
        self.folder.path()
    }
}

const YES: Args = Args { live: true, fix: true, yes: true, json: false };

fn bad(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| !finding.ok).map(|finding| finding.text.as_str()).collect()
}

/// Fields are missing, cannot be made before there is a data file, are made once, and stay.
#[tokio::test]
async fn missing_fields_are_made_once() {
    let fixture = Fixture::new();
    let config = fixture.setting.load().unwrap();
    let sandbox = Sandbox::new(fixture.setting.clock.clone(), Settings::default());
    // So many calls without the clock moving would wait for the account's rate for good.
    let transport: SharedTransport = Arc::new(ToSandbox(sandbox.clone()));
    let mut fast = config.clone();
    fast.targets.values_mut().for_each(|target| target.calls_per_second = u32::MAX);
    let look = |args: Args| live::look_through(&transport, &fast, &fixture.setting, args);

    let only_look = Args { fix: false, ..YES };
    let found = look(only_look).await.unwrap();
    assert_eq!(bad(&found).len(), 3, "{found:?}");
    assert!(bad(&found)[0].starts_with("deals need a field with the code TAMBOUR_ID"), "{found:?}");
    assert_eq!(look(YES).await.unwrap_err().exit(), Exit::DataFile);

    drop(
        Store::open(&fixture.data().join("data"), fixture.setting.clock.clone(), Pauses::default(), Arc::default())
            .unwrap(),
    );
    assert_eq!(bad(&look(YES).await.unwrap()), Vec::<&str>::new());
    let found = look(YES).await.unwrap();
    assert!(found.iter().any(|finding| finding.text == "the fields that deals need exist"), "{found:?}");
    assert_eq!(sandbox.counts().calls[&Operation::FieldCreate], 3);
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_a_problem() {
    let fixture = Fixture::new();
    fs::write(fixture.data().join("amocrm-token"), "wrong").unwrap();
    let config = fixture.setting.load().unwrap();
    let sandbox = Sandbox::new(fixture.setting.clock.clone(), Settings::default());
    let transport: SharedTransport = Arc::new(ToSandbox(sandbox));
    let found = live::look_through(&transport, &config, &fixture.setting, YES).await.unwrap();
    assert_eq!(bad(&found).len(), 1, "{found:?}");
    assert!(bad(&found)[0].starts_with("HTTP 401"), "{found:?}");
}

#[tokio::test]
async fn templates_are_tried_on_the_built_in_samples() {
    let fixture = Fixture::new();
    let look = || async {
        let config = fixture.setting.load().unwrap();
        let mut findings = of_files(&config, &fixture.setting.clock);
        findings.extend(of_stored(&config, &fixture.setting).await);
        findings
    };
    let found = look().await;
    assert_eq!(bad(&found), Vec::<&str>::new());
    let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(texts[0], "sources: 2, targets: 1, tasks: 3, routes: 2");
    assert_eq!(texts[2..], ["`name` on the built-in sample", "`text` on the built-in sample"]);

    fixture.change("{{ order.name }}", "{{ order.nmae }}");
    fixture.change("{{ lead.name }}", "{{ lead.custom.PHONE }}");
    fs::write(fixture.data().join("privkey.pem"), "").unwrap();
    let found = look().await;
    let texts = bad(&found);
    assert!(texts[0].starts_with("failed to read the private key"), "{texts:?}");
    assert!(
        texts[1].starts_with("on the built-in sample: template `name` failed: line 1: undefined value"),
        "{texts:?}"
    );
    assert_eq!(texts.len(), 2, "fields of a deal are known at run time only: {texts:?}");
    assert!(found.iter().any(|finding| finding.text.contains("whether `lead.custom` has `PHONE`")), "{found:?}");
}

/// A source is renamed after it sent something: `check` says so before `serve` refuses to start.
#[tokio::test]
async fn a_name_that_the_file_knows_may_not_vanish() {
    let fixture = Fixture::new();
    let look = || async { of_stored(&fixture.setting.load().unwrap(), &fixture.setting).await };
    let clock = fixture.setting.clock.clone();
    let store = Store::open(&fixture.data().join("data"), clock, Pauses::default(), Arc::default()).unwrap();
    let source = samples::shopify_source();
    let delivery = verify(&source, samples::signed("1", b"{\"id\":1}")).unwrap();
    let reading = read(&source, &delivery);
    let command =
        AcceptCommand::new(&delivery, &reading, EventState::Unrouted, TraceId::new(1), Vec::new(), Vec::new());
    store.accept(command).await.unwrap();
    store.close().await;
    drop(store);
    assert_eq!(bad(&look().await), Vec::<&str>::new());
    fixture.change("[sources.shop]", "[sources.moscow]");
    fixture.change("source = \"shop\"", "source = \"moscow\"");
    let found = look().await;
    assert!(bad(&found)[0].contains("write formerly = \"shop\" in [sources.<its new name>]"), "{found:?}");
    fixture.change("[sources.moscow]", "[sources.moscow]\nformerly = \"shop\"");
    assert_eq!(bad(&look().await), Vec::<&str>::new());
}
