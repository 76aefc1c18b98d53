//! The process dies on every line that matters; the next one ends its work, once.

use std::time::Duration;

use tambour::domain::{ReasonCode, State};
use tambour::sandbox::{Fault, Faults, Operation, OrderSketch, When};

use crate::rig::{Cut, Random, Rig, STAGE_CONTRACT, START, Setup};

pub(crate) fn order(total: &str, after: u64) -> OrderSketch {
    let updated_at = START.plus(Duration::from_secs(after));
    let (phone, email) = (Some("+79000000001".to_owned()), Some("anna.test@example.com".to_owned()));
    OrderSketch { updated_at, phone, email, ..OrderSketch::new(7, "#7", total, START) }
}

/// A piece of work: what was there, what starts it, and what must be true after it.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    prepare: fn(&mut Rig),
    start: fn(&mut Rig),
    pub(crate) check: fn(&Rig),
}

pub(crate) const MADE: Work = Work {
    name: "an order makes a deal",
    prepare: |_| {},
    start: |rig| drop(rig.order("orders/create", &order("100.00", 0))),
    check: |rig| {
        let counts = rig.crm.counts();
        assert_eq!((counts.contacts, counts.leads, counts.notes, counts.tasks), (1, 1, 1, 0));
        assert_eq!((rig.crm.leads()[0].price, rig.crm.leads()[0].contacts.len()), (100, 1));
    },
};

const UPDATED: Work = Work {
    name: "an order changes its deal",
    prepare: |rig| {
        (MADE.start)(rig);
        rig.run_to_rest();
    },
    start: |rig| drop(rig.order("orders/updated", &order("200.00", 5))),
    check: |rig| {
        let counts = rig.crm.counts();
        assert_eq!((counts.contacts, counts.leads, counts.notes, counts.tasks), (1, 1, 1, 0));
        let lead = &rig.crm.leads()[0];
        assert_eq!((lead.price, lead.fields["TAMBOUR_TOTAL"].as_str()), (200, "200.00"));
    },
};

const NOTED: Work = Work {
    name: "a deal on the stage gets its note",
    prepare: |rig| drop(rig.crm.add_lead_by_hand("Окна", 100, None).unwrap()),
    start: |rig| {
        let hook = rig.crm.move_lead(rig.crm.leads()[0].id, STAGE_CONTRACT).unwrap();
        rig.hook(hook);
    },
    check: |rig| {
        let counts = rig.crm.counts();
        assert_eq!((counts.leads, counts.notes, counts.tasks), (1, 1, 0));
    },
};

const TOLD: Work = Work {
    name: "a person is told of a dead task",
    prepare: |_| {},
    start: |rig| drop(rig.order("orders/create", &OrderSketch { currency: "USD".to_owned(), ..order("1.00", 0) })),
    check: |rig| assert_eq!((rig.crm.counts().leads, rig.crm.tasks().len()), (0, 1)),
};

pub(crate) const ALL: [Work; 4] = [MADE, UPDATED, NOTED, TOLD];

/// Does the work with a death in it, from the door on; gives false once the place of death
/// was not reached.
pub(crate) fn survives(work: &Work, arm: impl Fn(&mut Rig), is_armed: fn(&Rig) -> bool) -> bool {
    let mut rig = Rig::new(Setup::default());
    (work.prepare)(&mut rig);
    let before = rig.events().len();
    arm(&mut rig);
    (work.start)(&mut rig);
    rig.run_to_rest();
    if is_armed(&rig) {
        assert_eq!(rig.deaths, 0);
        return false;
    }
    assert_eq!(rig.deaths, 1);
    rig.check_acknowledged();
    assert_eq!(rig.events().len(), before + 1);
    assert!(rig.tasks().iter().all(|task| matches!(task.state, State::Done | State::Dead)), "{:?}", rig.told());
    assert_eq!(rig.view().doubts(10).unwrap(), []);
    (work.check)(&rig);
    true
}

/// Story: the process dies before a call reaches the other side, or after it was carried
/// out and before its answer is seen; every call of every kind of work in turn.
#[test]
fn a_death_around_any_call_changes_nothing_in_the_end() {
    for work in ALL {
        let mut deaths = 0;
        for cut in [Cut::Before, Cut::After] {
            for nth in 1.. {
                println!("{}: {cut:?} call {nth}", work.name);
                if !survives(&work, |rig| rig.network.cut(nth, cut), |rig| rig.network.is_armed()) {
                    break;
                }
                deaths += 1;
            }
        }
        assert!(deaths >= 4, "{}: only {deaths} deaths", work.name);
    }
}

const CHANGES: [Operation; 4] =
    [Operation::ContactCreate, Operation::LeadCreate, Operation::LeadUpdate, Operation::NoteCreate];
const LOST: [Fault; 3] = [Fault::LostAnswer, Fault::LostRequest, Fault::WithholdLastByte];

/// Story: a bad day. Orders and their changes come while the process dies at random calls
/// and syncs, answers are lost and the search lags. In the end each order has one deal in
/// its newest state, and all of them share one contact.
#[test]
fn a_bad_day_ends_with_one_of_each() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut chance = Random::seeded(seed);
        let mut rig = Rig::new(Setup { pauses: r#"["1m"]"#, ..Setup::default() });
        rig.network.jitter(seed);
        rig.crm.set_faults(Faults { search_lag: Duration::from_secs(60), ..Faults::default() });
        for step in 0..6_u64 {
            match chance.below(3) {
                0 => rig
                    .network
                    .cut(1 + usize::try_from(chance.below(8)).unwrap(), chance.pick(&[Cut::Before, Cut::After])),
                1 => rig.disk.die_after_syncs(u32::try_from(chance.below(12)).unwrap(), Some(chance.clone())),
                _ => rig.crm.inject(chance.pick(&CHANGES), When::Nth(1), chance.pick(&LOST)),
            }
            let order = OrderSketch { id: 1 + step % 3, ..order(&format!("{}.00", 100 * (step + 1)), step) };
            rig.order_as("orders/updated", &order, &format!("w{step}"), &format!("w{step}"));
            // An unclean end must be followed by a clean run: three in a row are poison.
            rig.run_for(Duration::from_secs(chance.below(2) * chance.below(300)));
            if rig.deaths % 2 == 1 {
                rig.run_to_rest();
            }
        }
        rig.run_to_rest();
        let mut prices: Vec<u64> = rig.crm.leads().into_iter().map(|lead| lead.price).collect();
        prices.sort_unstable();
        assert_eq!(prices, [400, 500, 600], "{:?}", rig.told());
        let counts = rig.crm.counts();
        assert_eq!((counts.contacts, counts.notes, counts.tasks), (1, 3, 0));
        assert_eq!(rig.view().doubts(10).unwrap(), []);
    }
}

/// B50. Story: one order kills the process each time it is worked on. Its neighbour, which
/// ran beside it at first, is done; the poisonous one is dead after a few deaths, a person is
/// told, and the appliance lives on.
#[test]
fn a_task_that_kills_the_process_ends_and_its_neighbours_live() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/create", &OrderSketch { id: 8, ..order("1.00", 0) });
    rig.order("orders/create", &order("1.00", 0));
    rig.network.kill_on("shop-8");
    rig.run_to_rest();
    let [poison, neighbour, _notice] = rig.tasks().try_into().unwrap();
    assert_eq!((poison.state, poison.reason), (State::Dead, Some(ReasonCode::WORKER_LOST)));
    assert_eq!(neighbour.state, State::Done);
    assert_eq!((poison.losses, rig.deaths), (3, 4));
    let told = &rig.crm.tasks()[0].text;
    assert!(told.contains("программа падала на этой задаче"), "{told}");
}

/// Story: one order meets a mistake in our code. Its task is dead, a person is told, and
/// nothing else notices.
#[test]
fn a_task_that_panics_is_dead_and_a_person_is_told() {
    let mut rig = Rig::new(Setup::default());
    rig.network.panic_on("query=shop-7");
    (MADE.start)(&mut rig);
    rig.order("orders/create", &OrderSketch { id: 8, ..order("1.00", 0) });
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead worker_lost", "deal done", "notice done"]);
    assert_eq!((rig.crm.tasks().len(), rig.deaths), (1, 0));
}

/// B51. Story: the process stands still for longer than a lease, at any moment of its work, and
/// goes on afterwards. Whatever it had looked up before is stale; in the end there is one of each.
#[test]
fn a_process_that_stood_still_does_nothing_twice() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut chance = Random::seeded(seed);
        let mut rig = Rig::new(Setup::default());
        rig.network.jitter(seed);
        (MADE.start)(&mut rig);
        rig.run_for(Duration::from_millis(chance.below(2500)));
        rig.jump(Duration::from_secs(5 + chance.below(600)));
        rig.run_to_rest();
        assert_eq!(rig.told(), ["deal done"]);
        assert_eq!(rig.view().doubts(10).unwrap(), []);
        (MADE.check)(&rig);
    }
}

/// P10. Story: the process dies in the middle of a run that has changed nothing yet. The next
/// one takes it up at once.
#[test]
fn work_in_flight_at_a_death_runs_again_at_once() {
    let mut rig = Rig::new(Setup::default());
    rig.network.cut(1, Cut::After);
    (MADE.start)(&mut rig);
    rig.run_to_rest();
    assert_eq!((rig.deaths, rig.task("deal").attempts.get()), (1, 1));
    assert!(rig.now().since(START) < Duration::from_secs(3), "{}", rig.now());
    (MADE.check)(&rig);
}

/// Story: the process dies after a contact was made and before the answer is seen. How long
/// it was down nobody knows, so the next one waits the whole doubt out before it looks.
#[test]
fn a_restart_waits_out_the_whole_doubt() {
    let mut rig = Rig::new(Setup::default());
    rig.network.cut(4, Cut::After);
    (MADE.start)(&mut rig);
    rig.run_until("it died", |rig| rig.deaths == 1);
    let (died, looks) = (rig.now(), rig.calls(Operation::ContactSearch));
    rig.run_until("it looks", |rig| rig.calls(Operation::ContactSearch) > looks);
    assert!(rig.now().since(died) >= Duration::from_secs(90), "after {:?}", rig.now().since(died));
    rig.run_to_rest();
    (MADE.check)(&rig);
}
