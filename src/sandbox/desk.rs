//! What one call works on.

use crate::domain::{Monotonic, Timestamp};
use crate::sandbox::faults::Lags;
use crate::sandbox::message::Request;
use crate::sandbox::settings::Settings;
use crate::sandbox::world::World;

/// The moment of a call or of a person's act, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// For what the system writes down.
    pub(super) wall: Timestamp,
    /// For lags.
    pub(super) at: Monotonic,
}

/// One call with everything it may look at or change.
pub(super) struct Desk<'a> {
    pub(super) settings: &'a Settings,
    pub(super) world: &'a mut World,
    pub(super) lags: Lags,
    pub(super) now: Moment,
    pub(super) request: &'a Request,
}
