//! `check`: everything that can be known before the first delivery.
//!
//! The configuration is loaded as `serve` loads it, the certificate is read,
//! and every template is tried: on the newest stored order of its routes, else
//! on a built-in [`sample`]. [`live`] asks the targets and makes missing fields.

mod live;
mod names;
pub(super) mod sample;
mod templates;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::Link;
use crate::cli::{Setting, environment, print};
use crate::clock::SharedClock;
use crate::config::{self, Config, Front, Problems};
use crate::listener::Certificate;

/// Check the configuration, the certificate and every template
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Ask the targets too: account, currency, pipelines, stages, users, fields
    #[arg(long)]
    live: bool,
    /// Make the CRM fields that deals need, after asking; implies --live
    #[arg(long)]
    fix: bool,
    /// Make them without asking
    #[arg(long)]
    yes: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Ends with 3 when something must be put right.

Examples:
  tambour check
  tambour check --live --fix";

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    about: String,
    /// Whether it is well.
    ok: bool,
    /// What was found.
    text: String,
}

impl Finding {
    fn good(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self { about: about.into(), ok: true, text: text.into() }
    }

    fn bad(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self { about: about.into(), ok: false, text: text.into() }
    }
}

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let findings = match config::load(&setting.config_path, &environment) {
        Err(problems) => of_problems(&problems),
        Ok(config) => {
            let mut findings = of_files(&config, &setting.clock);
            findings.extend(of_stored(&config, setting).await);
            if args.live || args.fix {
                findings.extend(live::look(&config, setting, args).await?);
            }
            findings
        }
    };
    if args.json {
        print::json(&findings)?;
    } else {
        print::out(&shown(&findings))?;
    }
    let bad = findings.iter().filter(|finding| !finding.ok).count();
    if bad == 0 {
        return Ok(Exit::Ok);
    }
    print::say(&format!("{bad} to put right"));
    Ok(Exit::Configuration)
}

fn of_problems(problems: &Problems) -> Vec<Finding> {
    problems.as_slice().iter().map(|problem| Finding::bad("configuration", problem.to_string())).collect()
}

fn of_files(config: &Config, clock: &SharedClock) -> Vec<Finding> {
    let Config { sources, targets, tasks, routes, .. } = config;
    let counts =
        [("sources", sources.len()), ("targets", targets.len()), ("tasks", tasks.len()), ("routes", routes.len())];
    let counts = counts.map(|(name, count)| format!("{name}: {count}")).join(", ");
    let front = match &config.listener.front {
        Front::Tls { certificate, key } => of_certificate(certificate, key, clock),
        Front::Proxies { trusted } => {
            let trusted = trusted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Finding::good("certificate", format!("none: plain HTTP behind {trusted}"))
        }
    };
    vec![Finding::good("configuration", counts), front]
}

fn of_certificate(certificate: &Path, key: &Path, clock: &SharedClock) -> Finding {
    match Certificate::load(certificate, key, clock.clone()) {
        Ok(loaded) => {
            let until = loaded.state().borrow().not_after;
            Finding::good("certificate", format!("{} until {until}", certificate.display()))
        }
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            Finding::bad("certificate", format!("{error}{hint}"))
        }
    }
}

/// What the data file says of the configuration, if it can be asked.
async fn of_stored(config: &Config, setting: &Setting) -> Vec<Finding> {
    let mut link = Link::new(config.clone(), setting, BTreeMap::new());
    let mut findings = match names::lost(config, &mut link).await {
        Ok(findings) => findings,
        Err(error) => {
            print::say(&format!("(names in the data file are not looked at: {error})"));
            Vec::new()
        }
    };
    findings.extend(of_templates(config, setting, &mut link).await);
    link.close().await;
    findings
}

/// Without stored orders, for whatever reason, the built-in sample stands in.
async fn of_templates(config: &Config, setting: &Setting, link: &mut Link) -> Vec<Finding> {
    let stored = match templates::stored_orders(config, link).await {
        Ok(stored) => stored,
        Err(error) => {
            print::say(&format!("(stored orders are not looked at: {error})"));
            BTreeMap::new()
        }
    };
    templates::try_all(config, &stored, setting.clock.now())
}

fn shown(findings: &[Finding]) -> String {
    let rows = findings.iter().map(|finding| {
        let word = if finding.ok { "ok" } else { "PROBLEM" };
        [word.to_owned(), finding.about.clone(), finding.text.clone()]
    });
    print::columns(rows)
}
