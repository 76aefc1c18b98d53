//! Refusals that may have lost a genuine delivery: alerts, windows, and secrets in rotation.

use bytes::Bytes;
use serde_json::Value;

use crate::process::fixture::{ADDRESS_TOKEN, Delivery, SECRET, SHOP, World, field};

const NEW_SECRET: &str = "shpss_new_secret";

fn order(world: &World, secret: &str, webhook_id: &str) -> Delivery {
    let body = world.annas_order(1001, "10.00").to_json().to_string();
    world.signed(secret, SHOP, "orders/create", webhook_id, Bytes::from(body))
}

/// `shop signature 3`, a line a window.
fn windows(answer: &Value) -> Vec<String> {
    let windows = answer.as_array().unwrap().iter();
    windows
        .map(|window| {
            assert_eq!(window["open"], true, "{window}");
            format!("{} {} {}", window["source"], window["reason"], window["count"]).replace('"', "")
        })
        .collect()
}

fn is_alert(line: &Value) -> bool {
    field(line, "message") == "deliveries that look genuine have wrong signatures"
}

/// Somebody changes the app's secret and tells nobody: every delivery is answered 401.
/// The third one alerts, with what to do; once the secret is right the alert goes by
/// itself, and the window says when deliveries may have been lost.
#[tokio::test]
async fn the_third_wrong_signature_alerts_until_one_is_right() {
    let world = World::new().await;
    let served = world.serve().await;
    for id in ["w-1", "w-2"] {
        assert_eq!(served.post(&order(&world, NEW_SECRET, id)).await.status, 401);
    }
    // A stranger is no delivery.
    let mut stranger = order(&world, NEW_SECRET, "w-3");
    stranger.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("user-agent"));
    assert_eq!(served.post(&stranger).await.status, 401);
    let quiet = served.get("/health").await;
    assert!(quiet.contains("\"alerts\":[]") && quiet.contains("\"open_windows\":0"), "{quiet}");

    assert_eq!(served.post(&order(&world, NEW_SECRET, "w-4")).await.status, 401);
    let told = served.logged(1, is_alert).await;
    assert!(field(&told[0], "causes").contains("client secret"), "{told:?}");
    assert_eq!(told[0]["level"], "ERROR", "{told:?}");
    let health = served.get_until("/health", |health| health.contains("\"kind\":\"signature\"")).await;
    for part in ["HTTP/1.1 200", "\"source\":\"shop\"", "\"count\":3", "client secret"] {
        assert!(health.contains(part), "{part} is not in {health}");
    }
    let metrics = served.get("/metrics").await;
    for line in [
        "tambour_alerts{kind=\"signature\",source=\"shop\"} 1",
        "tambour_refusals_total{source=\"shop\",reason=\"signature\"} 3",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }

    assert_eq!(served.post(&order(&world, SECRET, "w-5")).await.status, 200);
    served.get_until("/health", |health| health.contains("\"alerts\":[]")).await;
    assert!(served.get("/metrics").await.contains("tambour_alerts{kind=\"signature\",source=\"shop\"} 0"));
    assert_eq!(windows(&world.run(&["windows", "--json"]).await.json()), ["shop signature 3"]);
    let log = served.stop().await;
    let alerts = log.iter().filter_map(|line| serde_json::from_str(line).ok()).filter(is_alert);
    assert_eq!(alerts.count(), 1);
}

/// What is refused within the minute is one commit, and a stop writes the rest of it.
#[tokio::test]
async fn refusals_leave_windows_behind_over_a_restart() {
    let world = World::with("[sources.crm.quota]\nevents_per_hour = 1\n").await;
    let served = world.serve().await;
    let hook = |n: u32| world.hook(Bytes::from(format!("account[id]=31000001&leads[add][0][id]={n}")));
    let mut statuses = Vec::new();
    for n in 1..=5 {
        statuses.push(served.post(&hook(n)).await.status);
    }
    assert_eq!(statuses, [200, 503, 503, 503, 503]);
    let big = Delivery { body: Bytes::from(vec![b' '; 300 * 1024]), ..order(&world, SECRET, "w-1") };
    assert_eq!(served.post(&big).await.status, 413);
    // At no valid address nothing is lost.
    let nowhere = Delivery { path: format!("/in/shop/{ADDRESS_TOKEN}"), ..order(&world, SECRET, "w-2") };
    assert_eq!(served.post(&nowhere).await.status, 404);
    served.stop().await;
    let expected = ["crm over_quota 4", "shop too_large 1"];
    assert_eq!(windows(&world.run(&["windows", "--json"]).await.json()), expected, "from the file itself");
    let again = world.serve().await;
    assert!(again.get_until("/health", |health| health.contains("\"ok\"")).await.contains("\"open_windows\":2"));
    assert_eq!(again.post(&hook(6)).await.status, 200, "the counts of an hour begin anew with the process");
    again.stop().await;
}

/// B04: after a rotation deliveries come signed with the old secret for half an hour.
#[tokio::test]
async fn two_secrets_are_valid_until_the_old_one_is_dropped() {
    let world = World::new().await;
    world.write("new.secret", NEW_SECRET);
    let file = std::fs::read_to_string(world.path("tambour.toml")).unwrap();
    let old = "{ label = \"test\", file = \"shopify.secret\" }";
    let new = "{ label = \"new\", file = \"new.secret\" }";
    assert!(file.contains(old));
    let verified = |metrics: &str, label: &str| {
        metrics.contains(&format!("tambour_secret_verified_total{{source=\"shop\",label=\"{label}\"}} 1\n"))
    };

    world.write("tambour.toml", &file.replace(old, &format!("{new}, {old}")));
    let both = world.serve().await;
    assert_eq!(both.post(&order(&world, SECRET, "w-1")).await.status, 200);
    let metrics = both.get("/metrics").await;
    assert!(verified(&metrics, "test") && !verified(&metrics, "new"), "{metrics}");
    assert_eq!(both.post(&order(&world, NEW_SECRET, "w-2")).await.status, 200);
    assert!(verified(&both.get("/metrics").await, "new"));
    both.stop().await;

    world.write("tambour.toml", &file.replace(old, new));
    let only_new = world.serve().await;
    assert_eq!(only_new.post(&order(&world, SECRET, "w-3")).await.status, 401);
    assert_eq!(only_new.post(&order(&world, NEW_SECRET, "w-4")).await.status, 200);
    assert_labels(&world, &["new", "new", "test"]).await;
    only_new.stop().await;
}

/// The label that verified each event, newest first.
async fn assert_labels(world: &World, expected: &[&str]) {
    let events = world.run(&["events", "--json"]).await.json();
    let labels: Vec<&str> =
        events["items"].as_array().unwrap().iter().map(|e| e["secret"].as_str().unwrap_or_default()).collect();
    assert_eq!(labels, expected, "{events}");
}
