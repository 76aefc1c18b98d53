//! A transport for tests: gives prepared answers in order and keeps the calls.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use serde_json::Value;

use crate::client::{Amocrm, Answer, Call, Failure, Transport};
use crate::clock::ManualClock;
use crate::config::{AmocrmTarget, Secret, Target, TargetKind};
use crate::domain::Timestamp;

/// Prepared answers and the calls that took them.
#[derive(Debug)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Result<Answer, Failure>>>,
    calls: Mutex<Vec<Call>>,
}

impl Scripted {
    pub(super) fn answering(answers: impl IntoIterator<Item = Result<Answer, Failure>>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), calls: Mutex::new(Vec::new()) })
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The method and URL of each call.
    pub(super) fn lines(&self) -> Vec<String> {
        self.calls().iter().map(|call| format!("{} {}", call.method.as_str(), call.url)).collect()
    }

    /// The body of the last call.
    pub(super) fn last_body(&self) -> Value {
        serde_json::from_slice(&self.calls().last().unwrap().body).unwrap()
    }
}

impl Transport for Scripted {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Failure>> {
        self.calls.lock().unwrap().push(call);
        let answer = self.answers.lock().unwrap().pop_front().expect("the test prepared no further answer");
        future::ready(answer).boxed()
    }
}

/// The account of the recorded answers.
pub(super) fn amocrm(transport: &Arc<Scripted>) -> Amocrm {
    let target = Target {
        name: "crm".to_owned(),
        kind: TargetKind::Amocrm(AmocrmTarget {
            url: "https://tambourtest.amocrm.ru".to_owned(),
            account_id: 31_000_001,
            token: Secret::new("t0ken".to_owned()),
            responsible_user_id: 9_000_001,
            currency: "RUB".to_owned(),
        }),
        in_flight_max: 1,
        // Calls follow each other without a pause, since nobody moves the clock.
        calls_per_second: u32::MAX,
        timeout: Duration::from_secs(20),
        search_lag: Duration::from_mins(1),
        doubt_tail: Duration::from_secs(10),
    };
    let clock = ManualClock::starting_at(Timestamp::from_secs(1_796_036_400));
    Amocrm::new(&target, transport.clone(), clock, Arc::default())
}

/// An answer without headers.
pub(super) fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
    Answer { status, headers: Vec::new(), body: body.into() }
}

/// A recorded body from `tests/data`.
pub(super) fn sample(path: &str) -> Bytes {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)).unwrap().into()
}
