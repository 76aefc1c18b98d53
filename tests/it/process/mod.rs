//! The real binary as a child process: real TLS, real fsync, real SIGKILL, real HTTP to the sandbox.

mod answers;
mod cli;
mod crash;
mod door;
mod file;
mod fixture;
mod kills;
mod refusals;
mod restart;

pub(crate) use fixture::within;
