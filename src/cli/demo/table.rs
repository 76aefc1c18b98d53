//! What was sent and answered, what is stored, what the CRM holds: expected and seen.

use std::fmt;

use serde_json::Value;

use crate::cli::demo::Error;
use crate::cli::demo::child::{self, Serve};
use crate::cli::demo::folder::Folder;
use crate::cli::demo::scene::{FIVE, Sent, THREE};
use crate::sandbox::Sandbox;

/// The deal's exact sum after the newer state.
const LAST_TOTAL: &str = "5480.50";

/// What is counted at the end, by name: expected, seen.
pub(super) type Seen = Vec<(String, String, String)>;

/// The whole table.
pub(super) struct Table<'a> {
    sent: &'a [Sent],
    seen: &'a Seen,
}

impl<'a> Table<'a> {
    pub(super) const fn new(sent: &'a [Sent], seen: &'a Seen) -> Self {
        Self { sent, seen }
    }

    /// Whether everything is as expected.
    pub(super) fn holds(&self) -> bool {
        self.sent.iter().all(|sent| sent.expected == sent.answered)
            && self.seen.iter().all(|(_, expected, seen)| expected == seen)
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:>9} {:>9}", "sent", "expected", "answered")?;
        for sent in self.sent {
            writeln!(
                f,
                "{:<36} {:>9} {:>9}{}",
                sent.what,
                sent.expected,
                sent.answered,
                mark(sent.expected == sent.answered)
            )?;
        }
        writeln!(f, "\n{:<36} {:>9} {:>9}", "counted", "expected", "seen")?;
        for (what, expected, seen) in self.seen {
            writeln!(f, "{what:<36} {expected:>9} {seen:>9}{}", mark(expected == seen))?;
        }
        Ok(())
    }
}

const fn mark(holds: bool) -> &'static str {
    if holds { "" } else { "  <- differs" }
}

/// Counts the appliance's file and the CRM's own truth.
pub(super) async fn seen(folder: &Folder, serve: &Serve, sandbox: &Sandbox) -> Result<Seen, Error> {
    let health = serve.health().await?;
    let events = child::run(folder, &["events", "--limit", "100", "--json"]).await?;
    let events: Value = serde_json::from_str(&events).unwrap_or_default();
    let events = events.pointer("/items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let copies: u64 = events.iter().filter_map(|event| event.get("copies").and_then(Value::as_u64)).sum();
    let count = |pointer: &str| health.pointer(pointer).and_then(Value::as_u64).unwrap_or(0).to_string();
    let held = sandbox.counts();
    let deal = sandbox.leads().into_iter().find(|lead| lead.name.contains("#1042"));
    let total = deal.as_ref().and_then(|deal| deal.fields.get("TAMBOUR_TOTAL")).cloned().unwrap_or_default();
    let notes_on = |name: &str| {
        let deal = sandbox.leads().into_iter().find(|lead| lead.name.contains(name));
        let (id, notes) = deal.map_or((0, 0), |deal| (deal.id, sandbox.notes_of_lead(deal.id).len()));
        (format!("notes on deal {id}"), "1".to_owned(), notes.to_string())
    };
    let row = |what: &str, expected: &str, seen: String| (what.to_owned(), expected.to_owned(), seen);
    Ok(vec![
        // Three states of the order, four of the first deal, three moves of the other.
        row("events stored", "10", events.len().to_string()),
        row("repeats absorbed", "2", copies.to_string()),
        row("tasks", "3", ["done", "superseded", "dead"].map(|s| number(&health, s)).iter().sum::<u64>().to_string()),
        row("tasks dead", "0", count("/tasks/dead")),
        row("changes in doubt", "0", count("/open_intents")),
        row("contacts in the CRM", "2", held.contacts.to_string()),
        row("deals in the CRM", "3", held.leads.to_string()),
        row("sum of order 1042", LAST_TOTAL, total),
        notes_on("#1042"),
        notes_on(FIVE),
        notes_on(THREE),
    ])
}

fn number(health: &Value, state: &str) -> u64 {
    health.pointer(&format!("/tasks/{state}")).and_then(Value::as_u64).unwrap_or(0)
}
