//! What a change sends: our shapes and the JSON made of them.
//!
//! `to_json` gives the whole body of the request, so that it can be stored
//! beside the intent. Collections take an array, here always of one item, so
//! that an answer says nothing about other items (amoCRM API v4 reference,
//! read 2026-11).

use serde_json::{Value, json};

use crate::domain::Timestamp;

/// A custom field, by what names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRef {
    /// By its code.
    Code(String),
    /// By its id.
    Id(u64),
}

/// A deal to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLead {
    /// Its name.
    pub name: String,
    /// Its sum in whole units.
    pub price: i64,
    /// Its pipeline.
    pub pipeline_id: u64,
    /// Its stage.
    pub status_id: u64,
    /// Its responsible user.
    pub responsible_user_id: u64,
    /// Values of custom fields; an empty text sets nothing.
    pub custom: Vec<(FieldRef, String)>,
    /// Its main contact.
    pub contact_id: Option<u64>,
}

impl NewLead {
    /// The body of the request.
    pub fn to_json(&self) -> Value {
        let custom = self.custom.iter().filter(|(_, text)| !text.is_empty());
        json!([object([
            ("name", Some(json!(self.name))),
            ("price", Some(json!(self.price))),
            ("pipeline_id", Some(json!(self.pipeline_id))),
            ("status_id", Some(json!(self.status_id))),
            ("responsible_user_id", Some(json!(self.responsible_user_id))),
            ("custom_fields_values", list(custom.map(|(field, text)| custom_value(field, text)))),
            ("_embedded", self.contact_id.map(|id| json!({"contacts": [{"id": id, "is_main": true}]}))),
        ])])
    }
}

/// Where a deal stands; a move always names both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The pipeline.
    pub pipeline_id: u64,
    /// The stage in it.
    pub status_id: u64,
}

/// What to set on a deal; what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeadPatch {
    /// The sum in whole units.
    pub price: Option<i64>,
    /// The stage.
    pub stage: Option<Stage>,
    /// Values of custom fields, each replacing all values of its field; an empty text clears it.
    pub custom: Vec<(FieldRef, String)>,
}

impl LeadPatch {
    /// Whether it sets nothing, so that it need not be sent.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The body of the request.
    pub fn to_json(&self) -> Value {
        object([
            ("price", self.price.map(Value::from)),
            ("pipeline_id", self.stage.map(|stage| json!(stage.pipeline_id))),
            ("status_id", self.stage.map(|stage| json!(stage.status_id))),
            ("custom_fields_values", list(self.custom.iter().map(|(field, text)| custom_value(field, text)))),
        ])
    }
}

/// A person to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewContact {
    /// The name.
    pub name: String,
    /// The phone.
    pub phone: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// The responsible user.
    pub responsible_user_id: u64,
}

impl NewContact {
    /// The body of the request.
    pub fn to_json(&self) -> Value {
        let reach = [("PHONE", &self.phone), ("EMAIL", &self.email)];
        let values = reach.into_iter().filter_map(|(code, value)| {
            let value = value.as_ref()?;
            Some(json!({"field_code": code, "values": [{"value": value, "enum_code": "WORK"}]}))
        });
        json!([object([
            ("name", Some(json!(self.name))),
            ("responsible_user_id", Some(json!(self.responsible_user_id))),
            ("custom_fields_values", list(values)),
        ])])
    }
}

/// A text note to put on a deal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNote {
    /// The deal.
    pub lead_id: u64,
    /// The text.
    pub text: String,
}

impl NewNote {
    /// The body of the request.
    pub fn to_json(&self) -> Value {
        json!([{"note_type": "common", "params": {"text": self.text}}])
    }
}

/// A CRM task to give to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCrmTask {
    /// The deal that it belongs to.
    pub lead_id: Option<u64>,
    /// What to do.
    pub text: String,
    /// When it is due; sent in whole seconds.
    pub complete_till: Timestamp,
    /// Who gets it.
    pub responsible_user_id: u64,
}

impl NewCrmTask {
    /// The body of the request.
    pub fn to_json(&self) -> Value {
        json!([object([
            ("text", Some(json!(self.text))),
            ("complete_till", Some(json!(self.complete_till.as_secs()))),
            ("responsible_user_id", Some(json!(self.responsible_user_id))),
            ("entity_id", self.lead_id.map(Value::from)),
            ("entity_type", self.lead_id.map(|_| json!("leads"))),
        ])])
    }
}

/// A custom field of deals to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewField {
    /// Its code, by which we find it again.
    pub code: String,
    /// What people see.
    pub name: String,
    /// Its type over there: `text`, `numeric`.
    pub kind: String,
}

impl NewField {
    /// The body of the request.
    pub fn to_json(&self) -> Value {
        json!([{"name": self.name, "code": self.code, "type": self.kind}])
    }
}

/// A contact to tie to a deal that has none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContactLink {
    /// The deal.
    pub lead_id: u64,
    /// The contact.
    pub contact_id: u64,
}

impl ContactLink {
    /// The body of the request.
    pub fn to_json(self) -> Value {
        json!([{"to_entity_id": self.contact_id, "to_entity_type": "contacts"}])
    }
}

/// An object of the fields that are there.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// An array, absent when it has nothing.
fn list(items: impl Iterator<Item = Value>) -> Option<Value> {
    let items: Vec<Value> = items.collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

/// `null` instead of values clears a field (official PHP client, `NullCustomFieldValueCollection`).
fn custom_value(field: &FieldRef, text: &str) -> Value {
    let values = if text.is_empty() { Value::Null } else { json!([{"value": text}]) };
    match field {
        FieldRef::Code(code) => json!({"field_code": code, "values": values}),
        FieldRef::Id(id) => json!({"field_id": id, "values": values}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_what_the_reference_says() {
        let custom = || vec![(FieldRef::Code("EXT".to_owned()), "shop-1".to_owned()), (FieldRef::Id(7), String::new())];
        let mut lead = NewLead {
            name: "Заказ #1".to_owned(),
            price: 4980,
            pipeline_id: 1,
            status_id: 2,
            responsible_user_id: 3,
            custom: custom(),
            contact_id: Some(18_446_744_073_709_551_615),
        };
        let full = json!([{
            "name": "Заказ #1", "price": 4980, "pipeline_id": 1, "status_id": 2, "responsible_user_id": 3,
            "custom_fields_values": [{"field_code": "EXT", "values": [{"value": "shop-1"}]}],
            "_embedded": {"contacts": [{"id": 18_446_744_073_709_551_615_u64, "is_main": true}]},
        }]);
        assert_eq!(lead.to_json(), full);
        (lead.custom, lead.contact_id) = (Vec::new(), None);
        let bare = json!([{
            "name": "Заказ #1", "price": 4980, "pipeline_id": 1, "status_id": 2, "responsible_user_id": 3,
        }]);
        assert_eq!(lead.to_json(), bare);

        let mut patch = LeadPatch::default();
        assert!(patch.is_empty());
        assert_eq!(patch.to_json(), json!({}));
        (patch.price, patch.stage) = (Some(-1), Some(Stage { pipeline_id: 1, status_id: 142 }));
        patch.custom = custom();
        assert!(!patch.is_empty());
        let expected = json!({
            "price": -1, "pipeline_id": 1, "status_id": 142,
            "custom_fields_values": [
                {"field_code": "EXT", "values": [{"value": "shop-1"}]}, {"field_id": 7, "values": null},
            ],
        });
        assert_eq!(patch.to_json(), expected);
    }

    #[test]
    fn bodies_around_a_deal() {
        let mut contact = NewContact {
            name: "Анна".to_owned(),
            phone: Some("+79000000001".to_owned()),
            email: None,
            responsible_user_id: 3,
        };
        let phone = json!({"field_code": "PHONE", "values": [{"value": "+79000000001", "enum_code": "WORK"}]});
        let expected = json!([{"name": "Анна", "responsible_user_id": 3, "custom_fields_values": [phone]}]);
        assert_eq!(contact.to_json(), expected);
        contact.phone = None;
        assert_eq!(contact.to_json(), json!([{"name": "Анна", "responsible_user_id": 3}]));

        let note = NewNote { lead_id: 5, text: "a\n[tambour:x]".to_owned() };
        assert_eq!(note.to_json(), json!([{"note_type": "common", "params": {"text": "a\n[tambour:x]"}}]));

        let mut task = NewCrmTask {
            lead_id: Some(5),
            text: "call".to_owned(),
            complete_till: Timestamp::from_millis(1_796_036_400_999),
            responsible_user_id: 3,
        };
        let expected = json!([{
            "text": "call", "complete_till": 1_796_036_400, "responsible_user_id": 3,
            "entity_id": 5, "entity_type": "leads",
        }]);
        assert_eq!(task.to_json(), expected);
        task.lead_id = None;
        assert_eq!(task.to_json()[0].as_object().unwrap().len(), 3);

        let field = NewField { code: "EXT".to_owned(), name: "№".to_owned(), kind: "text".to_owned() };
        assert_eq!(field.to_json(), json!([{"name": "№", "code": "EXT", "type": "text"}]));
        let link = ContactLink { lead_id: 5, contact_id: 6 };
        assert_eq!(link.to_json(), json!([{"to_entity_id": 6, "to_entity_type": "contacts"}]));
    }
}
