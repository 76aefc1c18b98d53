//! Where an order's fields lie in the two forms of the shop, and one reader for both.

use serde_json::Value;

use crate::domain::Timestamp;
use crate::rules::order::{Order, OrderError, OrderLine};
use crate::text::Money;

/// The GraphQL selection inside `Order` that [`Order::from_graphql`] reads.
///
/// At most 100 lines are asked for, to stay under the cost limit of one query;
/// more are noticed.
pub const ORDER_FIELDS: &str = "legacyResourceId name createdAt updatedAt cancelledAt currencyCode test tags note \
    email phone displayFinancialStatus displayFulfillmentStatus \
    totalPriceSet { shopMoney { amount } } currentTotalPriceSet { shopMoney { amount } } \
    customer { displayName firstName lastName email phone } \
    shippingAddress { name phone } billingAddress { name phone } \
    lineItems(first: 100) { pageInfo { hasNextPage } nodes { title variantTitle sku quantity currentQuantity \
    originalUnitPriceSet { shopMoney { amount } } } }";

/// Where the fields lie, as JSON pointers; of several the first that holds something counts.
pub(super) struct Shape {
    id: &'static str,
    name: &'static str,
    created_at: &'static str,
    updated_at: &'static str,
    currency: &'static str,
    total: [&'static str; 2],
    financial_status: &'static str,
    fulfillment_status: &'static str,
    cancelled_at: &'static str,
    test: &'static str,
    tags: &'static str,
    note: &'static str,
    phones: &'static [&'static str],
    emails: &'static [&'static str],
    /// Each a name in one or two parts.
    customer_names: &'static [&'static [&'static str]],
    lines: &'static str,
    lines_cut: Option<&'static str>,
    line: LineShape,
}

struct LineShape {
    title: &'static str,
    variant: &'static str,
    sku: &'static str,
    quantity: [&'static str; 2],
    price: &'static str,
}

pub(super) const WEBHOOK: Shape = Shape {
    id: "/id",
    name: "/name",
    created_at: "/created_at",
    updated_at: "/updated_at",
    currency: "/currency",
    total: ["/current_total_price", "/total_price"],
    financial_status: "/financial_status",
    fulfillment_status: "/fulfillment_status",
    cancelled_at: "/cancelled_at",
    test: "/test",
    tags: "/tags",
    note: "/note",
    phones: &["/phone", "/customer/phone", "/shipping_address/phone", "/billing_address/phone"],
    emails: &["/email", "/contact_email", "/customer/email"],
    customer_names: &[
        &["/customer/first_name", "/customer/last_name"],
        &["/shipping_address/name"],
        &["/billing_address/name"],
    ],
    lines: "/line_items",
    lines_cut: None,
    line: LineShape {
        title: "/title",
        variant: "/variant_title",
        sku: "/sku",
        quantity: ["/current_quantity", "/quantity"],
        price: "/price",
    },
};

/// `displayName` comes last: without a name it holds the e-mail or the phone.
pub(super) const GRAPHQL: Shape = Shape {
    id: "/legacyResourceId",
    name: "/name",
    created_at: "/createdAt",
    updated_at: "/updatedAt",
    currency: "/currencyCode",
    total: ["/currentTotalPriceSet/shopMoney/amount", "/totalPriceSet/shopMoney/amount"],
    financial_status: "/displayFinancialStatus",
    fulfillment_status: "/displayFulfillmentStatus",
    cancelled_at: "/cancelledAt",
    test: "/test",
    tags: "/tags",
    note: "/note",
    phones: &["/phone", "/customer/phone", "/shippingAddress/phone", "/billingAddress/phone"],
    emails: &["/email", "/customer/email"],
    customer_names: &[
        &["/customer/firstName", "/customer/lastName"],
        &["/shippingAddress/name"],
        &["/billingAddress/name"],
        &["/customer/displayName"],
    ],
    lines: "/lineItems/nodes",
    lines_cut: Some("/lineItems/pageInfo/hasNextPage"),
    line: LineShape {
        title: "/title",
        variant: "/variantTitle",
        sku: "/sku",
        quantity: ["/currentQuantity", "/quantity"],
        price: "/originalUnitPriceSet/shopMoney/amount",
    },
};

pub(super) fn read(body: &Value, shape: &Shape) -> Result<Order, OrderError> {
    let flag = |at: &str| present(body, at).and_then(Value::as_bool).unwrap_or_default();
    let filled = |texts: &[&str]| texts.iter().map(|at| line_text(body, at)).filter(|text| !text.is_empty()).collect();
    let currency = line_text(body, shape.currency);
    if currency.is_empty() {
        return Err(OrderError::Missing { field: shape.currency.to_owned() });
    }
    Ok(Order {
        id: id(body, shape.id)?,
        name: line_text(body, shape.name),
        created_at: time(body, shape.created_at)?,
        updated_at: time(body, shape.updated_at)?,
        currency,
        total: total(body, shape)?,
        financial_status: status(body, shape.financial_status),
        fulfillment_status: status(body, shape.fulfillment_status),
        cancelled: present(body, shape.cancelled_at).is_some(),
        test: flag(shape.test),
        tags: tags(body, shape.tags),
        note: text(body, shape.note),
        phones: filled(shape.phones),
        emails: filled(shape.emails),
        customer_names: shape.customer_names.iter().filter_map(|parts| customer_name(body, parts)).collect(),
        lines: lines(body, shape)?,
        lines_cut: shape.lines_cut.is_some_and(flag),
    })
}

/// The value at a pointer, unless it is null.
fn present<'a>(body: &'a Value, at: &str) -> Option<&'a Value> {
    body.pointer(at).filter(|value| !value.is_null())
}

fn required<'a>(body: &'a Value, at: &str) -> Result<&'a Value, OrderError> {
    present(body, at).ok_or_else(|| OrderError::Missing { field: at.to_owned() })
}

/// A text of many lines, trimmed; empty if it is none.
fn text(body: &Value, at: &str) -> String {
    let raw = present(body, at).and_then(Value::as_str).unwrap_or_default();
    let clean: String = raw.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect();
    clean.trim().to_owned()
}

/// A text of one line, blanks joined; empty if it is none.
fn line_text(body: &Value, at: &str) -> String {
    text(body, at).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn id(body: &Value, at: &str) -> Result<String, OrderError> {
    let value = required(body, at)?;
    let digits = value.as_str().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let number = value.as_u64().or_else(|| digits?.parse::<u64>().ok());
    number.map(|id| id.to_string()).ok_or_else(|| OrderError::Malformed { field: at.to_owned() })
}

fn time(body: &Value, at: &str) -> Result<Timestamp, OrderError> {
    let text = required(body, at)?.as_str();
    text.and_then(read_time).ok_or_else(|| OrderError::Malformed { field: at.to_owned() })
}

fn total(body: &Value, shape: &Shape) -> Result<Money, OrderError> {
    let [current, original] = shape.total;
    let at = if present(body, current).is_some() { current } else { original };
    money(required(body, at)?, at.to_owned())
}

/// A sum is text or an integer; a JSON fraction has gone through a float and is no exact sum.
fn money(value: &Value, field: String) -> Result<Money, OrderError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        _ => return Err(OrderError::Malformed { field }),
    };
    text.parse().map_err(|source| OrderError::Money { field, source })
}

fn status(body: &Value, at: &str) -> Option<String> {
    let word = line_text(body, at).to_lowercase();
    match word.as_str() {
        "" | "unfulfilled" => None,
        "partially_fulfilled" => Some("partial".to_owned()),
        _ => Some(word),
    }
}

/// One text with commas in a webhook, a list in the API.
fn tags(body: &Value, at: &str) -> Vec<String> {
    let one = line_text(body, at);
    let many = present(body, at).and_then(Value::as_array).map_or(0, Vec::len);
    let listed = (0..many).map(|index| line_text(body, &format!("{at}/{index}")));
    let split = one.split(',').map(|tag| tag.trim().to_owned());
    listed.chain(split).filter(|tag| !tag.is_empty()).collect()
}

fn customer_name(body: &Value, parts: &[&str]) -> Option<String> {
    let parts: Vec<String> = parts.iter().map(|at| line_text(body, at)).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn lines(body: &Value, shape: &Shape) -> Result<Vec<OrderLine>, OrderError> {
    let items = present(body, shape.lines).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let numbered = items.iter().enumerate();
    let lines = numbered.map(|(index, item)| line(item, &shape.line, &format!("{}/{index}", shape.lines)));
    lines.filter(|line| line.as_ref().map_or(true, |line| line.quantity > 0)).collect()
}

fn line(item: &Value, shape: &LineShape, at: &str) -> Result<OrderLine, OrderError> {
    let missing = || OrderError::Missing { field: format!("{at}/quantity") };
    let quantity = shape.quantity.iter().find_map(|name| present(item, name)?.as_u64()).ok_or_else(missing)?;
    let price = present(item, shape.price).map(|value| money(value, format!("{at}{}", shape.price))).transpose()?;
    Ok(OrderLine {
        title: line_text(item, shape.title),
        variant: line_text(item, shape.variant),
        sku: line_text(item, shape.sku),
        quantity,
        price,
    })
}

/// Reads RFC 3339 with any offset.
pub(super) fn read_time(text: &str) -> Option<Timestamp> {
    text.trim().parse::<jiff::Timestamp>().ok().map(|at| Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read must have been asked for.
    #[test]
    fn the_selection_names_every_field_that_is_read() {
        let asked: Vec<&str> = ORDER_FIELDS.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let shape = GRAPHQL;
        let scalars = [
            shape.id,
            shape.name,
            shape.created_at,
            shape.updated_at,
            shape.currency,
            shape.financial_status,
            shape.fulfillment_status,
            shape.cancelled_at,
            shape.test,
            shape.tags,
            shape.note,
            shape.lines,
            shape.lines_cut.unwrap(),
            shape.line.title,
            shape.line.variant,
            shape.line.sku,
            shape.line.price,
        ];
        let lists = [&shape.total[..], shape.phones, shape.emails, &shape.line.quantity].concat();
        let names = shape.customer_names.concat();
        for pointer in scalars.into_iter().chain(lists).chain(names) {
            for name in pointer.split('/').skip(1) {
                assert!(asked.contains(&name), "{pointer}: {name} is not selected");
            }
        }
        assert_eq!(ORDER_FIELDS.matches('{').count(), ORDER_FIELDS.matches('}').count());
    }
}
