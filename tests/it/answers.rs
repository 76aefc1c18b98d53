//! Every kind of answer that is no success, and what the task makes of it.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use tambour::client::{Answer, Call, Failure, Method};
use tambour::domain::{ReasonCode, State};
use tambour::sandbox::{Fault, Operation, OrderSketch, Rate, When};
use tambour::store::{TaskView, Wish};

use crate::rig::{Rig, STAGE_CONTRACT, START, Setup};

fn order(id: u64) -> OrderSketch {
    let phone = Some(format!("+7900000{id:04}"));
    OrderSketch { phone, ..OrderSketch::new(id, &format!("#{id}"), "4980.00", START) }
}

/// A rig with one order at the door.
fn with_order(setup: Setup) -> Rig {
    let mut rig = Rig::new(setup);
    rig.order("orders/create", &order(7));
    rig
}

fn answer(status: u16, headers: &[(&str, &str)]) -> Result<Answer, Failure> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ok(Answer { status, headers, body: Bytes::new() })
}

fn is_create(call: &Call, what: &str) -> bool {
    call.method == Method::Post && call.url.ends_with(what)
}

/// `state` of each intent, oldest first.
fn intents(rig: &Rig) -> Vec<&'static str> {
    rig.intents().iter().map(|intent| intent.state).collect()
}

fn assert_one_of_each(rig: &Rig) {
    let counts = rig.crm.counts();
    assert_eq!((counts.contacts, counts.leads, counts.notes), (1, 1, 1));
    assert_eq!(rig.view().doubts(10).unwrap(), []);
}

/// B33. Story: a search answers 204 without a body. Nothing was found, so each object is
/// made, once.
#[test]
fn an_empty_search_means_absent() {
    let mut rig = with_order(Setup::default());
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done"]);
    assert_eq!(rig.task("deal").attempts.get(), 1);
    assert_one_of_each(&rig);
}

/// B33, B75. Story: the answer to a create says nothing, whether the object was made or
/// not. The outcome is unknown: nothing is sent again before the doubt was waited out and
/// the object looked for.
#[test]
fn a_create_without_a_readable_answer_is_looked_for_first() {
    let creates = [
        (Operation::ContactCreate, "contacts"),
        (Operation::LeadCreate, "leads"),
        (Operation::NoteCreate, "leads/50000001/notes"),
    ];
    let faults = [
        Fault::NoContent,
        Fault::LostAnswer,
        Fault::LostRequest,
        Fault::FailAfter(502),
        Fault::FailBefore(500),
        Fault::FailAfter(408),
        Fault::Html(200),
        Fault::Slow(Duration::from_secs(30)),
        Fault::WithholdLastByte,
    ];
    for (operation, path) in creates {
        for fault in faults {
            println!("{fault:?} to {operation}");
            let mut rig = with_order(Setup::default());
            rig.crm.inject(operation, When::Nth(1), fault);
            rig.run_until("the first attempt ended", |rig| rig.task("deal").attempts.get() == 1);
            assert_eq!(intents(&rig).last(), Some(&"unknown"));
            let (calls, since) = (rig.network.log().len(), rig.intents().pop().unwrap().opened_at);
            rig.run_until("it goes on", |rig| rig.network.log().len() > calls);
            assert!(rig.now().since(since) >= Duration::from_secs(90), "the doubt was not waited out");
            rig.run_to_rest();
            let after = rig.network.log().split_off(calls);
            let first = |what: String| after.iter().position(|call| *call == what);
            let (looked, made) = (first(format!("GET /api/v4/{path}")), first(format!("POST /api/v4/{path}")));
            assert!(looked.is_some() && made.is_none_or(|made| looked < Some(made)), "it looks first: {after:?}");
            assert_eq!(rig.told(), ["deal done"]);
            assert_one_of_each(&rig);
        }
    }
}

/// B41. Story: the connection is refused, so nothing was sent. The intent is closed at
/// once, and the next attempt makes the object without a doubt to wait for.
#[test]
fn a_call_that_was_never_sent_leaves_no_doubt() {
    let mut rig = with_order(Setup::default());
    let mut refusals = 1;
    rig.network.intercept(move |call| {
        let refuse = is_create(call, "/contacts") && refusals > 0;
        refusals -= i32::from(refuse);
        refuse.then(|| Err(Failure::NotSent("connection refused".to_owned())))
    });
    rig.run_until("the first attempt ended", |rig| rig.task("deal").attempts.get() == 1);
    assert_eq!(intents(&rig), ["refused"]);
    assert_eq!(rig.view().doubts(10).unwrap(), []);
    rig.run_to_rest();
    assert!(rig.now().since(START) < Duration::from_secs(70), "one pause, no doubt: {}", rig.now());
    assert_one_of_each(&rig);
}

/// B37. Story: 429 with a date, 120 s ahead. Nothing is asked before that date.
#[test]
fn a_retry_after_date_is_waited_for() {
    let mut rig = with_order(Setup::default());
    let at = rig.now().plus(Duration::from_secs(120));
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(at.as_millis().try_into().unwrap()));
    rig.network.intercept(move |_| Some(answer(429, &[("retry-after", &date)])));
    rig.settle();
    let task = rig.task("deal");
    assert_eq!((task.state, task.attempts.get()), (State::Retry, 1));
    let due = task.due.unwrap();
    assert!(due >= at && due.since(at) <= Duration::from_secs(12), "{due}: at most a tenth later");
    rig.network.restore();
    rig.run_for(Duration::from_secs(119));
    assert_eq!(rig.network.log().len(), 1, "nothing leaves before the date");
    rig.run_to_rest();
    assert_one_of_each(&rig);
}

/// B41. Story: a deal reaches the stage and is deleted before the worker looks. A second
/// look, later than any replica lags, is enough: the task is dead, and the responsible
/// person is told, once.
#[test]
fn a_deleted_deal_is_dead_at_the_second_look_and_a_person_is_told() {
    let mut rig = Rig::new(Setup::default());
    let (id, _) = rig.crm.add_lead_by_hand("Окна", 100, None).unwrap();
    let hook = rig.crm.move_lead(id, STAGE_CONTRACT).unwrap();
    rig.crm.delete_lead(id).unwrap();
    rig.hook(hook);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["note dead entity_gone", "notice done"]);
    assert_eq!(rig.task("note").attempts.get(), 2);
    let [told] = rig.crm.tasks().try_into().unwrap();
    assert_eq!((told.lead_id, told.responsible_user_id), (None, 9_000_001));
    assert!(told.text.contains("карточки больше нет") && told.text.contains("tambour retry t1"), "{}", told.text);
    let due_in = told.complete_till - START.as_secs();
    assert!((86_400 + 70..86_400 + 90).contains(&due_in), "a day: {due_in}");
}

/// B41. Story: the deal is deleted between the look and the note.
#[test]
fn a_deal_that_vanishes_under_the_note_is_dead_too() {
    let mut rig = Rig::new(Setup::default());
    let (id, _) = rig.crm.add_lead_by_hand("Окна", 100, None).unwrap();
    let hook = rig.crm.move_lead(id, STAGE_CONTRACT).unwrap();
    rig.hook(hook);
    rig.crm.inject(Operation::NoteCreate, When::Nth(1), Fault::FailBefore(404));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["note dead entity_gone", "notice done"]);
    assert_eq!(intents(&rig)[0], "refused");
    assert_eq!(rig.crm.tasks()[0].lead_id, Some(id));
}

/// B42, B45. Story: the account redirects, or its token is revoked. The target is held
/// with a text that says what to do; not one call more is made, nobody's attempts are
/// spent, and after a person resumes it everything is done in order.
#[test]
fn a_target_that_is_unusable_is_held_until_a_person_resumes_it() {
    for (status, word) in [(301, "redirects"), (302, "redirects"), (307, "redirects"), (308, "redirects")]
        .into_iter()
        .chain([(401, "token"), (402, "paid"), (403, "access")])
    {
        for read in [true, false] {
            println!("HTTP {status}, to a read: {read}");
            let mut rig = with_order(Setup::default());
            rig.network.intercept(move |call| {
                let headers = [("location", "https://elsewhere.example.com/")];
                (read || is_create(call, "/contacts")).then(|| answer(status, &headers))
            });
            rig.settle();
            rig.run_until("the target is held", |rig| !rig.view().holds().unwrap().is_empty());
            let calls = rig.network.log().len();
            rig.order("orders/create", &order(8));
            rig.run_for(Duration::from_hours(5));
            let [hold] = rig.view().holds().unwrap().try_into().unwrap();
            assert!(hold.text.contains(word) && hold.text.contains(&status.to_string()), "{}", hold.text);
            assert_eq!(rig.network.log().len(), calls, "nothing is asked of a held target");
            let waiting: Vec<_> = rig.tasks().iter().map(|task| (task.state, task.attempts.get())).collect();
            assert_eq!(waiting, [(State::New, 0), (State::New, 0)]);
            assert_eq!(rig.view().doubts(10).unwrap(), [], "a refusal is no doubt");

            rig.network.restore();
            assert!(rig.resume());
            rig.run_to_rest();
            assert_eq!(rig.told(), ["deal done", "deal done"]);
            assert_eq!(rig.crm.counts().leads, 2);
        }
    }
}

/// Story: the configuration names a stage, or a field, that the account does not have.
/// The task is dead with the place in the request, and a person is told in their words.
#[test]
fn refused_content_is_dead_with_its_place() {
    let check = |setup: Setup, place: &str| {
        let mut rig = with_order(setup);
        rig.run_to_rest();
        assert_eq!(rig.told(), ["deal dead validation", "notice done"]);
        let task = rig.task("deal");
        assert!(task.text.contains(place), "{}", task.text);
        assert_eq!(intents(&rig)[1], "refused");
        assert_eq!(rig.crm.counts().leads, 0);
        let told = &rig.crm.tasks()[0].text;
        assert!(told.contains("CRM не приняла данные") && told.contains(place), "{told}");
    };
    check(Setup { deal_stage: 61_999_999, ..Setup::default() }, "NotSupportedChoice at status_id");
    let fields = &["TAMBOUR_ID", "TAMBOUR_VERSION"];
    check(Setup { fields, ..Setup::default() }, "NotSupportedChoice at custom_fields_values.1.field_id");
}

/// Story: a dead task's cause is put right, and a person asks for another attempt.
#[test]
fn a_dead_task_is_retried_by_a_person() {
    let fields = &["TAMBOUR_ID", "TAMBOUR_VERSION"];
    let mut rig = with_order(Setup { fields, ..Setup::default() });
    rig.run_to_rest();
    let field = serde_json::json!([{"name": "Сумма", "code": "TAMBOUR_TOTAL", "type": "text"}]);
    rig.ask("POST", "/api/v4/leads/custom_fields", &field);
    let id = rig.task("deal").id;
    rig.operate(id, Wish::Retry);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal done", "notice done"]);
    assert_one_of_each(&rig);
}

/// Story: the same task dies again and again; the person who has the notice already gets
/// no second one.
#[test]
fn one_notice_a_dead_task() {
    let mut rig = with_order(Setup { deal_stage: 61_999_999, ..Setup::default() });
    for attempt in 0..3 {
        rig.order("orders/updated", &OrderSketch { updated_at: START.plus(Duration::from_secs(attempt)), ..order(7) });
        rig.run_to_rest();
        assert_eq!(rig.told(), ["deal dead validation", "notice done"]);
    }
    assert_eq!(rig.crm.tasks().len(), 1);
}

/// Story: the notice itself is refused. It is dead, and no notice tells of a notice.
#[test]
fn no_notice_about_a_notice() {
    let mut rig = with_order(Setup { deal_stage: 61_999_999, ..Setup::default() });
    rig.crm.inject(Operation::TaskCreate, When::Percent(100), Fault::FailBefore(422));
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead validation", "notice dead validation"]);
}

/// Story: the answer to the notice is lost. It is looked for by its marker, and stays one.
#[test]
fn a_notice_whose_answer_was_lost_is_found_again() {
    let mut rig = with_order(Setup { deal_stage: 61_999_999, ..Setup::default() });
    rig.crm.inject(Operation::TaskCreate, When::Nth(1), Fault::LostAnswer);
    rig.run_to_rest();
    assert_eq!(rig.told(), ["deal dead validation", "notice done"]);
    assert_eq!(rig.crm.tasks().len(), 1);
}

/// B51. Story: the account takes four minutes for one answer, twice the length of a lease.
/// The lease is extended meanwhile, so the task runs once.
#[test]
fn a_slow_answer_does_not_cost_the_lease() {
    let mut rig = with_order(Setup { target: r#"timeout = "5m""#, ..Setup::default() });
    rig.crm.inject(Operation::LeadCreate, When::Nth(1), Fault::Slow(Duration::from_mins(4)));
    rig.run_to_rest();
    assert_eq!((rig.task("deal").attempts.get(), intents(&rig)), (1, vec!["applied"; 3]));
    assert_one_of_each(&rig);
}

/// P11. Story: the account is unreachable for an hour while 20 orders wait. Attempts are
/// counted for real calls only, none is dead, and all 20 deals are made afterwards.
#[test]
fn an_hour_without_the_target_kills_nothing() {
    let mut rig = Rig::new(Setup::default());
    for id in 1..=20 {
        rig.order("orders/create", &order(id));
    }
    rig.network.intercept(|_| Some(Err(Failure::NotSent("no route to host".to_owned()))));
    rig.run_for(Duration::from_hours(1));
    let spent: u32 = rig.tasks().iter().map(|task| task.attempts.get()).sum();
    assert_eq!(usize::try_from(spent).unwrap(), rig.network.log().len(), "one attempt a call");
    rig.network.restore();
    rig.run_to_rest();
    assert!(rig.tasks().iter().all(|task| task.state == State::Done));
    assert_eq!(rig.crm.counts().leads, 20);
}

/// B44. Story: the account admits 7 calls a second, and another integration uses 5 of
/// them. Ours backs off to what is left, and every order gets its one deal.
#[test]
fn the_account_is_shared_with_others() {
    let mut rig = Rig::new(Setup::default());
    let faults = tambour::sandbox::Faults {
        rate: Some(Rate { per_second: 7, foreign_per_second: 5 }),
        ..tambour::sandbox::Faults::default()
    };
    rig.crm.set_faults(faults);
    for id in 1..=20 {
        rig.order("orders/create", &order(id));
    }
    rig.run_to_rest();
    assert!(rig.tasks().iter().all(|task: &TaskView| task.state == State::Done));
    let counts = rig.crm.counts();
    assert_eq!((counts.leads, counts.contacts, counts.notes), (20, 20, 20));
    let most = rig.tasks().iter().map(|task| task.attempts.get()).max().unwrap();
    assert!(most < 10, "{most} attempts for one order");
}

/// Story: what an intent keeps beside it: the order it was decided on and the request
/// that was sent, so that a person can see later what was done and why.
#[test]
fn an_intent_keeps_what_it_was_decided_on() {
    let mut rig = with_order(Setup::default());
    rig.run_to_rest();
    let evidence = |nth: usize| -> serde_json::Value {
        let intent = &rig.intents()[nth];
        serde_json::from_slice(&rig.view().evidence(intent.id).unwrap().unwrap()).unwrap()
    };
    let kinds: Vec<String> = rig.intents().into_iter().map(|intent| intent.object_kind).collect();
    assert_eq!(kinds, ["contact", "lead", "note"]);
    assert_eq!(evidence(0)["request"][0]["custom_fields_values"][0]["field_code"], "PHONE");
    let lead = evidence(1);
    assert_eq!((lead["event"].as_u64(), lead["order"]["total"].as_str()), (Some(1), Some("4980.00")));
    assert_eq!(lead["request"][0]["name"], "Заказ #7");
    assert!(evidence(2)["request"].to_string().contains("[tambour:"));
    let lead = &rig.crm.leads()[0];
    assert_eq!(rig.intents()[1].external_id, Some(lead.id.to_string()));
    assert!(rig.view().object_of_external("crm/lead", &lead.id.to_string()).unwrap().is_some());
    assert_eq!(rig.task("deal").reason, None::<ReasonCode>);
}
