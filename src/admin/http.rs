//! Metrics and health over loopback HTTP.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::admin::{Admin, view};
use crate::listener::Service;
use crate::telemetry::CONTENT_TYPE as OPEN_METRICS;

impl Service for Admin {
    async fn call(&self, request: Request<Incoming>, _peer: SocketAddr) -> Response<Full<Bytes>> {
        self.page(request.method(), request.uri().path()).await
    }
}

impl Admin {
    pub(super) async fn page(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        match (method, path) {
            (&Method::GET, "/metrics") => {
                self.refresh_gauges().await;
                response(StatusCode::OK, OPEN_METRICS, self.metrics.render())
            }
            (&Method::GET, "/health") => {
                let health = self.health().await;
                let status = if health.status == view::OK { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                let json = serde_json::to_string(&health).unwrap_or_default();
                response(status, "application/json", json + "\n")
            }
            _ => response(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "nothing here\n".to_owned()),
        }
    }
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
