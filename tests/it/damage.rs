//! Single bits of a data file flip; what can be told from it, and when.
//!
//! redb writes a checksum over every page and looks at it only where it suspects the
//! file: in a whole repair, and in its integrity check. A plain opening and plain reads
//! trust the pages. So [`verify`] is what finds damage, and these tests hold that it
//! does; how many flips show by themselves, as an error, is printed.
//!
//! One bit is beyond it: the one of the header that says which of the two commit slots
//! counts, in a file that was left by a kill. Both slots are whole there, so the file is
//! what a kill one commit earlier would have left.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::Database;
use tambour::clock::ManualClock;
use tambour::domain::{Pauses, Timestamp};
use tambour::sandbox::OrderSketch;
use tambour::store::{ObjectRef, Store, View};

use crate::crash::order;
use crate::rig::{Disk, Life, Random, Rig, STAGE_CONTRACT, START, Setup};

/// In each of two files.
const FLIPS: usize = 100;
const PAGE_BYTES: usize = 4096;
/// The byte of flags in the header (redb, "design", "Database format").
const FLAGS_BYTE: usize = 9;

/// Whether every checksum in a file is right; a page that makes redb panic is not.
fn verify(bytes: &[u8]) -> bool {
    let check = || {
        let disk = Disk::holding(bytes.to_vec());
        let opened = Database::builder().create_with_backend(disk.mounted(Life::default()));
        opened.is_ok_and(|mut database| matches!(database.check_integrity(), Ok(true)))
    };
    catch_unwind(AssertUnwindSafe(check)).unwrap_or(false)
}

/// Everything that the public reads give, as text; or that they fail.
fn answers(bytes: &[u8]) -> Result<String, String> {
    let read = || {
        let disk = Disk::holding(bytes.to_vec());
        let clock = ManualClock::starting_at(START);
        let store = Store::inline(disk.mounted(Life::default()), clock, Pauses::default())
            .map_err(|error| format!("opening: {error}"))?;
        let view = store.view().map_err(|error| error.to_string())?;
        all_of(&view).map_err(|error| format!("reading: {error}"))
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("panic".to_owned()))
}

fn all_of(view: &View) -> Result<String, Box<dyn std::error::Error>> {
    let mut all = String::new();
    for event in view.events(None, usize::MAX, &|_| true)? {
        writeln!(all, "{event:?} {:?}", view.body(event.id)?)?;
    }
    for task in view.tasks(None, usize::MAX, &|_| true)? {
        let (key, behind) = (view.task_of_key(&task.key)?, view.waits_behind(&task)?);
        writeln!(all, "{task:?} {key:?} {behind:?} {:?}", view.events_of_task(task.id)?)?;
        for entity in view.entities(&task.entity)? {
            writeln!(all, "{entity:?} {:?} {:?}", view.events_of_entity(&entity)?, view.newest_whole(&entity)?)?;
        }
        for intent in view.intents_of_task(task.id)? {
            writeln!(all, "{intent:?} {:?}", view.evidence(intent.id)?)?;
            let object = view.object(&ObjectRef::new(&intent.target, "any", intent.objects))?;
            let place = format!("{}/{}", intent.target, intent.object_kind);
            let external = view.object_of_external(&place, &intent.external_id.unwrap_or_default())?;
            writeln!(all, "{object:?} {external:?}")?;
        }
    }
    for alias in ["7", "8", "0001"] {
        writeln!(all, "{alias} {:?}", view.events_of_alias(alias, usize::MAX)?)?;
    }
    let next_due: Option<Timestamp> =
        view.next_due(&["crm".to_owned()], &["deal", "note", "notice"].map(str::to_owned))?;
    writeln!(all, "{:?} {:?} {next_due:?}", view.doubts(usize::MAX)?, view.oldest_unfinished()?)?;
    writeln!(all, "{:?} {:?} {:?}", view.counts()?, view.holds()?, view.audit(usize::MAX)?)?;
    Ok(all)
}

/// The file of a day's work, as a kill leaves it.
fn killed_file() -> Vec<u8> {
    let mut rig = Rig::new(Setup::default());
    for id in 1..=12 {
        rig.order("orders/create", &OrderSketch { id, ..order("100.00", 0) });
    }
    rig.order("orders/create", &OrderSketch { id: 13, currency: "USD".to_owned(), ..order("1.00", 0) });
    let (lead, _) = rig.crm.add_lead_by_hand("Окна", 100, None).unwrap();
    let hook = rig.crm.move_lead(lead, STAGE_CONTRACT).unwrap();
    rig.hook(hook);
    rig.run_to_rest();
    for id in 1..=6 {
        rig.order("orders/updated", &OrderSketch { id, ..order("200.00", 5) });
    }
    rig.run_to_rest();
    rig.disk.bytes()
}

/// The same after an orderly end.
fn closed_file(bytes: Vec<u8>) -> Vec<u8> {
    let disk = Disk::holding(bytes);
    drop(Database::builder().create_with_backend(disk.mounted(Life::default())).unwrap());
    disk.bytes()
}

const OTHER_ANSWERS_UNSEEN: &str = "other answers, and nothing shows it";

/// Flips each of these bits alone; gives how the plain reads took it.
fn flip(name: &str, bytes: &[u8], bits: impl Iterator<Item = usize>) -> BTreeMap<&'static str, usize> {
    let truth = answers(bytes).unwrap();
    assert!(verify(bytes), "{name}: the file is whole");
    let mut taken = BTreeMap::new();
    for bit in bits {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let how = match answers(&damaged) {
            Ok(told) if told == truth => "no difference",
            Ok(_) if !verify(&damaged) => "other answers, found by the integrity check",
            Ok(_) => OTHER_ANSWERS_UNSEEN,
            Err(why) if why == "panic" => "panic",
            Err(_) => "an error",
        };
        println!("{name}, bit {bit} of byte {}: {how}", bit / 8);
        *taken.entry(how).or_default() += 1;
    }
    println!("{name}: {taken:?}");
    taken
}

/// Story: one bit of the data file flips while it lies on the disk. Whatever is asked
/// fails, or is answered as before, or the integrity check says that the file is damaged.
#[test]
fn no_single_bit_changes_an_answer_unseen() {
    let killed = killed_file();
    let closed = closed_file(killed.clone());
    for (name, bytes, seed) in [("killed", killed, 1), ("closed", closed, 2)] {
        let mut chance = Random::seeded(seed);
        let pages = bytes.chunks(PAGE_BYTES).enumerate();
        let used: Vec<usize> =
            pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0)).map(|(number, _)| number).collect();
        println!("{name}: {} of {} pages are used, seed {seed}", used.len(), bytes.len() / PAGE_BYTES);
        let page_bits = (8 * PAGE_BYTES) as u64;
        let bits =
            (0..FLIPS).map(|_| 8 * PAGE_BYTES * chance.pick(&used) + usize::try_from(chance.below(page_bits)).unwrap());
        let taken = flip(name, &bytes, bits);
        assert!(taken.len() > 1, "{name}: no flip hit anything: {taken:?}");
        assert_eq!(taken.get(OTHER_ANSWERS_UNSEEN), None, "{name}");
    }
}

/// Story: the same for the flags in the header. After an orderly end nothing goes unseen;
/// after a kill the switch between the commit slots does, and only that.
#[test]
fn of_the_flags_only_the_switch_of_a_killed_file_goes_unseen() {
    let killed = killed_file();
    let closed = closed_file(killed.clone());
    let flags = 8 * FLAGS_BYTE..8 * FLAGS_BYTE + 8;
    assert_eq!(flip("closed", &closed, flags.clone()).get(OTHER_ANSWERS_UNSEEN), None);
    assert_eq!(flip("killed", &killed, flags.skip(1)).get(OTHER_ANSWERS_UNSEEN), None);
    let switch = flip("killed", &killed, std::iter::once(8 * FLAGS_BYTE));
    assert_eq!(switch.get(OTHER_ANSWERS_UNSEEN), Some(&1), "{switch:?}");
}
