//! Refusals that may have lost a genuine delivery: counted at once, written in the background.
//!
//! The door only notes them, under a lock and without waiting. [`Refusals::record`]
//! writes what was noted: a window of each source and reason at once when it
//! opens and at most once a minute as it grows, an alert at once when it is
//! raised or resolved. What is noted before the file is open waits for it, and
//! [`Refusals::flush`] writes the rest at a stop; a kill loses at most the last
//! minute of a window that stands.
//!
//! One wrong signature may be anybody's. The third within five minutes on what
//! otherwise looks genuine raises the alert of its source; from then on each one
//! counts, until a delivery of the source verifies.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::SharedClock;
use crate::domain::{Monotonic, Timestamp};
use crate::store::{AlertChange, AlertKind, Error, Store, WindowReason, WindowSpan};
use crate::telemetry::Metrics;

/// So many wrong signatures are a series.
const SERIES: usize = 3;
/// If they come within this time.
const SERIES_WITHIN: Duration = Duration::from_mins(5);
/// A standing window or alert is written again no sooner.
const WRITE_EVERY: Duration = Duration::from_mins(1);

/// Notes refusals and writes them down; cheap to clone.
#[derive(Clone, Debug)]
pub struct Refusals {
    clock: SharedClock,
    metrics: Arc<Metrics>,
    noted: Arc<Mutex<Noted>>,
    news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Noted {
    windows: BTreeMap<(String, WindowReason), Paced>,
    signatures: BTreeMap<String, Signatures>,
}

/// What is not written yet, and when it may be.
#[derive(Debug, Default)]
struct Paced {
    waiting: Option<Span>,
    not_before: Monotonic,
}

/// The wrong signatures of a source.
#[derive(Debug, Default)]
struct Signatures {
    /// Those that are no series yet.
    recent: VecDeque<(Monotonic, Timestamp)>,
    stands: bool,
    raised: Paced,
    resolved: Option<Timestamp>,
    text: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: Timestamp,
    last: Timestamp,
    count: u64,
}

/// One thing to write.
#[derive(Clone, Debug)]
enum Note {
    Window(WindowSpan),
    Alert(String, AlertChange),
}

impl Refusals {
    pub(super) fn new(clock: SharedClock, metrics: Arc<Metrics>) -> Self {
        Self { clock, metrics, noted: Arc::default(), news: Arc::default() }
    }

    /// A delivery at a valid address was refused for a reason of ours.
    pub(super) fn refused(&self, source: &str, reason: WindowReason) {
        self.metrics.may_have_lost(source, reason.as_str());
        self.extend(&mut self.noted(), source, reason, Span::at(self.clock.now()));
    }

    /// A delivery that otherwise looks genuine has a wrong signature, usually for these causes.
    pub(super) fn wrong_signature(&self, source: &str, causes: &'static str) {
        let (now, at) = (self.clock.monotonic(), self.clock.now());
        self.metrics.may_have_lost(source, WindowReason::Signature.as_str());
        let mut noted = self.noted();
        let signatures = noted.signatures.entry(source.to_owned()).or_default();
        let Some(span) = signatures.wrong(now, at) else { return };
        if !signatures.stands {
            tracing::error!(source, count = span.count, causes, "deliveries that look genuine have wrong signatures");
            signatures.stands = true;
            signatures.raised.not_before = now;
        }
        signatures.text = causes;
        signatures.resolved = None;
        signatures.raised.add(span);
        self.extend(&mut noted, source, WindowReason::Signature, span);
        self.news.notify_one();
    }

    /// A delivery has verified: an alert about its source's signatures is resolved.
    pub(super) fn verified(&self, source: &str) {
        let mut noted = self.noted();
        let Some(signatures) = noted.signatures.get_mut(source).filter(|signatures| signatures.stands) else { return };
        tracing::info!(source, "signatures are right again");
        signatures.stands = false;
        signatures.resolved = Some(self.clock.now());
        signatures.raised.not_before = self.clock.monotonic();
        self.news.notify_one();
    }

    fn extend(&self, noted: &mut Noted, source: &str, reason: WindowReason, span: Span) {
        let window = noted.windows.entry((source.to_owned(), reason)).or_default();
        if window.waiting.is_none() {
            self.news.notify_one();
        }
        window.add(span);
    }

    /// Takes up the alerts that stand in the file.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn resume(&self, store: &Store) -> Result<(), Error> {
        let alerts = store.view()?.alerts()?;
        let mut noted = self.noted();
        for alert in alerts.into_iter().filter(|alert| alert.kind == AlertKind::Signature.as_str()) {
            noted.signatures.entry(alert.source).or_default().stands |= alert.resolved_at.is_none();
        }
        Ok(())
    }

    /// Writes what is noted, each when it is due, until `stop`.
    pub async fn record(self, store: Store, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            let due = self.noted().take(Some(self.clock.monotonic()));
            self.write(&store, due).await;
            let next = self.noted().next_due();
            let due = async {
                match next {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = self.news.notified() => {}
                () = due => {}
            }
        }
    }

    /// Writes all that is noted, due or not.
    pub async fn flush(&self, store: &Store) {
        let all = self.noted().take(None);
        self.write(store, all).await;
    }

    async fn write(&self, store: &Store, notes: Vec<Note>) {
        for note in notes {
            let written = match note.clone() {
                Note::Window(span) => store.extend_windows(vec![span]).await,
                Note::Alert(source, change) => store.change_alert(AlertKind::Signature, &source, change).await,
            };
            if let Err(error) = written {
                tracing::warn!(%error, "a refusal that may have lost a delivery is not written yet");
                self.noted().put_back(note, self.clock.monotonic().plus(WRITE_EVERY));
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        // No panic can leave a note half made.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    /// What may be written now; all of it without a moment.
    fn take(&mut self, now: Option<Monotonic>) -> Vec<Note> {
        let mut notes = Vec::new();
        for ((source, reason), window) in &mut self.windows {
            if let Some(Span { first: from, last: to, count }) = window.take(now) {
                notes.push(Note::Window(WindowSpan { source: source.clone(), reason: *reason, from, to, count }));
            }
        }
        for (source, signatures) in &mut self.signatures {
            let text = signatures.text;
            if let Some(Span { first, last, count }) = signatures.raised.take(now) {
                notes.push(Note::Alert(source.clone(), AlertChange::Raised { first, last, count, text }));
            }
            if let Some(at) = signatures.resolved.take() {
                notes.push(Note::Alert(source.clone(), AlertChange::Resolved { at }));
            }
        }
        notes
    }

    /// When the next of what waits may be written.
    fn next_due(&self) -> Option<Monotonic> {
        let paced = self.windows.values().chain(self.signatures.values().map(|signatures| &signatures.raised));
        paced.filter(|paced| paced.waiting.is_some()).map(|paced| paced.not_before).min()
    }

    fn put_back(&mut self, note: Note, not_before: Monotonic) {
        match note {
            Note::Window(WindowSpan { source, reason, from: first, to: last, count }) => {
                self.windows.entry((source, reason)).or_default().put_back(Span { first, last, count }, not_before);
            }
            Note::Alert(source, AlertChange::Raised { first, last, count, .. }) => {
                let signatures = self.signatures.entry(source).or_default();
                signatures.raised.put_back(Span { first, last, count }, not_before);
            }
            Note::Alert(source, AlertChange::Resolved { at }) => {
                let signatures = self.signatures.entry(source).or_default();
                signatures.resolved = Some(at).filter(|_| !signatures.stands);
            }
        }
    }
}

impl Signatures {
    /// What one more wrong signature adds to the alert; nothing before there is a series.
    fn wrong(&mut self, now: Monotonic, at: Timestamp) -> Option<Span> {
        if self.stands {
            return Some(Span::at(at));
        }
        self.recent.retain(|(then, _)| now.since(*then) <= SERIES_WITHIN);
        self.recent.push_back((now, at));
        if self.recent.len() < SERIES {
            return None;
        }
        self.recent.drain(..).map(|(_, at)| Span::at(at)).reduce(Span::with)
    }
}

impl Paced {
    fn add(&mut self, span: Span) {
        self.waiting = Some(self.waiting.map_or(span, |waiting| waiting.with(span)));
    }

    fn take(&mut self, now: Option<Monotonic>) -> Option<Span> {
        if now.is_some_and(|now| now < self.not_before) {
            return None;
        }
        let taken = self.waiting.take()?;
        self.not_before = now.unwrap_or_default().plus(WRITE_EVERY);
        Some(taken)
    }

    fn put_back(&mut self, span: Span, not_before: Monotonic) {
        self.add(span);
        self.not_before = not_before;
    }
}

impl Span {
    const fn at(at: Timestamp) -> Self {
        Self { first: at, last: at, count: 1 }
    }

    fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            count: self.count.saturating_add(other.count),
        }
    }
}

#[cfg(test)]
mod tests;
