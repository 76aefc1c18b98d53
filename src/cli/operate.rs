//! `retry`, `close`, `replay`: a person's wish for tasks, previewed before it is done.

use std::collections::BTreeMap;

use crate::admin::view::{Operated, Preview, Refused};
use crate::admin::{Request, TaskFilter, Wish};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::Link;
use crate::cli::tasks::{self, Filter};
use crate::cli::{Setting, print};
use crate::domain::State;

/// How many refusals are shown.
const REFUSALS_SHOWN: usize = 20;

pub(super) const RETRY_HELP: &str = "\
Without --state, tasks are meant that wait or are dead.

Examples:
  tambour retry t42
  tambour retry --state dead --reason validation --why 'the field exists now'";

pub(super) const CLOSE_HELP: &str = "\
Without --state, tasks are meant that wait or are dead.

Examples:
  tambour close t42 --why 'entered by hand'
  tambour close --state dead --target crm --yes";

pub(super) const REPLAY_HELP: &str = "\
Examples:
  tambour replay t42
  tambour replay --kind note --since 2h --yes";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tasks; without any, all that the options leave
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// Why, for the audit trail
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(wish: Wish, args: Args, setting: &Setting) -> Result<Exit, Error> {
    let mut link = Link::new(setting.load_without_secrets()?, setting, BTreeMap::new());
    let ended = carry_out(&mut link, wish, args, setting).await;
    link.close().await;
    ended
}

async fn carry_out(link: &mut Link, wish: Wish, args: Args, setting: &Setting) -> Result<Exit, Error> {
    let filter = args.filter.with_ids(args.ids, setting)?;
    let preview: Preview = link.ask(Request::Preview { wish, filter: filter.clone() }).await?;
    if preview.count == 0 {
        return Err(Error::of(Exit::Refused, "no task matches").hint("tambour tasks"));
    }
    let ended: Vec<&str> =
        preview.first.iter().filter(|task| has_ended(&task.state)).map(|task| task.id.as_str()).collect();
    if wish == Wish::Retry && ended.len() as u64 == preview.count {
        let hint = format!("to run it again: tambour replay {}", ended.join(" "));
        return Err(Error::of(Exit::Refused, format!("ended already: {}", ended.join(", "))).hint(hint));
    }
    if !args.yes {
        print::out(&tasks::shown(&preview.first))?;
        if !print::can_ask() {
            let text = format!("nobody can be asked; tasks that match: {}", preview.count);
            return Err(Error::of(Exit::Refused, text).hint("the same command with --yes does it"));
        }
        if !print::confirm(&format!("{} these? Tasks: {}", word(wish), preview.count))? {
            return Err(Error::of(Exit::Refused, "nothing was done"));
        }
    }
    let (done, refused) = all_pages(link, wish, &filter, args.why.as_deref().unwrap_or_default()).await?;
    if args.json {
        print::json(&Operated { done, refused: refused.clone(), next: None })?;
    } else {
        print::out(&print::columns(refused.iter().take(REFUSALS_SHOWN).map(|r| [r.id.clone(), r.why.clone()])))?;
    }
    print::say(&format!("{}: done {done}, refused {}", word(wish), refused.len()));
    Ok(if done == 0 { Exit::Refused } else { Exit::Ok })
}

fn has_ended(state: &str) -> bool {
    [State::Done, State::Superseded].iter().any(|ended| ended.as_str() == state)
}

async fn all_pages(link: &mut Link, wish: Wish, filter: &TaskFilter, why: &str) -> Result<(u64, Vec<Refused>), Error> {
    let (mut done, mut refused, mut before) = (0, Vec::new(), None);
    loop {
        let request = Request::Operate { wish, filter: filter.clone(), why: why.to_owned(), before };
        let page: Operated = link.ask(request).await?;
        done += page.done;
        refused.extend(page.refused);
        let Some(next) = page.next else { return Ok((done, refused)) };
        print::say(&format!("(done {done}, going on below {next})"));
        before = Some(next);
    }
}

const fn word(wish: Wish) -> &'static str {
    match wish {
        Wish::Retry => "retry",
        Wish::Close => "close",
        Wish::Replay => "replay",
    }
}
