//! Tasks of people, about leads or about nothing in particular: list and make.

use serde_json::{Value, json};

use crate::sandbox::amocrm::answer::{self, Problem, Wrong};
use crate::sandbox::amocrm::asked::Asked;
use crate::sandbox::amocrm::form::{self, Form};
use crate::sandbox::desk::Desk;
use crate::sandbox::message::Reply;
use crate::sandbox::world::{Stamps, Task};

pub(super) fn list(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &["id", "entity_type", "entity_id"])?;
    let listed = desk.world.tasks.iter().filter(|(_, kept)| kept.is_listed(desk.now.at, desk.lags.search));
    let hits = listed.map(|(&id, kept)| (id, kept.now())).filter(|(id, task)| {
        asked.lets_through("id", &id.to_string())
            && asked.lets_through("entity_type", if task.lead_id.is_some() { "leads" } else { "" })
            && asked.lets_through("entity_id", &task.lead_id.map(|id| id.to_string()).unwrap_or_default())
    });
    let hits = hits.map(|(id, task)| (id, task.stamps, task)).collect();
    Ok(asked.page(desk, "tasks", hits, |id, task| task_json(desk, id, task)))
}

fn task_json(desk: &Desk<'_>, id: u64, task: &Task) -> Value {
    json!({
        "id": id,
        "created_by": task.stamps.created_by,
        "updated_by": task.stamps.updated_by,
        "created_at": task.stamps.created_at,
        "updated_at": task.stamps.updated_at,
        "responsible_user_id": task.responsible_user_id,
        "group_id": 0,
        "entity_id": task.lead_id,
        "entity_type": task.lead_id.map(|_| "leads"),
        "duration": 0,
        "is_completed": false,
        "task_type_id": task.task_type_id,
        "text": task.text,
        "result": [],
        "complete_till": task.complete_till,
        "account_id": desk.settings.account_id,
        "_links": answer::self_link(desk, &format!("tasks/{id}")),
    })
}

pub(super) fn create(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let items = form::items(desk.request)?;
    let tasks = form::read_all(&items, |form| read_new(desk, form))?;
    let made: Vec<Value> = tasks
        .into_iter()
        .map(|(request_id, task)| {
            let id = desk.world.add_task(task, desk.now);
            let links = answer::self_link(desk, &format!("tasks/{id}"));
            json!({"id": id, "request_id": request_id, "_links": links})
        })
        .collect();
    Ok(answer::written(desk, "tasks", "tasks", &made))
}

fn read_new(desk: &Desk<'_>, form: &mut Form<'_>) -> Task {
    let by = desk.settings.acting_user();
    let text = form.text("text");
    let text = form.required("text", text).unwrap_or_default().to_owned();
    let complete_till = form.number("complete_till");
    let complete_till = form.required("complete_till", complete_till).unwrap_or_default();
    let lead_id = form.number("entity_id");
    if let Some(id) = lead_id {
        let entity = form.text("entity_type");
        if form.required("entity_type", entity).is_some_and(|entity| entity != "leads") {
            form.refuse(Wrong::NotSupportedChoice, "entity_type");
        } else if desk.world.lead(id).is_none() {
            form.refuse(Wrong::NotSupportedChoice, "entity_id");
        }
    }
    Task {
        lead_id,
        text,
        task_type_id: form.number("task_type_id").unwrap_or(1),
        complete_till: i64::try_from(complete_till).unwrap_or(i64::MAX),
        responsible_user_id: form.responsible(desk, by),
        stamps: Stamps::new(by, desk.now),
    }
}
