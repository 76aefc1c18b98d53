//! Built-in samples: an order and a deal as their systems tell of them. They do
//! no harm where they are sent: the order is a test, the deal's stage is nobody's.

use std::collections::{BTreeMap, BTreeSet};

use form_urlencoded::Serializer;
use serde_json::{Value, json};

use crate::domain::Timestamp;
use crate::sandbox::OrderSketch;

/// The order's name.
pub(in crate::cli) const ORDER_NAME: &str = "#tambour-sample";
/// The deal of [`moved_lead`].
pub(in crate::cli) const LEAD_ID: &str = "1";

/// A test order with everything that templates may ask for.
pub(in crate::cli) fn order(now: Timestamp) -> OrderSketch {
    OrderSketch {
        first_name: "Анна".to_owned(),
        last_name: "Примерова".to_owned(),
        phone: Some("+79000000001".to_owned()),
        email: Some("anna@example.com".to_owned()),
        tags: "sample".to_owned(),
        note: Some("sample".to_owned()),
        test: true,
        ..OrderSketch::new(1, ORDER_NAME, "4980.00", now)
    }
}

/// A deal as note templates see it; real ones hold the codes or ids of filled fields in `custom`.
pub(super) fn lead_json(custom: &BTreeSet<String>) -> Value {
    let custom: BTreeMap<&String, &str> = custom.iter().map(|key| (key, "")).collect();
    json!({
        "id": 50_000_001,
        "name": "Заказ #1042",
        "price": 4980,
        "status_id": 1,
        "pipeline_id": 1,
        "responsible_user_id": 1,
        "custom": custom,
    })
}

/// The body of an amoCRM delivery: a deal came to a stage that no account has.
pub(in crate::cli) fn moved_lead(account_id: u64, now: Timestamp) -> String {
    let now = now.as_secs().to_string();
    Serializer::new(String::new())
        .append_pair("account[id]", &account_id.to_string())
        .append_pair("leads[status][0][id]", LEAD_ID)
        .append_pair("leads[status][0][status_id]", "1")
        .append_pair("leads[status][0][pipeline_id]", "1")
        .append_pair("leads[status][0][old_status_id]", "2")
        .append_pair("leads[status][0][last_modified]", &now)
        .append_pair("leads[status][0][updated_at]", &now)
        .finish()
}
