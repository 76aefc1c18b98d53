//! `routes`: which event starts which task.

use crate::admin::view::{Route, seconds};
use crate::admin::{Request, routes};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::{Setting, print};
use crate::store::FILE_NAME;

/// List which event starts which task
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
A route acts on what happened after `since`, else after it first went live.

Examples:
  tambour routes
  tambour routes --json";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let config = setting.load_without_secrets()?;
    let routes: Vec<Route> = if config.data.join(FILE_NAME).exists() {
        ask_once(setting, Request::Routes).await?
    } else {
        print::say("(there is no data file yet: no route went live)");
        routes(&config, &[])
    };
    if args.json {
        print::json(&routes)?;
    } else {
        print::out(&shown(&routes))?;
    }
    Ok(Exit::Ok)
}

fn shown(routes: &[Route]) -> String {
    let header = ["source", "events", "where", "task", "kind", "target", "since", "first live"];
    let time = |at: &Option<String>| at.as_deref().map_or_else(|| "-".to_owned(), seconds);
    let row = |route: &Route| {
        [
            route.source.clone(),
            route.events.join(", "),
            print::or_dash(Some(&route.conditions)),
            route.task.clone(),
            route.kind.clone(),
            route.target.clone(),
            time(&route.since),
            time(&route.first_live),
        ]
    };
    print::table(header, routes.iter().map(row))
}
