//! What people do: a manager in the CRM, a buyer in the shop.
//!
//! Each act changes the emulated system and gives back the webhook body that
//! the real one would send (`application/x-www-form-urlencoded`); the caller
//! sends it, or does not.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::sandbox::desk::Moment;
use crate::sandbox::door::{Sandbox, State};
use crate::sandbox::hook::LeadHook;
use crate::sandbox::kept::Kept;
use crate::sandbox::world::{Contact, EMAIL_FIELD, Lead, PHONE_FIELD, Stamps};

/// Why an act is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such lead, or it was deleted.
    #[error("no lead {0}")]
    NoLead(u64),
    /// There is no such contact.
    #[error("no contact {0}")]
    NoContact(u64),
    /// No pipeline has this stage.
    #[error("no stage {0}")]
    NoStage(u64),
    /// The JSON has no whole number as `id`.
    #[error("not an order")]
    NotAnOrder,
}

impl Sandbox {
    /// A manager moves a lead; to another pipeline if its own has no such stage. Gives `leads[status]`.
    ///
    /// # Errors
    /// `NoLead`, `NoStage`.
    pub fn move_lead(&self, id: u64, status_id: u64) -> Result<Bytes, Error> {
        let settings = self.settings();
        let other = settings.pipelines.iter().find(|other| other.has(status_id)).ok_or(Error::NoStage(status_id))?;
        self.act(
            id,
            |was| LeadHook::Status(was),
            |lead, now| {
                if !settings.pipeline(lead.pipeline_id).is_some_and(|own| own.has(status_id)) {
                    lead.pipeline_id = other.id;
                }
                lead.enter(status_id, now);
            },
        )
    }

    /// A manager sets the price, in whole units. Gives `leads[update]`.
    ///
    /// # Errors
    /// `NoLead`.
    pub fn set_price(&self, id: u64, price: u64) -> Result<Bytes, Error> {
        self.act(id, |_| LeadHook::Update, |lead, _| lead.price_minor = price.saturating_mul(100))
    }

    /// A manager renames a lead. Gives `leads[update]`.
    ///
    /// # Errors
    /// `NoLead`.
    pub fn rename(&self, id: u64, name: &str) -> Result<Bytes, Error> {
        self.act(id, |_| LeadHook::Update, |lead, _| name.clone_into(&mut lead.name))
    }

    /// A manager links a contact to a lead. Gives `leads[update]`.
    ///
    /// # Errors
    /// `NoLead`, `NoContact`.
    pub fn link_contact(&self, id: u64, contact_id: u64) -> Result<Bytes, Error> {
        self.state().world.contact(contact_id).ok_or(Error::NoContact(contact_id))?;
        self.act(id, |_| LeadHook::Update, |lead, _| lead.link(contact_id, false))
    }

    /// A manager deletes a lead, or merges it into another: both look the same from outside. Gives `leads[delete]`.
    ///
    /// # Errors
    /// `NoLead`.
    pub fn delete_lead(&self, id: u64) -> Result<Bytes, Error> {
        self.act(id, |_| LeadHook::Delete, |lead, _| lead.is_deleted = true)
    }

    /// A manager makes a lead on the first stage. Gives its id and `leads[add]`.
    ///
    /// # Errors
    /// `NoContact`.
    pub fn add_lead_by_hand(&self, name: &str, price: u64, contact: Option<u64>) -> Result<(u64, Bytes), Error> {
        let (settings, now) = (self.settings(), self.moment());
        let by = settings.acting_user();
        let main = settings.pipelines.first();
        let mut lead = Lead {
            name: name.to_owned(),
            price_minor: price.saturating_mul(100),
            pipeline_id: main.map_or(0, |pipeline| pipeline.id),
            status_id: main.map_or(0, |pipeline| pipeline.first_stage()),
            responsible_user_id: by,
            stamps: Stamps::new(by, now),
            ..Lead::default()
        };
        let mut state = self.state();
        if let Some(contact) = contact {
            state.world.contact(contact).ok_or(Error::NoContact(contact))?;
            lead.link(contact, true);
        }
        let id = state.world.add_lead(lead.clone(), now);
        Ok((id, LeadHook::Add.body(settings, &state.world, id, &lead)))
    }

    /// A manager makes a contact; gives its id.
    pub fn add_contact_by_hand(&self, name: &str, phone: Option<&str>, email: Option<&str>) -> u64 {
        let now = self.moment();
        let by = self.settings().acting_user();
        let value = |value: &str, choice: u64| vec![json!({"value": value, "enum_id": choice, "enum_code": "WORK"})];
        let phone = phone.map(|phone| (PHONE_FIELD, value(phone, 502_001)));
        let email = email.map(|email| (EMAIL_FIELD, value(email, 502_011)));
        let contact = Contact {
            name: name.to_owned(),
            responsible_user_id: by,
            stamps: Stamps::new(by, now),
            fields: phone.into_iter().chain(email).collect(),
            ..Contact::default()
        };
        self.state().world.add_contact(contact, now)
    }

    /// A manager deletes a contact, or merges it into another: both look the same from outside.
    ///
    /// # Errors
    /// `NoContact`.
    pub fn delete_contact(&self, id: u64) -> Result<(), Error> {
        let now = self.moment();
        let mut state = self.state();
        let contact = state.world.contact(id).ok_or(Error::NoContact(id))?.clone();
        state.world.change_contact(id, Contact { is_deleted: true, ..contact }, now);
        Ok(())
    }

    /// The `leads[update]` that the account sends after any change of a lead, a client's own included.
    ///
    /// # Errors
    /// `NoLead`.
    pub fn update_hook(&self, id: u64) -> Result<Bytes, Error> {
        let state = self.state();
        let lead = state.world.lead(id).ok_or(Error::NoLead(id))?;
        Ok(LeadHook::Update.body(self.settings(), &state.world, id, lead))
    }

    /// The shop makes or changes an order, given in REST shape; gives its id.
    ///
    /// # Errors
    /// `NotAnOrder`.
    pub fn put_order(&self, order: Value) -> Result<u64, Error> {
        let id = order.get("id").and_then(Value::as_u64).ok_or(Error::NotAnOrder)?;
        let at = self.moment().at;
        let mut state = self.state();
        match state.world.orders.get_mut(&id) {
            Some(kept) => kept.change(order, at),
            None => drop(state.world.orders.insert(id, Kept::new(order, at))),
        }
        Ok(id)
    }

    fn act(
        &self,
        id: u64,
        hook: for<'a> fn(&'a Lead) -> LeadHook<'a>,
        change: impl FnOnce(&mut Lead, Moment),
    ) -> Result<Bytes, Error> {
        let now = self.moment();
        let mut state = self.state();
        let State { world, .. } = &mut *state;
        let was = world.lead(id).ok_or(Error::NoLead(id))?.clone();
        let mut lead = was.clone();
        change(&mut lead, now);
        lead.stamps.touch(self.settings().acting_user(), now);
        world.change_lead(id, lead.clone(), now);
        Ok(hook(&was).body(self.settings(), world, id, &lead))
    }
}
