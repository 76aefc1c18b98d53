//! amoCRM's shapes, as far as we read them.
//!
//! Source: amoCRM API v4 reference, read 2026-11, and recorded answers in
//! `tests/data/amocrm-api`. Ids are JSON numbers; times are unix seconds;
//! `custom_fields_values` is an array or null; a collection's items are under
//! `_embedded.<name>`, and `_links.next` is there while more pages are.

use serde::Deserialize;
use serde_json::Value;

use crate::client::amocrm::{Account, Contact, CrmTask, CustomValue, Field, Lead, Note, Pipeline, Status, User};
use crate::domain::Timestamp;

/// A page of a collection, or the answer to a change of one.
#[derive(Deserialize)]
pub(super) struct WirePage {
    #[serde(rename = "_links", default)]
    links: Value,
    #[serde(rename = "_embedded")]
    embedded: Value,
}

impl WirePage {
    /// The items of that name, taken out; `None` when the page is about something else.
    pub(super) fn take_items(&mut self, name: &str) -> Option<Vec<Value>> {
        match self.embedded.get_mut(name)?.take() {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn has_next(&self) -> bool {
        self.links.get("next").is_some_and(|next| !next.is_null())
    }
}

/// The id of an item of any collection.
pub(super) fn id_of(item: &Value) -> Option<u64> {
    item.get("id")?.as_u64()
}

#[derive(Deserialize)]
pub(super) struct WireAccount {
    id: u64,
    currency: String,
    subdomain: String,
}

impl WireAccount {
    pub(super) fn into_account(self) -> Account {
        Account { id: self.id, currency: self.currency, subdomain: self.subdomain }
    }
}

#[derive(Deserialize)]
pub(super) struct WirePipeline {
    id: u64,
    name: String,
    #[serde(default)]
    is_main: bool,
    #[serde(rename = "_embedded")]
    embedded: WireStatuses,
}

#[derive(Deserialize)]
struct WireStatuses {
    statuses: Vec<WireNamed>,
}

#[derive(Deserialize)]
pub(super) struct WireNamed {
    id: u64,
    name: String,
}

impl WirePipeline {
    pub(super) fn into_pipeline(self) -> Pipeline {
        let statuses = self.embedded.statuses.into_iter().map(|s| Status { id: s.id, name: s.name }).collect();
        Pipeline { id: self.id, name: self.name, is_main: self.is_main, statuses }
    }
}

impl WireNamed {
    pub(super) fn into_user(self) -> User {
        User { id: self.id, name: self.name }
    }
}

#[derive(Deserialize)]
pub(super) struct WireField {
    id: u64,
    name: String,
    code: Option<String>,
    #[serde(rename = "type")]
    kind: String,
}

impl WireField {
    pub(super) fn into_field(self) -> Field {
        let code = self.code.filter(|code| !code.is_empty());
        Field { id: self.id, name: self.name, code, kind: self.kind }
    }
}

#[derive(Deserialize)]
pub(super) struct WireLead {
    id: u64,
    name: Option<String>,
    price: Option<i64>,
    status_id: u64,
    pipeline_id: u64,
    responsible_user_id: u64,
    created_at: i64,
    updated_at: i64,
    #[serde(default)]
    is_deleted: bool,
    custom_fields_values: Option<Vec<WireCustom>>,
    #[serde(rename = "_embedded", default)]
    embedded: WireLinks,
}

/// Entities tied to this one; a kind that was not asked for is absent.
#[derive(Default, Deserialize)]
struct WireLinks {
    #[serde(default)]
    contacts: Vec<WireLink>,
    #[serde(default)]
    leads: Vec<WireLink>,
}

#[derive(Deserialize)]
struct WireLink {
    id: u64,
    #[serde(default)]
    is_main: bool,
}

#[derive(Deserialize)]
struct WireCustom {
    field_id: u64,
    field_code: Option<String>,
    #[serde(default)]
    values: Vec<WireValue>,
}

#[derive(Deserialize)]
struct WireValue {
    #[serde(default)]
    value: Value,
}

impl WireLead {
    /// `None` for a deal in the bin.
    pub(super) fn into_lead(self) -> Option<Lead> {
        if self.is_deleted {
            return None;
        }
        let mut contacts = self.embedded.contacts;
        contacts.sort_by_key(|contact| !contact.is_main);
        Some(Lead {
            id: self.id,
            name: self.name.unwrap_or_default(),
            price: self.price.unwrap_or_default(),
            status_id: self.status_id,
            pipeline_id: self.pipeline_id,
            responsible_user_id: self.responsible_user_id,
            created_at: Timestamp::from_secs(self.created_at),
            updated_at: Timestamp::from_secs(self.updated_at),
            custom: custom_values(self.custom_fields_values),
            contact_ids: contacts.into_iter().map(|contact| contact.id).collect(),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct WireContact {
    id: u64,
    name: Option<String>,
    responsible_user_id: u64,
    #[serde(default)]
    is_deleted: bool,
    custom_fields_values: Option<Vec<WireCustom>>,
    #[serde(rename = "_embedded", default)]
    embedded: WireLinks,
}

impl WireContact {
    /// `None` for a contact in the bin.
    pub(super) fn into_contact(self) -> Option<Contact> {
        if self.is_deleted {
            return None;
        }
        let custom = custom_values(self.custom_fields_values);
        let of_code = |code| {
            let values = custom.iter().filter(|value| value.code.as_deref() == Some(code));
            values.map(|value| value.text.clone()).collect()
        };
        Some(Contact {
            id: self.id,
            name: self.name.unwrap_or_default(),
            phones: of_code("PHONE"),
            emails: of_code("EMAIL"),
            responsible_user_id: self.responsible_user_id,
            lead_ids: self.embedded.leads.into_iter().map(|lead| lead.id).collect(),
        })
    }
}

fn custom_values(fields: Option<Vec<WireCustom>>) -> Vec<CustomValue> {
    let mut custom = Vec::new();
    for field in fields.into_iter().flatten() {
        for value in field.values {
            let text = match value.value {
                Value::Null => continue,
                Value::String(text) => text,
                other => other.to_string(),
            };
            custom.push(CustomValue { field_id: field.field_id, code: field.field_code.clone(), text });
        }
    }
    custom
}

#[derive(Deserialize)]
pub(super) struct WireNote {
    id: u64,
    #[serde(default)]
    params: WireNoteParams,
}

#[derive(Default, Deserialize)]
struct WireNoteParams {
    text: Option<String>,
}

impl WireNote {
    /// `None` for a note without a text.
    pub(super) fn into_note(self) -> Option<Note> {
        Some(Note { id: self.id, text: self.params.text? })
    }
}

#[derive(Deserialize)]
pub(super) struct WireTask {
    id: u64,
    text: Option<String>,
}

impl WireTask {
    pub(super) fn into_crm_task(self) -> CrmTask {
        CrmTask { id: self.id, text: self.text.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ids beyond 2^53 stay exact, and a value's JSON type does not matter.
    #[test]
    fn odd_values_are_read() {
        let lead = json!({
            "id": u64::MAX, "name": null, "price": null, "status_id": 1, "pipeline_id": 2, "responsible_user_id": 3,
            "created_at": 4, "updated_at": 5,
            "custom_fields_values": [
                {"field_id": 1, "field_code": "A", "values": [{"value": 912_345_678_901_234_567_u64}, {"value": true}]},
                {"field_id": 2, "field_code": null, "values": [{"value": {"b": 1}}, {"value": null}, {}]},
            ],
        });
        let read = |lead: &Value| serde_json::from_value::<WireLead>(lead.clone()).map(WireLead::into_lead);
        let got = read(&lead).unwrap().unwrap();
        assert_eq!((got.id, got.name.as_str(), got.price), (u64::MAX, "", 0));
        let custom: Vec<_> = got.custom.iter().map(|v| (v.field_id, v.code.as_deref(), v.text.as_str())).collect();
        let expected = [(1, Some("A"), "912345678901234567"), (1, Some("A"), "true"), (2, None, "{\"b\":1}")];
        assert_eq!(custom, expected);

        let mut wrong = lead.clone();
        wrong["id"] = json!("50000001");
        assert!(read(&wrong).is_err());
        let mut deleted = lead;
        deleted["is_deleted"] = json!(true);
        assert_eq!(read(&deleted).unwrap(), None);
    }
}
