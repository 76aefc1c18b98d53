//! A disk in memory: outlives the store, breaks when told, forgets what was not synced.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// A cheap handle; [`Disk::copy`] makes another disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug, Clone, Default)]
struct Platter {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// How many changes still succeed; absent while the disk is whole.
    left: Option<usize>,
    has_failed: bool,
}

impl Disk {
    /// A disk with the same bytes, as a kill of the process leaves them.
    pub(super) fn copy(&self) -> Self {
        let bytes = self.platter().bytes.clone();
        Self::holding(bytes)
    }

    /// A disk with what was synced, as the worst power cut leaves it.
    pub(super) fn copy_of_synced(&self) -> Self {
        let bytes = self.platter().synced.clone();
        Self::holding(bytes)
    }

    fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Platter { synced: bytes.clone(), bytes, ..Platter::default() })))
    }

    /// Lets `left` more writes, syncs and changes of length succeed; all later ones fail.
    pub(super) fn break_after(&self, left: usize) {
        self.platter().left = Some(left);
    }

    /// Whether a change failed.
    pub(super) fn has_failed(&self) -> bool {
        self.platter().has_failed
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap()
    }

    fn changing(&self) -> Result<MutexGuard<'_, Platter>, io::Error> {
        let mut platter = self.platter();
        match &mut platter.left {
            Some(0) => {
                platter.has_failed = true;
                return Err(io::Error::other("the disk is broken"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(platter)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.platter().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let from = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.platter().bytes[from..from + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.changing()?.bytes.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut platter = self.changing()?;
        platter.synced = platter.bytes.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let from = usize::try_from(offset).unwrap();
        self.changing()?.bytes[from..from + data.len()].copy_from_slice(data);
        Ok(())
    }
}
