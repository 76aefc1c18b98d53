//! Built-in samples: an order and a deal as their systems tell of them. They do
//! no harm where they are sent: the order is a test, the deal's stage is nobody's.

use form_urlencoded::Serializer;
use serde_json::{Value, json};

use crate::domain::Timestamp;
use crate::rules::{Order, OrderError};
use crate::sandbox::OrderSketch;

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
        ..OrderSketch::new(1, "#tambour-sample", "4980.00", now)
    }
}

/// The order as templates see it.
pub(super) fn order_json(now: Timestamp) -> Result<Value, OrderError> {
    Order::from_webhook(&order(now).to_json()).map(|order| order.to_json())
}

/// A deal as note templates see it; real ones hold the codes or ids of filled fields in `custom`.
pub(super) fn lead_json() -> Value {
    json!({
        "id": 50_000_001,
        "name": "Заказ #1042",
        "price": 4980,
        "status_id": 1,
        "pipeline_id": 1,
        "responsible_user_id": 1,
        "custom": {},
    })
}

/// The body of an amoCRM delivery: a deal came to a stage that no account has.
pub(in crate::cli) fn moved_lead(account_id: u64, now: Timestamp) -> String {
    let now = now.as_secs().to_string();
    Serializer::new(String::new())
        .append_pair("account[id]", &account_id.to_string())
        .append_pair("leads[status][0][id]", "1")
        .append_pair("leads[status][0][status_id]", "1")
        .append_pair("leads[status][0][pipeline_id]", "1")
        .append_pair("leads[status][0][old_status_id]", "2")
        .append_pair("leads[status][0][last_modified]", &now)
        .append_pair("leads[status][0][updated_at]", &now)
        .finish()
}
