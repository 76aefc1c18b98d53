//! One account outside: where it is, and how a call to it is paced, made and judged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::client::classify::{Asked, answer_class, failure_class};
use crate::client::limits::Limits;
use crate::client::{Answer, Call, Method, SharedTransport};
use crate::clock::SharedClock;
use crate::config::Secret;
use crate::domain::Refusal;
use crate::telemetry::Metrics;

const TOO_MANY_CALLS: u16 = 429;

/// An account outside.
#[derive(Debug)]
pub(super) struct Peer {
    /// The API's address without a trailing slash.
    pub(super) url: String,
    /// The header that proves who we are, in lower case, and its value.
    pub(super) credential: (&'static str, Secret),
    /// The longest wait for one call.
    pub(super) timeout: Duration,
    pub(super) limits: Limits,
    pub(super) transport: SharedTransport,
    pub(super) clock: SharedClock,
    /// The configured name, for metrics.
    pub(super) name: String,
    pub(super) metrics: Arc<Metrics>,
}

impl Peer {
    /// Makes one call and brings a 2xx.
    ///
    /// A change ends within `timeout`, the wait for its turn included, because
    /// its intent is on disk already and the wait before a doubt is settled
    /// counts from there. One whose turn comes too late is not sent.
    pub(super) async fn send(
        &self,
        asked: Asked,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Refusal> {
        let outcome = self.attempt(asked, method, path, body).await;
        self.metrics.called(&self.name, asked.as_str(), outcome.as_ref().err());
        outcome
    }

    async fn attempt(&self, asked: Asked, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Refusal> {
        let begun = self.clock.monotonic();
        let patience = if asked == Asked::Change { self.timeout / 2 } else { Duration::MAX };
        let Some(permit) = self.limits.enter(patience).await else {
            let after = Some(self.limits.pause_left()).filter(|left| !left.is_zero());
            let text = "the call was not sent: its turn came too late under the account's rate".to_owned();
            return Err(Refusal::Retry { after, text });
        };
        let mut call = self.call_for(method, path, body);
        if asked == Asked::Change {
            call.timeout -= self.clock.monotonic().since(begun);
        }
        let answer = self.transport.call(call).await.map_err(|failure| failure_class(asked, &failure))?;
        drop(permit);
        let class = answer_class(asked, &answer, self.clock.now());
        if answer.status == TOO_MANY_CALLS {
            self.limits.slow_down(class.as_ref().err().and_then(Refusal::after));
        }
        class.map(|()| answer)
    }

    fn call_for(&self, method: Method, path: &str, body: Option<&Value>) -> Call {
        let (name, value) = &self.credential;
        let mut headers = vec![((*name).to_owned(), value.expose().to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Call {
            method,
            url: format!("{}{path}", self.url),
            headers,
            body: body.map(|json| Bytes::from(json.to_string())).unwrap_or_default(),
            timeout: self.timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::client::Failure;
    use crate::client::scripted::{Scripted, answer};
    use crate::clock::ManualClock;
    use crate::domain::Timestamp;

    fn peer(transport: &Arc<Scripted>, clock: &Arc<ManualClock>) -> Peer {
        Peer {
            url: "https://crm.example.com".to_owned(),
            credential: ("authorization", Secret::new("Bearer t0ken".to_owned())),
            timeout: Duration::from_secs(20),
            limits: Limits::new(1, 1, clock.clone()),
            transport: transport.clone(),
            clock: clock.clone(),
            name: "crm".to_owned(),
            metrics: Arc::default(),
        }
    }

    #[tokio::test]
    async fn a_change_that_waited_has_less_time_and_one_that_waited_long_is_not_sent() {
        let transport = Scripted::answering([(); 4].map(|()| Ok(answer(200, "{}"))));
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let peer = peer(&transport, &clock);
        for waits in [0, 1, 11] {
            let mut sent = Box::pin(peer.send(Asked::Change, Method::Post, "/leads", Some(&Value::Null)));
            if waits > 0 {
                assert!(sent.as_mut().now_or_never().is_none());
                clock.advance(Duration::from_secs(waits));
            }
            let outcome = sent.await;
            assert_eq!(outcome.is_ok(), waits < 11, "{outcome:?}");
        }
        let read = || peer.send(Asked::List, Method::Get, "/leads", None);
        read().await.unwrap();
        let mut read = Box::pin(read());
        assert!(read.as_mut().now_or_never().is_none());
        clock.advance(Duration::from_secs(11));
        read.await.unwrap();
        let timeouts: Vec<u64> = transport.calls().iter().map(|call| call.timeout.as_secs()).collect();
        assert_eq!(timeouts, [20, 19, 20, 20], "a read may wait");
    }

    #[tokio::test]
    async fn a_429_slows_the_next_call_and_a_failure_gives_the_place_back() {
        let answers = [Ok(answer(429, "")), Err(Failure::Lost("cut".to_owned())), Ok(answer(200, "{}"))];
        let transport = Scripted::answering(answers);
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let peer = peer(&transport, &clock);
        let read = || peer.send(Asked::List, Method::Get, "/account", None);
        read().await.unwrap_err();
        clock.advance(Duration::from_secs(1));
        read().await.unwrap_err();
        let mut third = Box::pin(read());
        clock.advance(Duration::from_secs(1));
        assert!(third.as_mut().now_or_never().is_none(), "half the rate is a call in two seconds");
        clock.advance(Duration::from_secs(1));
        third.await.unwrap();
    }

    /// B37: the pause that one call was asked for holds for the whole account.
    #[tokio::test]
    async fn a_429_with_a_wish_stops_every_call() {
        let asked_to_wait = || {
            let mut answer = answer(429, "");
            answer.headers.push(("retry-after".to_owned(), "120".to_owned()));
            answer
        };
        let transport = Scripted::answering([Ok(asked_to_wait()), Ok(answer(200, "{}"))]);
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let peer = peer(&transport, &clock);
        let read = || peer.send(Asked::List, Method::Get, "/account", None);
        read().await.unwrap_err();
        let change = peer.send(Asked::Change, Method::Post, "/leads", Some(&Value::Null)).await.unwrap_err();
        assert_eq!(change.after(), Some(Duration::from_secs(120)), "{change}");
        let mut waits = Box::pin(read());
        for passed in [0, 119] {
            clock.advance(Duration::from_secs(passed));
            assert!(waits.as_mut().now_or_never().is_none());
        }
        assert_eq!(transport.lines().len(), 1);
        clock.advance(Duration::from_secs(1));
        waits.await.unwrap();
    }

    #[test]
    fn debug_shows_no_credential() {
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let shown = format!("{:?}", peer(&Scripted::answering([]), &clock));
        assert!(!shown.contains("t0ken"), "{shown}");
    }
}
