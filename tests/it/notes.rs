//! A deal on its stage gets one note, whatever managers and notifications do.

use std::time::Duration;

use bytes::Bytes;
use tambour::sandbox::{Faults, Operation};
use tambour::store::Receipt;

use crate::rig::{Random, Rig, STAGE_CONTRACT, STAGE_NEW, Setup};

/// A rig with a deal that a manager made, and the deal's id.
fn with_deal() -> (Rig, u64) {
    let rig = Rig::new(Setup::default());
    let (id, _) = rig.crm.add_lead_by_hand("Окна", 100, None).unwrap();
    (rig, id)
}

/// The manager moves the deal a minute later, and the account tells of it.
fn moved(rig: &mut Rig, id: u64, stage: u64) -> Bytes {
    rig.jump(Duration::from_mins(1));
    let hook = rig.crm.move_lead(id, stage).unwrap();
    rig.hook(hook.clone());
    hook
}

/// Story: forward; the note is written; back, forward again, twice. It stays one note.
#[test]
fn a_deal_that_comes_back_gets_no_second_note() {
    let (mut rig, id) = with_deal();
    for _ in 0..3 {
        moved(&mut rig, id, STAGE_CONTRACT);
        rig.run_to_rest();
        moved(&mut rig, id, STAGE_NEW);
        rig.run_to_rest();
    }
    assert_eq!(rig.told(), ["note done"]);
    let [note] = rig.crm.notes_of_lead(id).try_into().unwrap();
    assert!(note.starts_with("Договор по сделке Окна\n[tambour:"), "{note}");
    assert_eq!(rig.calls(Operation::LeadGet), 1, "a spent key asks nobody");
}

/// Story: the manager slips: forward and back before the worker looks. Nothing is
/// written; when the deal really comes, it gets its note.
#[test]
fn a_deal_that_left_the_stage_gets_its_note_when_it_comes_back() {
    let (mut rig, id) = with_deal();
    moved(&mut rig, id, STAGE_CONTRACT);
    moved(&mut rig, id, STAGE_NEW);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["note superseded left_stage"]);
    assert_eq!(rig.crm.counts().notes, 0);
    moved(&mut rig, id, STAGE_CONTRACT);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["note done"]);
    assert_eq!(rig.crm.counts().notes, 1);
}

/// Story: back and forward again while the worker is between its look and its note.
#[test]
fn a_deal_that_moves_under_the_worker_gets_one_note() {
    for seed in 0..20 {
        println!("seed {seed}");
        let (mut rig, id) = with_deal();
        let mut chance = Random::seeded(seed);
        rig.network.jitter(seed);
        for stage in [STAGE_CONTRACT, STAGE_NEW, STAGE_CONTRACT, STAGE_NEW, STAGE_CONTRACT] {
            moved(&mut rig, id, stage);
            rig.run_for(Duration::from_millis(chance.below(1200)));
        }
        rig.run_to_rest();
        assert_eq!(rig.told(), ["note done"]);
        assert_eq!(rig.crm.counts().notes, 1);
    }
}

/// B25. Story: a deal moves twice within a second, and the account sends no notification of
/// a move at all, only that the deal changed.
#[test]
fn a_move_that_only_an_update_tells_of_is_seen() {
    let (mut rig, id) = with_deal();
    rig.crm.move_lead(id, STAGE_NEW).unwrap();
    rig.crm.move_lead(id, STAGE_CONTRACT).unwrap();
    let hook = rig.crm.update_hook(id).unwrap();
    rig.hook(hook);
    rig.run_to_rest();
    assert_eq!((rig.told(), rig.crm.counts().notes), (vec!["note done".to_owned()], 1));
}

/// Story: five notifications about one deal within a minute: it moves, its sum changes, a
/// contact is tied to it, the sum changes again, and the first notification once more.
#[test]
fn five_notifications_within_a_minute_make_one_note() {
    for seed in 0..10 {
        println!("seed {seed}");
        let (mut rig, id) = with_deal();
        rig.network.jitter(seed);
        let mut chance = Random::seeded(seed);
        let contact = rig.crm.add_contact_by_hand("Анна", None, None);
        let first = rig.crm.move_lead(id, STAGE_CONTRACT).unwrap();
        rig.hook(first.clone());
        for change in 0..3 {
            rig.run_for(Duration::from_millis(1000 + chance.below(14_000)));
            let hook = match change {
                0 => rig.crm.set_price(id, 200),
                1 => rig.crm.link_contact(id, contact),
                _ => rig.crm.set_price(id, 300),
            };
            rig.hook(hook.unwrap());
        }
        let again = rig.hook(first);
        assert_eq!(again, Receipt::Duplicate { event: rig.events()[0].id });
        rig.run_to_rest();
        assert_eq!((rig.events().len(), rig.told()), (4, vec!["note done".to_owned()]));
        assert_eq!(rig.crm.counts().notes, 1);
    }
}

/// Story: the deal is read from a replica that lags behind the notification, so it seems
/// to stand on the old stage still. That is no reason to give up: it is read again.
#[test]
fn a_lagging_read_of_the_deal_is_repeated() {
    let (mut rig, id) = with_deal();
    rig.crm.set_faults(Faults { read_lag: Duration::from_secs(90), ..Faults::default() });
    moved(&mut rig, id, STAGE_CONTRACT);
    rig.settle();
    let task = rig.task("note");
    assert_eq!((task.state.as_str(), task.reason), ("retry", None));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["note done"]);
    assert_eq!(rig.crm.counts().notes, 1);
}
