//! A call and its reply, apart from any socket.

use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;

/// One HTTP request.
#[derive(Clone)]
pub struct Request {
    method: String,
    origin: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Request {
    /// Takes a request apart.
    ///
    /// `url` is a whole URL or a path with its query. Links in answers go back to
    /// the URL's own origin, else to the `host` header over plain HTTP. Header
    /// names are in lower case.
    pub fn new(method: &str, url: &str, headers: Vec<(String, String)>, body: Bytes) -> Self {
        let (origin, rest) = match url.find("://").and_then(|at| url.split_at_checked(at + 3)) {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
                (format!("{scheme}{host}"), path)
            }
            None => {
                let host = headers.iter().find(|(name, _)| name == "host").map_or("localhost", |(_, value)| value);
                (format!("http://{host}"), url)
            }
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        Self { method: method.to_owned(), origin, path, query, headers, body }
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The query's pairs, decoded, in order.
    pub(super) fn query(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn body(&self) -> &Bytes {
        &self.body
    }
}

/// What the emulated system answers, and how the answer travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case with their values; no content length.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
    /// How it travels.
    pub delivery: Delivery,
}

/// How an answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At once and whole.
    Whole,
    /// Never: the connection is closed without a byte.
    Dropped,
    /// All but the last byte; the connection stays open until a release or until the client leaves.
    WithholdLastByte,
    /// Whole, after a while.
    Delayed(Duration),
}

impl Reply {
    pub(super) fn json(status: u16, content_type: &str, body: &Value) -> Self {
        Self::of(status, content_type, body.to_string())
    }

    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), delivery: Delivery::Whole }
    }

    /// A page of some front server, where the API would have answered with JSON.
    pub(super) fn html(status: u16) -> Self {
        let page = format!("<html>\n<head><title>{status}</title></head>\n<body><h1>{status}</h1></body>\n</html>\n");
        Self::of(status, "text/html", page)
    }

    #[must_use]
    pub(super) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn of(status: u16, content_type: &str, body: String) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: Bytes::from(body), delivery: Delivery::Whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_whole_or_as_a_path() {
        let check = |url, origin, path, query: &[(&str, &str)]| {
            let headers = vec![("host".to_owned(), "127.0.0.1:8088".to_owned())];
            let request = Request::new("GET", url, headers, Bytes::new());
            assert_eq!((request.origin(), request.path()), (origin, path), "{url}");
            let pairs = request.query();
            assert_eq!(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), query, "{url}");
        };
        check("/a/b?x=1&y%5B%5D=%2B7", "http://127.0.0.1:8088", "/a/b", &[("x", "1"), ("y[]", "+7")]);
        check("https://a.example/b?c=d", "https://a.example", "/b", &[("c", "d")]);
        check("https://a.example", "https://a.example", "", &[]);
        check("/", "http://127.0.0.1:8088", "/", &[]);
    }
}
