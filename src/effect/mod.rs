//! The crash-safe step: search, intent, change, outcome.
//!
//! Two shapes, [`Steps::create`] and [`Steps::set`], used by every room that
//! changes anything outside; nobody else calls a client's writing methods. The
//! file is the memory: whatever line the process dies on, the next comer finds
//! the intent, waits out the doubt, looks, and records what it sees.
//!
//! ```text
//! create: known? ─ yes ▶ trust it until a read says gone
//!            │ no
//!            ▼ open intent? held ▶ Wait; in doubt ▶ Wait for the rest of it
//!            ▼ search: one hit ▶ record it; two ▶ ambiguous
//!            │ none          (gone before ▶ deleted outside, a person decides)
//!            ▼ intent, durable ▶ send ▶ outcome, durable
//!                                  └ no answer ▶ Unknown, the intent stays open
//! set:    open intent? held ▶ Wait; in doubt ▶ Wait, then the caller reads and decides anew
//!            ▼ intent, durable ▶ send ▶ outcome, durable
//! ```

mod crash;
mod doubt;
mod marker;
mod stop;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use crash::crash_point;
pub use marker::text_marker;
pub use stop::Stop;

use crate::clock::SharedClock;
use crate::domain::{IntentId, ReasonCode, Refusal};
use crate::store::{Holder, IntentDurable, IntentSpec, ObjectRef, Opening, Outcome, Shape, Store, Version};
use crate::telemetry::Metrics;
use doubt::remaining;

/// How long others wait for an intent whose holder lives.
const HELD_PAUSE: Duration = Duration::from_secs(2);

/// A request leaves soon after its intent or not at all: a process that was
/// frozen in between may have lost its place.
const SEND_WITHIN: Duration = Duration::from_secs(10);

/// Something that can be looked for outside.
pub trait Searchable: Sync {
    /// Which object.
    fn object(&self) -> &ObjectRef;

    /// External ids of all objects that are exactly this one.
    fn search(&self) -> impl Future<Output = Result<Vec<String>, Refusal>> + Send;
}

/// Something that is made once outside.
pub trait Creatable: Searchable {
    /// What is applied once it exists, where the object has versions.
    fn version(&self) -> Option<Version>;

    /// The reads it was decided on and the request, kept beside the intent.
    fn evidence(&self) -> serde_json::Value;

    /// Makes it; gives its external id.
    fn send(&self, proof: &IntentDurable) -> impl Future<Output = Result<String, Refusal>> + Send;
}

/// Fields that are set outside.
pub trait Settable: Sync {
    /// Which object.
    fn object(&self) -> &ObjectRef;

    /// The object's external id.
    fn external_id(&self) -> String;

    /// What is applied once it happened.
    fn version(&self) -> Version;

    /// The reads it was decided on and the request, kept beside the intent.
    fn evidence(&self) -> serde_json::Value;

    /// Sets them.
    fn send(&self, proof: &IntentDurable) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// How an object came to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// This step made it.
    Made(String),
    /// It was there: from an earlier attempt, or made by somebody else.
    Found(String),
}

impl Created {
    /// The object's id outside.
    pub fn external_id(&self) -> &str {
        match self {
            Self::Made(id) | Self::Found(id) => id,
        }
    }
}

/// What a look came to.
#[derive(Debug)]
pub enum Look {
    /// It exists, with this id.
    Found(String),
    /// It does not.
    Absent(Absent),
}

/// Says that an object was searched for and not found, with the doubts that this settles.
#[derive(Debug)]
pub struct Absent {
    doubts: Doubts,
}

/// Open intents of ended attempts on an object, old enough to be looked after.
///
/// Two keys of one object may be in doubt by two intents.
#[derive(Debug)]
pub struct Doubts(Vec<IntentId>);

/// Takes the steps of one attempt of one task.
#[derive(Clone)]
pub struct Steps {
    store: Store,
    clock: SharedClock,
    metrics: Arc<Metrics>,
    holder: Holder,
    /// Names the task kind in crash points.
    kind: String,
    doubt_wait: Duration,
}

impl Steps {
    /// For one holder; `kind` is the task's kind and `doubt_wait` the target's.
    pub fn new(
        store: Store,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        holder: Holder,
        kind: &str,
        doubt_wait: Duration,
    ) -> Self {
        Self { store, clock, metrics, holder, kind: kind.to_owned(), doubt_wait }
    }

    /// Makes the object unless it exists, in our file or outside.
    ///
    /// # Errors
    /// [`Stop`] says how the attempt ends.
    pub async fn create<C: Creatable>(&self, subject: &C) -> Result<Created, Stop> {
        match self.look(subject).await? {
            Look::Found(id) => Ok(Created::Found(id)),
            Look::Absent(absent) => self.make(subject, absent).await.map(Created::Made),
        }
    }

    /// Looks for the object: in our file, then outside.
    ///
    /// # Errors
    /// [`Stop`] says how the attempt ends.
    pub async fn look<S: Searchable>(&self, subject: &S) -> Result<Look, Stop> {
        let object = subject.object();
        let view = self.store.view()?.object(object)?;
        if let Some(id) = view.external_id() {
            if !view.is_known_under_all_keys() {
                self.store.record_found(object.clone(), id.to_owned()).await?;
            }
            return Ok(Look::Found(id.to_owned()));
        }
        let doubts = self.doubts(object)?;
        let hits = subject.search().await?;
        self.crash_point(object, "searched");
        match hits.as_slice() {
            [] if view.is_gone() => Err(Stop::Dead {
                reason: ReasonCode::DELETED_OUTSIDE,
                text: format!("the {} was deleted outside after tambour made it", object.kind),
            }),
            [] => Ok(Look::Absent(Absent { doubts })),
            [id] => {
                self.found(object, doubts, id).await?;
                Ok(Look::Found(id.clone()))
            }
            [..] => Err(Stop::Dead {
                reason: ReasonCode::AMBIGUOUS,
                text: format!("{} {}s carry the same marker: {}", hits.len(), object.kind, hits.join(", ")),
            }),
        }
    }

    async fn found(&self, object: &ObjectRef, doubts: Doubts, id: &str) -> Result<(), Stop> {
        for doubt in doubts.0 {
            self.store.record_outcome(doubt, Outcome::Applied { external_id: id.to_owned() }).await?;
        }
        self.store.record_found(object.clone(), id.to_owned()).await?;
        Ok(())
    }

    /// Makes an object that a look has not found; gives its external id.
    ///
    /// # Errors
    /// [`Stop`] says how the attempt ends.
    pub async fn make<C: Creatable>(&self, subject: &C, absent: Absent) -> Result<String, Stop> {
        let object = subject.object();
        let spec = IntentSpec {
            object: object.clone(),
            shape: Shape::Create,
            version: subject.version(),
            replaces: absent.doubts.0,
            evidence: subject.evidence().to_string().into_bytes(),
        };
        let proof = self.open(spec).await?;
        self.crash_point(object, "intent");
        let sent = subject.send(&proof).await;
        self.crash_point(object, "sent");
        let external_id = self.outcome(object, &proof, sent, |id| id.clone()).await?;
        self.crash_point(object, "outcome");
        Ok(external_id)
    }

    /// The doubts about an object, once their wait is over; usually none.
    ///
    /// # Errors
    /// [`Stop::Wait`] while another holds the object or a doubt is too young to look.
    pub fn doubts(&self, object: &ObjectRef) -> Result<Doubts, Stop> {
        let view = self.store.view()?.object(object)?;
        let mut doubts = Vec::new();
        for open in view.opens() {
            if open.is_held && Some(open.task) != self.holder.task() {
                return Err(Stop::Wait {
                    pause: HELD_PAUSE,
                    text: format!("task {} is changing the same {}", open.task, object.kind),
                });
            }
            let pause = remaining(open.opened, self.clock.monotonic(), self.doubt_wait);
            if !pause.is_zero() {
                let text = format!(
                    "intent {} on the {} is in doubt; it is looked for when its wait is over",
                    open.id, object.kind
                );
                return Err(Stop::Wait { pause, text });
            }
            if !doubts.contains(&open.id) {
                doubts.push(open.id);
            }
        }
        Ok(Doubts(doubts))
    }

    /// Ends doubts after a look that found nothing left to change.
    ///
    /// # Errors
    /// [`Stop`] when the file takes no more writes.
    pub async fn close_doubts(&self, doubts: Doubts) -> Result<(), Stop> {
        for doubt in doubts.0 {
            self.store.record_outcome(doubt, Outcome::Closed).await?;
        }
        Ok(())
    }

    /// Sets fields; `doubts` are the ones that the caller has looked after.
    ///
    /// # Errors
    /// [`Stop`] says how the attempt ends.
    pub async fn set<S: Settable>(&self, subject: &S, doubts: Doubts) -> Result<(), Stop> {
        let object = subject.object();
        let spec = IntentSpec {
            object: object.clone(),
            shape: Shape::Set,
            version: Some(subject.version()),
            replaces: doubts.0,
            evidence: subject.evidence().to_string().into_bytes(),
        };
        let proof = self.open(spec).await?;
        self.crash_point(object, "set-intent");
        let sent = subject.send(&proof).await;
        self.crash_point(object, "set-sent");
        self.outcome(object, &proof, sent, |()| subject.external_id()).await?;
        self.crash_point(object, "set-outcome");
        Ok(())
    }

    /// Writes that a read found the object gone, so that it is searched for again.
    ///
    /// # Errors
    /// [`Stop`] when the file takes no more writes.
    pub async fn gone(&self, object: &ObjectRef) -> Result<(), Stop> {
        self.store.record_gone(object.clone()).await?;
        Ok(())
    }

    /// Takes an object that the caller found by other means.
    ///
    /// # Errors
    /// [`Stop`] when the file takes no more writes.
    pub async fn adopt(&self, object: &ObjectRef, external_id: &str) -> Result<(), Stop> {
        self.store.record_found(object.clone(), external_id.to_owned()).await?;
        Ok(())
    }

    async fn open(&self, spec: IntentSpec) -> Result<IntentDurable, Stop> {
        let kind = spec.object.kind;
        let proof = match self.store.open_intent(self.holder, spec).await? {
            Opening::Durable(proof) => proof,
            Opening::StaleLease => return Err(Stop::Lost("the lease ran out before the change was sent".to_owned())),
            Opening::Busy => {
                return Err(Stop::Wait {
                    pause: HELD_PAUSE,
                    text: format!("another task is changing the same {kind}"),
                });
            }
        };
        if self.clock.monotonic().since(proof.opened()) > SEND_WITHIN {
            let text = "not sent: the process stood still after the intent".to_owned();
            self.store.record_outcome(proof.id(), Outcome::Refused { text: text.clone() }).await?;
            return Err(Stop::Lost(text));
        }
        Ok(proof)
    }

    /// Writes what a change came to; gives the external id or how the attempt ends.
    async fn outcome<T>(
        &self,
        object: &ObjectRef,
        proof: &IntentDurable,
        sent: Result<T, Refusal>,
        external_id: impl Fn(&T) -> String,
    ) -> Result<String, Stop> {
        let outcome = match &sent {
            Ok(answer) => Outcome::Applied { external_id: external_id(answer) },
            Err(Refusal::Unknown { text }) => Outcome::Unknown { text: text.clone() },
            Err(refusal) => Outcome::Refused { text: refusal.text().to_owned() },
        };
        self.metrics.effect_ended(&object.target, outcome.as_str());
        self.store.record_outcome(proof.id(), outcome).await?;
        match sent {
            Ok(answer) => Ok(external_id(&answer)),
            Err(Refusal::Unknown { text }) => Err(Stop::Retry { after: Some(self.doubt_wait), text }),
            Err(refusal) => Err(refusal.into()),
        }
    }

    fn crash_point(&self, object: &ObjectRef, boundary: &str) {
        crash_point(&format!("{}/{}/{boundary}", self.kind, object.kind));
    }
}
