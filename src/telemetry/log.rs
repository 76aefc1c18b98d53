//! The log on stderr: one line an event, as text or as JSON.
//!
//! Under systemd the journal keeps time and priority itself, so lines carry no
//! time and begin with the priority as `<N>` (sd-daemon(3), read 2026-11).
//! Other crates speak only from `warn` on: their finer lines may hold what
//! ours never do.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::{env, fmt, io};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::telemetry::Error;

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Compact,
    /// For programs: one JSON object a line, fields at its top.
    Json,
}

/// Opens the log; `level` is the finest that is written of our own lines.
///
/// # Errors
/// [`Error::Log`] when it is open already.
pub fn init(format: Format, level: Level) -> Result<(), Error> {
    let journal = stderr_is(env::var("JOURNAL_STREAM").ok().as_deref());
    let subscriber = subscriber(format, level, journal, io::stderr);
    tracing::subscriber::set_global_default(subscriber).map_err(Error::Log)
}

fn subscriber<W>(format: Format, level: Level, journal: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let ours = Targets::new().with_default(Level::WARN).with_target(env!("CARGO_CRATE_NAME"), level);
    let layer = layer().with_ansi(false).with_writer(writer);
    let compact = || format::format().compact();
    let json = || format::format().json().flatten_event(true).with_span_list(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match (format, journal) {
        (Format::Compact, false) => layer.event_format(compact()).boxed(),
        (Format::Compact, true) => layer.event_format(WithPriority(compact().without_time())).boxed(),
        (Format::Json, false) => layer.json().event_format(json()).boxed(),
        (Format::Json, true) => layer.json().event_format(WithPriority(json().without_time())).boxed(),
    };
    Registry::default().with(lines.with_filter(ours))
}

/// Whether stderr is the stream `device:inode` that the journal made for this
/// unit; a child with another stderr inherits the variable too (systemd.exec(5)).
fn stderr_is(stream: Option<&str>) -> bool {
    let ours = || {
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        Some(format!("{}:{}", stderr.dev(), stderr.ino()))
    };
    stream.is_some_and(|stream| ours().as_deref() == Some(stream))
}

/// Puts the journal's priority in front of a line.
struct WithPriority<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithPriority<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        self.0.format_event(ctx, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::subscriber::with_default;
    use tracing::{debug, info, warn};

    use super::*;

    fn written(format: Format, journal: bool, speak: impl FnOnce()) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&lines);
        with_default(subscriber(format, Level::INFO, journal, move || Lines(Arc::clone(&writer))), speak);
        let bytes = lines.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_journal_gets_priority_and_no_time() {
        let line = written(Format::Compact, true, || warn!(event_id = "e1", "disk is filling"));
        assert!(line.starts_with("<4>"), "{line}");
        assert!(line.contains("disk is filling event_id=\"e1\""), "{line}");
        assert!(!line.contains("20"), "no year: {line}");
    }

    #[test]
    fn json_lines_hold_fields_at_the_top() {
        let line = written(Format::Json, false, || info!(event_id = "e1", "delivery accepted"));
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["message"], &line["event_id"]), (&"delivery accepted".into(), &"e1".into()));
        assert!(line["timestamp"].is_string());
    }

    #[test]
    fn finer_lines_are_left_out_and_other_crates_only_warn() {
        let lines = written(Format::Compact, false, || {
            debug!("fine");
            info!(target: "hyper", "others");
            warn!(target: "hyper", "others warn");
        });
        assert_eq!(lines.lines().count(), 1, "{lines}");
        assert!(lines.contains("others warn"));
    }

    #[test]
    fn only_the_very_stream_of_the_journal_counts() {
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned().unwrap()).metadata().unwrap();
        assert!(stderr_is(Some(&format!("{}:{}", stderr.dev(), stderr.ino()))));
        assert!(!stderr_is(Some("0:0")));
        assert!(!stderr_is(None));
    }
}
