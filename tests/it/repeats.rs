//! The same delivery, event, id or person again: once is enough.

use std::time::Duration;

use tambour::sandbox::OrderSketch;
use tambour::store::{Granted, Receipt, Wish};

use crate::rig::{Rig, START, Setup};

fn order(id: u64, phone: &str) -> OrderSketch {
    let name = format!("#{}", id % 10_000);
    let (phone, first_name) = (Some(phone.to_owned()), "Анна".to_owned());
    OrderSketch { phone, first_name, ..OrderSketch::new(id, &name, "4980.00", START) }
}

/// B15. Story: a sender repeats one delivery 50 times, half of them while the worker is
/// at it, half after a restart. One event, one task, one deal.
#[test]
fn fifty_identical_deliveries_are_one_event_one_task_one_deal() {
    let mut rig = Rig::new(Setup::default());
    let order = order(7, "+79000000001");
    let first = rig.order_as("orders/create", &order, "w", "e");
    assert!(matches!(first, Receipt::New { .. }));
    for copy in 1..50 {
        if copy == 25 {
            rig.restart();
        }
        assert_eq!(rig.order_as("orders/create", &order, "w", "e"), Receipt::Duplicate { event: rig.events()[0].id });
        rig.run_for(Duration::from_millis(60));
    }
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done"]);
    assert_eq!(rig.events().iter().map(|event| event.copies).collect::<Vec<_>>(), [49]);
    let counts = rig.crm.counts();
    assert_eq!((counts.leads, counts.contacts, counts.notes), (1, 1, 1));
}

/// B17. Story: two subscriptions tell of one event under two delivery ids. Both
/// deliveries are kept, and they meet in one task.
#[test]
fn two_subscriptions_to_one_event_make_one_deal() {
    let mut rig = Rig::new(Setup::default());
    let order = order(7, "+79000000001");
    rig.order_as("orders/create", &order, "w1", "e");
    rig.run_to_rest();
    rig.order_as("orders/updated", &order, "w2", "e");
    rig.run_to_rest();
    let correlations: Vec<_> = rig.events().into_iter().map(|event| event.correlation).collect();
    assert_eq!(correlations, [Some("e".to_owned()), Some("e".to_owned())]);
    assert_eq!(rig.told(), ["deal done"]);
    let counts = rig.crm.counts();
    assert_eq!((counts.leads, counts.contacts, counts.notes), (1, 1, 1));
}

/// B20. Story: one delivery id comes at once, an hour, four hours and a day later, with a
/// restart between. It stays one event.
#[test]
fn a_repeat_is_known_for_as_long_as_it_may_come() {
    let mut rig = Rig::new(Setup::default());
    let order = order(7, "+79000000001");
    rig.order_as("orders/create", &order, "w", "e");
    for hours in [1, 3, 21] {
        rig.run_for(Duration::from_hours(hours));
        rig.restart();
        let receipt = rig.order_as("orders/create", &order, "w", "e");
        assert!(matches!(receipt, Receipt::Duplicate { .. }), "{hours} h later: {receipt:?}");
    }
    assert_eq!((rig.events().len(), rig.crm.counts().leads), (1, 1));
}

/// P03. Story: a delivery id comes again with another body. The other body is kept for a
/// person, once, and makes nothing.
#[test]
fn a_known_id_with_another_body_is_a_conflict() {
    let mut rig = Rig::new(Setup::default());
    rig.order_as("orders/create", &order(7, "+79000000001"), "w", "e");
    for _ in 0..3 {
        let receipt = rig.order_as("orders/create", &order(8, "+79000000002"), "w", "e");
        assert_eq!(receipt, Receipt::Conflict { event: rig.events()[1].id });
    }
    rig.run_to_rest();
    let states: Vec<_> = rig.events().into_iter().map(|event| (event.state, event.copies)).collect();
    assert_eq!(states, [("routed".to_owned(), 0), ("conflict".to_owned(), 2)]);
    assert_eq!(rig.crm.counts().leads, 1);
}

/// B18. Story: a person replays a task three times. It runs three times, and finds each
/// time what is there.
#[test]
fn replays_run_and_repeat_nothing() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order(7, "+79000000001"));
    rig.run_to_rest();
    for replays in 1..=3 {
        let id = rig.task("deal").id;
        assert_eq!(rig.operate(id, Wish::Replay), Granted::Yes);
        let reads = rig.network.log().len();
        rig.run_to_rest();
        let task = rig.task("deal");
        assert_eq!((task.replays, task.attempts.get()), (replays, 1));
        assert_eq!(rig.network.log()[reads..], ["GET /api/v4/leads/50000001"], "it looks, and writes nothing");
    }
    assert_eq!(rig.crm.counts().leads, 1);
}

/// B28, B29. Story: two orders whose ids differ in the last of sixteen digits, beyond
/// what a float tells apart. Two deals, each with its exact id.
#[test]
fn ids_keep_every_digit() {
    let mut rig = Rig::new(Setup::default());
    let ids = [9_196_877_626_998_784, 9_196_877_626_998_785, 1_524_831_183_200_260_097, u64::MAX];
    for id in ids {
        rig.order("orders/create", &order(id, "+79000000001"));
    }
    rig.run_to_rest();
    let mut markers: Vec<String> = rig.crm.leads().into_iter().map(|lead| lead.fields["TAMBOUR_ID"].clone()).collect();
    markers.sort();
    let mut expected = ids.map(|id| format!("shop-{id}"));
    expected.sort();
    assert_eq!(markers, expected);
    let entities: Vec<String> = rig.tasks().into_iter().map(|task| task.entity).collect();
    assert_eq!(entities, ids.map(|id| id.to_string()));
    assert_eq!(rig.crm.counts().contacts, 1);
}

/// B31. Story: one buyer writes the phone in four ways over four orders, all of them
/// waiting at once.
#[test]
fn one_phone_in_four_forms_is_one_contact() {
    let mut rig = Rig::new(Setup::default());
    for (id, phone) in (1..).zip(["8 (926) 123-45-67", "+7 926 123 45 67", "79261234567", "9261234567"]) {
        rig.order("orders/create", &order(id, phone));
    }
    rig.run_to_rest();
    let [contact] = rig.crm.contacts().try_into().unwrap();
    assert_eq!(contact.phones, ["+79261234567"]);
    assert_eq!(contact.leads.len(), 4);
}

/// Story: the CRM already holds the buyer, written by hand in the old form.
#[test]
fn a_contact_that_people_wrote_is_found() {
    let mut rig = Rig::new(Setup::default());
    let known = rig.crm.add_contact_by_hand("Анна", Some("8 (900) 000-00-01"), None);
    rig.order("orders/create", &order(7, "+79000000001"));
    rig.run_to_rest();
    assert_eq!(rig.crm.counts().contacts, 1);
    assert_eq!(rig.crm.leads()[0].contacts, [known]);
}

/// Story: the account sends a hook after each of our own writes. It is an event that no
/// route wants, so it ends there (B26).
#[test]
fn our_own_writes_come_back_and_end() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &order(7, "+79000000001"));
    rig.run_to_rest();
    let calls = rig.network.log().len();
    let echo = rig.crm.update_hook(rig.crm.leads()[0].id).unwrap();
    rig.hook(echo);
    rig.run_for(Duration::from_hours(1));
    assert_eq!(rig.network.log().len(), calls);
    assert_eq!(rig.events().pop().unwrap().state, "unrouted");
}
