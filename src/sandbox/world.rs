//! What exists in the emulated account and shop.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sandbox::desk::Moment;
use crate::sandbox::kept::Kept;

/// Everything that exists, by id.
#[derive(Debug)]
pub(super) struct World {
    pub(super) fields: BTreeMap<u64, Field>,
    pub(super) leads: BTreeMap<u64, Kept<Lead>>,
    pub(super) contacts: BTreeMap<u64, Kept<Contact>>,
    pub(super) notes: BTreeMap<u64, Kept<Note>>,
    pub(super) tasks: BTreeMap<u64, Kept<Task>>,
    /// Orders in REST shape, by order id.
    pub(super) orders: BTreeMap<u64, Kept<Value>>,
}

/// The kinds of thing that have custom fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Lead,
    Contact,
}

/// A custom field's definition.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) entity: Entity,
    pub(super) name: String,
    pub(super) code: Option<String>,
    pub(super) kind: FieldKind,
    /// Choices of `select` and `multitext`, id and value; empty for other types.
    pub(super) choices: Vec<(u64, String)>,
}

/// The emulated types of custom fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Text,
    Textarea,
    Url,
    Numeric,
    Monetary,
    Checkbox,
    Date,
    DateTime,
    Select,
    /// Phones and e-mails; built in, cannot be made through the API.
    Multitext,
}

/// Field id to its values: objects with `value` and, for choices, `enum_id` and `enum_code`.
pub(super) type FieldValues = BTreeMap<u64, Vec<Value>>;

#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    pub(super) name: String,
    /// Hundredths of the account's currency.
    pub(super) price_minor: u64,
    pub(super) pipeline_id: u64,
    pub(super) status_id: u64,
    pub(super) responsible_user_id: u64,
    pub(super) stamps: Stamps,
    /// Unix seconds of the move to won or lost; absent while open.
    pub(super) closed_at: Option<i64>,
    pub(super) is_deleted: bool,
    pub(super) fields: FieldValues,
    pub(super) contacts: Vec<Link>,
}

/// A lead's link to a contact; one of a lead's links is the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) contact_id: u64,
    pub(super) is_main: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Contact {
    pub(super) name: String,
    pub(super) first_name: String,
    pub(super) last_name: String,
    pub(super) responsible_user_id: u64,
    pub(super) stamps: Stamps,
    pub(super) is_deleted: bool,
    pub(super) fields: FieldValues,
}

#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) lead_id: u64,
    pub(super) note_type: String,
    /// The type's own object; texts are in `text`.
    pub(super) params: Value,
    pub(super) stamps: Stamps,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Absent for a task about nothing in particular.
    pub(super) lead_id: Option<u64>,
    pub(super) text: String,
    pub(super) task_type_id: u64,
    /// Unix seconds.
    pub(super) complete_till: i64,
    pub(super) responsible_user_id: u64,
    pub(super) stamps: Stamps,
}

/// Who made and changed a thing, and when, in unix seconds; user 0 is the robot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamps {
    pub(super) created_by: u64,
    pub(super) updated_by: u64,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

impl Stamps {
    pub(super) fn new(by: u64, now: Moment) -> Self {
        let at = now.wall.as_secs();
        Self { created_by: by, updated_by: by, created_at: at, updated_at: at }
    }

    pub(super) fn touch(&mut self, by: u64, now: Moment) {
        (self.updated_by, self.updated_at) = (by, now.wall.as_secs());
    }
}

/// The built-in fields of contacts, with the ids of the recorded samples.
pub(super) const PHONE_FIELD: u64 = 702_001;
/// See [`PHONE_FIELD`].
pub(super) const EMAIL_FIELD: u64 = 702_002;

/// First ids, one below: those of the recorded samples.
const LEAD_IDS: u64 = 50_000_000;
const CONTACT_IDS: u64 = 60_000_000;
const NOTE_IDS: u64 = 40_000_000;
const TASK_IDS: u64 = 30_000_000;
const FIELD_IDS: u64 = 703_000;
const CHOICE_IDS: u64 = 503_000;

impl World {
    /// An account with nothing in it but the built-in fields.
    pub(super) fn new() -> Self {
        let built_in = |name: &str, code: &str, first_choice: u64, choices: &[&str]| Field {
            entity: Entity::Contact,
            name: name.to_owned(),
            code: Some(code.to_owned()),
            kind: FieldKind::Multitext,
            choices: (first_choice..).zip(choices.iter().map(|&choice| choice.to_owned())).collect(),
        };
        let phone = built_in("Телефон", "PHONE", 502_001, &["WORK", "WORKDD", "MOB", "FAX", "HOME", "OTHER"]);
        let email = built_in("Email", "EMAIL", 502_011, &["WORK", "PRIV", "OTHER"]);
        Self {
            fields: BTreeMap::from([(PHONE_FIELD, phone), (EMAIL_FIELD, email)]),
            leads: BTreeMap::new(),
            contacts: BTreeMap::new(),
            notes: BTreeMap::new(),
            tasks: BTreeMap::new(),
            orders: BTreeMap::new(),
        }
    }

    pub(super) fn add_lead(&mut self, lead: Lead, now: Moment) -> u64 {
        insert(&mut self.leads, LEAD_IDS, Kept::new(lead, now.at))
    }

    pub(super) fn add_contact(&mut self, contact: Contact, now: Moment) -> u64 {
        insert(&mut self.contacts, CONTACT_IDS, Kept::new(contact, now.at))
    }

    pub(super) fn add_note(&mut self, note: Note, now: Moment) -> u64 {
        insert(&mut self.notes, NOTE_IDS, Kept::new(note, now.at))
    }

    pub(super) fn add_task(&mut self, task: Task, now: Moment) -> u64 {
        insert(&mut self.tasks, TASK_IDS, Kept::new(task, now.at))
    }

    /// Adds a field; the choices get ids of their own.
    pub(super) fn add_field(&mut self, mut field: Field) -> u64 {
        let given = self.fields.values().flat_map(|field| &field.choices).map(|(id, _)| *id);
        let last = given.fold(CHOICE_IDS, u64::max);
        for (id, choice) in (last + 1..).zip(&mut field.choices) {
            choice.0 = id;
        }
        insert(&mut self.fields, FIELD_IDS, field)
    }

    /// A lead that was not deleted.
    pub(super) fn lead(&self, id: u64) -> Option<&Lead> {
        self.leads.get(&id).map(Kept::now).filter(|lead| !lead.is_deleted)
    }

    /// A contact that was not deleted.
    pub(super) fn contact(&self, id: u64) -> Option<&Contact> {
        self.contacts.get(&id).map(Kept::now).filter(|contact| !contact.is_deleted)
    }

    /// All contacts that were not deleted.
    pub(super) fn contacts(&self) -> impl Iterator<Item = (u64, &Contact)> {
        self.contacts.iter().map(|(&id, kept)| (id, kept.now())).filter(|(_, contact)| !contact.is_deleted)
    }

    /// The leads, not deleted, that link to a contact.
    pub(super) fn leads_of(&self, contact_id: u64) -> impl Iterator<Item = u64> {
        let leads = self.leads.iter().map(|(&id, kept)| (id, kept.now())).filter(|(_, lead)| !lead.is_deleted);
        leads.filter(move |(_, lead)| lead.contacts.iter().any(|link| link.contact_id == contact_id)).map(|(id, _)| id)
    }

    /// Puts a changed state of an existing lead in place.
    pub(super) fn change_lead(&mut self, id: u64, lead: Lead, now: Moment) {
        if let Some(kept) = self.leads.get_mut(&id) {
            kept.change(lead, now.at);
        }
    }

    pub(super) fn change_contact(&mut self, id: u64, contact: Contact, now: Moment) {
        if let Some(kept) = self.contacts.get_mut(&id) {
            kept.change(contact, now.at);
        }
    }

    /// The texts of a built-in field of a contact: its phones or e-mails.
    pub(super) fn texts(contact: &Contact, field: u64) -> impl Iterator<Item = &str> {
        contact.fields.get(&field).into_iter().flatten().filter_map(|value| value.get("value")?.as_str())
    }
}

impl Lead {
    /// Adds a link, or changes whether it is the main one; the first link is.
    pub(super) fn link(&mut self, contact_id: u64, is_main: bool) {
        let is_main = is_main || self.contacts.iter().all(|link| link.contact_id == contact_id);
        if is_main {
            self.contacts.iter_mut().for_each(|link| link.is_main = false);
        }
        match self.contacts.iter_mut().find(|link| link.contact_id == contact_id) {
            Some(link) => link.is_main |= is_main,
            None => self.contacts.push(Link { contact_id, is_main }),
        }
    }
}

/// Puts a thing under the next id after all that were given.
fn insert<T>(things: &mut BTreeMap<u64, T>, first: u64, thing: T) -> u64 {
    let id = things.last_key_value().map_or(first, |(&id, _)| id.max(first)) + 1;
    things.insert(id, thing);
    id
}
