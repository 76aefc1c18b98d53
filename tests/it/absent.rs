//! One read that says "absent" soon after our own create proves nothing.

use std::time::Duration;

use bytes::Bytes;
use tambour::client::{Answer, Method};
use tambour::domain::State;
use tambour::sandbox::{Fault, Operation, OrderSketch, When};

use crate::rig::{Rig, STAGE_CONTRACT, START, Setup};

fn order() -> OrderSketch {
    OrderSketch { phone: Some("+79000000001".to_owned()), ..OrderSketch::new(7, "#7", "4980.50", START) }
}

/// The next read of one entity comes from a replica that does not have it yet.
fn one_read_misses(rig: &Rig, what: &'static str) {
    let mut misses = 1;
    rig.network.intercept(move |call| {
        let path = call.url.split('?').next().unwrap_or_default();
        let is_read = call.method == Method::Get && path.contains(what) && misses > 0;
        misses -= i32::from(is_read);
        is_read.then(|| Ok(Answer { status: 404, headers: Vec::new(), body: Bytes::new() }))
    });
}

/// Story: our deal was made, its note was lost, and a replica does not show the deal yet.
/// It was not deleted.
#[test]
fn a_deal_that_a_replica_does_not_show_yet_is_read_again() {
    let mut rig = Rig::new(Setup::default());
    rig.crm.inject(Operation::NoteCreate, When::Nth(1), Fault::FailBefore(429));
    rig.order("orders/create", &order());
    rig.run_until("the note failed", |rig| rig.task("deal").attempts.get() == 1);
    one_read_misses(&rig, "/leads/50000001");
    rig.run_until("the deal was missed", |rig| rig.task("deal").attempts.get() == 2);
    let task = rig.task("deal");
    assert_eq!((task.state, task.reason), (State::Retry, None), "{}", task.text);
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.counts().leads, rig.crm.counts().notes), (vec!["deal done".to_owned()], 1, 1));
}

/// Story: the buyer's second order comes at once, and a replica does not show the contact.
#[test]
fn a_contact_that_a_replica_does_not_show_yet_is_read_again() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order());
    rig.run_to_rest();
    one_read_misses(&rig, "/contacts/");
    rig.order("orders/create", &OrderSketch { id: 8, ..order() });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "deal done"]);
    assert_eq!((rig.tasks()[1].attempts.get(), rig.crm.counts().contacts), (2, 1));
}

/// Story: a deal is made on the stage, and a replica does not show it yet to the note.
#[test]
fn a_note_waits_for_a_deal_that_a_replica_does_not_show_yet() {
    let mut rig = Rig::new(Setup::default());
    let (id, _) = rig.crm.add_lead_by_hand("Окна", 100, None).unwrap();
    let hook = rig.crm.move_lead(id, STAGE_CONTRACT).unwrap();
    one_read_misses(&rig, "/leads/");
    rig.hook(hook);
    rig.run_until("it was read", |rig| rig.task("note").attempts.get() == 1);
    let due = rig.task("note").due.unwrap();
    assert!(due >= START.plus(Duration::from_secs(70)), "{due}");
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.counts().notes), (vec!["note done".to_owned()], 1));
}
