//! The states of one order in any order: the newest wins, and stays.

use std::time::Duration;

use tambour::domain::Timestamp;
use tambour::sandbox::{Fault, Operation, OrderSketch, When};
use tambour::store::Wish;

use crate::rig::{Random, Rig, START, Setup};

/// State `n` of an order: the total and the time of change tell it.
fn version(n: u64) -> OrderSketch {
    OrderSketch {
        updated_at: START.plus(Duration::from_secs(n)),
        phone: Some("+79000000001".to_owned()),
        ..OrderSketch::new(7, "#7", &format!("{n}00.50"), START)
    }
}

/// The version that the deal shows, as the time that stands in it.
fn shown(rig: &Rig) -> Option<String> {
    rig.crm.leads().first().map(|lead| lead.fields["TAMBOUR_VERSION"].clone())
}

fn time_of(n: u64) -> String {
    let at: Timestamp = version(n).updated_at;
    at.to_string().replace(".000Z", "Z")
}

/// B23. Story: the later state comes first and makes the deal; the earlier one comes
/// after it and must not be taken for news.
#[test]
fn an_older_state_that_comes_late_is_superseded() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/updated", &version(5));
    rig.run_to_rest();
    let reads = rig.network.log().len();
    rig.order("orders/create", &version(1));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal superseded older_than_applied"]);
    assert_eq!(rig.network.log()[reads..], ["GET /api/v4/leads/50000001"], "nothing is written");
    assert_eq!(shown(&rig), Some(time_of(5)));
    assert_eq!(rig.crm.leads()[0].price, 501, "kopecks are rounded half up");
}

/// B23. Story: the deal is made from the later state, and the note with the lines is lost
/// on the way. Before it is written again the earlier state comes. The old event must not
/// end the task before its work is whole.
#[test]
fn an_older_state_does_not_cut_off_unfinished_work() {
    let mut rig = Rig::new(Setup::default());
    rig.crm.inject(Operation::NoteCreate, When::Nth(1), Fault::LostRequest);
    rig.order("orders/updated", &version(5));
    rig.run_until("the note is lost", |rig| rig.task("deal").attempts.get() == 1);
    rig.order("orders/create", &version(1));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done"], "the run did the newer event's work too");
    let counts = rig.crm.counts();
    assert_eq!((counts.leads, counts.notes), (1, 1));
    assert_eq!(shown(&rig), Some(time_of(5)));
}

/// Story: the last event of an order was an old one. A person replays the task to hear that
/// all is well, and hears that.
#[test]
fn a_replayed_deal_that_is_right_ends_done() {
    let mut rig = Rig::new(Setup::default());
    rig.order("orders/updated", &version(5));
    rig.run_to_rest();
    rig.order("orders/create", &version(1));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal superseded older_than_applied"]);
    let id = rig.task("deal").id;
    rig.operate(id, Wish::Replay);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done"]);
}

/// B23. Story: eight states of one order come shuffled, some of them twice, while the
/// worker runs in between and the network takes its time. What the deal shows never goes
/// back, and in the end it is the newest state.
#[test]
fn shuffled_states_end_in_the_newest_one() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut chance = Random::seeded(seed);
        let mut rig = Rig::new(Setup::default());
        rig.network.jitter(seed);
        let mut deliveries: Vec<u64> = (1..=8).collect();
        deliveries.extend((0..4).map(|_| 1 + chance.below(8)));
        chance.shuffle(&mut deliveries);
        let mut last = None;
        for n in deliveries {
            // Under the same id it is a repeat, under a new one a second subscription.
            let webhook = format!("{n}-{}", chance.below(2));
            rig.order_as(chance.pick(&["orders/create", "orders/updated"]), &version(n), &webhook, "e");
            rig.run_for(Duration::from_millis(chance.below(3) * chance.below(1500)));
            let now = shown(&rig);
            assert!(now >= last, "from {last:?} to {now:?}");
            last = now;
        }
        rig.run_to_rest();
        assert_eq!(shown(&rig), Some(time_of(8)));
        let lead = &rig.crm.leads()[0];
        assert_eq!((lead.price, lead.fields["TAMBOUR_TOTAL"].as_str()), (801, "800.50"));
        let counts = rig.crm.counts();
        assert_eq!((counts.leads, counts.contacts, counts.notes), (1, 1, 1));
    }
}
