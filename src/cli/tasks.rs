//! `tasks`: what is to be done, was done, or waits for a person.

use clap::builder::PossibleValuesParser;

use crate::admin::view::{Page, Task, seconds};
use crate::admin::{Request, TaskFilter};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::{Setting, print, time};
use crate::domain::State;

const STATES: [&str; 6] = [
    State::New.as_str(),
    State::Running.as_str(),
    State::Retry.as_str(),
    State::Done.as_str(),
    State::Superseded.as_str(),
    State::Dead.as_str(),
];

/// How much of a task's text a line shows; `trace` shows all of it.
const TEXT_CHARS_MAX: usize = 60;

/// List tasks, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Only those older than this task
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    /// At most so many, up to 500
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  tambour tasks --state dead
  tambour tasks --kind deal --since 7d --json";

/// Which tasks are meant.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(STATES))]
    state: Option<String>,
    /// Only those that are dead or superseded for this reason
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Only those of this kind: deal, note, notice
    #[arg(long)]
    kind: Option<String>,
    /// Only those of this target
    #[arg(long)]
    target: Option<String>,
    /// Only those that events of this source made
    #[arg(long)]
    source: Option<String>,
    /// Only those made since: 2026-11-30T00:00:00Z, 2h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those made before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl Filter {
    /// As the request takes it.
    pub(super) fn with_ids(self, ids: Vec<String>, setting: &Setting) -> Result<TaskFilter, Error> {
        Ok(TaskFilter {
            ids,
            since_ms: since(self.since.as_deref(), setting)?,
            until_ms: since(self.until.as_deref(), setting)?,
            state: self.state,
            reason: self.reason,
            kind: self.kind,
            target: self.target,
            source: self.source,
        })
    }
}

/// Reads a time of the command line.
pub(super) fn since(text: Option<&str>, setting: &Setting) -> Result<Option<i64>, Error> {
    let read = |text: &str| {
        let at = time::parse(text, setting.clock.now()).map(crate::domain::Timestamp::as_millis);
        at.ok_or_else(|| {
            Error::of(Exit::Usage, format!("`{text}` is no time")).hint("write 2026-11-30T00:00:00Z or 2h")
        })
    };
    text.map(read).transpose()
}

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let filter = args.filter.with_ids(Vec::new(), setting)?;
    let request = Request::Tasks { filter, before: args.before, limit: args.limit };
    let page: Page<Task> = ask_once(setting, request).await?;
    if args.json {
        print::json(&page)?;
    } else {
        print::out(&shown(&page.items))?;
        if let Some(next) = &page.next {
            print::say(&setting.hint(&format!("the next ones: tambour tasks --before {next}")));
        }
    }
    Ok(Exit::Ok)
}

/// Tasks, a line each.
pub(super) fn shown(tasks: &[Task]) -> String {
    let row = |task: &Task| {
        [
            task.id.clone(),
            task.state.clone(),
            print::or_dash(task.reason.as_deref()),
            task.name.clone(),
            task.entity.clone(),
            task.target.clone(),
            task.attempts.to_string(),
            seconds(&task.updated_at),
            task.due.as_deref().map_or_else(|| "-".to_owned(), seconds),
            print::short(&task.text, TEXT_CHARS_MAX),
        ]
    };
    let header = ["id", "state", "reason", "task", "about", "target", "attempts", "changed", "due", "text"];
    print::table(header, tasks.iter().map(row))
}
