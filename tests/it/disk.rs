//! The disk takes its part in a death: syncs that never came, torn sectors, calls that fail.

use tambour::store::Receipt;

use crate::crash::{ALL, MADE, Work, order, survives};
use crate::rig::{Call, Random, Rig, Setup};

/// How often the power is cut in [`a_power_cut_anywhere_changes_nothing_in_the_end`].
const CUTS: usize = 500;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn dies_in_sync(work: &Work, syncs: u32, power_cut: Option<Random>) -> bool {
    let arm = |rig: &mut Rig| rig.disk.die_after_syncs(syncs, power_cut.clone());
    survives(work, arm, |rig| rig.disk.is_armed())
}

/// Story: the process dies in a sync, so that its commit never happened; every sync of
/// every kind of work in turn: accept, lease, intent, outcome, settle.
#[test]
fn a_death_in_any_sync_changes_nothing_in_the_end() {
    for work in ALL {
        let mut deaths = 0;
        while dies_in_sync(&work, deaths, None) {
            deaths += 1;
        }
        println!("{}: {deaths} syncs", work.name);
        assert!(deaths >= 10, "{}: only {deaths} deaths", work.name);
    }
}

/// B64. Story: the power fails in a sync. Of what was not synced each sector is kept, lost
/// or torn by chance. Every sync of every kind of work in turn, and again with other chances.
#[test]
fn a_power_cut_anywhere_changes_nothing_in_the_end() {
    let mut cuts = 0;
    for round in 0.. {
        for work in ALL {
            for syncs in 0.. {
                if cuts == CUTS {
                    return;
                }
                let seed = 1000 * round + u64::from(syncs);
                println!("{}: power fails after {syncs} syncs, seed {seed}", work.name);
                if !dies_in_sync(&work, syncs, Some(Random::seeded(seed))) {
                    break;
                }
                cuts += 1;
            }
        }
    }
}

/// B64. Story: the power fails in each sync of a delivery's commit. What was answered is
/// there; what was not may be, if the writes made it to the disk by luck. The sender
/// repeats, and in the end there is one event and one deal.
#[test]
fn a_delivery_that_was_answered_survives_a_power_cut() {
    let mut outcomes = [0; 3];
    for seed in 0..60 {
        println!("seed {seed}");
        let mut chance = Random::seeded(seed);
        let mut rig = Rig::new(Setup::default());
        rig.disk.die_after_syncs(u32::try_from(chance.below(6)).unwrap(), Some(chance.clone()));
        let is_answered = rig.try_order("orders/create", &order("100.00", 0), "w").is_ok();
        rig.cut_power(&mut chance);
        let is_stored = rig.events().len() == 1;
        assert!(is_stored || !is_answered, "answered and lost");
        outcomes[usize::from(is_stored) + usize::from(is_answered)] += 1;
        let again = rig.try_order("orders/create", &order("100.00", 0), "w").unwrap();
        assert_eq!(matches!(again, Receipt::Duplicate { .. }), is_stored);
        rig.run_to_rest();
        assert_eq!((rig.events().len(), rig.told()), (1, vec!["deal done".to_owned()]));
        (MADE.check)(&rig);
    }
    assert!(outcomes.iter().all(|&times| times > 0), "lost, lucky, answered: {outcomes:?}");
}

/// Does the work with each call of a kind failing in turn; gives how many there are.
fn fails_anywhere(call: &Call, errno: i32) -> u32 {
    for calls in 0.. {
        println!("{}: {call:?} fails after {calls} calls, errno {errno}", MADE.name);
        if !survives(&MADE, |rig| rig.disk.fail_after(call.clone(), calls, errno), |rig| rig.disk.is_armed()) {
            return calls;
        }
    }
    unreachable!("no run has that many calls")
}

/// Story: a write fails, for a broken disk or a full one, and all later ones would succeed.
/// The store says `Stopped` and answers nobody any more; the next process does the work, once.
#[test]
fn a_failing_write_stops_the_process_and_the_next_one_ends_its_work() {
    for errno in [EIO, ENOSPC] {
        let writes = fails_anywhere(&Call::Write, errno);
        assert!(writes >= 100, "only {writes} writes failed");
    }
}

/// Story: the same for syncs. What was not synced stays readable, or some of it is lost.
#[test]
fn a_failing_sync_stops_the_process_and_the_next_one_ends_its_work() {
    for errno in [EIO, ENOSPC] {
        for losing in [None, Some(Random::seeded(1)), Some(Random::seeded(2))] {
            let syncs = fails_anywhere(&Call::Sync { losing }, errno);
            assert!(syncs >= 10, "only {syncs} syncs failed");
        }
    }
}

/// Story: the disk fails while the file is being opened, with a delivery in it. The process
/// ends without a word; the next one opens the file and does the work.
#[test]
fn a_failure_in_the_opening_is_not_the_end_of_the_file() {
    for (call, calls_min) in [(Call::Write, 10), (Call::Sync { losing: Some(Random::seeded(3)) }, 2)] {
        for calls in 0.. {
            println!("{call:?} fails after {calls} calls");
            let mut rig = Rig::new(Setup::default());
            rig.order("orders/create", &order("100.00", 0));
            rig.disk.fail_after(call.clone(), calls, EIO);
            rig.restart();
            if rig.disk.is_armed() {
                assert!(calls >= calls_min, "only {calls} calls failed");
                break;
            }
            assert_eq!(rig.deaths, 2);
            rig.run_to_rest();
            rig.check_acknowledged();
            (MADE.check)(&rig);
        }
    }
}
