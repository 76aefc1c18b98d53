//! The file on a real file system: after a failed write, and when it is large.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Builder, Database};

use super::disk::Disk;
use super::{START, shop_command, tools};
use crate::clock::{ManualClock, SystemClock};
use crate::domain::Pauses;
use crate::source::samples;
use crate::store::open::prepare;
use crate::store::place::Place;
use crate::store::writer::{Engine, Writer};
use crate::store::{EventState, FILE_NAME, OpenError, Progress, Step, Store, Terms};

const MARK: &str = "tambour.failed";

fn open(folder: &Path, progress: &Progress) -> Result<Store, OpenError> {
    let terms = Terms { progress: progress.clone(), ..Terms::default() };
    Store::open_on(&terms, folder, SystemClock::start(), Pauses::default(), Arc::default())
}

async fn accept(store: &Store, id: &str) {
    // Longer than what fits beside its row, and too random to be compressed.
    let noise: String = (0..2000_u32).map(|i| format!("{:08x}", (i + 7).wrapping_mul(2_654_435_761))).collect();
    let body = format!("{{\"id\":1,\"note\":\"{noise}\"}}");
    let command = shop_command(samples::signed(id, body.as_bytes()), EventState::Unrouted, Vec::new());
    store.accept(command).await.unwrap();
}

/// A store whose writer has its own thread and whose data stands on a breaking disk, with its
/// place, and so its mark, in a folder.
fn on_breaking_disk(disk: &Disk, path: PathBuf) -> Store {
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let clock = ManualClock::starting_at(START);
    let (engine, opened) = prepare(database, tools(&clock, Place::at(path, u64::MAX)), None).ok().unwrap();
    let database = Arc::clone(&engine.database);
    Store::new(Writer::threaded(engine).unwrap(), database, opened, true)
}

#[tokio::test]
async fn a_failed_write_leaves_its_mark_and_the_next_opening_checks_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let progress = Progress::default();
    let store = open(folder.path(), &progress).unwrap();
    assert_eq!(progress.now(), None, "a new file needs nothing");
    accept(&store, "1").await;
    store.close().await;
    drop(store);

    let disk = Disk::default();
    let broken = on_breaking_disk(&disk, folder.path().join(FILE_NAME));
    disk.break_after(0);
    let command = shop_command(samples::signed("2", b"{\"id\":1}"), EventState::Unrouted, Vec::new());
    assert!(broken.accept(command).await.is_err());
    drop(broken);
    let mark = fs::read_to_string(folder.path().join(MARK)).unwrap();
    assert!(mark.starts_with("the storage engine failed"), "{mark}");

    let seen = Progress::default();
    let store = open(folder.path(), &seen).unwrap();
    assert_eq!(store.opened().dedup_keys, 1);
    assert!(!folder.path().join(MARK).exists(), "the file is whole");
    drop(store);
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Progress::default()).unwrap();
    for id in ["1", "2", "3", "4"] {
        accept(&store, id).await;
    }
    store.close().await;
    drop(store);
    let path = folder.path().join(FILE_NAME);
    let before = fs::read(&path).unwrap();
    // The name of the shop stands in every event's row.
    let at = before.windows(7).rposition(|bytes| bytes == b"tambour").unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"!", u64::try_from(at).unwrap()).unwrap();
    drop(file);
    fs::write(folder.path().join(MARK), "a write failed").unwrap();
    let refused = open(folder.path(), &Progress::default()).err();
    let Some(OpenError::Damaged { .. }) = refused else { panic!("a damaged file is used: {refused:?}") };
    assert!(folder.path().join(MARK).exists(), "the next opening refuses it too");
    assert!(refused.unwrap().to_string().ends_with("put the last backup in its place"));

    // So damaged that it is no data file at all.
    fs::write(&path, "").unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[7; 8192], 0).unwrap();
    let refused = open(folder.path(), &Progress::default()).err();
    assert!(matches!(refused, Some(OpenError::Damaged { .. })), "{refused:?}");
}

/// Whether a kill now would make the next opening repair the file.
fn needs_repair(path: &Path) -> bool {
    let copy = tempfile::tempdir().unwrap();
    let copied = copy.path().join("copy");
    fs::copy(path, &copied).unwrap();
    let repaired = Progress::default();
    let told = repaired.clone();
    let mut builder = Builder::new();
    builder.set_repair_callback(move |_| told.at(Step::Repairing, 0));
    drop(builder.open(&copied).unwrap());
    repaired.now().is_some()
}

/// A store on a file that counts as large from so many bytes on.
fn large_from(quick_bytes_max: u64, folder: &Path, writer: fn(Engine) -> Writer) -> (Store, PathBuf) {
    let path = folder.join(FILE_NAME);
    let database = Database::create(&path).unwrap();
    let place = Place::at(path.clone(), quick_bytes_max);
    let (engine, opened) = prepare(database, tools(&ManualClock::starting_at(START), place), None).ok().unwrap();
    let database = Arc::clone(&engine.database);
    (Store::new(writer(engine), database, opened, true), path)
}

/// While it is busy, a large file gets what a fast opening needs only when its process ends.
#[tokio::test]
async fn only_small_files_are_fast_to_open_at_any_time() {
    for (quick_bytes_max, is_large) in [(u64::MAX, false), (0, true)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, path) = large_from(quick_bytes_max, folder.path(), Writer::inline);
        accept(&store, "1").await;
        assert_eq!(needs_repair(&path), is_large, "busy");
        store.close().await;
        assert!(!needs_repair(&path), "ended");
    }
}

#[tokio::test]
async fn a_large_file_is_made_fast_to_open_when_nothing_comes() {
    let folder = tempfile::tempdir().unwrap();
    let (store, path) = large_from(0, folder.path(), |engine| Writer::threaded(engine).unwrap());
    let mut pulse = store.pulse();
    accept(&store, "1").await;
    pulse.wait_for(|pulse| pulse.commits == 2).await.unwrap();
    assert!(!needs_repair(&path), "idle");
    accept(&store, "2").await;
    store.close().await;
    assert!(!needs_repair(&path), "ended");
}
