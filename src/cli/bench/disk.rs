//! The disk alone: how long a small append takes until it is durable.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::cli::bench::stats::Latencies;
use crate::clock::SharedClock;

/// A page of most file systems and of the data file.
const APPEND_BYTES: usize = 4096;
const APPENDS_MAX: usize = 1000;
const WITHIN: Duration = Duration::from_secs(3);

/// Appends and syncs (fdatasync) until enough is measured.
pub(super) fn appends(folder: &Path, clock: &SharedClock) -> io::Result<Latencies> {
    let path = folder.join("appends");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let end = clock.monotonic().plus(WITHIN);
    let mut measured = Vec::new();
    while measured.len() < APPENDS_MAX && clock.monotonic() < end {
        let begun = clock.monotonic();
        file.write_all(&[b'.'; APPEND_BYTES])?;
        file.sync_data()?;
        measured.push(clock.monotonic().since(begun));
    }
    drop(file);
    std::fs::remove_file(path)?;
    Ok(Latencies::of(measured))
}
