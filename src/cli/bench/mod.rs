//! `tambour bench`: what this machine can do, measured with the real parts.
//!
//! `accept` opens a stand of its own (listener with TLS, door, store on a
//! temporary file; never the live one), sends signed deliveries over loopback
//! and counts only what was answered 200, which means on disk. Load and server
//! share the machine, so a real sender finds more of it free.
//!
//! Everything is bounded: seconds, connections, deliveries, the size of what is replayed.

mod accept;
mod bodies;
mod disk;
mod disturb;
mod load;
mod report;
mod stand;
mod stats;

use crate::cli::Setting;
use crate::cli::error::Error;
use crate::cli::exit::Exit;

const HELP: &str = "\
Examples:
  tambour bench accept
  tambour bench accept --connections 64 --disturb --keep-alive";

/// Measure this machine
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Accept(accept::Args),
}

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    match args.what {
        What::Accept(args) => accept::run(args, setting).await,
    }
}
