//! The inner door: leases tasks, runs each in steps, settles them.
//!
//! Who is here: the dispatcher ([`Worker::run`]) leases what starts now and
//! owns every running task; one file a task kind does the work through
//! `effect`; the reaper voids the leases of earlier processes at the start.
//! Nothing here waits on a runtime timer: every wait goes through the `Clock`.
//!
//! A lease does not stop a frozen process from going on after it thawed; what
//! does is that settling needs the present token, and that a request leaves
//! only within seconds of its intent.

mod attempt;
mod contact;
mod deal;
mod dispatcher;
mod link;
mod note;
mod notice;
mod object;
mod order;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use dispatcher::Worker;

use crate::client::{Amocrm, Shop};
use crate::clock::SharedClock;
use crate::config::Config;
use crate::store::Store;
use crate::telemetry::Metrics;

/// What every task may use.
#[derive(Clone)]
pub struct Context {
    /// The data file.
    pub store: Store,
    /// Both clocks.
    pub clock: SharedClock,
    /// The checked configuration.
    pub config: Arc<Config>,
    /// The accounts that are changed, by target.
    pub accounts: BTreeMap<String, Amocrm>,
    /// The shops that can be read, by source.
    pub shops: BTreeMap<String, Shop>,
    /// Counters.
    pub metrics: Arc<Metrics>,
}
