//! The emulated amoCRM API v4: which path is which operation, and what it does.
//!
//! Shapes are those of the recorded answers in `tests/data/amocrm/api`; where
//! there is none (users, tasks, field definitions, links) those of the amoCRM
//! API v4 reference as remembered, not re-read.
//!
//! Choices where the documentation is silent: a lead that never was is 404, a
//! deleted one 204 (the two forms that clients report); a merged lead looks
//! like a deleted one; a batch with one bad item changes nothing.

mod answer;
mod asked;
mod contact;
mod field;
mod form;
mod lead;
mod note;
mod task;

use serde_json::{Value, json};

pub(super) use answer::{no_such_path, too_large, too_many, unauthorized};

use crate::sandbox::amocrm::answer::Problem;
use crate::sandbox::amocrm::asked::Asked;
use crate::sandbox::desk::Desk;
use crate::sandbox::message::Reply;
use crate::sandbox::operation::Operation;
use crate::sandbox::settings::{Pipeline, Stage};
use crate::sandbox::world::{Entity, Stamps};

pub(super) use field::{hook_values, value_text};

/// Does the work of a path; the number is the id in the path, 0 where there is none.
type Work = fn(&mut Desk<'_>, u64) -> Result<Reply, Problem>;

/// What a path and a method ask for.
pub(super) struct Route {
    pub(super) operation: Operation,
    id: u64,
    work: Work,
}

impl Route {
    /// Finds the route; `path` is what follows `/api/v4/`.
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let id = segments.get(1).and_then(|segment| segment.parse().ok()).unwrap_or(0);
        let (operation, work): (Operation, Work) = match (method, segments.as_slice()) {
            ("GET", ["account"]) => (Operation::AccountGet, account),
            ("GET", ["users"]) => (Operation::UserList, users),
            ("GET", ["leads", "pipelines"]) => (Operation::PipelineList, pipelines),
            ("GET", ["leads", "custom_fields"]) => (Operation::FieldList, |desk, _| field::list(desk, Entity::Lead)),
            ("GET", ["contacts", "custom_fields"]) => {
                (Operation::FieldList, |desk, _| field::list(desk, Entity::Contact))
            }
            ("POST", ["leads", "custom_fields"]) => (Operation::FieldCreate, field::create),
            ("POST", ["leads", "notes"]) => (Operation::NoteCreate, note::create),
            ("GET", ["leads"]) => (Operation::LeadSearch, lead::list),
            ("POST", ["leads"]) => (Operation::LeadCreate, lead::create),
            ("PATCH", ["leads"]) => (Operation::LeadUpdate, lead::update_many),
            ("GET", ["contacts"]) => (Operation::ContactSearch, contact::list),
            ("POST", ["contacts"]) => (Operation::ContactCreate, contact::create),
            ("GET", ["tasks"]) => (Operation::TaskList, task::list),
            ("POST", ["tasks"]) => (Operation::TaskCreate, task::create),
            _ if id == 0 => return None,
            ("GET", ["leads", _]) => (Operation::LeadGet, lead::get),
            ("PATCH", ["leads", _]) => (Operation::LeadUpdate, lead::update),
            ("POST", ["leads", _, "link"]) => (Operation::LeadLink, lead::link),
            ("GET", ["leads", _, "notes"]) => (Operation::NoteList, note::list),
            ("POST", ["leads", _, "notes"]) => (Operation::NoteCreate, note::create),
            ("GET", ["contacts", _]) => (Operation::ContactGet, contact::get),
            ("PATCH", ["contacts", _]) => (Operation::ContactUpdate, contact::update),
            _ => return None,
        };
        Some(Self { operation, id, work })
    }

    pub(super) fn answer(&self, desk: &mut Desk<'_>) -> Reply {
        (self.work)(desk, self.id).unwrap_or_else(Problem::into_reply)
    }
}

fn account(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let settings = desk.settings;
    let body = json!({
        "id": settings.account_id,
        "name": "Тестовый аккаунт",
        "subdomain": settings.subdomain,
        "current_user_id": settings.acting_user(),
        "country": "RU",
        "currency": settings.currency,
        "currency_symbol": if settings.currency == "RUB" { "₽" } else { settings.currency.as_str() },
        "customers_mode": "disabled",
        "is_unsorted_on": true,
        "is_loss_reason_enabled": true,
        "is_helpbot_enabled": false,
        "is_technical_account": false,
        "contact_name_display_order": 1,
        "drive_url": "https://drive-b.example.com",
        "_links": answer::self_link(desk, "account"),
        "_embedded": {"datetime_settings": {"timezone": "Europe/Moscow", "timezone_offset": "+03:00"}},
    });
    Ok(answer::hal(&body))
}

fn pipelines(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let all: Vec<Value> = (1_u64..).zip(&desk.settings.pipelines).map(|(n, p)| pipeline_json(desk, n, p)).collect();
    let body = json!({
        "_total_items": all.len(),
        "_links": answer::self_link(desk, "leads/pipelines"),
        "_embedded": {"pipelines": all},
    });
    Ok(answer::hal(&body))
}

fn pipeline_json(desk: &Desk<'_>, place: u64, pipeline: &Pipeline) -> Value {
    let stage_json = |stage: &Stage| {
        let is_incoming = pipeline.stages.first().is_some_and(|first| first.id == stage.id);
        json!({
            "id": stage.id,
            "name": stage.name,
            "sort": stage.sort,
            "is_editable": !is_incoming && stage.sort < 10_000,
            "pipeline_id": pipeline.id,
            "color": stage.color,
            "type": u8::from(is_incoming),
            "account_id": desk.settings.account_id,
        })
    };
    json!({
        "id": pipeline.id,
        "name": pipeline.name,
        "sort": place,
        "is_main": place == 1,
        "is_unsorted_on": true,
        "is_archive": false,
        "account_id": desk.settings.account_id,
        "_links": answer::self_link(desk, &format!("leads/pipelines/{}", pipeline.id)),
        "_embedded": {"statuses": pipeline.stages.iter().map(stage_json).collect::<Vec<_>>()},
    })
}

fn users(desk: &mut Desk<'_>, _: u64) -> Result<Reply, Problem> {
    let asked = Asked::of(desk.request, &[])?;
    let users = desk.settings.users.iter().map(|user| (user.id, Stamps::default(), user));
    Ok(asked.page(desk, "users", users.collect(), |id, user| {
        json!({
            "id": id,
            "name": user.name,
            "email": format!("user{id}@example.com"),
            "lang": "ru",
            "rights": {"is_admin": true, "is_free": false, "is_active": true},
            "_links": answer::self_link(desk, &format!("users/{id}")),
        })
    }))
}
