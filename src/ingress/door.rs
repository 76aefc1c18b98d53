//! The handler of deliveries.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{HeaderMap, Method, Request, Response};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::clock::SharedClock;
use crate::config::{Config, Source};
use crate::domain::{Monotonic, NameKind, TraceId};
use crate::ingress::quota::{Admission, Over, Share, shares};
use crate::ingress::refusals::Refusals;
use crate::ingress::reply::Reply;
use crate::intake::Intake;
use crate::listener::{BodyError, Service, discard};
use crate::source::{RawDelivery, Refused, VerifiedDelivery, causes_of_wrong_signature, read, verify};
use crate::store::{Accepted, Error, EventState, Receipt, Store};
use crate::telemetry::{AcceptedAs, Metrics, SOURCE_UNKNOWN, new_trace_id};

/// One delivery may meet thousands of tasks; its log line names these first ones.
const TASKS_LOGGED_MAX: usize = 8;

/// What the door needs once the file is open.
#[derive(Clone)]
pub struct Inbox {
    /// The data file.
    pub store: Store,
    /// Routes with their live moments.
    pub intake: Intake,
}

/// The door; plugged into the listener.
#[derive(Clone)]
pub struct Door {
    config: Arc<Config>,
    clock: SharedClock,
    metrics: Arc<Metrics>,
    shares: Arc<BTreeMap<String, Share>>,
    refusals: Refusals,
    inbox: watch::Receiver<Option<Inbox>>,
}

impl Door {
    /// `inbox` holds `None` until the file is open.
    pub fn new(
        config: Arc<Config>,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        inbox: watch::Receiver<Option<Inbox>>,
    ) -> Self {
        let shares = Arc::new(shares(&config.sources));
        let refusals = Refusals::new(clock.clone(), metrics.clone());
        Self { config, clock, metrics, shares, refusals, inbox }
    }

    /// What it refused; somebody must write that down.
    pub fn refusals(&self) -> Refusals {
        self.refusals.clone()
    }

    async fn answer(&self, request: Request<Incoming>, peer: IpAddr) -> Reply {
        let Some((source, share)) = self.source_of(request.uri().path()) else {
            self.metrics.delivery_answered(SOURCE_UNKNOWN, Reply::NotFound.status().as_u16());
            return Reply::NotFound;
        };
        let reply = match *request.method() {
            Method::GET | Method::HEAD => Reply::Probe,
            Method::POST => self.deliver(source, share, request, peer).await,
            _ => Reply::MethodNotAllowed,
        };
        self.metrics.delivery_answered(&source.name, reply.status().as_u16());
        if let Some(reason) = reply.may_lose() {
            self.refusals.refused(&source.name, reason);
        }
        reply
    }

    /// The source of an address, its present one or its first, with its share, if the token in it is right.
    fn source_of(&self, path: &str) -> Option<(&Source, &Share)> {
        let path = path.strip_prefix("/in/")?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let (name, token) = path.split_once('/').map_or((path, None), |(name, token)| (name, Some(token)));
        let source = self.config.sources.get(self.config.names.in_keys(NameKind::Source, name))?;
        let is_right = match (&source.address_token, token) {
            (None, None) => true,
            (Some(wanted), Some(token)) => bool::from(wanted.expose().as_bytes().ct_eq(token.as_bytes())),
            _ => false,
        };
        is_right.then_some((source, self.shares.get(&source.name)?))
    }

    async fn deliver(&self, source: &Source, share: &Share, request: Request<Incoming>, peer: IpAddr) -> Reply {
        let deadline = self.clock.monotonic().plus(source.answer_within);
        let delivery = match self.receive(source, share, request, deadline).await {
            Ok(delivery) => delivery,
            Err(reply) => {
                tracing::info!(source = source.name, %peer, status = reply.status().as_u16(), "delivery refused");
                return reply;
            }
        };
        let Ok(trace) = new_trace_id() else { return Reply::Unavailable("the system gives no random numbers") };
        let span = tracing::info_span!("delivery", source = source.name, trace = %trace, %peer);
        async {
            tokio::select! {
                reply = self.accept(source, share, delivery, trace) => reply,
                () = self.clock.sleep_until(deadline) => self.late(),
            }
        }
        .instrument(span)
        .await
    }

    /// The answer to a delivery that was not committed in time.
    fn late(&self) -> Reply {
        if self.inbox.borrow().is_none() {
            tracing::warn!("the data file was not open in time");
            return Reply::Unavailable("the data file is being opened");
        }
        // The commit may still succeed; then the repeat is a duplicate.
        tracing::warn!("the commit was not done in time");
        Reply::Unavailable("the disk is slow")
    }

    /// Limits, then the whole body.
    async fn receive(
        &self,
        source: &Source,
        share: &Share,
        request: Request<Incoming>,
        deadline: Monotonic,
    ) -> Result<RawDelivery, Reply> {
        let (head, body) = request.into_parts();
        let within = deadline.since(self.clock.monotonic());
        let encoding = head.headers.get(CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            discard(body).await;
            return Err(Reply::Encoded);
        }
        let body =
            share.bodies().read_whole(body, source.body_bytes_max, within).await.map_err(|error| match error {
                BodyError::TooLarge { bytes_max } => Reply::TooLarge(bytes_max),
                BodyError::NoRoom => Reply::Unavailable("too many bodies of this source are held"),
                BodyError::TooSlow => Reply::TooSlow,
                BodyError::Broken => Reply::BrokenBody,
            })?;
        Ok(RawDelivery { headers: headers(&head.headers), body, received_at: self.clock.now() })
    }

    /// Verify, admit, read, commit.
    async fn accept(&self, source: &Source, share: &Share, raw: RawDelivery, trace: TraceId) -> Reply {
        let causes = causes_of_wrong_signature(source, &raw);
        let delivery = match verify(source, raw) {
            Ok(delivery) => delivery,
            Err(refused) => {
                tracing::warn!(reason = %refused, "delivery refused");
                return match refused {
                    Refused::Signature => {
                        if let Some(causes) = causes {
                            self.refusals.wrong_signature(&source.name, causes);
                        }
                        Reply::BadSignature
                    }
                    Refused::HeaderMissing(name) => Reply::HeaderMissing(name),
                };
            }
        };
        if let Some(label) = delivery.secret_label() {
            self.metrics.secret_verified(&source.name, label);
        }
        let admission = match share.admit(delivery.body().len(), self.clock.monotonic()) {
            Ok(admission) => admission,
            Err(Over { retry_after }) => {
                tracing::warn!("the source is over its quota");
                return Reply::over_quota(retry_after);
            }
        };
        let mut inbox = self.inbox.clone();
        let Ok(inbox) = inbox.wait_for(Option::is_some).await.map(|inbox| inbox.clone()) else {
            return Reply::Unavailable("the appliance is stopping");
        };
        let Some(inbox) = inbox else { return Reply::Unavailable("the data file is being opened") };
        self.refusals.verified(&source.name);
        self.commit(source, &inbox, &delivery, admission, trace).await
    }

    async fn commit(
        &self,
        source: &Source,
        Inbox { store, intake }: &Inbox,
        delivery: &VerifiedDelivery,
        mut admission: Admission<'_>,
        trace: TraceId,
    ) -> Reply {
        let reading = read(source, delivery);
        let command = intake.plan(delivery, &reading, trace);
        let state = command.state();
        admission.keep(true);
        // When the deadline passes, the command still waits and takes its room.
        let command = command.in_place((admission.place(), delivery.body().clone()));
        let accepted = store.accept(command).await;
        let is_new = accepted.as_ref().is_ok_and(|accepted| matches!(accepted.receipt(), Receipt::New { .. }));
        admission.keep(is_new);
        match accepted {
            Ok(accepted) => self.accepted(source, state, &accepted),
            Err(Error::Busy) => Reply::Unavailable("the inbox is full"),
            Err(Error::Stopped | Error::Read(_)) => Reply::Unavailable("the data file takes no writes"),
        }
    }

    /// The only way to a 2xx for a delivery: it takes what only a commit makes.
    fn accepted(&self, source: &Source, state: EventState, accepted: &Accepted) -> Reply {
        let accepted_as = match (accepted.receipt(), state) {
            (Receipt::Duplicate { .. }, _) => AcceptedAs::Duplicate,
            (Receipt::Conflict { .. }, _) | (_, EventState::Conflict) => AcceptedAs::Conflict,
            (_, EventState::Routed) => AcceptedAs::New,
            (_, EventState::Unrouted) => AcceptedAs::Unrouted,
            (_, EventState::Unreadable) => AcceptedAs::Unreadable,
            (_, EventState::Foreign) => AcceptedAs::Foreign,
        };
        self.metrics.delivery_accepted(&source.name, accepted_as);
        match accepted.receipt() {
            Receipt::New { event, tasks } => {
                let first: Vec<String> =
                    tasks.iter().take(TASKS_LOGGED_MAX).map(|(id, how)| format!("{id} {}", how.as_str())).collect();
                let (count, first) = (tasks.len(), first.join(", "));
                tracing::info!(%event, state = state.as_str(), task_count = count, tasks = first, "delivery accepted");
            }
            Receipt::Duplicate { event } => tracing::info!(%event, "delivery repeats a known one"),
            Receipt::Conflict { event } => {
                tracing::warn!(%event, "delivery repeats a known id with other content; a person should look");
            }
        }
        Reply::Accepted
    }
}

impl Service for Door {
    async fn call(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        self.answer(request, peer.ip()).await.into_response()
    }
}

fn headers(map: &HeaderMap) -> Vec<(String, Bytes)> {
    let owned = |value: &hyper::header::HeaderValue| Bytes::copy_from_slice(value.as_bytes());
    map.iter().map(|(name, value)| (name.as_str().to_owned(), owned(value))).collect()
}
