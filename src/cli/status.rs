//! `status`: how the appliance stands.

use crate::admin::Request;
use crate::admin::view::{Health, seconds};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::ask_once;
use crate::cli::{Setting, print};

/// Show how the appliance stands: tasks by state, held targets, open changes, alerts
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  tambour status
  tambour status --json";

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let health: Health = ask_once(setting, Request::Status).await?;
    if args.json {
        print::json(&health)?;
    } else {
        print::out(&shown(&health))?;
        for hold in &health.holds {
            print::say(&setting.hint(&format!("once it is put right: tambour resume {}", hold.target)));
        }
    }
    Ok(Exit::Ok)
}

fn shown(health: &Health) -> String {
    let mut rows = vec![
        ["status".to_owned(), health.status.clone()],
        ["version".to_owned(), health.version.clone()],
        ["oldest unfinished".to_owned(), format!("{} s", health.oldest_unfinished_seconds)],
        ["open intents".to_owned(), health.open_intents.to_string()],
        ["open windows".to_owned(), health.open_windows.to_string()],
    ];
    if let Some(certificate) = &health.certificate {
        let error = certificate.last_error.as_ref().map(|error| format!("; the files on disk are not served: {error}"));
        rows.push([
            "certificate until".to_owned(),
            format!("{}{}", seconds(&certificate.not_after), error.unwrap_or_default()),
        ]);
    }
    rows.extend(health.tasks.iter().map(|(state, count)| [format!("tasks {state}"), count.to_string()]));
    rows.extend(
        health
            .holds
            .iter()
            .map(|hold| [format!("held {}", hold.target), format!("since {}: {}", seconds(&hold.since), hold.text)]),
    );
    rows.extend(health.alerts.iter().map(|alert| {
        let (count, first) = (alert.count, seconds(&alert.first));
        [format!("alert {} {}", alert.kind, alert.source), format!("{count} since {first}: {}", alert.text)]
    }));
    print::columns(rows)
}
