//! tambour: a webhook inbox appliance.
//!
//! A tambour is the small room between an outer and an inner door; the two are
//! never open at once. The outer door takes deliveries in: it verifies raw
//! bytes, commits them durably, answers 2xx, and calls nobody. The inner door
//! leads to slow systems: tasks from the same file read the truth fresh, make
//! each outside change once, repeat with growing pauses, and hand a person what
//! only a person can decide.
//!
//! # The flow, and the type at each border
//!
//! ```text
//!  sender ─TLS▶ listener ─▶ ingress ──────────▶ store ──────────▶ worker ─▶ effect ─▶ client ─▶ CRM
//!               bytes       RawDelivery         AcceptCommand     LeasedTask  IntentDurable  Call
//!                           VerifiedDelivery    one commit        steps       Outcome        Answer
//!                           Reading (facts)     Accepted          Settlement
//!                           └ intake + rules: which tasks         └ rules: what the shop owns
//! ```
//!
//! # Layers: imports point down only (`tests/tidy.rs` holds it)
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | [`domain`] ids, time, keys, task arrows; [`telemetry`]; [`clock`] |
//! | 1 | [`config`], [`store`] (redb), [`source`] (one file a sender), [`client`] (one file a system we call), [`text`] |
//! | 2 | [`rules`] pure business, [`intake`], [`effect`] the crash-safe step, [`listener`] |
//! | 3 | [`ingress`], [`worker`], [`admin`], [`sandbox`]: they meet only in the store |
//! | 4 | [`server`]: composition and shutdown |
//! | 5 | [`cli`]: one file or folder a command |
//!
//! # Invariants
//!
//! 1. No 2xx before the commit that stores the delivery is durable:
//!    [`store::Accepted`] is made only by a commit, the answer only from it.
//! 2. Nothing outside is changed without an intent on disk: a client's writing
//!    methods take [`store::IntentDurable`], which only the store makes.
//! 3. Three doors make tasks and no other: [`store::Store::accept`], the
//!    follow-ups of a settlement, and a person's replay. Each is one commit.
//! 4. Only `domain/task.rs` knows which task state may follow which.
//! 5. An ended task, a spent key or a stored outcome is never taken as proof
//!    that a thing exists outside when the outside can be asked.
//!
//! # Where to start
//!
//! What a delivery meets: `ingress/door.rs`. What is stored: `store/schema.rs`.
//! When a task runs: `domain/task.rs`, then `worker/dispatcher.rs`. How a change
//! happens once: `effect/mod.rs`. What an order does to a deal: `worker/deal.rs`
//! and `rules/ownership.rs`. All of it running: `cli/demo`.
//!
//! # What it is not
//!
//! Not a message broker, not a multi-tenant cloud, not a workflow language.

pub mod admin;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod domain;
pub mod effect;
pub mod ingress;
pub mod intake;
pub mod listener;
pub mod rules;
pub mod sandbox;
pub mod server;
pub mod source;
pub mod store;
pub mod systemd;
pub mod telemetry;
pub mod text;
pub mod worker;
