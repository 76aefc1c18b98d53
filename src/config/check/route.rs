//! `[[routes]]`: which event starts which task.

use crate::config::check::{event, field};
use crate::config::raw::{Named, Reported, Value, did_you_mean};
use crate::config::{Condition, Route, Source, SourceKind, Target, TargetKind, Task, TaskKind};

/// Reads one route and checks that its event, source and task fit each other.
pub(super) fn read(
    value: &Value<'_>,
    sources: &Named<Source>,
    targets: &Named<Target>,
    tasks: &Named<Task>,
) -> Result<Route, Reported> {
    let mut section = value.item()?;
    let source = section.required("source", |value| sources.find(value));
    let task = section.required("task", |value| {
        let task = tasks.find(value)?;
        source.and_then(|source| fits(value, source, task, targets)).map(|()| task)
    });
    let events = section.required("events", |value| value.each_of_some(|value| event_kind(value, source?, task.ok())));
    let conditions = section.or("where", Vec::new(), |value| conditions(value, events.as_deref().unwrap_or_default()));
    let since = section.optional("since", Value::moment);
    section.finish()?;
    Ok(Route {
        source: source?.name.clone(),
        events: events?,
        conditions: conditions?,
        task: task?.name.clone(),
        since: since?,
    })
}

/// Whether a task can be done from what a source sends.
fn fits(value: &Value<'_>, source: &Source, task: &Task, targets: &Named<Target>) -> Result<(), Reported> {
    match (&task.kind, &source.kind) {
        (TaskKind::Deal(_), SourceKind::Shopify { .. }) => Ok(()),
        (TaskKind::Deal(_), SourceKind::Amocrm { .. }) => {
            Err(value.refuse("names a deal task, which needs a shopify source"))
        }
        (TaskKind::Note(_), SourceKind::Amocrm { account_id }) => match targets.get(&task.target).map(|t| &t.kind) {
            Some(TargetKind::Amocrm(target)) if target.account_id != *account_id => {
                Err(value.refuse("names a note task of another account than the source's"))
            }
            _ => Ok(()),
        },
        (TaskKind::Note(_), SourceKind::Shopify { .. }) => {
            Err(value.refuse("names a note task, which needs an amocrm source"))
        }
        (TaskKind::Notice(_), _) => Err(value.refuse("names a notice task, which other tasks start, never a route")),
    }
}

/// An event kind that the source sends and that is about what the task works on.
fn event_kind(value: &Value<'_>, source: &Source, task: Option<&Task>) -> Result<String, Reported> {
    let kind = value.text()?;
    let known = event::known(&source.kind);
    if !known.contains(&kind) {
        let hint = did_you_mean(kind, known.iter().copied());
        return Err(value.refuse_with("names an event that this source does not send", hint));
    }
    match task.map(|task| &task.kind) {
        Some(TaskKind::Deal(_)) if !event::is_about_an_order(kind) => {
            Err(value.refuse("names an event that is not about an order, which a deal task needs"))
        }
        Some(TaskKind::Note(_)) if !event::is_about_a_deal(kind) => {
            Err(value.refuse("names an event that is not about a deal, which a note task needs"))
        }
        _ => Ok(kind.to_owned()),
    }
}

/// `{ status_id = [142, 143], pipeline_id = 31 }`: fields with the values that they may have.
fn conditions(value: &Value<'_>, events: &[String]) -> Result<Vec<Condition>, Reported> {
    let outcomes: Vec<_> = value
        .section()?
        .take_all()
        .into_iter()
        .map(|(key, value)| is_known(&key, &value, events).and_then(|()| conditions_at(key, &value)))
        .collect();
    flat(outcomes)
}

/// Whether an item of each event can have the field; of a path its first part is looked at.
fn is_known(key: &str, value: &Value<'_>, events: &[String]) -> Result<(), Reported> {
    for known in events.iter().filter_map(|event| field::known(event)) {
        if !known.contains(&key) {
            let hint = did_you_mean(key, known.iter().copied());
            return Err(value.refuse_with("is no field of these events, so the route would never act", hint));
        }
    }
    Ok(())
}

/// TOML makes a table of each dot in a field's name; here they are put together again.
fn conditions_at(field: String, value: &Value<'_>) -> Result<Vec<Condition>, Reported> {
    if value.is_table() {
        let below = value.section()?.take_all().into_iter();
        return flat(below.map(|(key, value)| conditions_at(format!("{field}.{key}"), &value)).collect());
    }
    let any_of = if value.is_list() { value.each_of_some(Value::plain)? } else { vec![value.plain()?] };
    Ok(vec![Condition { field, any_of }])
}

fn flat(outcomes: Vec<Result<Vec<Condition>, Reported>>) -> Result<Vec<Condition>, Reported> {
    outcomes.into_iter().try_fold(Vec::new(), |mut all, some| {
        all.extend(some?);
        Ok(all)
    })
}
