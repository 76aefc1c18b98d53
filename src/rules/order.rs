//! A shop's order, read from a webhook body or from the Admin API.
//!
//! Only the id, the two times, the currency, the total and each line's quantity
//! must be there; everything else may be null or missing, or of another type, and is
//! then absent. Control characters are taken out of all texts except line ends.
//!
//! Decisions:
//! - `total` is the current total (after edits and returns) where the shop gives
//!   it, else the total at checkout: managers edit orders, and the deal follows.
//!   Lines go with it: the current quantity counts, removed lines are left out.
//! - Times are instants; the shop's offset is not kept.
//! - Statuses are in the webhook's words (`partially_paid`, `partial`), absent
//!   when nothing is paid or fulfilled says so by null.
//!
//! Templates see [`Order::to_json`] as `order`; every key is always there, what
//! is absent is empty text:
//!
//! ```text
//! id name currency note email phone customer_name      text
//! created_at updated_at                                 text, RFC 3339 in UTC, seconds
//! total                                                 text, `4980.00`
//! financial_status fulfillment_status                   text
//! cancelled test                                        true or false, for conditions
//! tags                                                  list of texts
//! lines                                                 list of {title variant sku price: text, quantity: number}
//! ```
//!
//! Sources: Shopify documentation, "webhooks reference" (sample payloads), and
//! "admin-graphql, Order", "Customer", read 2026-11.

use std::fmt;

use serde_json::{Value, json};

use crate::domain::Timestamp;
use crate::rules::read_order::{GRAPHQL, WEBHOOK, read};
use crate::text::{Money, MoneyError};

/// An order as the rules see it; `Debug` shows no customer's data.
#[derive(Clone, PartialEq, Eq)]
pub struct Order {
    /// The shop's id: canonical decimal digits, up to 64 bits.
    pub id: String,
    /// What the shop shows, `#1001`; for people only, it may change. Empty if absent.
    pub name: String,
    /// When it was placed.
    pub created_at: Timestamp,
    /// Its version: grows with every change.
    pub updated_at: Timestamp,
    /// ISO 4217 code of the shop's currency, in which all sums are.
    pub currency: String,
    /// The current total.
    pub total: Money,
    /// `pending`, `paid`, `refunded`, ...; lower case.
    pub financial_status: Option<String>,
    /// `partial`, `fulfilled`, ...; lower case; absent while nothing is fulfilled.
    pub fulfillment_status: Option<String>,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether it went through a test gateway.
    pub test: bool,
    /// Tags, trimmed, in the shop's order.
    pub tags: Vec<String>,
    /// The buyer's or merchant's note; empty if absent.
    pub note: String,
    /// Phones as written, most trusted first: order, customer, shipping, billing.
    pub phones: Vec<String>,
    /// E-mails as written, most trusted first: order, customer.
    pub emails: Vec<String>,
    /// Names of the customer, most trusted first: customer, shipping, billing.
    pub customer_names: Vec<String>,
    /// What was bought and not removed.
    pub lines: Vec<OrderLine>,
    /// Whether the shop has more lines than were read.
    pub lines_cut: bool,
}

/// One line of an order; absent texts are empty.
#[derive(Clone, PartialEq, Eq)]
pub struct OrderLine {
    /// The product.
    pub title: String,
    /// The product's variant.
    pub variant: String,
    /// The article number.
    pub sku: String,
    /// How many, after removals.
    pub quantity: u64,
    /// The price of one, before discounts.
    pub price: Option<Money>,
}

/// Why a body is no order; names the field, never its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A field that must be there is null or missing: usually a subscription with `include_fields`.
    #[error("order field `{field}` is missing")]
    Missing {
        /// JSON pointer.
        field: String,
    },
    /// A field that must be there has another form.
    #[error("order field `{field}` is malformed")]
    Malformed {
        /// JSON pointer.
        field: String,
    },
    /// A sum that is not exact in minor units.
    #[error("order field `{field}` is no exact sum")]
    Money {
        /// JSON pointer.
        field: String,
        /// What is wrong with it.
        source: MoneyError,
    },
}

impl Order {
    /// Reads the body of an order webhook.
    ///
    /// # Errors
    /// [`OrderError`] when a field that must be there is absent or unreadable.
    pub fn from_webhook(body: &Value) -> Result<Self, OrderError> {
        read(body, &WEBHOOK)
    }

    /// Reads an `Order` node of the Admin API, selected by [`ORDER_FIELDS`](crate::rules::ORDER_FIELDS).
    ///
    /// # Errors
    /// [`OrderError`] when a field that must be there is absent or unreadable.
    pub fn from_graphql(node: &Value) -> Result<Self, OrderError> {
        read(node, &GRAPHQL)
    }

    /// The `order` object that templates see; the module doc lists its keys.
    pub fn to_json(&self) -> Value {
        let first = |texts: &[String]| texts.first().cloned().unwrap_or_default();
        let lines: Vec<Value> = self.lines.iter().map(OrderLine::to_json).collect();
        json!({
            "id": self.id,
            "name": self.name,
            "created_at": utc_seconds(self.created_at),
            "updated_at": utc_seconds(self.updated_at),
            "currency": self.currency,
            "total": self.total.to_string(),
            "financial_status": self.financial_status.as_deref().unwrap_or_default(),
            "fulfillment_status": self.fulfillment_status.as_deref().unwrap_or_default(),
            "cancelled": self.cancelled,
            "test": self.test,
            "tags": self.tags,
            "note": self.note,
            "email": first(&self.emails),
            "phone": first(&self.phones),
            "customer_name": first(&self.customer_names),
            "lines": lines,
        })
    }
}

impl OrderLine {
    fn to_json(&self) -> Value {
        json!({
            "title": self.title,
            "variant": self.variant,
            "sku": self.sku,
            "quantity": self.quantity,
            "price": self.price.map(|price| price.to_string()).unwrap_or_default(),
        })
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("id", &self.id)
            .field("updated_at", &self.updated_at)
            .field("lines", &self.lines.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OrderLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderLine").field("quantity", &self.quantity).finish_non_exhaustive()
    }
}

/// RFC 3339 in UTC with seconds, the form of versions in the CRM.
pub(super) fn utc_seconds(at: Timestamp) -> String {
    jiff::Timestamp::from_second(at.as_secs()).map_or_else(|_| at.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::samples;
    use crate::text::Template;

    /// The first node of the sample page with the fields that `ORDER_FIELDS` adds.
    fn graphql_node() -> Value {
        let page = samples::shopify("graphql/orders-page-1.json");
        let mut node = page.pointer("/data/orders/edges/0/node").cloned().unwrap();
        let line = json!({
            "title": "Чай «Утро»", "variantTitle": "250 г / листовой", "sku": "TEA-УТРО-250",
            "quantity": 3, "currentQuantity": 2, "originalUnitPriceSet": {"shopMoney": {"amount": "1290.0"}},
        });
        let removed = json!({"title": "x", "quantity": 1, "currentQuantity": 0});
        node["lineItems"] = json!({"pageInfo": {"hasNextPage": true}, "nodes": [line, removed]});
        node["shippingAddress"] = json!({"name": "Анна Тестова", "phone": "8 (900) 000-00-01"});
        node
    }

    fn changed(pointer: &str, to: Value) -> Result<Order, OrderError> {
        let mut body = samples::shopify("orders-create.json");
        *body.pointer_mut(pointer).unwrap() = to;
        Order::from_webhook(&body)
    }

    #[test]
    fn a_webhook_body_is_read_whole() {
        let order = samples::order();
        assert_eq!(order.id, "912345678901234567", "beyond 2^53, exact");
        assert_eq!((order.name.as_str(), order.currency.as_str()), ("#1042", "RUB"));
        assert_eq!(order.created_at, Timestamp::from_secs(1_796_036_709));
        assert_eq!(order.total.to_string(), "4980.00");
        assert_eq!((order.financial_status.as_deref(), order.fulfillment_status.as_deref()), (Some("pending"), None));
        assert_eq!((order.cancelled, order.test, order.lines_cut), (false, true, false));
        assert_eq!(order.tags, ["Опт", "первый заказ", "VIP"]);
        assert!(order.note.contains('\n') && order.note.ends_with("Спасибо 🙂"), "{}", order.note);
        assert_eq!(order.phones, ["+79000000001", "+79000000001", "8 (900) 000-00-01", "8 (900) 000-00-01"]);
        assert_eq!(order.emails.len(), 3);
        assert_eq!(order.customer_names.first().map(String::as_str), Some("Анна Тестова"));
        let [tea, wrapping] = order.lines.as_slice() else { panic!("two lines") };
        assert_eq!((tea.title.as_str(), tea.sku.as_str(), tea.quantity), ("Чай «Утро»", "TEA-УТРО-250", 2));
        assert_eq!((wrapping.variant.as_str(), wrapping.sku.as_str()), ("", ""));
        assert_eq!(wrapping.price, Some(Money::from_minor(200_000)));
    }

    #[test]
    fn statuses_and_guests() {
        let read = |name: &str| Order::from_webhook(&samples::shopify(name)).unwrap();
        assert_eq!(read("orders-paid.json").financial_status.as_deref(), Some("paid"));
        let cancelled = read("orders-cancelled.json");
        assert!(cancelled.cancelled && cancelled.updated_at > read("orders-updated.json").updated_at);
        let guest = read("orders-create-guest.json");
        assert!(guest.phones.is_empty() && guest.emails.is_empty() && guest.customer_names.is_empty());
    }

    /// The API says the same as the webhook, in other names and forms.
    #[test]
    fn both_forms_of_an_order_agree() {
        let (api, hook) = (
            Order::from_graphql(&graphql_node()).unwrap(),
            Order::from_webhook(&samples::shopify("orders-paid.json")).unwrap(),
        );
        assert_eq!((&api.id, &api.name, api.created_at), (&hook.id, &hook.name, hook.created_at));
        assert_eq!((api.updated_at, &api.currency, api.total), (hook.updated_at, &hook.currency, hook.total));
        assert_eq!(
            (&api.financial_status, &api.fulfillment_status),
            (&hook.financial_status, &hook.fulfillment_status)
        );
        assert_eq!((api.cancelled, api.test), (hook.cancelled, hook.test));
        assert_eq!(api.lines.as_slice(), hook.lines.get(..1).unwrap(), "a removed line is left out");
        assert!(api.lines_cut);
        assert_eq!(api.tags, ["Опт", "VIP"]);
        assert_eq!(api.customer_names, ["Анна Тестова", "Анна Тестова"]);
        let page = samples::shopify("graphql/orders-page-2.json");
        let cancelled = Order::from_graphql(page.pointer("/data/orders/edges/0/node").unwrap()).unwrap();
        assert!(cancelled.cancelled && cancelled.lines.is_empty());
    }

    #[test]
    fn graphql_statuses_come_in_the_webhooks_words() {
        let mut node = graphql_node();
        for (api, word) in
            [("PARTIALLY_FULFILLED", Some("partial")), ("FULFILLED", Some("fulfilled")), ("UNFULFILLED", None)]
        {
            node["displayFulfillmentStatus"] = json!(api);
            assert_eq!(Order::from_graphql(&node).unwrap().fulfillment_status.as_deref(), word);
        }
    }

    #[test]
    fn the_current_total_counts() {
        assert_eq!(changed("/current_total_price", json!("4000.50")).unwrap().total.to_string(), "4000.50");
        assert_eq!(changed("/current_total_price", Value::Null).unwrap().total.to_string(), "4980.00");
        assert_eq!(changed("/current_total_price", json!(4980)).unwrap().total.to_string(), "4980.00");
    }

    #[test]
    fn errors_name_the_field_and_never_its_content() {
        let missing = |field: &str| Err(OrderError::Missing { field: field.to_owned() });
        let malformed = |field: &str| Err(OrderError::Malformed { field: field.to_owned() });
        let money = |field: &str, source| Err(OrderError::Money { field: field.to_owned(), source });
        let rows = [
            ("/id", Value::Null, missing("/id")),
            ("/id", json!("12 Anna"), malformed("/id")),
            ("/id", json!("+12"), malformed("/id")),
            ("/id", json!(1.5), malformed("/id")),
            ("/id", json!(-1), malformed("/id")),
            ("/id", json!("99999999999999999999"), malformed("/id")),
            ("/updated_at", Value::Null, missing("/updated_at")),
            ("/updated_at", json!("30.11.2026 Anna"), malformed("/updated_at")),
            ("/updated_at", json!("2026-11-30T14:05:09"), malformed("/updated_at")),
            ("/created_at", json!(1_796_036_709), malformed("/created_at")),
            ("/currency", json!(" "), missing("/currency")),
            ("/current_total_price", json!("1999.995"), money("/current_total_price", MoneyError::SubMinor)),
            ("/current_total_price", json!("1e2"), money("/current_total_price", MoneyError::Syntax)),
            ("/current_total_price", json!(49.8), malformed("/current_total_price")),
            ("/line_items/0/price", json!("0.30000000000000004"), money("/line_items/0/price", MoneyError::SubMinor)),
            ("/line_items/1", json!("Anna"), missing("/line_items/1/quantity")),
        ];
        for (pointer, to, expected) in rows {
            let got = changed(pointer, to.clone()).map(|_| ());
            assert!(!format!("{got:?}").contains("Anna"));
            assert_eq!(got, expected, "{pointer} {to}");
        }
        assert_eq!(changed("/id", json!("912345678901234568")).unwrap().id, "912345678901234568");
    }

    /// Bug B13: 4-byte characters stay, NUL and other control characters go.
    #[test]
    fn texts_are_clean_and_debug_is_silent() {
        let order = changed("/shipping_address/name", json!(" Мария\u{0}\r\n 👩‍👩‍👧 𝐏\u{1b} ")).unwrap();
        assert_eq!(order.customer_names.get(1).map(String::as_str), Some("Мария 👩‍👩‍👧 𝐏"));
        let shown = format!("{order:?} {:?}", order.lines);
        assert!(!shown.contains("Анна") && !shown.contains("7900") && !shown.contains("Чай"), "{shown}");
    }

    /// Templates are strict, so every documented key is there even for an empty guest order.
    #[test]
    fn templates_see_every_documented_key() {
        let bare = json!({"id": 7, "created_at": "2026-11-30T14:05:09+03:00", "updated_at": "2026-11-30T14:05:09+03:00",
            "currency": "RUB", "total_price": "1"});
        let all = "{{ order.id }}|{{ order.name }}|{{ order.created_at }}|{{ order.total }} {{ order.currency }}|\
            {{ order.financial_status }}{{ order.fulfillment_status }}{{ order.note }}{{ order.email }}{{ order.phone }}\
            {{ order.customer_name }}|{{ order.updated_at }}|{{ order.cancelled }} {{ order.test }}|\
            {{ order.tags|join(',') }}|{% for line in order.lines %}{{ line.title }}{{ line.variant }} {{ line.sku }} \
            {{ line.quantity }} x {{ line.price }};{% endfor %}";
        let template = Template::parse(all).unwrap();
        let render = |order: Order| template.render(&json!({"order": order.to_json()})).unwrap();
        assert_eq!(
            render(Order::from_webhook(&bare).unwrap()),
            "7||2026-11-30T11:05:09Z|1.00 RUB||2026-11-30T11:05:09Z|False False||"
        );
        assert!(render(samples::order()).contains("Чай «Утро»250 г / листовой TEA-УТРО-250 2 x 1290.00;"));
    }

    proptest! {
        #[test]
        fn any_json_is_an_order_or_an_error(
            body in prop_oneof![samples::json(), samples::spoiled(samples::shopify("orders-create.json"))],
            node in prop_oneof![samples::json(), samples::spoiled(graphql_node())],
        ) {
            for order in [Order::from_webhook(&body), Order::from_graphql(&node)].into_iter().flatten() {
                prop_assert!(order.to_json().is_object());
            }
        }
    }
}
