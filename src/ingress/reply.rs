//! What the door answers; the only place with status codes.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::store::WindowReason;

/// How long a sender should wait before it repeats.
const RETRY_AFTER_SECS: u64 = 30;
/// A sender that obeys must not stay away for a day.
const RETRY_AFTER_SECS_MAX: u64 = 3600;

/// Every answer of the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The delivery is durable; made only from `Accepted`.
    Accepted,
    /// A sender's probe of the address.
    Probe,
    /// The signature is missing or wrong.
    BadSignature,
    /// The header with the delivery id is missing.
    HeaderMissing(&'static str),
    /// Unknown source or wrong address token; the two look alike on purpose.
    NotFound,
    /// Another method than POST, GET and HEAD.
    MethodNotAllowed,
    /// Header or body came too slowly.
    TooSlow,
    /// The body ended before its end.
    BrokenBody,
    /// The body is over the source's limit.
    TooLarge(usize),
    /// A content encoding other than identity: signatures cover what is sent.
    Encoded,
    /// The source has used up its quota; more of it fits after so many seconds.
    OverQuota(u64),
    /// Nothing is promised; come again.
    Unavailable(&'static str),
}

impl Reply {
    /// The status alone, for metrics.
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Accepted | Self::Probe => StatusCode::OK,
            Self::BadSignature => StatusCode::UNAUTHORIZED,
            Self::HeaderMissing(_) | Self::BrokenBody => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::OverQuota(_) | Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Why the answer may have lost a genuine delivery, if it may.
    ///
    /// A wrong signature is judged apart: most of them are strangers'.
    pub(super) const fn may_lose(self) -> Option<WindowReason> {
        match self {
            Self::TooLarge(_) => Some(WindowReason::TooLarge),
            Self::OverQuota(_) => Some(WindowReason::OverQuota),
            Self::Unavailable(_) => Some(WindowReason::Unavailable),
            _ => None,
        }
    }

    /// The source has used up its quota for about so long.
    pub(super) fn over_quota(retry_after: Duration) -> Self {
        Self::OverQuota(retry_after.as_secs().clamp(RETRY_AFTER_SECS, RETRY_AFTER_SECS_MAX))
    }

    fn text(self) -> String {
        match self {
            Self::Accepted | Self::Probe => String::new(),
            Self::BadSignature => "the signature is missing or wrong\n".to_owned(),
            Self::HeaderMissing(name) => format!("the header {name} is missing or malformed\n"),
            Self::NotFound => "nothing here\n".to_owned(),
            Self::MethodNotAllowed => "use POST\n".to_owned(),
            Self::TooSlow => "the request came too slowly\n".to_owned(),
            Self::BrokenBody => "the body ended before its end\n".to_owned(),
            Self::TooLarge(bytes_max) => format!("the body is over {bytes_max} bytes\n"),
            Self::Encoded => "send the body without content encoding\n".to_owned(),
            Self::OverQuota(_) => "the quota of this source is used up; nothing was stored, send it again\n".to_owned(),
            Self::Unavailable(why) => format!("{why}; send it again\n"),
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.text())));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        match self {
            Self::Unavailable(_) => drop(headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS))),
            Self::OverQuota(secs) => drop(headers.insert(RETRY_AFTER, HeaderValue::from(secs))),
            Self::MethodNotAllowed => drop(headers.insert(ALLOW, HeaderValue::from_static("POST, GET, HEAD"))),
            _ => {}
        }
        response
    }
}
