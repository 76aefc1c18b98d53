//! Custom fields: definitions, values that are written, and how both look.

use serde_json::{Value, json};

use crate::sandbox::amocrm::answer::{self, Problem, Wrong};
use crate::sandbox::amocrm::asked::Asked;
use crate::sandbox::amocrm::form::{self, Form};
use crate::sandbox::desk::Desk;
use crate::sandbox::message::Reply;
use crate::sandbox::world::{Entity, Field, FieldKind, FieldValues, Stamps, World};

/// The API's words for the types that can be made.
const KINDS: [(&str, FieldKind); 9] = [
    ("text", FieldKind::Text),
    ("textarea", FieldKind::Textarea),
    ("url", FieldKind::Url),
    ("numeric", FieldKind::Numeric),
    ("monetary", FieldKind::Monetary),
    ("checkbox", FieldKind::Checkbox),
    ("date", FieldKind::Date),
    ("date_time", FieldKind::DateTime),
    ("select", FieldKind::Select),
];

impl FieldKind {
    fn word(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("multitext", |(word, _)| word)
    }

    /// Whether searches look into it.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Textarea | Self::Url)
    }
}

impl Entity {
    const fn word(self) -> &'static str {
        match self {
            Self::Lead => "leads",
            Self::Contact => "contacts",
        }
    }
}

pub(super) fn list(desk: &Desk<'_>, entity: Entity) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &[])?;
    let fields = desk.world.fields.iter().filter(|(_, field)| field.entity == entity);
    let hits = fields.map(|(&id, field)| (id, Stamps::default(), field)).collect();
    Ok(asked.page(desk, "custom_fields", hits, |id, field| definition_json(desk, id, field)))
}

/// Makes fields of leads; a code is unique among them.
pub(super) fn create(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let (items, is_bare) = form::items_or_one(desk.request)?;
    let mut codes: Vec<String> = desk.world.fields.values().filter_map(|field| field.code.clone()).collect();
    let fields = form::read_all(&items, |form| read_definition(form, &mut codes))?;
    let mut made = Vec::new();
    for (request_id, field) in fields {
        let id = desk.world.add_field(field);
        if let Some(field) = desk.world.fields.get(&id) {
            let mut body = definition_json(desk, id, field);
            if let Some(body) = body.as_object_mut() {
                body.insert("request_id".to_owned(), request_id.into());
            }
            made.push(body);
        }
    }
    match made.first() {
        Some(only) if is_bare => Ok(answer::hal(only)),
        _ => Ok(answer::written(desk, "leads/custom_fields", "custom_fields", &made)),
    }
}

fn read_definition(form: &mut Form<'_>, codes: &mut Vec<String>) -> Field {
    let name = form.text("name");
    let name = form.required("name", name).unwrap_or_default().to_owned();
    let word = form.text("type");
    let word = form.required("type", word);
    let kind = KINDS.iter().find(|(w, _)| Some(*w) == word).map(|(_, kind)| *kind);
    if word.is_some() && kind.is_none() {
        form.refuse(Wrong::NotSupportedChoice, "type");
    }
    let code = form.text("code").map(str::to_owned);
    if let Some(code) = &code {
        if codes.contains(code) {
            form.refuse(Wrong::NotUnique, "code");
        }
        codes.push(code.clone());
    }
    let enums = form.value("enums").filter(|_| kind == Some(FieldKind::Select)).and_then(Value::as_array);
    let enums = enums.into_iter().flatten();
    let choices: Vec<_> = enums.filter_map(|e| Some((0, e.get("value")?.as_str()?.to_owned()))).collect();
    if kind == Some(FieldKind::Select) && choices.is_empty() {
        form.refuse(Wrong::FieldMissing, "enums");
    }
    Field { entity: Entity::Lead, name, code, kind: kind.unwrap_or(FieldKind::Text), choices }
}

fn definition_json(desk: &Desk<'_>, id: u64, field: &Field) -> Value {
    let is_built_in = field.kind == FieldKind::Multitext;
    let choice = |(sort, (id, value)): (u64, &(u64, String))| json!({"id": id, "value": value, "sort": sort});
    let choices: Vec<Value> = (1..).zip(&field.choices).map(choice).collect();
    json!({
        "id": id,
        "name": field.name,
        "type": field.kind.word(),
        "account_id": desk.settings.account_id,
        "code": field.code,
        "sort": id,
        "is_api_only": false,
        "is_deletable": !is_built_in,
        "is_predefined": is_built_in,
        "enums": if choices.is_empty() { Value::Null } else { Value::Array(choices) },
        "group_id": null,
        "required_statuses": [],
        "entity_type": field.entity.word(),
        "_links": answer::self_link(desk, &format!("{}/custom_fields/{id}", field.entity.word())),
    })
}

/// Takes `custom_fields_values` of an item over into `values`.
///
/// A field that is sent is replaced whole, `null` or `[]` clears it, the others stay.
pub(super) fn read_values(form: &mut Form<'_>, world: &World, entity: Entity, values: &mut FieldValues) {
    let Some(sent) = form.value("custom_fields_values").filter(|sent| !sent.is_null()) else { return };
    let Some(sent) = sent.as_array() else {
        return form.refuse(Wrong::InvalidType, "custom_fields_values");
    };
    for (place, one) in sent.iter().enumerate() {
        let path = format!("custom_fields_values.{place}");
        let Some((id, field)) = named_field(world, entity, one) else {
            form.refuse(Wrong::NotSupportedChoice, format!("{path}.field_id"));
            continue;
        };
        match one.get("values") {
            None => form.refuse(Wrong::FieldMissing, format!("{path}.values")),
            Some(Value::Null) => drop(values.remove(&id)),
            Some(Value::Array(given)) if given.is_empty() => drop(values.remove(&id)),
            Some(Value::Array(given)) => {
                let mut kept = Vec::new();
                for (n, value) in given.iter().enumerate() {
                    match read_value(field, value) {
                        Ok(value) => kept.push(value),
                        Err(wrong) => form.refuse(wrong, format!("{path}.values.{n}.value")),
                    }
                }
                values.insert(id, kept);
            }
            Some(_) => form.refuse(Wrong::InvalidType, format!("{path}.values")),
        }
    }
}

/// The field that `field_id`, else `field_code`, names.
fn named_field<'w>(world: &'w World, entity: Entity, one: &Value) -> Option<(u64, &'w Field)> {
    let mut fields = world.fields.iter().map(|(&id, field)| (id, field)).filter(|(_, field)| field.entity == entity);
    if let Some(wanted) = one.get("field_id") {
        return fields.find(|(id, _)| wanted.as_u64() == Some(*id));
    }
    let code = one.get("field_code")?.as_str()?;
    fields.find(|(_, field)| field.code.as_deref() == Some(code))
}

/// One value as it is kept and shown; numbers are shown as text.
fn read_value(field: &Field, given: &Value) -> Result<Value, Wrong> {
    let value = given.get("value").unwrap_or(&Value::Null);
    let kept = match field.kind {
        FieldKind::Text | FieldKind::Textarea | FieldKind::Url => value.as_str().map(|text| json!({"value": text})),
        FieldKind::Numeric | FieldKind::Monetary => decimal(value).map(|text| json!({"value": text})),
        FieldKind::Checkbox => value.as_bool().map(|on| json!({"value": on})),
        FieldKind::Date | FieldKind::DateTime => seconds(value).map(|secs| json!({"value": secs})),
        FieldKind::Select => {
            let choice = choice(field, given, value.as_str()).ok_or(Wrong::NotSupportedChoice)?;
            Some(json!({"value": choice.1, "enum_id": choice.0, "enum_code": null}))
        }
        FieldKind::Multitext => {
            let kind =
                given.get("enum_code").map_or_else(|| field.choices.first().map(|c| c.1.as_str()), Value::as_str);
            let choice = choice(field, given, kind).ok_or(Wrong::NotSupportedChoice)?;
            value.as_str().map(|text| json!({"value": text, "enum_id": choice.0, "enum_code": choice.1}))
        }
    };
    kept.ok_or(Wrong::InvalidType)
}

/// The choice that `enum_id`, else `word`, names.
fn choice<'f>(field: &'f Field, given: &Value, word: Option<&str>) -> Option<&'f (u64, String)> {
    match given.get("enum_id") {
        Some(wanted) => field.choices.iter().find(|(id, _)| wanted.as_u64() == Some(*id)),
        None => field.choices.iter().find(|(_, value)| Some(value.as_str()) == word),
    }
}

/// The text of a number, or of a text that is one.
fn decimal(value: &Value) -> Option<String> {
    let text =
        value.as_str().map_or_else(|| value.as_number().map(ToString::to_string), |text| Some(text.to_owned()))?;
    let digits = text.strip_prefix('-').unwrap_or(&text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(whole) && is_number(part)).then_some(text)
}

/// Unix seconds of a number, or of an RFC 3339 text.
fn seconds(value: &Value) -> Option<i64> {
    match value.as_str() {
        Some(text) => text.parse().ok().map(jiff::Timestamp::as_second),
        None => value.as_i64(),
    }
}

/// `custom_fields_values` as answers show it: an array, `null` when there are none.
pub(super) fn values_json(world: &World, values: &FieldValues) -> Value {
    let shown = values.iter().filter_map(|(id, values)| {
        let field = world.fields.get(id)?;
        let mut body = json!({
            "field_id": id,
            "field_name": field.name,
            "field_code": field.code,
            "field_type": field.kind.word(),
            "values": values,
        });
        if field.entity == Entity::Lead {
            body.as_object_mut()?.insert("is_computed".to_owned(), false.into());
        }
        Some(body)
    });
    let shown: Vec<Value> = shown.collect();
    if shown.is_empty() { Value::Null } else { Value::Array(shown) }
}

/// The same values as webhooks carry them, as pairs of key and value under `custom_fields`.
///
/// Dates are scalars, checkboxes `1` and `0`; a code stands there for built-in
/// fields only (recorded deliveries, `tests/data/amocrm/leads-status.txt`).
pub(in crate::sandbox) fn hook_values(world: &World, values: &FieldValues) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let known = values.iter().filter_map(|(id, values)| Some((id, world.fields.get(id)?, values)));
    for (place, (id, field, values)) in known.enumerate() {
        let key = format!("[custom_fields][{place}]");
        pairs.push((format!("{key}[id]"), id.to_string()));
        pairs.push((format!("{key}[name]"), field.name.clone()));
        for (n, value) in values.iter().enumerate() {
            let text = value_text(value);
            if matches!(field.kind, FieldKind::Date | FieldKind::DateTime) {
                pairs.push((format!("{key}[values][{n}]"), text));
                continue;
            }
            pairs.push((format!("{key}[values][{n}][value]"), text));
            if let Some(choice) = value.get("enum_id") {
                pairs.push((format!("{key}[values][{n}][enum]"), choice.to_string()));
            }
        }
        if let (FieldKind::Multitext, Some(code)) = (field.kind, &field.code) {
            pairs.push((format!("{key}[code]"), code.clone()));
        }
    }
    pairs
}

/// A value as plain text; a checkbox is `1` or `0`.
pub(in crate::sandbox) fn value_text(value: &Value) -> String {
    match value.get("value") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(on)) => u8::from(*on).to_string(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
