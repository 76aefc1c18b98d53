//! What is true in the emulated systems, whatever any client thinks.

use std::collections::BTreeMap;

use crate::sandbox::amocrm;
use crate::sandbox::door::Sandbox;
use crate::sandbox::operation::Operation;
use crate::sandbox::world::{Contact, EMAIL_FIELD, Lead, PHONE_FIELD, Task, World};

/// How much there is; what was deleted does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Contacts.
    pub contacts: usize,
    /// Leads.
    pub leads: usize,
    /// Notes.
    pub notes: usize,
    /// Tasks of people.
    pub tasks: usize,
    /// Calls that were handled, refusals and faults included.
    pub calls: BTreeMap<Operation, u64>,
}

/// A lead as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadSnapshot {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whole units of the account's currency.
    pub price: u64,
    /// Its stage.
    pub status_id: u64,
    /// Its pipeline.
    pub pipeline_id: u64,
    /// Who is responsible.
    pub responsible_user_id: u64,
    /// Unix seconds of the last change.
    pub updated_at: i64,
    /// First values, as text, of the custom fields that have a code, by code.
    pub fields: BTreeMap<String, String>,
    /// The linked contacts, the main one first.
    pub contacts: Vec<u64>,
}

/// A contact as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactSnapshot {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its phones as they were written.
    pub phones: Vec<String>,
    /// Its e-mails.
    pub emails: Vec<String>,
    /// The leads that link to it.
    pub leads: Vec<u64>,
}

/// A task of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSnapshot {
    /// The lead that it is about, if it is about one.
    pub lead_id: Option<u64>,
    /// What is to be done.
    pub text: String,
    /// Who is to do it.
    pub responsible_user_id: u64,
    /// Unix seconds until when.
    pub complete_till: i64,
}

impl Sandbox {
    /// Counts everything.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        let world = &state.world;
        Counts {
            contacts: world.contacts().count(),
            leads: world.leads.values().filter(|kept| !kept.now().is_deleted).count(),
            notes: world.notes.len(),
            tasks: world.tasks.len(),
            calls: self.calls(),
        }
    }

    /// A lead, absent when it was deleted.
    pub fn lead(&self, id: u64) -> Option<LeadSnapshot> {
        let state = self.state();
        state.world.lead(id).map(|lead| lead_snapshot(&state.world, id, lead))
    }

    /// All leads that were not deleted, by id.
    pub fn leads(&self) -> Vec<LeadSnapshot> {
        let state = self.state();
        let leads = state.world.leads.iter().map(|(&id, kept)| (id, kept.now())).filter(|(_, lead)| !lead.is_deleted);
        leads.map(|(id, lead)| lead_snapshot(&state.world, id, lead)).collect()
    }

    /// The leads that link to a contact.
    pub fn leads_of_contact(&self, id: u64) -> Vec<u64> {
        self.state().world.leads_of(id).collect()
    }

    /// A contact, absent when it was deleted.
    pub fn contact(&self, id: u64) -> Option<ContactSnapshot> {
        let state = self.state();
        state.world.contact(id).map(|contact| contact_snapshot(&state.world, id, contact))
    }

    /// All contacts that were not deleted, by id.
    pub fn contacts(&self) -> Vec<ContactSnapshot> {
        let state = self.state();
        state.world.contacts().map(|(id, contact)| contact_snapshot(&state.world, id, contact)).collect()
    }

    /// The contacts with a phone, however it is written: the last ten digits decide.
    pub fn contacts_with_phone(&self, phone: &str) -> Vec<u64> {
        let wanted = last_digits(phone);
        let is_same = |contact: &Contact| World::texts(contact, PHONE_FIELD).any(|other| last_digits(other) == wanted);
        let state = self.state();
        state.world.contacts().filter(|(_, contact)| is_same(contact)).map(|(id, _)| id).collect()
    }

    /// The texts of a lead's notes, oldest first.
    pub fn notes_of_lead(&self, id: u64) -> Vec<String> {
        let state = self.state();
        let notes = state.world.notes.values().map(|kept| kept.now()).filter(|note| note.lead_id == id);
        notes.filter_map(|note| Some(note.params.get("text")?.as_str()?.to_owned())).collect()
    }

    /// The texts of a lead's tasks, oldest first.
    pub fn tasks_of_lead(&self, id: u64) -> Vec<String> {
        self.tasks().into_iter().filter(|task| task.lead_id == Some(id)).map(|task| task.text).collect()
    }

    /// All tasks of people, oldest first.
    pub fn tasks(&self) -> Vec<TaskSnapshot> {
        let state = self.state();
        let tasks = state.world.tasks.values().map(|kept| kept.now());
        let snapshot = |task: &Task| TaskSnapshot {
            lead_id: task.lead_id,
            text: task.text.clone(),
            responsible_user_id: task.responsible_user_id,
            complete_till: task.complete_till,
        };
        tasks.map(snapshot).collect()
    }
}

fn lead_snapshot(world: &World, id: u64, lead: &Lead) -> LeadSnapshot {
    let coded = |(field, values): (&u64, &Vec<_>)| {
        let code = world.fields.get(field)?.code.clone()?;
        Some((code, amocrm::value_text(values.first()?)))
    };
    let mut links = lead.contacts.clone();
    links.sort_by_key(|link| !link.is_main);
    LeadSnapshot {
        id,
        name: lead.name.clone(),
        price: lead.price(),
        status_id: lead.status_id,
        pipeline_id: lead.pipeline_id,
        responsible_user_id: lead.responsible_user_id,
        updated_at: lead.stamps.updated_at,
        fields: lead.fields.iter().filter_map(coded).collect(),
        contacts: links.iter().map(|link| link.contact_id).collect(),
    }
}

fn contact_snapshot(world: &World, id: u64, contact: &Contact) -> ContactSnapshot {
    let texts = |field| World::texts(contact, field).map(str::to_owned).collect();
    ContactSnapshot {
        id,
        name: contact.name.clone(),
        phones: texts(PHONE_FIELD),
        emails: texts(EMAIL_FIELD),
        leads: world.leads_of(id).collect(),
    }
}

fn last_digits(phone: &str) -> String {
    let digits: Vec<char> = phone.chars().filter(char::is_ascii_digit).collect();
    digits.iter().skip(digits.len().saturating_sub(10)).collect()
}
