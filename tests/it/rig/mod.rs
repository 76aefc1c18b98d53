//! The whole appliance in one thread: no socket, no file, no second that passes by itself.
//!
//! Outside are the sandbox, a disk in memory, a network and the world's clock.
//! Inside is one process after another: store (its writer inline), intake and
//! worker on a runtime of its own. Killing one drops its runtime at once; the
//! next begins on the same disk, with a monotonic clock at zero.
//!
//! [`Rig::settle`] lets everything run that can, then [`Rig::run_until`] moves the
//! clock to the first sleeper, and so on. Nothing depends on chance but what a
//! seed decides, so a run can be repeated from its seed.

mod clock;
mod disk;
mod life;
mod network;
mod process;
mod random;
mod setup;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tambour::clock::{Clock as _, ManualClock};
use tambour::config::Config;
use tambour::domain::{EventId, TaskId, Timestamp, TraceId};
use tambour::sandbox::{Operation, OrderSketch, Request, Sandbox, Settings, shopify_headers, sign};
use tambour::source::RawDelivery;
use tambour::store::{EventView, Granted, IntentView, Receipt, TaskView, View, Wish};

pub(crate) use disk::{Call, Disk};
pub(crate) use life::Life;
pub(crate) use network::{Cut, Network};
pub(crate) use process::NotAccepted;
pub(crate) use random::Random;
pub(crate) use setup::{SHOP, SHOP_API, SHOP_SECRET, STAGE_CONTRACT, STAGE_NEW, Setup};

use process::Process;

/// When every scenario begins: 2026-11-30T11:00:00Z, as the recorded deliveries do.
pub(crate) const START: Timestamp = Timestamp::from_secs(1_796_036_400);

/// More moves of the clock than any scenario needs.
const MOVES_MAX: usize = 20_000;

/// One appliance with its surroundings.
pub(crate) struct Rig {
    /// The CRM, the shop, and the oracle.
    pub(crate) crm: Sandbox,
    pub(crate) network: Network,
    pub(crate) disk: Disk,
    /// How often a process died.
    pub(crate) deaths: u32,
    /// Events that a sender was told are stored, with their bodies.
    acknowledged: Vec<(EventId, Bytes)>,
    config: Arc<Config>,
    time: Arc<ManualClock>,
    process: Process,
    /// Deliveries and events that were made up so far.
    made_up: u128,
}

impl Rig {
    pub(crate) fn new(setup: Setup) -> Self {
        let time = ManualClock::starting_at(START);
        let crm = Sandbox::new(time.clone(), Settings::default());
        let (network, disk) = (Network::to(&crm), Disk::default());
        let config = Arc::new(setup.load());
        let process = Process::start(&config, &time, &disk, &network).unwrap();
        let rig = Self { crm, network, disk, deaths: 0, acknowledged: Vec::new(), config, time, process, made_up: 0 };
        for code in setup.fields {
            rig.ask("POST", "/api/v4/leads/custom_fields", &json!([{"name": code, "code": code, "type": "text"}]));
        }
        rig
    }

    /// A person's or another program's call to the CRM.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let token = ("authorization".to_owned(), "Bearer sandbox-amocrm-token".to_owned());
        let reply = self.crm.handle(&Request::new(method, path, vec![token], body.to_string().into()));
        assert_eq!(reply.status, 200, "{method} {path}: {:?}", reply.body);
        serde_json::from_slice(&reply.body).unwrap()
    }

    // The door.

    /// What the door does with a request, up to the answer.
    pub(crate) fn deliver(
        &mut self,
        source: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Receipt, NotAccepted> {
        self.made_up += 1;
        let headers = headers.iter().map(|(name, value)| (name.to_lowercase(), Bytes::from(value.clone()))).collect();
        let raw = RawDelivery { headers, body: body.clone(), received_at: self.now() };
        let receipt = self.process.deliver(&self.config.sources[source], raw, TraceId::new(self.made_up))?;
        let (Receipt::New { event, .. } | Receipt::Duplicate { event } | Receipt::Conflict { event }) = receipt;
        self.acknowledged.push((event, body));
        Ok(receipt)
    }

    /// A sender that gets no answer sends again, to the next process.
    fn send(&mut self, deliver: impl Fn(&mut Self) -> Result<Receipt, NotAccepted>) -> Receipt {
        loop {
            match deliver(self) {
                Err(NotAccepted::Failed) => self.restart(),
                answered => return answered.unwrap(),
            }
        }
    }

    /// Panics where something is lost that a sender was told is stored.
    pub(crate) fn check_acknowledged(&self) {
        let view = self.view();
        for (event, body) in &self.acknowledged {
            assert_eq!(view.body(*event).unwrap().as_ref(), Some(&body.to_vec()), "{event} was acknowledged");
            assert!(view.event(*event).unwrap().is_some(), "{event} was acknowledged");
        }
    }

    /// A delivery of the shop under ids of its own.
    pub(crate) fn order(&mut self, topic: &str, order: &OrderSketch) -> Receipt {
        let id = self.made_up;
        self.order_as(topic, order, &format!("webhook-{id}"), &format!("event-{id}"))
    }

    /// A delivery of the shop under given ids.
    pub(crate) fn order_as(&mut self, topic: &str, order: &OrderSketch, webhook_id: &str, event_id: &str) -> Receipt {
        self.send(|rig| rig.send_order(topic, order, webhook_id, event_id))
    }

    /// A delivery of the shop that may find the appliance dead, or dying of it.
    pub(crate) fn try_order(
        &mut self,
        topic: &str,
        order: &OrderSketch,
        webhook_id: &str,
    ) -> Result<Receipt, NotAccepted> {
        self.send_order(topic, order, webhook_id, webhook_id)
    }

    fn send_order(
        &mut self,
        topic: &str,
        order: &OrderSketch,
        webhook_id: &str,
        event_id: &str,
    ) -> Result<Receipt, NotAccepted> {
        let body = order.to_json().to_string();
        let signature = sign(SHOP_SECRET, body.as_bytes());
        let headers = shopify_headers(topic, SHOP, webhook_id, event_id, self.now(), &signature);
        self.deliver("shop", &headers, body.into())
    }

    /// A delivery of the CRM.
    pub(crate) fn hook(&mut self, body: Bytes) -> Receipt {
        let form = ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned());
        self.send(|rig| rig.deliver("crm", std::slice::from_ref(&form), body.clone()))
    }

    // Time.

    pub(crate) fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Lets everything run that can without time passing.
    pub(crate) fn settle(&mut self) {
        self.process.settle();
    }

    /// Time passes, and nobody runs meanwhile.
    pub(crate) fn jump(&self, by: Duration) {
        self.time.advance(by);
    }

    /// Time passes, and everybody runs; a process that died meanwhile is started again.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now().plus(time);
        loop {
            self.settle();
            if !self.process.lives() {
                self.restart();
                continue;
            }
            let left = end.since(self.now());
            if left.is_zero() {
                return;
            }
            self.time.advance(self.process.until_next_sleeper().min(left));
        }
    }

    /// Moves from sleeper to sleeper until it is so; a process that died meanwhile is started again.
    pub(crate) fn run_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..MOVES_MAX {
            self.settle();
            if !self.process.lives() {
                self.restart();
            } else if is_so(self) {
                return;
            } else {
                self.time.advance(self.process.until_next_sleeper());
            }
        }
        panic!("not reached at {}: {what}\n{:#?}", self.now(), self.tasks());
    }

    /// Runs until no task is unfinished.
    pub(crate) fn run_to_rest(&mut self) {
        self.run_until("every task has ended", |rig| rig.view().oldest_unfinished().unwrap().is_none());
    }

    // The process.

    /// Kills the process, if it still lives, and starts the next one.
    pub(crate) fn restart(&mut self) {
        self.process.kill();
        let mut start = || {
            self.deaths += 1;
            Process::start(&self.config, &self.time, &self.disk, &self.network)
        };
        self.process = start().or_else(start).expect("no process dies twice in its opening");
    }

    /// A person stops the appliance and starts it with another configuration.
    pub(crate) fn restart_with(&mut self, setup: Setup) {
        self.config = Arc::new(setup.load());
        self.restart();
    }

    /// Kills the process by a power cut, in which unsynced writes may be lost.
    pub(crate) fn cut_power(&mut self, chance: &mut Random) {
        self.process.kill();
        self.disk.cut_power(chance);
        self.restart();
    }

    // The file.

    pub(crate) fn view(&self) -> View {
        self.process.store().view().unwrap()
    }

    /// All tasks, oldest first.
    pub(crate) fn tasks(&self) -> Vec<TaskView> {
        let mut tasks = self.view().tasks(None, usize::MAX, &|_| true).unwrap();
        tasks.reverse();
        tasks
    }

    /// The one task of a kind.
    pub(crate) fn task(&self, kind: &str) -> TaskView {
        let tasks: Vec<TaskView> = self.tasks().into_iter().filter(|task| task.kind == kind).collect();
        let [task] = tasks.try_into().unwrap_or_else(|all| panic!("one {kind} task is expected: {all:#?}"));
        task
    }

    /// `kind state reason` of each task, oldest first.
    pub(crate) fn told(&self) -> Vec<String> {
        let told = |task: TaskView| {
            let reason = task.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
            format!("{} {}{reason}", task.kind, task.state.as_str())
        };
        self.tasks().into_iter().map(told).collect()
    }

    /// All events, oldest first.
    pub(crate) fn events(&self) -> Vec<EventView> {
        let mut events = self.view().events(None, usize::MAX, &|_| true).unwrap();
        events.reverse();
        events
    }

    /// All intents, oldest first.
    pub(crate) fn intents(&self) -> Vec<IntentView> {
        let view = self.view();
        let ids = self.tasks().into_iter().map(|task| task.id);
        let mut intents: Vec<IntentView> = ids.flat_map(|id| view.intents_of_task(id).unwrap()).collect();
        intents.sort_by_key(|intent| intent.id);
        intents
    }

    /// A person's wish at the CLI.
    pub(crate) fn operate(&mut self, task: TaskId, wish: Wish) -> Granted {
        let store = self.process.store();
        self.process.block_on(store.operate(task, wish, "olga", "")).unwrap()
    }

    /// A person put the CRM's token right.
    pub(crate) fn resume(&mut self) -> bool {
        self.process.block_on(self.process.store().resume("crm", "olga")).unwrap()
    }

    /// How often the sandbox was asked for something.
    pub(crate) fn calls(&self, operation: Operation) -> u64 {
        self.crm.counts().calls.get(&operation).copied().unwrap_or_default()
    }
}
