//! The file before it is believed: tables and values that know their line.
//!
//! A [`File`] is parsed into a top [`Section`]. A section hands out its values
//! by key; the keys it was asked for are the known ones, so a key that is read
//! cannot be forgotten in a list of known keys, and [`Section::finish`] reports
//! all others. A [`Value`] turns into a type of ours or reports why not.
//!
//! Nothing stops at the first problem. Where a value is missing or wrong, the
//! reader has a [`Reported`] instead, which only the list of problems gives
//! out; so a half-read configuration always has a problem that says why.

mod base_url;
mod file;
mod named;
mod quantity;
mod reference;
mod scalar;
mod section;
mod suggest;
mod value;

pub(super) use file::{File, Reported, Secrets};
pub(super) use named::{Named, NamedSection};
pub(super) use section::Section;
pub(super) use suggest::{did_you_mean, listed};
pub(super) use value::Value;
