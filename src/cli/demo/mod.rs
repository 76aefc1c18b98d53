//! `tambour demo`: the whole way on this machine, with real parts.
//!
//! Starts the sandbox (an emulated amoCRM account and shop over real HTTP) and
//! `tambour serve` as a child process on a folder of its own, with a
//! self-signed certificate. Sends real signed bytes over TLS, kills the child
//! while the sandbox, which has made the deal, withholds the last byte of its
//! answer, starts it again, and counts what the CRM holds in the end.

mod child;
pub(super) mod folder;
mod scene;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::cli::exit::Exit;
use crate::cli::print::{out, say};
use crate::cli::stop::Stop;
use crate::clock::SharedClock;
use crate::sandbox::{Faults, Running, Sandbox, Sender, Settings};
use child::Serve;
use folder::Folder;
use scene::Scene;
use table::Table;

const HELP: &str = "\
Examples:
  tambour demo
  tambour demo --dir demo --stay";

/// New objects stay invisible to the sandbox's search for so long; the real CRM takes up to a minute.
const SEARCH_LAG: Duration = Duration::from_millis(500);

/// How long the appliance has for the first deal.
const DEAL_WITHIN: Duration = Duration::from_secs(30);

/// Play the whole way on this machine: sandbox, real TLS, SIGKILL, counts
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Work in this folder and leave it there (default: a temporary one)
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Keep everything running at the end and say what to try
    #[arg(long)]
    stay: bool,
}

/// Why the demo could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The folder, the sandbox's port, or the child.
    #[error("failed to {0}")]
    Io(&'static str, #[source] std::io::Error),
    /// Its data file knows another sandbox's objects.
    #[error("the folder `{0}` holds the data of an earlier demo: name another one, or remove it")]
    Used(PathBuf),
    /// The certificate cannot be made.
    #[error("failed to make a certificate")]
    Certificate(#[source] rcgen::Error),
    /// The child did not do what it should.
    #[error("the appliance {0}; its log is {1}")]
    Child(String, PathBuf),
    /// A delivery got no answer.
    #[error("failed to send a delivery")]
    Send(#[from] crate::sandbox::SendError),
    /// The emulated people could not act.
    #[error("the scene cannot be played")]
    Scene(#[from] crate::sandbox::Error),
}

/// Plays the demo; `Exit::Ok` only if every count holds.
pub(super) async fn run(args: Args, clock: &SharedClock) -> Result<Exit, Error> {
    let mut stop = Stop::listen().map_err(|source| Error::Io("listen for signals", source))?;
    let (sandbox, running) = start_sandbox(clock).await?;
    let folder = Folder::make(args.dir, running.addr)?;
    // Whoever drops the play kills its child; a signal alone would leave it running.
    let played = tokio::select! {
        played = play(&folder, &sandbox, &running, clock) => played?,
        () = stop.come() => return Ok(Exit::Refused),
    };
    say(if played.holds { "\nEvery count holds." } else { "\nA count does not hold." });
    if args.stay {
        say_what_to_try(&folder, &played.serve, &running);
        stop.come().await;
    }
    played.serve.stop().await?;
    running.stop().await;
    Ok(if played.holds { Exit::Ok } else { Exit::Refused })
}

/// The play at its end, the appliance still running.
struct Played {
    serve: Serve,
    holds: bool,
}

async fn play(folder: &Folder, sandbox: &Sandbox, running: &Running, clock: &SharedClock) -> Result<Played, Error> {
    say(&format!("folder    {}", folder.path().display()));
    say(&format!("sandbox   http://{} (an amoCRM account and a shop, emulated)", running.addr));
    let mut serve = Serve::start(folder).await?;
    say(&format!("appliance https://{} (process {})", serve.door(), serve.pid()));
    child::run(folder, &["check", "--fix", "--yes"]).await?;
    say("CRM       its three fields are made (check --fix)");
    let sender = Sender::trusting(serve.door(), folder.certificate())?;
    let mut scene = Scene::new(sandbox.clone(), sender, clock.clone());

    tokio::select! {
        made = scene.order_while_the_answer_is_withheld() => made?,
        () = clock.sleep(DEAL_WITHIN) => return Err(Error::Child("made no deal in time".to_owned(), folder.log())),
    }
    say("\nThe CRM has made the deal and withholds the last byte of its answer: SIGKILL.");
    serve.kill().await?;
    sandbox.release();
    serve = Serve::start(folder).await?;
    say(&format!("Started again as process {}.\n", serve.pid()));
    scene.meet(Sender::trusting(serve.door(), folder.certificate())?);

    scene.repeats_and_forgeries().await?;
    scene.five_notifications().await?;
    scene.forward_back_forward().await?;
    serve.wait_until_all_is_done(clock).await?;

    let seen = table::seen(folder, &serve, sandbox).await?;
    let table = Table::new(scene.sent(), &seen);
    show(&table.to_string())?;
    say("\ntrace of order 1042:");
    show(&child::run(folder, &["trace", "1042"]).await?)?;
    Ok(Played { holds: table.holds(), serve })
}

async fn start_sandbox(clock: &SharedClock) -> Result<(Sandbox, Running), Error> {
    let sandbox = Sandbox::new(clock.clone(), Settings::default());
    sandbox.set_faults(Faults { search_lag: SEARCH_LAG, ..Faults::default() });
    let io = |source| Error::Io("start the sandbox", source);
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
    let running = sandbox.serve(listener).map_err(io)?;
    Ok((sandbox, running))
}

fn say_what_to_try(folder: &Folder, serve: &Serve, sandbox: &Running) {
    let config = folder.config().display().to_string();
    say(&format!(
        "\nAll of it keeps running; Ctrl-C ends it. Try, in another terminal:\n\
         \n  tambour --config {config} tasks\
         \n  tambour --config {config} events\
         \n  tambour --config {config} trace 1042\
         \n  tambour --config {config} send shop --insecure --url https://localhost:{}\
         \n  curl http://{}/_sandbox/counts\
         \n  curl http://{}/metrics",
        serve.door().port(),
        sandbox.addr,
        serve.admin(),
    ));
}

fn show(text: &str) -> Result<(), Error> {
    out(text).map_err(|source| Error::Io("print", source))
}
