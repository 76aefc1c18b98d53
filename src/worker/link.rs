//! The tie between an order's deal and the customer's contact, made once.
//!
//! A deal that we make is born tied. One that was found, or whose order was a
//! guest's at first, is tied when the order names a customer. A tie that a
//! person takes away stays away.

use serde_json::{Value, json};

use crate::client::{Amocrm, ContactLink, Lead};
use crate::domain::Refusal;
use crate::effect::{Creatable, Searchable, Stop};
use crate::rules::Customer;
use crate::store::{IntentDurable, ObjectRef, Version};
use crate::worker::attempt::Attempt;
use crate::worker::{contact, object};

/// Ties a deal without a contact to the customer, unless it was tied before.
pub(super) async fn ensure(attempt: &Attempt<'_>, marker: &str, lead: &Lead, customer: &Customer) -> Result<(), Stop> {
    let object = object::link(attempt.target, attempt.access, marker);
    let known = attempt.context.store.view()?.object(&object)?;
    // A doubt is settled by a look, though the deal shows a contact.
    let has_contact = !lead.contact_ids.is_empty() && known.open().is_none();
    if has_contact || known.external_id().is_some() {
        return Ok(());
    }
    let contact = contact::ensure(attempt, customer, lead.responsible_user_id).await?;
    let link = ContactLink { lead_id: lead.id, contact_id: object::number(contact.external_id())? };
    attempt.steps.create(&Subject { crm: attempt.crm, object, link }).await.map(drop)
}

/// Remembers that a deal was made with its contact.
pub(super) async fn born(attempt: &Attempt<'_>, marker: &str, contact_id: u64) -> Result<(), Stop> {
    let object = object::link(attempt.target, attempt.access, marker);
    attempt.steps.adopt(&object, &contact_id.to_string()).await
}

struct Subject<'a> {
    crm: &'a Amocrm,
    object: ObjectRef,
    link: ContactLink,
}

impl Searchable for Subject<'_> {
    fn object(&self) -> &ObjectRef {
        &self.object
    }

    async fn search(&self) -> Result<Vec<String>, Refusal> {
        let lead = self.crm.lead(self.link.lead_id).await?;
        let contacts = lead.map(|lead| lead.contact_ids).unwrap_or_default();
        Ok(contacts.iter().filter(|id| **id == self.link.contact_id).map(ToString::to_string).collect())
    }
}

impl Creatable for Subject<'_> {
    fn version(&self) -> Option<Version> {
        None
    }

    fn evidence(&self) -> Value {
        json!({ "request": self.link.to_json() })
    }

    async fn send(&self, proof: &IntentDurable) -> Result<String, Refusal> {
        self.crm.link_contact(proof, self.link).await?;
        Ok(self.link.contact_id.to_string())
    }
}
