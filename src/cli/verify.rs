//! `verify`: whether the data file agrees with itself, while no `serve` runs.

use serde::Serialize;

use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::{Setting, print};
use crate::store::{self, Findings};

/// Look at the whole data file: checksums, and every table against every other
///
/// Needs the file for itself, so it is refused while `serve` runs. It changes no record.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Ends with 0 when the file is clean, 1 when something is damaged, 4 when the file is in use or absent.

Examples:
  systemctl stop tambour && tambour verify
  tambour verify --json";

/// What was found, for programs.
#[derive(Serialize)]
struct Answer<'a> {
    clean: bool,
    /// How much is damaged; the first thousand is named.
    damages: u64,
    named: Vec<Named<'a>>,
    rows: &'a std::collections::BTreeMap<&'static str, u64>,
    seconds: f64,
}

#[derive(Serialize)]
struct Named<'a> {
    table: &'a str,
    id: &'a str,
    what: &'a str,
}

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let folder = setting.load()?.data;
    let begun = setting.clock.monotonic();
    let look = move || {
        store::verify(&folder, &mut |table, rows| match rows {
            0 => print::say(&format!("checking {table}")),
            rows => print::say(&format!("checking {table}: {rows} rows")),
        })
    };
    let looked = tokio::task::spawn_blocking(look).await.map_err(|error| Error::new(Exit::Internal, &error))?;
    let findings = looked?;
    let seconds = setting.clock.monotonic().since(begun).as_secs_f64();
    if args.json {
        print::json(&answer(&findings, seconds))?;
    } else {
        print::out(&shown(&findings, seconds))?;
    }
    if findings.damages == 0 {
        return Ok(Exit::Ok);
    }
    print::say(
        "hint: keep a copy of the data folder as it is now, and report this with the version: tambour --version",
    );
    Ok(Exit::Refused)
}

fn answer(findings: &Findings, seconds: f64) -> Answer<'_> {
    let named = findings.named.iter().map(|d| Named { table: d.table, id: &d.id, what: &d.what }).collect();
    Answer { clean: findings.damages == 0, damages: findings.damages, named, rows: &findings.rows, seconds }
}

/// A line for each damage, then the sum.
fn shown(findings: &Findings, seconds: f64) -> String {
    let lines = findings.named.iter().map(|d| format!("{} {}: {}\n", d.table, d.id, d.what));
    let more = findings.damages.saturating_sub(u64::try_from(findings.named.len()).unwrap_or(u64::MAX));
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    let damages = match findings.damages {
        0 => "no damage".to_owned(),
        1 => "1 damage".to_owned(),
        many => format!("{many} damages"),
    };
    let rows = |table| findings.rows.get(table).copied().unwrap_or_default();
    let (events, tasks, intents) = (rows("events"), rows("tasks"), rows("intents"));
    let all: u64 = findings.rows.values().sum();
    let sum = format!("{damages}: {events} events, {tasks} tasks, {intents} intents, {all} rows in {seconds:.1} s\n");
    lines.chain([more, sum]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Damage;

    #[test]
    fn a_line_names_each_damage_and_the_last_one_sums_up() {
        let clean = Findings { rows: [("events", 3), ("tasks", 2), ("bodies", 3)].into(), ..Findings::default() };
        assert_eq!(shown(&clean, 0.04), "no damage: 3 events, 2 tasks, 0 intents, 8 rows in 0.0 s\n");
        let damage = Damage { table: "lanes", id: "t5".to_owned(), what: "it is absent".to_owned() };
        let damaged = Findings { damages: 3, named: vec![damage], ..clean };
        assert_eq!(
            shown(&damaged, 1.25),
            "lanes t5: it is absent\nand 2 more\n3 damages: 3 events, 2 tasks, 0 intents, 8 rows in 1.2 s\n"
        );
    }
}
