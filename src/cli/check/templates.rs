//! Every template, tried on real data where there is some.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::admin::Request;
use crate::admin::view::Sample;
use crate::cli::check::{Finding, sample};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::Link;
use crate::config::{Config, DealTask, Language, TargetKind, Task, TaskKind};
use crate::domain::{NameKind, Timestamp};
use crate::rules::{DealFields, DealRefusal, DealSeen, Order, changes, lines_note, new_deal};
use crate::sandbox::OrderSketch;
use crate::text::Template;

const BUILT_IN: &str = "the built-in sample";

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

/// Renders all templates and applies the rules of deals; one finding a task.
pub(super) fn try_all(config: &Config, stored: &BTreeMap<String, Sample>, now: Timestamp) -> Vec<Finding> {
    let one = |task: &Task| match &task.kind {
        TaskKind::Notice(_) => None,
        TaskKind::Note(note) => Some(try_note(about(config, task), &note.text)),
        TaskKind::Deal(deal) => Some(try_deal(config, task, deal, stored.get(&task.name), now)),
    };
    config.tasks.values().filter_map(one).collect()
}

fn about(config: &Config, task: &Task) -> String {
    format!("task {}", config.names.written(NameKind::Task, &task.name))
}

fn try_note(about: String, text: &Template) -> Finding {
    let custom = custom_keys(text.source());
    let templates = [("text".to_owned(), text)];
    let finding = of_failures(about, BUILT_IN, &templates, &json!({ "lead": sample::lead_json(&custom) }));
    if custom.is_empty() || !finding.ok {
        return finding;
    }
    let keys = custom.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let text =
        format!("{}; only a deal shows whether `lead.custom` has {keys}: `default('')` helps if not", finding.text);
    Finding { text, ..finding }
}

/// What a template takes from `lead.custom`: `.CODE` or `["id"]`.
fn custom_keys(source: &str) -> BTreeSet<String> {
    let key = |rest: &str| {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let key = match rest.strip_prefix('.') {
            Some(rest) => rest.split(|letter| !is_word(letter)).next(),
            None => rest
                .strip_prefix("[\"")
                .and_then(|rest| rest.split('"').next())
                .or_else(|| rest.strip_prefix("['").and_then(|rest| rest.split('\'').next())),
        };
        key.map(str::to_owned)
    };
    source.split("lead.custom").skip(1).filter_map(key).collect()
}

/// An order is tried as what it is, but for being a test: those make no deals.
fn try_deal(config: &Config, task: &Task, deal: &DealTask, stored: Option<&Sample>, now: Timestamp) -> Finding {
    let about = about(config, task);
    let Some(TargetKind::Amocrm(access)) = config.targets.get(&task.target).map(|target| &target.kind) else {
        return Finding::bad(about, "its target is absent");
    };
    let (on, read) = match stored {
        Some(sample) => (sample.event.as_str(), Order::from_webhook(&sample.body)),
        None => {
            let sketch = OrderSketch { currency: access.currency.clone(), ..sample::order(now) };
            (BUILT_IN, Order::from_webhook(&sketch.to_json()))
        }
    };
    let order = match read {
        Ok(order) => Order { test: false, ..order },
        Err(error) => return Finding::bad(about, format!("{on}: {error}")),
    };
    let fields = deal.fields.iter().map(|field| (format!("fields.{}", field.field_id), &field.value));
    let templates: Vec<_> = [("name".to_owned(), &deal.name)].into_iter().chain(fields).collect();
    let finding = of_failures(about.clone(), on, &templates, &json!({ "order": order.to_json() }));
    match try_rules(config, deal, &access.currency, &order) {
        Err(refusal) if finding.ok => Finding::bad(about, format!("on {on}: {}", refusal.text(Language::En))),
        _ => finding,
    }
}

/// A deal is made of the order, then the order comes again.
fn try_rules(config: &Config, deal: &DealTask, currency: &str, order: &Order) -> Result<(), DealRefusal> {
    let made = new_deal(deal, "check", currency, order)?;
    let DealFields { name, price, custom, pipeline_id, status_id, .. } = made;
    let seen = DealSeen { name, price, pipeline_id, status_id, custom: custom.into_iter().collect() };
    changes(deal, "check", currency, order, &seen, None)?;
    lines_note(order, config.language);
    Ok(())
}

fn of_failures(about: String, on: &str, templates: &[(String, &Template)], data: &Value) -> Finding {
    match failures(templates, data).as_slice() {
        [] => Finding::good(about, format!("{} on {on}", names(templates))),
        failures => Finding::bad(about, format!("on {on}: {}", failures.join("; "))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_custom_fields_are_found_in_templates() {
        let check = |source: &str, expected: &[&str]| {
            assert_eq!(custom_keys(source), expected.iter().map(|&key| key.to_owned()).collect(), "{source}");
        };
        check("{{ lead.name }}", &[]);
        check("{{ lead.custom.PHONE }} {{ lead.custom['701'] }}", &["701", "PHONE"]);
        check("{{ lead.custom[\"701\"] }}{{ lead.custom.A|upper }}", &["701", "A"]);
        check("{% if lead.custom %}x{% endif %}", &[]);
    }
}
