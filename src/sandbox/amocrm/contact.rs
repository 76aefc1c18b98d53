//! Contacts: list, read, make, change.

use serde_json::{Value, json};

use crate::sandbox::amocrm::answer::{self, Problem};
use crate::sandbox::amocrm::asked::Asked;
use crate::sandbox::amocrm::field;
use crate::sandbox::amocrm::form::{self, Form};
use crate::sandbox::desk::Desk;
use crate::sandbox::message::Reply;
use crate::sandbox::world::{Contact, EMAIL_FIELD, Entity, PHONE_FIELD, Stamps, World};

/// Lists contacts; `query` is looked for in names, e-mails and the digits of phones, as a part.
pub(super) fn list(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &["id"])?;
    let listed = desk.world.contacts.iter().filter(|(_, kept)| kept.is_listed(desk.now.at, desk.lags.search));
    let hits = listed.map(|(&id, kept)| (id, kept.now())).filter(|(id, contact)| {
        let is_found = !contact.is_deleted && asked.text("query").is_none_or(|query| is_hit(contact, query));
        is_found && asked.lets_through("id", &id.to_string())
    });
    let hits = hits.map(|(id, contact)| (id, contact.stamps, contact)).collect();
    Ok(asked.page(desk, "contacts", hits, |id, contact| contact_json(desk, id, contact, asked.with("leads"))))
}

fn is_hit(contact: &Contact, query: &str) -> bool {
    let lower = query.to_lowercase();
    let mut texts = World::texts(contact, EMAIL_FIELD).chain([contact.name.as_str()]);
    if texts.any(|text| text.to_lowercase().contains(&lower)) {
        return true;
    }
    let wanted = digits(query);
    let is_phone = !wanted.is_empty() && query.chars().all(|c| c.is_ascii_digit() || "+-() ".contains(c));
    is_phone && World::texts(contact, PHONE_FIELD).any(|phone| digits(phone).contains(&wanted))
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

pub(super) fn get(desk: &mut Desk<'_>, id: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &[])?;
    let kept = desk.world.contacts.get(&id).ok_or(Problem::NotFound)?;
    let contact = kept.read(desk.now.at, desk.lags.read);
    if contact.is_deleted {
        return Ok(Reply::empty(204));
    }
    Ok(answer::hal(&contact_json(desk, id, contact, asked.with("leads"))))
}

pub(super) fn create(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let items = form::items(desk.request)?;
    let by = desk.settings.acting_user();
    let contacts = form::read_all(&items, |form| {
        let stamps = Stamps::new(by, desk.now);
        read_changes(desk, form, Contact { responsible_user_id: by, stamps, ..Contact::default() })
    })?;
    let made: Vec<Value> = contacts
        .into_iter()
        .map(|(request_id, contact)| {
            let id = desk.world.add_contact(contact, desk.now);
            let links = answer::self_link(desk, &format!("contacts/{id}"));
            json!({"id": id, "request_id": request_id, "_links": links})
        })
        .collect();
    Ok(answer::written(desk, "contacts", "contacts", &made))
}

pub(super) fn update(desk: &mut Desk<'_>, id: u64) -> Result<Reply, Problem> {
    let item = [form::item(desk.request)?];
    let present = desk.world.contact(id).ok_or(Problem::NotFound)?;
    let changed = form::read_all(&item, |form| read_changes(desk, form, present.clone()))?;
    for (_, mut contact) in changed {
        contact.stamps.touch(desk.settings.acting_user(), desk.now);
        desk.world.change_contact(id, contact, desk.now);
    }
    let links = answer::self_link(desk, &format!("contacts/{id}"));
    Ok(answer::hal(&json!({"id": id, "updated_at": desk.now.wall.as_secs(), "_links": links})))
}

/// Takes over what an item changes; a name is made of its parts when it is not sent itself.
fn read_changes(desk: &Desk<'_>, form: &mut Form<'_>, mut contact: Contact) -> Contact {
    let (first, last) = (form.text("first_name"), form.text("last_name"));
    if let Some(first) = first {
        first.clone_into(&mut contact.first_name);
    }
    if let Some(last) = last {
        last.clone_into(&mut contact.last_name);
    }
    match form.text("name") {
        Some(name) => name.clone_into(&mut contact.name),
        None if first.is_some() || last.is_some() => {
            format!("{} {}", contact.first_name, contact.last_name).trim().clone_into(&mut contact.name);
        }
        None => {}
    }
    contact.responsible_user_id = form.responsible(desk, contact.responsible_user_id);
    field::read_values(form, desk.world, Entity::Contact, &mut contact.fields);
    contact
}

fn contact_json(desk: &Desk<'_>, id: u64, contact: &Contact, with_leads: bool) -> Value {
    let mut body = json!({
        "id": id,
        "name": contact.name,
        "first_name": contact.first_name,
        "last_name": contact.last_name,
        "responsible_user_id": contact.responsible_user_id,
        "group_id": 0,
        "created_by": contact.stamps.created_by,
        "updated_by": contact.stamps.updated_by,
        "created_at": contact.stamps.created_at,
        "updated_at": contact.stamps.updated_at,
        "closest_task_at": null,
        "is_deleted": false,
        "is_unsorted": false,
        "custom_fields_values": field::values_json(desk.world, &contact.fields),
        "account_id": desk.settings.account_id,
        "_links": answer::entity_link(desk, &format!("contacts/{id}")),
        "_embedded": {"tags": [], "companies": []},
    });
    if let (true, Some(embedded)) = (with_leads, body.get_mut("_embedded").and_then(Value::as_object_mut)) {
        let link = |lead: u64| json!({"id": lead, "_links": answer::entity_link(desk, &format!("leads/{lead}"))});
        embedded.insert("leads".to_owned(), desk.world.leads_of(id).map(link).collect());
    }
    body
}
