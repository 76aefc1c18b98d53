//! Every template, tried on real data where there is some.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::admin::Request;
use crate::admin::view::Sample;
use crate::cli::check::{Finding, sample};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::Link;
use crate::config::{Config, Task, TaskKind};
use crate::domain::Timestamp;
use crate::text::Template;

/// The newest stored order of each deal task.
pub(super) async fn stored_orders(config: &Config, link: &mut Link) -> Result<BTreeMap<String, Sample>, Error> {
    let mut wanted: BTreeMap<(&str, &str), BTreeSet<&String>> = BTreeMap::new();
    for route in &config.routes {
        if config.tasks.get(&route.task).is_some_and(|task| matches!(task.kind, TaskKind::Deal(_))) {
            wanted.entry((&route.task, &route.source)).or_default().extend(&route.events);
        }
    }
    let mut found = BTreeMap::new();
    for ((task, source), events) in wanted {
        let events = events.into_iter().cloned().collect();
        match link.ask::<Option<Sample>>(Request::Sample { source: source.to_owned(), events }).await {
            Ok(sample) => found.extend(sample.map(|sample| (task.to_owned(), sample))),
            // Before the first `serve` there is no file, which is as it should be.
            Err(error) if error.exit() == Exit::DataFile && !config.data.exists() => return Ok(found),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Renders all templates; one finding a task.
pub(super) fn try_all(config: &Config, stored: &BTreeMap<String, Sample>, now: Timestamp) -> Vec<Finding> {
    config.tasks.values().filter_map(|task| try_task(task, stored.get(&task.name), now)).collect()
}

fn try_task(task: &Task, stored: Option<&Sample>, now: Timestamp) -> Option<Finding> {
    let about = format!("task {}", task.name);
    let built_in = "the built-in sample";
    let (on, data, templates) = match &task.kind {
        TaskKind::Notice(_) => return None,
        TaskKind::Note(note) => {
            (built_in, json!({ "lead": sample::lead_json() }), vec![("text".to_owned(), &note.text)])
        }
        TaskKind::Deal(deal) => {
            let fields = deal.fields.iter().map(|field| (format!("fields.{}", field.field_id), &field.value));
            let templates = [("name".to_owned(), &deal.name)].into_iter().chain(fields).collect();
            let (on, order) = match stored {
                Some(sample) => (sample.event.as_str(), Ok(sample.order.clone())),
                None => (built_in, sample::order_json(now)),
            };
            match order {
                Ok(order) => (on, json!({ "order": order }), templates),
                Err(error) => return Some(Finding::bad(about, format!("{on}: {error}"))),
            }
        }
    };
    Some(match failures(&templates, &data).as_slice() {
        [] => Finding::good(about, format!("{} on {on}", names(&templates))),
        failures => Finding::bad(about, format!("on {on}: {}", failures.join("; "))),
    })
}

fn failures(templates: &[(String, &Template)], data: &Value) -> Vec<String> {
    let failed = |(key, template): &(String, &Template)| {
        template.render(data).err().map(|error| format!("template `{key}` failed: {error}"))
    };
    templates.iter().filter_map(failed).collect()
}

fn names(templates: &[(String, &Template)]) -> String {
    templates.iter().map(|(key, _)| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}
