//! Recorded deliveries for the tests of this room and of those that take what it reads.

use bytes::Bytes;

use crate::config::{LabelledSecret, Secret, Source, SourceKind};
use crate::domain::Timestamp;
use crate::source::{Item, RawDelivery, Reading, signature};

/// The shop of all samples.
pub(super) const SHOP_DOMAIN: &str = "tambour-test.myshopify.com";

/// The secret of all samples.
pub(super) const SHOP_SECRET: &str = "shpss_test_secret";

/// A bare source of the given kind.
fn source(name: &str, kind: SourceKind) -> Source {
    Source {
        name: name.to_owned(),
        kind,
        address_token: None,
        body_bytes_max: 8 << 20,
        answer_within: std::time::Duration::from_secs(1),
        quota: crate::config::defaults::SHOPIFY_QUOTA,
    }
}

/// The shop of the samples, with its secret.
pub(crate) fn shopify_source() -> Source {
    let secret = LabelledSecret { label: "now".to_owned(), secret: Secret::new(SHOP_SECRET.to_owned()) };
    source("shop", SourceKind::Shopify { shops: vec![SHOP_DOMAIN.to_owned()], secrets: vec![secret], api: None })
}

/// The account of the samples.
pub(crate) fn amocrm_source() -> Source {
    source("crm", SourceKind::Amocrm { account_id: 31_000_001 })
}

/// The bytes of a file under `tests/data`.
pub(crate) fn file(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A delivery of this body without headers.
pub(crate) fn delivery(body: &[u8]) -> RawDelivery {
    let received_at = Timestamp::from_secs(1_796_036_720);
    RawDelivery { headers: Vec::new(), body: Bytes::copy_from_slice(body), received_at }
}

/// A delivery as recorded, names in lower case as the door hands them on.
pub(crate) fn recorded(headers: &str, body: &str) -> RawDelivery {
    let headers = String::from_utf8(file(headers)).expect("headers are text");
    let pairs = headers.lines().filter_map(|line| line.split_once(": "));
    pairs.fold(delivery(&file(body)), |delivery, (name, value)| with(delivery, &name.to_lowercase(), value.as_bytes()))
}

/// A new order as the shop sends it, signed, under this delivery id.
pub(crate) fn signed(webhook_id: &str, body: &[u8]) -> RawDelivery {
    let signature = signature::sign(SHOP_SECRET, body);
    [
        ("x-shopify-hmac-sha256", signature.as_str()),
        ("x-shopify-webhook-id", webhook_id),
        ("x-shopify-topic", "orders/create"),
        ("x-shopify-shop-domain", SHOP_DOMAIN),
    ]
    .into_iter()
    .fold(delivery(body), |delivery, (name, value)| with(delivery, name, value.as_bytes()))
}

/// The same delivery with one more header.
pub(super) fn with(mut delivery: RawDelivery, name: &str, value: &[u8]) -> RawDelivery {
    delivery.headers.push((name.to_owned(), Bytes::copy_from_slice(value)));
    delivery
}

/// The same delivery without a header.
pub(super) fn without(mut delivery: RawDelivery, name: &str) -> RawDelivery {
    delivery.headers.retain(|(found, _)| found != name);
    delivery
}

/// A reading in lines: account, topic and time, then an item a line.
pub(super) fn told(reading: &Reading) -> Vec<String> {
    let time = |at: Option<Timestamp>| at.map_or_else(|| "never".to_owned(), |at| at.to_string());
    let foreign = if reading.foreign { " (foreign)" } else { "" };
    let repeats = if reading.identity.is_some() { "" } else { ", a repeat cannot be told" };
    let mut lines =
        vec![format!("{}{foreign}: {} {}{repeats}", reading.account, reading.topic, time(reading.source_time))];
    lines.extend(reading.items.iter().map(|item| match item {
        Item::Unreadable { at, why } => format!("unreadable {at}: {why}"),
        Item::Fact(fact) => {
            let whole = if fact.is_whole { " whole" } else { "" };
            format!("{} {} {} {}{whole}", fact.kind, fact.entity_kind, fact.entity_id, time(fact.source_time))
        }
    }));
    lines
}
