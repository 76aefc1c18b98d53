//! Long random lives of a file: after every few steps it must agree with itself.
//!
//! A failure prints the seed; the seed gives the same run.

use std::time::Duration;

use super::{CRM, Desk, LATEST, ONCE, agreement, in_lane, key, notice_of, seed};
use crate::domain::{Ending, IntentId, Key, ReasonCode, Settlement, TaskId, TaskSeed};
use crate::source::samples;
use crate::store::{EventState, Holder, IntentSpec, LeasedTask, ObjectRef, Opening, Outcome, Shape, Wish};

const SEEDS: u64 = 16;
const STEPS: u64 = 100;
const STEPS_PER_CHECK: u64 = 5;

#[tokio::test]
async fn any_order_of_commands_leaves_a_file_that_agrees_with_itself() {
    for number in 0..SEEDS {
        println!("seed {number}");
        let mut life = Life { desk: Desk::new(), dice: Dice(number), runs: Vec::new(), intents: Vec::new() };
        for step in 0..STEPS {
            life.step().await;
            if step % STEPS_PER_CHECK == 0 {
                agreement::check(&life.desk.store);
            }
        }
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % most
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].clone()
    }
}

struct Life {
    desk: Desk,
    dice: Dice,
    runs: Vec<LeasedTask>,
    intents: Vec<IntentId>,
}

impl Life {
    async fn step(&mut self) {
        match self.dice.below(24) {
            0..6 => self.deliver().await,
            6..9 => self.lease().await,
            9..13 => self.settle().await,
            13..15 => self.operate().await,
            15..18 => self.open_intent().await,
            18..20 => self.record_outcome().await,
            20 => self.learn().await,
            21 => drop(self.desk.store.resume(CRM, "anna").await.unwrap()),
            22 => self.desk.clock.advance(Duration::from_secs(30 * self.dice.below(90))),
            _ => self.die().await,
        }
    }

    /// Nine keys in four lanes; the mode hangs on the key, as in a configuration.
    fn any_seed(&mut self) -> TaskSeed {
        let order = self.dice.pick(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
        let mode = if order < "e" { ONCE } else { LATEST };
        let lane = ["1", "2", "3", "4"][usize::from(order.as_bytes()[0]) % 4];
        let target = if lane == "4" { "other" } else { CRM };
        TaskSeed { target: target.to_owned(), ..in_lane(seed(order, mode), lane) }
    }

    /// One delivery in four repeats an earlier id, perhaps with another body.
    async fn deliver(&mut self) {
        let id = self.dice.below(40).to_string();
        let body = self.dice.pick(&[&b"{\"id\":1}"[..], b"{\"id\":2}"]);
        let tasks = (0..self.dice.below(3)).map(|_| self.any_seed()).collect();
        self.desk.accept(samples::signed(&id, body), EventState::Routed, tasks).await;
    }

    async fn lease(&mut self) {
        let slots = vec![(CRM.to_owned(), 2), ("other".to_owned(), 1)];
        let kinds = ["deal", "notice"].map(str::to_owned).to_vec();
        let most = usize::try_from(self.dice.below(4)).unwrap();
        let leased = self.desk.store.lease(slots, kinds, most).await.unwrap();
        assert!(leased.len() <= most);
        self.runs.extend(leased);
    }

    async fn settle(&mut self) {
        if self.runs.is_empty() {
            return;
        }
        let run = self.runs.swap_remove(usize::try_from(self.dice.below(self.runs.len() as u64)).unwrap());
        let ending = self.dice.pick(&[
            Ending::Done,
            Ending::Superseded(ReasonCode::LEFT_STAGE),
            Ending::Dead(ReasonCode::VALIDATION),
            Ending::Dead(ReasonCode::OUTCOME_UNKNOWN),
            Ending::Retry(None),
            Ending::Hold,
            Ending::Lost,
            Ending::Wait(Duration::from_secs(90)),
        ]);
        let follow_ups = (0..self.dice.below(2)).map(|_| self.any_seed()).collect();
        let notice = Some(notice_of(&run.seed().entity));
        let settlement = Settlement { follow_ups, notice, ..Settlement::new(ending, "") };
        self.desk.store.settle(run, settlement).await.unwrap();
    }

    async fn operate(&mut self) {
        let task = TaskId::new(self.dice.below(12));
        let wish = self.dice.pick(&[Wish::Retry, Wish::Close, Wish::Replay]);
        self.desk.store.operate(task, wish, "anna", "").await.unwrap();
    }

    fn any_object(&mut self) -> ObjectRef {
        let keys: Vec<Key> = (0..4_u8).filter(|_| self.dice.below(2) == 0).map(|i| key(&[&i.to_string()])).collect();
        ObjectRef::new(CRM, "contact", keys)
    }

    async fn open_intent(&mut self) {
        let holder = match self.runs.last() {
            Some(run) if self.dice.below(4) > 0 => Holder::Task(run.ticket()),
            _ => Holder::Person,
        };
        let object = self.any_object();
        let shape = self.dice.pick(&[Shape::Create, Shape::Set]);
        let open = self.desk.view().object(&object).unwrap().open().map(|open| open.id);
        let replaces = if self.dice.below(4) == 0 { self.intents.last().copied() } else { open };
        let spec =
            IntentSpec { object, shape, version: None, replaces: replaces.into_iter().collect(), evidence: Vec::new() };
        if let Opening::Durable(proof) = self.desk.store.open_intent(holder, spec).await.unwrap() {
            self.intents.push(proof.id());
        }
    }

    async fn record_outcome(&mut self) {
        if self.intents.is_empty() {
            return;
        }
        let intent = self.dice.pick(&self.intents);
        let outcome = self.dice.pick(&[
            Outcome::Applied { external_id: "7".to_owned() },
            Outcome::Applied { external_id: "8".to_owned() },
            Outcome::Refused { text: String::new() },
            Outcome::Unknown { text: String::new() },
            Outcome::Closed,
        ]);
        self.desk.store.record_outcome(intent, outcome).await.unwrap();
    }

    /// A read found objects or found them gone.
    async fn learn(&mut self) {
        let object = self.any_object();
        if self.dice.below(2) == 0 {
            self.desk.store.record_found(object, "9".to_owned()).await.unwrap();
        } else {
            self.desk.store.record_gone(object).await.unwrap();
        }
    }

    /// Most deaths come before the runs are settled; tickets of the dead process go on being tried.
    async fn die(&mut self) {
        self.desk.kill();
        self.desk.reap().await;
    }
}
