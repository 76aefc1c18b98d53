//! Answers: success, refusals, links.

use serde_json::{Value, json};

use crate::sandbox::desk::Desk;
use crate::sandbox::message::Reply;

const HAL: &str = "application/hal+json";
const PROBLEM: &str = "application/problem+json";

/// Why a call is not done.
#[derive(Debug)]
pub(super) enum Problem {
    /// There is no such entity.
    NotFound,
    /// The request as a whole makes no sense here.
    BadRequest(String),
    /// Items are wrong; the bad ones with all that is wrong in them.
    Invalid(Vec<BadItem>),
}

/// One refused item of a request.
#[derive(Debug)]
pub(super) struct BadItem {
    /// The item's own `request_id`, else its place.
    pub(super) request_id: String,
    /// What is wrong, and the path in the item.
    pub(super) errors: Vec<(Wrong, String)>,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrong {
    NotSupportedChoice,
    FieldMissing,
    InvalidType,
    NotUnique,
}

impl Wrong {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::NotSupportedChoice => ("NotSupportedChoice", "The value you selected is not a valid choice."),
            Self::FieldMissing => ("FieldMissing", "This field is missing."),
            Self::InvalidType => ("InvalidType", "This value is not of the expected type."),
            Self::NotUnique => ("NotUnique", "This value is already used."),
        }
    }
}

impl Problem {
    pub(super) fn into_reply(self) -> Reply {
        match self {
            Self::NotFound => no_such_path(),
            Self::BadRequest(detail) => problem(400, "Bad Request", &detail),
            Self::Invalid(items) => {
                let mut body = problem_json(400, "Bad Request", "Request validation failed");
                if let Some(body) = body.as_object_mut() {
                    body.insert("validation-errors".to_owned(), items.iter().map(BadItem::to_json).collect());
                }
                Reply::json(400, PROBLEM, &body)
            }
        }
    }
}

impl BadItem {
    fn to_json(&self) -> Value {
        let errors = self.errors.iter().map(|(fault, path)| {
            let (code, detail) = fault.words();
            json!({"code": code, "path": path, "detail": detail})
        });
        json!({"request_id": self.request_id, "errors": errors.collect::<Vec<_>>()})
    }
}

/// A successful answer.
pub(super) fn hal(body: &Value) -> Reply {
    Reply::json(200, HAL, body)
}

/// `{"self": {"href": ...}}` for a path under `/api/v4/`.
pub(super) fn self_link(desk: &Desk<'_>, path: &str) -> Value {
    json!({"self": {"href": format!("{}/api/v4/{path}", desk.request.origin())}})
}

/// The link of an entity that was read.
pub(super) fn entity_link(desk: &Desk<'_>, path: &str) -> Value {
    self_link(desk, &format!("{path}?page=1&limit=50"))
}

/// The answer to a write: a collection of what was made or changed, which echoes nothing that was sent.
pub(super) fn written(desk: &Desk<'_>, path: &str, name: &str, items: &[Value]) -> Reply {
    hal(&json!({"_links": self_link(desk, path), "_embedded": {name: items}}))
}

/// 404, for a path and for an entity.
pub(in crate::sandbox) fn no_such_path() -> Reply {
    problem(404, "Not Found", "Page not found.")
}

pub(in crate::sandbox) fn unauthorized() -> Reply {
    problem(401, "Unauthorized", "Неверный логин или пароль")
}

pub(in crate::sandbox) fn too_large() -> Reply {
    problem(413, "Payload Too Large", "The request body is too large.")
}

/// 429; a `Retry-After` header is nowhere documented, a body field is.
pub(in crate::sandbox) fn too_many(retry_after: Option<u64>) -> Reply {
    let detail = "You have sent too many requests in a given amount of time. Please try again later.";
    let mut body = problem_json(429, "Too Many Requests", detail);
    if let (Some(secs), Some(body)) = (retry_after, body.as_object_mut()) {
        body.insert("retry_after".to_owned(), secs.into());
    }
    Reply::json(429, PROBLEM, &body)
}

fn problem(status: u16, title: &str, detail: &str) -> Reply {
    Reply::json(status, PROBLEM, &problem_json(status, title, detail))
}

fn problem_json(status: u16, title: &str, detail: &str) -> Value {
    json!({"title": title, "type": format!("https://httpstatus.es/{status}"), "status": status, "detail": detail})
}
