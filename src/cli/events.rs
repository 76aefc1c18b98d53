//! `events`: what came in.

use clap::builder::PossibleValuesParser;

use crate::admin::view::{Event, Item, Page, seconds};
use crate::admin::{EventFilter, Request};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::tasks::since;
use crate::cli::{Setting, print};
use crate::store::EventState;

const STATES: [&str; 5] = [
    EventState::Routed.as_str(),
    EventState::Unrouted.as_str(),
    EventState::Unreadable.as_str(),
    EventState::Foreign.as_str(),
    EventState::Conflict.as_str(),
];

/// List stored deliveries, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(STATES))]
    state: Option<String>,
    /// Only those of this source
    #[arg(long)]
    source: Option<String>,
    /// Only those received since: 2026-11-30T00:00:00Z, 2h, 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those older than this event
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
  tambour events --state unrouted
  tambour events --source shop --since 2h --json";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let since_ms = since(args.since.as_deref(), setting)?;
    let filter = EventFilter { state: args.state, source: args.source, since_ms };
    let request = Request::Events { filter, before: args.before, limit: args.limit };
    let page: Page<Event> = ask_once(setting, request).await?;
    if args.json {
        print::json(&page)?;
    } else {
        print::out(&shown(&page.items))?;
        if let Some(next) = &page.next {
            print::say(&setting.hint(&format!("the next ones: tambour events --before {next}")));
        }
    }
    Ok(Exit::Ok)
}

fn shown(events: &[Event]) -> String {
    let row = |event: &Event| {
        [
            event.id.clone(),
            seconds(&event.received_at),
            event.source.clone(),
            event.topic.clone(),
            event.state.clone(),
            about(&event.items),
            event.copies.to_string(),
        ]
    };
    print::table(["id", "received", "source", "topic", "state", "about", "copies"], events.iter().map(row))
}

/// The first thing of an event, and how many more there are.
fn about(items: &[Item]) -> String {
    let first = match items.first() {
        Some(Item::Fact { entity_kind, entity_id, .. }) => format!("{entity_kind} {entity_id}"),
        Some(Item::Unreadable { at, why }) => print::short(&format!("unreadable {at}: {why}"), 60),
        None => "-".to_owned(),
    };
    match items.len() {
        0 | 1 => first,
        count => format!("{first} and {} more", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_its_first_thing() {
        let fact = |id: &str| Item::Fact {
            kind: "leads.status".to_owned(),
            entity_kind: "lead".to_owned(),
            entity_id: id.to_owned(),
            source_time: None,
        };
        assert_eq!(about(&[]), "-");
        assert_eq!(about(&[fact("1")]), "lead 1");
        assert_eq!(about(&[fact("1"), fact("2"), fact("3")]), "lead 1 and 2 more");
        let unreadable = Item::Unreadable { at: "body".to_owned(), why: "not JSON".to_owned() };
        assert_eq!(about(&[unreadable]), "unreadable body: not JSON");
    }
}
