//! `bench accept`: how many deliveries a second this machine makes durable, and how soon it answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;

use crate::cli::bench::bodies::Bodies;
use crate::cli::bench::disk;
use crate::cli::bench::disturb::Disturbance;
use crate::cli::bench::load::Plan;
use crate::cli::bench::report::{Disk, Disturbed, Measured, Report, rate};
use crate::cli::bench::stand::Stand;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::{Setting, print};
use crate::clock::SharedClock;

/// Measure how fast deliveries are accepted: disk, rate, times
///
/// Signed deliveries go over loopback to the real door with TLS, on a temporary data file. A time is from the begin of
/// the request, or of its connection, to the answer; an answer comes when the delivery is on disk.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Senders at the same time; a measurement for each number
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1,8,64",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024)
    )]
    connections: Vec<usize>,
    /// Keep connections open; without it each delivery opens one, with a TLS handshake
    #[arg(long)]
    keep_alive: bool,
    /// The least size of a made order
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = RangedU64ValueParser::<usize>::new().range(1..=900_000))]
    body: usize,
    /// How long each measurement lasts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Work in a temporary folder below this one [default: the data folder of the configuration, if there is one]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Send these orders instead: a file with one JSON a line, or a folder with one a file
    #[arg(long, value_name = "PATH", conflicts_with = "body")]
    from: Option<PathBuf>,
    /// Send them N times as fast as their `updated_at` says; without it as fast as possible
    #[arg(long, value_name = "N", requires = "from", value_parser = speed)]
    speed: Option<f64>,
    /// Measure again beside 2000 silent and 500 dribbling connections and a flood on another source
    #[arg(long)]
    disturb: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  tambour bench accept
  tambour bench accept --connections 64 --disturb --keep-alive
  tambour bench accept --from orders.jsonl --speed 100";

/// Sent and forgotten first, so that no measurement pays for cold caches.
const WARM_UP: Duration = Duration::from_millis(500);

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "a number above 0 is expected".to_owned())
}

pub(super) async fn run(args: Args, setting: &Setting) -> Result<Exit, Error> {
    let bodies = bodies(&args, &setting.clock)?;
    let stand = Stand::open(&place(&args, setting)?, &setting.clock).await?;
    print::say(&format!("measuring in {}", stand.folder().display()));
    let measured = measured(&args, bodies, &stand, &setting.clock).await;
    stand.close().await?;
    let report = measured?;
    if args.json {
        print::json(&report)?;
    } else {
        print::out(&report.shown())?;
    }
    let all_answered = report.runs.iter().all(|run| run.accepted > 0);
    Ok(if all_answered { Exit::Ok } else { Exit::Refused })
}

fn bodies(args: &Args, clock: &SharedClock) -> Result<Bodies, Error> {
    let Some(path) = &args.from else { return Ok(Bodies::Made { bytes: args.body, at: clock.now() }) };
    let read = Bodies::read(path).map_err(|error| {
        Error::new(Exit::Usage, &error).hint(format!("`--from` takes orders as JSON: ls -l {}", path.display()))
    })?;
    if args.speed.is_some() && !read.is_timed() {
        return Err(Error::of(Exit::Usage, "an order has no `updated_at`, so there is no rate to keep")
            .hint("send them as fast as possible: leave out --speed"));
    }
    Ok(read)
}

/// On the disk of the live file, where there is one: another disk would say nothing about it.
fn place(args: &Args, setting: &Setting) -> Result<PathBuf, Error> {
    if let Some(dir) = &args.dir {
        return Ok(dir.clone());
    }
    if !setting.config_path.exists() {
        return Ok(std::env::temp_dir());
    }
    let data = setting.load()?.data;
    let existing = data.ancestors().find(|folder| folder.is_dir());
    Ok(existing.map_or_else(std::env::temp_dir, PathBuf::from))
}

async fn measured(args: &Args, bodies: Bodies, stand: &Stand, clock: &SharedClock) -> Result<Report, Error> {
    let internal = |error: tokio::task::JoinError| Error::new(Exit::Internal, &error);
    let (folder, of_disk) = (stand.folder().to_owned(), clock.clone());
    let appends = tokio::task::spawn_blocking(move || disk::appends(&folder, &of_disk)).await.map_err(internal)??;
    let plan = Plan {
        sender: stand.sender().clone(),
        clock: clock.clone(),
        bodies: Arc::new(bodies),
        numbers: Arc::default(),
        keep_alive: args.keep_alive,
        speed: args.speed,
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let (connections, within, disturb) = (args.connections.clone(), Duration::from_secs(args.seconds), args.disturb);
    // Threads of its own: what the load waits for must not wait for the load.
    let load = tokio::runtime::Builder::new_multi_thread().worker_threads(cpus).enable_all().build()?;
    let runs = tokio::task::spawn_blocking(move || load.block_on(all_runs(&plan, &connections, within, disturb)));
    Ok(Report {
        cpus,
        release_build: !cfg!(debug_assertions),
        connection: if args.keep_alive { "kept" } else { "new" },
        disk: Disk { appends: appends.count(), times: appends.percentiles() },
        runs: runs.await.map_err(internal)?,
    })
}

/// A measurement for each number of connections, then all again beside a disturbance.
async fn all_runs(plan: &Plan, connections: &[usize], within: Duration, disturb: bool) -> Vec<Measured> {
    let as_fast_as_possible = Plan { speed: None, ..plan.clone() };
    drop(as_fast_as_possible.measure(8, WARM_UP.min(within)).await);
    let mut runs = Vec::new();
    for &number in connections {
        print::say(&format!("{number} connections, {} s", within.as_secs()));
        let (met, took) = plan.measure(number, within).await;
        runs.push(Measured::new(number, met, took));
    }
    if !disturb {
        return runs;
    }
    print::say("opening 2000 silent and 500 dribbling connections and a flood");
    let disturbance = Disturbance::begin(&plan.sender, &plan.clock).await;
    let mut disturbed = Vec::with_capacity(runs.len());
    for undisturbed in &runs {
        print::say(&format!("{} connections, {} s, disturbed", undisturbed.connections, within.as_secs()));
        let before = disturbance.flooded();
        let (met, took) = plan.measure(undisturbed.connections, within).await;
        let flood = usize::try_from(disturbance.flooded().saturating_sub(before)).unwrap_or(usize::MAX);
        let beside = Disturbed { standing: disturbance.standing(), flood_per_second: rate(flood, took) };
        disturbed.push(Measured::new(undisturbed.connections, met, took).beside(beside, undisturbed.times));
    }
    runs.extend(disturbed);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_above_zero() {
        assert_eq!((speed("100"), speed("0.5")), (Ok(100.0), Ok(0.5)));
        assert!(["0", "-1", "inf", "NaN", "fast", ""].iter().all(|text| speed(text).is_err()));
    }
}
