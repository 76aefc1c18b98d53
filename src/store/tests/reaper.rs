//! Unclean stops: what ran is suspect and runs alone; poison ends, its neighbours live.

use super::{CRM, Desk, LATEST, MINUTE, ONCE, notice_of, seed, stands};
use crate::domain::{Ending, Settlement, State, TaskSeed};
use crate::store::{LeasedTask, Settled, Wish};

/// The process dies again and again with only this task running.
async fn die_alone(desk: &mut Desk, times: usize) {
    for _ in 0..times {
        assert_eq!(desk.lease(9).await.len(), 1);
        desk.kill();
        desk.reap().await;
    }
}

/// B48, P10: what a dead process left running is ready as soon as the next one starts.
#[tokio::test]
async fn leases_of_a_dead_process_are_void_and_cost_no_attempt() {
    let mut desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    let old = desk.lease_one().await.ticket();
    assert_eq!(desk.reap().await, 0, "a lease of this process stands");
    desk.kill();
    assert_eq!((desk.store.opened().process, desk.store.opened().clean), (2, false));
    assert_eq!(desk.reap().await, 1);
    assert_eq!(stands(&desk.task(id)), (State::New, 0, None));
    assert_eq!(desk.reap().await, 0);

    let settlement = Settlement::new(Ending::Done, "");
    assert_eq!(desk.store.settle_ticket(old, settlement).await.unwrap(), Settled::StaleLease);
    assert_eq!(desk.lease_ids(9).await, [id]);
}

#[tokio::test]
async fn an_orderly_stop_leaves_nothing_to_reap() {
    let mut desk = Desk::new();
    desk.event(&seed("a", ONCE)).await;
    desk.run_one(Ending::Lost).await;
    desk.restart().await;
    assert!(desk.store.opened().clean);
    assert_eq!(desk.reap().await, 0);
    assert_eq!(desk.lease(9).await.len(), 1);
}

#[tokio::test]
async fn suspects_run_one_at_a_time_and_then_the_rest_together() {
    let mut desk = Desk::new();
    let (a, _) = desk.event(&seed("a", ONCE)).await;
    let (b, _) = desk.event(&seed("b", ONCE)).await;
    assert_eq!(desk.lease_ids(9).await, [a, b]);
    desk.kill();
    assert_eq!(desk.reap().await, 2);
    let (c, _) = desk.event(&seed("c", ONCE)).await;
    let (d, _) = desk.event(&seed("d", ONCE)).await;
    for suspect in [a, b] {
        let run = desk.lease(9).await;
        assert_eq!(run.iter().map(LeasedTask::id).collect::<Vec<_>>(), [suspect]);
        assert_eq!(desk.lease_ids(9).await, [], "alone");
        for task in run {
            desk.settle(task, Ending::Done).await;
        }
    }
    assert_eq!(desk.lease_ids(9).await, [c, d]);
}

/// B50: a payload that kills the process must not do so for ever.
#[tokio::test]
async fn a_task_that_kills_the_process_three_times_alone_is_dead_and_told_of() {
    let mut desk = Desk::new();
    let (poison, _) = desk.event(&seed("poison", ONCE)).await;
    let (neighbour, _) = desk.event(&seed("neighbour", ONCE)).await;
    desk.lease(9).await;
    desk.kill();
    desk.reap().await;
    assert_eq!(desk.task(poison).losses, 0, "either may have done it");
    for losses in 1..=2 {
        die_alone(&mut desk, 1).await;
        assert_eq!((desk.task(poison).losses, desk.task(poison).state), (losses, State::New));
    }
    die_alone(&mut desk, 1).await;
    assert_eq!(stands(&desk.task(poison)), (State::Dead, 1, Some("worker_lost")));
    assert_eq!(desk.task(poison).text, "the process died 3 times while this task ran alone");
    assert_eq!(desk.task(neighbour).losses, 0);

    let next = desk.lease_one().await;
    assert_eq!(next.id(), neighbour, "it was running too, so it runs alone");
    desk.settle(next, Ending::Done).await;
    assert_eq!(desk.lease_one().await.seed(), &notice_of("poison"));
}

#[tokio::test]
async fn the_first_death_is_no_loss_even_for_a_task_that_was_alone() {
    let mut desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    die_alone(&mut desk, 1).await;
    assert_eq!(desk.task(id).losses, 0, "a power cut is nobody's fault");
    die_alone(&mut desk, 1).await;
    assert_eq!(desk.task(id).losses, 1);
}

#[tokio::test]
async fn a_run_that_ends_clears_suspicion_and_losses() {
    let mut desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    let (other, _) = desk.event(&seed("b", ONCE)).await;
    let first = desk.lease(1).await;
    assert_eq!(first[0].id(), id);
    desk.kill();
    desk.reap().await;
    die_alone(&mut desk, 2).await;
    assert_eq!(desk.task(id).losses, 2);
    desk.run_one(Ending::Retry(None)).await;
    assert_eq!(desk.task(id).losses, 0);
    desk.clock.advance(2 * MINUTE);
    assert_eq!(desk.lease_ids(9).await, [other, id], "it runs beside others again");
}

/// The backlog is older than the suspects, which are due when they are reaped, and has more heads than slots.
#[tokio::test]
async fn suspects_come_before_an_older_backlog() {
    let mut desk = Desk::new();
    let (suspect, _) = desk.event(&seed("a", ONCE)).await;
    assert_eq!(desk.lease_ids(1).await, [suspect]);
    let (waiting, _) = desk.event(&seed("b", ONCE)).await;
    desk.event(&seed("c", ONCE)).await;
    desk.clock.advance(MINUTE);
    desk.kill();
    desk.reap().await;
    assert_eq!(desk.store.lease(vec![(CRM.to_owned(), 1)], vec!["deal".to_owned()], 0).await.unwrap().len(), 0);
    let run = desk.lease(1).await;
    assert_eq!(run.iter().map(LeasedTask::id).collect::<Vec<_>>(), [suspect]);
    assert_eq!(desk.lease_ids(9).await, [], "alone");
    for task in run {
        desk.settle(task, Ending::Done).await;
    }
    assert_eq!(desk.lease_ids(1).await, [waiting]);
}

/// A suspect that cannot start now holds nobody up.
#[tokio::test]
async fn a_suspect_that_must_wait_lets_the_others_run() {
    let mut desk = Desk::new();
    let (suspect, _) = desk.event(&seed("a", ONCE)).await;
    let (other, _) = desk.event(&seed("b", ONCE)).await;
    desk.lease(2).await;
    desk.kill();
    desk.reap().await;
    desk.run_one(Ending::Hold).await;
    desk.kill();
    let (elsewhere, _) = desk.event(&TaskSeed { target: "other".to_owned(), ..seed("c", ONCE) }).await;
    let slots = || vec![(CRM.to_owned(), 9), ("other".to_owned(), 9)];
    let leased = desk.store.lease(slots(), vec!["deal".to_owned()], 9).await.unwrap();
    assert_eq!(leased.iter().map(LeasedTask::id).collect::<Vec<_>>(), [elsewhere], "its target is held");

    desk.store.resume(CRM, "anna").await.unwrap();
    assert_eq!(desk.lease_ids(9).await, [], "it starts only when nothing runs");
    for task in leased {
        desk.settle(task, Ending::Done).await;
    }
    assert_eq!(desk.lease_ids(9).await, [suspect], "a hold has cleared nothing");
    assert_eq!(desk.task(other).state, State::New);
}

/// A run that the dispatcher aborts is lost, but the process outlived it: were it
/// still suspect, it would run alone again and again and nothing else ever would.
#[tokio::test]
async fn a_suspect_whose_run_is_aborted_does_not_block_the_others() {
    let mut desk = Desk::new();
    desk.event(&seed("hangs", ONCE)).await;
    desk.lease(1).await;
    desk.kill();
    desk.reap().await;
    desk.run_one(Ending::Lost).await;
    desk.event(&seed("other", ONCE)).await;
    assert_eq!(desk.lease(9).await.len(), 2);
}

/// What a person closed is suspect no more, even if it works again one day.
#[tokio::test]
async fn an_ended_task_is_no_suspect() {
    let mut desk = Desk::new();
    let (id, _) = desk.event(&seed("a", LATEST)).await;
    let (other, _) = desk.event(&seed("b", LATEST)).await;
    desk.lease(9).await;
    desk.kill();
    desk.reap().await;
    for task in [id, other] {
        desk.store.operate(task, Wish::Close, "anna", "").await.unwrap();
    }
    desk.event(&seed("a", LATEST)).await;
    desk.event(&seed("b", LATEST)).await;
    assert_eq!(desk.lease_ids(9).await, [id, other]);
}

/// A person asked for one more run while the task killed the process for the last time.
#[tokio::test]
async fn a_remembered_replay_of_poison_runs_alone_and_nobody_is_told_yet() {
    let mut desk = Desk::new();
    let (poison, _) = desk.event(&seed("poison", ONCE)).await;
    die_alone(&mut desk, 3).await;
    let run = desk.lease(9).await;
    desk.store.operate(poison, Wish::Replay, "anna", "").await.unwrap();
    drop(run);
    desk.kill();
    desk.reap().await;
    assert_eq!(stands(&desk.task(poison)), (State::New, 0, None));
    let (other, _) = desk.event(&seed("other", ONCE)).await;
    assert_eq!(desk.lease_ids(9).await, [poison], "alone, and there is no notice");
    desk.kill();
    desk.reap().await;
    assert_eq!(stands(&desk.task(poison)), (State::Dead, 1, Some("worker_lost")));
    assert_eq!(desk.lease_ids(1).await, [other]);
}

/// B50: poison that dies after its intent meets the doubt first, each time it is
/// run again; that wait must not make it innocent.
#[tokio::test]
async fn a_wait_for_a_doubt_clears_no_suspicion() {
    let mut desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    for death in 1..=4 {
        assert_eq!(desk.lease_ids(9).await, [id], "death {death}");
        desk.kill();
        desk.reap().await;
        if desk.task(id).state == State::Dead {
            assert_eq!(death, 4, "the first death only makes a suspect, three more are losses");
            return;
        }
        desk.run_one(Ending::Wait(MINUTE)).await;
        desk.clock.advance(MINUTE);
    }
    panic!("never dead: {:?}", desk.task(id));
}
