//! Notes of leads: list and make.

use serde_json::{Value, json};

use crate::sandbox::amocrm::answer::{self, Problem, Wrong};
use crate::sandbox::amocrm::asked::Asked;
use crate::sandbox::amocrm::form::{self, Form};
use crate::sandbox::desk::Desk;
use crate::sandbox::message::Reply;
use crate::sandbox::world::{Note, Stamps};

/// The emulated types of notes, with the texts that each must have.
const TYPES: [(&str, &[&str]); 3] = [
    ("common", &["text"]),
    ("service_message", &["service", "text"]),
    ("extended_service_message", &["service", "text"]),
];

pub(super) fn list(desk: &mut Desk<'_>, lead_id: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &["id", "note_type"])?;
    desk.world.lead(lead_id).ok_or(Problem::NotFound)?;
    let listed = desk.world.notes.iter().filter(|(_, kept)| kept.is_listed(desk.now.at, desk.lags.search));
    let hits = listed.map(|(&id, kept)| (id, kept.now())).filter(|(id, note)| {
        note.lead_id == lead_id
            && asked.lets_through("id", &id.to_string())
            && asked.lets_through("note_type", &note.note_type)
    });
    let hits = hits.map(|(id, note)| (id, note.stamps, note)).collect();
    Ok(asked.page(desk, "notes", hits, |id, note| note_json(desk, id, note)))
}

fn note_json(desk: &Desk<'_>, id: u64, note: &Note) -> Value {
    json!({
        "id": id,
        "entity_id": note.lead_id,
        "created_by": note.stamps.created_by,
        "updated_by": note.stamps.updated_by,
        "created_at": note.stamps.created_at,
        "updated_at": note.stamps.updated_at,
        "responsible_user_id": note.stamps.created_by,
        "group_id": 0,
        "note_type": note.note_type,
        "params": note.params,
        "account_id": desk.settings.account_id,
        "_links": answer::self_link(desk, &format!("leads/{}/notes/{id}", note.lead_id)),
    })
}

/// Makes notes of the lead in the path; 0 where each item names its own by `entity_id`.
pub(super) fn create(desk: &mut Desk<'_>, lead_id: u64) -> Result<Reply, Problem> {
    if lead_id != 0 {
        desk.world.lead(lead_id).ok_or(Problem::NotFound)?;
    }
    let items = form::items(desk.request)?;
    let notes = form::read_all(&items, |form| read_new(desk, form, lead_id))?;
    let made: Vec<Value> = notes
        .into_iter()
        .map(|(request_id, note)| {
            let entity_id = note.lead_id;
            let id = desk.world.add_note(note, desk.now);
            let links = answer::self_link(desk, &format!("leads/{entity_id}/notes/{id}"));
            json!({"id": id, "entity_id": entity_id, "request_id": request_id, "_links": links})
        })
        .collect();
    let path = if lead_id == 0 { "leads/notes".to_owned() } else { format!("leads/{lead_id}/notes") };
    Ok(answer::written(desk, &path, "notes", &made))
}

fn read_new(desk: &Desk<'_>, form: &mut Form<'_>, lead_id: u64) -> Note {
    let lead_id = if lead_id == 0 { named_lead(desk, form) } else { lead_id };
    let note_type = form.text("note_type");
    let note_type = form.required("note_type", note_type).unwrap_or_default();
    let params = form.value("params").cloned().unwrap_or_default();
    match TYPES.iter().find(|(name, _)| *name == note_type) {
        None => form.refuse(Wrong::NotSupportedChoice, "note_type"),
        Some((_, texts)) => {
            for name in *texts {
                match params.get(name) {
                    None => form.refuse(Wrong::FieldMissing, format!("params.{name}")),
                    Some(value) if !value.is_string() => form.refuse(Wrong::InvalidType, format!("params.{name}")),
                    Some(_) => {}
                }
            }
        }
    }
    let stamps = Stamps::new(desk.settings.acting_user(), desk.now);
    Note { lead_id, note_type: note_type.to_owned(), params, stamps }
}

fn named_lead(desk: &Desk<'_>, form: &mut Form<'_>) -> u64 {
    let id = form.number("entity_id");
    let id = form.required("entity_id", id).unwrap_or_default();
    if id != 0 && desk.world.lead(id).is_none() {
        form.refuse(Wrong::NotSupportedChoice, "entity_id");
    }
    id
}
