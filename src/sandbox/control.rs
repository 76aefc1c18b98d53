//! The switches and counts over HTTP, for a sandbox in another process.

use std::collections::BTreeMap;

use serde_json::json;

use crate::sandbox::amocrm;
use crate::sandbox::door::Sandbox;
use crate::sandbox::message::{Reply, Request};

const JSON: &str = "application/json";

/// Handles what follows `/_sandbox/`; needs no token, because only loopback is served.
pub(super) fn handle(sandbox: &Sandbox, command: &str, request: &Request) -> Reply {
    match (request.method(), command) {
        ("POST", "faults") => match serde_json::from_slice(request.body()) {
            Ok(faults) => {
                sandbox.set_faults(faults);
                Reply::empty(204)
            }
            Err(error) => Reply::json(400, JSON, &json!({"detail": error.to_string()})),
        },
        ("POST", "release") => {
            sandbox.release();
            Reply::empty(204)
        }
        ("GET", "counts") => counts(sandbox),
        _ => amocrm::no_such_path(),
    }
}

fn counts(sandbox: &Sandbox) -> Reply {
    let counts = sandbox.counts();
    let calls: BTreeMap<&str, u64> = counts.calls.iter().map(|(operation, &n)| (operation.as_str(), n)).collect();
    let body = json!({
        "contacts": counts.contacts,
        "leads": counts.leads,
        "notes": counts.notes,
        "tasks": counts.tasks,
        "calls": calls,
    });
    Reply::json(200, JSON, &body)
}
