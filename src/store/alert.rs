//! Alerts: what a person must look at, one row for a kind and a source.
//!
//! A row stays when the alert is resolved, with the moment; raised again it
//! counts anew.

use redb::ReadableTable as _;

use crate::domain::Timestamp;
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::record::{AlertRecord, Record as _};
use crate::store::schema;
use crate::store::view::View;
use crate::store::writer::Command;

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertKind {
    /// Deliveries that look genuine have wrong signatures.
    Signature,
}

impl AlertKind {
    /// The word in keys, metrics and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
        }
    }
}

/// What happened to an alert of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertChange {
    /// There is more reason for it; it is raised unless it stands.
    Raised {
        /// When the first of these was.
        first: Timestamp,
        /// When the last was.
        last: Timestamp,
        /// How many.
        count: u64,
        /// What is wrong and what usually causes it.
        text: &'static str,
    },
    /// There is no reason any more.
    Resolved {
        /// Since when.
        at: Timestamp,
    },
}

/// An alert as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertView {
    /// The word of an [`AlertKind`].
    pub kind: String,
    /// The source.
    pub source: String,
    /// The first occurrence since it was raised.
    pub first: Timestamp,
    /// The last one.
    pub last: Timestamp,
    /// How many there were.
    pub count: u64,
    /// What is wrong and what usually causes it.
    pub text: String,
    /// When it was resolved; absent while a person should look.
    pub resolved_at: Option<Timestamp>,
}

/// Changes one alert.
pub(super) struct ChangeAlert {
    pub(super) kind: AlertKind,
    pub(super) source: String,
    pub(super) change: AlertChange,
}

impl Command for ChangeAlert {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        let key = (self.kind.as_str(), self.source.as_str());
        let stored = batch.tables.alerts.get(key)?.map(|row| AlertRecord::decode(row.value())).transpose()?;
        let open = stored.filter(|alert| alert.resolved_at.is_none());
        let changed = match (self.change, open) {
            (AlertChange::Resolved { at }, Some(open)) => AlertRecord { resolved_at: Some(at.as_millis()), ..open },
            (AlertChange::Resolved { .. }, None) => return Ok(()),
            (AlertChange::Raised { first, last, count, text }, open) => AlertRecord {
                first: open.as_ref().map_or(first.as_millis(), |open| open.first),
                last: open.as_ref().map_or(last.as_millis(), |open| open.last.max(last.as_millis())),
                count: open.map_or(0, |open| open.count).saturating_add(count),
                text: text.to_owned(),
                resolved_at: None,
            },
        };
        batch.tables.alerts.insert(key, changed.encode()?.as_slice())?;
        Ok(())
    }
}

impl View {
    /// All alerts, those that are resolved too.
    ///
    /// # Errors
    /// [`Broken`] when the file cannot be read.
    pub fn alerts(&self) -> Result<Vec<AlertView>, Broken> {
        let table = self.txn.open_table(schema::ALERTS)?;
        let mut alerts = Vec::new();
        for row in table.iter()? {
            let (key, value) = row?;
            let (kind, source) = key.value();
            let AlertRecord { first, last, count, text, resolved_at } = AlertRecord::decode(value.value())?;
            alerts.push(AlertView {
                kind: kind.to_owned(),
                source: source.to_owned(),
                first: Timestamp::from_millis(first),
                last: Timestamp::from_millis(last),
                count,
                text,
                resolved_at: resolved_at.map(Timestamp::from_millis),
            });
        }
        Ok(alerts)
    }
}
