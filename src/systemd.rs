//! What systemd is told: how the start goes, that we stop, and that we are alive.
//!
//! Outside systemd (`NOTIFY_SOCKET` is not set) everything here does nothing.
//! A message that is lost changes nothing but what systemd shows, or lets it
//! restart us; so it is a warning, never an error.

use std::convert::Infallible;
use std::time::Duration;

use sd_notify::NotifyState;
use tracing::warn;

use crate::clock::SharedClock;

/// Shows one line in `systemctl status`.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// Ends the start: units after ours may begin.
pub fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("ready")]);
}

/// Begins the stop.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Tells systemd that we live, each time after `probe` was true; never ends.
///
/// A probe that hangs or fails lets `WatchdogSec=` run out, and systemd restarts
/// us. There are two probes in that time (sd_watchdog_enabled(3)).
pub async fn watchdog<F: Future<Output = bool>>(clock: SharedClock, probe: impl Fn() -> F) -> Infallible {
    match sd_notify::watchdog_enabled().filter(|within| !within.is_zero()) {
        Some(within) => beat(within / 2, clock, probe, || tell(&[NotifyState::Watchdog])).await,
        None => std::future::pending().await,
    }
}

async fn beat<F: Future<Output = bool>>(
    every: Duration,
    clock: SharedClock,
    probe: impl Fn() -> F,
    told: impl Fn(),
) -> Infallible {
    loop {
        clock.sleep(every).await;
        if probe().await {
            told();
        } else {
            warn!("the watchdog's probe failed");
        }
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "systemd cannot be told");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::net::UnixDatagram;
    use std::pin::pin;
    use std::process::{Command, Stdio};

    use futures_util::future::FutureExt as _;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::clock::{Clock as _, ManualClock, SystemClock};
    use crate::domain::Timestamp;

    #[test]
    fn there_is_a_beat_for_each_probe_that_answers() {
        const EVERY: Duration = Duration::from_secs(30);
        let clock = ManualClock::starting_at(Timestamp::from_secs(0));
        let (beats, answer) = (Cell::new(0), Cell::new(Some(true)));
        let probe = || async {
            match answer.get() {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        };
        let mut beating = pin!(beat(EVERY, clock.clone(), probe, || beats.set(beats.get() + 1)));
        let mut check = |next, expected| {
            answer.set(next);
            clock.advance(EVERY);
            assert!(beating.as_mut().now_or_never().is_none());
            assert_eq!(beats.get(), expected, "after {next:?} at {}", clock.now());
        };
        assert_eq!(beats.get(), 0);
        check(Some(true), 0);
        check(Some(true), 1);
        check(Some(false), 1);
        check(Some(true), 2);
        check(None, 2);
        check(Some(true), 2);
    }

    /// The messages as systemd gets them: the test runs itself as a service of its own.
    #[test]
    fn systemd_hears_of_start_life_and_stop() {
        const NAME: &str = "systemd::tests::systemd_hears_of_start_life_and_stop";
        const IS_SERVICE: &str = "TAMBOUR_TEST_IS_SERVICE";
        if std::env::var_os(IS_SERVICE).is_some() {
            return be_a_service();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut service = Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .envs([(IS_SERVICE, "1"), ("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "2000")])
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let hear = || {
            let mut message = [0; 256];
            let length = socket.recv(&mut message).unwrap();
            String::from_utf8(message[..length].to_vec()).unwrap()
        };
        assert_eq!(hear(), "STATUS=opening the data file\n");
        assert_eq!(hear(), "READY=1\nSTATUS=ready\n");
        assert_eq!(hear(), "WATCHDOG=1\n");
        drop(service.stdin.take());
        let last = std::iter::repeat_with(hear).find(|message| message != "WATCHDOG=1\n");
        assert_eq!(last.as_deref(), Some("STOPPING=1\nSTATUS=stopping\n"));
        assert!(service.wait().unwrap().success());
    }

    /// Lives until its stdin ends.
    fn be_a_service() {
        status("opening the data file");
        ready();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut stdin, mut rest) = (tokio::io::stdin(), Vec::new());
            tokio::select! {
                never = watchdog(SystemClock::start(), || async { true }) => match never {},
                ended = stdin.read_to_end(&mut rest) => assert_eq!(ended.unwrap(), 0),
            }
        });
        stopping();
    }
}
