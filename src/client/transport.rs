//! How a call leaves the process: over HTTP, or in a simulation to the sandbox's handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// What our clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or asks a GraphQL question.
    Post,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// One call to make. `Debug` shows neither headers nor body: they hold tokens and personal data.
#[derive(Clone)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The whole URL, percent-encoded.
    pub url: String,
    /// Header names in lower case, with values.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Bytes,
    /// The longest wait for the whole answer.
    pub timeout: Duration,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        write!(f, "{} {path}", self.method.as_str())
    }
}

/// A whole answer. `Debug` shows the status alone.
#[derive(Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case, with values that are text.
    pub headers: Vec<(String, String)>,
    /// The whole body, at most `ANSWER_BYTES_MAX`.
    pub body: Bytes,
}

impl Answer {
    /// The first header of that lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)
    }
}

/// Why there is no whole answer. The texts hold no URL query and no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request never left: usually DNS, a refused connection, or TLS.
    #[error("the call was not sent: {0}")]
    NotSent(String),
    /// The request may have arrived: usually a time-out, a cut connection, or an answer that is too long.
    #[error("the answer was lost: {0}")]
    Lost(String),
    /// The other side's certificate is not valid for its name or time.
    #[error("the certificate was refused: {0}")]
    Certificate(String),
}

/// Carries one call and brings one answer; never repeats, never follows a redirect.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Makes the call.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Failure>>;
}

/// A transport that everybody may hold.
pub type SharedTransport = Arc<dyn Transport>;
