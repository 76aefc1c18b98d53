//! The door through real TLS: the answer table, floods of one delivery, and what is logged.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use tambour::sandbox::OrderSketch;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::process::fixture::{ADDRESS_TOKEN, Delivery, STAGE_CONTRACT, STAGE_FIRST, Served, World, field, within};

async fn status(served: &Served, request: Request<Full<Bytes>>) -> u16 {
    served.sender().exchange(request).await.unwrap().status
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Request<Full<Bytes>> {
    let builder = Request::builder().method(method).uri(path).header("host", "localhost");
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
    builder.body(Full::new(Bytes::copy_from_slice(body))).unwrap()
}

/// B42: with and without a trailing slash, never a redirect. Unknown source and
/// wrong token look alike.
#[tokio::test]
async fn every_address_and_method_has_its_answer() {
    let world = World::new().await;
    let served = world.serve().await;
    let crm = format!("/in/crm/{ADDRESS_TOKEN}");
    let table: Vec<(&str, String, u16)> = vec![
        ("GET", "/in/shop".to_owned(), 200),
        ("HEAD", "/in/shop/".to_owned(), 200),
        ("GET", crm.clone(), 200),
        ("GET", format!("{crm}/"), 200),
        ("PUT", "/in/shop".to_owned(), 405),
        ("DELETE", crm.clone(), 405),
        ("POST", "/in/crm".to_owned(), 404),
        ("POST", "/in/crm/0123456789abcdef-addresS".to_owned(), 404),
        ("POST", format!("/in/shop/{ADDRESS_TOKEN}"), 404),
        ("POST", "/in/nobody".to_owned(), 404),
        ("GET", "/in/nobody".to_owned(), 404),
        ("POST", "/in/".to_owned(), 404),
        ("GET", "/".to_owned(), 404),
        ("POST", "/in/shop".to_owned(), 401),
    ];
    for (method, path, expected) in table {
        assert_eq!(status(&served, request(method, &path, &[], b"{}")).await, expected, "{method} {path}");
    }
    served.stop().await;
}

#[tokio::test]
async fn refusals_store_nothing_and_say_what_to_do() {
    let world = World::new().await;
    let served = world.serve().await;
    let order = world.annas_order(1001, "10.00");
    let good = world.order(&order, "orders/create", "w-1");

    let mut forged = good.clone();
    forged.body = Bytes::from(forged.body.iter().map(|b| if *b == b'1' { b'2' } else { *b }).collect::<Vec<_>>());
    assert_eq!(served.post(&forged).await.status, 401);

    let mut anonymous = good.clone();
    anonymous.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("x-shopify-webhook-id"));
    let answered = served.post(&anonymous).await;
    assert_eq!(answered.status, 400);
    assert!(answered.text.to_lowercase().contains("webhook-id"), "{answered:?}");

    let mut zipped = good.clone();
    zipped.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
    assert_eq!(served.post(&zipped).await.status, 415);

    // Too long in one piece, and announced as too long: the sender sees why either way.
    let big = world.hook(Bytes::from(vec![b'a'; 9 * 1024 * 1024]));
    assert_eq!(served.post(&big).await.status, 413);
    let big = Delivery { body: Bytes::from(vec![b' '; 300 * 1024]), ..good.clone() };
    assert_eq!(served.post(&big).await.status, 413);

    let events = world.run(&["events", "--json"]).await.json();
    assert_eq!(events["items"].as_array().map(Vec::len), Some(0), "{events}");

    let identity = ("content-encoding".to_owned(), "identity".to_owned());
    let plain = Delivery { headers: [good.headers.clone(), vec![identity]].concat(), ..good };
    assert_eq!(served.post(&plain).await.status, 200);
    served.stop().await;
}

/// B15, P02: fifty identical deliveries at once are one event, one task, one deal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_parallel_identical_deliveries_are_one_event() {
    let world = World::new().await;
    let served = world.serve().await;
    let delivery = world.order(&world.annas_order(9_196_877_626_998_784, "10.00"), "orders/create", "w-1");
    let mut posts = JoinSet::new();
    for _ in 0..50 {
        let (sender, delivery) = (served.sender(), delivery.clone());
        posts.spawn(async move { sender.post(&delivery.path, &delivery.headers, delivery.body).await.unwrap().status });
    }
    while let Some(status) = posts.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    served.ended(1).await;
    let events = world.run(&["events", "--json"]).await.json();
    assert_eq!(events["items"].as_array().map(Vec::len), Some(1), "{events}");
    assert_eq!(events["items"][0]["copies"], 49, "{events}");
    assert_eq!(world.sandbox.counts().leads, 1);
    served.stop().await;
}

/// The canary: names, phones, e-mails, bodies and secrets of deliveries that are
/// accepted, refused, conflicting and worked off never reach the log.
#[tokio::test]
async fn the_log_holds_no_personal_data_and_no_secret() {
    let world = World::new().await;
    let served = world.serve().await;
    let order = world.annas_order(1001, "10.00");
    served.post(&world.order(&order, "orders/create", "w-1")).await;
    served.ended(1).await;
    let changed = OrderSketch { note: Some("канарейка".to_owned()), ..order.clone() };
    served.post(&world.order(&changed, "orders/create", "w-1")).await;
    let mut forged = world.order(&order, "orders/create", "w-2");
    forged.body = Bytes::from_static(b"{\"email\":\"anna.canary@example.com\"}");
    assert_eq!(served.post(&forged).await.status, 401);
    let foreign = OrderSketch { currency: "USD".to_owned(), id: 1002, ..order };
    served.post(&world.order(&foreign, "orders/create", "w-3")).await;
    let (deal, _) = world.sandbox.add_lead_by_hand("Канарейкина сделка", 1, None).unwrap();
    served.post(&world.hook(world.sandbox.move_lead(deal, STAGE_CONTRACT).unwrap())).await;
    // The first order, the dead one, its notice, the note.
    served.ended(4).await;
    let log = served.stop().await;
    for canary in
        ["анарейк", "Анна", "9000000001", "000-00-01", "anna.canary", "shpss_", "sandbox-amocrm-token", ADDRESS_TOKEN]
    {
        let found: Vec<&String> = log.iter().filter(|line| line.contains(canary)).collect();
        assert!(found.is_empty(), "{canary} in {found:#?}");
    }
    assert!(log.iter().any(|line| line.contains("delivery accepted")));
}

/// One trace id runs from the delivery to the settlement.
#[tokio::test]
async fn one_trace_id_runs_through() {
    let world = World::new().await;
    let served = world.serve().await;
    served.post(&world.order(&world.annas_order(1001, "10.00"), "orders/create", "w-1")).await;
    served.ended(1).await;
    let log = served.stop().await;
    let trace_of = |message: &str| {
        let line = log.iter().filter_map(|line| serde_json::from_str(line).ok());
        let line: serde_json::Value = line.into_iter().find(|line| field(line, "message") == message).unwrap();
        line.pointer("/span/trace").and_then(|t| t.as_str()).map(str::to_owned)
    };
    let accepted = trace_of("delivery accepted");
    assert!(accepted.is_some());
    assert_eq!(accepted, trace_of("attempt settled"));
}

/// The opening scene: a manager who sees no result moves the card forward, back,
/// and forward again. The client gets one note, not two.
#[tokio::test]
async fn forward_back_forward_is_one_note() {
    let world = World::new().await;
    let served = world.serve().await;
    let (deal, _) = world.sandbox.add_lead_by_hand("Окна", 128_500, None).unwrap();
    served.post(&world.hook(world.sandbox.move_lead(deal, STAGE_CONTRACT).unwrap())).await;
    served.ended(1).await;
    for stage in [STAGE_FIRST, STAGE_CONTRACT] {
        served.post(&world.hook(world.sandbox.move_lead(deal, stage).unwrap())).await;
    }
    // The CRM's times have whole seconds: within one the last hook is the first again, byte for byte.
    let met_again = |line: &serde_json::Value| {
        field(line, "tasks").contains("recorded") || field(line, "message") == "delivery repeats a known one"
    };
    served.logged(1, met_again).await;
    assert_eq!(world.sandbox.notes_of_lead(deal).len(), 1);
    served.stop().await;
}

/// Metrics and health answer on their own loopback port.
#[tokio::test]
async fn health_and_metrics_tell_how_it_stands() {
    let world = World::new().await;
    let served = world.serve().await;
    served.post(&world.order(&world.annas_order(1001, "10.00"), "orders/create", "w-1")).await;
    served.ended(1).await;
    let health = get(&served, "/health").await;
    for part in ["HTTP/1.1 200", "\"status\":\"ok\"", "\"done\":1", "\"open_intents\":0"] {
        assert!(health.contains(part), "{part} is not in {health}");
    }
    let metrics = get(&served, "/metrics").await;
    let parts = [
        "tambour_deliveries_total{source=\"shop\",answer=\"200\"} 1",
        "tambour_tasks{state=\"done\"} 1",
        "tambour_calls_total{target=\"crm\",operation=\"change\",class=\"ok\"} 3",
        "tambour_effects_total{target=\"crm\",outcome=\"applied\"} 3",
        "tambour_commit_seconds_count",
    ];
    for part in parts {
        assert!(metrics.contains(part), "{part} is not in {metrics}");
    }
    assert!(get(&served, "/").await.contains("HTTP/1.1 404"));
    served.stop().await;
}

async fn get(served: &Served, path: &str) -> String {
    let mut stream = TcpStream::connect(served.admin).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}
