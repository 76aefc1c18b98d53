//! The room as others use it: real deliveries, the public handle, a file that outlives it.
//!
//! A [`Desk`] is a store on a [`Disk`] in memory with a clock that moves when
//! told. Whatever a test does with it, the file must agree with itself
//! afterwards: every desk is checked when it is dropped.

mod agreement;
mod breakage;
mod disk;
mod door;
mod golden;
mod instance;
mod intents;
mod lanes;
mod leases;
mod meetings;
mod migration;
mod opening;
mod people;
mod place;
mod random;
mod reaper;
mod refusals;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::ManualClock;
use crate::domain::{
    Ending, EventId, Key, KeyBuilder, Mode, OnReturn, Pauses, Settlement, State, TaskId, TaskSeed, Timestamp, TraceId,
};
use crate::source::{RawDelivery, read, samples, verify};
use crate::store::open::Tools;
use crate::store::place::Place;
use crate::store::{
    AcceptCommand, EventState, LeasedTask, Meeting, NoticeFor, Receipt, RoutedTask, Settled, Store, TaskView, View,
};
use disk::Disk;

const ONCE: Mode = Mode::Once(OnReturn::Keep);
const LATEST: Mode = Mode::Latest;
const CRM: &str = "crm";
const MINUTE: Duration = Duration::from_mins(1);

/// When the recorded deliveries came.
const START: Timestamp = Timestamp::from_secs(1_796_036_720);

struct Desk {
    store: Store,
    clock: Arc<ManualClock>,
    disk: Disk,
    deliveries: Cell<u32>,
}

impl Desk {
    fn new() -> Self {
        let (disk, clock) = (Disk::default(), ManualClock::starting_at(START));
        Self { store: open(&disk, &clock), clock, disk, deliveries: Cell::new(0) }
    }

    /// The process dies here and the next one opens what it left.
    fn kill(&mut self) {
        self.disk = self.disk.copy();
        self.store = open(&self.disk, &self.clock);
    }

    /// The process ends in order and the next one opens its file.
    async fn restart(&mut self) {
        self.store.close().await;
        self.kill();
    }

    fn view(&self) -> View {
        self.store.view().unwrap()
    }

    fn task(&self, id: TaskId) -> TaskView {
        self.view().task(id).unwrap().expect("the task is stored")
    }

    fn is_spent(&self, seed: &TaskSeed) -> bool {
        self.view().task_of_key(&seed.key).unwrap().expect("the key is stored").1
    }

    fn count(&self, name: &str) -> u64 {
        let counts = self.view().counts().unwrap();
        counts.into_iter().find(|(found, _)| found == name).map_or(0, |(_, count)| count)
    }

    async fn accept(&self, raw: RawDelivery, state: EventState, tasks: Vec<TaskSeed>) -> Receipt {
        self.store.accept(shop_command(raw, state, tasks)).await.unwrap().receipt().clone()
    }

    /// A delivery like no other, which wants these tasks.
    async fn event_for(&self, tasks: Vec<TaskSeed>) -> (EventId, Vec<(TaskId, Meeting)>) {
        self.deliveries.set(self.deliveries.get() + 1);
        let raw = samples::signed(&format!("delivery-{}", self.deliveries.get()), b"{\"id\":1}");
        match self.accept(raw, EventState::Routed, tasks).await {
            Receipt::New { event, tasks } => (event, tasks),
            other => panic!("a new event is expected, not {other:?}"),
        }
    }

    /// An event that wants one task.
    async fn event(&self, task: &TaskSeed) -> (TaskId, Meeting) {
        self.event_for(vec![task.clone()]).await.1[0]
    }

    async fn lease(&self, most: usize) -> Vec<LeasedTask> {
        self.store.lease(vec![(CRM.to_owned(), most)], kinds(), most).await.unwrap()
    }

    async fn lease_ids(&self, most: usize) -> Vec<TaskId> {
        self.lease(most).await.iter().map(LeasedTask::id).collect()
    }

    async fn lease_one(&self) -> LeasedTask {
        self.lease(1).await.pop().expect("a task is ready")
    }

    async fn settle(&self, task: LeasedTask, ending: Ending) -> Settled {
        self.store.settle(task, Settlement::new(ending, "")).await.unwrap()
    }

    /// Leases the next task and ends it so.
    async fn run_one(&self, ending: Ending) -> TaskId {
        let task = self.lease_one().await;
        let id = task.id();
        self.settle(task, ending).await;
        id
    }

    async fn reap(&self) -> usize {
        self.store.reap(notices()).await.unwrap()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            agreement::check(&self.store);
        }
    }
}

fn open(disk: &Disk, clock: &Arc<ManualClock>) -> Store {
    Store::inline(disk.clone(), Arc::<ManualClock>::clone(clock), Pauses::default()).unwrap()
}

/// What the writer works with, on a file at this place.
fn tools(clock: &Arc<ManualClock>, place: Place) -> Tools {
    Tools { clock: Arc::<ManualClock>::clone(clock), pauses: Pauses::default(), metrics: Arc::default(), place }
}

/// What one commit stores for a delivery of the shop.
fn shop_command(raw: RawDelivery, state: EventState, tasks: Vec<TaskSeed>) -> AcceptCommand {
    let tasks = tasks.into_iter().map(|seed| RoutedTask { seed, source_time: None });
    routed_command(raw, state, tasks.collect())
}

fn routed_command(raw: RawDelivery, state: EventState, tasks: Vec<RoutedTask>) -> AcceptCommand {
    let source = samples::shopify_source();
    let delivery = verify(&source, raw).expect("the signature is right");
    let reading = read(&source, &delivery);
    AcceptCommand::new(&delivery, &reading, state, TraceId::new(7), tasks, Vec::new())
}

fn sample(name: &str) -> RawDelivery {
    samples::recorded(&format!("shopify/{name}.headers"), &format!("shopify/{name}.json"))
}

/// The same delivery with another delivery id, which no signature covers.
fn under_id(mut raw: RawDelivery, webhook_id: &str) -> RawDelivery {
    raw.headers.retain(|(name, _)| name != "x-shopify-webhook-id");
    raw.headers.push(("x-shopify-webhook-id".to_owned(), Bytes::copy_from_slice(webhook_id.as_bytes())));
    raw
}

fn key(parts: &[&str]) -> Key {
    parts.iter().fold(KeyBuilder::new(), |key, part| key.part(part)).finish()
}

/// A task for the CRM about one order, in a lane of its own.
fn seed(order: &str, mode: Mode) -> TaskSeed {
    TaskSeed {
        name: "deal".to_owned(),
        kind: "deal".to_owned(),
        key: key(&["shop", "deal", order]),
        lane: key(&[CRM, order]),
        target: CRM.to_owned(),
        entity: order.to_owned(),
        mode,
        trace: TraceId::new(7),
    }
}

/// The same task in the lane of another order.
fn in_lane(seed: TaskSeed, lane: &str) -> TaskSeed {
    TaskSeed { lane: key(&[CRM, lane]), ..seed }
}

/// What tells a person of a dead task.
fn notice_of(dead: &str) -> TaskSeed {
    TaskSeed {
        name: "notice".to_owned(),
        kind: "notice".to_owned(),
        key: key(&["notice", dead]),
        lane: key(&["notices"]),
        ..seed(dead, ONCE)
    }
}

fn notices() -> NoticeFor {
    Box::new(|dead| Some(notice_of(&dead.entity)))
}

/// State, attempts, and the reason.
fn stands(task: &TaskView) -> (State, u32, Option<&str>) {
    (task.state, task.attempts.get(), task.reason.as_ref().map(crate::domain::ReasonCode::as_str))
}

/// The kinds that this build runs.
fn kinds() -> Vec<String> {
    ["deal", "notice"].map(str::to_owned).to_vec()
}
