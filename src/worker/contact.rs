//! The customer of an order as a contact in the CRM: found, or made once.

use crate::client::{Amocrm, Contact, NewContact};
use crate::domain::Refusal;
use crate::effect::{Creatable, Created, Searchable, Stop};
use crate::rules::Customer;
use crate::store::{IntentDurable, ObjectRef, Version};
use crate::text::{Email, Phone, normalize_email, normalize_phones};
use crate::worker::attempt::Attempt;
use crate::worker::object;

/// Finds or makes the contact; gives its id.
///
/// People merge contacts, so one that our file knows is read before a deal is tied to it.
pub(super) async fn ensure(attempt: &Attempt<'_>, customer: &Customer, responsible: u64) -> Result<Created, Stop> {
    let object = object(attempt, customer);
    let known = attempt.context.store.view()?.object(&object)?.external_id().map(object::number).transpose()?;
    if let Some(id) = known
        && attempt.crm.contact(id).await?.is_none()
    {
        attempt.believe_absence(object.kind)?;
        attempt.steps.gone(&object).await?;
    }
    let subject = Subject {
        crm: attempt.crm,
        object,
        phone: customer.phone.as_ref(),
        email: customer.email.as_ref(),
        new: NewContact {
            name: customer.name.clone(),
            phone: customer.phone.as_ref().map(ToString::to_string),
            email: customer.email.as_ref().map(ToString::to_string),
            responsible_user_id: responsible,
        },
    };
    attempt.steps.create(&subject).await
}

/// The customer as an object outside.
pub(super) fn object(attempt: &Attempt<'_>, customer: &Customer) -> ObjectRef {
    object::contact(attempt.target, attempt.access, customer.phone.as_ref(), customer.email.as_ref())
}

struct Subject<'a> {
    crm: &'a Amocrm,
    object: ObjectRef,
    phone: Option<&'a Phone>,
    email: Option<&'a Email>,
    new: NewContact,
}

impl Searchable for Subject<'_> {
    fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// By phone, else by e-mail. A CRM often holds one person twice; then the
    /// oldest is taken, since a phone is no marker of ours that must be unique.
    async fn search(&self) -> Result<Vec<String>, Refusal> {
        if let Some(phone) = self.phone {
            let hits = self.crm.search_contacts(&phone.search_digits()).await?;
            let oldest = oldest(hits, |contact| contact.phones.iter().any(|raw| normalize_phones(raw).contains(phone)));
            if oldest.is_some() {
                return Ok(oldest.into_iter().collect());
            }
        }
        let Some(email) = self.email else { return Ok(Vec::new()) };
        let hits = self.crm.search_contacts(&email.to_string()).await?;
        let same = |raw: &String| normalize_email(raw).is_some_and(|e| e.compare_key() == email.compare_key());
        Ok(oldest(hits, |contact| contact.emails.iter().any(same)).into_iter().collect())
    }
}

/// The oldest of the hits that really are the one searched for: searches match substrings.
fn oldest(hits: Vec<Contact>, is_exact: impl Fn(&Contact) -> bool) -> Option<String> {
    hits.iter().filter(|contact| is_exact(contact)).map(|contact| contact.id).min().map(|id| id.to_string())
}

impl Creatable for Subject<'_> {
    fn version(&self) -> Option<Version> {
        None
    }

    fn evidence(&self) -> serde_json::Value {
        serde_json::json!({ "request": self.new.to_json() })
    }

    async fn send(&self, proof: &IntentDurable) -> Result<String, Refusal> {
        self.crm.create_contact(proof, &self.new).await.map(|id| id.to_string())
    }
}
