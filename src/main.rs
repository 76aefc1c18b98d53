//! The `tambour` command.
fn main() {}
