//! The sandbox against the recorded shapes, its faults, its people and the wire.

mod calls;
mod faults;
mod people;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::ManualClock;
use crate::domain::Timestamp;
use crate::sandbox::{Reply, Request, Sandbox, Settings};

/// A sandbox with a clock of its own at the time of the recorded samples.
struct Fixture {
    sandbox: Sandbox,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        let clock = ManualClock::starting_at(Timestamp::from_secs(1_796_036_400));
        Self { sandbox: Sandbox::new(clock.clone(), Settings::default()), clock }
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Reply {
        let headers = [
            ("host", "tambourtest.amocrm.ru"),
            ("authorization", "Bearer sandbox-amocrm-token"),
            ("x-shopify-access-token", "sandbox-shop-token"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let url = format!("https://tambourtest.amocrm.ru{path}");
        self.sandbox.handle(&Request::new(method, &url, headers, Bytes::copy_from_slice(body.as_bytes())))
    }

    fn get(&self, path: &str) -> (u16, Value) {
        parsed(&self.call("GET", path, ""))
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        parsed(&self.call("POST", path, &body.to_string()))
    }

    fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        parsed(&self.call("PATCH", path, &body.to_string()))
    }

    /// Makes one thing and gives its id.
    fn made(&self, path: &str, name: &str, item: &Value) -> u64 {
        let (status, body) = self.post(path, &json!([item]));
        assert_eq!(status, 200, "{body}");
        body["_embedded"][name][0]["id"].as_u64().unwrap()
    }

    fn contact(&self, phone: &str) -> u64 {
        let values = json!([{"field_code": "PHONE", "values": [{"value": phone, "enum_code": "MOB"}]},
            {"field_code": "EMAIL", "values": [{"value": "anna.test@example.com"}]}]);
        self.made("/api/v4/contacts", "contacts", &json!({"name": "Анна Тестова", "custom_fields_values": values}))
    }

    fn lead(&self, name: &str) -> u64 {
        self.made("/api/v4/leads", "leads", &json!({"name": name}))
    }
}

fn parsed(reply: &Reply) -> (u16, Value) {
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or(Value::Null))
}

/// The ids of a list answer.
fn ids((status, body): &(u16, Value), name: &str) -> Vec<u64> {
    assert!(matches!(status, 200 | 204), "{status} {body}");
    assert_eq!(*status == 204, body.is_null(), "204 is empty, 200 is not");
    body["_embedded"][name].as_array().into_iter().flatten().map(|item| item["id"].as_u64().unwrap()).collect()
}

/// Both sides must have the same members with values of the same types; `null` and an empty array fit anything.
fn assert_same_shape(ours: &Value, recorded: &str) {
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    compare(ours, &recorded, "$");
}

fn compare(ours: &Value, recorded: &Value, path: &str) {
    match (ours, recorded) {
        (Value::Object(a), Value::Object(b)) => {
            let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(a), names(b), "members of {path}");
            for (name, value) in a {
                compare(value, &b[name], &format!("{path}.{name}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if let (Some(a), Some(b)) = (a.first(), b.first()) {
                compare(a, b, &format!("{path}[0]"));
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        _ => assert_eq!(std::mem::discriminant(ours), std::mem::discriminant(recorded), "type of {path}: {ours}"),
    }
}

/// A recorded answer.
macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../tests/data/", $name))
    };
}
use recorded;
