//! Counts against the sums of a scan, sequences against the greatest numbers met, and the small tables.

use std::collections::BTreeMap;

use redb::ReadableTable as _;

use crate::store::error::Broken;
use crate::store::record::{AlertRecord, AuditRecord, HoldRecord, WindowRecord};
use crate::store::schema;
use crate::store::verify::{Scan, exists};

/// The counts that sum up rows.
const SUMS: [&str; 5] = ["tasks/", "dead/", "events/", "intents/", "windows/"];

/// Holds, names and the audit trail.
pub(super) fn people(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let tasks = scan.txn.open_table(schema::TASKS)?;
    for row in scan.txn.open_table(schema::HOLDS)?.iter()? {
        let (target, value) = row?;
        let Some(hold) = scan.decode::<HoldRecord>(target.value(), value.value()) else { continue };
        let has_task = hold.task.map(|task| exists(&tasks, task)).transpose()?;
        scan.must(has_task != Some(false), "holds", target.value(), "the task that caused it is absent");
    }
    for row in scan.txn.open_table(schema::NAMES)?.iter()? {
        row?;
        scan.row("names");
    }
    for row in scan.txn.open_table(schema::AUDIT)?.iter()? {
        let (ordinal, value) = row?;
        scan.given(schema::META_LAST_AUDIT, ordinal.value());
        scan.decode::<AuditRecord>(ordinal.value(), value.value());
    }
    Ok(())
}

/// Windows and alerts: one open window for a source and reason, the newest.
pub(super) fn losses(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let mut before: Option<(String, String, bool)> = None;
    for row in scan.txn.open_table(schema::WINDOWS)?.iter()? {
        let (key, value) = row?;
        let (source, reason, from) = key.value();
        let name = format!("{source}/{reason}/{from}");
        let Some(window) = scan.decode::<WindowRecord>(&name, value.value()) else { continue };
        let is_older_open = before.is_some_and(|(s, r, open)| open && s == source && r == reason);
        scan.must(!is_older_open, "windows", &name, "an older window of the same source and reason is open");
        *scan.sums.entry("windows/open".to_owned()).or_default() += u64::from(window.open);
        before = Some((source.to_owned(), reason.to_owned(), window.open));
    }
    for row in scan.txn.open_table(schema::ALERTS)?.iter()? {
        let (key, value) = row?;
        let (kind, source) = key.value();
        scan.decode::<AlertRecord>(format!("{kind}/{source}"), value.value());
    }
    Ok(())
}

/// Comes last: it judges by what all other steps have met.
pub(super) fn counts(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let mut kept = BTreeMap::new();
    for row in scan.txn.open_table(schema::COUNTS)?.iter()? {
        scan.row("counts");
        let (name, count) = row?;
        if SUMS.iter().any(|prefix| name.value().starts_with(prefix)) {
            kept.insert(name.value().to_owned(), count.value());
        }
    }
    let mut sums = std::mem::take(&mut scan.sums);
    for name in kept.keys() {
        sums.entry(name.clone()).or_default();
    }
    for (name, sum) in sums {
        let count = kept.get(&name).copied().unwrap_or_default();
        scan.must(count == sum, "counts", &name, &format!("says {count}, and the rows say {sum}"));
    }
    sequences(scan)
}

fn sequences(scan: &mut Scan<'_>) -> Result<(), Broken> {
    let meta = scan.txn.open_table(schema::META)?;
    for (sequence, greatest) in std::mem::take(&mut scan.greatest) {
        let last = meta.get(sequence)?.map_or(0, |last| last.value());
        scan.must(last >= greatest, "meta", sequence, &format!("says {last}, and {greatest} is in use"));
    }
    Ok(())
}
