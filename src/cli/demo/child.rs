//! The appliance as a child process: started, killed, stopped, asked.

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::cli::demo::Error;
use crate::cli::demo::folder::Folder;
use crate::clock::SharedClock;

/// How long the demo waits for the end of all tasks.
const END_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A running `tambour serve`.
pub(super) struct Serve {
    child: Child,
    door: SocketAddr,
    admin: SocketAddr,
    log: std::path::PathBuf,
}

impl Serve {
    /// Starts it and waits for the line that names its ports.
    pub(super) async fn start(folder: &Folder) -> Result<Self, Error> {
        let io = |source| Error::Io("start `tambour serve`", source);
        let log = OpenOptions::new().create(true).append(true).open(folder.log()).map_err(io)?;
        let mut child = command(folder, &["serve"])?.stderr(log).stdout(Stdio::piped()).spawn().map_err(io)?;
        let mut first = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut first).await.map_err(io)?;
        }
        let ports = (address_after(&first, "https://"), address_after(&first, "http://"));
        let (Some(door), Some(admin)) = ports else {
            return Err(Error::Child("did not start".to_owned(), folder.log()));
        };
        Ok(Self { child, door, admin, log: folder.log() })
    }

    pub(super) const fn door(&self) -> SocketAddr {
        self.door
    }

    pub(super) const fn admin(&self) -> SocketAddr {
        self.admin
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// SIGKILL: no destructor, no farewell.
    pub(super) async fn kill(mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(|source| Error::Io("kill the appliance", source))
    }

    /// SIGTERM, as a service manager sends it, and waits for the orderly end.
    pub(super) async fn stop(mut self) -> Result<(), Error> {
        let io = |source| Error::Io("stop the appliance", source);
        let mut kill = Command::new("kill");
        kill.arg(self.pid().to_string()).status().await.map_err(io)?;
        let status = self.child.wait().await.map_err(io)?;
        if status.success() { Ok(()) } else { Err(Error::Child(format!("ended with {status}"), self.log)) }
    }

    /// Waits until no task is unfinished.
    pub(super) async fn wait_until_all_is_done(&self, clock: &SharedClock) -> Result<(), Error> {
        let give_up = clock.monotonic().plus(END_WITHIN);
        while clock.monotonic() < give_up {
            let health = self.health().await?;
            let states = ["new", "running", "retry"].map(|state| count(&health, state));
            if states.iter().sum::<u64>() == 0 {
                return Ok(());
            }
            clock.sleep(LOOK_EVERY).await;
        }
        Err(Error::Child("still has unfinished tasks after a minute".to_owned(), self.log.clone()))
    }

    /// What `/health` says.
    pub(super) async fn health(&self) -> Result<serde_json::Value, Error> {
        let told = |what: &str| Error::Child(what.to_owned(), self.log.clone());
        let stream = TcpStream::connect(self.admin).await.map_err(|_| told("does not listen for metrics"))?;
        let asked = async {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            let request = Request::get("/health").header("host", "localhost").body(Empty::<Bytes>::new());
            let exchange = async {
                let request = request.map_err(|_| ()).ok();
                let Some(request) = request else { return Ok(Bytes::new()) };
                Ok::<_, hyper::Error>(sender.send_request(request).await?.into_body().collect().await?.to_bytes())
            };
            tokio::pin!(exchange);
            tokio::select! {
                body = &mut exchange => body,
                ended = connection => match ended { Ok(()) => exchange.await, Err(error) => Err(error) },
            }
        };
        let body = asked.await.map_err(|_| told("does not answer /health"))?;
        serde_json::from_slice(&body).map_err(|_| told("gives no JSON as its health"))
    }
}

fn count(health: &serde_json::Value, state: &str) -> u64 {
    health.pointer(&format!("/tasks/{state}")).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// Runs another command of this binary on the demo's configuration; gives its stdout.
pub(super) async fn run(folder: &Folder, arguments: &[&str]) -> Result<String, Error> {
    let io = |source| Error::Io("run a command of tambour", source);
    let output =
        command(folder, arguments)?.stderr(Stdio::piped()).stdout(Stdio::piped()).output().await.map_err(io)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Child(format!("failed at `{}`: {said}", arguments.join(" ")), folder.log()))
}

fn command(folder: &Folder, arguments: &[&str]) -> Result<Command, Error> {
    let this = std::env::current_exe().map_err(|source| Error::Io("find this program", source))?;
    let mut command = Command::new(this);
    command.arg("--config").arg(folder.config()).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

/// The address behind a scheme in the line that `serve` prints.
fn address_after(line: &str, scheme: &str) -> Option<SocketAddr> {
    line.split_whitespace().find_map(|word| word.strip_prefix(scheme)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_are_read_from_the_first_line() {
        let line = "door https://127.0.0.1:4443 admin http://127.0.0.1:9464\n";
        assert_eq!(address_after(line, "https://"), "127.0.0.1:4443".parse().ok());
        assert_eq!(address_after(line, "http://"), "127.0.0.1:9464".parse().ok());
        assert_eq!(address_after("", "http://"), None);
    }
}
