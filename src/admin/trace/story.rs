//! Puts what was read into sentences, in time order.

use crate::admin::trace::{Read, ReadTask};
use crate::admin::view::{Line, seconds};
use crate::domain::{State, Timestamp};
use crate::store::{EventView, IntentView, ItemView, TaskView};

/// How many things of one event are named.
const ITEMS_SHOWN: usize = 3;

/// A line before it is put in order; of the same moment, causes come first.
struct Moment {
    at: Timestamp,
    place: u8,
    line: Line,
}

impl Moment {
    fn new(at: Timestamp, place: u8, who: &dyn ToString, text: String) -> Self {
        Self { at, place, line: Line { at: at.to_string(), who: who.to_string(), text } }
    }
}

/// Tells what happened.
pub(super) fn tell(read: &Read) -> Vec<Line> {
    let mut moments: Vec<Moment> = read.events.iter().map(|event| received(read, event)).collect();
    for of in &read.tasks {
        moments.push(Moment::new(of.task.created_at, 1, &of.task.id, made(&of.task)));
        for intent in &of.intents {
            moments.extend(change(intent));
        }
        moments.push(Moment::new(of.task.updated_at, 4, &of.task.id, stands(read, of)));
    }
    for act in &read.acts {
        moments.push(Moment::new(act.at, 3, &act.who, format!("{} {}", act.action, act.what)));
    }
    moments.sort_by_key(|moment| (moment.at, moment.place));
    moments.into_iter().map(|moment| moment.line).collect()
}

fn received(read: &Read, event: &EventView) -> Moment {
    let mut text = format!("{} from {}: {}", event.topic, event.source, event.state);
    for about in items(event) {
        text.push_str(&format!(", {about}"));
    }
    if let Some(at) = event.source_time {
        text.push_str(&format!(", told at {}", short(at)));
    }
    if let Some(label) = &event.secret_label {
        text.push_str(&format!(", secret {label}"));
    }
    if event.copies > 0 {
        text.push_str(&format!(", repeated {} times until {}", event.copies, short(event.last_seen)));
    }
    if let Some(first) = event.conflicts_with {
        text.push_str(&format!(", other content under the id of {first}"));
    }
    for of in &read.tasks {
        for (_, how) in of.met.iter().filter(|(id, _)| *id == event.id) {
            text.push_str(&format!(", {} {}", how.as_str(), of.task.id));
        }
    }
    Moment::new(event.received_at, 0, &event.id, text)
}

/// What is in an event, each thing once.
fn items(event: &EventView) -> Vec<String> {
    let mut named = Vec::new();
    for item in &event.items {
        let text = match item {
            ItemView::Fact { entity_kind, entity_id, .. } => format!("{entity_kind} {entity_id}"),
            ItemView::Unreadable { at, why } => format!("unreadable {at} ({why})"),
        };
        if !named.contains(&text) {
            named.push(text);
        }
    }
    if named.len() > ITEMS_SHOWN {
        let more = named.len() - ITEMS_SHOWN;
        named.truncate(ITEMS_SHOWN);
        named.push(format!("{more} more"));
    }
    named
}

fn made(task: &TaskView) -> String {
    let from = task.first_event.map(|id| format!(" by {id}")).or_else(|| task.parent.map(|id| format!(" by {id}")));
    let TaskView { kind, name, target, entity, .. } = task;
    format!("{kind} task `{name}` on {target} about {entity}, made{}", from.unwrap_or_default())
}

/// The intent and, once there is one, its outcome.
fn change(intent: &IntentView) -> impl Iterator<Item = Moment> {
    let IntentView { shape, object_kind, target, task, .. } = intent;
    let planned = format!("{shape} {object_kind} on {target}, for {task}");
    let because = if intent.text.is_empty() { String::new() } else { format!(": {}", intent.text) };
    let opened = match intent.settled_at {
        Some(_) => planned,
        None => format!("{planned}; {}{because}", if intent.state == "open" { "not settled" } else { "in doubt" }),
    };
    let settled = intent.settled_at.map(|at| {
        let object = intent.external_id.as_ref().map(|id| format!(": {object_kind} {id} on {target}"));
        Moment::new(at, 2, &intent.id, format!("{}{}{because}", intent.state, object.unwrap_or_default()))
    });
    std::iter::once(Moment::new(intent.opened_at, 1, &intent.id, opened)).chain(settled)
}

/// How a task stands now.
fn stands(read: &Read, of: &ReadTask) -> String {
    let task = &of.task;
    let mut text = format!("now: {}", task.state.as_str());
    if let Some(reason) = &task.reason {
        text.push_str(&format!(" ({reason})"));
    }
    match task.attempts.get() {
        0 => {}
        1 => text.push_str(" after 1 attempt"),
        attempts => text.push_str(&format!(" after {attempts} attempts")),
    }
    if !task.text.is_empty() {
        text.push_str(&format!(": {}", task.text));
    }
    if let Some(until) = task.leased_until {
        text.push_str(&format!("; leased until {}", short(until)));
    }
    if !task.state.is_unfinished() || task.state == State::Running {
        return text;
    }
    if let Some(head) = &of.waits_behind {
        text.push_str(&format!("; waits behind {}, {}", head.id, head.state.as_str()));
    }
    let head = of.waits_behind.as_ref().unwrap_or(task);
    match (read.holds.iter().find(|hold| hold.target == task.target), head.due) {
        (Some(hold), _) => {
            text.push_str(&format!("; {} is held since {}", hold.target, short(hold.since)));
            if hold.text != task.text {
                text.push_str(&format!(": {}", hold.text));
            }
        }
        (None, Some(due)) => text.push_str(&format!("; next try {}", short(due))),
        (None, None) => {}
    }
    text
}

fn short(at: Timestamp) -> String {
    seconds(&at.to_string())
}
