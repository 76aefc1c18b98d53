//! The commands on a live appliance and on the file it left behind.

use crate::process::fixture::World;

/// A dead task is a piece of work for a person: listed, told, put right, run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_task_is_found_explained_and_retried() {
    let world = World::new().await;
    let served = world.serve().await;
    let mut order = world.annas_order(1001, "10.00");
    order.currency = "USD".to_owned();
    served.post(&world.order(&order, "orders/create", "w-1")).await;
    // The dead deal task and its notice.
    served.ended(2).await;
    assert_eq!(world.sandbox.counts().tasks, 1, "the responsible user has a CRM task");

    let dead = world.run(&["tasks", "--state", "dead", "--json"]).await.json();
    assert_eq!(dead["items"][0]["reason"], "wrong_currency", "{dead}");
    let trace = world.run(&["trace", "1001"]).await;
    for part in ["e1", "t1", "wrong_currency", "orders/create"] {
        assert!(trace.stdout.contains(part), "{part} is not in {}", trace.stdout);
    }
    let preview = world.run(&["retry", "--state", "dead"]).await;
    assert_eq!(preview.code, Some(1), "without --yes and without a terminal it only shows: {preview:?}");

    order.currency = "RUB".to_owned();
    order.updated_at = order.updated_at.plus(std::time::Duration::from_secs(5));
    served.post(&world.order(&order, "orders/updated", "w-2")).await;
    served.ended(3).await;
    assert_eq!(world.sandbox.counts().leads, 1);
    let none = world.run(&["retry", "--state", "dead", "--yes"]).await;
    assert_eq!(none.code, Some(1), "nothing is dead any more: {none:?}");
    served.stop().await;

    // The same questions to the file itself, with nobody serving.
    let done = world.run(&["tasks", "--state", "done", "--json"]).await.json();
    assert_eq!(done["items"].as_array().map(Vec::len), Some(2), "{done}");
    let routes = world.run(&["routes"]).await;
    assert!(routes.stdout.contains("orders/create") && routes.stdout.contains("deal"), "{routes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_goes_the_whole_way_and_does_no_harm() {
    let world = World::new().await;
    let served = world.serve().await;
    let url = format!("https://localhost:{}", served.door.port());
    let sent = world.run(&["send", "shop", "--url", &url, "--insecure"]).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stdout.contains("200"), "{sent:?}");
    served.ended(1).await;
    let tasks = world.run(&["tasks", "--json"]).await.json();
    assert_eq!(tasks["items"][0]["reason"], "test_order", "the sample is a test order: {tasks}");
    assert_eq!(world.sandbox.counts().leads, 0);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_and_ask_talk_to_the_crm() {
    let world = World::new().await;
    let checked = world.run(&["check", "--live"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let pipelines = world.run(&["ask", "amocrm", "pipelines"]).await;
    assert!(pipelines.stdout.contains("61000003") && pipelines.stdout.contains("Договор"), "{pipelines:?}");
    world.write("tambour.toml", "langauge = \"ru\"\n");
    let broken = world.run(&["check"]).await;
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert!(broken.stdout.contains("tambour.toml:1") && broken.stdout.contains("`language`"), "{broken:?}");
}

/// A very short run: what is measured and what is told, not how fast.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bench_counts_what_is_durable_and_leaves_nothing_behind() {
    let world = World::new().await;
    let args = ["bench", "accept", "--seconds", "1", "--connections", "2,40", "--keep-alive", "--json"];
    let ran = world.run(&args).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(2), "{report}");
    for run in report["runs"].as_array().unwrap() {
        assert!(run["accepted"].as_u64().unwrap() > 0 && run["p999_ms"].as_f64().unwrap() > 0.0, "{run}");
        assert!(run["body_bytes"].as_u64().unwrap() >= 2048 && run["p99_ratio"].is_null(), "{run}");
        assert_eq!(
            (&run["failed"], run["refused"].as_object().map(serde_json::Map::len)),
            (&0.into(), Some(0)),
            "{run}"
        );
    }
    assert!(report["disk"]["appends"].as_u64().unwrap() > 0, "{report}");
    assert!(ran.stderr.contains("tambour-bench-"), "{ran:?}");
    let left = std::fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with("tambour-bench-")), "its folder is gone");

    world.write(
        "orders.jsonl",
        "{\"id\":1,\"updated_at\":\"2026-11-30T11:00:00Z\"}\n{\"id\":2,\"updated_at\":\"2026-11-30T11:00:10Z\"}\n",
    );
    let orders = world.path("orders.jsonl").display().to_string();
    let paced = ["bench", "accept", "--connections", "1", "--from", &orders, "--speed", "100", "--json"];
    let report = world.run(&paced).await.json();
    assert_eq!(report["runs"][0]["accepted"], 2, "each order once, at its time: {report}");
}
