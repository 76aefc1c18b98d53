//! What the door answers; the only place with status codes.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

/// How long a sender should wait before it repeats.
const RETRY_AFTER_SECS: u64 = 30;

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
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
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
            Self::Unavailable(why) => format!("{why}; nothing was stored, send it again\n"),
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.text())));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        match self {
            Self::Unavailable(_) => drop(headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS))),
            Self::MethodNotAllowed => drop(headers.insert(ALLOW, HeaderValue::from_static("POST, GET, HEAD"))),
            _ => {}
        }
        response
    }
}
