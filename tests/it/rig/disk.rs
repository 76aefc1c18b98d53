//! A disk in memory that outlives the process, may lose or tear what was not synced, and may fail.

use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

use crate::rig::life::Life;
use crate::rig::random::Random;

/// What a disk writes whole or not at all, if it keeps its promise.
const SECTOR_BYTES: usize = 512;

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
    trouble: Option<Trouble>,
}

/// What comes over the process at one of its calls.
#[derive(Debug)]
enum Trouble {
    /// It dies in a sync; where the power fails too chance says what is lost.
    Death { after_syncs: u32, power_cut: Option<Random> },
    /// The call fails, and the process must see to it.
    Failure { call: Call, after_calls: u32, errno: i32 },
}

/// Which calls fail.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    /// A write or a change of length, which then does nothing.
    Write,
    /// A sync. What it was for stays readable, or chance loses some of it: after a failed
    /// `fsync` Linux drops the changes from memory as it likes.
    Sync { losing: Option<Random> },
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
            Self::Bytes(at, bytes) => put(to, *at, bytes),
        }
    }

    /// As a power cut leaves it: each sector holds the new bytes, the old ones, or the new
    /// ones up to some place.
    fn apply_by_chance(&self, to: &mut Vec<u8>, chance: &mut Random) {
        match self {
            Self::Length(_) if chance.below(2) == 0 => {}
            Self::Length(_) => self.apply(to),
            Self::Bytes(at, bytes) => {
                let mut done = 0;
                while done < bytes.len() {
                    let length = (SECTOR_BYTES - (at + done) % SECTOR_BYTES).min(bytes.len() - done);
                    let kept = match chance.below(4) {
                        0 => 0,
                        1 => usize::try_from(chance.below(length as u64)).unwrap(),
                        _ => length,
                    };
                    put(to, at + done, &bytes[done..done + kept]);
                    done += length;
                }
            }
        }
    }
}

/// What lies behind the end of a file that was never made longer is gone.
fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = to.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

impl Image {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.present);
        self.unsynced.push(change);
    }

    /// Counts a call; gives the trouble that comes at it.
    fn count(&mut self, is_sync: bool) -> Option<Trouble> {
        let left = match self.trouble.as_mut()? {
            Trouble::Death { after_syncs, .. } if is_sync => after_syncs,
            Trouble::Failure { call, after_calls, .. } if is_sync == matches!(call, Call::Sync { .. }) => after_calls,
            _ => return None,
        };
        if *left == 0 {
            return self.trouble.take();
        }
        *left -= 1;
        None
    }

    fn cut_power(&mut self, chance: &mut Random) {
        self.trouble = None;
        for change in self.unsynced.drain(..) {
            change.apply_by_chance(&mut self.synced, chance);
        }
        self.present.clone_from(&self.synced);
    }
}

impl Disk {
    /// A disk that holds these bytes.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        let image = Image { synced: bytes.clone(), present: bytes, ..Image::default() };
        Self { image: Arc::new(Mutex::new(image)) }
    }

    /// What is on it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.image.lock().unwrap().present.clone()
    }

    /// The disk as one process sees it, as long as it lives.
    pub(crate) fn mounted(&self, life: Life) -> impl StorageBackend {
        Mounted { disk: self.clone(), life }
    }

    /// The process dies in the sync after `after_syncs` more, which then never happened;
    /// with `power_cut` the power fails with it.
    pub(crate) fn die_after_syncs(&self, after_syncs: u32, power_cut: Option<Random>) {
        self.image.lock().unwrap().trouble = Some(Trouble::Death { after_syncs, power_cut });
    }

    /// The call after `after_calls` more of its kind fails, once.
    pub(crate) fn fail_after(&self, call: Call, after_calls: u32, errno: i32) {
        self.image.lock().unwrap().trouble = Some(Trouble::Failure { call, after_calls, errno });
    }

    /// Whether the trouble is still ahead.
    pub(crate) fn is_armed(&self) -> bool {
        self.image.lock().unwrap().trouble.is_some()
    }

    /// The power fails: chance keeps, loses or tears each sector of what was not synced.
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

    /// The same for a call at which trouble may come.
    fn changing(&self, is_sync: bool, work: impl FnOnce(&mut Image)) -> io::Result<()> {
        self.with(|image| {
            let (error, loses) = match image.count(is_sync) {
                None => {
                    work(image);
                    return Ok(());
                }
                Some(Trouble::Death { power_cut, .. }) => {
                    self.life.end();
                    (io::Error::other("the process died in a sync"), power_cut)
                }
                Some(Trouble::Failure { call, errno, .. }) => {
                    self.life.doom();
                    let losing = if let Call::Sync { losing } = call { losing } else { None };
                    (io::Error::from_raw_os_error(errno), losing)
                }
            };
            if let Some(mut chance) = loses {
                image.cut_power(&mut chance);
            }
            Err(error)
        })
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
        self.changing(false, |image| image.change(Change::Length(usize::try_from(len).unwrap())))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.changing(true, |image| {
            for change in image.unsynced.drain(..) {
                change.apply(&mut image.synced);
            }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.changing(false, |image| image.change(Change::Bytes(usize::try_from(offset).unwrap(), data.to_vec())))
    }
}
