//! `trace`: the story of one thing.

use crate::admin::Request;
use crate::admin::view::{Line, Trace, seconds};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::{Setting, print};
use crate::domain::State;

/// Tell the story of one thing, from delivery to effect
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Whatever is at hand
    #[arg(value_name = "ID")]
    id: String,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
ID is one of:
  e17, t42, i3          an event, a task, an intent
  32 hex digits         a trace id of the log
  912345678901234567    an order, by its id
  50000001              a deal, contact, note or task of the CRM, by its id
  '#1042', 1042         an order, by its name
  shop-9123456789       the text of the CRM field
  4567, 8 900 123-45-67 the last four digits of the buyer's phone, or all of it

Examples:
  tambour trace t42
  tambour trace '#1042'
  tambour trace 50000001 --json";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let trace: Trace = ask_once(setting, Request::Trace { id: args.id }).await?;
    if args.json {
        print::json(&trace)?;
        return Ok(Exit::Ok);
    }
    print::out(&shown(&trace.story))?;
    if trace.cut {
        print::say("(older deliveries and tasks are left out)");
    }
    for traced in trace.tasks.iter().filter(|traced| traced.task.state == State::Dead.as_str()) {
        let id = &traced.task.id;
        print::say(
            &setting.hint(&format!(
                "once it is put right: tambour retry {id}; if it is not to be done: tambour close {id}"
            )),
        );
    }
    Ok(Exit::Ok)
}

fn shown(story: &[Line]) -> String {
    print::columns(story.iter().map(|line| [seconds(&line.at), line.who.clone(), line.text.clone()]))
}
