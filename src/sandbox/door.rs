//! The one way in for calls: limits, token, rate, fault, then the work.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::clock::SharedClock;
use crate::sandbox::desk::{Desk, Moment};
use crate::sandbox::faults::{Fault, Faults, Rule, Switches, When};
use crate::sandbox::message::{Reply, Request};
use crate::sandbox::operation::Operation;
use crate::sandbox::random::SplitMix;
use crate::sandbox::settings::Settings;
use crate::sandbox::world::World;
use crate::sandbox::{amocrm, control, shop};

/// A request body's most bytes, so that a mistaken client cannot fill memory; more is answered with 413.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The emulated systems; a clone is another handle on the same ones.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    clock: SharedClock,
    settings: Settings,
    state: Mutex<State>,
    /// How many calls of each operation were handled.
    calls: watch::Sender<BTreeMap<Operation, u64>>,
    /// How many releases there were.
    releases: watch::Sender<u64>,
}

pub(super) struct State {
    pub(super) world: World,
    pub(super) switches: Switches,
    random: SplitMix,
}

impl Sandbox {
    /// An account and a shop with nothing in them yet.
    pub fn new(clock: SharedClock, settings: Settings) -> Self {
        let random = SplitMix::seeded(settings.seed);
        let state = Mutex::new(State { world: World::new(), switches: Switches::default(), random });
        let (calls, releases) = (watch::Sender::default(), watch::Sender::default());
        Self { inner: Arc::new(Inner { clock, settings, state, calls, releases }) }
    }

    /// Handles one call to its end; how the answer travels is for the caller to carry out.
    pub fn handle(&self, request: &Request) -> Reply {
        if request.body().len() > BODY_BYTES_MAX {
            return amocrm::too_large();
        }
        if let Some(command) = request.path().strip_prefix("/_sandbox/") {
            return control::handle(self, command, request);
        }
        let Some(call) = Call::of(request) else { return amocrm::no_such_path() };
        let reply = self.work(&call, request);
        self.inner.calls.send_modify(|calls| *calls.entry(call.operation()).or_default() += 1);
        reply
    }

    fn work(&self, call: &Call, request: &Request) -> Reply {
        let now = self.moment();
        let settings = &self.inner.settings;
        let mut state = self.state();
        let State { world, switches, random } = &mut *state;
        if !call.may_enter(settings, request) {
            return call.unauthorized();
        }
        if matches!(call, Call::Amocrm(_)) && !switches.admit(now.at) {
            return amocrm::too_many(None);
        }
        let fault = switches.pick(call.operation(), random);
        let mut desk = Desk { settings, world, lags: switches.lags(), now, request };
        let mut done = || call.answer(&mut desk);
        match fault {
            Some(fault) => fault.answer(call.operation(), done),
            None => done(),
        }
    }

    /// Replaces all fault switches; the default switches everything off.
    pub fn set_faults(&self, faults: Faults) {
        self.state().switches.set(faults);
    }

    /// Adds a rule to those that are set.
    pub fn inject(&self, operation: Operation, when: When, fault: Fault) {
        self.state().switches.add(Rule { operation, when, fault });
    }

    /// Lets every answer go that is withheld now.
    pub fn release(&self) {
        self.inner.releases.send_modify(|releases| *releases += 1);
    }

    /// Returns once `operation` was handled `count` times, refusals and faults included.
    pub async fn seen(&self, operation: Operation, count: u64) {
        let mut calls = self.inner.calls.subscribe();
        let is_enough = |calls: &BTreeMap<Operation, u64>| calls.get(&operation).is_some_and(|&seen| seen >= count);
        calls.wait_for(is_enough).await.expect("the sender lives as long as self");
    }

    pub(super) fn calls(&self) -> BTreeMap<Operation, u64> {
        self.inner.calls.borrow().clone()
    }

    pub(super) fn releases(&self) -> watch::Receiver<u64> {
        self.inner.releases.subscribe()
    }

    pub(super) fn clock(&self) -> &SharedClock {
        &self.inner.clock
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { wall: self.inner.clock.now(), at: self.inner.clock.monotonic() }
    }

    /// The state; each call and each act changes it as a whole, so a lock that a panic left is good.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("subdomain", &self.inner.settings.subdomain).finish_non_exhaustive()
    }
}

/// A call that one of the two systems understands.
enum Call {
    Amocrm(amocrm::Route),
    Shop,
}

impl Call {
    fn of(request: &Request) -> Option<Self> {
        if let Some(path) = request.path().strip_prefix("/api/v4/") {
            return amocrm::Route::of(request.method(), path).map(Self::Amocrm);
        }
        shop::is_graphql(request).then_some(Self::Shop)
    }

    fn operation(&self) -> Operation {
        match self {
            Self::Amocrm(route) => route.operation,
            Self::Shop => Operation::OrderGet,
        }
    }

    fn may_enter(&self, settings: &Settings, request: &Request) -> bool {
        match self {
            Self::Amocrm(_) => {
                let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
                bearer == Some(settings.amocrm_token.as_str())
            }
            Self::Shop => request.header("x-shopify-access-token") == Some(settings.shop_token.as_str()),
        }
    }

    fn unauthorized(&self) -> Reply {
        match self {
            Self::Amocrm(_) => amocrm::unauthorized(),
            Self::Shop => shop::unauthorized(),
        }
    }

    fn answer(&self, desk: &mut Desk<'_>) -> Reply {
        match self {
            Self::Amocrm(route) => route.answer(desk),
            Self::Shop => shop::answer(desk),
        }
    }
}
