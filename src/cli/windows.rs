//! `windows`: when deliveries may have been lost.

use crate::admin::Request;
use crate::admin::view::{Window, seconds};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::{Setting, print};

/// List spans of time in which genuine deliveries may have been refused
///
/// A window opens with the first refusal of its source and reason and grows with each further one. It stays open until
/// what its sender has from that time was compared; until then look there by hand.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Reasons:
  too_large    bodies over `max_body` of the source (413)
  over_quota   more than `quota` of the source allows (503)
  unavailable  no room, no answer in time, or the file took no writes (503)
  signature    wrong signatures on what otherwise looks genuine (401)

Examples:
  tambour windows
  tambour windows --json";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let windows: Vec<Window> = ask_once(setting, Request::Windows).await?;
    if args.json {
        print::json(&windows)?;
    } else {
        print::out(&shown(&windows))?;
    }
    Ok(Exit::Ok)
}

fn shown(windows: &[Window]) -> String {
    let row = |window: &Window| {
        [
            window.source.clone(),
            window.reason.clone(),
            seconds(&window.from),
            seconds(&window.to),
            window.count.to_string(),
            if window.open { "open" } else { "closed" }.to_owned(),
        ]
    };
    print::table(["source", "reason", "from", "to", "refused", "state"], windows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_line() {
        let window = Window {
            source: "shop".to_owned(),
            reason: "too_large".to_owned(),
            from: "2026-11-30T11:00:00.000Z".to_owned(),
            to: "2026-11-30T11:05:10.500Z".to_owned(),
            count: 7,
            open: true,
        };
        let expected = "source  reason     from                  to                    refused  state\n\
            shop    too_large  2026-11-30T11:00:00Z  2026-11-30T11:05:10Z  7        open\n";
        assert_eq!(shown(&[window]), expected);
    }
}
