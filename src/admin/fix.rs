//! What the configuration names, against what a CRM account has; and the fields that can be made.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::admin::{Context, Error};
use crate::client::{Account, Amocrm, Field, NewField, Pipeline, User};
use crate::config::{AmocrmTarget, Config, DealTask, Language, Target, TargetKind, Task, TaskKind};
use crate::domain::{KeyBuilder, NameKind, Refusal};
use crate::effect::{Creatable, Searchable, Steps};
use crate::store::{Holder, IntentDurable, ObjectRef, Version};

/// The type of our fields: ids and exact sums are texts.
const KIND: &str = "text";

/// What a look at an account found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// What a person must put right, in the configuration or in the account.
    pub problems: Vec<String>,
    /// Fields that deals need and that [`Request::Fix`](crate::admin::Request::Fix) can make.
    pub missing: Vec<WantedField>,
}

/// A CRM field of deals that is to be made, of type text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedField {
    /// Its code.
    pub code: String,
    /// What people see.
    pub name: String,
}

/// Everything of an account that a configuration may name.
struct Seen {
    account: Account,
    pipelines: Vec<Pipeline>,
    users: Vec<User>,
    fields: Vec<Field>,
}

/// Looks at the account of a target; changes nothing.
///
/// # Errors
/// [`Refusal`] when the account cannot be read.
pub async fn inspect(config: &Config, target: &Target, crm: &Amocrm) -> Result<Inspection, Refusal> {
    let seen = Seen {
        account: crm.account().await?,
        pipelines: crm.pipelines().await?,
        users: crm.users().await?,
        fields: crm.lead_fields().await?,
    };
    Ok(judge(config, target, &seen))
}

fn judge(config: &Config, target: &Target, seen: &Seen) -> Inspection {
    let TargetKind::Amocrm(access) = &target.kind;
    let mut found = Inspection::default();
    found.account(config.names.written(NameKind::Target, &target.name), access, seen);
    for task in config.tasks.values().filter(|task| task.target == target.name) {
        match &task.kind {
            TaskKind::Deal(deal) => found.deal(config, task, deal, seen),
            TaskKind::Note(note) => {
                let name = config.names.written(NameKind::Task, &task.name);
                found.stages(&format!("task `{name}`: `valid_in`"), &note.valid_in, seen);
            }
            TaskKind::Notice(_) => {}
        }
    }
    found.routes(config, target, seen);
    found
}

impl Inspection {
    fn account(&mut self, target: &str, access: &AmocrmTarget, seen: &Seen) {
        let (account, at) = (&seen.account, format!("target `{target}`"));
        if account.id != access.account_id {
            let (ours, theirs) = (access.account_id, account.id);
            self.problems.push(format!("{at}: `account_id` is {ours}, and the token is of account {theirs}"));
        }
        if !account.currency.eq_ignore_ascii_case(&access.currency) {
            let (ours, theirs) = (&access.currency, &account.currency);
            self.problems.push(format!("{at}: `currency` is {ours}, and the account's is {theirs}"));
        }
        self.user(&at, access.responsible_user_id, seen);
    }

    fn deal(&mut self, config: &Config, task: &Task, deal: &DealTask, seen: &Seen) {
        let at = format!("task `{}`", config.names.written(NameKind::Task, &task.name));
        match seen.pipelines.iter().find(|pipeline| pipeline.id == deal.pipeline_id) {
            None => {
                let known = seen.pipelines.iter().map(|pipeline| (pipeline.id, pipeline.name.as_str()));
                self.absent(&at, "pipeline", deal.pipeline_id, known);
            }
            Some(pipeline) => {
                let moved = deal.moves.iter().flat_map(|m| m.from.iter().chain([&m.to]));
                for stage in [&deal.status_id].into_iter().chain(moved) {
                    if pipeline.statuses.iter().all(|status| status.id != *stage) {
                        let known = pipeline.statuses.iter().map(|status| (status.id, status.name.as_str()));
                        self.absent(&format!("{at}: pipeline {}", pipeline.id), "stage", *stage, known);
                    }
                }
            }
        }
        if let Some(user) = deal.responsible_user_id {
            self.user(&at, user, seen);
        }
        for field in deal.fields.iter().filter(|field| seen.fields.iter().all(|known| known.id != field.field_id)) {
            let known = seen.fields.iter().map(|known| (known.id, known.name.as_str()));
            self.absent(&at, "field", field.field_id, known);
        }
        for wanted in own_fields(config.language, deal) {
            match seen.fields.iter().find(|known| known.code.as_ref() == Some(&wanted.code)) {
                None if !self.missing.contains(&wanted) => self.missing.push(wanted),
                Some(known) if known.kind != KIND => {
                    let (code, kind) = (&wanted.code, &known.kind);
                    self.problems.push(format!("{at}: field {code} is of type {kind}, and must be of type {KIND}"));
                }
                _ => {}
            }
        }
    }

    fn routes(&mut self, config: &Config, target: &Target, seen: &Seen) {
        let to_target = |task: &String| config.tasks.get(task).is_some_and(|task| task.target == target.name);
        for route in config.routes.iter().filter(|route| to_target(&route.task)) {
            for condition in route.conditions.iter().filter(|condition| condition.field == "status_id") {
                let stages: Vec<u64> = condition.any_of.iter().filter_map(|text| text.parse().ok()).collect();
                let task = config.names.written(NameKind::Task, &route.task);
                self.stages(&format!("route to `{task}`: `status_id`"), &stages, seen);
            }
        }
    }

    /// Stages of any pipeline.
    fn stages(&mut self, at: &str, wanted: &[u64], seen: &Seen) {
        let known = || seen.pipelines.iter().flat_map(|pipeline| &pipeline.statuses);
        for stage in wanted.iter().filter(|stage| known().all(|status| status.id != **stage)) {
            self.absent(at, "stage", *stage, known().map(|status| (status.id, status.name.as_str())));
        }
    }

    fn user(&mut self, at: &str, id: u64, seen: &Seen) {
        if seen.users.iter().all(|user| user.id != id) {
            self.absent(at, "user", id, seen.users.iter().map(|user| (user.id, user.name.as_str())));
        }
    }

    fn absent<'a>(&mut self, at: &str, what: &str, id: u64, known: impl Iterator<Item = (u64, &'a str)>) {
        let known: String = known.map(|(id, name)| format!("\n  {id}  {name}")).collect();
        self.problems.push(format!("{at}: there is no {what} {id}; there are:{known}"));
    }
}

/// The three fields by which deals are found again and compared.
fn own_fields(language: Language, deal: &DealTask) -> [WantedField; 3] {
    let names = match language {
        Language::Ru => ["Заказ (tambour)", "Версия заказа (tambour)", "Точная сумма (tambour)"],
        Language::En => ["Order (tambour)", "Order version (tambour)", "Exact sum (tambour)"],
    };
    let [id, version, total] = names.map(str::to_owned);
    [
        WantedField { code: deal.field_id_code.clone(), name: id },
        WantedField { code: deal.field_version_code.clone(), name: version },
        WantedField { code: deal.field_total_code.clone(), name: total },
    ]
}

/// Makes fields in the account of a target, each once; gives their ids.
pub(super) async fn make_fields(context: &Context, target: &str, fields: &[WantedField]) -> Result<Vec<String>, Error> {
    let configured = context.config.targets.get(target).zip(context.accounts.get(target));
    let (target, crm) = configured.ok_or_else(|| Error::Unknown(format!("there is no target `{target}`")))?;
    let (store, clock, metrics) = (context.store.clone(), context.clock.clone(), context.metrics.clone());
    let steps = Steps::new(store, clock, metrics, Holder::Person, "fix", target.doubt_wait());
    let mut ids = Vec::new();
    for field in fields {
        let object = object(context, target, &field.code)?;
        let new = NewField { code: field.code.clone(), name: field.name.clone(), kind: KIND.to_owned() };
        ids.push(steps.create(&Subject { crm, object, new }).await?.external_id().to_owned());
    }
    Ok(ids)
}

/// The field as an object of ours. One that was made before and is missed now was
/// deleted by a person; made again, it is another object, with the old id in its key.
fn object(context: &Context, target: &Target, code: &str) -> Result<ObjectRef, Error> {
    let TargetKind::Amocrm(access) = &target.kind;
    let mut key = KeyBuilder::new().part("amocrm").part(&access.account_id.to_string()).part("field").part(code);
    let file = context.store.view()?;
    loop {
        let object = ObjectRef::new(&target.name, "field", vec![key.clone().finish()]);
        let known = file.object(&object).map_err(crate::store::Error::from)?;
        let Some(id) = known.external_id() else { return Ok(object) };
        key = key.part(id);
    }
}

/// A field that is searched for and made.
struct Subject<'a> {
    crm: &'a Amocrm,
    object: ObjectRef,
    new: NewField,
}

impl Searchable for Subject<'_> {
    fn object(&self) -> &ObjectRef {
        &self.object
    }

    async fn search(&self) -> Result<Vec<String>, Refusal> {
        let fields = self.crm.lead_fields().await?;
        let ours = |field: &&Field| field.code.as_ref() == Some(&self.new.code);
        Ok(fields.iter().filter(ours).map(|field| field.id.to_string()).collect())
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
        self.crm.create_lead_field(proof, &self.new).await.map(|id| id.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::tests::config;
    use crate::client::Status;
    use crate::config::Move;

    fn seen() -> Seen {
        let status = |id, name: &str| Status { id, name: name.to_owned() };
        let field = |id, code: &str, kind: &str| Field {
            id,
            name: code.to_lowercase(),
            code: Some(code.to_owned()),
            kind: kind.to_owned(),
        };
        let statuses =
            vec![status(61_000_002, "Первичный контакт"), status(61_000_003, "Договор"), status(142, "Успех")];
        Seen {
            account: Account { id: 31_000_001, currency: "RUB".to_owned(), subdomain: "tambourtest".to_owned() },
            pipelines: vec![Pipeline { id: 7_100_001, name: "Воронка".to_owned(), is_main: true, statuses }],
            users: vec![User { id: 9_000_001, name: "Менеджер".to_owned() }],
            fields: vec![
                field(1, "TAMBOUR_ID", "text"),
                field(2, "TAMBOUR_VERSION", "text"),
                field(3, "TAMBOUR_TOTAL", "text"),
            ],
        }
    }

    /// Changes the configuration's deal task and what the account has, then looks.
    fn check(change: fn(&mut DealTask, &mut Seen), problems: &[&str], missing: &[&str]) {
        let (mut config, mut seen) = (config(), seen());
        let deal = config.tasks.get_mut("deal").unwrap();
        let TaskKind::Deal(deal) = &mut deal.kind else { panic!("it is a deal task") };
        change(deal, &mut seen);
        let found = judge(&config, &config.targets["crm"], &seen);
        assert_eq!(found.problems, problems);
        assert_eq!(found.missing.iter().map(|field| field.code.as_str()).collect::<Vec<_>>(), missing);
    }

    #[test]
    fn what_the_account_lacks_is_told_with_what_it_has() {
        check(|_, _| {}, &[], &[]);
        check(|_, seen| drop(seen.fields.drain(..2)), &[], &["TAMBOUR_ID", "TAMBOUR_VERSION"]);
        check(
            |_, seen| seen.fields[2].kind = "numeric".to_owned(),
            &["task `deal`: field TAMBOUR_TOTAL is of type numeric, and must be of type text"],
            &[],
        );
        check(
            |_, seen| seen.account = Account { id: 7, currency: "USD".to_owned(), subdomain: String::new() },
            &[
                "target `crm`: `account_id` is 31000001, and the token is of account 7",
                "target `crm`: `currency` is RUB, and the account's is USD",
            ],
            &[],
        );
        check(
            |deal, _| deal.pipeline_id = 5,
            &["task `deal`: there is no pipeline 5; there are:\n  7100001  Воронка"],
            &[],
        );
        let stages = "\n  61000002  Первичный контакт\n  61000003  Договор\n  142  Успех";
        check(
            |deal, _| deal.moves.push(Move { when: "paid".to_owned(), from: vec![61_000_002], to: 6 }),
            &[&format!("task `deal`: pipeline 7100001: there is no stage 6; there are:{stages}")],
            &[],
        );
        check(
            |deal, _| deal.responsible_user_id = Some(8),
            &["task `deal`: there is no user 8; there are:\n  9000001  Менеджер"],
            &[],
        );
    }

    /// The stages of notes and of conditions may be of any pipeline.
    #[test]
    fn stages_of_notes_and_routes_are_looked_for_everywhere() {
        let lacks = |seen: &mut Seen| seen.pipelines[0].statuses.retain(|status| status.id != 61_000_003);
        let stages = "\n  61000002  Первичный контакт\n  142  Успех";
        let mut account = seen();
        lacks(&mut account);
        let config = config();
        let found = judge(&config, &config.targets["crm"], &account);
        assert_eq!(
            found.problems,
            [
                format!("task `note`: `valid_in`: there is no stage 61000003; there are:{stages}"),
                format!("route to `note`: `status_id`: there is no stage 61000003; there are:{stages}"),
            ]
        );
    }
}
