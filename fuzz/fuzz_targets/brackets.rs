//! Any bytes as a form body: no panic, no deep tree, the same form each time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tambour::source::brackets::{DEPTH_MAX, parse};

fuzz_target!(|body: &[u8]| {
    let form = parse(body);
    assert_eq!(form, parse(body));
    assert!(depth(&Value::Object(form.tree)) <= DEPTH_MAX);
});

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(members) => 1 + members.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
