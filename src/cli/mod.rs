//! The command line: one file a command.
//!
//! stdout carries data, stderr carries talk. A command that asks the appliance
//! goes through `link.rs`: to the running `serve` by its socket, else to its data
//! file. What went wrong ends with its kind, its causes and a command to type
//! next (`error.rs`); `exit.rs` lists the codes.

mod ask;
mod bench;
mod check;
mod demo;
mod error;
mod events;
mod exit;
mod link;
mod operate;
mod print;
mod resume;
mod routes;
mod send;
mod serve;
mod status;
mod stop;
mod tasks;
#[cfg(test)]
mod tests;
mod time;
mod trace;
mod verify;
mod windows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tracing::Level;

use crate::admin::Wish;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::clock::{SharedClock, SystemClock};
use crate::config::{self, Config};
use crate::telemetry::{self, Format};

const CONFIG_PATH: &str = "/etc/tambour/tambour.toml";
const CONFIG_VARIABLE: &str = "TAMBOUR_CONFIG";

/// Takes webhooks durably, then does each outside change once
#[derive(Debug, Parser)]
#[command(name = "tambour", version, disable_help_subcommand = true, after_help = exit::HELP)]
struct Cli {
    /// The configuration file
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = CONFIG_VARIABLE,
        hide_env_values = true,
        default_value = CONFIG_PATH
    )]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Check(check::Args),
    Status(status::Args),
    Routes(routes::Args),
    Events(events::Args),
    Tasks(tasks::Args),
    Trace(trace::Args),
    Windows(windows::Args),
    /// Make the next attempt of tasks now; dead ones work again
    #[command(after_help = operate::RETRY_HELP)]
    Retry(operate::Args),
    /// End tasks that are not to be done
    #[command(after_help = operate::CLOSE_HELP)]
    Close(operate::Args),
    /// Run tasks again whatever their state; what they made before is found, not repeated
    #[command(after_help = operate::REPLAY_HELP)]
    Replay(operate::Args),
    Resume(resume::Args),
    Ask(ask::Args),
    Send(send::Args),
    Verify(verify::Args),
    Bench(bench::Args),
    Demo(demo::Args),
}

/// What every command may use.
struct Setting {
    config_path: PathBuf,
    clock: SharedClock,
}

impl Setting {
    /// The whole configuration, for what talks to the world outside.
    fn load(&self) -> Result<Config, Error> {
        Ok(config::load(&self.config_path, &environment)?)
    }

    /// A hint whose commands name the configuration again, where it had to be named.
    fn hint(&self, text: &str) -> String {
        format!("hint: {}", self.with_config(text))
    }

    fn with_config(&self, text: &str) -> String {
        let is_known = self.config_path == Path::new(CONFIG_PATH)
            || environment(CONFIG_VARIABLE).is_some_and(|path| self.config_path == Path::new(&path));
        if is_known {
            return text.to_owned();
        }
        let name = |text: String, command: &clap::Command| {
            let command = command.get_name();
            text.replace(
                &format!("tambour {command}"),
                &format!("tambour --config {} {command}", self.config_path.display()),
            )
        };
        Cli::command().get_subcommands().fold(text.to_owned(), name)
    }

    /// Names and the data folder: outside the service's unit its secrets may be out of reach.
    fn load_without_secrets(&self) -> Result<Config, Error> {
        Ok(config::load_without_secrets(&self.config_path)?)
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody reads where printing fails.
            drop(error.print());
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok }.into();
        }
    };
    let setting = Setting { config_path: cli.config, clock: SystemClock::start() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(cli.command, &setting)),
        Err(source) => Err(Error::new(Exit::Internal, &source)),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let error = error.map_hint(|hint| setting.with_config(hint));
            print::say(&error.to_string());
            error.exit().into()
        }
    }
}

async fn carry_out(command: Command, setting: &Setting) -> Result<Exit, Error> {
    let (format, level) = match &command {
        Command::Serve(args) => (args.format(), Level::INFO),
        _ => (Format::Compact, Level::WARN),
    };
    telemetry::init(format, level).map_err(|error| Error::new(Exit::Internal, &error))?;
    match command {
        Command::Serve(args) => serve::run(&args, setting).await,
        Command::Check(args) => check::run(args, setting).await,
        Command::Status(args) => status::run(args, setting).await,
        Command::Routes(args) => routes::run(args, setting).await,
        Command::Events(args) => events::run(args, setting).await,
        Command::Tasks(args) => tasks::run(args, setting).await,
        Command::Trace(args) => trace::run(args, setting).await,
        Command::Retry(args) => operate::run(Wish::Retry, args, setting).await,
        Command::Close(args) => operate::run(Wish::Close, args, setting).await,
        Command::Replay(args) => operate::run(Wish::Replay, args, setting).await,
        Command::Resume(args) => resume::run(args, setting).await,
        Command::Ask(args) => ask::run(args, setting).await,
        Command::Send(args) => send::run(args, setting).await,
        Command::Windows(args) => windows::run(args, setting).await,
        Command::Verify(args) => verify::run(args, setting).await,
        Command::Bench(args) => bench::run(args, setting).await,
        Command::Demo(args) => Ok(demo::run(args, &setting.clock).await?),
    }
}
