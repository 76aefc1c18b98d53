//! Kill, stop, start: nothing acknowledged is lost, nothing is done twice.

use std::sync::Arc;

use tambour::sandbox::{Fault, Operation, Sender, When};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::process::fixture::{World, within};

/// The demo's scene: the CRM has made the deal and withholds the last byte of its
/// answer; SIGKILL; the next start finds the deal after the doubt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_the_answer_is_withheld_makes_no_second_deal() {
    let world = World::new().await;
    world.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::WithholdLastByte);
    let served = world.serve().await;
    let order = world.annas_order(1001, "10.00");
    assert_eq!(served.post(&world.order(&order, "orders/create", "w-1")).await.status, 200);
    world.sandbox.seen(Operation::LeadCreate, 1).await;
    served.kill().await;
    world.sandbox.release();

    // P10: what was in flight runs again within seconds, not after a sweep.
    let again = world.serve().await;
    again.ended(1).await;
    let counts = world.sandbox.counts();
    assert_eq!((counts.contacts, counts.leads, counts.notes), (1, 1, 1));
    assert_eq!(counts.calls[&Operation::LeadCreate], 1);
    // The repeat of a delivery from before the kill is a duplicate.
    assert_eq!(again.post(&world.order(&order, "orders/create", "w-1")).await.status, 200);
    let events = world.run(&["events", "--json"]).await.json();
    assert_eq!(events["items"].as_array().map(Vec::len), Some(1));
    again.stop().await;
}

/// B66: a second process on the same file is refused, with the pid of the first.
#[tokio::test]
async fn a_second_process_is_refused_by_name() {
    let world = World::new().await;
    let first = world.serve().await;
    first.logged(1, |line| line.to_string().contains("\"ready\"")).await;
    let second = world.run(&["serve"]).await;
    assert_ne!(second.code, Some(0));
    assert!(second.stderr.contains(&format!("process {}", first.pid())), "{}", second.stderr);
    first.stop().await;
}

/// A stop lets the running task end, and the next start finds an orderly file.
#[tokio::test]
async fn a_stop_is_orderly() {
    let world = World::new().await;
    let served = world.serve().await;
    world.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::WithholdLastByte);
    served.post(&world.order(&world.annas_order(1001, "10.00"), "orders/create", "w-1")).await;
    world.sandbox.seen(Operation::LeadCreate, 1).await;
    world.sandbox.release();
    served.stop().await;
    let again = world.serve().await;
    let open = again.logged(1, |line| line.to_string().contains("data file open")).await;
    assert!(open[0].to_string().contains("\"clean\":true"), "{open:?}");
    again.stop().await;
}

/// `verify` needs the file for itself: refused beside `serve`, clean after a stop and after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_is_refused_while_serve_runs_and_clean_afterwards() {
    let world = World::new().await;
    let absent = world.run(&["verify"]).await;
    assert_eq!(absent.code, Some(4), "{absent:?}");
    let served = world.serve().await;
    served.post(&world.order(&world.annas_order(1001, "10.00"), "orders/create", "w-1")).await;
    served.ended(1).await;
    let refused = world.run(&["verify"]).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("hint: ") && refused.stderr.contains("stop tambour"), "{refused:?}");
    served.kill().await;
    let killed = world.run(&["verify", "--json"]).await;
    assert_eq!(killed.code, Some(0), "{killed:?}");
    assert_eq!(killed.json()["rows"]["events"], 1);
    world.serve().await.stop().await;
    let stopped = world.run(&["verify"]).await;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.stdout.starts_with("no damage: 1 events, 1 tasks, 3 intents"), "{stopped:?}");
}

/// B15. Story: fifty senders have the same delivery; the process is killed when some of them
/// are answered, and starts again. Each repeats until it is answered, and there is one event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_identical_deliveries_across_a_kill_are_one_event() {
    let world = World::new().await;
    let first = world.serve().await;
    let delivery = Arc::new(world.order(&world.annas_order(1001, "10.00"), "orders/create", "w-1"));
    let door = watch::Sender::new(Some(first.sender()));
    let answers = watch::Sender::new(0);
    let mut senders = JoinSet::new();
    for _ in 0..50 {
        let (delivery, mut door, answers) = (delivery.clone(), door.subscribe(), answers.clone());
        senders.spawn(async move {
            loop {
                let sender: Sender = door.wait_for(Option::is_some).await.unwrap().clone().unwrap();
                match delivery.send(&sender).await {
                    Ok(answered) => {
                        assert_eq!(answered.status, 200, "{answered:?}");
                        answers.send_modify(|answers| *answers += 1);
                        return;
                    }
                    // Where nobody listens any more it waits for the next door.
                    Err(_) => drop(door.changed().await),
                }
            }
        });
    }
    within(answers.subscribe().wait_for(|answers| *answers >= 10)).await.unwrap();
    door.send_replace(None);
    first.kill().await;
    let second = world.serve().await;
    door.send_replace(Some(second.sender()));
    while let Some(ended) = within(senders.join_next()).await {
        ended.unwrap();
    }
    second.stop().await;

    let events = world.run(&["events", "--json"]).await.json();
    assert_eq!(events["items"].as_array().map(Vec::len), Some(1), "{events}");
    // At least: some copies may have been counted and not answered.
    assert!(events["items"][0]["copies"].as_u64().unwrap() >= 49, "{events}");
    let tasks = world.run(&["tasks", "--json"]).await.json();
    assert_eq!(tasks["items"].as_array().map(Vec::len), Some(1), "{tasks}");
    if tasks["items"][0]["state"] != "done" {
        let third = world.serve().await;
        third.ended(1).await;
        third.stop().await;
    }
    let counts = world.sandbox.counts();
    assert_eq!((counts.contacts, counts.leads, counts.notes), (1, 1, 1));
}
