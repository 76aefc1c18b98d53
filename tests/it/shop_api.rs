//! Orders read fresh from the shop's API.

use std::time::Duration;

use tambour::domain::State;
use tambour::sandbox::{Fault, Faults, Operation, OrderSketch, When};

use crate::rig::{Rig, SHOP_API, START, Setup};

/// State `n` of an order.
fn version(n: u64) -> OrderSketch {
    let updated_at = START.plus(Duration::from_secs(n));
    let phone = Some("+79000000001".to_owned());
    OrderSketch { updated_at, phone, ..OrderSketch::new(7, "#7", &format!("{n}00.00"), START) }
}

/// A rig whose shop holds state `n`.
fn with_shop(n: u64) -> Rig {
    let rig = Rig::new(Setup { shop: SHOP_API, ..Setup::default() });
    rig.crm.put_order(version(n).to_json()).unwrap();
    rig
}

/// Story: the delivery is a hint. While it was on its way the order changed again, and
/// the deal is made from what the shop shows.
#[test]
fn the_shop_is_asked_and_not_the_delivery() {
    let mut rig = with_shop(3);
    rig.order("orders/create", &version(1));
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.leads()[0].price), (vec!["deal done".to_owned()], 300));
    assert_eq!(rig.network.log()[0], "POST /admin/api/2026-10/graphql.json");
    rig.order("orders/updated", &version(2));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal superseded older_than_applied"]);
    assert_eq!(rig.crm.leads()[0].price, 300);
}

/// Story: the shop's replica still shows the state before the delivery. The task is
/// repeated until it shows at least that state; it is never taken for an old event.
#[test]
fn a_lagging_replica_is_asked_again() {
    let mut rig = with_shop(1);
    rig.order("orders/create", &version(1));
    rig.run_to_rest();
    rig.crm.set_faults(Faults { read_lag: Duration::from_secs(200), ..Faults::default() });
    rig.crm.put_order(version(2).to_json()).unwrap();
    rig.order("orders/updated", &version(2));
    for attempt in 1..=2 {
        rig.run_until("it was read", |rig| rig.task("deal").attempts.get() == attempt);
        let task = rig.task("deal");
        assert_eq!((task.state, task.reason), (State::Retry, None));
        assert_eq!(rig.crm.leads()[0].price, 100);
    }
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.leads()[0].price), (vec!["deal done".to_owned()], 200));
}

/// B39. Story: the shop says `THROTTLED` inside HTTP 200. It is a pause, and the CRM is
/// not touched meanwhile.
#[test]
fn a_throttled_question_is_asked_again() {
    let mut rig = with_shop(1);
    rig.crm.inject(Operation::OrderGet, When::Nth(1), Fault::Throttled);
    rig.order("orders/create", &version(1));
    rig.settle();
    let task = rig.task("deal");
    assert_eq!((task.state, task.attempts.get()), (State::Retry, 1));
    assert!(task.text.contains("THROTTLED"), "{}", task.text);
    assert_eq!(rig.network.log().len(), 1);
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.counts().leads), (vec!["deal done".to_owned()], 1));
}

/// Story: the order was deleted in the shop before it was read, and the shop told of it.
#[test]
fn an_order_that_was_deleted_makes_nothing() {
    let mut rig = Rig::new(Setup { shop: SHOP_API, ..Setup::default() });
    rig.order("orders/create", &version(1));
    rig.order("orders/delete", &version(1));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal superseded entity_gone"]);
    assert_eq!(rig.crm.counts().leads, 0);
}

/// Story: a replica of the shop does not show a new order yet. That is no deletion, and the
/// order is asked for again.
#[test]
fn an_order_that_a_replica_does_not_show_yet_is_asked_for_again() {
    let mut rig = Rig::new(Setup { shop: SHOP_API, ..Setup::default() });
    rig.order("orders/create", &version(1));
    rig.settle();
    let task = rig.task("deal");
    assert_eq!((task.state, task.attempts.get(), task.reason), (State::Retry, 1, None));
    rig.crm.put_order(version(1).to_json()).unwrap();
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.counts().leads), (vec!["deal done".to_owned()], 1));
}

/// Story: an hour later the shop still does not show the order, and never told of a
/// deletion. A sale may be lost, so a person is told.
#[test]
fn an_order_that_never_appears_is_told_of() {
    let mut rig = Rig::new(Setup { shop: SHOP_API, ..Setup::default() });
    rig.order("orders/create", &version(1));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead entity_gone", "notice done"]);
    assert!(rig.now() >= START.plus(Duration::from_hours(1)));
    assert_eq!(rig.crm.counts().leads, 0);
}

/// Story: the shop's token is revoked. That does not shut the CRM: notes go on, and the
/// order's task comes again later.
#[test]
fn a_shut_shop_does_not_shut_the_crm() {
    let mut rig = with_shop(1);
    rig.crm.inject(Operation::OrderGet, When::Nth(1), Fault::FailBefore(401));
    rig.order("orders/create", &version(1));
    rig.settle();
    assert_eq!(rig.view().holds().unwrap(), []);
    let task = rig.task("deal");
    let due = task.due.unwrap();
    assert!(due >= START.plus(Duration::from_mins(15)), "{due}");
    assert_eq!(task.attempts.get(), 0, "the shop's trouble is not the order's");
    assert!(task.text.contains("put the shop's token right"), "{}", task.text);
    assert!(!task.text.contains("resume"), "{}", task.text);
    let (id, _) = rig.crm.add_lead_by_hand("Окна", 100, None).unwrap();
    let hook = rig.crm.move_lead(id, crate::rig::STAGE_CONTRACT).unwrap();
    rig.hook(hook);
    rig.run_for(Duration::from_secs(10));
    assert_eq!(rig.task("note").state, State::Done);
    rig.run_to_rest();
    assert_eq!((rig.task("deal").state, rig.crm.counts().leads), (State::Done, 2));
}
