//! `ask`: ids of the systems outside, ready to be pasted into the configuration.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::{Setting, print};
use crate::client::{Amocrm, HttpTransport};
use crate::config::Config;
use crate::domain::NameKind;
use crate::server::accounts;

/// Show ids of a system outside, to paste into the configuration
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    system: System,
}

const HELP: &str = "\
Examples:
  tambour ask amocrm pipelines
  tambour ask amocrm fields crm --json";

#[derive(Debug, clap::Subcommand)]
enum System {
    /// Show what an amoCRM account has
    #[command(after_help = HELP)]
    Amocrm(AmocrmArgs),
}

#[derive(Debug, clap::Args)]
struct AmocrmArgs {
    /// What to show
    #[arg(value_enum)]
    what: What,
    /// The target; needed when there are several
    target: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum What {
    /// Pipelines with their stages
    Pipelines,
    /// Custom fields of deals
    Fields,
    /// Users who can be responsible
    Users,
}

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let System::Amocrm(args) = args.system;
    let config = setting.load()?;
    let target = target_of(&config, args.target.as_deref())?;
    let transport = Arc::new(HttpTransport::new()?);
    let mut accounts = accounts(&config, &(transport as _), &setting.clock, &Arc::default());
    let crm = accounts.remove(&target).ok_or_else(|| no_target(&config, &target))?;
    let (table, answer) = match args.what {
        What::Pipelines => pipelines(&crm).await?,
        What::Fields => fields(&crm).await?,
        What::Users => users(&crm).await?,
    };
    if args.json {
        print::json(&answer)?;
    } else {
        print::out(&table)?;
    }
    Ok(Exit::Ok)
}

fn target_of(config: &Config, named: Option<&str>) -> Result<String, Error> {
    let mut known = config.targets.keys();
    match (named, known.next(), known.next()) {
        (Some(named), ..) => Ok(config.names.in_keys(NameKind::Target, named).to_owned()),
        (None, Some(only), None) => Ok(only.clone()),
        (None, ..) => Err(no_target(config, "")),
    }
}

fn no_target(config: &Config, named: &str) -> Error {
    let known: Vec<&str> = config.targets.keys().map(String::as_str).collect();
    let text = if named.is_empty() { "name a target".to_owned() } else { format!("there is no target `{named}`") };
    Error::of(Exit::Usage, format!("{text}; there are: {}", known.join(", ")))
}

async fn pipelines(crm: &Amocrm) -> Result<(String, Value), Error> {
    let pipelines = crm.pipelines().await?;
    let rows = pipelines.iter().flat_map(|pipeline| {
        let row =
            |id: &u64, name: &str| [pipeline.id.to_string(), pipeline.name.clone(), id.to_string(), name.to_owned()];
        pipeline.statuses.iter().map(move |status| row(&status.id, &status.name))
    });
    let table = print::table(["pipeline_id", "pipeline", "status_id", "stage"], rows);
    let answer = pipelines.iter().map(|pipeline| {
        let stages: Vec<Value> = pipeline.statuses.iter().map(|s| json!({ "id": s.id, "name": s.name })).collect();
        json!({ "id": pipeline.id, "name": pipeline.name, "is_main": pipeline.is_main, "stages": stages })
    });
    Ok((table, answer.collect()))
}

async fn fields(crm: &Amocrm) -> Result<(String, Value), Error> {
    let fields = crm.lead_fields().await?;
    let row = |field: &crate::client::Field| {
        [field.id.to_string(), print::or_dash(field.code.as_deref()), field.kind.clone(), field.name.clone()]
    };
    let table = print::table(["field_id", "code", "type", "field"], fields.iter().map(row));
    let answer = fields.iter().map(|f| json!({ "id": f.id, "code": f.code, "type": f.kind, "name": f.name }));
    Ok((table, answer.collect()))
}

async fn users(crm: &Amocrm) -> Result<(String, Value), Error> {
    let users = crm.users().await?;
    let row = |user: &crate::client::User| [user.id.to_string(), user.name.clone()];
    let table = print::table(["responsible_user_id", "user"], users.iter().map(row));
    Ok((table, users.iter().map(|user| json!({ "id": user.id, "name": user.name })).collect()))
}
