//! The whole appliance, from the outside.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that meets the unexpected must fail, and says what helps"
)]

/// The appliance in one thread, with a clock that the test moves.
mod rig;

/// A replica does not show yet what exists.
mod absent;
/// Every kind of answer that is no success.
mod answers;
/// Odd bytes, from the door to the CRM.
mod bytes;
/// The process dies on every line that matters.
mod crash;
/// Bits of the data file flip.
mod damage;
/// The power fails, and the disk with it.
mod disk;
/// A flood of one source leaves the others their part.
mod flood;
/// Search lags behind creates, and answers are lost.
mod lag;
/// What the log says when a person must act.
mod logs;
/// A deal on its stage gets one note.
mod notes;
/// What people do in the CRM, and what is theirs.
mod people;
/// The same delivery, event, id or person again.
mod repeats;
/// Every recorded delivery through the door.
mod samples;
/// Orders read fresh from the shop.
mod shop_api;
/// The disk, or the opening, takes longer than a sender waits.
mod slow;
/// The states of one order in any order.
mod versions;

/// The real binary as a child process.
mod process;
