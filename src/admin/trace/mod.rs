//! One story of one thing, from delivery to effect, whatever id a person has at hand.
//!
//! [`asked`](find::asked) guesses what a text is, [`find`] looks up where the
//! story begins, here it is followed in both directions, and [`story`] tells it.

mod find;
mod story;

use std::collections::BTreeSet;

use crate::admin::view::{self, Met, Trace, TracedTask};
use crate::admin::{Context, Error};
use crate::config::Config;
use crate::domain::{EventId, TaskId};
use crate::store::{AuditView, Broken, EventView, HoldView, IntentView, Meeting, TaskView, View};

/// More tasks make no story that a person reads; the newest are kept.
const TASKS_MAX: usize = 100;

/// The same for events: an order that changes daily for half a year has fewer.
const EVENTS_MAX: usize = 200;

/// How many of the newest acts of people are looked through.
const ACTS_LOOKS_MAX: usize = 1000;

/// Where a story begins, then all of it.
#[derive(Debug, Default)]
struct Ends {
    events: BTreeSet<EventId>,
    tasks: BTreeSet<TaskId>,
}

impl Ends {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.tasks.is_empty()
    }

    /// Keeps the newest; says whether others were left out.
    fn cut(&mut self) -> bool {
        let is_cut = self.events.len() > EVENTS_MAX || self.tasks.len() > TASKS_MAX;
        while self.events.len() > EVENTS_MAX {
            self.events.pop_first();
        }
        while self.tasks.len() > TASKS_MAX {
            self.tasks.pop_first();
        }
        is_cut
    }
}

/// All that is read for a story.
struct Read {
    events: Vec<EventView>,
    tasks: Vec<ReadTask>,
    acts: Vec<AuditView>,
    holds: Vec<HoldView>,
    cut: bool,
}

/// A task with what belongs to it.
struct ReadTask {
    task: TaskView,
    met: Vec<(EventId, Meeting)>,
    intents: Vec<IntentView>,
    follow_ups: Vec<TaskId>,
    waits_behind: Option<TaskView>,
}

/// Tells the story of whatever `id` names.
pub(super) async fn trace(context: &Context, id: String) -> Result<Trace, Error> {
    let config = context.config.clone();
    let asked = id.clone();
    let read = context.read(move |file| read(file, &config, &asked)).await?;
    read.map(shown).ok_or_else(|| Error::Unknown(format!("nothing is stored under `{id}`")))
}

fn read(file: &View, config: &Config, id: &str) -> Result<Option<Read>, Broken> {
    let mut ends = find::find(file, config, &find::asked(id))?;
    if ends.is_empty() {
        return Ok(None);
    }
    let mut cut = follow(file, &mut ends)?;
    let mut tasks = Vec::new();
    for id in ends.tasks.clone() {
        let Some(task) = file.task(id)? else { continue };
        let met = file.events_of_task(id)?;
        ends.events.extend(met.iter().map(|(event, _)| *event));
        let waits_behind = file.waits_behind(&task)?.map(|head| file.task(head)).transpose()?.flatten();
        let (intents, follow_ups) = (file.intents_of_task(id)?, file.follow_ups(id)?);
        tasks.push(ReadTask { task, met, intents, follow_ups, waits_behind });
    }
    cut |= ends.cut();
    let mut events = Vec::new();
    for id in &ends.events {
        events.extend(file.event(*id)?);
    }
    let names: Vec<String> = ends.tasks.iter().map(ToString::to_string).collect();
    let is_of_these =
        |act: &AuditView| names.iter().any(|id| act.what == *id || act.what.starts_with(&format!("{id}:")));
    let acts = file.audit(ACTS_LOOKS_MAX)?.into_iter().filter(is_of_these).collect();
    Ok(Some(Read { events, tasks, acts, holds: file.holds()?, cut }))
}

/// Adds parents and follow-ups of tasks until there are no others.
fn follow(file: &View, ends: &mut Ends) -> Result<bool, Broken> {
    let mut cut = ends.cut();
    let mut left: Vec<TaskId> = ends.tasks.iter().copied().collect();
    while let Some(id) = left.pop() {
        let parent = file.task(id)?.and_then(|task| task.parent);
        for near in file.follow_ups(id)?.into_iter().chain(parent) {
            if ends.tasks.len() < TASKS_MAX {
                left.extend(ends.tasks.insert(near).then_some(near));
            } else {
                cut |= !ends.tasks.contains(&near);
            }
        }
    }
    Ok(cut)
}

fn shown(read: Read) -> Trace {
    let story = story::tell(&read);
    let tasks = read.tasks.into_iter().map(|read| TracedTask {
        task: view::task(read.task),
        met: read.met.iter().map(|(id, how)| Met { event: id.to_string(), how: how.as_str().to_owned() }).collect(),
        intents: read.intents.into_iter().map(view::intent).collect(),
        follow_ups: read.follow_ups.iter().map(ToString::to_string).collect(),
        waits_behind: read.waits_behind.map(view::task),
    });
    Trace { story, tasks: tasks.collect(), events: read.events.into_iter().map(view::event).collect(), cut: read.cut }
}
