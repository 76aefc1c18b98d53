//! What an event does to the task of its key, cell by cell of the design's table, through real commands.

use std::time::Duration;

use super::{Desk, LATEST, MINUTE, ONCE, START, notice_of, routed_command, seed, stands};
use crate::domain::{Ending, EventId, Mode, ReasonCode, Settlement, State, TaskId, Timestamp};
use crate::source::samples;
use crate::store::{EventState, Granted, Meeting, RoutedTask, Settled, Wish};

/// How a task came to stand where the next event meets it.
#[derive(Debug, Clone, Copy)]
enum Past {
    New,
    Retry,
    Done,
    LeftStage,
    Closed,
    Dead,
    OutcomeUnknown,
}

/// A desk with one task that has this past.
async fn desk_with(past: Past, mode: Mode) -> (Desk, TaskId) {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("1042", mode)).await;
    let ending = match past {
        Past::New => return (desk, id),
        Past::Closed => {
            assert_eq!(desk.store.operate(id, Wish::Close, "anna", "").await.unwrap(), Granted::Yes);
            return (desk, id);
        }
        Past::Retry => Ending::Retry(Some(Duration::from_hours(2))),
        Past::Done => Ending::Done,
        Past::LeftStage => Ending::Superseded(ReasonCode::LEFT_STAGE),
        Past::Dead => Ending::Dead(ReasonCode::VALIDATION),
        Past::OutcomeUnknown => Ending::Dead(ReasonCode::OUTCOME_UNKNOWN),
    };
    desk.run_one(ending).await;
    (desk, id)
}

#[tokio::test]
async fn an_event_meets_an_old_task_by_the_table() {
    use Meeting::{Absorbed, Recorded, Renewed};
    async fn check(past: Past, mode: Mode, meeting: Meeting, state: State) {
        let (desk, id) = desk_with(past, mode).await;
        assert_eq!(desk.event(&seed("1042", mode)).await, (id, meeting), "{past:?} {mode:?}");
        let task = desk.task(id);
        assert_eq!(task.state, state, "{past:?} {mode:?}");
        assert_eq!((task.first_event, task.last_event), (Some(EventId::new(1)), Some(EventId::new(2))));
        if meeting == Renewed {
            assert_eq!(stands(&task), (State::New, 0, None), "{past:?} {mode:?}");
            assert_eq!(task.due, Some(START), "{past:?} {mode:?}");
        }
        let met = desk.view().events_of_task(id).unwrap();
        assert_eq!(met, [(EventId::new(1), Meeting::Made), (EventId::new(2), meeting)]);
    }
    check(Past::New, ONCE, Absorbed, State::New).await;
    check(Past::New, LATEST, Absorbed, State::New).await;
    check(Past::Retry, ONCE, Absorbed, State::Retry).await;
    check(Past::Retry, LATEST, Absorbed, State::Retry).await;
    check(Past::Done, ONCE, Recorded, State::Done).await;
    check(Past::Done, LATEST, Renewed, State::New).await;
    check(Past::LeftStage, ONCE, Renewed, State::New).await;
    check(Past::LeftStage, LATEST, Renewed, State::New).await;
    check(Past::Closed, ONCE, Recorded, State::Superseded).await;
    check(Past::Closed, LATEST, Renewed, State::New).await;
    check(Past::Dead, ONCE, Renewed, State::New).await;
    check(Past::Dead, LATEST, Renewed, State::New).await;
    check(Past::OutcomeUnknown, ONCE, Recorded, State::Dead).await;
    check(Past::OutcomeUnknown, LATEST, Recorded, State::Dead).await;
}

#[tokio::test]
async fn an_event_that_revives_a_dead_task_closes_its_letter() {
    let (desk, id) = desk_with(Past::Dead, LATEST).await;
    assert_eq!(desk.count("dead/validation"), 1);
    desk.event(&seed("1042", LATEST)).await;
    assert_eq!(desk.task(id).text, "overtaken by event e2");
    assert_eq!(desk.count("dead/validation"), 0);
}

/// An event leaves a waiting task waiting for at most one first pause, unless its target is down.
#[tokio::test]
async fn an_event_makes_a_waiting_task_due_earlier_and_never_later() {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("1042", LATEST)).await;
    desk.run_one(Ending::Retry(None)).await;
    desk.clock.advance(2 * MINUTE);
    desk.run_one(Ending::Retry(None)).await;
    let now = START.plus(2 * MINUTE);
    assert!(desk.task(id).due.unwrap() >= now.plus(5 * MINUTE));
    desk.event(&seed("1042", LATEST)).await;
    assert_eq!(desk.task(id).due, Some(now.plus(MINUTE)));
    desk.clock.advance(MINUTE / 2);
    desk.event(&seed("1042", LATEST)).await;
    assert_eq!(desk.task(id).due, Some(now.plus(MINUTE)), "never later");
}

/// B37: a target that asked for a pause is not called sooner because an event came.
#[tokio::test]
async fn an_event_shortens_no_pause_that_the_target_asked_for() {
    let (desk, id) = desk_with(Past::Retry, LATEST).await;
    let asked = desk.task(id).due;
    assert!(asked >= Some(START.plus(Duration::from_hours(2))));
    desk.event(&seed("1042", LATEST)).await;
    assert_eq!(desk.task(id).due, asked);
}

#[tokio::test]
async fn an_event_changes_no_due_time_while_the_target_is_down() {
    let (desk, id) = desk_with(Past::Retry, LATEST).await;
    let due = desk.task(id).due;
    desk.event(&seed("other", LATEST)).await;
    desk.run_one(Ending::Hold).await;
    desk.event(&seed("1042", LATEST)).await;
    assert_eq!(desk.task(id).due, due);
}

#[tokio::test]
async fn an_event_during_the_run_is_remembered_until_its_end() {
    async fn check(mode: Mode, ending: Ending, state: State) {
        let (desk, id) = desk_with(Past::New, mode).await;
        let run = desk.lease_one().await;
        assert_eq!(desk.event(&seed("1042", mode)).await, (id, Meeting::Remembered));
        let settlement = Settlement {
            notice: Some(notice_of("1042")),
            ..Settlement::new(ending.clone(), "the deal is on another stage")
        };
        let settled = desk.store.settle(run, settlement).await.unwrap();
        assert!(
            matches!(settled, Settled::Now { state: found, .. } if found == state),
            "{mode:?} {ending:?} {settled:?}"
        );
        if state == State::New {
            assert_eq!(stands(&desk.task(id)), (State::New, 0, None), "{mode:?} {ending:?}");
            assert_eq!(desk.lease_ids(9).await, [id], "it runs again at once and nobody is told: {mode:?} {ending:?}");
        }
    }
    let left_stage = || Ending::Superseded(ReasonCode::LEFT_STAGE);
    check(ONCE, Ending::Done, State::Done).await;
    check(LATEST, Ending::Done, State::New).await;
    check(ONCE, left_stage(), State::New).await;
    check(LATEST, left_stage(), State::New).await;
    check(ONCE, Ending::Dead(ReasonCode::VALIDATION), State::New).await;
    check(LATEST, Ending::Dead(ReasonCode::VALIDATION), State::New).await;
    check(LATEST, Ending::Dead(ReasonCode::AMBIGUOUS), State::Dead).await;
    check(LATEST, Ending::Retry(None), State::Retry).await;
    check(LATEST, Ending::Lost, State::New).await;
}

#[tokio::test]
async fn done_spends_the_key_of_a_once_task_for_good() {
    let (mut desk, id) = desk_with(Past::Done, ONCE).await;
    assert!(desk.is_spent(&seed("1042", ONCE)));
    assert_eq!(desk.store.operate(id, Wish::Replay, "anna", "").await.unwrap(), Granted::Yes);
    desk.run_one(Ending::Dead(ReasonCode::VALIDATION)).await;
    desk.kill();
    assert!(desk.is_spent(&seed("1042", ONCE)), "a failed replay does not bring the key back");
    assert_eq!(desk.event(&seed("1042", ONCE)).await, (id, Meeting::Recorded));

    let (desk, _) = desk_with(Past::Done, LATEST).await;
    assert!(!desk.is_spent(&seed("1042", LATEST)));
}

/// A worker must know the newest change that it was told of: a read older than it lags.
#[tokio::test]
async fn a_lease_carries_the_newest_event_and_the_newest_source_time() {
    let desk = Desk::new();
    for (id, at) in [("1", 20), ("2", 50), ("3", 30)] {
        let task = RoutedTask { seed: seed("1042", LATEST), source_time: Some(Timestamp::from_secs(at)) };
        let command = routed_command(samples::signed(id, b"{\"id\":1}"), EventState::Routed, vec![task]);
        desk.store.accept(command).await.unwrap();
    }
    let leased = desk.lease_one().await;
    assert_eq!(leased.newest_source_time(), Some(Timestamp::from_secs(50)));
    assert_eq!((leased.last_event(), leased.seed()), (Some(EventId::new(3)), &seed("1042", LATEST)));
    assert_eq!((leased.parent(), leased.created_at(), leased.attempts().get()), (None, START, 0));
}

/// One amoCRM delivery may name a deal twice; it made the task all the same.
#[tokio::test]
async fn two_items_of_one_event_keep_how_the_first_met_the_task() {
    let desk = Desk::new();
    let (event, met) = desk.event_for(vec![seed("1042", LATEST), seed("1042", LATEST)]).await;
    let id = met[0].0;
    assert_eq!(met, [(id, Meeting::Made), (id, Meeting::Absorbed)]);
    assert_eq!(desk.view().events_of_task(id).unwrap(), [(event, Meeting::Made)]);
}
