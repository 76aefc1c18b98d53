//! Orders in REST shape and signed deliveries, for demo and tests.
//!
//! The signature is computed here and not by `source`, so that a mistake there
//! cannot agree with itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::domain::Timestamp;

/// What an order is about; the rest of its JSON is filled in.
#[derive(Clone, Debug)]
pub struct OrderSketch {
    /// The order id.
    pub id: u64,
    /// The display name: `#1042`.
    pub name: String,
    /// The buyer's first name; a sketch without name, phone and e-mail is a guest's order.
    pub first_name: String,
    /// The buyer's last name.
    pub last_name: String,
    /// The buyer's phone as it was typed.
    pub phone: Option<String>,
    /// The buyer's e-mail.
    pub email: Option<String>,
    /// The total as the shop writes it: `4980.00`.
    pub total: String,
    /// ISO 4217 code of the shop's currency.
    pub currency: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was cancelled, if it was.
    pub cancelled_at: Option<Timestamp>,
    /// `pending`, `paid`, `refunded`, ...
    pub financial_status: String,
    /// Absent while nothing is fulfilled; `partial`, `fulfilled`.
    pub fulfillment_status: Option<String>,
    /// Comma-separated.
    pub tags: String,
    /// The buyer's words.
    pub note: Option<String>,
    /// Whether a test gateway made it.
    pub test: bool,
    /// What was bought.
    pub lines: Vec<OrderLine>,
}

/// One line of an order.
#[derive(Clone, Debug)]
pub struct OrderLine {
    /// The product's title.
    pub title: String,
    /// The article number; may be empty.
    pub sku: String,
    /// How many.
    pub quantity: u32,
    /// The price of one: `1290.00`.
    pub price: String,
}

impl OrderSketch {
    /// A pending order of a guest, in roubles, with one line of the whole sum.
    pub fn new(id: u64, name: &str, total: &str, at: Timestamp) -> Self {
        let line =
            OrderLine { title: "Товар".to_owned(), sku: String::new(), quantity: 1, price: total.to_owned() };
        Self {
            id,
            name: name.to_owned(),
            first_name: String::new(),
            last_name: String::new(),
            phone: None,
            email: None,
            total: total.to_owned(),
            currency: "RUB".to_owned(),
            created_at: at,
            updated_at: at,
            cancelled_at: None,
            financial_status: "pending".to_owned(),
            fulfillment_status: None,
            tags: String::new(),
            note: None,
            test: false,
            lines: vec![line],
        }
    }

    /// The order as webhooks carry it and as `put_order` takes it.
    pub fn to_json(&self) -> Value {
        let mut order = json!({
            "id": self.id,
            "admin_graphql_api_id": format!("gid://shopify/Order/{}", self.id),
            "name": self.name,
            "created_at": shop_time(self.created_at),
            "updated_at": shop_time(self.updated_at),
            "processed_at": shop_time(self.created_at),
            "cancelled_at": self.cancelled_at.map(shop_time),
            "cancel_reason": self.cancelled_at.map(|_| "customer"),
            "closed_at": null,
            "currency": self.currency,
            "presentment_currency": self.currency,
            "total_price": self.total,
            "total_price_set": self.money_set(&self.total),
            "current_total_price": self.total,
            "current_total_price_set": self.money_set(&self.total),
            "financial_status": self.financial_status,
            "fulfillment_status": self.fulfillment_status,
            "email": self.email.clone().unwrap_or_default(),
            "contact_email": self.email,
            "phone": self.phone,
            "tags": self.tags,
            "note": self.note,
            "note_attributes": [],
            "test": self.test,
            "source_name": "web",
            "line_items": (1_u64..).zip(&self.lines).map(|(n, line)| self.line_json(n, line)).collect::<Vec<_>>(),
        });
        if let (false, Some(order)) = (self.is_guest(), order.as_object_mut()) {
            order.insert("customer".to_owned(), self.customer_json());
            order.insert("shipping_address".to_owned(), self.address_json());
            order.insert("billing_address".to_owned(), self.address_json());
        }
        order
    }

    fn is_guest(&self) -> bool {
        self.first_name.is_empty() && self.last_name.is_empty() && self.phone.is_none() && self.email.is_none()
    }

    fn money_set(&self, amount: &str) -> Value {
        let money = json!({"amount": amount, "currency_code": self.currency});
        json!({"shop_money": money, "presentment_money": money})
    }

    fn line_json(&self, place: u64, line: &OrderLine) -> Value {
        json!({
            "id": self.id.wrapping_add(place),
            "title": line.title,
            "name": line.title,
            "variant_title": null,
            "sku": line.sku,
            "quantity": line.quantity,
            "current_quantity": line.quantity,
            "price": line.price,
            "price_set": self.money_set(&line.price),
            "product_id": null,
            "variant_id": null,
            "properties": [],
        })
    }

    fn customer_json(&self) -> Value {
        json!({
            "id": self.id,
            "admin_graphql_api_id": format!("gid://shopify/Customer/{}", self.id),
            "email": self.email,
            "phone": self.phone,
            "first_name": self.first_name,
            "last_name": self.last_name,
        })
    }

    fn address_json(&self) -> Value {
        json!({
            "first_name": self.first_name,
            "last_name": self.last_name,
            "name": format!("{} {}", self.first_name, self.last_name).trim(),
            "phone": self.phone,
        })
    }
}

/// RFC 3339 with the shop's own offset and whole seconds.
fn shop_time(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_second(at.as_secs()).unwrap_or_default();
    instant.display_with_offset(jiff::tz::offset(3)).to_string()
}

/// The value of `X-Shopify-Hmac-Sha256` for a body: base64 of HMAC-SHA256.
///
/// Source: Shopify documentation, "verify deliveries", read 2026-11.
pub fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body);
    STANDARD.encode(mac.finalize().into_bytes())
}

/// The headers of a shop's delivery, as recorded in `tests/data/shopify`.
///
/// `topic` is `orders/create`, `shop` the `*.myshopify.com` domain, `signature` what [`sign`] gives.
pub fn shopify_headers(
    topic: &str,
    shop: &str,
    webhook_id: &str,
    event_id: &str,
    triggered_at: Timestamp,
    signature: &str,
) -> Vec<(String, String)> {
    let triggered_at = triggered_at.to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "Shopify-Captain-Hook"),
        ("X-Shopify-Topic", topic),
        ("X-Shopify-Hmac-Sha256", signature),
        ("X-Shopify-Shop-Domain", shop),
        ("X-Shopify-API-Version", "2026-10"),
        ("X-Shopify-Webhook-Id", webhook_id),
        ("X-Shopify-Triggered-At", &triggered_at),
        ("X-Shopify-Event-Id", event_id),
    ];
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded delivery was signed with other code: the same secret and bytes must give its header.
    #[test]
    fn a_recorded_delivery_gets_its_own_headers_again() {
        let body = include_bytes!("../../tests/data/shopify/orders-create.json");
        let signature = sign("shpss_test_secret", body);
        let triggered_at = Timestamp::from_millis(1_796_036_710_412);
        let headers = shopify_headers(
            "orders/create",
            "tambour-test.myshopify.com",
            "b1a7e000-0000-4000-8000-000000000001",
            "e0000000-0000-4000-8000-000000000001",
            triggered_at,
            &signature,
        );
        let ours: Vec<String> = headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let recorded = include_str!("../../tests/data/shopify/orders-create.headers");
        // The recorded time has nanoseconds; ours are milliseconds.
        let recorded = recorded.replace(".412345678Z", ".412Z");
        assert_eq!(ours, recorded.lines().collect::<Vec<_>>());
    }

    /// Every field of a sketch must stand in a recorded order with a value of the same type.
    #[test]
    fn a_sketch_has_only_fields_of_a_recorded_order() {
        let recorded: Value = serde_json::from_str(include_str!("../../tests/data/shopify/orders-paid.json")).unwrap();
        let at = Timestamp::from_secs(1_796_036_709);
        let sketch =
            OrderSketch { phone: Some("+79000000001".to_owned()), ..OrderSketch::new(7, "#1042", "49.80", at) };
        let ours = sketch.to_json();
        for (name, value) in ours.as_object().unwrap() {
            let other = recorded.get(name).unwrap_or_else(|| panic!("{name} is not in a recorded order"));
            let same = std::mem::discriminant(value) == std::mem::discriminant(other);
            assert!(same || value.is_null() || other.is_null(), "{name}: {value} / {other}");
        }
        assert_eq!(ours["created_at"], recorded["created_at"]);
        assert!(OrderSketch::new(7, "#1042", "49.80", at).to_json().get("customer").is_none());
    }
}
