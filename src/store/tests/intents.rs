//! Intents and outcomes: one change outside at a time, and no knowledge thrown away.

use super::{CRM, Desk, LATEST, MINUTE, ONCE, START, key, seed};
use crate::domain::{Ending, IntentId, Key, Monotonic, Settlement, Timestamp};
use crate::store::{
    Holder, IntentSpec, LEASE, LeasedTask, ObjectRef, ObjectsView, OpenIntent, Opening, Outcome, Shape, Version,
};

fn phone() -> Key {
    key(&["amocrm", "contact", "phone", "79000000001"])
}

fn email() -> Key {
    key(&["amocrm", "contact", "email", "anna@example.com"])
}

fn contact(keys: Vec<Key>) -> ObjectRef {
    ObjectRef::new(CRM, "contact", keys)
}

fn create(object: ObjectRef) -> IntentSpec {
    IntentSpec {
        object,
        shape: Shape::Create,
        version: None,
        replaces: Vec::new(),
        evidence: b"{\"request\":1}".to_vec(),
    }
}

fn set(object: ObjectRef, at: i64) -> IntentSpec {
    let version = Some(Version { at: Timestamp::from_secs(at), hash: [3; 16] });
    IntentSpec { shape: Shape::Set, version, ..create(object) }
}

fn applied(external_id: &str) -> Outcome {
    Outcome::Applied { external_id: external_id.to_owned() }
}

impl Desk {
    /// Two tasks of different lanes that run.
    async fn two_runs(&self) -> [LeasedTask; 2] {
        self.event(&seed("1042", LATEST)).await;
        self.event(&seed("1043", LATEST)).await;
        self.lease(2).await.try_into().unwrap()
    }

    async fn open(&self, run: &LeasedTask, spec: IntentSpec) -> Opening {
        self.store.open_intent(Holder::Task(run.ticket()), spec).await.unwrap()
    }

    async fn opened(&self, run: &LeasedTask, spec: IntentSpec) -> IntentId {
        match self.open(run, spec).await {
            Opening::Durable(proof) => proof.id(),
            other => panic!("{other:?}"),
        }
    }

    async fn is_busy(&self, run: &LeasedTask, spec: IntentSpec) -> bool {
        matches!(self.open(run, spec).await, Opening::Busy)
    }

    async fn outcome(&self, intent: IntentId, outcome: Outcome) -> bool {
        self.store.record_outcome(intent, outcome).await.unwrap()
    }

    fn known(&self, keys: Vec<Key>) -> ObjectsView {
        self.view().object(&contact(keys)).unwrap()
    }

    fn intent_state(&self, id: IntentId) -> &'static str {
        let intents = self.view().tasks(None, 99, &|_| true).unwrap();
        let all = intents.iter().flat_map(|task| self.view().intents_of_task(task.id).unwrap());
        all.into_iter().find(|intent| intent.id == id).expect("the intent is listed under its task").state
    }
}

#[tokio::test]
async fn an_intent_is_on_disk_with_its_evidence_before_anything_is_sent() {
    let mut desk = Desk::new();
    let [run, _] = desk.two_runs().await;
    desk.clock.advance(MINUTE);
    let Opening::Durable(proof) = desk.open(&run, set(contact(vec![phone(), email()]), 50)).await else { panic!() };
    assert_eq!(proof.opened(), Monotonic::from_start(MINUTE));
    desk.kill();
    let intent = desk.view().doubts(9).unwrap().pop().unwrap();
    assert_eq!((intent.id, intent.task, intent.token), (proof.id(), run.id(), run.ticket().token()));
    assert_eq!((intent.target.as_str(), intent.object_kind.as_str(), intent.shape), (CRM, "contact", "set"));
    assert_eq!((intent.objects, intent.state), (vec![phone(), email()], "open"));
    assert_eq!((intent.opened_at, intent.settled_at, intent.external_id), (START.plus(MINUTE), None, None));
    assert_eq!(desk.view().evidence(proof.id()).unwrap().unwrap(), b"{\"request\":1}");
}

/// Two orders of one customer: the contact is worked on by one of them at a time.
#[tokio::test]
async fn an_open_intent_keeps_others_from_each_of_its_keys() {
    let desk = Desk::new();
    let [a, b] = desk.two_runs().await;
    let intent = desk.opened(&a, create(contact(vec![phone(), email()]))).await;
    assert!(desk.is_busy(&b, create(contact(vec![email()]))).await);
    assert!(desk.is_busy(&b, create(contact(vec![phone()]))).await);
    let held = |id| OpenIntent { id, task: a.id(), is_held: true, opened: Some(Monotonic::default()) };
    assert_eq!(desk.known(vec![email()]).open(), Some(&held(intent)));

    assert!(desk.outcome(intent, Outcome::Refused { text: "no name".to_owned() }).await);
    assert_eq!(desk.intent_state(intent), "refused");
    assert_eq!(desk.known(vec![email()]).open(), None);
    desk.opened(&b, create(contact(vec![email()]))).await;
}

#[tokio::test]
async fn a_person_opens_without_a_lease_and_meets_the_same_exclusion() {
    let desk = Desk::new();
    let [a, _] = desk.two_runs().await;
    let by_person = |spec| desk.store.open_intent(Holder::Person, spec);
    let Opening::Durable(proof) = by_person(create(contact(vec![phone()]))).await.unwrap() else { panic!() };
    assert!(desk.is_busy(&a, create(contact(vec![phone()]))).await);
    assert!(matches!(by_person(create(contact(vec![phone()]))).await.unwrap(), Opening::Busy));
    assert!(!desk.known(vec![phone()]).open().unwrap().is_held, "a person holds nothing beyond the call");
    assert!(desk.outcome(proof.id(), applied("7")).await);
}

#[tokio::test]
async fn no_intent_without_a_living_lease() {
    let desk = Desk::new();
    let [a, b] = desk.two_runs().await;
    let stale = a.ticket();
    desk.settle(a, Ending::Lost).await;
    let opening = desk.store.open_intent(Holder::Task(stale), create(contact(vec![phone()]))).await.unwrap();
    assert!(matches!(opening, Opening::StaleLease), "its run was settled");

    desk.clock.advance(LEASE);
    assert!(matches!(desk.open(&b, create(contact(vec![phone()]))).await, Opening::StaleLease), "its time is over");
    desk.store.extend(vec![b.ticket()]).await.unwrap();
    desk.opened(&b, create(contact(vec![phone()]))).await;
}

/// The next comer finds the doubt, looks outside, and follows it with an intent of its own.
#[tokio::test]
async fn a_doubt_is_closed_by_the_intent_that_replaces_it() {
    let desk = Desk::new();
    let [a, b] = desk.two_runs().await;
    let keys = || contact(vec![phone(), email()]);
    let doubt = desk.opened(&a, create(keys())).await;
    assert!(desk.outcome(doubt, Outcome::Unknown { text: "no answer in 10 s".to_owned() }).await);
    desk.settle(a, Ending::Retry(None)).await;
    assert_eq!(desk.intent_state(doubt), "unknown");
    assert!(!desk.known(vec![phone()]).open().unwrap().is_held);
    assert!(desk.is_busy(&b, create(keys())).await, "nobody passes a doubt without a look");

    let next = desk.opened(&b, IntentSpec { replaces: vec![doubt], ..create(keys()) }).await;
    assert_eq!((desk.intent_state(doubt), desk.intent_state(next)), ("closed", "open"));
    assert_eq!(desk.known(vec![email()]).open().map(|open| open.id), Some(next));
    assert!(!desk.outcome(doubt, applied("7")).await, "it is closed");
    assert_eq!(desk.known(vec![phone()]).external_id(), None);
}

/// True knowledge is never thrown away: only settling is fenced.
#[tokio::test]
async fn an_outcome_counts_after_its_lease_is_gone_and_only_once() {
    let mut desk = Desk::new();
    let [a, _] = desk.two_runs().await;
    let intent = desk.opened(&a, create(contact(vec![phone(), email()]))).await;
    desk.kill();
    desk.reap().await;
    let open = desk.known(vec![phone()]).open().cloned().unwrap();
    assert_eq!((open.is_held, open.opened), (false, None), "an earlier process opened it");

    assert!(desk.outcome(intent, applied("7")).await);
    assert!(!desk.outcome(intent, applied("8")).await);
    assert!(!desk.outcome(intent, Outcome::Closed).await);
    assert!(!desk.outcome(IntentId::new(99), applied("8")).await);
    assert_eq!(desk.known(vec![phone()]).external_id(), Some("7"));
    assert_eq!(desk.intent_state(intent), "applied");
}

#[tokio::test]
async fn what_is_applied_is_known_under_every_key_and_both_ways() {
    let desk = Desk::new();
    let [a, _] = desk.two_runs().await;
    let intent = desk.opened(&a, set(contact(vec![phone(), email()]), 50)).await;
    assert_eq!(desk.known(vec![phone()]).version_at(), None, "not before it happened");
    desk.outcome(intent, applied("7")).await;
    for key in [phone(), email()] {
        let known = desk.known(vec![key]);
        assert_eq!((known.external_id(), known.version_at()), (Some("7"), Some(Timestamp::from_secs(50))));
    }
    let key = desk.view().object_of_external("crm/contact", "7").unwrap();
    assert!(key.is_some_and(|key| key == phone() || key == email()));
    assert_eq!(desk.view().object_of_external("crm/lead", "7").unwrap(), None);
}

/// A phone and an e-mail may belong to two contacts; then each key keeps its own.
#[tokio::test]
async fn what_is_found_fills_only_keys_that_know_nothing() {
    let desk = Desk::new();
    let find = async |keys, id: &str| desk.store.record_found(contact(keys), id.to_owned()).await.unwrap();
    find(vec![email()], "8").await;
    assert!(!desk.known(vec![phone(), email()]).is_known_under_all_keys());
    find(vec![phone(), email()], "7").await;
    assert!(desk.known(vec![phone(), email()]).is_known_under_all_keys());
    assert_eq!(desk.known(vec![phone()]).external_id(), Some("7"));
    assert_eq!(desk.known(vec![email()]).external_id(), Some("8"));
    assert_eq!(desk.known(vec![phone(), email()]).external_id(), Some("7"), "the first key is trusted most");
}

#[tokio::test]
async fn what_is_gone_is_forgotten_and_remembered_as_gone_until_it_is_found() {
    let desk = Desk::new();
    let gone = || desk.store.record_gone(contact(vec![phone(), email()]));
    gone().await.unwrap();
    assert!(!desk.known(vec![phone()]).is_gone(), "what was never known cannot be gone");
    desk.store.record_found(contact(vec![phone()]), "7".to_owned()).await.unwrap();
    gone().await.unwrap();
    let known = desk.known(vec![phone(), email()]);
    assert_eq!((known.is_gone(), known.external_id()), (true, None));
    desk.store.record_found(contact(vec![phone(), email()]), "9".to_owned()).await.unwrap();
    let known = desk.known(vec![phone(), email()]);
    assert_eq!((known.is_gone(), known.external_id()), (false, Some("9")));
}

#[tokio::test]
async fn a_look_that_decides_anew_closes_the_doubt_and_frees_the_object() {
    let desk = Desk::new();
    let [a, b] = desk.two_runs().await;
    let doubt = desk.opened(&a, set(contact(vec![phone()]), 50)).await;
    assert_eq!(desk.view().doubts(9).unwrap().len(), 1);
    assert!(desk.outcome(doubt, Outcome::Closed).await);
    assert_eq!(desk.view().doubts(9).unwrap(), []);
    assert_eq!(desk.known(vec![phone()]).version_at(), None);
    desk.opened(&b, set(contact(vec![phone()]), 60)).await;
}

#[tokio::test]
async fn a_settled_task_leaves_its_intent_in_doubt() {
    let desk = Desk::new();
    desk.event(&seed("1042", ONCE)).await;
    let run = desk.lease_one().await;
    let (task, intent) = (run.id(), desk.opened(&run, create(contact(vec![phone()]))).await);
    desk.store.settle(run, Settlement::new(Ending::Retry(None), "no answer")).await.unwrap();
    let intents = desk.view().intents_of_task(task).unwrap();
    assert_eq!(intents.iter().map(|found| (found.id, found.state)).collect::<Vec<_>>(), [(intent, "open")]);
    assert!(!desk.known(vec![phone()]).open().unwrap().is_held);
}

/// Two orders of one new customer: both searched, found nobody, and the first has just made the contact.
#[tokio::test]
async fn what_was_made_since_the_look_is_not_made_again() {
    let desk = Desk::new();
    let [a, b] = desk.two_runs().await;
    let intent = desk.opened(&a, create(contact(vec![phone()]))).await;
    desk.outcome(intent, applied("7")).await;
    assert!(desk.is_busy(&b, create(contact(vec![phone(), email()]))).await, "it must look again");
    desk.opened(&b, set(contact(vec![phone()]), 50)).await;
    desk.store.record_gone(contact(vec![email()])).await.unwrap();
    desk.opened(&a, create(contact(vec![email()]))).await;
}

/// Two tasks looked after the same doubt; the first has followed it with an intent and ended that.
#[tokio::test]
async fn a_doubt_is_followed_once() {
    let desk = Desk::new();
    let [a, b] = desk.two_runs().await;
    let doubt = desk.opened(&a, create(contact(vec![phone()]))).await;
    desk.outcome(doubt, Outcome::Unknown { text: "no answer".to_owned() }).await;
    let follow = || IntentSpec { replaces: vec![doubt], ..create(contact(vec![phone()])) };
    let next = desk.opened(&a, follow()).await;
    assert!(desk.is_busy(&b, follow()).await);
    desk.outcome(next, Outcome::Refused { text: "no name".to_owned() }).await;
    assert!(desk.is_busy(&b, follow()).await, "its look is out of date");
    assert_eq!(desk.intent_state(doubt), "closed");
    desk.opened(&b, create(contact(vec![phone()]))).await;
}
