//! The keys of the objects that tasks make: what two tasks meet in.
//!
//! Every key begins with the target's system and its account's number, never
//! with its name or subdomain, since accounts are renamed. The bytes stand in
//! users' files for good.

use crate::config::{AmocrmTarget, Target};
use crate::domain::{Key, KeyBuilder, ReasonCode, TaskId};
use crate::effect::Stop;
use crate::store::ObjectRef;
use crate::text::{Email, Phone};

fn key(access: &AmocrmTarget, kind: &str) -> KeyBuilder {
    KeyBuilder::new().part("amocrm").part(&access.account_id.to_string()).part(kind)
}

/// A deal, by its external number.
pub(super) fn lead(target: &Target, access: &AmocrmTarget, marker: &str) -> ObjectRef {
    ObjectRef::new(&target.name, "lead", vec![key(access, "lead").part(marker).finish()])
}

/// The order that a deal made by hand belongs to: the first to write its number here.
pub(super) fn claim(target: &Target, access: &AmocrmTarget, lead_id: u64) -> ObjectRef {
    ObjectRef::new(&target.name, "claim", vec![key(access, "lead-id").part(&lead_id.to_string()).finish()])
}

/// The tie between an order's deal and its contact, by the deal's external number.
pub(super) fn link(target: &Target, access: &AmocrmTarget, marker: &str) -> ObjectRef {
    ObjectRef::new(&target.name, "link", vec![key(access, "link").part(marker).finish()])
}

/// A contact, by its phone and its e-mail; the phone is trusted more.
pub(super) fn contact(
    target: &Target,
    access: &AmocrmTarget,
    phone: Option<&Phone>,
    email: Option<&Email>,
) -> ObjectRef {
    let phone = phone.map(|p| key(access, "contact").part("phone").part(&p.to_string()).finish());
    let email = email.map(|e| key(access, "contact").part("email").part(&e.compare_key()).finish());
    ObjectRef::new(&target.name, "contact", phone.into_iter().chain(email).collect())
}

/// The one note with an order's lines.
pub(super) fn lines_note(access: &AmocrmTarget, marker: &str) -> Key {
    key(access, "note").part("lines").part(marker).finish()
}

/// The one note of a note task about a deal.
pub(super) fn note(access: &AmocrmTarget, task: &str, lead: &str, version: &str) -> Key {
    key(access, "note").part(task).part(lead).part(version).finish()
}

/// The CRM task that tells of a task of ours, once an occasion and replay.
pub(super) fn notice(access: &AmocrmTarget, parent: TaskId, occasion: &str) -> Key {
    key(access, "task").part(&parent.get().to_string()).part(occasion).finish()
}

/// A stored external id as amoCRM's number.
pub(super) fn number(id: &str) -> Result<u64, Stop> {
    let text = || format!("the stored id `{id}` is not a number");
    id.parse().map_err(|_| Stop::Dead { reason: ReasonCode::UNREADABLE, text: text() })
}
