//! SIGKILL at random moments under load, over and over on one data file.
//!
//! Senders post orders, changes of orders and hooks side by side, new ones and repeats,
//! while the worker changes the CRM. A seed decides after how many answers, or after how
//! many calls to the CRM, the process is killed. What was acknowledged must be in the
//! file, once; in the end there is one deal an order, one contact a phone, one note with
//! its lines, and one note a deal that was moved.
//!
//! 200 kills by default. For the long run:
//!
//! ```text
//! TAMBOUR_KILLS=10000 cargo test --release --test it process::kills -- --nocapture
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tambour::domain::{Pauses, ReasonCode, Timestamp};
use tambour::sandbox::{Operation, OrderSketch, Sender};
use tambour::store::Store;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::process::fixture::{Delivery, STAGE_CONTRACT, Served, World, within};
use crate::rig::Random;

const KILLS: usize = 200;
const SEED: u64 = 1;
/// The file is looked at so often in a run.
const LOOKS: usize = 10;
const ORDERS: u64 = 40;
const PEOPLE: u64 = 10;
const SENDERS: u64 = 4;
/// A process that is not killed at a call to the CRM is killed after at most so many answers.
const ANSWERS_MAX: u64 = 10;
/// One that is to be killed at a call may wait for it so long.
const ANSWERS_UNTIL_CALL_MAX: u64 = 20;

/// What was sent, and what became of it.
struct Sent {
    delivery: Delivery,
    sha256: [u8; 32],
    is_acknowledged: bool,
}

/// The shop's and the manager's side; a clone is the same.
#[derive(Clone)]
struct Outside {
    world: Arc<World>,
    began: Timestamp,
    sent: Arc<Mutex<Vec<Sent>>>,
    /// How many deliveries were acknowledged.
    answers: watch::Sender<u64>,
}

impl Outside {
    fn new(world: World) -> Self {
        // Each delivery is a second newer than the one before, and none is in the future.
        let began = Timestamp::from_secs(world.clock.now().as_secs() - 30 * 24 * 60 * 60);
        Self { world: Arc::new(world), began, sent: Arc::default(), answers: watch::Sender::new(0) }
    }

    /// The order, changed by its `change`th delivery; its lines stay.
    fn order(&self, id: u64, change: usize) -> OrderSketch {
        let phone = format!("+7900000{:04}", id % PEOPLE);
        let updated_at = self.began.plus(Duration::from_secs(change as u64));
        OrderSketch {
            phone: Some(phone),
            email: Some(format!("buyer{}@example.com", id % PEOPLE)),
            total: format!("{change}.00"),
            updated_at,
            ..OrderSketch::new(id, &format!("#{id}"), "1.00", self.began)
        }
    }

    /// Puts a delivery on the list; gives its place.
    fn add(&self, make: impl FnOnce(usize) -> Delivery) -> usize {
        let mut sent = self.sent.lock().unwrap();
        let place = sent.len();
        let delivery = make(place);
        let sha256 = Sha256::digest(&delivery.body).into();
        sent.push(Sent { delivery, sha256, is_acknowledged: false });
        place
    }

    fn add_order(&self, id: u64) -> usize {
        self.add(|change| self.world.order(&self.order(id, change), "orders/updated", &format!("w-{change}")))
    }

    fn add_hook(&self) -> usize {
        let crm = &self.world.sandbox;
        let (lead, _) = crm.add_lead_by_hand("Окна", 100, None).unwrap();
        let hook = crm.move_lead(lead, STAGE_CONTRACT).unwrap();
        self.add(|_| self.world.hook(hook))
    }

    /// What a sender sends next: an order, a hook, or one of its latest deliveries again.
    fn next(&self, chance: &mut Random) -> usize {
        let count = self.sent.lock().unwrap().len();
        match chance.below(20) {
            0 => self.add_hook(),
            1..=6 if count > 0 => count - 1 - usize::try_from(chance.below(count.min(200) as u64)).unwrap(),
            _ => self.add_order(1 + chance.below(ORDERS)),
        }
    }

    /// Sends; says whether the process still answers.
    async fn send(&self, sender: &Sender, place: usize) -> bool {
        let delivery = self.sent.lock().unwrap()[place].delivery.clone();
        let Ok(answered) = within(delivery.send(sender)).await else { return false };
        if answered.status == 200 {
            self.sent.lock().unwrap()[place].is_acknowledged = true;
            self.answers.send_modify(|answers| *answers += 1);
        } else {
            assert_eq!(answered.status, 503, "{answered:?}");
        }
        true
    }

    /// Starts the senders, which go on until nobody answers.
    fn start(&self, sender: &Sender, seed: u64, senders: &mut JoinSet<()>) {
        for number in 0..SENDERS {
            let (outside, sender) = (self.clone(), sender.clone());
            let mut chance = Random::seeded(SENDERS * seed + number);
            senders.spawn(async move { while outside.send(&sender, outside.next(&mut chance)).await {} });
        }
    }

    /// Returns after some answers, or after some calls to the CRM; chance decides.
    async fn moment(&self, chance: &mut Random) -> String {
        let by_call = chance.below(2) == 0;
        let operation = chance.pick(&[Operation::LeadSearch, Operation::LeadUpdate, Operation::NoteCreate]);
        let calls = self.world.sandbox.counts().calls.get(&operation).copied().unwrap_or_default();
        let more_calls = 1 + chance.below(4);
        let more_answers = if by_call { ANSWERS_UNTIL_CALL_MAX } else { chance.below(ANSWERS_MAX + 1) };
        let answers = *self.answers.borrow() + more_answers;
        let mut answered = self.answers.subscribe();
        tokio::select! {
            _ = within(answered.wait_for(|now| *now >= answers)) => format!("after {more_answers} answers"),
            () = self.world.sandbox.seen(operation, calls + more_calls), if by_call => {
                format!("in {} {more_calls}", operation.as_str())
            }
        }
    }

    /// Panics where the file lacks or doubles a delivery, or the CRM an effect; gives the
    /// number of unfinished tasks.
    fn look(&self) -> usize {
        let folder = self.world.path("data");
        let store = Store::open_offline(&folder, self.world.clock.clone(), Pauses::default()).unwrap();
        let view = store.view().unwrap();
        let mut stored = BTreeMap::<[u8; 32], usize>::new();
        for event in view.events(None, usize::MAX, &|_| true).unwrap() {
            assert_eq!(event.state, "routed");
            assert_eq!(Sha256::digest(view.body(event.id).unwrap().unwrap()), event.body_sha256);
            *stored.entry(event.body_sha256).or_default() += 1;
        }
        for Sent { delivery, sha256, is_acknowledged } in &*self.sent.lock().unwrap() {
            let copies = stored.get(sha256).copied().unwrap_or_default();
            assert!(copies <= 1, "stored {copies} times: {:?}", delivery.headers);
            assert!(copies == 1 || !is_acknowledged, "acknowledged and lost: {:?}", delivery.headers);
        }
        let crm = &self.world.sandbox;
        for (name, leads) in self.leads_by_name() {
            assert!(leads.len() == 1 || name == "Окна", "{name}: {leads:?}");
            assert!(leads.iter().all(|lead| crm.notes_of_lead(*lead).len() <= 1), "{name}");
        }
        for person in 0..PEOPLE {
            assert!(crm.contacts_with_phone(&format!("+7900000{person:04}")).len() <= 1, "person {person}");
        }
        view.tasks(None, usize::MAX, &|task| task.state.is_unfinished()).unwrap().len()
    }

    fn leads_by_name(&self) -> BTreeMap<String, Vec<u64>> {
        let mut leads = BTreeMap::<String, Vec<u64>>::new();
        for lead in self.world.sandbox.leads() {
            leads.entry(lead.name).or_default().push(lead.id);
        }
        leads
    }

    /// Lets processes work in peace until nothing is unfinished.
    async fn settle(&self) {
        loop {
            let unfinished = self.look();
            if unfinished == 0 {
                return;
            }
            let served = self.world.serve().await;
            served.ended(unfinished).await;
            served.stop().await;
        }
    }

    /// A person makes the dead run again; gives how many there were.
    async fn retry_dead(&self) -> usize {
        let dead = self.world.run(&["tasks", "--state", "dead", "--limit", "500", "--json"]).await.json();
        let dead = dead["items"].as_array().unwrap();
        assert!(dead.iter().all(|task| task["reason"] == ReasonCode::WORKER_LOST.as_str()), "{dead:?}");
        if !dead.is_empty() {
            let retried = self.world.run(&["retry", "--state", "dead", "--yes"]).await;
            assert_eq!(retried.code, Some(0), "{retried:?}");
        }
        dead.len()
    }
}

/// B48. Story: as the module says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_at_random_moments_lose_nothing_and_double_nothing() {
    let kills = std::env::var("TAMBOUR_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let outside = Outside::new(World::in_a_hurry().await);
    let mut chance = Random::seeded(SEED);
    for kill in 1..=kills {
        let served = outside.world.serve().await;
        let mut senders = JoinSet::new();
        outside.start(&served.sender(), kill as u64, &mut senders);
        let moment = outside.moment(&mut chance).await;
        served.kill().await;
        println!("seed {SEED}, kill {kill}: {moment}");
        while let Some(ended) = senders.join_next().await {
            ended.unwrap();
        }
        if kill % (kills / LOOKS).max(1) == 0 {
            outside.look();
        }
    }
    outside.end_in_peace().await;
}

impl Outside {
    /// The last deliveries arrive, all work ends, and everything is there once.
    async fn end_in_peace(&self) {
        let last: Vec<usize> = (1..=ORDERS).map(|id| self.add_order(id)).collect();
        let served: Served = self.world.serve().await;
        let open = |(place, sent): (usize, &Sent)| (!sent.is_acknowledged).then_some(place);
        let open: Vec<usize> = self.sent.lock().unwrap().iter().enumerate().filter_map(open).collect();
        for place in open {
            assert!(self.send(&served.sender(), place).await);
        }
        served.stop().await;
        self.settle().await;
        let dead = self.retry_dead().await;
        self.settle().await;

        let (leads, crm) = (self.leads_by_name(), &self.world.sandbox);
        for (id, change) in (1..=ORDERS).zip(last) {
            let [lead] = leads[&format!("Заказ #{id}")][..] else { panic!("order {id}: {leads:?}") };
            let fields = crm.lead(lead).unwrap().fields;
            assert_eq!(fields["TAMBOUR_TOTAL"], format!("{change}.00"), "order {id}");
            assert_eq!(crm.notes_of_lead(lead).len(), 1, "order {id}");
        }
        for lead in &leads["Окна"] {
            assert_eq!(crm.notes_of_lead(*lead).len(), 1, "lead {lead}");
        }
        assert_eq!(crm.contacts().len() as u64, PEOPLE.min(ORDERS));
        let (sent, answers) = (self.sent.lock().unwrap().len(), *self.answers.borrow());
        println!("{sent} deliveries, {answers} answers, {} deals moved, {dead} tasks dead", leads["Окна"].len());
    }
}
