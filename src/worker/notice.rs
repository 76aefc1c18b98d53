//! `notice`: a person is told, as a CRM task for the responsible user.
//!
//! A task like any other, so it survives a crash. One notice a task and
//! occasion; a notice that dies starts no notice.

use serde_json::{Value, json};

use crate::client::{Amocrm, Lead, NewCrmTask};
use crate::config::{Config, Language, NoticeTask, TargetKind};
use crate::domain::{KeyBuilder, Mode, OnReturn, ReasonCode, Refusal, TaskId, TaskSeed, Timestamp};
use crate::effect::{Creatable, Searchable, Stop, text_marker};
use crate::store::{IntentDurable, LeasedTask, ObjectRef, TaskView, Version};
use crate::worker::attempt::Attempt;
use crate::worker::object;

const KIND: &str = "notice";

/// How far the CRM's clock may lag behind ours.
const CLOCKS_DIFFER_SECS_MAX: i64 = 3600;

/// The occasion of a dead task; its replays are occasions of their own.
const DEAD: &str = "dead";

/// The notice about a task that dies in this attempt.
pub(super) fn for_dead_attempt(config: &Config, leased: &LeasedTask) -> Option<TaskSeed> {
    seed(config, leased.seed(), leased.id(), DEAD)
}

/// The notice about a task that died without a run.
pub(super) fn for_dead(config: &Config, dead: &TaskView) -> Option<TaskSeed> {
    let parent = TaskSeed {
        name: dead.name.clone(),
        kind: dead.kind.clone(),
        key: dead.key.clone(),
        lane: dead.lane.clone(),
        target: dead.target.clone(),
        entity: dead.entity.clone(),
        mode: dead.mode,
        trace: dead.trace,
    };
    seed(config, &parent, dead.id, DEAD)
}

/// The task that tells of `occasion` in the life of `parent`; none about notices.
pub(super) fn seed(config: &Config, parent: &TaskSeed, id: TaskId, occasion: &str) -> Option<TaskSeed> {
    if parent.kind == KIND {
        return None;
    }
    let target = config.targets.get(&parent.target)?;
    let task = config.notice_task(&parent.target)?;
    let TargetKind::Amocrm(access) = &target.kind;
    let account = access.account_id.to_string();
    let key = KeyBuilder::new().part("tambour").part(&account).part(&task.name).part(KIND);
    Some(TaskSeed {
        name: task.name.clone(),
        kind: KIND.to_owned(),
        key: key.part(&id.get().to_string()).part(occasion).finish(),
        lane: KeyBuilder::new().part("amocrm").part(&account).part("notices").finish(),
        target: parent.target.clone(),
        entity: occasion.to_owned(),
        mode: Mode::Once(OnReturn::Keep),
        trace: parent.trace,
    })
}

/// Makes the CRM task once.
pub(super) async fn run(attempt: &Attempt<'_>, task: &NoticeTask) -> Result<(), Stop> {
    let occasion = attempt.leased.seed().entity.clone();
    let view = attempt.context.store.view()?;
    let parent = attempt.leased.parent().map(|id| view.task(id)).transpose()?.flatten();
    let parent = parent.ok_or_else(|| Stop::Superseded {
        reason: ReasonCode::ENTITY_GONE,
        text: "the task that it tells of is not stored any more".to_owned(),
    })?;
    let lead = lead_of(attempt, &parent).await?;
    let key = object::notice(attempt.access, parent.id, &occasion);
    let marker = text_marker(&key);
    let text = notice_text(attempt.context.config.language, &parent, &occasion);
    let responsible = lead.as_ref().map_or(attempt.access.responsible_user_id, |lead| lead.responsible_user_id);
    let subject = Subject {
        crm: attempt.crm,
        object: ObjectRef::new(&attempt.target.name, "task", vec![key]),
        new: NewCrmTask {
            lead_id: lead.map(|lead| lead.id),
            text: format!("{text}\n{marker}"),
            complete_till: attempt.context.clock.now().plus(task.due_in),
            responsible_user_id: responsible,
        },
        marker,
        since: Timestamp::from_secs(attempt.leased.created_at().as_secs() - CLOCKS_DIFFER_SECS_MAX),
    };
    attempt.steps.create(&subject).await.map(drop)
}

/// The deal that the parent is about, if it exists and can be read.
async fn lead_of(attempt: &Attempt<'_>, parent: &TaskView) -> Result<Option<Lead>, Stop> {
    let id = match parent.kind.as_str() {
        "note" => parent.entity.parse().ok(),
        _ => deal_of_order(attempt, parent)?,
    };
    match id {
        Some(id) => Ok(attempt.crm.lead(id).await?),
        None => Ok(None),
    }
}

fn deal_of_order(attempt: &Attempt<'_>, parent: &TaskView) -> Result<Option<u64>, Stop> {
    // The lane of an order's deal ends in its external number.
    let Some(marker) = parent.lane.parts().pop() else { return Ok(None) };
    let deal = object::lead(attempt.target, attempt.access, &marker);
    let known = attempt.context.store.view()?.object(&deal)?;
    Ok(known.external_id().and_then(|id| id.parse().ok()))
}

fn notice_text(language: Language, parent: &TaskView, occasion: &str) -> String {
    let Some(hand_made) = occasion.strip_prefix("hand-made:") else { return dead_text(language, parent) };
    let entity = &parent.entity;
    match language {
        Language::Ru => format!(
            "По заказу {entity} создана сделка, но у клиента уже есть открытая сделка {hand_made}, \
             созданная после заказа. Если это один и тот же заказ, оставьте одну."
        ),
        Language::En => format!(
            "A deal was made for order {entity}, and the customer already has an open deal {hand_made} \
             made after the order. If both are the same order, keep one."
        ),
    }
}

fn dead_text(language: Language, parent: &TaskView) -> String {
    let reason = parent.reason.as_ref().map_or("-", ReasonCode::as_str);
    let (id, name, entity, text) = (parent.id, &parent.name, &parent.entity, &parent.text);
    match language {
        Language::Ru => format!(
            "tambour не смог выполнить задачу «{name}» ({entity}): {}. {text} \
             Подробности: tambour trace {id}. После исправления: tambour retry {id}.",
            reason_ru(reason)
        ),
        Language::En => format!(
            "tambour could not do the task \"{name}\" ({entity}): {reason}. {text} \
             Details: tambour trace {id}. Once it is put right: tambour retry {id}."
        ),
    }
}

/// The reason in the manager's words; a code of a later build as it is.
fn reason_ru(code: &str) -> &str {
    match code {
        "validation" => "CRM не приняла данные",
        "wrong_currency" => "валюта заказа не совпадает с валютой CRM",
        "bad_money" => "сумму нельзя записать точно",
        "entity_gone" => "карточки больше нет",
        "deleted_outside" => "созданную карточку удалили вручную",
        "ambiguous" => "найдены две одинаковые карточки",
        "outcome_unknown" => "неизвестно, выполнилось ли изменение",
        "worker_lost" => "программа падала на этой задаче",
        "attempts_spent" => "все попытки исчерпаны",
        "template" => "ошибка в шаблоне",
        "configuration" => "ошибка в настройках",
        "unreadable" => "данные не читаются",
        other => other,
    }
}

struct Subject<'a> {
    crm: &'a Amocrm,
    object: ObjectRef,
    marker: String,
    new: NewCrmTask,
    /// Nothing older can be this notice.
    since: Timestamp,
}

impl Searchable for Subject<'_> {
    fn object(&self) -> &ObjectRef {
        &self.object
    }

    async fn search(&self) -> Result<Vec<String>, Refusal> {
        let tasks = self.crm.crm_tasks(self.new.lead_id, self.since).await?;
        Ok(tasks.iter().filter(|task| task.text.contains(&self.marker)).map(|task| task.id.to_string()).collect())
    }
}

impl Creatable for Subject<'_> {
    fn version(&self) -> Option<Version> {
        None
    }

    fn evidence(&self) -> Value {
        json!({ "request": self.new.to_json() })
    }

    async fn send(&self, proof: &IntentDurable) -> Result<String, Refusal> {
        self.crm.create_task(proof, &self.new).await.map(|id| id.to_string())
    }
}
