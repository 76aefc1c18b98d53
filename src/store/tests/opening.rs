//! Opening the file: one process, a known format, and who holds it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use redb::{Database, ReadableDatabase as _, TableDefinition};

use super::disk::Disk;
use super::{Desk, START};
use crate::clock::{ManualClock, SystemClock};
use crate::domain::Pauses;
use crate::store::{FILE_NAME, OpenError, Store, schema};

#[tokio::test]
async fn a_file_of_a_newer_format_is_refused_and_stays_as_it_is() {
    let (disk, clock) = (Disk::default(), ManualClock::starting_at(START));
    {
        let database = Database::builder().create_with_backend(disk.clone()).unwrap();
        let txn = database.begin_write().unwrap();
        txn.open_table(schema::META).unwrap().insert(schema::META_FORMAT, schema::FORMAT_VERSION + 1).unwrap();
        // A later format may give a known name to another shape.
        txn.open_table(TableDefinition::<&str, &str>::new("tasks")).unwrap();
        txn.commit().unwrap();
    }
    let disk = disk.copy();
    let refused = Store::inline(disk.clone(), clock, Pauses::default()).err();
    assert!(matches!(refused, Some(OpenError::Newer { found: 2, known: 1 })), "{refused:?}");
    let database = Database::builder().create_with_backend(disk.copy()).unwrap();
    let txn = database.begin_read().unwrap();
    assert_eq!(txn.list_tables().unwrap().count(), 2, "nothing was written");
}

/// B66: two at once on one file would do everything twice.
#[tokio::test]
async fn a_second_opening_is_refused_with_the_holders_pid() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default());
    let store = open().unwrap();
    for refused in [open(), Store::open_offline(folder.path(), SystemClock::start(), Pauses::default())] {
        let Err(OpenError::InUse { path, holder }) = refused else { panic!("two work on one file") };
        assert_eq!(path, folder.path().join(FILE_NAME));
        assert_eq!(holder, format!("process {}", std::process::id()));
    }
    store.close().await;
    drop(store);
    assert!(open().unwrap().opened().clean);
}

#[test]
fn the_folder_is_made_for_its_owner_alone() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("var").join("data");
    let store = Store::open(&folder, SystemClock::start(), Pauses::default(), Arc::default()).unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!((store.opened().process, store.opened().clean, store.opened().dedup_keys), (1, true, 0));
}

#[test]
fn offline_commands_make_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Store::open_offline(folder.path(), SystemClock::start(), Pauses::default());
    assert!(matches!(refused.err(), Some(OpenError::Absent { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_no_data_file_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    fs::write(&path, b"a letter to the editor").unwrap();
    let refused = Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default());
    assert!(matches!(refused.err(), Some(OpenError::Broken { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"a letter to the editor");
}

#[tokio::test]
async fn each_process_has_a_number_and_knows_how_the_one_before_ended() {
    let mut desk = Desk::new();
    let opened = |desk: &Desk| (desk.store.opened().process, desk.store.opened().clean);
    assert_eq!(opened(&desk), (1, true));
    desk.kill();
    assert_eq!(opened(&desk), (2, false));
    desk.restart().await;
    assert_eq!(opened(&desk), (3, true));
    desk.kill();
    assert_eq!(opened(&desk), (4, false), "the mark holds for one opening");
}

/// Orders, names and phones are nobody else's to read, even in a folder that is open to all.
#[test]
fn the_file_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    for _ in 0..2 {
        drop(Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default()).unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
}
