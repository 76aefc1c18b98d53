//! `serve`: the appliance itself.

use std::sync::Arc;

use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::who;
use crate::cli::stop::Stop;
use crate::cli::{Setting, print};
use crate::client::HttpTransport;
use crate::server::Appliance;
use crate::telemetry::Format;

/// Run the appliance: the door, the worker, the faces for people
///
/// Prints one line once both ports are bound, and ends in order on SIGTERM or SIGINT.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// How log lines look
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,
    /// Work on a data file that belongs to another host, which is off for good
    #[arg(long)]
    take_over: bool,
}

const HELP: &str = "\
Examples:
  tambour serve
  tambour --config ./tambour.toml serve --log json";

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Log {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl Args {
    pub(super) const fn format(&self) -> Format {
        match self.log {
            Log::Text => Format::Compact,
            Log::Json => Format::Json,
        }
    }
}

pub(super) async fn run(args: &Args, setting: &Setting) -> Result<Exit, Error> {
    let config = setting.load()?;
    let transport = Arc::new(HttpTransport::new()?);
    let mut stop = Stop::listen()?;
    let appliance = Appliance::bind(config, setting.clock.clone()).await?;
    let bound = appliance.bound();
    print::out(&format!("door https://{} admin http://{}\n", bound.door, bound.admin))?;
    let appliance = appliance.taking_over(args.take_over.then(who));
    appliance.run(transport, stop.come()).await?;
    Ok(Exit::Ok)
}
