//! Reads that follow one thing through the file, from any end of it.

use redb::ReadableTable as _;

use crate::domain::{EventId, IntentId, TaskId, Timestamp, TraceId};
use crate::store::error::Broken;
use crate::store::record::{EventRecord, IntentRecord, Record as _};
use crate::store::row::{IntentView, intent_view};
use crate::store::schema;
use crate::store::view::View;

/// How many of the newest events are looked through for a trace id: about a second of reading.
///
/// Trace ids have no index, since random keys stay out of the write path.
const TRACE_LOOKS_MAX: usize = 1_000_000;

impl View {
    /// The tasks that an event met.
    ///
    /// # Errors
    /// [`Broken`] when the file cannot be read, as everywhere here.
    pub fn tasks_of_event(&self, event: EventId) -> Result<Vec<TaskId>, Broken> {
        let table = self.txn.open_table(schema::EVENT_TASKS)?;
        let rows = table.range((event.get(), 0)..=(event.get(), u64::MAX))?;
        rows.map(|row| Ok(TaskId::new(row?.0.value().1))).collect()
    }

    /// The tasks that the settlements of a task made.
    pub fn follow_ups(&self, parent: TaskId) -> Result<Vec<TaskId>, Broken> {
        let table = self.txn.open_table(schema::FOLLOW_UPS)?;
        let rows = table.range((parent.get(), 0)..=(parent.get(), u64::MAX))?;
        rows.map(|row| Ok(TaskId::new(row?.0.value().1))).collect()
    }

    /// One intent.
    pub fn intent(&self, id: IntentId) -> Result<Option<IntentView>, Broken> {
        Ok(self.row::<IntentRecord>(schema::INTENTS, id.get())?.map(|intent| intent_view(id, intent)))
    }

    /// The event that has a trace id, among the newest million.
    pub fn event_of_trace(&self, trace: TraceId) -> Result<Option<EventId>, Broken> {
        let table = self.txn.open_table(schema::EVENTS)?;
        for row in table.iter()?.rev().take(TRACE_LOOKS_MAX) {
            let (id, value) = row?;
            if EventRecord::decode(value.value())?.trace == trace.get() {
                return Ok(Some(EventId::new(id.value())));
            }
        }
        Ok(None)
    }

    /// When routes first went live, by the names that they were noted under.
    pub fn routes_live(&self) -> Result<Vec<(String, Timestamp)>, Broken> {
        let table = self.txn.open_table(schema::ROUTES)?;
        let rows = table.iter()?;
        rows.map(|row| {
            let (name, at) = row?;
            Ok((name.value().to_owned(), Timestamp::from_millis(at.value())))
        })
        .collect()
    }
}
