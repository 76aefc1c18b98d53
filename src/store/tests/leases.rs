//! Leases and settlements: who may run what, and what a run leaves behind.

use std::time::Duration;

use super::{CRM, Desk, LATEST, MINUTE, ONCE, START, notice_of, seed, stands};
use crate::domain::{ATTEMPTS_MAX, Ending, ReasonCode, Settlement, State, TaskSeed};
use crate::store::{LEASE, LeasedTask, Settled};

fn of_target(order: &str, target: &str) -> TaskSeed {
    TaskSeed { target: target.to_owned(), ..seed(order, ONCE) }
}

fn deals() -> Vec<String> {
    vec!["deal".to_owned()]
}

#[tokio::test]
async fn targets_have_slots_of_their_own_and_all_share_a_limit() {
    let desk = Desk::new();
    for order in ["a1", "a2", "a3"] {
        desk.event(&of_target(order, "a")).await;
    }
    desk.event(&of_target("b1", "b")).await;
    let slots = |a, b| vec![("a".to_owned(), a), ("b".to_owned(), b)];
    let about = |tasks: &[LeasedTask]| tasks.iter().map(|task| task.seed().entity.clone()).collect::<Vec<_>>();

    assert!(desk.store.lease(slots(0, 0), deals(), 9).await.unwrap().is_empty());
    assert!(desk.store.lease(Vec::new(), deals(), 9).await.unwrap().is_empty());
    assert_eq!(about(&desk.store.lease(slots(2, 2), deals(), 1).await.unwrap()), ["a1"]);
    assert_eq!(about(&desk.store.lease(slots(1, 2), deals(), 9).await.unwrap()), ["a2", "b1"]);
    assert_eq!(about(&desk.store.lease(slots(2, 2), deals(), 9).await.unwrap()), ["a3"]);
}

/// B54: a file of a later build holds kinds that this one does not know; they stay.
#[tokio::test]
async fn tasks_of_an_unknown_kind_wait() {
    let desk = Desk::new();
    let (unknown, _) = desk.event(&TaskSeed { kind: "contract".to_owned(), ..seed("a", ONCE) }).await;
    let (known, _) = desk.event(&seed("b", ONCE)).await;
    assert_eq!(desk.lease_ids(1).await, [known]);
    assert_eq!(stands(&desk.task(unknown)), (State::New, 0, None));
}

#[tokio::test]
async fn a_lease_is_seen_while_it_lasts() {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    let run = desk.lease_one().await;
    let task = desk.task(id);
    assert_eq!((task.state, task.due, task.leased_until), (State::Running, None, Some(START.plus(LEASE))));
    desk.clock.advance(MINUTE);
    desk.store.extend(vec![run.ticket()]).await.unwrap();
    assert_eq!(desk.task(id).leased_until, Some(START.plus(MINUTE + LEASE)));
    assert_eq!(desk.settle(run, Ending::Done).await, Settled::Now { state: State::Done, due: None });
    assert_eq!(desk.task(id).leased_until, None);
}

/// B51: the holder of an old lease settles nothing, extends nothing, and starts no follow-ups.
#[tokio::test]
async fn a_stale_token_changes_nothing() {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("a", LATEST)).await;
    let old = desk.lease_one().await.ticket();
    let lost = Settlement::new(Ending::Lost, "");
    desk.store.settle_ticket(old, lost).await.unwrap();
    let present = desk.lease_one().await;
    let before = desk.task(id);

    desk.clock.advance(MINUTE);
    desk.store.extend(vec![old]).await.unwrap();
    let settlement = Settlement { follow_ups: vec![seed("follows", ONCE)], ..Settlement::new(Ending::Done, "late") };
    assert_eq!(desk.store.settle_ticket(old, settlement).await.unwrap(), Settled::StaleLease);
    assert_eq!(desk.task(id), before);
    assert_eq!(desk.view().tasks(None, 9, &|_| true).unwrap().len(), 1);

    let ticket = present.ticket();
    desk.settle(present, Ending::Done).await;
    let again = Settlement::new(Ending::Dead(ReasonCode::VALIDATION), "");
    assert_eq!(desk.store.settle_ticket(ticket, again).await.unwrap(), Settled::StaleLease, "nothing settles twice");
}

#[tokio::test]
async fn follow_ups_are_made_in_the_commit_of_the_settlement() {
    let desk = Desk::new();
    let (parent, _) = desk.event(&seed("a", LATEST)).await;
    let follow_ups = || vec![seed("note", ONCE), seed("contract", ONCE)];
    let settlement =
        || Settlement { follow_ups: follow_ups(), notice: Some(notice_of("a")), ..Settlement::new(Ending::Done, "") };
    desk.store.settle(desk.lease_one().await, settlement()).await.unwrap();
    let made = desk.lease(9).await;
    let entities: Vec<_> = made.iter().map(|task| task.seed().entity.as_str()).collect();
    assert_eq!(entities, ["note", "contract"], "no notice: the task is not dead");
    assert!(made.iter().all(|task| task.parent() == Some(parent) && task.last_event().is_none()));
    for task in made {
        desk.settle(task, Ending::Done).await;
    }

    desk.event(&seed("a", LATEST)).await;
    desk.store.settle(desk.lease_one().await, settlement()).await.unwrap();
    assert_eq!(desk.lease_ids(9).await, [], "both keys are spent");
}

#[tokio::test]
async fn a_dead_task_makes_its_notice_once() {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    let dead = || Settlement {
        notice: Some(notice_of("a")),
        ..Settlement::new(Ending::Dead(ReasonCode::VALIDATION), "the field `price` is missing")
    };
    desk.store.settle(desk.lease_one().await, dead()).await.unwrap();
    assert_eq!(stands(&desk.task(id)), (State::Dead, 1, Some("validation")));
    assert_eq!(desk.task(id).text, "the field `price` is missing");
    assert_eq!(desk.count("dead/validation"), 1);

    let notice = desk.lease_one().await;
    assert_eq!((notice.seed().kind.as_str(), notice.parent()), ("notice", Some(id)));
    desk.settle(notice, Ending::Dead(ReasonCode::VALIDATION)).await;
    assert_eq!(desk.lease_ids(9).await, [], "whether a notice has a notice is for its maker to say");
}

#[tokio::test]
async fn spent_attempts_end_a_task_with_a_notice() {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    for attempt in 1..=ATTEMPTS_MAX {
        let settlement = Settlement { notice: Some(notice_of("a")), ..Settlement::new(Ending::Retry(None), "busy") };
        let settled = desk.store.settle(desk.lease_one().await, settlement).await.unwrap();
        assert_eq!(desk.task(id).attempts.get(), attempt);
        if let Settled::Now { due: Some(due), .. } = settled {
            assert!(attempt < ATTEMPTS_MAX);
            desk.clock.advance(due.since(crate::clock::Clock::now(&*desk.clock)));
        }
    }
    assert_eq!(stands(&desk.task(id)), (State::Dead, ATTEMPTS_MAX, Some("attempts_spent")));
    assert_eq!(desk.lease_one().await.seed(), &notice_of("a"));
}

#[tokio::test]
async fn pauses_grow_and_a_wait_counts_as_no_attempt() {
    let desk = Desk::new();
    let (id, _) = desk.event(&seed("a", ONCE)).await;
    let now = || crate::clock::Clock::now(&*desk.clock);
    for (minutes, attempts) in [(1, 1), (5, 2), (15, 3)] {
        desk.run_one(Ending::Retry(None)).await;
        assert_eq!(stands(&desk.task(id)), (State::Retry, attempts, None));
        let pause = desk.task(id).due.unwrap().since(now());
        assert!(pause >= minutes * MINUTE && pause <= minutes * MINUTE * 11 / 10, "{pause:?}");
        desk.clock.advance(pause);
    }
    desk.run_one(Ending::Wait(Duration::from_secs(90))).await;
    assert_eq!(stands(&desk.task(id)), (State::Retry, 3, None));
    assert_eq!(desk.task(id).due, Some(now().plus(Duration::from_secs(90))));
}

/// An unpaid account or a revoked token pauses the target; its tasks stay as they are.
#[tokio::test]
async fn hold_pauses_the_target_and_burns_no_attempt() {
    let desk = Desk::new();
    let (new, _) = desk.event(&seed("a", ONCE)).await;
    let (retried, _) = desk.event(&seed("b", ONCE)).await;
    let (elsewhere, _) = desk.event(&of_target("c", "other")).await;
    let [first, second] = <[LeasedTask; 2]>::try_from(desk.lease(2).await).unwrap();
    desk.settle(second, Ending::Retry(None)).await;
    desk.store.settle(first, Settlement::new(Ending::Hold, "the token is revoked")).await.unwrap();
    assert_eq!(stands(&desk.task(new)), (State::New, 0, None));

    desk.clock.advance(5 * MINUTE);
    let slots = || vec![(CRM.to_owned(), 9), ("other".to_owned(), 9)];
    let leased = desk.store.lease(slots(), deals(), 9).await.unwrap();
    assert_eq!(leased.iter().map(LeasedTask::id).collect::<Vec<_>>(), [elsewhere]);
    let holds = desk.view().holds().unwrap();
    assert_eq!(
        (holds[0].target.as_str(), holds[0].since, holds[0].text.as_str()),
        (CRM, START, "the token is revoked")
    );

    assert!(desk.store.resume(CRM, "anna").await.unwrap());
    assert!(!desk.store.resume(CRM, "anna").await.unwrap(), "it is held no more");
    assert_eq!(desk.view().holds().unwrap(), []);
    let run = desk.lease(9).await;
    assert_eq!(run.iter().map(LeasedTask::id).collect::<Vec<_>>(), [new, retried]);
    for task in run {
        desk.store.settle(task, Settlement::new(Ending::Hold, "again")).await.unwrap();
    }
    assert_eq!(stands(&desk.task(retried)), (State::Retry, 1, None), "back to where it was leased from");
}
