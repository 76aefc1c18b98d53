//! Whether a file agrees with itself: its checksums, and every table against every other.
//!
//! ```text
//! checksums ─▶ tasks and their queues ─▶ events and their indexes ─▶ intents and objects ─▶ counts
//! ```
//!
//! Rows are streamed and what they name is looked up, so memory does not grow
//! with the file: what grows is a sum for each count and the greatest id of
//! each sequence. A damage names table and id, never content: keys of objects
//! are phones and e-mail addresses, so they stand there as hashes. A table that
//! cannot be read is a damage too, and the others are looked at all the same.

mod counts;
mod events;
mod intents;
mod meetings;
mod queues;
mod tasks;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use redb::{Database, DatabaseError, ReadTransaction, ReadableDatabase as _, StorageError, TableDefinition};
use sha2::{Digest as _, Sha256};

use crate::store::error::{Broken, OpenError};
use crate::store::open;
use crate::store::record::{Record, TaskRecord};

/// So many damages are named; further ones are only counted.
const NAMED_MAX: usize = 1000;

/// LookProgress is told after so many rows of a table: every few seconds on a slow disk.
const ROWS_PER_WORD: u64 = 250_000;

/// Hears how far a long look has come: the table, and how many of its rows are read.
pub type LookProgress<'p> = &'p mut dyn FnMut(&'static str, u64);

/// Something in the file that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The table, or `file`.
    pub table: &'static str,
    /// The row; `-` for the whole table.
    pub id: String,
    /// What is wrong.
    pub what: String,
}

/// What a look at the whole file found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Rows read, by table.
    pub rows: BTreeMap<&'static str, u64>,
    /// How much is damaged.
    pub damages: u64,
    /// The first thousand of it.
    pub named: Vec<Damage>,
}

impl Findings {
    fn add(&mut self, table: &'static str, id: impl Display, what: impl Into<String>) {
        self.damages += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(Damage { table, id: id.to_string(), what: what.into() });
        }
    }
}

/// Looks at the whole data file of a folder on which no process works.
///
/// Records stay as they are. The engine may write: it ends what an unclean stop
/// left, and takes the last good state where pages do not match their checksums.
///
/// # Errors
/// [`OpenError`] says which process holds the file, that there is none, or why it cannot be opened.
pub fn verify(folder: &Path, progress: LookProgress<'_>) -> Result<Findings, OpenError> {
    let (mut database, path) = open::open_in(folder, false, &open::Progress::default())?;
    open::check_readable(&database).map_err(|failure| failure.at(&path))?;
    let mut findings = Findings::default();
    progress("checksums", 0);
    match database.check_integrity() {
        Ok(true) => {}
        Ok(false) => findings.add("file", "-", "pages did not match their checksums; the last good state is taken"),
        Err(DatabaseError::Storage(StorageError::Corrupted(why))) => {
            findings.add("file", "-", format!("pages do not match their checksums: {why}"));
            return Ok(findings);
        }
        Err(error) => return Err(OpenError::Broken { path, source: error.into() }),
    }
    scan(&database, findings, progress).map_err(|source| OpenError::Broken { path, source })
}

type Step = fn(&mut Scan<'_>) -> Result<(), Broken>;

/// The tables whose rows each step reads, and the step; counts and sequences come last.
const STEPS: [(&str, Step); 21] = [
    ("tasks", tasks::tasks),
    ("task_keys", tasks::task_keys),
    ("follow_ups", tasks::follow_ups),
    ("unfinished", queues::unfinished),
    ("lanes", queues::lanes),
    ("ready", queues::ready),
    ("running", queues::running),
    ("suspects", queues::suspects),
    ("events", events::events),
    ("bodies", events::bodies),
    ("dedup", events::dedup),
    ("entity_events", events::entity_events),
    ("entities", events::entities),
    ("aliases", events::aliases),
    ("task_events", meetings::task_events),
    ("event_tasks", meetings::event_tasks),
    ("intents", intents::intents),
    ("objects", intents::objects),
    ("holds", counts::people),
    ("windows", counts::losses),
    ("counts", counts::counts),
];

/// Every table against every other, in one view.
pub(super) fn scan(database: &Database, findings: Findings, progress: LookProgress<'_>) -> Result<Findings, Broken> {
    let txn = database.begin_read()?;
    let mut scan = Scan { txn: &txn, findings, progress, sums: BTreeMap::new(), greatest: BTreeMap::new() };
    for (table, step) in STEPS {
        if let Err(broken) = step(&mut scan) {
            let cause = std::error::Error::source(&broken).map_or_else(|| broken.to_string(), ToString::to_string);
            scan.findings.add(table, "-", format!("cannot be read: {cause}"));
        }
    }
    Ok(scan.findings)
}

/// The state of one look at the file.
struct Scan<'s> {
    txn: &'s ReadTransaction,
    findings: Findings,
    progress: LookProgress<'s>,
    /// What the counts must say.
    sums: BTreeMap<String, u64>,
    /// The greatest number met of each sequence.
    greatest: BTreeMap<&'static str, u64>,
}

impl Scan<'_> {
    /// Notes that a row is read.
    fn row(&mut self, table: &'static str) {
        let rows = self.findings.rows.entry(table).or_default();
        *rows += 1;
        if rows.is_multiple_of(ROWS_PER_WORD) {
            (self.progress)(table, *rows);
        }
    }

    /// Something must hold of a row; else it is damaged.
    fn must(&mut self, holds: bool, table: &'static str, id: impl Display, otherwise: &str) {
        if !holds {
            self.findings.add(table, id, otherwise);
        }
    }

    /// The record of a row; one that cannot be read, or not written as it was read, is damaged.
    fn decode<T: Record + PartialEq>(&mut self, id: impl Display, bytes: &[u8]) -> Option<T> {
        self.row(T::WHAT);
        match T::decode(bytes) {
            Ok(record) => {
                let again = record.encode().and_then(|bytes| T::decode(&bytes));
                self.must(again.is_ok_and(|again| again == record), T::WHAT, id, "cannot be written as it was read");
                Some(record)
            }
            Err(malformed) => {
                self.findings.add(T::WHAT, id, format!("is malformed: {}", malformed.why));
                None
            }
        }
    }

    fn sum(&mut self, name: String, by: u64) {
        *self.sums.entry(name).or_default() += by;
    }

    /// Notes a number that a sequence must have given.
    fn given(&mut self, sequence: &'static str, number: u64) {
        let greatest = self.greatest.entry(sequence).or_default();
        *greatest = number.max(*greatest);
    }
}

type Ids = redb::ReadOnlyTable<u64, &'static [u8]>;

/// A record that another row names; `None` when it is absent or, which its own table's step tells, malformed.
fn named<T: Record>(table: &Ids, id: u64) -> Result<Option<T>, Broken> {
    Ok(table.get(id)?.and_then(|row| T::decode(row.value()).ok()))
}

fn exists<K: redb::Key, V: redb::Value>(
    table: &redb::ReadOnlyTable<K, V>,
    key: K::SelfType<'_>,
) -> Result<bool, Broken> {
    Ok(table.get(key)?.is_some())
}

fn tasks_of(txn: &ReadTransaction) -> Result<impl Fn(u64) -> Result<Option<TaskRecord>, Broken> + use<>, Broken> {
    let table = txn.open_table(crate::store::schema::TASKS)?;
    Ok(move |id| named(&table, id))
}

/// Stands for a key, which may hold what is personal.
fn hashed(key: &[u8]) -> String {
    let hex: String = Sha256::digest(key).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Reads a table of bare ids.
fn each_id(
    scan: &mut Scan<'_>,
    table: &'static str,
    definition: TableDefinition<'_, u64, ()>,
    mut look: impl FnMut(&mut Scan<'_>, u64) -> Result<(), Broken>,
) -> Result<(), Broken> {
    for row in scan.txn.open_table(definition)?.range(0..)? {
        scan.row(table);
        look(scan, row?.0.value())?;
    }
    Ok(())
}
