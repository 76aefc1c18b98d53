//! Counters of what happened and gauges of how things stand, as OpenMetrics text.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::domain::{Ending, Refusal, State};

/// Names of all metrics; counters are rendered with `_total` after them.
pub mod names {
    /// Answers to deliveries, by source and HTTP status.
    pub const DELIVERIES: &str = "tambour_deliveries";
    /// Connections, and requests through proxies, over the cap of their address.
    pub const CALLERS_REFUSED: &str = "tambour_callers_refused";
    /// Verified deliveries, by source and what they became.
    pub const ACCEPTED: &str = "tambour_accepted";
    /// Verified deliveries, by source and the label of the secret that fitted.
    pub const SECRET_VERIFIED: &str = "tambour_secret_verified";
    /// Refusals that may have lost a genuine delivery, by source and reason.
    pub const REFUSALS: &str = "tambour_refusals";
    /// 1 while an alert stands, by kind and source.
    pub const ALERTS: &str = "tambour_alerts";
    /// Tasks in the file, by state.
    pub const TASKS: &str = "tambour_tasks";
    /// Ended runs, by kind and ending.
    pub const TASKS_SETTLED: &str = "tambour_tasks_settled";
    /// Changes outside, by target and outcome.
    pub const EFFECTS: &str = "tambour_effects";
    /// Age of the oldest unfinished task; 0 without one.
    pub const OLDEST_UNFINISHED_AGE_SECONDS: &str = "tambour_oldest_unfinished_age_seconds";
    /// Time of a durable commit.
    pub const COMMIT_SECONDS: &str = "tambour_commit_seconds";
    /// Commands in one commit.
    pub const BATCH_COMMANDS: &str = "tambour_batch_commands";
    /// Calls to systems outside, by target, operation and class.
    pub const CALLS: &str = "tambour_calls";
}

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The `source` label of a delivery to an address that is not ours: the text
/// that the peer sent must not become a label.
pub const SOURCE_UNKNOWN: &str = "-";

/// What a verified delivery became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedAs {
    /// A new event with tasks.
    New,
    /// A known id with the same content.
    Duplicate,
    /// A known id with other content.
    Conflict,
    /// An event that no route wants.
    Unrouted,
    /// An event in which nothing can be read.
    Unreadable,
    /// An event of an account that is not listed.
    Foreign,
}

impl AcceptedAs {
    const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Unrouted => "unrouted",
            Self::Unreadable => "unreadable",
            Self::Foreign => "foreign",
        }
    }
}

type Labels<const N: usize> = [(&'static str, String); N];

/// All metrics of the process; shared, cheap to count.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    deliveries: Family<Labels<2>, Counter>,
    callers_refused: Counter,
    accepted: Family<Labels<2>, Counter>,
    secret_verified: Family<Labels<2>, Counter>,
    refusals: Family<Labels<2>, Counter>,
    alerts: Family<Labels<2>, Gauge>,
    tasks: Family<Labels<1>, Gauge>,
    tasks_settled: Family<Labels<2>, Counter>,
    effects: Family<Labels<2>, Counter>,
    oldest_unfinished_age: Gauge<f64, AtomicU64>,
    commit: Histogram,
    batch: Histogram,
    calls: Family<Labels<3>, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        // 1 ms, a fast disk, to 4 s, over the shortest deadline of a sender.
        let commit = Histogram::new(exponential_buckets(0.001, 2.0, 13));
        let batch = Histogram::new(exponential_buckets(1.0, 2.0, 9));
        let mut metrics = Self {
            registry: Registry::default(),
            deliveries: Family::default(),
            callers_refused: Counter::default(),
            accepted: Family::default(),
            secret_verified: Family::default(),
            refusals: Family::default(),
            alerts: Family::default(),
            tasks: Family::default(),
            tasks_settled: Family::default(),
            effects: Family::default(),
            oldest_unfinished_age: Gauge::default(),
            commit,
            batch,
            calls: Family::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(names::DELIVERIES, "Answers to deliveries, by HTTP status", self.deliveries.clone());
        registry.register(names::ACCEPTED, "Verified deliveries, by what they became", self.accepted.clone());
        registry.register(
            names::CALLERS_REFUSED,
            "Connections, and requests through proxies, over the cap of their address",
            self.callers_refused.clone(),
        );
        registry.register(
            names::SECRET_VERIFIED,
            "Verified deliveries, by the label of the secret that fitted",
            self.secret_verified.clone(),
        );
        registry.register(
            names::REFUSALS,
            "Refusals that may have lost a genuine delivery, by reason",
            self.refusals.clone(),
        );
        registry.register(names::ALERTS, "1 while an alert stands, 0 once it is resolved", self.alerts.clone());
        registry.register(names::TASKS, "Tasks in the file, by state", self.tasks.clone());
        registry.register(names::TASKS_SETTLED, "Ended runs, by kind and ending", self.tasks_settled.clone());
        registry.register(names::EFFECTS, "Changes outside, by outcome", self.effects.clone());
        registry.register(
            names::OLDEST_UNFINISHED_AGE_SECONDS,
            "Age of the oldest unfinished task, 0 without one",
            self.oldest_unfinished_age.clone(),
        );
        registry.register(names::COMMIT_SECONDS, "Time of a durable commit", self.commit.clone());
        registry.register(names::BATCH_COMMANDS, "Commands in one commit", self.batch.clone());
        registry.register(names::CALLS, "Calls to systems outside, by class", self.calls.clone());
    }

    /// Counts an answer; `source` is a configured name or [`SOURCE_UNKNOWN`].
    pub fn delivery_answered(&self, source: &str, status: u16) {
        self.deliveries.get_or_create(&[("source", source.to_owned()), ("answer", status.to_string())]).inc();
    }

    /// Counts a connection or request that was refused because its address has too many.
    pub fn caller_refused(&self) {
        self.callers_refused.inc();
    }

    /// Counts a verified delivery after its commit.
    pub fn delivery_accepted(&self, source: &str, accepted: AcceptedAs) {
        self.accepted.get_or_create(&[("source", source.to_owned()), ("outcome", accepted.as_str().to_owned())]).inc();
    }

    /// Counts which secret verified, so that an old one can be retired.
    pub fn secret_verified(&self, source: &str, label: &str) {
        self.secret_verified.get_or_create(&[("source", source.to_owned()), ("label", label.to_owned())]).inc();
    }

    /// Counts a refusal that may have lost a genuine delivery.
    pub fn may_have_lost(&self, source: &str, reason: &'static str) {
        self.refusals.get_or_create(&[("source", source.to_owned()), ("reason", reason.to_owned())]).inc();
    }

    /// Says whether an alert stands.
    pub fn alert_stands(&self, kind: &str, source: &str, stands: bool) {
        self.alerts.get_or_create(&[("kind", kind.to_owned()), ("source", source.to_owned())]).set(stands.into());
    }

    /// Says how many tasks stand in a state.
    pub fn tasks_in(&self, state: State, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.tasks.get_or_create(&[("state", state.as_str().to_owned())]).set(count);
    }

    /// Says how long the oldest unfinished task waits; zero without one.
    pub fn oldest_unfinished(&self, age: Duration) {
        self.oldest_unfinished_age.set(age.as_secs_f64());
    }

    /// Counts a settlement.
    pub fn task_settled(&self, kind: &str, ending: &Ending) {
        self.tasks_settled.get_or_create(&[("kind", kind.to_owned()), ("ending", ending.as_str().to_owned())]).inc();
    }

    /// Counts an outcome of a change outside: `applied`, `refused`, `unknown`.
    pub fn effect_ended(&self, target: &str, outcome: &'static str) {
        self.effects.get_or_create(&[("target", target.to_owned()), ("outcome", outcome.to_owned())]).inc();
    }

    /// Records one durable commit of `commands` commands.
    pub fn committed(&self, commands: u32, took: Duration) {
        self.batch.observe(f64::from(commands));
        self.commit.observe(took.as_secs_f64());
    }

    /// Counts a call; without a refusal its class is `ok`.
    pub fn called(&self, target: &str, operation: &'static str, refusal: Option<&Refusal>) {
        let class = match refusal {
            None => "ok",
            Some(Refusal::Retry { .. }) => "retry",
            Some(Refusal::Dead { .. }) => "dead",
            Some(Refusal::Hold { .. }) => "hold",
            Some(Refusal::Unknown { .. }) => "unknown",
        };
        self.calls
            .get_or_create(&[
                ("target", target.to_owned()),
                ("operation", operation.to_owned()),
                ("class", class.to_owned()),
            ])
            .inc();
    }

    /// All metrics as OpenMetrics text, with its `# EOF`.
    pub fn render(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a String takes every write");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ReasonCode;

    /// One line of each kind: a dashboard breaks when a name or label changes.
    #[test]
    fn names_and_labels_are_as_promised() {
        let metrics = Metrics::default();
        metrics.delivery_answered("shop", 200);
        metrics.delivery_answered(SOURCE_UNKNOWN, 404);
        metrics.caller_refused();
        metrics.delivery_accepted("shop", AcceptedAs::New);
        metrics.secret_verified("shop", "2026");
        metrics.may_have_lost("shop", "over_quota");
        metrics.alert_stands("signature", "shop", true);
        metrics.alert_stands("signature", "crm", true);
        metrics.alert_stands("signature", "crm", false);
        metrics.tasks_in(State::Dead, 3);
        metrics.oldest_unfinished(Duration::from_millis(1500));
        metrics.task_settled("deal", &Ending::Dead(ReasonCode::VALIDATION));
        metrics.effect_ended("amocrm", "applied");
        metrics.committed(5, Duration::from_millis(3));
        metrics.called("amocrm", "create_lead", None);
        metrics.called("amocrm", "create_lead", Some(&Refusal::Unknown { text: String::new() }));
        assert_eq!(without_buckets(&metrics.render()), GOLDEN);
    }

    #[test]
    fn buckets_reach_from_a_fast_disk_to_a_lost_deadline() {
        let text = Metrics::default().render();
        for bound in ["seconds_bucket{le=\"0.001\"}", "seconds_bucket{le=\"4.096\"}", "commands_bucket{le=\"256.0\"}"] {
            assert!(text.contains(bound), "{bound} in {text}");
        }
    }

    /// The lines without help and buckets, sorted: rows of a family come in any order.
    fn without_buckets(text: &str) -> String {
        let mut lines: Vec<&str> =
            text.lines().filter(|line| !line.starts_with("# HELP") && !line.contains("_bucket")).collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    const GOLDEN: &str = r#"# EOF
# TYPE tambour_accepted counter
# TYPE tambour_alerts gauge
# TYPE tambour_batch_commands histogram
# TYPE tambour_callers_refused counter
# TYPE tambour_calls counter
# TYPE tambour_commit_seconds histogram
# TYPE tambour_deliveries counter
# TYPE tambour_effects counter
# TYPE tambour_oldest_unfinished_age_seconds gauge
# TYPE tambour_refusals counter
# TYPE tambour_secret_verified counter
# TYPE tambour_tasks gauge
# TYPE tambour_tasks_settled counter
tambour_accepted_total{source="shop",outcome="new"} 1
tambour_alerts{kind="signature",source="crm"} 0
tambour_alerts{kind="signature",source="shop"} 1
tambour_batch_commands_count 1
tambour_batch_commands_sum 5.0
tambour_callers_refused_total 1
tambour_calls_total{target="amocrm",operation="create_lead",class="ok"} 1
tambour_calls_total{target="amocrm",operation="create_lead",class="unknown"} 1
tambour_commit_seconds_count 1
tambour_commit_seconds_sum 0.003
tambour_deliveries_total{source="-",answer="404"} 1
tambour_deliveries_total{source="shop",answer="200"} 1
tambour_effects_total{target="amocrm",outcome="applied"} 1
tambour_oldest_unfinished_age_seconds 1.5
tambour_refusals_total{source="shop",reason="over_quota"} 1
tambour_secret_verified_total{source="shop",label="2026"} 1
tambour_tasks_settled_total{kind="deal",ending="dead"} 1
tambour_tasks{state="dead"} 3"#;
}
