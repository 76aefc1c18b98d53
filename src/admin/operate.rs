//! A person's wish for many tasks: how many it means, then page by page.

use futures_util::future::join_all;

use crate::admin::filter::parse_id;
use crate::admin::view::{self, Operated, Preview, Refused};
use crate::admin::{Context, Error, PAGE_MAX, TaskFilter, Wish};
use crate::domain::{State, TaskId};
use crate::store::{Broken, Granted, TaskView, View};

/// How many tasks a preview shows.
const PREVIEW_TASKS: usize = 20;

/// Wishes that wait for one commit; below the share of the writer's queue for people.
const TOGETHER: usize = 64;

/// A wish for one page of tasks.
pub(super) struct Asked {
    pub(super) wish: Wish,
    pub(super) filter: TaskFilter,
    pub(super) why: String,
    pub(super) before: Option<String>,
}

/// The tasks that are meant, as a filter of rows.
struct Selection {
    wish: Wish,
    filter: TaskFilter,
    ids: Vec<TaskId>,
}

impl Selection {
    fn new(wish: Wish, filter: TaskFilter) -> Result<Self, Error> {
        if filter.is_empty() {
            return Err(Error::Invalid("name tasks or a filter: everything is never meant".to_owned()));
        }
        let ids = filter.checked_ids()?;
        Ok(Self { wish, filter, ids })
    }

    /// Without a state, retry and close mean only what waits: what has ended well is no mistake of the person.
    fn wants(&self, task: &TaskView) -> bool {
        let is_waiting = task.state.is_unfinished() || task.state == State::Dead;
        let is_possible = self.wish == Wish::Replay || self.filter.state.is_some() || is_waiting;
        (is_possible || !self.ids.is_empty()) && self.filter.wants(task)
    }

    /// One page, newest first; named tasks are read by their ids.
    fn page(&self, file: &View, before: Option<TaskId>) -> Result<Vec<TaskView>, Broken> {
        if self.ids.is_empty() {
            return file.tasks(before, PAGE_MAX, &|task| self.wants(task));
        }
        let mut ids: Vec<TaskId> = self.ids.iter().copied().filter(|id| before.is_none_or(|b| *id < b)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        ids.truncate(PAGE_MAX);
        let mut found = Vec::new();
        for id in ids {
            found.extend(file.task(id)?.filter(|task| self.wants(task)));
        }
        Ok(found)
    }
}

/// Counts what a wish would touch.
pub(super) async fn preview(context: &Context, wish: Wish, filter: TaskFilter) -> Result<Preview, Error> {
    let selection = Selection::new(wish, filter)?;
    context
        .read(move |file| {
            let mut preview = Preview { count: 0, first: Vec::new() };
            let mut before = None;
            loop {
                let page = selection.page(file, before)?;
                before = page.last().map(|task| task.id);
                preview.count += page.len() as u64;
                let room = PREVIEW_TASKS.saturating_sub(preview.first.len());
                let is_last = page.len() < PAGE_MAX;
                preview.first.extend(page.into_iter().take(room).map(view::task));
                if is_last {
                    return Ok(preview);
                }
            }
        })
        .await
}

/// Does a wish to one page of tasks.
pub(super) async fn operate(context: &Context, asked: Asked, who: &str) -> Result<Operated, Error> {
    let Asked { wish, filter, why, before } = asked;
    let selection = Selection::new(wish, filter)?;
    let before = before.map(|id| parse_id(&id)).transpose()?;
    let page = context.read(move |file| selection.page(file, before)).await?;
    let ids: Vec<TaskId> = page.iter().map(|task| task.id).collect();
    let next = ids.last().filter(|_| ids.len() == PAGE_MAX).map(ToString::to_string);
    let mut operated = Operated { done: 0, refused: Vec::new(), next };
    for together in ids.chunks(TOGETHER) {
        let wishes = together.iter().map(|id| context.store.operate(*id, wish.stored(), who, &why));
        for (id, granted) in together.iter().zip(join_all(wishes).await) {
            let why = match granted? {
                Granted::Yes => {
                    operated.done += 1;
                    continue;
                }
                Granted::No(not_now) => not_now.to_string(),
                Granted::NoSuchTask => "there is no such task".to_owned(),
            };
            operated.refused.push(Refused { id: id.to_string(), why });
        }
    }
    Ok(operated)
}
