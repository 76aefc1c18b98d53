//! Every recorded delivery through the door, in the order of a day.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tambour::source::Refused;
use tambour::store::{ItemView, Receipt};

use crate::rig::{NotAccepted, Rig, Setup};

fn sample(name: &str) -> Bytes {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

fn headers(name: &str) -> Vec<(String, String)> {
    let text = String::from_utf8(sample(name).to_vec()).unwrap();
    let pairs = text.lines().map(|line| line.split_once(": ").unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// `<state>: <task> <how it met>, ...`, or what the repeat was.
fn told(rig: &Rig, receipt: &Receipt) -> String {
    match receipt {
        Receipt::New { event, tasks } => {
            let state = rig.view().event(*event).unwrap().unwrap().state;
            let tasks: Vec<String> = tasks.iter().map(|(id, how)| format!("{id} {}", how.as_str())).collect();
            format!("{state}: {}", tasks.join(", ")).trim_end_matches([':', ' ']).to_owned()
        }
        Receipt::Duplicate { event } => format!("repeats {event}"),
        Receipt::Conflict { event } => format!("conflict {event}"),
    }
}

/// Story: a day of the shop arrives before the worker gets a turn. Each delivery is
/// stored as it came; those of one order meet in one task; the worker then makes one
/// deal an order, in the last state.
#[test]
fn a_day_of_the_shop() {
    let mut rig = Rig::new(Setup { deal: "test_orders = true", ..Setup::default() });
    let mut check = |name: &str, expected: &str| {
        let body = sample(&format!("shopify/{name}.json"));
        let receipt = rig.deliver("shop", &headers(&format!("shopify/{name}.headers")), body.clone()).unwrap();
        assert_eq!(told(&rig, &receipt), expected, "{name}");
        let stored = rig.events().pop().unwrap();
        assert_eq!(stored.body_sha256[..], Sha256::digest(&body)[..], "{name}");
        assert_eq!(rig.view().body(stored.id).unwrap().unwrap(), body, "{name}: byte for byte");
    };
    check("orders-create", "routed: t1 made");
    check("orders-updated", "routed: t1 absorbed");
    check("orders-paid", "routed: t1 absorbed");
    check("orders-updated-after-paid", "routed: t1 absorbed");
    check("orders-create-guest", "routed: t2 made");
    check("app-uninstalled", "unrouted");
    check("customers-redact", "unrouted");
    check("orders-cancelled", "routed: t1 absorbed");
    check("refunds-create", "unrouted");

    let refused = rig.deliver("shop", &headers("shopify/bad-hmac.headers"), sample("shopify/bad-hmac.json"));
    assert_eq!(refused, Err(NotAccepted::Refused(Refused::Signature)));
    assert_eq!(rig.events().len(), 9, "what is refused is not stored");

    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "deal done"]);
    let [guest, order] = rig.crm.leads().try_into().unwrap();
    assert_eq!((order.name.as_str(), order.price), ("Заказ #1042", 4980));
    assert_eq!(order.fields["TAMBOUR_ID"], "shop-912345678901234567");
    assert_eq!(order.fields["TAMBOUR_VERSION"], "2026-12-01T06:30:00Z", "the cancellation came last");
    assert_eq!(guest.fields["TAMBOUR_ID"], "shop-912345678901234568");
    let [anna] = rig.crm.contacts().try_into().unwrap();
    assert_eq!((anna.name.as_str(), anna.phones.as_slice()), ("Анна Тестова", ["+79000000001".to_owned()].as_slice()));
    assert_eq!((order.contacts, guest.contacts), (vec![anna.id], vec![]), "a guest's order has no contact");
}

/// Story: test orders make no deal unless the task asks for them.
#[test]
fn recorded_test_orders_are_superseded() {
    let mut rig = Rig::new(Setup::default());
    let (headers, body) = (headers("shopify/orders-create.headers"), sample("shopify/orders-create.json"));
    rig.deliver("shop", &headers, body).unwrap();
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal superseded test_order"]);
    assert_eq!(rig.network.log(), Vec::<String>::new(), "nobody is asked about a test order");
}

/// Story: everything that an amoCRM account was seen to send, the hostile body
/// included. Only a deal that moved to the stage starts a task.
#[test]
fn a_day_of_the_crm() {
    let mut rig = Rig::new(Setup::default());
    let headers = headers("amocrm/request.headers");
    let mut check = |name: &str, expected: &str| {
        let body = sample(&format!("amocrm/{name}.txt"));
        let receipt = rig.deliver("crm", &headers, body.clone()).unwrap();
        assert_eq!(told(&rig, &receipt), expected, "{name}");
        if let Receipt::New { event, .. } = receipt {
            assert_eq!(rig.view().body(event).unwrap().unwrap(), body, "{name}: byte for byte");
        }
    };
    check("leads-add", "unrouted");
    check("leads-add-account-last", "unrouted");
    check("leads-update", "unrouted");
    check("leads-status", "routed: t1 made");
    check("leads-status-literal-brackets", "repeats e4");
    check("digital-pipeline-status", "routed: t1 absorbed");
    check("leads-status-pipeline-change", "unrouted");
    check("leads-status-won", "unrouted");
    check("leads-responsible", "unrouted");
    check("leads-batch", "unrouted");
    check("leads-note", "unrouted");
    check("leads-delete", "unrouted");
    check("contacts-add", "unrouted");
    check("contacts-update-company", "unrouted");
    check("contacts-delete", "unrouted");
    check("message-add", "unrouted");
    check("outgoing-message-add", "unrouted");
    check("talk-add", "unrouted");
    check("task-update", "unrouted");
    check("unsorted-add", "unrouted");
    check("unsorted-accept", "unrouted");
    check("hostile-keys", "unrouted");
    let unreadable = |item: &&ItemView| matches!(item, ItemView::Unreadable { .. });
    assert_ne!(rig.events().pop().unwrap().items.iter().filter(unreadable).count(), 0, "with what cannot be read");
}
