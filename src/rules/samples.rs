//! Orders, a task and hostile JSON for the tests of this room.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::config::{DealTask, FieldTemplate, HandMade, Move};
use crate::rules::order::Order;
use crate::text::Template;

/// A JSON file below `tests/data/shopify`.
pub(super) fn shopify(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shopify");
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

/// The order #1042 of 4980 RUB, just placed.
pub(super) fn order() -> Order {
    Order::from_webhook(&shopify("orders-create.json")).unwrap()
}

/// A task that makes deals of the sample orders: stage 1, then 2 when paid, and three more moves.
pub(super) fn task() -> DealTask {
    let step = |when: &str, from: &[u64], to| Move { when: when.to_owned(), from: from.to_vec(), to };
    DealTask {
        pipeline_id: 31,
        status_id: 1,
        responsible_user_id: None,
        name: Template::parse("Заказ {{ order.name }}").unwrap(),
        fields: vec![FieldTemplate { field_id: 77, value: Template::parse("{{ order.tags|join(', ') }}").unwrap() }],
        moves: vec![
            step("paid", &[1], 2),
            step("fulfilled", &[2], 142),
            step("cancelled", &[], 143),
            step("refunded", &[142], 143),
        ],
        hand_made: HandMade::Flag,
        test_orders: true,
        field_id_code: "ORDER_ID".to_owned(),
        field_version_code: "ORDER_VERSION".to_owned(),
        field_total_code: "ORDER_TOTAL".to_owned(),
    }
}

/// Any JSON value, some levels deep, with names that our readers look for.
pub(super) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9.e-]{0,22}".prop_map(Value::from),
        Just(Value::from("2026-11-30T14:05:09+03:00")),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..8).prop_map(|pairs| Value::from(Map::from_iter(pairs))),
        ]
    })
}

/// A sample with one of its values replaced by anything.
pub(super) fn spoiled(sample: Value) -> impl Strategy<Value = Value> {
    let mut pointers = Vec::new();
    list(&sample, String::new(), &mut pointers);
    (prop::sample::select(pointers), json()).prop_map(move |(pointer, anything)| {
        let mut body = sample.clone();
        *body.pointer_mut(&pointer).unwrap() = anything;
        body
    })
}

fn list(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| list(inner, format!("{at}/{name}"), into)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| list(inner, format!("{at}/{index}"), into));
        }
        _ => {}
    }
    into.push(at);
}

fn name() -> impl Strategy<Value = String> {
    let known = ["id", "name", "updated_at", "total_price", "line_items", "customer", "tags", "lineItems", "nodes"];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "[a-z]{1,6}"]
}
