//! A crash at every step boundary: the real process aborts on the named line.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::process::fixture::{Delivery, STAGE_CONTRACT, Served, World};

const ORDER: u64 = 912_345_678_901_234_567;
const SIGABRT: i32 = 6;

/// Every boundary of a new order, in the order in which a run meets them.
const CREATE: [&str; 14] = [
    "deal/task/leased",
    "deal/lead/searched",
    "deal/contact/searched",
    "deal/contact/intent",
    "deal/contact/sent",
    "deal/contact/outcome",
    "deal/lead/intent",
    "deal/lead/sent",
    "deal/lead/outcome",
    "deal/note/searched",
    "deal/note/intent",
    "deal/note/sent",
    "deal/note/outcome",
    "deal/task/settling",
];

const UPDATE: [&str; 5] =
    ["deal/task/leased", "deal/lead/set-intent", "deal/lead/set-sent", "deal/lead/set-outcome", "deal/task/settling"];

const NOTE: [&str; 6] = [
    "note/task/leased",
    "note/note/searched",
    "note/note/intent",
    "note/note/sent",
    "note/note/outcome",
    "note/task/settling",
];

/// A process that dies while it makes a deal must leave one contact, one deal
/// and one note, whatever line it dies on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_anywhere_in_a_new_order_leaves_one_of_each() {
    all_points(&CREATE, |point| async move {
        let world = World::new().await;
        let dying = world.serve_crashing(Some(point)).await;
        let order = world.annas_order(ORDER, "4980.50");
        dies_of(dying, &world.order(&order, "orders/create", "w-1"), point).await;

        let healthy = world.serve().await;
        healthy.ended(1).await;
        let counts = world.sandbox.counts();
        assert_eq!((counts.contacts, counts.leads, counts.notes), (1, 1, 1), "{point}");
        let lead = world.sandbox.leads().remove(0);
        assert_eq!(lead.fields.get("TAMBOUR_TOTAL").map(String::as_str), Some("4980.50"), "{point}");
        assert_eq!(lead.contacts.len(), 1, "{point}");
        healthy.stop().await;
    })
    .await;
}

/// A process that dies while it updates a deal must leave the last values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_anywhere_in_an_update_leaves_the_last_values() {
    all_points(&UPDATE, |point| async move {
        let world = World::new().await;
        let first = world.serve().await;
        let mut order = world.annas_order(ORDER, "4980.50");
        first.post(&world.order(&order, "orders/create", "w-1")).await;
        first.ended(1).await;
        first.stop().await;

        let dying = world.serve_crashing(Some(point)).await;
        order.total = "5555.00".to_owned();
        order.updated_at = order.updated_at.plus(Duration::from_secs(60));
        dies_of(dying, &world.order(&order, "orders/updated", "w-2"), point).await;

        let healthy = world.serve().await;
        healthy.ended(1).await;
        let counts = world.sandbox.counts();
        assert_eq!((counts.contacts, counts.leads, counts.notes), (1, 1, 1), "{point}");
        let lead = world.sandbox.leads().remove(0);
        assert_eq!(lead.fields.get("TAMBOUR_TOTAL").map(String::as_str), Some("5555.00"), "{point}");
        assert_eq!(lead.price, 5555, "{point}");
        healthy.stop().await;
    })
    .await;
}

/// A process that dies while it writes a note must leave exactly one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_anywhere_in_a_note_leaves_one_note() {
    all_points(&NOTE, |point| async move {
        let world = World::new().await;
        let dying = world.serve_crashing(Some(point)).await;
        let (deal, _) = world.sandbox.add_lead_by_hand("Окна", 128_500, None).unwrap();
        let hook = world.sandbox.move_lead(deal, STAGE_CONTRACT).unwrap();
        dies_of(dying, &world.hook(hook), point).await;

        let healthy = world.serve().await;
        healthy.ended(1).await;
        assert_eq!(world.sandbox.notes_of_lead(deal).len(), 1, "{point}");
        healthy.stop().await;
    })
    .await;
}

/// Posts what makes the process abort; it may do so before its answer is out, since work
/// begins with the commit.
async fn dies_of(dying: Served, delivery: &Delivery, point: &str) {
    if let Ok(answered) = dying.try_post(delivery).await {
        assert_eq!(answered.status, 200, "{point}");
    }
    assert_eq!(dying.died().await.signal(), Some(SIGABRT), "{point} was not reached");
}

/// Runs a scenario for each point, a few at a time.
async fn all_points<F: Future<Output = ()> + Send + 'static>(
    points: &[&'static str],
    scenario: impl Fn(&'static str) -> F,
) {
    let mut running = JoinSet::new();
    for point in points {
        if running.len() >= 4 {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(scenario(point));
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}
