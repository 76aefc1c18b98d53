//! What faults do to calls, and what stays true.

use std::time::Duration;

use super::{Fixture, ids, parsed, recorded};
use crate::domain::Timestamp;
use crate::sandbox::{Delivery, Fault, Faults, Operation, OrderSketch, Rate, When};
use serde_json::{Value, json};

const LEAD: &str = r#"[{"name":"Окна"}]"#;

/// Each fault on a create: the answer's status, how it travels, whether the deal exists, whether the body is JSON.
#[test]
fn each_fault_answers_as_it_says_and_the_oracle_knows_what_was_done() {
    let check = |fault, status: u16, delivery, leads, is_json| {
        let fixture = Fixture::new();
        fixture.sandbox.inject(Operation::LeadCreate, When::Nth(1), fault);
        let reply = fixture.call("POST", "/api/v4/leads", LEAD);
        let was_json = serde_json::from_slice::<Value>(&reply.body).is_ok();
        let found = (reply.status, reply.delivery, fixture.sandbox.counts().leads, was_json);
        assert_eq!(found, (status, delivery, leads, is_json), "{fault:?}");
        assert_eq!(fixture.call("POST", "/api/v4/leads", LEAD).status, 200, "a fault of one call ends: {fault:?}");
    };
    use Delivery::{Delayed, Dropped, Whole, WithholdLastByte};
    check(Fault::LostRequest, 204, Dropped, 0, false);
    check(Fault::LostAnswer, 200, Dropped, 1, true);
    check(Fault::FailBefore(502), 502, Whole, 0, false);
    check(Fault::FailAfter(502), 502, Whole, 1, false);
    check(Fault::TooMany { retry_after: None }, 429, Whole, 0, true);
    check(Fault::Throttled, 429, Whole, 0, true);
    check(Fault::Html(200), 200, Whole, 1, false);
    check(Fault::Html(403), 403, Whole, 0, false);
    check(Fault::NoContent, 204, Whole, 1, false);
    check(Fault::Slow(Duration::from_secs(3)), 200, Delayed(Duration::from_secs(3)), 1, true);
    check(Fault::WithholdLastByte, 200, WithholdLastByte, 1, true);
}

#[test]
fn refusals_for_too_many_calls_have_the_recorded_shapes() {
    let fixture = Fixture::new();
    let sandbox = &fixture.sandbox;
    sandbox.inject(Operation::AccountGet, When::Nth(1), Fault::TooMany { retry_after: Some(300) });
    let recorded: Value = serde_json::from_str(recorded!("amocrm/api/error-429.json")).unwrap();
    assert_eq!(fixture.get("/api/v4/account"), (429, recorded));
    sandbox.inject(Operation::OrderGet, When::Nth(1), Fault::Throttled);
    sandbox.inject(Operation::OrderGet, When::Nth(2), Fault::TooMany { retry_after: Some(2) });
    let ask = || fixture.call("POST", "/admin/api/2026-10/graphql.json", "{}");
    let recorded: Value = serde_json::from_str(recorded!("shopify/graphql/throttled.json")).unwrap();
    assert_eq!(parsed(&ask()), (200, recorded));
    let reply = ask();
    assert_eq!(reply.status, 429);
    assert!(reply.headers.contains(&("retry-after".to_owned(), "2".to_owned())));
}

#[test]
fn the_rate_of_the_account_is_shared_and_the_shop_has_none() {
    let fixture = Fixture::new();
    let rate = Some(Rate { per_second: 7, foreign_per_second: 5 });
    fixture.sandbox.set_faults(Faults { rate, ..Faults::default() });
    let statuses = || [(); 3].map(|()| fixture.call("POST", "/api/v4/leads", LEAD).status);
    assert_eq!(statuses(), [200, 200, 429]);
    assert_ne!(fixture.call("POST", "/admin/api/2026-10/graphql.json", "{}").status, 429);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(statuses(), [200, 200, 429]);
    assert_eq!(fixture.sandbox.counts().leads, 4);
    fixture.sandbox.set_faults(Faults::default());
    assert_eq!(statuses(), [200, 200, 200]);
}

/// A search that lags the create is how second contacts are made: it must say 204 while a read by id says 200.
#[test]
fn new_objects_are_found_after_the_search_lag() {
    let fixture = Fixture::new();
    fixture.sandbox.set_faults(Faults { search_lag: Duration::from_secs(60), ..Faults::default() });
    let contact = fixture.contact("+79000000001");
    let lead = fixture.lead("Окна");
    let notes = format!("/api/v4/leads/{lead}/notes");
    fixture.made(&notes, "notes", &json!({"note_type": "common", "params": {"text": "раз"}}));
    let found = || {
        [("/api/v4/contacts?query=9000000001", "contacts"), ("/api/v4/leads?query=окна", "leads"), (&notes, "notes")]
            .map(|(path, name)| ids(&fixture.get(path), name).len())
    };
    fixture.clock.advance(Duration::from_secs(59));
    assert_eq!(found(), [0, 0, 0]);
    assert_eq!(fixture.get(&format!("/api/v4/leads/{lead}")).0, 200);
    assert_eq!(fixture.get(&format!("/api/v4/contacts/{contact}")).0, 200);
    assert_eq!(fixture.sandbox.counts().contacts, 1, "the oracle does not lag");
    fixture.clock.set_wall(Timestamp::from_secs(0));
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(found(), [1, 1, 1], "lags follow the monotonic clock");
}

#[test]
fn reads_by_id_show_the_past_during_the_read_lag() {
    let fixture = Fixture::new();
    fixture.sandbox.set_faults(Faults { read_lag: Duration::from_secs(10), ..Faults::default() });
    let lead = fixture.lead("Окна");
    let path = format!("/api/v4/leads/{lead}");
    let at = Timestamp::from_secs(1_796_036_400);
    let mut order = OrderSketch::new(7, "#7", "10.00", at);
    fixture.sandbox.put_order(order.to_json()).unwrap();
    fixture.clock.advance(Duration::from_secs(20));
    fixture.patch(&path, &json!({"name": "Двери"}));
    order.financial_status = "paid".to_owned();
    fixture.sandbox.put_order(order.to_json()).unwrap();
    let shown = || {
        let body = json!({"query": "{ order(id: $id) }", "variables": {"id": "gid://shopify/Order/7"}});
        let (_, order) = fixture.post("/admin/api/2026-10/graphql.json", &body);
        let lead = fixture.get(&path).1["name"].clone();
        (lead, order["data"]["order"]["displayFinancialStatus"].clone())
    };
    assert_eq!(shown(), (json!("Окна"), json!("PENDING")));
    fixture.clock.advance(Duration::from_secs(10));
    assert_eq!(shown(), (json!("Двери"), json!("PAID")));
}

/// The same seed must give the same faults, so that a failed run can be repeated.
#[test]
fn chance_is_decided_by_the_seed() {
    let run = || {
        let fixture = Fixture::new();
        fixture.sandbox.inject(Operation::LeadCreate, When::Percent(30), Fault::LostAnswer);
        (0..200).map(|_| fixture.call("POST", "/api/v4/leads", LEAD).delivery == Delivery::Dropped).collect::<Vec<_>>()
    };
    let first = run();
    assert_eq!(first, run());
    let dropped = first.iter().filter(|&&dropped| dropped).count();
    assert!((30..90).contains(&dropped), "{dropped} of 200");
}

#[test]
fn switches_and_counts_are_reached_over_http() {
    let fixture = Fixture::new();
    let rules = json!({"rules": [{"operation": "lead.create", "when": {"nth": 1}, "fault": {"fail_after": 500}}]});
    assert_eq!(fixture.post("/_sandbox/faults", &rules).0, 204);
    assert_eq!(fixture.call("POST", "/api/v4/leads", LEAD).status, 500);
    let counts = json!({"contacts": 0, "leads": 1, "notes": 0, "tasks": 0, "calls": {"lead.create": 1}});
    assert_eq!(fixture.get("/_sandbox/counts"), (200, counts));
    assert_eq!(fixture.post("/_sandbox/faults", &json!({"typo": 1})).0, 400);
    assert_eq!(fixture.post("/_sandbox/release", &json!({})).0, 204);
    assert_eq!(fixture.get("/_sandbox/other").0, 404);
}

#[tokio::test]
async fn a_waiter_returns_once_the_operation_was_handled() {
    let fixture = Fixture::new();
    let waiter = fixture.sandbox.seen(Operation::LeadCreate, 2);
    let calls = async {
        fixture.lead("Окна");
        fixture.lead("Двери");
    };
    tokio::join!(waiter, calls);
    fixture.sandbox.seen(Operation::LeadCreate, 1).await;
    assert_eq!(fixture.sandbox.counts().calls[&Operation::LeadCreate], 2);
}
