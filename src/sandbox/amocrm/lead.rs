//! Leads: list, read, make, change, link.

use serde_json::{Value, json};

use crate::sandbox::amocrm::answer::{self, Problem, Wrong};
use crate::sandbox::amocrm::asked::Asked;
use crate::sandbox::amocrm::field;
use crate::sandbox::amocrm::form::{self, Form};
use crate::sandbox::desk::{Desk, Moment};
use crate::sandbox::message::Reply;
use crate::sandbox::settings::{LOST, Settings, WON};
use crate::sandbox::world::{Entity, Lead, Stamps, World};

/// Lists leads; `query` is looked for in names and text fields, as a part, whatever the case.
pub(super) fn list(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &["id"])?;
    let listed = desk.world.leads.iter().filter(|(_, kept)| kept.is_listed(desk.now.at, desk.lags.search));
    let hits = listed.map(|(&id, kept)| (id, kept.now())).filter(|(id, lead)| {
        let is_found = asked.text("query").is_none_or(|query| has_text(desk.world, lead, query));
        !lead.is_deleted && is_found && asked.lets_through("id", &id.to_string())
    });
    let hits = hits.map(|(id, lead)| (id, lead.stamps, lead)).collect();
    Ok(asked.page(desk, "leads", hits, |id, lead| lead_json(desk, id, lead, asked.with("contacts"))))
}

fn has_text(world: &World, lead: &Lead, query: &str) -> bool {
    let query = query.to_lowercase();
    let is_text = |id: &u64| world.fields.get(id).is_some_and(|field| field.kind.is_text());
    let values = lead.fields.iter().filter(|(id, _)| is_text(id)).flat_map(|(_, values)| values);
    let mut texts = values.filter_map(|value| value.get("value")?.as_str()).chain([lead.name.as_str()]);
    texts.any(|text| text.to_lowercase().contains(&query))
}

pub(super) fn get(desk: &mut Desk<'_>, id: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &[])?;
    let kept = desk.world.leads.get(&id).ok_or(Problem::NotFound)?;
    let lead = kept.read(desk.now.at, desk.lags.read);
    if lead.is_deleted {
        return Ok(Reply::empty(204));
    }
    Ok(answer::hal(&lead_json(desk, id, lead, asked.with("contacts"))))
}

pub(super) fn create(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let items = form::items(desk.request)?;
    let leads = form::read_all(&items, |form| read_new(desk, form))?;
    let made: Vec<Value> = leads
        .into_iter()
        .map(|(request_id, lead)| {
            let id = desk.world.add_lead(lead, desk.now);
            let links = answer::self_link(desk, &format!("leads/{id}"));
            json!({"id": id, "request_id": request_id, "_links": links})
        })
        .collect();
    Ok(answer::written(desk, "leads", "leads", &made))
}

fn read_new(desk: &Desk<'_>, form: &mut Form<'_>) -> Lead {
    let by = desk.settings.acting_user();
    let main = desk.settings.pipelines.first();
    let lead = Lead {
        pipeline_id: main.map_or(0, |pipeline| pipeline.id),
        status_id: main.map_or(0, |pipeline| pipeline.first_stage()),
        responsible_user_id: by,
        stamps: Stamps::new(by, desk.now),
        ..Lead::default()
    };
    let mut lead = read_changes(desk, form, lead);
    let contacts = form.value("_embedded").and_then(|embedded| embedded.get("contacts")).and_then(Value::as_array);
    for (place, contact) in contacts.into_iter().flatten().enumerate() {
        match contact.get("id").and_then(Value::as_u64).filter(|&id| desk.world.contact(id).is_some()) {
            Some(id) => lead.link(id, contact.get("is_main").and_then(Value::as_bool).unwrap_or(false)),
            None => form.refuse(Wrong::NotSupportedChoice, format!("_embedded.contacts.{place}.id")),
        }
    }
    lead
}

pub(super) fn update(desk: &mut Desk<'_>, id: u64) -> Result<Reply, Problem> {
    let item = [form::item(desk.request)?];
    let present = desk.world.lead(id).ok_or(Problem::NotFound)?;
    let changed = form::read_all(&item, |form| read_changes(desk, form, present.clone()))?;
    for (_, lead) in changed {
        commit(desk, id, lead);
    }
    Ok(answer::hal(&changed_json(desk, id)))
}

/// Changes several leads; each item names its lead by `id`.
pub(super) fn update_many(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let items = form::items(desk.request)?;
    let changed = form::read_all(&items, |form| {
        let id = form.number("id");
        let id = form.required("id", id)?;
        let Some(present) = desk.world.lead(id) else {
            form.refuse(Wrong::NotSupportedChoice, "id");
            return None;
        };
        Some((id, read_changes(desk, form, present.clone())))
    })?;
    let mut written = Vec::new();
    for (id, lead) in changed.into_iter().filter_map(|(_, changed)| changed) {
        commit(desk, id, lead);
        written.push(changed_json(desk, id));
    }
    Ok(answer::written(desk, "leads", "leads", &written))
}

fn changed_json(desk: &Desk<'_>, id: u64) -> Value {
    let links = answer::self_link(desk, &format!("leads/{id}"));
    json!({"id": id, "updated_at": desk.now.wall.as_secs(), "_links": links})
}

/// Links contacts to a lead.
pub(super) fn link(desk: &mut Desk<'_>, id: u64) -> Result<Reply, Problem> {
    let mut lead = desk.world.lead(id).ok_or(Problem::NotFound)?.clone();
    let items = form::items(desk.request)?;
    let links = form::read_all(&items, |form| {
        let contact = form.number("to_entity_id");
        let contact = form.required("to_entity_id", contact);
        if contact.is_some_and(|id| desk.world.contact(id).is_none()) {
            form.refuse(Wrong::NotSupportedChoice, "to_entity_id");
        }
        let entity = form.text("to_entity_type");
        if form.required("to_entity_type", entity).is_some_and(|entity| entity != "contacts") {
            form.refuse(Wrong::NotSupportedChoice, "to_entity_type");
        }
        let metadata = form.value("metadata").and_then(|metadata| metadata.get("is_main"));
        (contact.unwrap_or_default(), metadata.and_then(Value::as_bool).unwrap_or(false))
    })?;
    let mut written = Vec::new();
    for (_, (contact_id, is_main)) in links {
        lead.link(contact_id, is_main);
        written.push(json!({
            "entity_id": id,
            "entity_type": "leads",
            "to_entity_id": contact_id,
            "to_entity_type": "contacts",
            "metadata": {"main_contact": is_main},
        }));
    }
    commit(desk, id, lead);
    Ok(answer::written(desk, &format!("leads/{id}/links"), "links", &written))
}

fn commit(desk: &mut Desk<'_>, id: u64, mut lead: Lead) {
    lead.stamps.touch(desk.settings.acting_user(), desk.now);
    desk.world.change_lead(id, lead, desk.now);
}

/// Takes over what an item changes; what is not sent stays.
fn read_changes(desk: &Desk<'_>, form: &mut Form<'_>, mut lead: Lead) -> Lead {
    if let Some(name) = form.text("name") {
        name.clone_into(&mut lead.name);
    }
    if let Some(price) = form.value("price") {
        match minor_units(price) {
            Some(minor) => lead.price_minor = minor,
            None => form.refuse(Wrong::InvalidType, "price"),
        }
    }
    lead.responsible_user_id = form.responsible(desk, lead.responsible_user_id);
    read_stage(desk, form, &mut lead);
    field::read_values(form, desk.world, Entity::Lead, &mut lead.fields);
    lead
}

/// A stage must be one of the pipeline that the lead is in afterwards.
fn read_stage(desk: &Desk<'_>, form: &mut Form<'_>, lead: &mut Lead) {
    let pipeline_id = form.number("pipeline_id");
    let status_id = form.number("status_id");
    let Some(pipeline) = desk.settings.pipeline(pipeline_id.unwrap_or(lead.pipeline_id)) else {
        return form.refuse(Wrong::NotSupportedChoice, "pipeline_id");
    };
    let has_moved = pipeline.id != lead.pipeline_id;
    let status_id = status_id.unwrap_or_else(|| if has_moved { pipeline.first_stage() } else { lead.status_id });
    if !pipeline.has(status_id) {
        return form.refuse(Wrong::NotSupportedChoice, "status_id");
    }
    lead.pipeline_id = pipeline.id;
    lead.enter(status_id, desk.now);
}

impl Lead {
    /// Puts the lead on a stage; won and lost close it, any other opens it.
    pub(in crate::sandbox) fn enter(&mut self, status_id: u64, now: Moment) {
        let is_closed = matches!(status_id, WON | LOST);
        if status_id != self.status_id || !is_closed {
            self.closed_at = is_closed.then(|| now.wall.as_secs());
        }
        self.status_id = status_id;
    }

    /// Whole units, as `price` shows them: the recorded lead of 128500.5 shows 128500.
    pub(in crate::sandbox) fn price(&self) -> u64 {
        self.price_minor / 100
    }
}

/// Hundredths of a price, which is a whole number or has at most two decimals.
fn minor_units(price: &Value) -> Option<u64> {
    let text = price.as_number()?.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let cents = match part.len() {
        0 => 0,
        1 => part.parse::<u64>().ok()?.checked_mul(10)?,
        2 => part.parse().ok()?,
        _ => return None,
    };
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(cents)
}

/// The exact price as a number: 128500.5.
fn price_json(minor: u64) -> Value {
    let text = format!("{}.{:02}", minor / 100, minor % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn lead_json(desk: &Desk<'_>, id: u64, lead: &Lead, with_contacts: bool) -> Value {
    let Settings { account_id, .. } = desk.settings;
    let mut body = json!({
        "id": id,
        "name": lead.name,
        "price": lead.price(),
        "responsible_user_id": lead.responsible_user_id,
        "group_id": 0,
        "status_id": lead.status_id,
        "pipeline_id": lead.pipeline_id,
        "loss_reason_id": null,
        "created_by": lead.stamps.created_by,
        "updated_by": lead.stamps.updated_by,
        "created_at": lead.stamps.created_at,
        "updated_at": lead.stamps.updated_at,
        "closed_at": lead.closed_at,
        "closest_task_at": null,
        "is_deleted": lead.is_deleted,
        "custom_fields_values": field::values_json(desk.world, &lead.fields),
        "score": null,
        "account_id": account_id,
        "labor_cost": null,
        "is_price_computed": false,
        "price_with_minor_units": price_json(lead.price_minor),
        "_links": answer::entity_link(desk, &format!("leads/{id}")),
        "_embedded": {"tags": [], "companies": []},
    });
    if let (true, Some(embedded)) = (with_contacts, body.get_mut("_embedded").and_then(Value::as_object_mut)) {
        let contacts = lead.contacts.iter().map(|link| {
            let links = answer::entity_link(desk, &format!("contacts/{}", link.contact_id));
            json!({"id": link.contact_id, "is_main": link.is_main, "_links": links})
        });
        embedded.insert("contacts".to_owned(), contacts.collect());
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact_in_both_directions() {
        let check = |sent: &str, minor, shown: &str| {
            let sent: Value = serde_json::from_str(sent).unwrap();
            assert_eq!(minor_units(&sent), minor, "{sent}");
            if let Some(minor) = minor {
                assert_eq!(price_json(minor).to_string(), shown);
            }
        };
        check("128500.5", Some(12_850_050), "128500.5");
        check("4980", Some(498_000), "4980");
        check("0.07", Some(7), "0.07");
        check("100.0", Some(10_000), "100");
        check("0.001", None, "");
        check("-1", None, "");
        check("\"4980\"", None, "");
    }
}
