//! tambour
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
pub mod source;
pub mod store;
pub mod telemetry;
pub mod text;
pub mod worker;
