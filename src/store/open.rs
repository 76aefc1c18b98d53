//! Opening the data file: one process, a known format, a durable directory entry.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable, ReadableTableMetadata as _, StorageBackend,
    WriteTransaction,
};
use tokio::sync::watch;

use crate::clock::SharedClock;
use crate::domain::{EventId, Pauses, Timestamp};
use crate::store::batch::{Batch, Tables};
use crate::store::dedup::KeyHash;
use crate::store::error::{Broken, OpenError};
use crate::store::instance::{Elsewhere, Here};
use crate::store::place::{self, Place};
use crate::store::record::Malformed;
use crate::store::schema;
use crate::store::writer::Engine;
use crate::telemetry::Metrics;

/// The data file's name in its folder.
pub const FILE_NAME: &str = "tambour.redb";
const PID_FILE_NAME: &str = "tambour.pid";
/// Resident memory reaches 2.4 times the cache (measured), on a machine of 2 GB.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// So many keys are read in about a tenth of a second (measured).
const ROWS_TOLD: u64 = 200_000;

/// What the opening found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// How many processes worked on the file, this one included.
    pub process: u64,
    /// Whether the process before ended in order (true for a new file).
    pub clean: bool,
    /// Keys of the dedup index.
    pub dedup_keys: usize,
}

/// What an opening is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A kill left a large file without what a fast opening needs.
    Repairing,
    /// A write failed before: every page is checked.
    Checking,
    /// The keys of known deliveries are read.
    Reading,
}

impl Step {
    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repairing => "repairing",
            Self::Checking => "checking",
            Self::Reading => "reading",
        }
    }
}

/// How far an opening has come: what it does now, and how much of that is done in percent.
#[derive(Debug, Clone, Default)]
pub struct Progress(watch::Sender<Option<(Step, u8)>>);

impl Progress {
    /// What it does now; `None` before it began.
    pub fn now(&self) -> Option<(Step, u8)> {
        *self.0.borrow()
    }

    /// Tells it to the log and to whoever looks.
    pub(crate) fn at(&self, step: Step, percent: u8) {
        tracing::info!(step = step.as_str(), percent, "opening the data file");
        self.0.send_replace(Some((step, percent)));
    }
}

/// What `serve` asks of an opening beside the file.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Who says that the file's other machine is off.
    pub take_over: Option<String>,
    /// Told how far it has come.
    pub progress: Progress,
}

/// Opens or makes the data file in a folder.
pub(super) fn open_in(folder: &Path, make: bool, progress: &Progress) -> Result<(Database, PathBuf), OpenError> {
    let path = folder.join(FILE_NAME);
    let on_folder = |source| OpenError::Folder { path: folder.to_owned(), source };
    if make {
        make_folder(folder).map_err(on_folder)?;
    } else if !path.exists() {
        return Err(OpenError::Absent { path });
    }
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let told = progress.clone();
    builder.set_repair_callback(move |repair| told.at(Step::Repairing, percent(repair.progress())));
    let failed_before = place::failed_before(&path).map_err(on_folder)?;
    if make {
        keep_private(&path).map_err(on_folder)?;
    }
    let opened = if make { builder.create(&path) } else { builder.open(&path) };
    let mut database = opened.map_err(|error| match in_use_or_broken(error, &path, folder) {
        OpenError::Broken { path, source } if failed_before => OpenError::Damaged { path, source },
        error => error,
    })?;
    if failed_before {
        place::recheck(&mut database, &path, progress)?;
    }
    // The file's name must survive a power cut too, and who made it may have died before this line.
    sync_folder(folder).map_err(on_folder)?;
    fs::write(folder.join(PID_FILE_NAME), std::process::id().to_string()).map_err(on_folder)?;
    Ok((database, path))
}

/// A share of one in whole percent.
fn percent(share: f64) -> u8 {
    (1..=100).take_while(|&percent| f64::from(percent) <= share * 100.0).last().unwrap_or(0)
}

/// Makes the folder and those above it, each name durable.
/// Makes the file readable by its owner alone: it holds orders, names and phones.
fn keep_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let file = fs::OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if folder.is_dir() {
        return Ok(());
    }
    // The parent of `data` is the empty path, which nothing opens.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    make_folder(parent)?;
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    sync_folder(parent)
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn in_use_or_broken(error: DatabaseError, path: &Path, folder: &Path) -> OpenError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            let pid = fs::read_to_string(folder.join(PID_FILE_NAME)).ok();
            let pid = pid.filter(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()));
            OpenError::InUse {
                path,
                holder: pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}")),
            }
        }
        error => OpenError::Broken { path, source: error.into() },
    }
}

/// Stands for the path where there is none.
pub(super) const ON_BACKEND: &str = "(backend)";

/// Opens or makes a data file on any storage.
pub(super) fn prepare_on(
    backend: impl StorageBackend,
    clock: SharedClock,
    pauses: Pauses,
) -> Result<(Engine, Opened), OpenError> {
    let path = Path::new(ON_BACKEND);
    let database = Database::builder()
        .create_with_backend(backend)
        .map_err(|error| OpenError::Broken { path: path.to_owned(), source: error.into() })?;
    let tools = Tools { clock, pauses, metrics: Arc::default(), place: Place::nowhere() };
    prepare(database, tools, None).map_err(|failure| failure.at(path))
}

/// What the writer works with beside the file.
pub(super) struct Tools {
    pub(super) clock: SharedClock,
    pub(super) pauses: Pauses,
    pub(super) metrics: Arc<Metrics>,
    pub(super) place: Place,
}

/// Checks the format and, with `terms`, the instance; numbers this process, and fills the dedup index.
pub(super) fn prepare(database: Database, tools: Tools, terms: Option<&Terms>) -> Result<(Engine, Opened), Failure> {
    let mut engine = Engine::new(database, tools);
    let mut txn = engine.database.begin_write().map_err(Broken::from)?;
    txn.set_quick_repair(true);
    check_format(&txn)?;
    let (process, clean);
    {
        let mut batch = Batch {
            tables: Tables::open(&txn)?,
            dedup: &mut engine.dedup,
            pauses: &engine.pauses,
            now: engine.clock.now(),
            monotonic: engine.clock.monotonic(),
            process: 0,
        };
        if let Some((path, terms)) = engine.place.path().zip(terms) {
            batch.tie(&Here::of(path), terms.take_over.as_deref())?.map_err(Failure::Elsewhere)?;
        }
        let before = batch.meta(schema::META_PROCESS)?;
        clean = before == 0 || batch.meta(schema::META_CLEAN_STOP)? == 1;
        process = before.saturating_add(1);
        for (name, value) in [
            (schema::META_FORMAT, schema::FORMAT_VERSION),
            (schema::META_PROCESS, process),
            (schema::META_CLEAN_STOP, 0),
        ] {
            batch.tables.meta.insert(name, value).map_err(Broken::from)?;
        }
        load_dedup(&mut batch, &terms.map(|terms| terms.progress.clone()).unwrap_or_default())?;
    }
    txn.commit().map_err(Broken::from)?;
    engine.process = process;
    let dedup_keys = engine.dedup.len();
    Ok((engine, Opened { process, clean, dedup_keys }))
}

/// Refuses a newer file before any table is opened whose shape it may have changed.
fn check_format(txn: &WriteTransaction) -> Result<(), Failure> {
    let meta = txn.open_table(schema::META).map_err(Broken::from)?;
    known_format(&meta)
}

/// The same for a file that is only read.
pub(super) fn check_readable(database: &Database) -> Result<(), Failure> {
    let txn = database.begin_read().map_err(Broken::from)?;
    known_format(&txn.open_table(schema::META).map_err(Broken::from)?)
}

fn known_format(meta: &impl ReadableTable<&'static str, u64>) -> Result<(), Failure> {
    let found = meta.get(schema::META_FORMAT).map_err(Broken::from)?.map_or(0, |version| version.value());
    if found > schema::FORMAT_VERSION { Err(Failure::Newer { found }) } else { Ok(()) }
}

/// Why a file that could be opened cannot be worked on.
pub(super) enum Failure {
    Newer { found: u64 },
    Elsewhere(Elsewhere),
    Broken(Broken),
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl Failure {
    pub(super) fn at(self, path: &Path) -> OpenError {
        match self {
            Self::Newer { found } => OpenError::Newer { found, known: schema::FORMAT_VERSION },
            Self::Elsewhere(Elsewhere { host, is_copy }) => {
                OpenError::Elsewhere { path: path.to_owned(), host, is_copy }
            }
            Self::Broken(source) => OpenError::Broken { path: path.to_owned(), source },
        }
    }
}

fn load_dedup(batch: &mut Batch<'_>, progress: &Progress) -> Result<(), Broken> {
    let now = batch.now;
    let rows = batch.tables.dedup.len()?;
    for (read, row) in (0_u64..).zip(batch.tables.dedup.iter()?) {
        if read % ROWS_TOLD == 0 {
            progress.at(Step::Reading, u8::try_from(read.saturating_mul(100) / rows.max(1)).unwrap_or(100));
        }
        let (event, value) = row?;
        let (hash, lapses_at) = split_dedup(value.value())?;
        if lapses_at > now {
            batch.dedup.load(hash, EventId::new(event.value()), lapses_at);
        }
    }
    Ok(())
}

pub(super) fn split_dedup(row: &[u8]) -> Result<(KeyHash, Timestamp), Malformed> {
    let bad = || Malformed { what: "dedup", why: "its length".to_owned() };
    let (hash, rest) = row.split_first_chunk::<16>().ok_or_else(bad)?;
    let (time, rest) = rest.split_first_chunk::<8>().ok_or_else(bad)?;
    if !rest.is_empty() {
        return Err(bad());
    }
    Ok((KeyHash::from_bytes(*hash), Timestamp::from_millis(i64::from_be_bytes(*time))))
}
