//! Lanes: one after another inside, side by side outside; only a head is ever ready.

use std::time::Duration;

use super::{CRM, Desk, LATEST, MINUTE, ONCE, START, in_lane, kinds, seed};
use crate::domain::{Ending, ReasonCode, State, TaskSeed, Timestamp};
use crate::store::{Meeting, Wish};

fn next_due(desk: &Desk) -> Option<Timestamp> {
    desk.view().next_due(&[CRM.to_owned()], &kinds()).unwrap()
}

#[tokio::test]
async fn tasks_of_a_lane_run_one_after_another_oldest_first() {
    let ends = [Ending::Done, Ending::Superseded(ReasonCode::LEFT_STAGE), Ending::Dead(ReasonCode::VALIDATION)];
    for ending in ends {
        let desk = Desk::new();
        let (first, _) = desk.event(&in_lane(seed("first", ONCE), "deal")).await;
        let (second, _) = desk.event(&in_lane(seed("second", ONCE), "deal")).await;
        let run = desk.lease_one().await;
        assert_eq!(run.id(), first);
        assert_eq!(desk.lease_ids(9).await, [], "the second waits");
        assert_eq!(desk.view().waits_behind(&desk.task(second)).unwrap(), Some(first));
        desk.settle(run, ending.clone()).await;
        assert_eq!(desk.view().waits_behind(&desk.task(second)).unwrap(), None);
        assert_eq!(desk.lease_ids(9).await, [second], "{ending:?}");
    }
}

#[tokio::test]
async fn lanes_run_side_by_side() {
    let desk = Desk::new();
    let (a, _) = desk.event(&seed("a", ONCE)).await;
    let (b, _) = desk.event(&seed("b", ONCE)).await;
    assert_eq!(desk.lease_ids(9).await, [a, b]);
}

#[tokio::test]
async fn a_head_in_retry_blocks_its_lane_and_no_other() {
    let desk = Desk::new();
    let (first, _) = desk.event(&in_lane(seed("first", ONCE), "deal")).await;
    let (second, _) = desk.event(&in_lane(seed("second", ONCE), "deal")).await;
    desk.run_one(Ending::Retry(None)).await;
    assert_eq!(desk.lease_ids(9).await, []);
    let (other, _) = desk.event(&seed("other", ONCE)).await;
    assert_eq!(desk.lease_ids(9).await, [other]);
    assert_eq!(desk.view().waits_behind(&desk.task(second)).unwrap(), Some(first));
    assert_eq!(next_due(&desk), desk.task(first).due, "the second is not looked at");
    desk.clock.advance(2 * MINUTE);
    assert_eq!(desk.lease_ids(9).await, [first]);
}

#[tokio::test]
async fn closing_the_head_lets_the_next_one_go() {
    let desk = Desk::new();
    let (first, _) = desk.event(&in_lane(seed("first", ONCE), "deal")).await;
    let (second, _) = desk.event(&in_lane(seed("second", ONCE), "deal")).await;
    let (third, _) = desk.event(&in_lane(seed("third", ONCE), "deal")).await;
    desk.store.operate(second, Wish::Close, "anna", "").await.unwrap();
    desk.store.operate(first, Wish::Close, "anna", "").await.unwrap();
    assert_eq!(desk.lease_ids(9).await, [third]);
}

/// A deal that works again while a younger task of its lane runs must not run beside it.
#[tokio::test]
async fn a_renewed_task_goes_to_the_end_of_its_lane() {
    let desk = Desk::new();
    let old = in_lane(seed("old", LATEST), "deal");
    let (renewed, _) = desk.event(&old).await;
    desk.run_one(Ending::Done).await;
    let (head, _) = desk.event(&in_lane(seed("head", ONCE), "deal")).await;
    let (middle, _) = desk.event(&in_lane(seed("middle", ONCE), "deal")).await;
    let run = desk.lease_one().await;
    assert_eq!(desk.event(&old).await, (renewed, Meeting::Renewed));
    assert_eq!(desk.lease_ids(9).await, [], "the head runs");
    desk.settle(run, Ending::Done).await;
    assert_eq!(desk.task(head).state, State::Done);
    assert_eq!(desk.run_one(Ending::Done).await, middle);
    assert_eq!(desk.lease_ids(9).await, [renewed]);
}

#[tokio::test]
async fn the_oldest_unfinished_task_is_known_by_its_age() {
    let desk = Desk::new();
    let (first, _) = desk.event(&seed("first", LATEST)).await;
    desk.clock.advance(MINUTE);
    let (second, _) = desk.event(&seed("second", ONCE)).await;
    assert_eq!(desk.view().oldest_unfinished().unwrap(), Some((first, START)));
    desk.run_one(Ending::Done).await;
    assert_eq!(desk.view().oldest_unfinished().unwrap(), Some((second, START.plus(MINUTE))));
    desk.clock.advance(MINUTE);
    desk.event(&seed("first", LATEST)).await;
    desk.run_one(Ending::Done).await;
    assert_eq!(desk.view().oldest_unfinished().unwrap(), Some((first, START.plus(2 * MINUTE))), "its age begins anew");
}

#[tokio::test]
async fn the_next_due_time_leaves_out_what_runs_and_what_is_held() {
    let desk = Desk::new();
    assert_eq!(next_due(&desk), None);
    desk.event(&seed("a", ONCE)).await;
    assert_eq!(next_due(&desk), Some(START));
    let run = desk.lease_one().await;
    assert_eq!(next_due(&desk), None);
    desk.settle(run, Ending::Wait(Duration::from_secs(5))).await;
    assert_eq!(next_due(&desk), Some(START.plus(Duration::from_secs(5))));
    assert_eq!(desk.view().next_due(&["other".to_owned()], &kinds()).unwrap(), None);

    desk.event(&seed("b", ONCE)).await;
    desk.run_one(Ending::Hold).await;
    assert_eq!(next_due(&desk), None);
    assert!(desk.store.resume(CRM, "anna").await.unwrap());
    assert_eq!(next_due(&desk), Some(START));
}

/// B54: a task of a later build's kind waits, and wakes nobody.
#[tokio::test]
async fn a_task_of_an_unknown_kind_is_never_due() {
    let desk = Desk::new();
    let unknown = TaskSeed { kind: "hologram".to_owned(), ..seed("a", ONCE) };
    desk.event(&unknown).await;
    assert_eq!(next_due(&desk), None);
    desk.event(&seed("b", ONCE)).await;
    assert_eq!(next_due(&desk), Some(START));
}
