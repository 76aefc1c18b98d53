//! The way from a process to the sandbox, without sockets; calls take time, and may never come back.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tambour::client::{Answer, Call, Failure, Transport};
use tambour::clock::Clock as _;
use tambour::sandbox::{Delivery, Reply, Request, Sandbox};

use crate::rig::clock::ProcessClock;
use crate::rig::life::Life;
use crate::rig::random::Random;

/// Where a call is cut short by the death of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It never reaches the other side.
    Before,
    /// It is carried out, and nobody is there to see the answer.
    After,
}

/// Answers some calls in place of the sandbox.
type Stranger = Box<dyn FnMut(&Call) -> Option<Result<Answer, Failure>> + Send>;

/// All that lies between processes and the sandbox; a clone is the same network.
#[derive(Clone)]
pub(crate) struct Network {
    crm: Sandbox,
    wires: Arc<Mutex<Wires>>,
}

#[derive(Default)]
struct Wires {
    /// `METHOD path` of every call that left.
    log: Vec<String>,
    /// Which call from now kills the process, counted from 1.
    cut: Option<(usize, Cut)>,
    /// What kills the process, wherever it stands in a URL.
    poison: Option<&'static str>,
    /// What makes a call panic, wherever it stands in a URL.
    mistake: Option<&'static str>,
    /// Decides how long each call is on its way; absent = no time at all.
    jitter: Option<Random>,
    stranger: Option<Stranger>,
}

/// The longest way of a call where chance decides.
const JITTER_MS: u64 = 400;

impl Network {
    pub(crate) fn to(crm: &Sandbox) -> Self {
        Self { crm: crm.clone(), wires: Arc::default() }
    }

    /// The way of one process.
    pub(crate) fn line(&self, clock: &ProcessClock, life: &Life) -> Arc<dyn Transport> {
        Arc::new(Line { network: self.clone(), clock: clock.clone(), life: life.clone() })
    }

    /// The process dies around the `nth` call from now.
    pub(crate) fn cut(&self, nth: usize, cut: Cut) {
        self.wires.lock().unwrap().cut = Some((nth, cut));
    }

    /// The process dies before any call that holds `text` in its URL.
    pub(crate) fn kill_on(&self, text: &'static str) {
        self.wires.lock().unwrap().poison = Some(text);
    }

    /// A mistake in our code: a call that holds `text` in its URL panics.
    pub(crate) fn panic_on(&self, text: &'static str) {
        self.wires.lock().unwrap().mistake = Some(text);
    }

    /// Whether the cut is still ahead.
    pub(crate) fn is_armed(&self) -> bool {
        self.wires.lock().unwrap().cut.is_some()
    }

    /// Each call takes a while that the seed decides.
    pub(crate) fn jitter(&self, seed: u64) {
        self.wires.lock().unwrap().jitter = Some(Random::seeded(seed));
    }

    /// From now on `stranger` is asked first; where it gives nothing the sandbox answers.
    pub(crate) fn intercept(&self, stranger: impl FnMut(&Call) -> Option<Result<Answer, Failure>> + Send + 'static) {
        self.wires.lock().unwrap().stranger = Some(Box::new(stranger));
    }

    /// The sandbox alone answers again.
    pub(crate) fn restore(&self) {
        self.wires.lock().unwrap().stranger = None;
    }

    /// `METHOD path` of every call so far, queries left out.
    pub(crate) fn log(&self) -> Vec<String> {
        self.wires.lock().unwrap().log.clone()
    }

    fn delay(&self) -> Duration {
        let mut wires = self.wires.lock().unwrap();
        wires.jitter.as_mut().map_or(Duration::ZERO, |chance| Duration::from_millis(chance.below(JITTER_MS)))
    }

    /// Writes the call down; says whether the process dies around it.
    fn enter(&self, call: &Call) -> Option<Cut> {
        let mut wires = self.wires.lock().unwrap();
        let path = call.url.splitn(4, '/').nth(3).unwrap_or_default().split('?').next().unwrap_or_default();
        wires.log.push(format!("{} /{path}", call.method.as_str()));
        if wires.poison.is_some_and(|poison| call.url.contains(poison)) {
            return Some(Cut::Before);
        }
        let (nth, cut) = wires.cut.take()?;
        if nth > 1 {
            wires.cut = Some((nth - 1, cut));
            return None;
        }
        Some(cut)
    }

    fn is_mistake(&self, call: &Call) -> bool {
        self.wires.lock().unwrap().mistake.is_some_and(|mistake| call.url.contains(mistake))
    }

    fn ask_stranger(&self, call: &Call) -> Option<Result<Answer, Failure>> {
        self.wires.lock().unwrap().stranger.as_mut().and_then(|stranger| stranger(call))
    }
}

#[derive(Clone)]
struct Line {
    network: Network,
    clock: ProcessClock,
    life: Life,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

impl Transport for Line {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Failure>> {
        let line = self.clone();
        Box::pin(async move { line.carry(call).await })
    }
}

impl Line {
    async fn carry(self, call: Call) -> Result<Answer, Failure> {
        let begun = self.clock.monotonic();
        self.clock.sleep(self.network.delay()).await;
        let cut = self.network.enter(&call);
        assert!(!self.network.is_mistake(&call), "a mistake that the test made on purpose");
        self.live_on(cut == Some(Cut::Before)).await;
        if let Some(answered) = self.network.ask_stranger(&call) {
            return answered;
        }
        let request = Request::new(call.method.as_str(), &call.url, call.headers, call.body);
        let Reply { status, headers, body, delivery } = self.network.crm.handle(&request);
        self.live_on(cut == Some(Cut::After)).await;
        let left = call.timeout.saturating_sub(self.clock.monotonic().since(begun));
        let late = match delivery {
            Delivery::Dropped => return Err(Failure::Lost("the connection was closed".to_owned())),
            Delivery::Whole => self.network.delay(),
            Delivery::Delayed(late) => late,
            Delivery::WithholdLastByte => Duration::MAX,
        };
        self.clock.sleep(late.min(left)).await;
        if late > left {
            return Err(Failure::Lost("timed out".to_owned()));
        }
        Ok(Answer { status, headers, body })
    }

    /// Never returns in a process that is dead, or dies here.
    async fn live_on(&self, dies: bool) {
        if dies {
            self.life.end();
        }
        if !self.life.lasts() {
            std::future::pending::<()>().await;
        }
    }
}
