//! The unix socket: one JSON line asks, one JSON line answers, and the connection ends.
//!
//! Whoever may open the socket may do everything, so its file is for its owner
//! alone (mode 0600, in a folder of mode 0700); the name in a [`Call`] says who
//! acted and proves nothing.
//!
//! A slow or silent caller holds one of few places until its deadline. A stop
//! lets open answers end, then removes the file; a file that a killed process
//! left behind is removed by the next one, if nobody answers on it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::admin::{Admin, Failure, FailureKind, Request, answer};

/// The socket's name in the data folder.
const FILE_NAME: &str = "tambour.sock";

/// Calls at the same time; further ones wait in the kernel's queue.
const CALLS_MAX: usize = 8;

/// The longest request; a longer one is refused. The longest honest one names 500 tasks.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// The longest answer that is taken: 500 events of many items.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// From the connection to the whole request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// From the request to the answer; making CRM fields waits for the account's rate.
const ANSWER_WITHIN: Duration = Duration::from_mins(2);

/// How long open calls may take after a stop.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// How long accepting waits after an error of the machine, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// One request with who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// A user's name, for the audit trail.
    pub who: String,
    /// What is asked.
    pub request: Request,
}

/// The answer's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Failed(Failure),
}

/// Why the socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process answers on it.
    #[error("another process answers on the socket `{}`", path.display())]
    Answered {
        /// The socket.
        path: PathBuf,
    },
    /// Usually a path over 107 bytes, or a folder of another user.
    #[error("failed to make the socket `{}`", path.display())]
    Make {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The bound socket; its file is removed when this goes.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "the socket's file stays behind");
        }
    }
}

/// Makes the socket in the data folder.
///
/// # Errors
/// [`ListenError`].
pub fn listen(folder: &Path) -> Result<Socket, ListenError> {
    let path = folder.join(FILE_NAME);
    if std::os::unix::net::UnixStream::connect(&path).is_ok() {
        return Err(ListenError::Answered { path });
    }
    let made = remove_stale(&path).and_then(|()| UnixListener::bind(&path));
    let made = made.and_then(|listener| {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    match made {
        Ok(listener) => Ok(Socket { listener, path }),
        Err(source) => Err(ListenError::Make { path, source }),
    }
}

fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Admin {
    /// Serves the socket until `stop` comes, then lets open calls end.
    pub async fn serve_socket(self, socket: Socket, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut calls = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = calls.join_next() => report(ended),
                accepted = socket.listener.accept(), if calls.len() < CALLS_MAX => match accepted {
                    Ok((stream, _)) => drop(calls.spawn(self.clone().talk(stream))),
                    Err(error) => {
                        tracing::warn!(%error, "a call of the socket could not be taken");
                        self.clock.sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(socket);
        let drained = self.clock.sleep(DRAIN_WITHIN);
        let all_ended = async {
            while let Some(ended) = calls.join_next().await {
                report(ended);
            }
        };
        tokio::select! {
            () = all_ended => {}
            () = drained => tracing::warn!("calls of the socket still open after the drain are cut"),
        }
    }

    async fn talk(self, mut stream: UnixStream) {
        let answered = match self.heard(&mut stream).await {
            Ok(call) => self.answered(call).await,
            Err(failure) => Err(failure),
        };
        let answer = answered.map_or_else(Answer::Failed, Answer::Ok);
        let mut line = serde_json::to_vec(&answer).unwrap_or_default();
        line.push(b'\n');
        if let Err(error) = stream.write_all(&line).await {
            tracing::debug!(%error, "the caller left before its answer");
        }
    }

    async fn heard(&self, stream: &mut UnixStream) -> Result<Call, Failure> {
        let invalid = |text: String| Failure { kind: FailureKind::Invalid, text };
        let mut line = Vec::new();
        let mut request = BufReader::new(stream.take(REQUEST_BYTES_MAX));
        tokio::select! {
            read = request.read_until(b'\n', &mut line) => read.map_err(|error| invalid(error.to_string()))?,
            () = self.clock.sleep(REQUEST_WITHIN) => return Err(invalid("the request came too slowly".to_owned())),
        };
        if line.last() != Some(&b'\n') {
            self.discard(request.into_inner().into_inner()).await;
            return Err(invalid(format!("a request is one line of at most {REQUEST_BYTES_MAX} bytes")));
        }
        serde_json::from_slice(&line).map_err(|error| invalid(format!("no request: {error}")))
    }

    /// Takes what is left of a line that is too long: closed on it, the caller would not see the answer.
    async fn discard(&self, stream: &mut UnixStream) {
        let (mut rest, mut nowhere) = (stream.take(ANSWER_BYTES_MAX), tokio::io::sink());
        tokio::select! {
            read = tokio::io::copy(&mut rest, &mut nowhere) => drop(read),
            () = self.clock.sleep(REQUEST_WITHIN) => {}
        }
    }

    async fn answered(&self, call: Call) -> Result<Value, Failure> {
        let unavailable = |text: &str| Failure { kind: FailureKind::Unavailable, text: text.to_owned() };
        let context = self.context().ok_or_else(|| unavailable("the data file is being opened"))?;
        let who = name(&call.who);
        tokio::select! {
            answered = answer(&context, call.request, &who) => answered.map_err(Failure::from),
            () = self.clock.sleep(ANSWER_WITHIN) => Err(unavailable("it took too long; it may still be done")),
        }
    }
}

/// A name fit for one line of the audit trail.
fn name(who: &str) -> String {
    who.chars().filter(|c| !c.is_control()).take(64).collect()
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a call of the socket panicked");
    }
}

/// Why nothing came back from the socket.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No `serve` works on that folder.
    #[error("no tambour runs on `{}`", folder.display())]
    NobodyAnswers {
        /// The data folder.
        folder: PathBuf,
    },
    /// Usually the socket is another user's.
    #[error("failed to talk to the socket `{}`", path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It answered that it did not do it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Asks the `serve` that works on a data folder.
///
/// # Errors
/// [`AskError`].
pub async fn ask(folder: &Path, call: &Call) -> Result<Value, AskError> {
    let path = folder.join(FILE_NAME);
    let stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(AskError::NobodyAnswers { folder: folder.to_owned() });
        }
        Err(source) => return Err(AskError::Broken { path, source }),
    };
    match exchange(stream, call).await.map_err(|source| AskError::Broken { path, source })? {
        Answer::Ok(value) => Ok(value),
        Answer::Failed(failure) => Err(AskError::Failed(failure)),
    }
}

async fn exchange(mut stream: UnixStream, call: &Call) -> io::Result<Answer> {
    let mut line = serde_json::to_vec(call)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before its answer"));
    }
    Ok(serde_json::from_slice(&answer)?)
}
