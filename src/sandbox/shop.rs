//! The emulated Admin GraphQL API: one order by its id.
//!
//! A question is not parsed: a query that holds `order(id:` with the variable
//! `id` gets the whole order node, whatever it selects. Names and shapes are
//! those of the recorded pages in `tests/data/shopify/graphql`; orders are kept
//! in REST shape, as webhooks carry them.

use serde_json::{Value, json};

use crate::sandbox::desk::Desk;
use crate::sandbox::kept::Kept;
use crate::sandbox::message::{Reply, Request};

const JSON: &str = "application/json; charset=utf-8";
const RATE_LIMITS: &str = "https://shopify.dev/api/usage/rate-limits";

pub(super) fn is_graphql(request: &Request) -> bool {
    let segments: Vec<&str> = request.path().split('/').collect();
    request.method() == "POST" && matches!(segments.as_slice(), ["", "admin", "api", _, "graphql.json"])
}

pub(super) fn unauthorized() -> Reply {
    let text = "[API] Invalid API key or access token (unrecognized login or wrong password)";
    Reply::json(401, JSON, &json!({"errors": text}))
}

/// 429, which some callers report instead of [`throttled`].
pub(super) fn too_many(retry_after: Option<u64>) -> Reply {
    let reply = Reply::json(429, JSON, &json!({"errors": "Exceeded rate limit. Reduce request rates."}));
    match retry_after {
        Some(secs) => reply.with_header("retry-after", &secs.to_string()),
        None => reply,
    }
}

/// The usual refusal: an error inside 200.
pub(super) fn throttled() -> Reply {
    let error = json!({"message": "Throttled", "extensions": {"code": "THROTTLED", "documentation": RATE_LIMITS}});
    Reply::json(200, JSON, &json!({"errors": [error], "extensions": cost(752, &Value::Null, 63.0)}))
}

pub(super) fn answer(desk: &mut Desk<'_>) -> Reply {
    let Ok(question) = serde_json::from_slice::<Value>(desk.request.body()) else {
        return Reply::json(400, JSON, &json!({"errors": "The body is not JSON."}));
    };
    let query = question.get("query").and_then(Value::as_str).unwrap_or_default();
    let id = question.get("variables").and_then(|variables| variables.get("id")).and_then(Value::as_str);
    let (true, Some(id)) = (query.contains("order(id:"), id) else {
        let error =
            json!({"message": "The sandbox only knows order(id: $id).", "extensions": {"code": "undefinedField"}});
        return Reply::json(200, JSON, &json!({"errors": [error]}));
    };
    let order = id.strip_prefix("gid://shopify/Order/").and_then(|digits| digits.parse().ok());
    let order = order.and_then(|id: u64| desk.world.orders.get(&id));
    let node = order.map_or(Value::Null, |order: &Kept<Value>| node(order.read(desk.now.at, desk.lags.read)));
    Reply::json(200, JSON, &json!({"data": {"order": node}, "extensions": cost(24, &json!(14), 1986.0)}))
}

fn cost(requested: u32, actual: &Value, available: f64) -> Value {
    let status = json!({"maximumAvailable": 2000.0, "currentlyAvailable": available, "restoreRate": 100.0});
    json!({"cost": {"requestedQueryCost": requested, "actualQueryCost": actual, "throttleStatus": status}})
}

/// The order node of a REST order.
fn node(order: &Value) -> Value {
    let line = |line: &Value| {
        json!({
            "title": line["title"],
            "variantTitle": line["variant_title"],
            "sku": line["sku"],
            "quantity": line["quantity"],
            "currentQuantity": line["current_quantity"],
            "originalUnitPriceSet": money_set(line, "price", &order["currency"]),
        })
    };
    let id = order["id"].to_string();
    json!({
        "id": format!("gid://shopify/Order/{id}"),
        "legacyResourceId": id,
        "name": order["name"],
        "createdAt": utc(&order["created_at"]),
        "updatedAt": utc(&order["updated_at"]),
        "cancelledAt": utc(&order["cancelled_at"]),
        "displayFinancialStatus": order["financial_status"].as_str().map(str::to_uppercase),
        "displayFulfillmentStatus": fulfillment(&order["fulfillment_status"]),
        "email": text_or_null(&order["email"]),
        "phone": text_or_null(&order["phone"]),
        "test": order["test"],
        "tags": tags(&order["tags"]),
        "note": text_or_null(&order["note"]),
        "currencyCode": order["currency"],
        "totalPriceSet": money_set(order, "total_price", &order["currency"]),
        "currentTotalPriceSet": money_set(order, "current_total_price", &order["currency"]),
        "customer": customer(&order["customer"]),
        "shippingAddress": address(&order["shipping_address"]),
        "billingAddress": address(&order["billing_address"]),
        "lineItems": {"nodes": order["line_items"].as_array().into_iter().flatten().map(line).collect::<Vec<_>>()},
    })
}

fn customer(customer: &Value) -> Value {
    if !customer.is_object() {
        return Value::Null;
    }
    let names = [&customer["first_name"], &customer["last_name"]].map(|name| name.as_str().unwrap_or_default());
    json!({
        "id": format!("gid://shopify/Customer/{}", customer["id"]),
        "displayName": names.join(" ").trim(),
        "firstName": customer["first_name"],
        "lastName": customer["last_name"],
        "email": text_or_null(&customer["email"]),
        "phone": text_or_null(&customer["phone"]),
    })
}

fn address(address: &Value) -> Value {
    if !address.is_object() {
        return Value::Null;
    }
    json!({"name": address["name"], "phone": text_or_null(&address["phone"])})
}

/// `<name>_set` in GraphQL's words; made of `<name>` and the shop's currency where it is absent.
fn money_set(of: &Value, name: &str, currency: &Value) -> Value {
    let set = &of[format!("{name}_set")];
    let shop = match &set["shop_money"] {
        Value::Null => json!({"amount": of[name], "currency_code": currency}),
        money => money.clone(),
    };
    let presentment = if set["presentment_money"].is_null() { &shop } else { &set["presentment_money"] };
    json!({"shopMoney": money(&shop), "presentmentMoney": money(presentment)})
}

/// Amounts are texts with at least one decimal: `4980.0`.
fn money(money: &Value) -> Value {
    let amount = money["amount"].as_str().map(|amount| match amount.trim_end_matches('0') {
        whole if whole.ends_with('.') => format!("{whole}0"),
        trimmed if trimmed.contains('.') => trimmed.to_owned(),
        _ => format!("{amount}.0"),
    });
    json!({"amount": amount, "currencyCode": money["currency_code"]})
}

/// Times are in UTC with whole seconds.
fn utc(time: &Value) -> Option<String> {
    let instant: jiff::Timestamp = time.as_str()?.parse().ok()?;
    Some(jiff::Timestamp::from_second(instant.as_second()).ok()?.to_string())
}

fn fulfillment(status: &Value) -> String {
    match status.as_str() {
        None => "UNFULFILLED".to_owned(),
        Some("partial") => "PARTIALLY_FULFILLED".to_owned(),
        Some(other) => other.to_uppercase(),
    }
}

fn text_or_null(text: &Value) -> Option<&str> {
    text.as_str().filter(|text| !text.is_empty())
}

/// REST has one text, GraphQL a list.
fn tags(tags: &Value) -> Vec<&str> {
    tags.as_str().unwrap_or_default().split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_graphql_decimals() {
        for (rest, graphql) in
            [("4980.00", "4980.0"), ("49.80", "49.8"), ("0.07", "0.07"), ("100", "100.0"), ("0.00", "0.0")]
        {
            assert_eq!(money(&json!({"amount": rest}))["amount"], graphql);
        }
    }

    #[test]
    fn anything_that_is_no_order_becomes_a_node_without_panic() {
        for odd in [json!({}), json!([]), json!(null), json!({"line_items": [1], "customer": {}, "tags": 5})] {
            assert!(node(&odd).is_object());
        }
    }
}
