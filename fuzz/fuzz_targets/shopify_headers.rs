//! Any headers and body through the door of a shop: without the right
//! signature nothing passes, with it there is always a reading.

#![no_main]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use libfuzzer_sys::fuzz_target;
use sha2::Sha256;
use tambour::config::{LabelledSecret, Secret, Source, SourceKind, defaults};
use tambour::domain::Timestamp;
use tambour::source::{RawDelivery, read, verify};

const SECRET: &str = "shpss_test_secret";
const SIGNATURE: &str = "x-shopify-hmac-sha256";

/// Names that are looked at; a random name would seldom be one.
const NAMES: [&str; 12] = [
    "x-shopify-topic",
    "x-shopify-shop-domain",
    "x-shopify-webhook-id",
    "x-shopify-triggered-at",
    "x-shopify-event-id",
    "shopify-topic",
    "shopify-shop-domain",
    "shopify-webhook-id",
    "shopify-hmac-sha256",
    "user-agent",
    "cookie",
    SIGNATURE,
];

fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, Vec<u8>, bool)| {
    let (headers, body, is_signed) = input;
    let mut headers: Vec<(String, Bytes)> = headers
        .into_iter()
        .filter_map(|(n, value)| Some(((*NAMES.get(usize::from(n) % NAMES.len())?).to_owned(), Bytes::from(value))))
        .collect();
    let right = signature(&body);
    if is_signed {
        headers.push((SIGNATURE.to_owned(), Bytes::from(right.clone())));
    }
    let has_right = headers.iter().any(|(name, value)| name.ends_with("hmac-sha256") && *value == right);
    let raw = RawDelivery { headers, body: Bytes::from(body), received_at: Timestamp::from_secs(1_796_036_400) };
    let source = source();
    if let Ok(delivery) = verify(&source, raw) {
        assert!(has_right);
        let reading = read(&source, &delivery);
        assert_eq!(reading.items.len(), 1);
        assert!(reading.identity.is_some());
        assert!(reading.headers.iter().all(|(_, value)| *value != right));
    }
});

fn signature(body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("HMAC takes keys of any length");
    STANDARD.encode(mac.chain_update(body).finalize().into_bytes())
}

fn source() -> Source {
    let secret = LabelledSecret { label: "now".to_owned(), secret: Secret::new(SECRET.to_owned()) };
    Source {
        name: "shop".to_owned(),
        kind: SourceKind::Shopify {
            shops: vec!["tambour-test.myshopify.com".to_owned()],
            secrets: vec![secret],
            api: None,
        },
        address_token: None,
        body_bytes_max: 1 << 20,
        answer_within: Duration::from_secs(3),
        quota: defaults::SHOPIFY_QUOTA,
    }
}
