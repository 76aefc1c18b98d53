//! One instance: the file is tied to the machine that it works on.
//!
//! Two machines that work on copies of one file do everything twice, so a copy
//! is refused until a person says that the other one is off. What ties:
//!
//! - `/etc/machine-id`, hashed as machine-id(5) asks: it survives reboots and
//!   upgrades and differs on another host. A container should mount the host's.
//! - The file's inode: it survives reboots and upgrades, and differs in a copy
//!   on the same machine, a restored backup included. A device number is left
//!   out, since a reboot may change it; a host name too, since people change it.
//!
//! A clone of the whole disk of a virtual machine has both; whoever clones
//! machines gives each its own machine-id.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use redb::ReadableTable as _;
use sha2::{Digest as _, Sha256};

use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::telemetry::new_trace_id;

const INSTANCE: &str = "instance";
const HOST: &str = "host";
const MACHINE: &str = "machine";
const INODE: &str = "inode";

/// Where a file is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Here {
    /// The host's name, for people.
    pub(super) host: String,
    /// The hash of the machine's id; of nothing where there is none.
    pub(super) machine: String,
    /// The file's inode.
    pub(super) inode: String,
}

impl Here {
    /// This machine, and the file as it lies on it.
    pub(super) fn of(path: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let host = read("/proc/sys/kernel/hostname");
        let hash = Sha256::new().chain_update("tambour instance\n").chain_update(read("/etc/machine-id")).finalize();
        Self {
            host: if host.is_empty() { "unknown".to_owned() } else { host },
            machine: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            inode: fs::metadata(path).map_or_else(|_| "unknown".to_owned(), |found| found.ino().to_string()),
        }
    }
}

/// The file is tied to something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) host: String,
    /// Whether it is a copy of a file of this machine.
    pub(super) is_copy: bool,
}

impl Batch<'_> {
    /// Ties a new file to its place, and a copy only if somebody takes it over.
    pub(super) fn tie(&mut self, here: &Here, take_over: Option<&str>) -> Result<Result<(), Elsewhere>, Broken> {
        if self.identity(INSTANCE)?.is_none() {
            // Without random numbers the time must do; the id only tells instances apart for people.
            let id = new_trace_id().map_or_else(|_| self.now.as_millis().to_string(), |id| id.to_string());
            self.put_identity(INSTANCE, &id)?;
            self.put_here(here)?;
            return Ok(Ok(()));
        }
        let of = |row: Option<String>| row.unwrap_or_default();
        let (machine, inode) = (of(self.identity(MACHINE)?), of(self.identity(INODE)?));
        if machine == here.machine && inode == here.inode {
            return Ok(Ok(()));
        }
        let host = of(self.identity(HOST)?);
        let Some(who) = take_over else {
            return Ok(Err(Elsewhere { host, is_copy: machine == here.machine }));
        };
        let instance = of(self.identity(INSTANCE)?);
        self.audit(who, "take-over", &format!("instance {instance} of host {host}, now on host {}", here.host))?;
        tracing::warn!(from = host, to = here.host, "the data file is taken over");
        self.put_here(here)?;
        Ok(Ok(()))
    }

    fn put_here(&mut self, Here { host, machine, inode }: &Here) -> Result<(), Broken> {
        self.put_identity(HOST, host)?;
        self.put_identity(MACHINE, machine)?;
        self.put_identity(INODE, inode)
    }

    fn identity(&self, name: &str) -> Result<Option<String>, Broken> {
        Ok(self.tables.identity.get(name)?.map(|value| value.value().to_owned()))
    }

    fn put_identity(&mut self, name: &str, value: &str) -> Result<(), Broken> {
        self.tables.identity.insert(name, value)?;
        Ok(())
    }
}
