//! The data file as the file system sees it: how long it is, and whether its disk once failed.
//!
//! After a failed write or sync nobody knows what the disk holds, and reads may
//! still show pages that never reached it. So the writer leaves a mark beside
//! the file ([`Place::mark_failed`]), and the next opening drops the file's
//! cached pages and checks every page before anything is believed ([`recheck`]).
//! The mark goes once the file is found whole. A process that could not leave
//! its mark is one that could not write; then redb's own checksums remain.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError};
use rustix::fs::{Advice, fadvise};

use crate::store::error::OpenError;
use crate::store::open::{Progress, Step, sync_folder};

/// Beside the data file after a failed write.
const MARK_FILE_NAME: &str = "tambour.failed";

/// Below this length every commit also writes what a fast opening needs, at the
/// cost of a second sync; above it, that costs too much while busy, and an
/// opening after a kill takes 2 to 5 s a GB (measured).
pub(super) const QUICK_BYTES_MAX: u64 = 1 << 30;

/// Where the data file lies; nowhere, in simulations.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: Option<PathBuf>,
    quick_bytes_max: u64,
}

impl Place {
    pub(super) const fn nowhere() -> Self {
        Self { path: None, quick_bytes_max: QUICK_BYTES_MAX }
    }

    pub(super) const fn at(path: PathBuf, quick_bytes_max: u64) -> Self {
        Self { path: Some(path), quick_bytes_max }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether every commit may write what a fast opening needs.
    pub(super) fn is_small(&self) -> bool {
        let length = self.path.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |found| found.len());
        length < self.quick_bytes_max
    }

    /// Leaves the mark of a failed write, as well as a failing disk lets us.
    pub(super) fn mark_failed(&self, why: &str) {
        let Some(path) = &self.path else { return };
        let mark = mark_of(path);
        if let Err(error) = fs::write(&mark, why).and_then(|()| File::open(&mark)?.sync_all()) {
            tracing::warn!(%error, "the mark of the failed write may be lost");
        }
    }
}

fn mark_of(path: &Path) -> PathBuf {
    path.with_file_name(MARK_FILE_NAME)
}

/// Whether the last process ended with a failed write; if so the file's cached pages are dropped.
pub(super) fn failed_before(path: &Path) -> io::Result<bool> {
    if !mark_of(path).exists() {
        return Ok(false);
    }
    if path.exists() {
        tracing::warn!("the last write failed; the data file is checked before it is used");
        let file = File::open(path)?;
        // Only clean pages are dropped, so what still waits is written first.
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(true)
}

/// Checks every page of the file, then takes the mark away.
pub(super) fn recheck(database: &mut Database, path: &Path, progress: &Progress) -> Result<(), OpenError> {
    progress.at(Step::Checking, 0);
    let damaged = |source: DatabaseError| OpenError::Damaged { path: path.to_owned(), source: source.into() };
    let is_whole = database.check_integrity().map_err(damaged)?;
    // What was repaired must now be whole.
    if !is_whole && !database.check_integrity().map_err(damaged)? {
        return Err(OpenError::Unrepaired { path: path.to_owned() });
    }
    progress.at(Step::Checking, 100);
    tracing::info!(repaired = !is_whole, "the data file is whole");
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let removed = fs::remove_file(mark_of(path)).and_then(|()| sync_folder(folder));
    removed.map_err(|source| OpenError::Folder { path: folder.to_owned(), source })
}
