//! One binary for whole-product tests.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail by panicking, and prints what helps")]

// The real binary as a child process.
mod process;
