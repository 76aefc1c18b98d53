//! The door's answer table, row by row through real TLS: what is answered, and what is kept.
//!
//! After each row `tambour events --json` is asked: a row names the events that
//! are new or changed since the row before, and nothing else may be.

use std::collections::BTreeSet;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::Value;
use tambour::sandbox::OrderSketch;

use crate::process::fixture::{ADDRESS_TOKEN, Delivery, SECRET, SHOP, Served, World};

/// A running door, and what its file showed last.
struct Table {
    world: World,
    served: Served,
    shown: BTreeSet<String>,
}

impl Table {
    async fn new() -> Self {
        let world = World::new().await;
        let served = world.serve().await;
        Self { world, served, shown: BTreeSet::new() }
    }

    /// One row: what is sent, the status, and the events that show it.
    async fn row(&mut self, what: &str, sent: &Delivery, status: u16, shows: &[&str]) -> String {
        let answered = self.served.post(sent).await;
        assert_eq!(answered.status, status, "{what}: {answered:?}");
        self.shows(what, shows).await;
        answered.text
    }

    /// A row of a bare request, which shows nothing.
    async fn bare(&mut self, method: &str, path: &str, headers: &[(&str, &str)], status: u16) {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
        let what = format!("{method} {path}");
        let answered = self.served.sender().exchange(request).await.unwrap();
        assert_eq!(answered.status, status, "{what}");
    }

    async fn shows(&mut self, what: &str, expected: &[&str]) {
        let events = self.world.run(&["events", "--json"]).await.json();
        let shown: BTreeSet<String> = events["items"].as_array().unwrap().iter().map(line).collect();
        let fresh: Vec<&str> = shown.difference(&self.shown).map(String::as_str).collect();
        assert_eq!(fresh, expected, "{what}");
        self.shown = shown;
    }
}

/// `e1 routed, copies 0`, and how many items cannot be read.
fn line(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let unreadable = event["items"].as_array().unwrap().iter().filter(|item| item.to_string().contains("\"why\""));
    let unreadable = match unreadable.count() {
        0 => String::new(),
        count => format!(", unreadable {count}"),
    };
    format!("{} {}, copies {}{unreadable}", text("id"), text("state"), event["copies"])
}

/// An amoCRM body of one account; each item is a lead with these fields.
fn leads(account: u64, items: &[&[(&str, &str)]]) -> Bytes {
    let mut body = format!("account[id]={account}");
    for (at, item) in items.iter().enumerate() {
        for (field, value) in *item {
            body += &format!("&leads[status][{at}][{field}]={value}");
        }
    }
    body.into()
}

const MOVED: &[(&str, &str)] =
    &[("id", "50000001"), ("status_id", "61000003"), ("pipeline_id", "7100001"), ("updated_at", "1796036710")];
const WITHOUT_ID: &[(&str, &str)] = &[("status_id", "61000003"), ("updated_at", "1796036710")];

#[tokio::test]
async fn what_is_answered_200_is_kept_as_the_table_says() {
    let mut table = Table::new().await;
    let order = table.world.annas_order(1001, "10.00");
    let new = table.world.order(&order, "orders/create", "w-1");
    table.row("valid, new", &new, 200, &["e1 routed, copies 0"]).await;
    table.row("a repeat, same content", &new, 200, &["e1 routed, copies 1"]).await;
    let other = OrderSketch { note: Some("other".to_owned()), ..order.clone() };
    let conflict = table.world.order(&other, "orders/create", "w-1");
    table.row("a known id, other content", &conflict, 200, &["e2 conflict, copies 0"]).await;
    table.row("the same conflict again", &conflict, 200, &["e2 conflict, copies 1"]).await;
    table.row("the first again", &new, 200, &["e1 routed, copies 2"]).await;

    let hook = |world: &World, account, items: &[&[(&str, &str)]]| world.hook(leads(account, items));
    let some = hook(&table.world, 31_000_001, &[MOVED, WITHOUT_ID]);
    table.row("some items unreadable", &some, 200, &["e3 routed, copies 0, unreadable 1"]).await;
    let none = hook(&table.world, 31_000_001, &[WITHOUT_ID]);
    table.row("nothing readable", &none, 200, &["e4 unreadable, copies 0, unreadable 1"]).await;
    let no_json = table.world.signed(SECRET, SHOP, "orders/create", "w-2", Bytes::from_static(b"<xml/>"));
    table.row("no JSON", &no_json, 200, &["e5 unreadable, copies 0, unreadable 1"]).await;
    let account = hook(&table.world, 31_000_002, &[MOVED]);
    table.row("another account", &account, 200, &["e6 foreign, copies 0"]).await;
    let body = Bytes::from(order.to_json().to_string());
    let shop = table.world.signed(SECRET, "other-shop.myshopify.com", "orders/create", "w-3", body);
    table.row("a shop that is not listed", &shop, 200, &["e7 foreign, copies 0"]).await;
    let unrouted = table.world.order(&order, "orders/paid", "w-4");
    table.row("no route wants it", &unrouted, 200, &["e8 unrouted, copies 0"]).await;
    let mut plain = table.world.order(&order, "orders/create", "w-5");
    plain.headers.push(("content-encoding".to_owned(), "identity".to_owned()));
    table.row("content encoding identity", &plain, 200, &["e9 routed, copies 0"]).await;
    table.served.stop().await;
}

/// B42: with and without a trailing slash, never a redirect. Unknown source and
/// wrong token look alike.
#[tokio::test]
async fn every_address_and_method_has_its_answer_and_keeps_nothing() {
    let mut table = Table::new().await;
    let crm = format!("/in/crm/{ADDRESS_TOKEN}");
    let rows: Vec<(&str, String, u16)> = vec![
        ("GET", "/in/shop".to_owned(), 200),
        ("HEAD", "/in/shop/".to_owned(), 200),
        ("GET", crm.clone(), 200),
        ("GET", format!("{crm}/"), 200),
        ("PUT", "/in/shop".to_owned(), 405),
        ("DELETE", crm.clone(), 405),
        ("POST", "/in/crm".to_owned(), 404),
        ("POST", "/in/crm/0123456789abcdef-addresS".to_owned(), 404),
        ("POST", format!("/in/shop/{ADDRESS_TOKEN}"), 404),
        ("POST", "/in/nobody".to_owned(), 404),
        ("GET", "/in/nobody".to_owned(), 404),
        ("POST", "/in/".to_owned(), 404),
        ("GET", "/".to_owned(), 404),
        ("POST", "/in/shop".to_owned(), 401),
    ];
    for (method, path, status) in rows {
        table.bare(method, &path, &[], status).await;
    }
    for encoding in ["gzip", "br", "x-unknown"] {
        table.bare("POST", &crm, &[("content-encoding", encoding)], 415).await;
    }
    table.shows("addresses and methods", &[]).await;
    table.served.stop().await;
}

#[tokio::test]
async fn what_is_refused_is_not_kept_and_says_why() {
    let mut table = Table::new().await;
    let good = table.world.order(&table.world.annas_order(1001, "10.00"), "orders/create", "w-1");
    let without = |name: &str| {
        let mut delivery = good.clone();
        delivery.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        delivery
    };
    let mut forged = good.clone();
    forged.body = Bytes::from(forged.body.iter().map(|b| if *b == b'1' { b'2' } else { *b }).collect::<Vec<_>>());
    table.row("signature wrong", &forged, 401, &[]).await;
    table.row("signature missing", &without("x-shopify-hmac-sha256"), 401, &[]).await;
    let text = table.row("delivery id missing", &without("x-shopify-webhook-id"), 400, &[]).await;
    assert!(text.to_lowercase().contains("webhook-id"), "{text}");

    // Announced as too long, and too long in the end: the sender sees why either way.
    let big = table.world.hook(Bytes::from(vec![b'a'; 600 * 1024]));
    table.row("amoCRM's body over its limit", &big, 413, &[]).await;
    let big = Delivery { body: Bytes::from(vec![b' '; 300 * 1024]), ..good.clone() };
    table.row("the shop's body over its limit", &big, 413, &[]).await;

    let mut zipped = good.clone();
    zipped.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
    table.row("content encoding", &zipped, 415, &[]).await;
    table.served.stop().await;
}

/// The header has 10 s in all, the body `answer_within` of its source.
#[tokio::test]
async fn what_comes_too_slowly_is_answered_408_and_closed() {
    let mut table = Table::new().await;
    let half_header = format!("POST /in/crm/{ADDRESS_TOKEN} HTTP/1.1\r\nhost: loc");
    let half_body = format!("POST /in/crm/{ADDRESS_TOKEN} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nacc");
    let (header, body) = tokio::join!(table.served.exchange(&half_header), table.served.exchange(&half_body));
    assert!(header.starts_with("HTTP/1.1 408 "), "{header}");
    assert!(body.starts_with("HTTP/1.1 408 "), "{body}");
    table.shows("slow header and body", &[]).await;
    table.served.stop().await;
}

#[tokio::test]
async fn over_its_quota_a_source_is_answered_503_and_told_when_to_come_again() {
    let world = World::with("[sources.crm.quota]\nevents_per_hour = 1\n").await;
    let served = world.serve().await;
    let mut table = Table { world, served, shown: BTreeSet::new() };
    let first = table.world.hook(leads(31_000_001, &[MOVED]));
    table.row("the hour's only event", &first, 200, &["e1 routed, copies 0"]).await;
    let body = "account[id]=31000001";
    let length = body.len();
    let more = format!(
        "POST /in/crm/{ADDRESS_TOKEN} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let answer = table.served.exchange(&more).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 3600\r\n"), "{answer}");
    table.shows("over the quota", &[]).await;
    let order = table.world.order(&table.world.annas_order(1001, "10.00"), "orders/create", "w-1");
    table.row("another source", &order, 200, &["e2 routed, copies 0"]).await;
    table.served.stop().await;
}
