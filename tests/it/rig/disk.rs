//! A disk in memory that outlives the process, and may lose what was not synced.

use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

use crate::rig::life::Life;
use crate::rig::random::Random;

/// The bytes of the data file; a clone is the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    image: Arc<Mutex<Image>>,
}

#[derive(Debug, Default)]
struct Image {
    /// What reads see.
    present: Vec<u8>,
    /// What a power cut cannot take.
    synced: Vec<u8>,
    /// What came since, in order.
    unsynced: Vec<Change>,
    death: Option<Death>,
}

/// How the process dies in a sync.
#[derive(Debug)]
struct Death {
    /// How many syncs come before that.
    after_syncs: u32,
    /// Where the power fails too: which writes are lost.
    chance: Option<Random>,
}

#[derive(Debug)]
enum Change {
    Length(usize),
    Bytes(usize, Vec<u8>),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Length(length) => to.resize(*length, 0),
            Self::Bytes(at, bytes) => {
                // What lies behind the end of a file that was never made longer is gone.
                if let Some(place) = to.get_mut(*at..*at + bytes.len()) {
                    place.copy_from_slice(bytes);
                }
            }
        }
    }
}

impl Image {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.present);
        self.unsynced.push(change);
    }

    /// Counts a sync; gives the death that comes in it.
    fn count_sync(&mut self) -> Option<Death> {
        match &mut self.death {
            Some(death) if death.after_syncs > 0 => {
                death.after_syncs -= 1;
                None
            }
            death => death.take(),
        }
    }

    /// Of what was not synced chance keeps some writes and loses others.
    fn cut_power(&mut self, chance: &mut Random) {
        self.death = None;
        for change in self.unsynced.drain(..).filter(|_| chance.below(2) == 0) {
            change.apply(&mut self.synced);
        }
        self.present.clone_from(&self.synced);
    }
}

impl Disk {
    /// The disk as one process sees it, as long as it lives.
    pub(crate) fn mounted(&self, life: Life) -> impl StorageBackend {
        Mounted { disk: self.clone(), life }
    }

    /// The process dies in the sync after `after_syncs` more, which then never happened;
    /// with `chance` the power fails with it.
    pub(crate) fn die_after_syncs(&self, after_syncs: u32, chance: Option<Random>) {
        self.image.lock().unwrap().death = Some(Death { after_syncs, chance });
    }

    /// Whether that death is still ahead.
    pub(crate) fn is_armed(&self) -> bool {
        self.image.lock().unwrap().death.is_some()
    }

    /// The power fails: of what was not synced chance keeps some writes and loses others.
    pub(crate) fn cut_power(&self, chance: &mut Random) {
        self.image.lock().unwrap().cut_power(chance);
    }
}

#[derive(Debug)]
struct Mounted {
    disk: Disk,
    life: Life,
}

impl Mounted {
    fn with<T>(&self, work: impl FnOnce(&mut Image) -> io::Result<T>) -> io::Result<T> {
        if !self.life.lasts() {
            return Err(io::Error::other("the process is dead"));
        }
        work(&mut self.disk.image.lock().unwrap())
    }
}

impl StorageBackend for Mounted {
    fn len(&self) -> io::Result<u64> {
        self.with(|image| Ok(image.present.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|image| {
            let at = usize::try_from(offset).unwrap();
            let bytes = image.present.get(at..at + out.len());
            out.copy_from_slice(bytes.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|image| {
            image.change(Change::Length(usize::try_from(len).unwrap()));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|image| {
            if let Some(death) = image.count_sync() {
                self.life.end();
                if let Some(mut chance) = death.chance {
                    image.cut_power(&mut chance);
                }
                return Err(io::Error::other("the process died in a sync"));
            }
            for change in image.unsynced.drain(..) {
                change.apply(&mut image.synced);
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.with(|image| {
            image.change(Change::Bytes(usize::try_from(offset).unwrap(), data.to_vec()));
            Ok(())
        })
    }
}
