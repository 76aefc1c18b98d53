//! `check --live` and `--fix`: the accounts themselves are asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admin::Request;
use crate::admin::fix::{WantedField, inspect};
use crate::cli::check::{Args, Finding};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::Link;
use crate::cli::{Setting, print};
use crate::client::{Amocrm, HttpTransport, SharedTransport};
use crate::config::{Config, Target};
use crate::domain::NameKind;
use crate::server::accounts;

/// Looks at every target, and makes missing fields if that is wished.
pub(super) async fn look(config: &Config, setting: &Setting, args: Args) -> Result<Vec<Finding>, Error> {
    let transport: SharedTransport = Arc::new(HttpTransport::new()?);
    look_through(&transport, config, setting, args).await
}

pub(super) async fn look_through(
    transport: &SharedTransport,
    config: &Config,
    setting: &Setting,
    args: Args,
) -> Result<Vec<Finding>, Error> {
    let accounts = accounts(config, transport, &setting.clock, &Arc::default());
    let mut findings = Vec::new();
    for target in config.targets.values() {
        let Some(crm) = accounts.get(&target.name) else { continue };
        let about = about(config, target);
        let missing = match inspect(config, target, crm).await {
            Err(refusal) => {
                findings.push(Finding::bad(about, refusal.text()));
                continue;
            }
            Ok(found) => {
                findings.extend(found.problems.iter().map(|problem| Finding::bad(&about, problem)));
                if found.problems.is_empty() {
                    findings.push(Finding::good(&about, "account, currency, pipelines, stages and users are as named"));
                }
                found.missing
            }
        };
        if missing.is_empty() {
            findings.push(Finding::good(&about, "the fields that deals need exist"));
        } else {
            findings.extend(missing_fields(config, setting, args, target, &accounts, missing).await?);
        }
    }
    Ok(findings)
}

async fn missing_fields(
    config: &Config,
    setting: &Setting,
    args: Args,
    target: &Target,
    accounts: &BTreeMap<String, Amocrm>,
    missing: Vec<WantedField>,
) -> Result<Vec<Finding>, Error> {
    let about = about(config, target);
    let is_wished = args.fix && (args.yes || may_make(&about, &missing)?);
    if !is_wished {
        let problem = |field: &WantedField| {
            let text = format!("deals need a field with the code {}; tambour check --fix makes it", field.code);
            Finding::bad(&about, text)
        };
        return Ok(missing.iter().map(problem).collect());
    }
    let mut link = Link::new(config.clone(), setting, accounts.clone());
    let request = Request::Fix { target: target.name.clone(), fields: missing.clone() };
    let made: Result<Vec<String>, Error> = link.ask(request).await;
    link.close().await;
    let made = made.map_err(|error| match error.exit() {
        Exit::DataFile => {
            error.hint("what is made must stand in the data file, so start the appliance first: tambour serve")
        }
        _ => error,
    })?;
    let good =
        |(field, id): (&WantedField, &String)| Finding::good(&about, format!("field {} has the id {id}", field.code));
    Ok(missing.iter().zip(&made).map(good).collect())
}

fn about(config: &Config, target: &Target) -> String {
    format!("target {}", config.names.written(NameKind::Target, &target.name))
}

fn may_make(about: &str, missing: &[WantedField]) -> Result<bool, Error> {
    let rows = missing.iter().map(|field| [field.code.clone(), "text".to_owned(), field.name.clone()]);
    print::say(&format!("to be made in {about}:\n{}", print::columns(rows).trim_end()));
    if !print::can_ask() {
        print::say("hint: nobody can be asked; the same command with --yes makes them");
        return Ok(false);
    }
    Ok(print::confirm("Make them?")?)
}
