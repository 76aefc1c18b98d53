//! From facts and routes to the accept command: for the door, sweeps and replays alike.
//!
//! Pure but for the random trace id. It decides what an event is (routed,
//! unrouted, unreadable, foreign) and which tasks it starts; the keys it builds
//! stand in users' files for good.

use std::sync::Arc;

use crate::config::{Config, Route, Source, Target, TargetKind, Task, TaskKind};
use crate::domain::{Key, KeyBuilder, TaskSeed, Timestamp, TraceId};
use crate::rules::{marker, route_matches};
use crate::source::{Fact, Item, Reading, VerifiedDelivery};
use crate::store::{AcceptCommand, EventState, RoutedTask};
use crate::text::normalize_phones;

/// The routes of a configuration with the moments at which they went live.
#[derive(Clone, Debug)]
pub struct Intake {
    config: Arc<Config>,
    since: Vec<Timestamp>,
}

impl Intake {
    /// `first_live` are the file's moments for [`route_names`], in the same order.
    pub fn new(config: Arc<Config>, first_live: &[Timestamp]) -> Self {
        let moments = first_live.iter().copied().chain(std::iter::repeat(Timestamp::from_millis(i64::MAX)));
        let since = config.routes.iter().zip(moments).map(|(route, live)| route.since.unwrap_or(live)).collect();
        Self { config, since }
    }

    /// Plans what one commit stores for a delivery.
    pub fn plan(&self, delivery: &VerifiedDelivery, reading: &Reading, trace: TraceId) -> AcceptCommand {
        let facts = || reading.items.iter().filter_map(fact_of);
        let tasks: Vec<RoutedTask> = if reading.foreign {
            Vec::new()
        } else {
            facts().flat_map(|fact| self.tasks_of(delivery.source(), &reading.account, fact, trace)).collect()
        };
        let state = if reading.foreign {
            EventState::Foreign
        } else if facts().next().is_none() && !reading.items.is_empty() {
            EventState::Unreadable
        } else if tasks.is_empty() {
            EventState::Unrouted
        } else {
            EventState::Routed
        };
        let aliases = facts().flat_map(aliases_of).collect();
        AcceptCommand::new(delivery, reading, state, trace, tasks, aliases)
    }

    /// The tasks that routes start for one fact, in file order.
    fn tasks_of(&self, source: &str, account: &str, fact: &Fact, trace: TraceId) -> Vec<RoutedTask> {
        let live = self.config.routes.iter().zip(&self.since);
        live.filter(|(route, since)| route_matches(route, source, fact) && is_after(fact, **since))
            .filter_map(|(route, _)| {
                let task = self.config.tasks.get(&route.task)?;
                let target = self.config.targets.get(&task.target)?;
                let source = self.config.sources.get(source)?;
                let seed = seed(source, account, task, target, fact, trace)?;
                Some(RoutedTask { seed, source_time: fact.source_time })
            })
            .collect()
    }
}

/// The names under which the file remembers when routes went live.
pub fn route_names(config: &Config) -> Vec<String> {
    config.routes.iter().map(route_name).collect()
}

/// The source and the task, not the events: a route that hears of one event more
/// must go on with the entities that it knows.
fn route_name(route: &Route) -> String {
    format!("{} -> {}", route.source, route.task)
}

fn fact_of(item: &Item) -> Option<&Fact> {
    match item {
        Item::Fact(fact) => Some(fact),
        Item::Unreadable { .. } => None,
    }
}

/// Whether the entity was made (orders) or moved (deals) since then; a fact
/// without a time is taken, since a lost change is worse than a superfluous look.
///
/// Compared in whole seconds, which is all that the senders' times have.
fn is_after(fact: &Fact, since: Timestamp) -> bool {
    let made = fact.data.get("created_at").and_then(|at| at.as_str()).filter(|_| fact.entity_kind == "order");
    let made =
        made.and_then(|at| at.parse::<jiff::Timestamp>().ok()).map(|at| Timestamp::from_millis(at.as_millisecond()));
    made.or(fact.source_time).is_none_or(|at| at.as_secs() >= since.as_secs())
}

/// The task for one fact; `None` when the task cannot be about such a thing.
fn seed(source: &Source, account: &str, task: &Task, target: &Target, fact: &Fact, trace: TraceId) -> Option<TaskSeed> {
    let key = KeyBuilder::new().part(&source.name).part(account).part(&task.name).part(task.kind.as_str());
    let (key, lane) = match (&task.kind, fact.entity_kind.as_str()) {
        (TaskKind::Deal(_), "order") => {
            (key.part(&fact.entity_id), lane(target, &marker(&source.name, &fact.entity_id)))
        }
        (TaskKind::Note(note), "lead") => {
            (key.part(&fact.entity_id).part(&note.version), lane(target, &fact.entity_id))
        }
        _ => return None,
    };
    Some(TaskSeed {
        name: task.name.clone(),
        kind: task.kind.as_str().to_owned(),
        key: key.finish(),
        lane,
        target: target.name.clone(),
        entity: fact.entity_id.clone(),
        mode: task.mode,
        trace,
    })
}

/// A lane: the target's account, then the entity.
fn lane(target: &Target, entity: &str) -> Key {
    let TargetKind::Amocrm(access) = &target.kind;
    KeyBuilder::new().part("amocrm").part(&access.account_id.to_string()).part(entity).finish()
}

/// Further texts by which people look for an order: its name, the last digits of its phones.
fn aliases_of(fact: &Fact) -> Vec<String> {
    if fact.entity_kind != "order" {
        return Vec::new();
    }
    let text = |pointer: &str| fact.data.pointer(pointer).and_then(|v| v.as_str()).unwrap_or_default();
    let name = text("/name").trim_start_matches('#').chars().take(100).collect::<String>();
    let phones = ["/phone", "/customer/phone", "/shipping_address/phone", "/billing_address/phone"];
    let mut aliases: Vec<String> = phones
        .iter()
        .flat_map(|pointer| normalize_phones(text(pointer)))
        .map(|phone| phone.last4())
        .chain((!name.is_empty()).then_some(name))
        .collect();
    aliases.sort();
    aliases.dedup();
    aliases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(events: &[&str]) -> Route {
        Route {
            source: "shop".to_owned(),
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            conditions: Vec::new(),
            task: "deal".to_owned(),
            since: None,
        }
    }

    /// A route that hears of one event more must not forget the orders that it knows.
    #[test]
    fn a_route_keeps_its_moment_when_its_events_change() {
        let before = route_name(&route(&["orders/create", "orders/updated"]));
        assert_eq!(route_name(&route(&["orders/updated", "orders/create", "orders/paid"])), before);
        assert_ne!(route_name(&Route { task: "other".to_owned(), ..route(&["orders/create"]) }), before);
    }

    #[test]
    fn an_order_counts_by_its_making_and_a_deal_by_its_move() {
        let since = Timestamp::from_secs(1_796_036_400);
        let fact = |kind: &str, created_at: &str, source_time: Option<i64>| Fact {
            kind: "x".to_owned(),
            entity_kind: kind.to_owned(),
            entity_id: "1".to_owned(),
            source_time: source_time.map(Timestamp::from_secs),
            is_whole: true,
            data: serde_json::json!({ "created_at": created_at }),
        };
        let table = [
            ("order", "2026-11-30T14:00:00+03:00", Some(0), true),
            ("order", "2026-11-30T13:59:59+03:00", Some(1_796_036_999), false),
            ("order", "yesterday", Some(1_796_036_400), true),
            ("lead", "1796036000", Some(1_796_036_400), true),
            ("lead", "1796036999", Some(1_796_036_399), false),
            ("lead", "", None, true),
        ];
        for (kind, created_at, time, expected) in table {
            assert_eq!(is_after(&fact(kind, created_at, time), since), expected, "{kind} {created_at} {time:?}");
        }
    }
}
