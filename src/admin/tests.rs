//! The faces against a small hand-made file, over the socket and without it.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::admin::view::{Health, Operated, Page, Preview, Task, Trace};
use crate::admin::{Admin, AskError, Call, Context, FailureKind, Request, TaskFilter, Wish, answer, ask, listen, view};
use crate::clock::ManualClock;
use crate::config::{
    AmocrmTarget, Condition, Config, DealTask, Front, HandMade, Language, Listener, Names, NoteTask, Route, Secret,
    Source, SourceKind, Target, TargetKind, Task as ConfiguredTask, TaskKind, defaults,
};
use crate::domain::{
    Attempt, Ending, Key, KeyBuilder, Mode, OnReturn, Pauses, ReasonCode, Settlement, State, TaskId, TaskSeed,
    Timestamp, TraceId,
};
use crate::intake::{Intake, route_names};
use crate::source::{RawDelivery, read, verify};
use crate::store::{
    AlertChange, AlertKind, Holder, IntentSpec, ObjectRef, Opening, Outcome, Receipt, Shape, Step, Store, TaskView,
    WindowReason, WindowSpan,
};
use crate::telemetry::Metrics;
use crate::text::Template;

const START: Timestamp = Timestamp::from_secs(1_796_036_400);

/// A dead task of the source `shop`, for filters.
pub(super) fn sample_task() -> TaskView {
    TaskView {
        id: TaskId::new(42),
        name: "deal".to_owned(),
        kind: "deal".to_owned(),
        key: KeyBuilder::new().part("shop").part("-").part("deal").part("deal").part("7").finish(),
        lane: KeyBuilder::new().part("amocrm").finish(),
        target: "crm".to_owned(),
        entity: "7".to_owned(),
        mode: Mode::Latest,
        state: State::New,
        due: None,
        since: None,
        attempts: Attempt::new(0),
        losses: 0,
        leased_until: None,
        reason: None,
        text: String::new(),
        created_at: START,
        updated_at: START,
        trace: TraceId::new(1),
        first_event: None,
        last_event: None,
        parent: None,
        replays: 0,
    }
}

/// One amoCRM account as source and target, with a note and a deal task.
pub(super) fn config() -> Config {
    let target = Target {
        name: "crm".to_owned(),
        kind: TargetKind::Amocrm(AmocrmTarget {
            url: "https://tambourtest.amocrm.ru".to_owned(),
            account_id: 31_000_001,
            token: Secret::new("t0ken".to_owned()),
            responsible_user_id: 9_000_001,
            currency: "RUB".to_owned(),
        }),
        in_flight_max: 1,
        calls_per_second: 7,
        timeout: Duration::from_secs(20),
        search_lag: Duration::from_mins(1),
        doubt_tail: Duration::from_secs(10),
    };
    let source = Source {
        name: "crm".to_owned(),
        kind: SourceKind::Amocrm { account_id: 31_000_001 },
        address_token: Some(Secret::new("address-token-0001".to_owned())),
        body_bytes_max: 1 << 20,
        answer_within: Duration::from_secs(1),
        quota: defaults::AMOCRM_QUOTA,
    };
    let template = |text: &str| Template::parse(text).unwrap();
    let task = |name: &str, kind: TaskKind, mode: Mode| ConfiguredTask {
        name: name.to_owned(),
        target: "crm".to_owned(),
        mode,
        kind,
    };
    let note = TaskKind::Note(NoteTask {
        text: template("{{ lead.name }}"),
        valid_in: vec![61_000_003],
        version: "1".to_owned(),
    });
    let deal = TaskKind::Deal(Box::new(DealTask {
        pipeline_id: 7_100_001,
        status_id: 61_000_002,
        responsible_user_id: None,
        name: template("{{ order.name }}"),
        fields: Vec::new(),
        moves: Vec::new(),
        hand_made: HandMade::Flag,
        test_orders: false,
        field_id_code: "TAMBOUR_ID".to_owned(),
        field_version_code: "TAMBOUR_VERSION".to_owned(),
        field_total_code: "TAMBOUR_TOTAL".to_owned(),
    }));
    let tasks = [task("note", note, Mode::Once(OnReturn::Keep)), task("deal", deal, Mode::Latest)];
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        language: Language::En,
        data: "/nonexistent".into(),
        listener: Listener { address: loopback, front: Front::Proxies { trusted: Vec::new() } },
        admin: loopback,
        sources: BTreeMap::from([("crm".to_owned(), source)]),
        targets: BTreeMap::from([("crm".to_owned(), target)]),
        tasks: tasks.map(|task| (task.name.clone(), task)).into(),
        routes: vec![Route {
            source: "crm".to_owned(),
            events: vec!["leads.status".to_owned()],
            conditions: vec![Condition { field: "status_id".to_owned(), any_of: vec!["61000003".to_owned()] }],
            task: "note".to_owned(),
            since: Some(Timestamp::from_secs(0)),
        }],
        workers: 1,
        pauses: Pauses::default(),
        names: Names::default(),
    }
}

/// A file in a folder, and what happens to it.
struct Fixture {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    context: Context,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::starting_at(START);
        drop(Store::open(folder.path(), clock.clone(), Pauses::default(), Arc::default()).unwrap());
        let store = Store::open_offline(folder.path(), clock.clone(), Pauses::default()).unwrap();
        let config = Arc::new(config());
        store.routes_live(route_names(&config)).await.unwrap();
        let context = Context {
            store,
            clock: clock.clone(),
            config,
            accounts: BTreeMap::new(),
            metrics: Arc::default(),
            certificate: None,
        };
        Self { folder, clock, context }
    }

    /// A deal comes to the stage of the route; gives what the commit found.
    async fn deal_moves(&self, lead: u64) -> Receipt {
        let now = self.clock.now_secs();
        let body = format!(
            "account[id]=31000001&leads[status][0][id]={lead}&leads[status][0][status_id]=61000003\
             &leads[status][0][pipeline_id]=7100001&leads[status][0][last_modified]={now}"
        );
        let raw = RawDelivery { headers: Vec::new(), body: Bytes::from(body), received_at: self.context.clock.now() };
        let source = &self.context.config.sources["crm"];
        let delivery = verify(source, raw).unwrap();
        let reading = read(source, &delivery);
        let intake = Intake::new(self.context.config.clone(), &[START]);
        let command = intake.plan(&delivery, &reading, TraceId::new(u128::from(lead)));
        self.context.store.accept(command).await.unwrap().receipt().clone()
    }

    /// Runs the one ready task: an intent with its outcome, then the ending.
    async fn run(&self, outcome: Option<Outcome>, ending: Ending, text: &str, notice: Option<TaskSeed>) {
        let store = &self.context.store;
        let slots = vec![("crm".to_owned(), 1)];
        let kinds = vec!["note".to_owned(), "notice".to_owned()];
        let leased = store.lease(slots, kinds, 1).await.unwrap().pop().expect("a task is ready");
        if let Some(outcome) = outcome {
            let key = KeyBuilder::new().part("amocrm").part("31000001").part("note").part(&leased.seed().entity);
            let spec = IntentSpec {
                object: ObjectRef::new("crm", "note", vec![key.finish()]),
                shape: Shape::Create,
                version: None,
                replaces: Vec::new(),
                evidence: b"{}".to_vec(),
            };
            let opening = store.open_intent(Holder::Task(leased.ticket()), spec).await.unwrap();
            let Opening::Durable(proof) = opening else { panic!("{opening:?}") };
            self.clock.advance(Duration::from_secs(1));
            store.record_outcome(proof.id(), outcome).await.unwrap();
        }
        self.clock.advance(Duration::from_secs(1));
        let settlement = Settlement { notice, ..Settlement::new(ending, text) };
        store.settle(leased, settlement).await.unwrap();
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, request: Request) -> T {
        let answered = answer(&self.context, request, "anna").await.unwrap();
        serde_json::from_value(answered).unwrap()
    }
}

impl ManualClock {
    fn now_secs(&self) -> i64 {
        use crate::clock::Clock as _;
        self.now().as_secs()
    }
}

fn notice(parent: u64) -> TaskSeed {
    let key = |last: &str| -> Key { KeyBuilder::new().part("tambour").part(&parent.to_string()).part(last).finish() };
    TaskSeed {
        name: "notice-crm".to_owned(),
        kind: "notice".to_owned(),
        key: key("dead"),
        lane: key("lane"),
        target: "crm".to_owned(),
        entity: "dead".to_owned(),
        mode: Mode::Once(OnReturn::Keep),
        trace: TraceId::new(50_000_001),
    }
}

fn dead() -> TaskFilter {
    TaskFilter { state: Some("dead".to_owned()), ..TaskFilter::default() }
}

fn story(trace: &Trace) -> String {
    trace.story.iter().map(|line| format!("{} {} {}\n", line.at, line.who, line.text)).collect()
}

/// A note is refused, a person retries, and a second deal waits for a held target:
/// every id along the way tells the same story.
#[tokio::test]
async fn one_story_from_any_id() {
    let fixture = Fixture::new().await;
    fixture.deal_moves(50_000_001).await;
    fixture.clock.advance(Duration::from_mins(1));
    let refused = Outcome::Refused { text: "the deal is locked".to_owned() };
    let ending = Ending::Dead(ReasonCode::VALIDATION);
    fixture.run(Some(refused), ending, "the deal is locked", Some(notice(1))).await;
    fixture.run(None, Ending::Done, "", None).await;
    fixture.clock.advance(Duration::from_mins(5));
    let why = "unlocked".to_owned();
    let wish = Request::Operate { wish: Wish::Retry, filter: dead(), why, before: None };
    let operated: Operated = fixture.ask(wish).await;
    assert_eq!((operated.done, operated.next), (1, None));
    fixture.clock.advance(Duration::from_secs(1));
    fixture.run(Some(Outcome::Applied { external_id: "70001".to_owned() }), Ending::Done, "", None).await;
    fixture.clock.advance(Duration::from_mins(1));
    fixture.deal_moves(50_000_001).await;

    let trace = |id: &str| fixture.ask::<Trace>(Request::Trace { id: id.to_owned() });
    let told = trace("50000001").await;
    assert_eq!(story(&told), include_str!("../../tests/data/trace/note.txt"));
    let hex = TraceId::new(50_000_001).to_string();
    for id in ["t1", "t2", "i1", "e1", "e2", &hex] {
        let other = trace(id).await;
        assert_eq!(story(&other), story(&told), "{id}");
        assert!(!other.cut);
    }
    let nothing = answer(&fixture.context, Request::Trace { id: "t9".to_owned() }, "anna").await.unwrap_err();
    assert_eq!(nothing.to_string(), "nothing is stored under `t9`");
}

#[tokio::test]
async fn a_waiting_task_says_what_it_waits_for() {
    let fixture = Fixture::new().await;
    fixture.deal_moves(50_000_001).await;
    fixture.run(None, Ending::Retry(None), "the CRM is busy", None).await;
    let last = |trace: Trace| trace.story.last().unwrap().text.clone();
    let waits: Trace = fixture.ask(Request::Trace { id: "t1".to_owned() }).await;
    let text = last(waits);
    assert!(text.starts_with("now: retry after 1 attempt: the CRM is busy; next try 2026-11-30T11:01:"), "{text}");
    fixture.clock.advance(Duration::from_mins(10));
    fixture.run(None, Ending::Hold, "the token was revoked", None).await;
    let held: Trace = fixture.ask(Request::Trace { id: "t1".to_owned() }).await;
    let text = last(held);
    assert_eq!(text, "now: retry after 1 attempt: the token was revoked; crm is held since 2026-11-30T11:10:02Z");
    fixture.clock.advance(Duration::from_mins(1));
    fixture.deal_moves(50_000_002).await;
    let held: Trace = fixture.ask(Request::Trace { id: "t2".to_owned() }).await;
    let text = last(held);
    assert_eq!(text, "now: new; crm is held since 2026-11-30T11:10:02Z: the token was revoked");
    let resumed: Value = fixture.ask(Request::Resume { target: "crm".to_owned() }).await;
    assert_eq!(resumed, json!({ "was_held": true }));
    let unknown = answer(&fixture.context, Request::Resume { target: "crn".to_owned() }, "anna").await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no target `crn`; there are: crm");
}

/// More tasks than one page: previewed whole, then closed page by page.
#[tokio::test]
async fn wishes_for_many_tasks_go_page_by_page() {
    let fixture = Fixture::new().await;
    for lead in 1..=502 {
        fixture.deal_moves(lead).await;
    }
    let filter = TaskFilter { kind: Some("note".to_owned()), ..TaskFilter::default() };
    let preview = |filter: TaskFilter| fixture.ask::<Preview>(Request::Preview { wish: Wish::Close, filter });
    let before = preview(filter.clone()).await;
    assert_eq!((before.count, before.first.len(), before.first[0].id.as_str()), (502, 20, "t502"));

    let close = |before: Option<String>| Request::Operate {
        wish: Wish::Close,
        filter: filter.clone(),
        why: String::new(),
        before,
    };
    let first: Operated = fixture.ask(close(None)).await;
    assert_eq!((first.done, first.next.as_deref()), (500, Some("t3")));
    let last: Operated = fixture.ask(close(first.next)).await;
    assert_eq!((last.done, last.next), (2, None));
    assert_eq!(preview(filter).await.count, 0, "what has ended is not meant");

    let again = TaskFilter { ids: vec!["t1".to_owned(), "t9999".to_owned()], ..TaskFilter::default() };
    let wish = Request::Operate { wish: Wish::Retry, filter: again, why: String::new(), before: None };
    let refused: Operated = fixture.ask(wish).await;
    assert_eq!((refused.done, refused.refused.len(), refused.refused[0].id.as_str()), (0, 1, "t1"));
    let everything = Request::Preview { wish: Wish::Close, filter: TaskFilter::default() };
    let refused = answer(&fixture.context, everything, "anna").await.unwrap_err();
    assert!(refused.to_string().contains("everything is never meant"), "{refused}");
}

#[tokio::test]
async fn health_and_metrics_say_how_things_stand() {
    let fixture = Fixture::new().await;
    let admin = Admin::new(fixture.clock.clone(), Arc::new(Metrics::default()));
    let page = |method: Method, path: &'static str| {
        let admin = admin.clone();
        async move {
            let response = admin.page(&method, path).await;
            let status = response.status();
            (status, String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
        }
    };
    let (status, body) = page(Method::GET, "/health").await;
    let health: Health = serde_json::from_str(&body).unwrap();
    assert_eq!((status, health.status.as_str()), (StatusCode::SERVICE_UNAVAILABLE, view::OPENING));
    assert_eq!(health.opening, None);
    admin.progress().at(Step::Checking, 30);
    let (_, body) = page(Method::GET, "/health").await;
    assert!(body.contains(r#""opening":{"step":"checking","percent":30}"#), "{body}");

    admin.opened(fixture.context.clone());
    fixture.deal_moves(50_000_001).await;
    fixture.run(None, Ending::Dead(ReasonCode::TEMPLATE), "line 1", None).await;
    fixture.deal_moves(50_000_002).await;
    fixture.run(None, Ending::Hold, "pay the account", None).await;
    fixture.clock.advance(Duration::from_secs(89));
    let lost =
        WindowSpan { source: "crm".to_owned(), reason: WindowReason::OverQuota, from: START, to: START, count: 2 };
    fixture.context.store.extend_windows(vec![lost]).await.unwrap();
    for source in ["crm", "shop"] {
        let raised = AlertChange::Raised { first: START, last: START, count: 3, text: "usually the secret" };
        fixture.context.store.change_alert(AlertKind::Signature, source, raised).await.unwrap();
    }
    let resolved = AlertChange::Resolved { at: START };
    fixture.context.store.change_alert(AlertKind::Signature, "crm", resolved).await.unwrap();
    let (status, body) = page(Method::GET, "/health").await;
    let health: Health = serde_json::from_str(&body).unwrap();
    assert_eq!((status, health.status.as_str(), health.dead), (StatusCode::OK, view::OK, 1));
    assert_eq!((health.oldest_unfinished_seconds, health.tasks["new"], health.open_intents), (90, 1, 0));
    assert_eq!((health.holds[0].target.as_str(), health.holds[0].text.as_str()), ("crm", "pay the account"));
    let alerts: Vec<_> = health.alerts.iter().map(|alert| (alert.source.as_str(), alert.count)).collect();
    assert_eq!((alerts, health.open_windows), (vec![("shop", 3)], 1));
    let windows: Vec<view::Window> = fixture.ask(Request::Windows).await;
    assert_eq!((windows[0].reason.as_str(), windows[0].count, windows[0].open), ("over_quota", 2, true));
    let (status, metrics) = page(Method::GET, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    assert!(metrics.contains("tambour_tasks{state=\"dead\"} 1\n"), "{metrics}");
    for (source, stands) in [("shop", 1), ("crm", 0)] {
        let line = format!("tambour_alerts{{kind=\"signature\",source=\"{source}\"}} {stands}\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    assert!(metrics.contains("tambour_oldest_unfinished_age_seconds 90.0\n"), "{metrics}");
    for (method, path) in [(Method::GET, "/"), (Method::POST, "/health")] {
        assert_eq!(page(method, path).await.0, StatusCode::NOT_FOUND);
    }
}

/// A folder with a served socket.
struct Served {
    fixture: Fixture,
    stop: oneshot::Sender<()>,
    serving: JoinSet<()>,
}

impl Served {
    async fn start() -> Self {
        let fixture = Fixture::new().await;
        let admin = Admin::new(fixture.clock.clone(), Arc::new(Metrics::default()));
        admin.opened(fixture.context.clone());
        let socket = listen(fixture.folder.path()).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        serving.spawn(admin.serve_socket(socket, async { drop(stopped.await) }));
        Self { fixture, stop, serving }
    }

    async fn ask(&self, request: Request) -> Result<Value, AskError> {
        ask(self.fixture.folder.path(), &Call { who: "anna\n".to_owned(), request }).await
    }

    async fn raw(&self, bytes: &[u8]) -> Value {
        let mut stream = UnixStream::connect(self.fixture.folder.path().join("tambour.sock")).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    }
}

#[tokio::test]
async fn the_socket_answers_as_the_file_itself_does() {
    let served = Served::start().await;
    served.fixture.deal_moves(50_000_001).await;
    let request = Request::Tasks { filter: TaskFilter::default(), before: None, limit: 10 };
    let live = served.ask(request.clone()).await.unwrap();
    let offline = answer(&served.fixture.context, request, "anna").await.unwrap();
    assert_eq!(live, offline);
    let page: Page<Task> = serde_json::from_value(live).unwrap();
    assert_eq!((page.items[0].id.as_str(), page.items[0].entity.as_str(), page.next), ("t1", "50000001", None));
    let failed = served.ask(Request::Trace { id: "nobody".to_owned() }).await.unwrap_err();
    assert!(matches!(failed, AskError::Failed(failure) if failure.kind == FailureKind::Unknown));
}

#[tokio::test]
async fn lines_that_are_no_request_are_refused() {
    let served = Served::start().await;
    let long = vec![b' '; 70 * 1024];
    for line in [&b"{}\n"[..], b"status\n", b"{\"who\":\"anna\",\"request\":\"status\"}", b"", &long] {
        let answer = served.raw(line).await;
        assert_eq!(answer["failed"]["kind"], "invalid", "{answer}");
    }
    let answer = served.raw(b"{\"who\":\"anna\",\"request\":\"status\"}\n").await;
    assert_eq!(answer["ok"]["status"], "ok", "{answer}");
}

#[tokio::test]
async fn a_stop_ends_the_socket_and_a_stale_file_is_no_hindrance() {
    let mut served = Served::start().await;
    let folder = served.fixture.folder.path().to_owned();
    let path = folder.join("tambour.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(listen(&folder).unwrap_err().to_string().starts_with("another process answers"), "it is served");
    served.stop.send(()).unwrap();
    served.serving.join_next().await.unwrap().unwrap();
    assert!(!path.exists());
    let call = Call { who: String::new(), request: Request::Status };
    assert!(matches!(ask(&folder, &call).await, Err(AskError::NobodyAnswers { .. })));

    // As a killed process leaves it: the file is there, and nobody listens.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(matches!(ask(&folder, &call).await, Err(AskError::NobodyAnswers { .. })));
    drop(listen(&folder).unwrap());
}
