//! Reading what a client writes: items, their values, and all that is wrong with them.

use serde_json::{Map, Value};

use crate::sandbox::amocrm::answer::{BadItem, Problem, Wrong};
use crate::sandbox::desk::Desk;
use crate::sandbox::message::Request;

/// The most items of one request (amoCRM API v4 reference, "limitations").
const ITEMS_MAX: usize = 250;

/// One item of a request, read value by value.
pub(super) struct Form<'a> {
    item: &'a Map<String, Value>,
    request_id: String,
    errors: Vec<(Wrong, String)>,
}

impl<'a> Form<'a> {
    /// A value, absent when it is not there.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.item.get(name)
    }

    /// Notes that the value at `path` is wrong.
    pub(super) fn refuse(&mut self, fault: Wrong, path: impl Into<String>) {
        self.errors.push((fault, path.into()));
    }

    /// A text; another type is refused.
    pub(super) fn text(&mut self, name: &str) -> Option<&'a str> {
        let value = self.value(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.refuse(Wrong::InvalidType, name);
        }
        text
    }

    /// A whole number; another type is refused.
    pub(super) fn number(&mut self, name: &str) -> Option<u64> {
        let value = self.value(name)?;
        let number = value.as_u64();
        if number.is_none() {
            self.refuse(Wrong::InvalidType, name);
        }
        number
    }

    /// What [`Form::text`] and [`Form::number`] gave, refused when it was absent.
    pub(super) fn required<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if self.value(name).is_none() {
            self.refuse(Wrong::FieldMissing, name);
        }
        value
    }

    /// The responsible user, who must exist; `present` when not sent.
    pub(super) fn responsible(&mut self, desk: &Desk<'_>, present: u64) -> u64 {
        let Some(id) = self.number("responsible_user_id") else { return present };
        if !desk.settings.is_user(id) {
            self.refuse(Wrong::NotSupportedChoice, "responsible_user_id");
        }
        id
    }
}

/// The items of a request: an array of objects.
pub(super) fn items(request: &Request) -> Result<Vec<Map<String, Value>>, Problem> {
    match body(request)? {
        Value::Array(items) if (1..=ITEMS_MAX).contains(&items.len()) => items.into_iter().map(object).collect(),
        _ => Err(Problem::BadRequest(format!("The body must be an array of 1 to {ITEMS_MAX} objects."))),
    }
}

/// The one item of a request.
pub(super) fn item(request: &Request) -> Result<Map<String, Value>, Problem> {
    object(body(request)?)
}

/// The items of a request that may also be one bare object; says whether it was bare.
pub(super) fn items_or_one(request: &Request) -> Result<(Vec<Map<String, Value>>, bool), Problem> {
    match body(request)? {
        Value::Object(item) => Ok((vec![item], true)),
        _ => items(request).map(|items| (items, false)),
    }
}

/// Reads each item; all or none are good.
///
/// Gives each with its `request_id`, which is its place when none was sent.
pub(super) fn read_all<'a, T>(
    items: &'a [Map<String, Value>],
    mut read: impl FnMut(&mut Form<'a>) -> T,
) -> Result<Vec<(String, T)>, Problem> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (place, item) in items.iter().enumerate() {
        let request_id =
            item.get("request_id").and_then(Value::as_str).map_or_else(|| place.to_string(), str::to_owned);
        let mut form = Form { item, request_id, errors: Vec::new() };
        let thing = read(&mut form);
        if form.errors.is_empty() {
            good.push((form.request_id, thing));
        } else {
            bad.push(BadItem { request_id: form.request_id, errors: form.errors });
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(Problem::Invalid(bad)) }
}

fn body(request: &Request) -> Result<Value, Problem> {
    serde_json::from_slice(request.body()).map_err(|_| Problem::BadRequest("The body is not JSON.".to_owned()))
}

fn object(value: Value) -> Result<Map<String, Value>, Problem> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Problem::BadRequest("An object was expected.".to_owned())),
    }
}
