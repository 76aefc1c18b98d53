//! What was measured, as a table and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::cli::bench::load::Met;
use crate::cli::bench::stats::{Latencies, Percentiles};
use crate::cli::print;

/// The goal for the ratio of the disturbed p99 to the undisturbed one.
const RATIO_GOAL: f64 = 2.0;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) cpus: usize,
    pub(super) release_build: bool,
    /// `new` or `kept`: what a delivery's time holds beside the answer.
    pub(super) connection: &'static str,
    pub(super) disk: Disk,
    pub(super) runs: Vec<Measured>,
}

/// Appends of 4 KiB with fdatasync.
#[derive(Debug, Serialize)]
pub(super) struct Disk {
    pub(super) appends: usize,
    #[serde(flatten)]
    pub(super) times: Option<Percentiles>,
}

/// One measurement.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) connections: usize,
    pub(super) disturbed: Option<Disturbed>,
    pub(super) seconds: f64,
    /// Answered 200, so on disk.
    pub(super) accepted: usize,
    pub(super) accepted_per_second: f64,
    pub(super) body_bytes: u64,
    #[serde(flatten)]
    pub(super) times: Option<Percentiles>,
    pub(super) refused: BTreeMap<u16, u64>,
    pub(super) failed: u64,
    /// The p99 divided by the undisturbed one of as many connections.
    pub(super) p99_ratio: Option<f64>,
}

/// What went on beside a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Disturbed {
    pub(super) standing: usize,
    pub(super) flood_per_second: f64,
}

impl Measured {
    pub(super) fn new(connections: usize, met: Met, took: Duration) -> Self {
        let seconds = took.as_secs_f64();
        let latencies = Latencies::of(met.accepted);
        let accepted = latencies.count();
        Self {
            connections,
            disturbed: None,
            seconds,
            accepted,
            accepted_per_second: rate(accepted, took),
            body_bytes: met.bytes.checked_div(u64::try_from(accepted).unwrap_or(u64::MAX)).unwrap_or_default(),
            times: latencies.percentiles(),
            refused: met.refused,
            failed: met.failed,
            p99_ratio: None,
        }
    }

    /// The same measurement while something else went on.
    pub(super) fn beside(self, disturbed: Disturbed, undisturbed: Option<Percentiles>) -> Self {
        let p99_ratio = self.times.zip(undisturbed).map(|(now, before)| now.p99_ms / before.p99_ms);
        Self { disturbed: Some(disturbed), p99_ratio, ..self }
    }
}

/// How many a second.
pub(super) fn rate(count: usize, took: Duration) -> f64 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if took.is_zero() { 0.0 } else { f64::from(count) / took.as_secs_f64() }
}

impl Report {
    /// The table for people.
    pub(super) fn shown(&self) -> String {
        let rows = self.runs.iter().map(|run| {
            let disturbed = run.disturbed.map_or_else(
                || "no".to_owned(),
                |by| format!("{} standing, flood {:.0}/s", by.standing, by.flood_per_second),
            );
            let times =
                |pick: fn(&Percentiles) -> f64| run.times.as_ref().map_or_else(|| "-".to_owned(), |t| ms(pick(t)));
            [
                run.connections.to_string(),
                format!("{:.0}", run.accepted_per_second),
                times(|t| t.p50_ms),
                times(|t| t.p99_ms),
                times(|t| t.p999_ms),
                run.accepted.to_string(),
                run.body_bytes.to_string(),
                others(run),
                disturbed,
            ]
        });
        let header = [
            "connections",
            "accepted/s",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "accepted",
            "body bytes",
            "other",
            "disturbed",
        ];
        let table = print::table(header, rows);
        let ratios = self.runs.iter().filter_map(|run| Some((run.connections, run.p99_ratio?)));
        let ratios = ratios.map(|(connections, ratio)| {
            let judged = if ratio < RATIO_GOAL { "reached" } else { "missed" };
            format!("p99 disturbed / undisturbed, {connections} connections: {ratio:.2} (goal: below 2, {judged})\n")
        });
        [self.head(), table].into_iter().chain(ratios).collect()
    }

    fn head(&self) -> String {
        let disk = self.disk.times.as_ref().map_or_else(
            || "-".to_owned(),
            |times| format!("p50 {} ms, p99 {} ms", ms(times.p50_ms), ms(times.p99_ms)),
        );
        let build = if self.release_build { "release" } else { "debug, so the times mean nothing" };
        format!(
            "{} CPUs, shared by load and server; build: {build}; each delivery on a {} connection\n\
             disk: 4 KiB append + fdatasync: {disk} ({} times)\n\n",
            self.cpus, self.connection, self.disk.appends
        )
    }
}

fn ms(time: f64) -> String {
    format!("{time:.2}")
}

/// What was not accepted: `503: 7, no answer: 1`.
fn others(run: &Measured) -> String {
    let refused = run.refused.iter().map(|(status, count)| format!("{status}: {count}"));
    let failed = (run.failed > 0).then(|| format!("no answer: {}", run.failed));
    let all: Vec<String> = refused.chain(failed).collect();
    print::or_dash(Some(&all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(millis: u64) -> Met {
        Met { accepted: vec![Duration::from_millis(millis); 10], bytes: 20_480, ..Met::default() }
    }

    #[test]
    fn a_report_shows_rates_times_and_the_ratio() {
        let plain = Measured::new(8, met(2), Duration::from_secs(2));
        let busy = Met { refused: [(503, 7)].into(), failed: 1, ..met(3) };
        let disturbed = Disturbed { standing: 2500, flood_per_second: 100.0 };
        let disturbed = Measured::new(8, busy, Duration::from_secs(2)).beside(disturbed, plain.times);
        let disk = Disk { appends: 10, times: Latencies::of(vec![Duration::from_millis(1); 10]).percentiles() };
        let mut report = Report { cpus: 2, release_build: true, connection: "new", disk, runs: vec![plain, disturbed] };
        let expected = "\
2 CPUs, shared by load and server; build: release; each delivery on a new connection
disk: 4 KiB append + fdatasync: p50 1.00 ms, p99 1.00 ms (10 times)

connections  accepted/s  p50 ms  p99 ms  p99.9 ms  accepted  body bytes  other                 disturbed
8            5           2.00    2.00    2.00      10        2048        -                     no
8            5           3.00    3.00    3.00      10        2048        503: 7, no answer: 1  2500 standing, flood 100/s
p99 disturbed / undisturbed, 8 connections: 1.50 (goal: below 2, reached)
";
        assert_eq!(report.shown(), expected);
        report.runs = vec![Measured::new(1, Met::default(), Duration::ZERO)];
        assert!(
            report
                .shown()
                .ends_with("1            0           -       -       -         0         0           -      no\n")
        );
    }
}
