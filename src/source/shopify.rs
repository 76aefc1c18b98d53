//! Shopify: HMAC over the raw body, the event in the headers, the entity as JSON.
//!
//! A delivery is signed with the app's client secret or, when the webhook was
//! made in the shop's settings, with the shop's own key; so one source holds a
//! list of secrets. The signature covers the body only. Headers come in two
//! generations, with and without the `X-` prefix, under one recipe.
//!
//! Sources: Shopify documentation, "delivery structure", "verify deliveries",
//! "privacy law compliance" and the webhooks reference, read 2026-11; npm
//! `@shopify/shopify-api` 13.1.0 (`webhooks.validate`).

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::config::LabelledSecret;
use crate::domain::{KeyBuilder, TEXT_PART_ABSENT, Timestamp};
use crate::source::fingerprint::fingerprint;
use crate::source::headers::{kept, only};
use crate::source::{Fact, Identity, Item, RawDelivery, Reading, Refused, VerifiedDelivery, json, signature};

/// A repeat may come this late: eight retries in four hours, and deliveries
/// "up to a day late" (Shopify documentation, "troubleshoot", read 2026-11),
/// with room for what a person sends again.
const HORIZON: Duration = Duration::from_hours(7 * 24);

/// One header in both generations, the present one first.
type Names = [&'static str; 2];

const SIGNATURE: Names = ["x-shopify-hmac-sha256", "shopify-hmac-sha256"];
const WEBHOOK_ID: Names = ["x-shopify-webhook-id", "shopify-webhook-id"];
const TOPIC: Names = ["x-shopify-topic", "shopify-topic"];
const SHOP: Names = ["x-shopify-shop-domain", "shopify-shop-domain"];
const EVENT_ID: Names = ["x-shopify-event-id", "shopify-event-id"];
const TRIGGERED_AT: Names = ["x-shopify-triggered-at", "shopify-triggered-at"];
const API_VERSION: Names = ["x-shopify-api-version", "shopify-api-version"];
const NAME: Names = ["x-shopify-name", "shopify-name"];
const SUB_TOPIC: Names = ["x-shopify-sub-topic", "shopify-sub-topic"];
const TEST: Names = ["x-shopify-test", "shopify-test"];

/// The allow-list, together with `KEPT_COMMON`; the signature is not on it.
const KEPT: [Names; 9] = [WEBHOOK_ID, TOPIC, SHOP, EVENT_ID, TRIGGERED_AT, API_VERSION, NAME, SUB_TOPIC, TEST];
const KEPT_COMMON: [&str; 2] = ["content-type", "user-agent"];

/// Checks the signature, then that the delivery says what it is.
///
/// Returns the label of the secret that verified. An empty body is refused as
/// Shopify's own library does.
pub(super) fn verify<'a>(secrets: &'a [LabelledSecret], raw: &RawDelivery) -> Result<&'a str, Refused> {
    if raw.body.is_empty() {
        return Err(Refused::Signature);
    }
    let label = only(&raw.headers, &SIGNATURE)
        .and_then(|claimed| signature::verified_by(secrets, claimed, &raw.body))
        .ok_or(Refused::Signature)?;
    for names in [WEBHOOK_ID, TOPIC, SHOP] {
        only(&raw.headers, &names).ok_or(Refused::HeaderMissing(names[0]))?;
    }
    Ok(label)
}

/// What makes Shopify's own deliveries fail, most often first (Shopify
/// documentation, "verify deliveries", read 2026-11; Shopify/shopify-app-js#3183).
pub(super) const WRONG_SIGNATURE: &str = "signatures are wrong on deliveries that otherwise look genuine; usually the \
    app's client secret was changed (add the new one to `secrets` and keep the old one for an hour), or a webhook was \
    made in the shop's settings (add the key that is shown there), or a proxy rewrites bodies on the way";

/// Whether everything but the signature is as Shopify sends it: each header
/// once, and the agent of all recorded deliveries.
pub(super) fn looks_genuine(raw: &RawDelivery) -> bool {
    let has_all = [SIGNATURE, WEBHOOK_ID, TOPIC, SHOP].iter().all(|names| only(&raw.headers, names).is_some());
    let agents = raw.headers.iter().filter(|(name, _)| name == "user-agent").map(|(_, agent)| agent);
    has_all && agents.map(|agent| agent.to_ascii_lowercase()).any(|agent| agent.starts_with(b"shopify"))
}

/// Reads headers and body; `shops` are the domains that are ours.
pub(super) fn read(shops: &[String], delivery: &VerifiedDelivery) -> Reading {
    let header = |names: Names| only(delivery.headers(), &names);
    let account = header(SHOP).unwrap_or(TEXT_PART_ABSENT).to_ascii_lowercase();
    let topic = header(TOPIC).unwrap_or(TEXT_PART_ABSENT);
    Reading {
        foreign: !shops.contains(&account),
        identity: header(WEBHOOK_ID).map(|id| identity(delivery, &account, id)),
        source_time: header(TRIGGERED_AT).and_then(rfc3339),
        correlation: header(EVENT_ID).map(str::to_owned),
        headers: kept(delivery.headers(), |name| KEPT.iter().flatten().chain(&KEPT_COMMON).any(|known| *known == name)),
        items: vec![read_body(topic, delivery.body())],
        topic: topic.to_owned(),
        account,
    }
}

/// The webhook id stays the same on every retry and differs between two
/// subscriptions, so both of their deliveries are kept.
fn identity(delivery: &VerifiedDelivery, account: &str, webhook_id: &str) -> Identity {
    let key = KeyBuilder::new().part(delivery.source()).part(account).part("delivery").part(webhook_id).finish();
    Identity { key, fingerprint: fingerprint(Sha256::new_with_prefix(delivery.body())), horizon: HORIZON }
}

fn read_body(topic: &str, body: &[u8]) -> Item {
    let data = match json::parse(body) {
        Ok(data) => data,
        Err(why) => return Item::Unreadable { at: "body".to_owned(), why },
    };
    let shape = Shape::of(topic);
    let id = data.pointer(shape.id).and_then(exact_digits);
    let Some(entity_id) = id.or_else(|| shape.id_may_lack.then(|| TEXT_PART_ABSENT.to_owned())) else {
        let at = shape.id.trim_start_matches('/').replace('/', ".");
        return Item::Unreadable { at, why: format!("no {} id: a whole number is expected", shape.entity_kind) };
    };
    Item::Fact(Fact {
        kind: topic.to_owned(),
        entity_kind: shape.entity_kind.to_owned(),
        entity_id,
        source_time: data.pointer(shape.time).and_then(Value::as_str).and_then(rfc3339),
        is_whole: shape.is_whole,
        data,
    })
}

/// What the body of a topic is.
struct Shape {
    entity_kind: &'static str,
    /// JSON pointers.
    id: &'static str,
    time: &'static str,
    /// Whether the body is the whole order.
    is_whole: bool,
    id_may_lack: bool,
}

impl Shape {
    fn of(topic: &str) -> Self {
        let plain =
            |entity_kind, id| Self { entity_kind, id, time: "/updated_at", is_whole: false, id_may_lack: false };
        match topic {
            "orders/create"
            | "orders/updated"
            | "orders/paid"
            | "orders/partially_fulfilled"
            | "orders/fulfilled"
            | "orders/cancelled" => Self { is_whole: true, ..plain("order", "/id") },
            "orders/delete" => plain("order", "/id"),
            "orders/edited" => Self { time: "/order_edit/created_at", ..plain("order", "/order_edit/order_id") },
            "refunds/create" => Self { time: "/created_at", ..plain("order", "/order_id") },
            "customers/create" | "customers/update" | "customers/delete" | "customers/disable" | "customers/enable" => {
                plain("customer", "/id")
            }
            // A customer's record may hold only an e-mail ("privacy law compliance").
            "customers/data_request" | "customers/redact" => {
                Self { id_may_lack: true, ..plain("customer", "/customer/id") }
            }
            "shop/redact" => plain("shop", "/shop_id"),
            "app/uninstalled" => plain("shop", "/id"),
            _ => Self { id_may_lack: true, ..plain("other", "/id") },
        }
    }
}

/// An id with every digit: ids need 64 bits, so a number that went through a
/// float (`1e3`) is none.
fn exact_digits(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => number.as_u64().map(|id| id.to_string()),
        Value::String(text) => {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.clone())
        }
        _ => None,
    }
}

/// An instant with any offset and up to nine digits of a second.
fn rfc3339(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::source::samples::{SHOP_DOMAIN, SHOP_SECRET, delivery, recorded, shopify_source, told, with, without};
    use crate::source::{read, verify};

    const SAMPLES: [&str; 9] = [
        "app-uninstalled",
        "customers-redact",
        "orders-cancelled",
        "orders-create",
        "orders-create-guest",
        "orders-paid",
        "orders-updated",
        "orders-updated-after-paid",
        "refunds-create",
    ];

    fn sample(name: &str) -> RawDelivery {
        recorded(&format!("shopify/{name}.headers"), &format!("shopify/{name}.json"))
    }

    /// A delivery with the required headers and a right signature.
    fn signed(topic: &str, body: &[u8]) -> RawDelivery {
        [
            (SIGNATURE, signature::sign(SHOP_SECRET, body).as_str()),
            (WEBHOOK_ID, "b1a7e000-0000-4000-8000-000000000001"),
            (TOPIC, topic),
            (SHOP, SHOP_DOMAIN),
        ]
        .into_iter()
        .fold(delivery(body), |delivery, (names, value)| with(delivery, names[0], value.as_bytes()))
    }

    fn reading(raw: RawDelivery) -> Reading {
        let source = shopify_source();
        read(&source, &verify(&source, raw).expect("the signature is right"))
    }

    fn key(reading: &Reading) -> Vec<String> {
        reading.identity.as_ref().expect("a webhook id is there").key.parts()
    }

    #[test]
    fn samples_are_read() {
        let check = |name: &str, head: &str, item: &str| {
            let head = format!("{SHOP_DOMAIN}: {head}");
            assert_eq!(told(&reading(sample(name))), [head.as_str(), item], "{name}");
        };
        check(
            "orders-create",
            "orders/create 2026-11-30T11:05:10.412Z",
            "orders/create order 912345678901234567 2026-11-30T11:05:10.000Z whole",
        );
        check(
            "orders-updated",
            "orders/updated 2026-11-30T11:07:31.000Z",
            "orders/updated order 912345678901234567 2026-11-30T11:07:31.000Z whole",
        );
        check(
            "orders-paid",
            "orders/paid 2026-11-30T11:09:00.500Z",
            "orders/paid order 912345678901234567 2026-11-30T11:09:00.000Z whole",
        );
        check(
            "orders-updated-after-paid",
            "orders/updated 2026-11-30T11:09:00.500Z",
            "orders/updated order 912345678901234567 2026-11-30T11:09:00.000Z whole",
        );
        check(
            "orders-cancelled",
            "orders/cancelled 2026-12-01T06:30:00.000Z",
            "orders/cancelled order 912345678901234567 2026-12-01T06:30:00.000Z whole",
        );
        check(
            "orders-create-guest",
            "orders/create 2026-11-30T12:10:00.000Z",
            "orders/create order 912345678901234568 2026-11-30T11:05:10.000Z whole",
        );
        check(
            "refunds-create",
            "refunds/create 2026-12-02T07:00:00.250Z",
            "refunds/create order 912345678901234567 2026-12-02T07:00:00.000Z",
        );
        check(
            "app-uninstalled",
            "app/uninstalled 2026-11-30T12:00:01.000Z",
            "app/uninstalled shop 690123456 2026-11-30T12:00:00.000Z",
        );
        check(
            "customers-redact",
            "customers/redact 2026-12-10T00:00:00.000Z",
            "customers/redact customer 812345678901234568 never",
        );
    }

    #[test]
    fn the_whole_order_is_in_the_data() {
        let raw = sample("orders-create");
        let body: Value = serde_json::from_slice(&raw.body).expect("JSON");
        let Some(Item::Fact(fact)) = reading(raw).items.pop() else { panic!("a fact is expected") };
        assert_eq!(fact.data, body);
        assert_eq!(fact.data["tags"], "Опт, первый заказ, VIP");
    }

    #[test]
    fn a_changed_body_is_refused() {
        let check = |raw: RawDelivery| assert_eq!(verify(&shopify_source(), raw).err(), Some(Refused::Signature));
        check(sample("bad-hmac"));
        for name in SAMPLES {
            let raw = sample(name);
            let (body, longer) = (raw.body.slice(1..), [raw.body.as_ref(), b"\n"].concat());
            check(RawDelivery { body, ..raw.clone() });
            check(RawDelivery { body: Bytes::from(longer), ..raw.clone() });
            check(without(raw, SIGNATURE[0]));
        }
    }

    /// B01: bytes are signed, so escapes and spellings of numbers stay as they came.
    #[test]
    fn the_body_is_verified_and_kept_byte_for_byte() {
        let body = br#"{"a":"x\u2028\u2028","u":"https:\/\/e.example\/?a=1\u0026b=2","n":1.0}"#;
        let verified = verify(&shopify_source(), signed("orders/create", body)).expect("signed as sent");
        assert_eq!(verified.body(), body.as_slice());
        assert_eq!(verified.secret_label(), Some("now"));
        assert_eq!(verified.source(), "shop");
    }

    /// The signature comes first: a stranger learns nothing about other headers.
    /// A stranger's request must not look like a lost delivery.
    #[test]
    fn what_looks_genuine_has_all_headers_and_the_agent() {
        let check = |raw: RawDelivery, expected: bool| assert_eq!(looks_genuine(&raw), expected, "{:?}", raw.headers);
        let forged = recorded("shopify/bad-hmac.headers", "shopify/bad-hmac.json");
        check(forged.clone(), true);
        for name in ["user-agent", SIGNATURE[0], WEBHOOK_ID[0], TOPIC[0], SHOP[0]] {
            check(without(forged.clone(), name), false);
        }
        check(with(without(forged.clone(), "user-agent"), "user-agent", b"curl/8.5.0"), false);
        check(with(forged, TOPIC[0], b"orders/paid"), false);
    }

    #[test]
    fn headers_are_asked_for_after_the_signature() {
        let check = |raw: RawDelivery, expected| assert_eq!(verify(&shopify_source(), raw).err(), expected);
        let good = signed("orders/create", b"{}");
        check(good.clone(), None);
        for names in [WEBHOOK_ID, TOPIC, SHOP] {
            let missing = Some(Refused::HeaderMissing(names[0]));
            check(without(good.clone(), names[0]), missing);
            check(with(good.clone(), names[0], b"again"), missing);
            check(with(without(good.clone(), names[0]), names[0], b""), missing);
            check(without(without(good.clone(), names[0]), SIGNATURE[0]), Some(Refused::Signature));
        }
        let twice = signature::sign(SHOP_SECRET, b"{}");
        check(with(good, SIGNATURE[0], twice.as_bytes()), Some(Refused::Signature));
        check(signed("orders/create", b""), Some(Refused::Signature));
    }

    #[test]
    fn the_second_generation_of_headers_is_the_same_delivery() {
        for name in SAMPLES {
            let (first, mut second) = (sample(name), sample(name));
            for (name, _) in &mut second.headers {
                *name = name.trim_start_matches("x-").to_owned();
            }
            let (first, second) = (reading(first), reading(second));
            assert_eq!((&first.identity, told(&first)), (&second.identity, told(&second)), "{name}");
        }
    }

    /// B17: two subscriptions to one action give two deliveries with one event id.
    #[test]
    fn deliveries_of_one_action_are_two_with_one_correlation() {
        let (paid, updated) = (reading(sample("orders-paid")), reading(sample("orders-updated-after-paid")));
        assert_eq!(paid.correlation.as_deref(), Some("e0000000-0000-4000-8000-000000000003"));
        assert_eq!(paid.correlation, updated.correlation);
        assert_eq!(key(&paid), ["shop", SHOP_DOMAIN, "delivery", "b1a7e000-0000-4000-8000-000000000003"]);
        assert_eq!(key(&updated), ["shop", SHOP_DOMAIN, "delivery", "b1a7e000-0000-4000-8000-000000000004"]);
        let fingerprint = |reading: &Reading| reading.identity.as_ref().map(|identity| identity.fingerprint);
        assert_eq!(fingerprint(&paid), fingerprint(&updated));
        assert_ne!(fingerprint(&paid), fingerprint(&reading(sample("orders-updated"))));
    }

    #[test]
    fn another_shop_is_foreign_and_case_does_not_matter() {
        let from =
            |shop: &str| with(without(signed("orders/create", b"{\"id\":1}"), SHOP[0]), SHOP[0], shop.as_bytes());
        let ours = reading(from("Tambour-Test.MyShopify.com"));
        assert_eq!((ours.account.as_str(), ours.foreign), (SHOP_DOMAIN, false));
        let other = reading(from("other.myshopify.com"));
        assert_eq!((other.account.as_str(), other.foreign), ("other.myshopify.com", true));
        assert_ne!(ours.identity, other.identity);
    }

    #[test]
    fn each_topic_names_its_entity() {
        let check = |topic: &str, body: &str, expected: &str| {
            assert_eq!(told(&reading(signed(topic, body.as_bytes())))[1..], [expected], "{topic} {body}");
        };
        let edit = r#"{"order_edit":{"id":1,"order_id":2,"created_at":"2026-11-30T14:00:00+03:00"}}"#;
        check("orders/edited", edit, "orders/edited order 2 2026-11-30T11:00:00.000Z");
        check("orders/delete", r#"{"id":7}"#, "orders/delete order 7 never");
        check("customers/update", r#"{"id":8,"updated_at":"junk"}"#, "customers/update customer 8 never");
        check("customers/redact", r#"{"customer":{"email":"a@example.com"}}"#, "customers/redact customer - never");
        check("shop/redact", r#"{"shop_id":9}"#, "shop/redact shop 9 never");
        check("products/update", r#"{"id":10}"#, "products/update other 10 never");
        check("themes/publish", "[]", "themes/publish other - never");
        check(
            "orders/edited",
            r#"{"id":1}"#,
            "unreadable order_edit.order_id: no order id: a whole number is expected",
        );
        check("orders/paid", "5", "unreadable id: no order id: a whole number is expected");
        check("orders/paid", "<xml/>", "unreadable body: not JSON: expected value at line 1 column 1");
    }

    /// B29: ids keep every digit, and what only looks like a number is none.
    #[test]
    fn ids_are_exact() {
        let check = |id: &str, expected: &str| {
            let body = format!(r#"{{"id":{id}}}"#);
            let lines = told(&reading(signed("orders/create", body.as_bytes())));
            assert_eq!(lines[1], expected, "{id}");
        };
        for id in ["9196877626998784", "9196877626998785", "1524831183200260097", "18446744073709551615"] {
            let expected = format!("orders/create order {id} never whole");
            check(id, &expected);
            check(&format!("\"{id}\""), &expected);
        }
        check("\"007\"", "orders/create order 007 never whole");
        for id in ["1e3", "1000.0", "-1", "18446744073709551616", "\"1e3\"", "\"\"", "null", "[1]"] {
            check(id, "unreadable id: no order id: a whole number is expected");
        }
        let with_id = |id: &str| with(without(signed("a", b"{}"), WEBHOOK_ID[0]), WEBHOOK_ID[0], id.as_bytes());
        let keys: Vec<_> = ["1000", "1e3", "007", "7"].map(|id| reading(with_id(id)).identity).into();
        assert!(keys.iter().enumerate().all(|(n, key)| !keys[..n].contains(key)), "{keys:?}");
    }

    #[test]
    fn a_time_that_is_none_does_not_refuse_the_delivery() {
        let check = |value: &str, expected: Option<i64>| {
            let raw = with(signed("a", b"{}"), TRIGGERED_AT[0], value.as_bytes());
            assert_eq!(reading(raw).source_time.map(Timestamp::as_millis), expected, "{value}");
        };
        check("2026-11-30T11:00:00Z", Some(1_796_036_400_000));
        check("2026-11-30T14:00:00.5+03:00", Some(1_796_036_400_500));
        check("2026-11-30T11:00:00.000000001Z", Some(1_796_036_400_000));
        check("2026-11-30T11:00:00", None);
        check("1796036400", None);
        check("yesterday", None);
    }

    /// A replay reads the stored body under the kept headers.
    #[test]
    fn kept_headers_are_enough_to_read_again() {
        for name in SAMPLES {
            let first = reading(sample(name));
            assert!(first.headers.iter().all(|(name, _)| !name.contains("hmac")), "{:?}", first.headers);
            assert_eq!(first.headers.len(), 8, "{:?}", first.headers);
            let raw = sample(name);
            let headers =
                first.headers.iter().map(|(name, value)| (name.clone(), Bytes::from(value.clone()))).collect();
            let stored = VerifiedDelivery::assume_verified("shop", RawDelivery { headers, ..raw }, None);
            assert_eq!(read(&shopify_source(), &stored), first, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_input_panics(
            body in prop_oneof![
                proptest::collection::vec(any::<u8>(), 1..200),
                r#"\{"(id|order_id|customer|updated_at)":("?[0-9eE.+-]{0,24}"?|\{\}|"\\u[dD][89a-f]00")\}"#.prop_map(String::into_bytes),
            ],
            topic in "(orders|refunds|customers|x)/(create|edited|redact|[!-~]{1,8})",
            headers in proptest::collection::vec((0..KEPT.len(), proptest::collection::vec(any::<u8>(), 0..30)), 0..4),
        ) {
            let source = shopify_source();
            let raw = headers.iter().fold(signed(&topic, &body), |raw, (n, value)| with(raw, KEPT[*n][0], value));
            if let Ok(delivery) = verify(&source, raw) {
                prop_assert_eq!(read(&source, &delivery).items.len(), 1);
            }
        }

        #[test]
        fn no_signature_but_the_right_one_passes(claimed in proptest::collection::vec(any::<u8>(), 0..60)) {
            let raw = with(without(signed("a", b"{}"), SIGNATURE[0]), SIGNATURE[0], &claimed);
            let expected = claimed != signature::sign(SHOP_SECRET, b"{}").as_bytes();
            prop_assert_eq!(verify(&shopify_source(), raw).is_err(), expected);
        }
    }
}
