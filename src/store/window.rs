//! Windows: spans of time in which deliveries of a source may have been lost.
//!
//! A refusal that may have cost a genuine delivery opens one or extends it; a
//! source has one open window a reason. It stays open until a sweep has covered
//! it to its end, so it is never closed by time.

use redb::ReadableTable as _;

use crate::domain::Timestamp;
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::record::{Record as _, WindowRecord};
use crate::store::schema;
use crate::store::view::View;
use crate::store::writer::Command;

/// How many windows are open.
const COUNT_OPEN: &str = "windows/open";

/// Why deliveries may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WindowReason {
    /// Bodies over the source's limit (413).
    TooLarge,
    /// More than the source may have (503).
    OverQuota,
    /// No room, no answer in time, or a file that takes no writes (503).
    Unavailable,
    /// A series of wrong signatures on what otherwise looks genuine (401).
    Signature,
}

impl WindowReason {
    /// The word in keys, metrics and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::OverQuota => "over_quota",
            Self::Unavailable => "unavailable",
            Self::Signature => "signature",
        }
    }
}

/// What is added to the open window of a source and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowSpan {
    /// The source.
    pub source: String,
    /// Why.
    pub reason: WindowReason,
    /// The first refusal.
    pub from: Timestamp,
    /// The last refusal.
    pub to: Timestamp,
    /// How many there were.
    pub count: u64,
}

/// A window as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowView {
    /// The source.
    pub source: String,
    /// The word of a [`WindowReason`].
    pub reason: String,
    /// The first refusal.
    pub from: Timestamp,
    /// The last refusal.
    pub to: Timestamp,
    /// How many there were.
    pub count: u64,
    /// Whether no sweep has covered it yet.
    pub open: bool,
}

/// Opens and extends windows.
pub(super) struct ExtendWindows(pub(super) Vec<WindowSpan>);

impl Command for ExtendWindows {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        self.0.iter().try_for_each(|span| batch.extend_window(span))
    }
}

impl Batch<'_> {
    fn extend_window(&mut self, span: &WindowSpan) -> Result<(), Broken> {
        let (source, reason, from) = (span.source.as_str(), span.reason.as_str(), span.from.as_millis());
        // A closed window that began in the same millisecond opens again: its key is taken.
        let known = self.newest_window(source, reason)?.filter(|(start, window)| window.open || *start == from);
        let (start, mut window) = known.unwrap_or((from, WindowRecord { to: from, count: 0, open: false }));
        if !window.open {
            window.open = true;
            self.count(COUNT_OPEN, 1)?;
        }
        window.to = window.to.max(span.to.as_millis());
        window.count = window.count.saturating_add(span.count);
        self.tables.windows.insert((source, reason, start), window.encode()?.as_slice())?;
        Ok(())
    }

    fn newest_window(&self, source: &str, reason: &str) -> Result<Option<(i64, WindowRecord)>, Broken> {
        let newest = self.tables.windows.range((source, reason, i64::MIN)..=(source, reason, i64::MAX))?.next_back();
        let Some((key, value)) = newest.transpose()? else { return Ok(None) };
        Ok(Some((key.value().2, WindowRecord::decode(value.value())?)))
    }
}

impl View {
    /// All windows, by source and reason, oldest first.
    ///
    /// # Errors
    /// [`Broken`] when the file cannot be read.
    pub fn windows(&self) -> Result<Vec<WindowView>, Broken> {
        let table = self.txn.open_table(schema::WINDOWS)?;
        let mut windows = Vec::new();
        for row in table.iter()? {
            let (key, value) = row?;
            let (source, reason, from) = key.value();
            let WindowRecord { to, count, open } = WindowRecord::decode(value.value())?;
            windows.push(WindowView {
                source: source.to_owned(),
                reason: reason.to_owned(),
                from: Timestamp::from_millis(from),
                to: Timestamp::from_millis(to),
                count,
                open,
            });
        }
        Ok(windows)
    }
}
