//! The checked configuration: nothing is optional that must exist.
//!
//! Made by `check.rs` from the raw file; every later room takes parts of this.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{LabelledSecret, Names, Network, Secret};
use crate::domain::{Mode, Pauses, Timestamp};
use crate::text::Template;

/// Everything that `serve` needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Language of every text that a manager or customer reads.
    pub language: Language,
    /// The folder of the data file, the socket and the lock; made if absent.
    pub data: PathBuf,
    /// The public door.
    pub listener: Listener,
    /// Loopback address of metrics and health.
    pub admin: SocketAddr,
    /// Who sends to us, by its name in keys, as all that follow.
    pub sources: BTreeMap<String, Source>,
    /// What we change.
    pub targets: BTreeMap<String, Target>,
    /// What is to be done.
    pub tasks: BTreeMap<String, Task>,
    /// Which event starts which task, in file order.
    pub routes: Vec<Route>,
    /// Tasks that run at the same time, over all targets.
    pub workers: usize,
    /// Pauses between attempts.
    pub pauses: Pauses,
    /// What had another name, and what is gone.
    pub names: Names,
}

impl Config {
    /// The task that tells people about a target's troubles; every target has one.
    pub fn notice_task(&self, target: &str) -> Option<&Task> {
        self.tasks.values().find(|task| task.target == target && matches!(task.kind, TaskKind::Notice(_)))
    }
}

/// The language of texts for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Russian.
    Ru,
    /// English.
    En,
}

/// The public door.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Who ends TLS.
    pub front: Front,
}

/// Who ends TLS, the door or somebody in front of it.
#[derive(Clone, Debug)]
pub enum Front {
    /// The door itself.
    Tls {
        /// PEM file of the certificate chain, leaf first.
        certificate: PathBuf,
        /// PEM file of the private key.
        key: PathBuf,
    },
    /// Proxies: the door speaks plain HTTP on a loopback or private address.
    Proxies {
        /// Whose word on a client's address is taken; at least one.
        trusted: Vec<Network>,
    },
}

/// A system that sends to us.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in keys and in the CRM field, and in the address `/in/<name>` too.
    pub name: String,
    /// Who sends, and how it proves itself.
    pub kind: SourceKind,
    /// The long random part of the address, where the sender signs nothing.
    pub address_token: Option<Secret>,
    /// A longer body is refused with 413.
    pub body_bytes_max: usize,
    /// Our own deadline for the answer: 70 % of the sender's.
    pub answer_within: Duration,
    /// What it may have of us; more is refused with 503.
    pub quota: Quota,
}

/// What one source may have of the appliance, so that the others keep their part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// New events in any hour.
    pub events_per_hour: u64,
    /// Bytes of their bodies in any day.
    pub bytes_per_day: u64,
    /// Verified deliveries that are worked on at the same time.
    pub inflight: usize,
}

/// Who sends, and how it proves itself.
#[derive(Clone, Debug)]
pub enum SourceKind {
    /// A Shopify shop: HMAC over the raw body.
    Shopify {
        /// `*.myshopify.com` domains in lower case; another shop's delivery is stored as foreign.
        shops: Vec<String>,
        /// Valid secrets, newest first.
        secrets: Vec<LabelledSecret>,
        /// Access for fresh reads; without it the newest stored body counts.
        api: Option<ShopApi>,
    },
    /// An amoCRM account: no signature, so the address token is the proof.
    Amocrm {
        /// The numeric account id; another account's delivery is stored as foreign.
        account_id: u64,
    },
}

/// Access to a shop's Admin GraphQL API.
#[derive(Clone, Debug)]
pub struct ShopApi {
    /// Base URL without a trailing slash; default `https://<first shop>`.
    pub url: String,
    /// API version, `2026-10`.
    pub version: String,
    /// The access token.
    pub token: Secret,
    /// The longest wait for one call.
    pub timeout: Duration,
}

/// A system that we change.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// What it is and how to reach it.
    pub kind: TargetKind,
    /// Calls in flight at the same time.
    pub in_flight_max: usize,
    /// Calls a second, over the whole external account.
    pub calls_per_second: u32,
    /// The longest wait for one call.
    pub timeout: Duration,
    /// How long a new object may stay invisible to search.
    pub search_lag: Duration,
    /// Added to time-out and search lag before a doubt is settled.
    pub doubt_tail: Duration,
}

impl Target {
    /// How long to wait before a doubtful change is looked for.
    pub fn doubt_wait(&self) -> Duration {
        self.timeout + self.search_lag + self.doubt_tail
    }
}

/// What a target is and how to reach it.
#[derive(Clone, Debug)]
pub enum TargetKind {
    /// amoCRM or Kommo.
    Amocrm(AmocrmTarget),
}

/// Access to an amoCRM account.
#[derive(Clone, Debug)]
pub struct AmocrmTarget {
    /// Base URL without a trailing slash: `https://<subdomain>.amocrm.ru`.
    pub url: String,
    /// The numeric account id; keys use it, never the subdomain.
    pub account_id: u64,
    /// A long-lived token.
    pub token: Secret,
    /// Who gets notices when a deal has no responsible user.
    pub responsible_user_id: u64,
    /// ISO 4217 code of the account's currency.
    pub currency: String,
}

/// A piece of work that routes can start.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name, part of keys.
    pub name: String,
    /// The target whose cap, rate and hold apply.
    pub target: String,
    /// What repeats do.
    pub mode: Mode,
    /// What is done.
    pub kind: TaskKind,
}

/// What is done.
#[derive(Clone, Debug)]
pub enum TaskKind {
    /// A shop order becomes a deal.
    Deal(Box<DealTask>),
    /// A deal on a stage gets one note.
    Note(NoteTask),
    /// A person is told.
    Notice(NoticeTask),
}

impl TaskKind {
    /// The word in records and lists.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Deal(_) => "deal",
            Self::Note(_) => "note",
            Self::Notice(_) => "notice",
        }
    }
}

/// Settings of a `deal` task.
#[derive(Clone, Debug)]
pub struct DealTask {
    /// The pipeline of new deals.
    pub pipeline_id: u64,
    /// The stage of new deals.
    pub status_id: u64,
    /// The responsible user of new deals; the target's default if absent.
    pub responsible_user_id: Option<u64>,
    /// The deal's name, from `order`.
    pub name: Template,
    /// Further fields that the shop owns.
    pub fields: Vec<FieldTemplate>,
    /// Stage moves that the shop may make.
    pub moves: Vec<Move>,
    /// What to do about a deal that a person may have made by hand.
    pub hand_made: HandMade,
    /// Whether orders of a test gateway make deals too (`false` in real life).
    pub test_orders: bool,
    /// Code of the CRM field with `<source>-<order id>`.
    pub field_id_code: String,
    /// Code of the CRM field with the order's `updated_at` that is applied.
    pub field_version_code: String,
    /// Code of the CRM field with the exact sum.
    pub field_total_code: String,
}

/// A CRM field filled from a template.
#[derive(Clone, Debug)]
pub struct FieldTemplate {
    /// The field's numeric id.
    pub field_id: u64,
    /// Its value, from `order`; an empty text clears the field.
    pub value: Template,
}

/// A stage move that the shop may make when the order has a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// `paid`, `cancelled`, `fulfilled`, `refunded`: the order's condition.
    pub when: String,
    /// Only from these stages; empty = from any stage but won and lost.
    pub from: Vec<u64>,
    /// To this stage of the deal's pipeline.
    pub to: u64,
}

/// What to do about a recent open deal of the same contact without our field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandMade {
    /// Make our own and tell the responsible user.
    Flag,
    /// Take it as the order's deal.
    Link,
}

/// Settings of a `note` task.
#[derive(Clone, Debug)]
pub struct NoteTask {
    /// The note's text, from `lead`, read fresh.
    pub text: Template,
    /// The deal must still be on one of these stages; empty = any.
    pub valid_in: Vec<u64>,
    /// What the integrator writes as the note's version; part of the key.
    pub version: String,
}

/// Settings of a `notice` task.
#[derive(Clone, Debug)]
pub struct NoticeTask {
    /// How long the person has, until the CRM task is due.
    pub due_in: Duration,
}

/// Which event starts which task.
#[derive(Clone, Debug)]
pub struct Route {
    /// The source's name.
    pub source: String,
    /// Event kinds: `orders/create`, `leads.status`.
    pub events: Vec<String>,
    /// All must hold.
    pub conditions: Vec<Condition>,
    /// The task's name.
    pub task: String,
    /// Acts only on entities created, or moves made, after it; absent = the
    /// moment the route first went live, which stands in the file.
    pub since: Option<Timestamp>,
}

/// A field of the item must be one of some values, numbers compared with tolerance for text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The item's field; dots go into objects.
    pub field: String,
    /// Any of these.
    pub any_of: Vec<String>,
}
