//! Saying no and breaking down are different types.

use std::path::{Path, PathBuf};

use crate::store::record::Malformed;

/// Why a command was not carried out; its caller may have promised nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The queue is full; usually a flood, or a disk whose syncs take long.
    #[error("the writer's queue is full")]
    Busy,
    /// A write or sync failed earlier, or the store was closed; the process must end.
    #[error("the data file takes no more writes")]
    Stopped,
    /// A read failed.
    #[error("failed to read the data file")]
    Read(#[source] std::sync::Arc<Broken>),
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::Read(std::sync::Arc::new(broken))
    }
}

/// The file or the disk failed.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// redb reports it: usually an I/O error or a full disk.
    #[error("the storage engine failed")]
    Engine(#[source] Box<redb::Error>),
    /// A record is not what the schema says.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A row that another row names is absent.
    #[error("{0} names a row that is absent")]
    Dangling(String),
}

macro_rules! from_redb {
    ($($kind:ident),*) => {
        $(impl From<redb::$kind> for Broken {
            fn from(error: redb::$kind) -> Self {
                Self::Engine(Box::new(error.into()))
            }
        })*
    };
}

from_redb!(StorageError, TableError, TransactionError, CommitError, DatabaseError);

fn elsewhere(path: &Path, host: &str, is_copy: bool) -> String {
    let path = path.display();
    if is_copy {
        format!("the data file `{path}` is a copy of another file of this host ({host})")
    } else {
        format!("the data file `{path}` belongs to host {host}")
    }
}

/// Why the data file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process works on it.
    #[error("the data file `{path}` is in use by {holder}; stop that process first, or ask it through its socket")]
    InUse {
        /// The file.
        path: PathBuf,
        /// `process 123`, or `another process`.
        holder: String,
    },
    /// A newer tambour wrote it.
    #[error("the data file has format {found}, this build knows {known}; install the newer version again")]
    Newer {
        /// In the file.
        found: u64,
        /// In this build.
        known: u64,
    },
    /// It is a copy of another machine's file, or of another one of this machine.
    #[error("{}", elsewhere(path, host, *is_copy))]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// The host that it belongs to.
        host: String,
        /// Whether that is this machine.
        is_copy: bool,
    },
    /// A write failed before, and the check found pages that are not as they were written.
    #[error("the data file `{path}` is damaged and is not used; put the last backup in its place")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Broken,
    },
    /// A repair did not make it whole.
    #[error("the data file `{path}` could not be repaired and is not used; put the last backup in its place")]
    Unrepaired {
        /// The file.
        path: PathBuf,
    },
    /// The folder cannot be made or used.
    #[error("failed to use the data folder `{path}`")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no data file yet.
    #[error("there is no data file `{path}`; `tambour serve` makes it")]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// The file or the disk failed.
    #[error("failed to open the data file `{path}`")]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Broken,
    },
}
