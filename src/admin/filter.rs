//! Which events and tasks are meant; absent parts mean all.

use serde::{Deserialize, Serialize};

use crate::admin::Error;
use crate::domain::{State, TaskId, Timestamp};
use crate::store::{EventView, TaskView};

/// The most items in one answer.
pub const PAGE_MAX: usize = 500;

/// Which events are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventFilter {
    /// `routed`, `unrouted`, `unreadable`, `foreign`, `conflict`.
    pub state: Option<String>,
    /// The source.
    pub source: Option<String>,
    /// Received at or after this time.
    pub since_ms: Option<i64>,
}

impl EventFilter {
    pub(super) fn wants(&self, event: &EventView) -> bool {
        is(self.state.as_ref(), &event.state)
            && is(self.source.as_ref(), &event.source)
            && self.since_ms.is_none_or(|since| event.received_at >= Timestamp::from_millis(since))
    }
}

/// Which tasks are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskFilter {
    /// Only these, as they are pasted; empty means any.
    pub ids: Vec<String>,
    /// `new`, `running`, `retry`, `done`, `superseded`, `dead`.
    pub state: Option<String>,
    /// The code of a dead or superseded task.
    pub reason: Option<String>,
    /// The kind of work.
    pub kind: Option<String>,
    /// The target.
    pub target: Option<String>,
    /// The source whose events make such tasks.
    pub source: Option<String>,
    /// Made at or after this time.
    pub since_ms: Option<i64>,
    /// Made before this time.
    pub until_ms: Option<i64>,
}

impl TaskFilter {
    /// Whether it leaves nothing out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn wants(&self, task: &TaskView) -> bool {
        let is_in_time = self.since_ms.is_none_or(|since| task.created_at >= Timestamp::from_millis(since))
            && self.until_ms.is_none_or(|until| task.created_at < Timestamp::from_millis(until));
        // A key begins with the source whose event made the task.
        let source = || task.key.parts().into_iter().next().unwrap_or_default();
        is_in_time
            && is(self.state.as_ref(), task.state.as_str())
            && is(self.reason.as_ref(), task.reason.as_ref().map_or("", |reason| reason.as_str()))
            && is(self.kind.as_ref(), &task.kind)
            && is(self.target.as_ref(), &task.target)
            && self.source.as_ref().is_none_or(|wanted| *wanted == source())
    }

    /// The ids as such; refuses words that mean nothing.
    pub(super) fn checked_ids(&self) -> Result<Vec<TaskId>, Error> {
        if let Some(state) = self.state.as_ref().filter(|word| State::ALL.iter().all(|state| state.as_str() != **word))
        {
            return Err(Error::Invalid(format!("`{state}` is no state of a task")));
        }
        self.ids.iter().map(|id| parse_id(id)).collect()
    }
}

fn is(wanted: Option<&String>, have: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == have)
}

/// Reads a pasted id.
pub(super) fn parse_id<T: std::str::FromStr>(text: &str) -> Result<T, Error>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Error::Invalid(format!("`{text}` is {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::tests::sample_task;
    use crate::domain::ReasonCode;

    #[test]
    fn every_part_of_a_filter_leaves_tasks_out() {
        let mut task = sample_task();
        (task.state, task.reason) = (State::Dead, Some(ReasonCode::VALIDATION));
        let check = |change: fn(&mut TaskFilter), expected: bool| {
            let mut filter = TaskFilter::default();
            change(&mut filter);
            assert_eq!(filter.wants(&task), expected, "{filter:?}");
            assert_eq!(filter.is_empty(), filter == TaskFilter::default());
        };
        check(|_| {}, true);
        check(|f| f.state = Some("dead".to_owned()), true);
        check(|f| f.state = Some("retry".to_owned()), false);
        check(|f| f.reason = Some("validation".to_owned()), true);
        check(|f| f.reason = Some("template".to_owned()), false);
        check(|f| f.kind = Some("note".to_owned()), false);
        check(|f| f.target = Some("crm".to_owned()), true);
        check(|f| f.target = Some("other".to_owned()), false);
        check(|f| f.source = Some("shop".to_owned()), true);
        check(|f| f.source = Some("crm".to_owned()), false);
        check(|f| f.since_ms = Some(1_796_036_400_000), true);
        check(|f| f.since_ms = Some(1_796_036_400_001), false);
        check(|f| f.until_ms = Some(1_796_036_400_001), true);
        check(|f| f.until_ms = Some(1_796_036_400_000), false);
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        let ids =
            |ids: &[&str]| TaskFilter { ids: ids.iter().map(|id| (*id).to_owned()).collect(), ..TaskFilter::default() };
        assert_eq!(ids(&["t1", "2"]).checked_ids().unwrap(), [TaskId::new(1), TaskId::new(2)]);
        assert!(matches!(ids(&["e1"]).checked_ids(), Err(Error::Invalid(text)) if text.starts_with("`e1` is not a")));
        let filter = TaskFilter { state: Some("ded".to_owned()), ..TaskFilter::default() };
        assert!(matches!(filter.checked_ids(), Err(Error::Invalid(_))));
    }
}
