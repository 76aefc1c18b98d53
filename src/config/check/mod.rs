//! From the raw file to the checked [`Config`](crate::config::Config): one file a table.
//!
//! Every function reads a whole table before it gives up, so that all problems
//! of a file are told at once.

mod event;
mod field;
mod load;
mod retire;
mod route;
mod source;
mod target;
mod task;

pub use load::{load, load_without_secrets};
