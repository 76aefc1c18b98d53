//! A disk that breaks at any write or sync: nothing is promised afterwards, and nothing promised is lost.

use std::sync::Arc;

use futures_util::future::join_all;
use redb::Database;

use super::disk::Disk;
use super::{LATEST, START, agreement, open, seed, shop_command, tools};
use crate::clock::{ManualClock, SystemClock};
use crate::domain::{Ending, EventId, Pauses, Settlement, State, TaskId};
use crate::source::samples;
use crate::store::batch::Batch;
use crate::store::error::Broken;
use crate::store::open::prepare;
use crate::store::place::Place;
use crate::store::writer::{Command, Lane, Writer};
use crate::store::{Error, EventState, Receipt, Settled, Store};

/// What the script was promised before the disk broke.
#[derive(Debug, Default)]
struct Promised {
    events: Vec<EventId>,
    states: Vec<(TaskId, State)>,
}

/// Three deliveries, of which one is leased and settled; stops at the first refusal.
async fn script(store: &Store, promised: &mut Promised) -> Result<(), Error> {
    for id in ["1", "2", "3"] {
        let command = shop_command(samples::signed(id, b"{\"id\":1}"), EventState::Routed, vec![seed(id, LATEST)]);
        let accepted = store.accept(command).await?;
        let Receipt::New { event, tasks } = accepted.receipt() else { panic!("{accepted:?}") };
        promised.events.push(*event);
        promised.states.push((tasks[0].0, State::New));
    }
    // Whether the first is new, running or done is open until its settlement is promised.
    let (id, _) = promised.states.remove(0);
    let task = store.lease(vec![("crm".to_owned(), 1)], vec!["deal".to_owned()], 1).await?.remove(0);
    assert_eq!(task.id(), id);
    if let Settled::Now { state, .. } = store.settle(task, Settlement::new(Ending::Done, "")).await? {
        promised.states.push((id, state));
    }
    Ok(())
}

async fn everything_is_refused(store: &Store) {
    let command = shop_command(samples::signed("late", b"{\"id\":1}"), EventState::Unrouted, Vec::new());
    assert!(matches!(store.accept(command).await, Err(Error::Stopped)));
    assert!(matches!(store.lease(Vec::new(), Vec::new(), 1).await, Err(Error::Stopped)));
    assert!(matches!(store.resume("crm", "anna").await, Err(Error::Stopped)));
    store.close().await;
}

fn all_promised_is_there(disk: &Disk, clock: &Arc<ManualClock>, promised: &Promised, story: &str) {
    let store = open(disk, clock);
    agreement::check(&store);
    let view = store.view().unwrap();
    for event in &promised.events {
        assert!(view.event(*event).unwrap().is_some(), "{event} was acknowledged and is lost: {story}");
        assert_eq!(view.body(*event).unwrap().unwrap(), b"{\"id\":1}", "{story}");
    }
    for (task, state) in &promised.states {
        assert_eq!(view.task(*task).unwrap().unwrap().state, *state, "{task}: {story}");
    }
}

#[tokio::test]
async fn a_disk_that_breaks_anywhere_loses_nothing_that_was_promised() {
    let clock = ManualClock::starting_at(START);
    let mut reached_the_end = false;
    for left in 0.. {
        let disk = Disk::default();
        let store = open(&disk, &clock);
        let pulse = store.pulse();
        disk.break_after(left);
        let mut promised = Promised::default();
        let outcome = script(&store, &mut promised).await;
        if !disk.has_failed() {
            assert!(outcome.is_ok() && !pulse.borrow().failed);
            reached_the_end = true;
        } else {
            assert!(matches!(outcome, Err(Error::Stopped)), "change {left} failed and the answer was {outcome:?}");
            assert!(pulse.borrow().failed, "change {left}");
            everything_is_refused(&store).await;
        }
        drop(store);
        all_promised_is_there(&disk.copy(), &clock, &promised, &format!("all writes kept, change {left} failed"));
        all_promised_is_there(&disk.copy_of_synced(), &clock, &promised, &format!("power cut at change {left}"));
        if reached_the_end {
            break;
        }
    }
    assert!(reached_the_end);
}

/// A mistake of ours inside a batch.
struct Bomb;

impl Command for Bomb {
    type Reply = ();

    fn apply(self, _: &mut Batch<'_>) -> Result<(), Broken> {
        panic!("a mistake of ours")
    }
}

/// Nobody may wait for a writer that is gone, and the process must learn that it is.
#[tokio::test]
async fn a_panic_in_the_writer_stops_the_store_like_a_broken_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), SystemClock::start(), Pauses::default(), Arc::default()).unwrap();
    assert!(matches!(store.inner.writer.submit(Lane::Worker, Bomb).await, Err(Error::Stopped)));
    store.inner.writer.close();
    assert!(store.pulse().borrow().failed);
    everything_is_refused(&store).await;
}

/// Fifty deliveries are under way in the writer's queue when the disk breaks.
#[tokio::test]
async fn the_writers_thread_answers_everybody_when_the_disk_breaks() {
    for left in [0, 5, 40, 100] {
        let (disk, clock) = (Disk::default(), ManualClock::starting_at(START));
        let database = Database::builder().create_with_backend(disk.clone()).unwrap();
        let (engine, opened) = prepare(database, tools(&clock, Place::nowhere()), None).ok().unwrap();
        let database = Arc::clone(&engine.database);
        let store = Store::new(Writer::threaded(engine).unwrap(), database, opened, true);
        let mut pulse = store.pulse();
        disk.break_after(left);

        let mut promised = Promised::default();
        let mut last = None;
        for round in 0..10 {
            let commands = (0..5).map(|id| samples::signed(&format!("{round}-{id}"), b"{\"id\":1}"));
            let commands = commands.map(|raw| store.accept(shop_command(raw, EventState::Unrouted, Vec::new())));
            for answer in join_all(commands).await {
                match answer {
                    Ok(accepted) => {
                        assert!(last.is_none(), "nothing is accepted after a refusal");
                        let Receipt::New { event, .. } = accepted.receipt() else { panic!("{accepted:?}") };
                        promised.events.push(*event);
                    }
                    Err(error) => last = Some(error),
                }
            }
        }
        assert!(matches!(last, Some(Error::Stopped)), "{last:?}");
        assert!(pulse.wait_for(|pulse| pulse.failed).await.is_ok());
        everything_is_refused(&store).await;
        drop(store);
        all_promised_is_there(&disk.copy_of_synced(), &clock, &promised, &format!("thread, change {left}"));
    }
}
