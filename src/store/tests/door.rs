//! The inbox: what arrives is stored once, whole, and told apart from its repeats.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use futures_util::future::{join, join_all, join3};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Desk, ONCE, START, sample, seed, shop_command, under_id};
use crate::clock::SystemClock;
use crate::domain::{EventId, Pauses, TraceId};
use crate::source::{RawDelivery, read, samples, verify};
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::writer::{Command, Lane};
use crate::store::{AcceptCommand, Error, EventState, Meeting, Receipt, Store, entity_key};

const FIRST: EventId = EventId::new(1);
const SHOP: &str = "tambour-test.myshopify.com";

#[tokio::test]
async fn a_new_delivery_is_stored_with_its_tasks() {
    let desk = Desk::new();
    let raw = sample("orders-create");
    let receipt = desk.accept(raw.clone(), EventState::Routed, vec![seed("1042", ONCE)]).await;
    let Receipt::New { event, tasks } = receipt else { panic!("{receipt:?}") };
    assert_eq!((event, tasks[0].1), (FIRST, Meeting::Made));

    let stored = desk.view().event(event).unwrap().unwrap();
    assert_eq!((stored.source.as_str(), stored.account.as_str()), ("shop", SHOP));
    assert_eq!((stored.topic.as_str(), stored.state.as_str()), ("orders/create", "routed"));
    assert_eq!((stored.received_at, stored.trace, stored.copies), (START, TraceId::new(7), 0));
    assert_eq!(stored.secret_label.as_deref(), Some("now"));
    assert!(stored.headers.iter().all(|(name, _)| !name.contains("hmac")), "a signature is not kept");
    assert_eq!(desk.view().body(event).unwrap().unwrap(), raw.body);

    let order = entity_key("shop", SHOP, "order", "912345678901234567");
    assert_eq!(desk.view().newest_whole(&order).unwrap(), Some(event));
    assert_eq!(desk.view().entities("912345678901234567").unwrap(), [order]);
    assert_eq!(desk.view().events_of_task(tasks[0].0).unwrap(), [(event, Meeting::Made)]);
}

/// B01, B13, P04: bytes that no text type holds stay as they came.
#[tokio::test]
async fn a_body_is_kept_byte_for_byte() {
    let desk = Desk::new();
    let bodies = [
        br#"{"a":"x\u2028","u":"https:\/\/e.example\/?a=1\u0026b=2","n":1.0}"#.to_vec(),
        "{\"name\":\"Мария 👩‍👩‍👧 𝐏\"}".as_bytes().to_vec(),
        vec![0, 255, 0xCF, 0xF0, 10, 13],
        b"{}".repeat(300_000),
    ];
    for (id, body) in bodies.iter().enumerate() {
        let raw = samples::signed(&id.to_string(), body);
        let receipt = desk.accept(raw, EventState::Unreadable, Vec::new()).await;
        let Receipt::New { event, .. } = receipt else { panic!("{receipt:?}") };
        let stored = desk.view().event(event).unwrap().unwrap();
        assert_eq!(&desk.view().body(event).unwrap().unwrap(), body);
        assert_eq!(stored.body_sha256, <[u8; 32]>::from(Sha256::digest(body)));
        assert_eq!(usize::try_from(stored.body_len).unwrap(), body.len());
    }
}

#[tokio::test]
async fn a_repeat_is_counted_and_starts_nothing() {
    let desk = Desk::new();
    let wish = || vec![seed("1042", ONCE)];
    desk.accept(sample("orders-create"), EventState::Routed, wish()).await;
    desk.run_one(crate::domain::Ending::Done).await;
    let late = START.plus(Duration::from_hours(25));
    let again = RawDelivery { received_at: late, ..sample("orders-create") };
    assert_eq!(desk.accept(again, EventState::Routed, wish()).await, Receipt::Duplicate { event: FIRST });

    let stored = desk.view().event(FIRST).unwrap().unwrap();
    assert_eq!((stored.copies, stored.received_at, stored.last_seen), (1, START, late));
    assert_eq!((desk.count("events/routed"), desk.count("events/copies"), desk.count("tasks/done")), (1, 1, 1));
}

/// P03: other content under a known id is no repeat; it is kept for a person, once.
#[tokio::test]
async fn other_content_under_a_known_id_is_kept_once_and_starts_nothing() {
    let desk = Desk::new();
    let id = "b1a7e000-0000-4000-8000-000000000001";
    let other = || under_id(sample("orders-updated"), id);
    let third = || under_id(sample("orders-paid"), id);
    let wish = || vec![seed("1042", ONCE)];
    desk.accept(sample("orders-create"), EventState::Routed, wish()).await;

    let conflict = |event| Receipt::Conflict { event: EventId::new(event) };
    assert_eq!(desk.accept(other(), EventState::Routed, wish()).await, conflict(2));
    assert_eq!(desk.accept(other(), EventState::Routed, wish()).await, conflict(2));
    assert_eq!(desk.accept(third(), EventState::Routed, wish()).await, conflict(3));
    let first_again = desk.accept(sample("orders-create"), EventState::Routed, wish()).await;
    assert_eq!(first_again, Receipt::Duplicate { event: FIRST });

    let kept = desk.view().event(EventId::new(2)).unwrap().unwrap();
    assert_eq!((kept.state.as_str(), kept.conflicts_with, kept.copies), ("conflict", Some(FIRST), 1));
    assert_eq!(desk.view().body(kept.id).unwrap().unwrap(), other().body);
    assert_eq!((desk.count("events/conflict"), desk.count("events/routed")), (2, 1));
    assert_eq!(desk.view().events_of_task(desk.lease_one().await.id()).unwrap().len(), 1);
    let order = entity_key("shop", SHOP, "order", "912345678901234567");
    assert_eq!(desk.view().newest_whole(&order).unwrap(), Some(FIRST), "a doubtful body is not worked from");
}

#[tokio::test]
async fn what_starts_nothing_is_stored_and_counted_by_its_state() {
    let desk = Desk::new();
    let states = [EventState::Foreign, EventState::Unrouted, EventState::Unreadable];
    for (id, state) in states.into_iter().enumerate() {
        desk.accept(samples::signed(&id.to_string(), b"{}"), state, Vec::new()).await;
        assert_eq!(desk.count(&format!("events/{}", state.as_str())), 1);
    }
    let listed = desk.view().events(None, 10, &|_| true).unwrap();
    assert_eq!(listed.iter().map(|e| e.state.as_str()).collect::<Vec<_>>(), ["unreadable", "unrouted", "foreign"]);
    let page = desk.view().events(Some(listed[0].id), 1, &|_| true).unwrap();
    assert_eq!(page[0].id, listed[1].id);
}

/// amoCRM gives no delivery id: a digest counts for two hours, and only where each item has a time.
#[tokio::test]
async fn a_repeat_is_a_new_event_once_the_senders_horizon_has_passed() {
    let desk = Desk::new();
    let source = samples::amocrm_source();
    let deliver = async |body: &[u8]| {
        let raw = RawDelivery { received_at: crate::clock::Clock::now(&*desk.clock), ..samples::delivery(body) };
        let delivery = verify(&source, raw).unwrap();
        let reading = read(&source, &delivery);
        let command =
            AcceptCommand::new(&delivery, &reading, EventState::Unrouted, TraceId::new(1), Vec::new(), Vec::new());
        desk.store.accept(command).await.unwrap().receipt().clone()
    };
    let is_new = |receipt| matches!(receipt, Receipt::New { .. });
    let body = samples::file("amocrm/leads-status.txt");
    assert!(is_new(deliver(&body).await));
    desk.clock.advance(Duration::from_mins(95));
    assert_eq!(deliver(&body).await, Receipt::Duplicate { event: FIRST });
    desk.clock.advance(Duration::from_mins(25));
    assert!(is_new(deliver(&body).await), "the last repeat of the sender cannot come so late");
    assert_eq!(deliver(&body).await, Receipt::Duplicate { event: EventId::new(2) });

    let timeless = b"account[id]=31000001&leads[delete][0][id]=50000001";
    assert!(is_new(deliver(timeless).await));
    assert!(is_new(deliver(timeless).await), "it may tell of a second change");
}

/// B20: the process that answers the repeat is not the one that took the first.
#[tokio::test]
async fn known_deliveries_are_known_after_a_kill_too() {
    let mut desk = Desk::new();
    desk.accept(sample("orders-create"), EventState::Unrouted, Vec::new()).await;
    let id = "b1a7e000-0000-4000-8000-000000000001";
    desk.accept(under_id(sample("orders-paid"), id), EventState::Unrouted, Vec::new()).await;
    desk.clock.advance(Duration::from_hours(25));
    desk.kill();
    assert_eq!(desk.store.opened().dedup_keys, 2);
    let again = desk.accept(sample("orders-create"), EventState::Unrouted, Vec::new()).await;
    assert_eq!(again, Receipt::Duplicate { event: FIRST });
    let again = desk.accept(under_id(sample("orders-paid"), id), EventState::Unrouted, Vec::new()).await;
    assert_eq!(again, Receipt::Conflict { event: EventId::new(2) });

    desk.clock.advance(Duration::from_hours(7 * 24));
    desk.kill();
    assert_eq!(desk.store.opened().dedup_keys, 0, "lapsed keys are not loaded");
}

/// Holds the writer inside a batch until it is let go.
struct Gate {
    entered: oneshot::Sender<()>,
    let_go: mpsc::Receiver<()>,
}

impl Command for Gate {
    type Reply = ();

    fn apply(self, _: &mut Batch<'_>) -> Result<(), Broken> {
        self.entered.send(()).unwrap();
        self.let_go.recv().unwrap();
        Ok(())
    }
}

/// Runs `work` while the writer is held in a batch, so that what it submits meets in the next one.
async fn behind_a_gate<T>(store: &Store, work: impl Future<Output = T>) -> T {
    let (entered, has_entered) = oneshot::channel();
    let (go, let_go) = mpsc::channel();
    let gate = store.inner.writer.submit(Lane::Background, Gate { entered, let_go });
    let meeting = async {
        has_entered.await.unwrap();
        // `join` polls in order: the work is queued before the writer goes on.
        join(work, async { go.send(()).unwrap() }).await.0
    };
    let (gated, done) = join(gate, meeting).await;
    gated.unwrap();
    done
}

#[tokio::test]
async fn two_copies_in_one_batch_are_one_event() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default()).unwrap();
    let accept = || store.accept(shop_command(sample("orders-create"), EventState::Unrouted, Vec::new()));
    let conflict = shop_command(
        under_id(sample("orders-paid"), "b1a7e000-0000-4000-8000-000000000001"),
        EventState::Unrouted,
        Vec::new(),
    );
    let (first, second, other) = behind_a_gate(&store, join3(accept(), accept(), store.accept(conflict))).await;
    assert_eq!(first.unwrap().receipt(), &Receipt::New { event: FIRST, tasks: Vec::new() });
    assert_eq!(second.unwrap().receipt(), &Receipt::Duplicate { event: FIRST });
    assert_eq!(other.unwrap().receipt(), &Receipt::Conflict { event: EventId::new(2) });
    store.close().await;
    assert_eq!(store.pulse().borrow().commits, 3, "the gate, the three deliveries, the mark of the stop");
    super::agreement::check(&store);
}

/// B15, P02: copies that come at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_parallel_copies_are_one_event_and_one_task() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default()).unwrap();
    let mut senders = JoinSet::new();
    for _ in 0..50 {
        let store = store.clone();
        let command = shop_command(sample("orders-create"), EventState::Routed, vec![seed("1042", ONCE)]);
        senders.spawn(async move { store.accept(command).await.unwrap().receipt().clone() });
    }
    let receipts = senders.join_all().await;
    let new = receipts.iter().filter(|receipt| matches!(receipt, Receipt::New { .. })).count();
    let repeats = receipts.iter().filter(|receipt| **receipt == Receipt::Duplicate { event: FIRST }).count();
    assert_eq!((new, repeats), (1, 49));
    let counts = store.view().unwrap().counts().unwrap();
    for expected in [("events/routed", 1), ("events/copies", 49), ("tasks/new", 1)] {
        assert!(counts.contains(&(expected.0.to_owned(), expected.1)), "{expected:?} in {counts:?}");
    }
    store.close().await;
    super::agreement::check(&store);
}

#[tokio::test]
async fn a_full_queue_says_busy_and_a_closed_store_says_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default()).unwrap();
    let resumes = || join_all((0..300).map(|_| store.resume("crm", "anna")));
    let answers = behind_a_gate(&store, resumes()).await;
    let busy = answers.iter().filter(|answer| matches!(answer, Err(Error::Busy))).count();
    assert_eq!((busy, answers.iter().filter(|answer| answer.is_ok()).count()), (44, 256));
    store.close().await;
    store.close().await;
    assert!(matches!(store.resume("crm", "anna").await, Err(Error::Stopped)));
    assert!(!store.pulse().borrow().failed, "an orderly stop is no failure");
}

#[tokio::test]
async fn the_newest_whole_body_is_by_the_sources_time_not_by_arrival() {
    let desk = Desk::new();
    desk.accept(sample("orders-updated-after-paid"), EventState::Unrouted, Vec::new()).await;
    desk.accept(sample("orders-create"), EventState::Unrouted, Vec::new()).await;
    desk.accept(sample("refunds-create"), EventState::Unrouted, Vec::new()).await;
    let order = entity_key("shop", SHOP, "order", "912345678901234567");
    assert_eq!(desk.view().events_of_entity(&order).unwrap().len(), 3);
    assert_eq!(desk.view().newest_whole(&order).unwrap(), Some(FIRST));
}

#[tokio::test]
async fn people_find_an_event_by_its_aliases() {
    let desk = Desk::new();
    let source = samples::shopify_source();
    for id in ["1", "2"] {
        let delivery = verify(&source, samples::signed(id, b"{\"id\":1}")).unwrap();
        let reading = read(&source, &delivery);
        let aliases = vec!["1042".to_owned(), "0001".to_owned()];
        let command =
            AcceptCommand::new(&delivery, &reading, EventState::Unrouted, TraceId::new(1), Vec::new(), aliases);
        desk.store.accept(command).await.unwrap();
    }
    assert_eq!(desk.view().events_of_alias("0001", 1).unwrap(), [EventId::new(2)], "the newest first");
    assert_eq!(desk.view().events_of_alias("1042", 9).unwrap().len(), 2);
    assert_eq!(desk.view().events_of_alias("104", 9).unwrap(), [], "aliases are whole");
}
