//! What can be asked, and the answers; the same live and offline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::admin::filter::parse_id;
use crate::admin::fix::{self, WantedField};
use crate::admin::view::{self, Page, Resumed, Route};
use crate::admin::{Context, Error, EventFilter, PAGE_MAX, TaskFilter, health, operate, sample, trace};
use crate::config::{Config, Names};
use crate::domain::{NameKind, Timestamp};
use crate::intake::route_names;
use crate::store::{self, View};

/// One question or wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How things stand: [`view::Health`].
    Status,
    /// The routes: a list of [`view::Route`].
    Routes,
    /// Stored deliveries, newest first: a [`view::Page`] of [`view::Event`].
    Events {
        /// Which.
        filter: EventFilter,
        /// Only older than this event.
        before: Option<String>,
        /// At most so many; never more than [`PAGE_MAX`].
        limit: usize,
    },
    /// Tasks, newest first: a [`view::Page`] of [`view::Task`].
    Tasks {
        /// Which.
        filter: TaskFilter,
        /// Only older than this task.
        before: Option<String>,
        /// At most so many; never more than [`PAGE_MAX`].
        limit: usize,
    },
    /// Spans in which deliveries may have been lost: a list of [`view::Window`], by source and reason.
    Windows,
    /// All that is known of one thing: [`view::Trace`].
    Trace {
        /// Whatever a person has at hand.
        id: String,
    },
    /// What a wish would touch: [`view::Preview`].
    Preview {
        /// The wish.
        wish: Wish,
        /// For which tasks.
        filter: TaskFilter,
    },
    /// Does a wish to one page of tasks: [`view::Operated`].
    Operate {
        /// The wish.
        wish: Wish,
        /// To which tasks.
        filter: TaskFilter,
        /// For the audit trail.
        why: String,
        /// Only to tasks older than this one.
        before: Option<String>,
    },
    /// Ends the hold of a target: [`view::Resumed`].
    Resume {
        /// The target.
        target: String,
    },
    /// The newest stored order, with its data: a [`view::Sample`] or null.
    Sample {
        /// Of this source.
        source: String,
        /// Of these event kinds.
        events: Vec<String>,
    },
    /// The names that keys hold: a list of [`view::Name`].
    Names,
    /// Makes CRM fields, each once: a list of their ids outside.
    Fix {
        /// In this target.
        target: String,
        /// Which.
        fields: Vec<WantedField>,
    },
}

impl Request {
    /// People write the names of the configuration, the file holds those of keys.
    fn in_keys(mut self, names: &Names) -> Self {
        let (source, target) = match &mut self {
            Self::Events { filter, .. } => (filter.source.as_mut(), None),
            Self::Tasks { filter, .. } | Self::Preview { filter, .. } | Self::Operate { filter, .. } => {
                (filter.source.as_mut(), filter.target.as_mut())
            }
            Self::Sample { source, .. } => (Some(source), None),
            Self::Resume { target } | Self::Fix { target, .. } => (None, Some(target)),
            Self::Status | Self::Routes | Self::Trace { .. } | Self::Names | Self::Windows => (None, None),
        };
        for (kind, name) in [(NameKind::Source, source), (NameKind::Target, target)] {
            if let Some(name) = name {
                *name = names.in_keys(kind, name).to_owned();
            }
        }
        self
    }
}

/// A person's wish for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// The next attempt now; dead tasks work again.
    Retry,
    /// They are not to be done.
    Close,
    /// They run again whatever their state.
    Replay,
}

impl Wish {
    pub(super) const fn stored(self) -> store::Wish {
        match self {
            Self::Retry => store::Wish::Retry,
            Self::Close => store::Wish::Close,
            Self::Replay => store::Wish::Replay,
        }
    }
}

/// Answers a request; `who` asks, for the audit trail.
///
/// # Errors
/// [`Error`].
pub async fn answer(context: &Context, request: Request, who: &str) -> Result<Value, Error> {
    match request.in_keys(&context.config.names) {
        Request::Status => Ok(json(&health::health(context).await?)),
        Request::Routes => {
            let live = context.read(|file| file.routes_live()).await?;
            Ok(json(&routes(&context.config, &live)))
        }
        Request::Events { filter, before, limit } => events(context, filter, before, limit).await,
        Request::Tasks { filter, before, limit } => tasks(context, filter, before, limit).await,
        Request::Windows => {
            let windows = context.read(View::windows).await?;
            Ok(json(&windows.into_iter().map(view::window).collect::<Vec<_>>()))
        }
        Request::Trace { id } => Ok(json(&trace::trace(context, id).await?)),
        Request::Preview { wish, filter } => Ok(json(&operate::preview(context, wish, filter).await?)),
        Request::Operate { wish, filter, why, before } => {
            Ok(json(&operate::operate(context, operate::Asked { wish, filter, why, before }, who).await?))
        }
        Request::Resume { target } => resume(context, &target, who).await,
        Request::Sample { source, events } => Ok(json(&sample::newest_order(context, source, events).await?)),
        Request::Names => {
            let names = context.read(|file| file.names()).await?;
            Ok(json(&names.into_iter().map(view::name).collect::<Vec<_>>()))
        }
        Request::Fix { target, fields } => Ok(json(&fix::make_fields(context, &target, &fields).await?)),
    }
}

/// The routes of a configuration, with the moments at which they first went live.
pub fn routes(config: &Config, live: &[(String, Timestamp)]) -> Vec<Route> {
    let live: BTreeMap<_, _> = live.iter().map(|(name, at)| (name.as_str(), *at)).collect();
    let named = config.routes.iter().zip(route_names(config));
    named
        .map(|(route, name)| {
            let task = config.tasks.get(&route.task);
            let conditions = route.conditions.iter().map(|c| format!("{} = {}", c.field, c.any_of.join("|")));
            Route {
                source: route.source.clone(),
                events: route.events.clone(),
                conditions: conditions.collect::<Vec<_>>().join(", "),
                task: route.task.clone(),
                kind: task.map_or("-", |task| task.kind.as_str()).to_owned(),
                target: task.map_or_else(|| "-".to_owned(), |task| task.target.clone()),
                since: route.since.map(|at| at.to_string()),
                first_live: live.get(name.as_str()).map(ToString::to_string),
            }
        })
        .collect()
}

async fn events(context: &Context, filter: EventFilter, before: Option<String>, limit: usize) -> Result<Value, Error> {
    let before = before.map(|id| parse_id(&id)).transpose()?;
    let limit = limit.clamp(1, PAGE_MAX);
    let found = context.read(move |file| file.events(before, limit, &|event| filter.wants(event))).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|event| event.id.to_string());
    Ok(json(&Page { items: found.into_iter().map(view::event).collect(), next }))
}

async fn tasks(context: &Context, filter: TaskFilter, before: Option<String>, limit: usize) -> Result<Value, Error> {
    let before = before.map(|id| parse_id(&id)).transpose()?;
    let limit = limit.clamp(1, PAGE_MAX);
    let ids = filter.checked_ids()?;
    let wants = move |task: &store::TaskView| (ids.is_empty() || ids.contains(&task.id)) && filter.wants(task);
    let found = context.read(move |file| file.tasks(before, limit, &wants)).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|task| task.id.to_string());
    Ok(json(&Page { items: found.into_iter().map(view::task).collect(), next }))
}

async fn resume(context: &Context, target: &str, who: &str) -> Result<Value, Error> {
    if !context.config.targets.contains_key(target) {
        let known: Vec<&str> = context.config.targets.keys().map(String::as_str).collect();
        return Err(Error::Unknown(format!("there is no target `{target}`; there are: {}", known.join(", "))));
    }
    Ok(json(&Resumed { was_held: context.store.resume(target, who).await? }))
}

fn json<T: Serialize>(answer: &T) -> Value {
    serde_json::to_value(answer).expect("views have only texts, numbers and lists")
}
