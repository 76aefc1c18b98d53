//! The door through real TLS: floods of one delivery, what is logged, what is told.

use bytes::Bytes;
use tambour::sandbox::OrderSketch;
use tokio::task::JoinSet;

use crate::process::fixture::{ADDRESS_TOKEN, STAGE_CONTRACT, STAGE_FIRST, World, field};

/// B15, P02: fifty identical deliveries at once are one event, one task, one deal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_parallel_identical_deliveries_are_one_event() {
    let world = World::new().await;
    let served = world.serve().await;
    let delivery = world.order(&world.annas_order(9_196_877_626_998_784, "10.00"), "orders/create", "w-1");
    let mut posts = JoinSet::new();
    for _ in 0..50 {
        let (sender, delivery) = (served.sender(), delivery.clone());
        posts.spawn(async move { delivery.send(&sender).await.unwrap().status });
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
    let health = served.get("/health").await;
    for part in ["HTTP/1.1 200", "\"status\":\"ok\"", "\"done\":1", "\"open_intents\":0"] {
        assert!(health.contains(part), "{part} is not in {health}");
    }
    let metrics = served.get("/metrics").await;
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
    assert!(served.get("/").await.contains("HTTP/1.1 404"));
    served.stop().await;
}
