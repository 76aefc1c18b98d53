//! How the appliance stands: read at the moment of the question, never kept.

use crate::admin::view::{self, Health};
use crate::admin::{Admin, Context, Error};
use crate::domain::{State, Timestamp};
use crate::store::{Broken, View};

/// Reads how things stand.
pub(super) async fn health(context: &Context) -> Result<Health, Error> {
    let now = context.clock.now();
    let failed = context.store.pulse().borrow().failed;
    let certificate = context.certificate.as_ref().map(|state| view::certificate(&state.borrow()));
    let health = context.read(move |file| read(file, now, failed)).await?;
    Ok(Health { certificate, ..health })
}

fn read(file: &View, now: Timestamp, failed: bool) -> Result<Health, Broken> {
    let counts = file.counts()?;
    let count = |name: &str| counts.iter().find(|(counted, _)| counted == name).map_or(0, |(_, count)| *count);
    let of_state = |state: State| count(&format!("tasks/{}", state.as_str()));
    Ok(Health {
        status: if failed { view::FAILED } else { view::OK }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        oldest_unfinished_seconds: file.oldest_unfinished()?.map_or(0, |(_, since)| now.since(since).as_secs()),
        tasks: State::ALL.iter().map(|state| (state.as_str().to_owned(), of_state(*state))).collect(),
        dead: of_state(State::Dead),
        holds: file.holds()?.into_iter().map(view::hold).collect(),
        alerts: file.alerts()?.into_iter().filter_map(view::alert).collect(),
        open_windows: count("windows/open"),
        open_intents: count("intents/open"),
        certificate: None,
        opening: None,
    })
}

impl Admin {
    /// Health as the HTTP face shows it; an unreadable file is a failed one.
    pub(super) async fn health(&self) -> Health {
        let Some(context) = self.context() else {
            let opening = self.progress.now().map(view::opening);
            return Health { opening, ..Health::of_nothing(view::OPENING) };
        };
        health(&context).await.unwrap_or_else(|error| {
            tracing::error!(%error, "health cannot be read");
            Health::of_nothing(view::FAILED)
        })
    }

    /// Sets the gauges to what the file says now.
    pub(super) async fn refresh_gauges(&self) {
        let Some(context) = self.context() else { return };
        let read = async { Ok::<_, Error>((health(&context).await?, context.read(View::alerts).await?)) };
        match read.await {
            Ok((health, alerts)) => {
                for state in State::ALL {
                    self.metrics.tasks_in(state, health.tasks.get(state.as_str()).copied().unwrap_or_default());
                }
                for alert in alerts {
                    self.metrics.alert_stands(&alert.kind, &alert.source, alert.resolved_at.is_none());
                }
                self.metrics.oldest_unfinished(std::time::Duration::from_secs(health.oldest_unfinished_seconds));
            }
            Err(error) => tracing::error!(%error, "the gauges cannot be read"),
        }
    }
}
