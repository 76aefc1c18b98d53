//! What a person may do to a task, what is refused, and what the audit trail says.

use super::{Desk, LATEST, MINUTE, ONCE, START, seed, stands};
use crate::domain::{Ending, Mode, NotNow, ReasonCode, State, TaskId};
use crate::store::{Granted, Meeting, Wish};

async fn wish(desk: &Desk, task: TaskId, wish: Wish) -> Granted {
    desk.store.operate(task, wish, "anna", "the customer called").await.unwrap()
}

/// A desk with one task that a run brought to this state.
async fn desk_with(mode: Mode, ending: Option<Ending>) -> (Desk, TaskId) {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("1042", mode)).await;
    if let Some(ending) = ending {
        desk.run_one(ending).await;
    }
    (desk, id)
}

#[tokio::test]
async fn retry_makes_a_waiting_task_due_and_a_dead_one_work_again() {
    let (desk, id) = desk_with(ONCE, Some(Ending::Retry(None))).await;
    assert_eq!(wish(&desk, id, Wish::Retry).await, Granted::Yes);
    assert_eq!(stands(&desk.task(id)), (State::Retry, 1, None));
    assert_eq!(desk.lease_ids(1).await, [id]);

    for reason in [ReasonCode::VALIDATION, ReasonCode::OUTCOME_UNKNOWN] {
        let (desk, id) = desk_with(ONCE, Some(Ending::Dead(reason))).await;
        assert_eq!(wish(&desk, id, Wish::Retry).await, Granted::Yes);
        assert_eq!(stands(&desk.task(id)), (State::New, 0, None));
    }
}

#[tokio::test]
async fn close_ends_a_task_and_spends_a_once_key() {
    let endings = [None, Some(Ending::Retry(None)), Some(Ending::Dead(ReasonCode::AMBIGUOUS))];
    for ending in endings {
        for (mode, after_event) in [(ONCE, Meeting::Recorded), (LATEST, Meeting::Renewed)] {
            let (desk, id) = desk_with(mode, ending.clone()).await;
            assert_eq!(wish(&desk, id, Wish::Close).await, Granted::Yes);
            let task = desk.task(id);
            assert_eq!((task.state, task.reason.as_ref()), (State::Superseded, Some(&ReasonCode::CLOSED)));
            assert_eq!(task.text, "closed by anna: the customer called");
            assert_eq!(desk.is_spent(&seed("1042", mode)), mode == ONCE);
            assert_eq!(desk.event(&seed("1042", mode)).await.1, after_event, "{ending:?} {mode:?}");
        }
    }
}

#[tokio::test]
async fn closing_a_superseded_task_spends_its_key() {
    let gone = || Some(Ending::Superseded(ReasonCode::LEFT_STAGE));
    let (desk, id) = desk_with(ONCE, gone()).await;
    assert_eq!(wish(&desk, id, Wish::Close).await, Granted::Yes);
    assert_eq!(stands(&desk.task(id)), (State::Superseded, 1, Some("left_stage")));
    assert_eq!(desk.event(&seed("1042", ONCE)).await, (id, Meeting::Recorded));

    let (desk, id) = desk_with(LATEST, gone()).await;
    assert_eq!(wish(&desk, id, Wish::Close).await, Granted::No(NotNow::Ended));
}

/// B18: each replay is a run of its own, whatever came of the ones before.
#[tokio::test]
async fn replay_runs_a_task_again_from_any_state() {
    let endings = [
        None,
        Some(Ending::Retry(None)),
        Some(Ending::Done),
        Some(Ending::Superseded(ReasonCode::LEFT_STAGE)),
        Some(Ending::Dead(ReasonCode::WORKER_LOST)),
    ];
    for ending in endings {
        let (desk, id) = desk_with(ONCE, ending.clone()).await;
        for replays in 1..=3 {
            assert_eq!(wish(&desk, id, Wish::Replay).await, Granted::Yes);
            assert_eq!((stands(&desk.task(id)), desk.task(id).replays), ((State::New, 0, None), replays), "{ending:?}");
            assert_eq!(desk.run_one(Ending::Done).await, id);
        }
    }
}

#[tokio::test]
async fn a_replay_during_a_run_is_remembered_and_runs_after_any_end() {
    let endings = [Ending::Done, Ending::Retry(None), Ending::Hold, Ending::Dead(ReasonCode::OUTCOME_UNKNOWN)];
    for ending in endings {
        let (desk, id) = desk_with(ONCE, None).await;
        let run = desk.lease_one().await;
        assert_eq!(wish(&desk, id, Wish::Replay).await, Granted::Yes);
        assert_eq!(desk.task(id).state, State::Running);
        desk.settle(run, ending.clone()).await;
        assert_eq!(stands(&desk.task(id)), (State::New, 0, None), "{ending:?}");
        assert_eq!(desk.is_spent(&seed("1042", ONCE)), ending == Ending::Done);
    }
}

#[tokio::test]
async fn what_is_refused_changes_nothing_and_leaves_no_row() {
    let (desk, id) = desk_with(ONCE, Some(Ending::Done)).await;
    assert_eq!(wish(&desk, id, Wish::Retry).await, Granted::No(NotNow::Ended));
    assert_eq!(wish(&desk, id, Wish::Close).await, Granted::No(NotNow::Ended));
    assert_eq!(wish(&desk, TaskId::new(99), Wish::Replay).await, Granted::NoSuchTask);
    assert_eq!(stands(&desk.task(id)), (State::Done, 1, None));

    let (running, _) = desk.event(&seed("1043", ONCE)).await;
    let run = desk.lease_one().await;
    let before = desk.task(running);
    assert_eq!(wish(&desk, running, Wish::Retry).await, Granted::No(NotNow::Running));
    assert_eq!(wish(&desk, running, Wish::Close).await, Granted::No(NotNow::Running));
    assert_eq!(desk.task(running), before);
    assert_eq!(desk.view().audit(9).unwrap(), []);
    desk.settle(run, Ending::Done).await;
}

#[tokio::test]
async fn the_audit_trail_says_who_did_what_when_and_why() {
    let (desk, id) = desk_with(ONCE, None).await;
    wish(&desk, id, Wish::Replay).await;
    desk.run_one(Ending::Hold).await;
    desk.clock.advance(MINUTE);
    desk.store.resume(super::CRM, "boris").await.unwrap();
    desk.store.operate(id, Wish::Close, "boris", "").await.unwrap();
    let rows = desk.view().audit(9).unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.who.as_str(), row.action.as_str(), row.what.as_str())).collect();
    let expected =
        [("boris", "close", "t1"), ("boris", "resume", "crm"), ("anna", "replay", "t1: the customer called")];
    assert_eq!(told, expected, "the newest first");
    assert_eq!((rows[0].at, rows[2].at), (START.plus(MINUTE), START));
    assert_eq!(desk.view().audit(1).unwrap().len(), 1);
}

#[tokio::test]
async fn a_route_went_live_when_it_was_first_seen() {
    let mut desk = Desk::new();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(desk.store.routes_live(names(&["a"])).await.unwrap(), [START]);
    desk.clock.advance(MINUTE);
    desk.restart().await;
    assert_eq!(desk.store.routes_live(names(&["b", "a"])).await.unwrap(), [START.plus(MINUTE), START]);
}
