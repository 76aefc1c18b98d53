//! `note`: a deal on a stage gets one note from a template, whatever is repeated.

use serde_json::{Value, json};

use crate::client::{Amocrm, Lead, NewNote};
use crate::config::NoteTask;
use crate::domain::{Key, ReasonCode, Refusal};
use crate::effect::{Creatable, Searchable, Stop, text_marker};
use crate::store::{IntentDurable, ObjectRef, Version};
use crate::worker::attempt::Attempt;
use crate::worker::object;

/// Reads the deal fresh, checks that it still stands on the stage, writes the note once.
pub(super) async fn run(attempt: &Attempt<'_>, task: &NoteTask) -> Result<(), Stop> {
    let seed = attempt.leased.seed();
    let lead = read_lead(attempt).await?;
    if !task.valid_in.is_empty() && !task.valid_in.contains(&lead.status_id) {
        let text = format!("the deal is on stage {} now", lead.status_id);
        return Err(Stop::Superseded { reason: ReasonCode::LEFT_STAGE, text });
    }
    let text = task.text.render(&json!({ "lead": lead_json(&lead) })).map_err(|error| Stop::Dead {
        reason: ReasonCode::TEMPLATE,
        text: format!("the template `text` of task `{}` failed: {error}", seed.name),
    })?;
    let key = object::note(attempt.access, &seed.name, &seed.entity, &task.version);
    write(attempt, lead.id, key, &text, lead_json(&lead)).await
}

/// The deal as it is now; a read older than the event lags behind and is repeated.
async fn read_lead(attempt: &Attempt<'_>) -> Result<Lead, Stop> {
    let seed = attempt.leased.seed();
    let gone = || Stop::Dead {
        reason: ReasonCode::ENTITY_GONE,
        text: format!("deal {} does not exist in the CRM", seed.entity),
    };
    let id = seed.entity.parse().map_err(|_| gone())?;
    let Some(lead) = attempt.crm.lead(id).await? else {
        attempt.believe_absence("lead")?;
        return Err(gone());
    };
    if attempt.leased.newest_source_time().is_some_and(|event| lead.updated_at < event) {
        let text = "the CRM shows the deal as it was before the event; it is read again".to_owned();
        return Err(Stop::Retry { after: None, text });
    }
    Ok(lead)
}

/// What templates see of a deal.
fn lead_json(lead: &Lead) -> Value {
    let custom: serde_json::Map<String, Value> = lead
        .custom
        .iter()
        .map(|value| (value.code.clone().unwrap_or_else(|| value.field_id.to_string()), json!(value.text)))
        .collect();
    json!({
        "id": lead.id,
        "name": lead.name,
        "price": lead.price,
        "status_id": lead.status_id,
        "pipeline_id": lead.pipeline_id,
        "responsible_user_id": lead.responsible_user_id,
        "custom": custom,
    })
}

/// Writes a note once; its text ends in the marker of its key.
pub(super) async fn write(attempt: &Attempt<'_>, lead_id: u64, key: Key, text: &str, read: Value) -> Result<(), Stop> {
    let marker = text_marker(&key);
    let subject = Subject {
        crm: attempt.crm,
        new: NewNote { lead_id, text: format!("{}\n{marker}", text.trim_end()) },
        object: ObjectRef::new(&attempt.target.name, "note", vec![key]),
        marker,
        read,
    };
    attempt.steps.create(&subject).await.map(drop)
}

struct Subject<'a> {
    crm: &'a Amocrm,
    object: ObjectRef,
    marker: String,
    new: NewNote,
    read: Value,
}

impl Searchable for Subject<'_> {
    fn object(&self) -> &ObjectRef {
        &self.object
    }

    async fn search(&self) -> Result<Vec<String>, Refusal> {
        let notes = self.crm.notes(self.new.lead_id).await?;
        Ok(notes.iter().filter(|note| note.text.contains(&self.marker)).map(|note| note.id.to_string()).collect())
    }
}

impl Creatable for Subject<'_> {
    fn version(&self) -> Option<Version> {
        None
    }

    fn evidence(&self) -> Value {
        json!({ "read": self.read, "request": self.new.to_json() })
    }

    async fn send(&self, proof: &IntentDurable) -> Result<String, Refusal> {
        self.crm.create_note(proof, &self.new).await.map(|id| id.to_string())
    }
}
