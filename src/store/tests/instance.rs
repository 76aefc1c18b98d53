//! Copies of the file: on another machine, and beside the original.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::domain::Pauses;
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::instance::Here;
use crate::store::writer::{Command, Lane};
use crate::store::{FILE_NAME, OpenError, Store, Terms};

fn open(folder: &Path, terms: &Terms) -> Result<Store, OpenError> {
    Store::open_on(terms, folder, SystemClock::start(), Pauses::default(), Arc::default())
}

fn made() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &Terms::default()).unwrap());
    folder
}

/// Story: a backup is put into another folder while the first instance still runs. Both would
/// make every deal. The copy can be read, and works once a person says that the other is off.
#[tokio::test]
async fn a_copy_is_refused_until_it_is_taken_over() {
    let (original, copy) = (made(), tempfile::tempdir().unwrap());
    fs::copy(original.path().join(FILE_NAME), copy.path().join(FILE_NAME)).unwrap();
    let refused = open(copy.path(), &Terms::default()).err();
    assert!(matches!(refused, Some(OpenError::Elsewhere { is_copy: true, .. })), "{refused:?}");

    let offline = Store::open_offline(copy.path(), SystemClock::start(), Pauses::default()).unwrap();
    assert!(offline.view().unwrap().names().unwrap().is_empty());
    offline.close().await;
    drop(offline);
    assert!(open(copy.path(), &Terms::default()).is_err(), "reading took nothing over");

    let taken = open(copy.path(), &Terms { take_over: Some("olga".to_owned()), ..Terms::default() }).unwrap();
    let audit = taken.view().unwrap().audit(10).unwrap();
    assert_eq!((audit[0].who.as_str(), audit[0].action.as_str()), ("olga", "take-over"));
    drop(taken);
    assert!(open(copy.path(), &Terms::default()).is_ok(), "it is its own from now on");
    assert!(open(original.path(), &Terms::default()).is_ok(), "the original stays what it is");
}

/// A move within a file system, a restart and a new host name are no copy.
#[test]
fn a_moved_file_is_the_same() {
    let (original, moved) = (made(), tempfile::tempdir().unwrap());
    fs::rename(original.path().join(FILE_NAME), moved.path().join(FILE_NAME)).unwrap();
    assert!(open(moved.path(), &Terms::default()).is_ok());
}

/// What another machine once wrote.
struct TieThere;

impl Command for TieThere {
    type Reply = ();

    fn apply(self, batch: &mut Batch<'_>) -> Result<(), Broken> {
        let there = Here { host: "old-host".to_owned(), machine: "m".to_owned(), inode: "7".to_owned() };
        batch.tie(&there, Some("olga")).map(drop)
    }
}

#[tokio::test]
async fn another_machine_is_told_whose_file_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Terms::default()).unwrap();
    store.inner.writer.submit(Lane::Worker, TieThere).await.unwrap();
    store.close().await;
    drop(store);
    let refused = open(folder.path(), &Terms::default()).err().unwrap();
    assert!(matches!(&refused, OpenError::Elsewhere { is_copy: false, .. }), "{refused:?}");
    let path = folder.path().join(FILE_NAME);
    assert_eq!(refused.to_string(), format!("the data file `{}` belongs to host old-host", path.display()));
}
