//! `resume`: a held target works again.

use crate::admin::Request;
use crate::admin::view::Resumed;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::{Setting, print};

/// End the hold of a target, once its access is put right
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The target
    target: String,
}

const HELP: &str = "\
Examples:
  tambour status
  tambour resume crm";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let resumed: Resumed = ask_once(setting, Request::Resume { target: args.target.clone() }).await?;
    if !resumed.was_held {
        return Err(Error::of(Exit::Refused, format!("{} was not held", args.target)));
    }
    print::say(&format!("{} works again", args.target));
    Ok(Exit::Ok)
}
