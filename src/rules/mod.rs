//! The pure business: which event starts what, what an order is, what a deal gets.
//!
//! Everything here maps values to values. An order is read from either form in
//! which the shop gives it ([`Order`]); [`new_deal`] says what its deal is made
//! with and [`changes`] what the shop may still change in it. What cannot be
//! done comes back as a refusal with a text for people; no input makes a rule
//! panic, and no error holds a customer's data.

mod compare;
mod condition;
mod customer;
mod deal;
mod lines;
mod order;
mod ownership;
mod read_order;
mod refusal;
#[cfg(test)]
mod samples;

pub use condition::{holds, route_matches};
pub use customer::{Customer, customer_of};
pub use deal::{CustomField, DealFields, marker, new_deal};
pub use lines::lines_note;
pub use order::{Order, OrderError, OrderLine};
pub use ownership::{Changes, DealPatch, DealSeen, Stage, changes};
pub use read_order::ORDER_FIELDS;
pub use refusal::DealRefusal;
