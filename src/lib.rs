//! tambour
pub mod domain;
