//! Behind a proxy: whose request it is, and how many each client may have open.

use super::*;
use crate::config::Network;

const XFF: &str = "x-forwarded-for";

async fn behind(proxy: &str, limits: Limits) -> Running {
    let proxies = vec![Network::of(proxy.parse().unwrap(), 8)];
    Running::start(Server::behind(proxies, limits, Arc::default()), Echo::new(BodyRoom::default(), LONG)).await
}

fn get(path: &str, client: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{XFF}: {client}\r\n\r\n")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn the_service_is_told_the_client_of_a_trusted_proxy() {
    let door = behind("127.0.0.0", PATIENT).await;
    assert_eq!(body(&door.ask(&get("/who", "192.0.2.1, 203.0.113.9")).await), "203.0.113.9:0");
    assert_eq!(body(&door.ask(&get("/who", "[2001:db8::1]:4711, 127.0.0.2")).await), "[2001:db8::1]:4711");
    assert!(body(&door.ask(&get("/who", "unknown")).await).starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn nobody_else_is_believed() {
    let door = behind("10.0.0.0", PATIENT).await;
    assert!(body(&door.ask(&get("/who", "203.0.113.9")).await).starts_with("127.0.0.1:"));
    let door = Running::plain(PATIENT, BodyRoom::default()).await;
    assert!(body(&door.ask(&get("/who", "203.0.113.9")).await).starts_with("127.0.0.1:"));
}

/// The proxy's connections carry everybody: a client that has too many requests
/// open is told so, and nobody else notices.
#[tokio::test]
async fn behind_a_proxy_requests_are_counted_by_client() {
    let door = behind("127.0.0.0", Limits { connections_per_address_max: 1, ..PATIENT }).await;
    let mut held = door.tcp().await;
    held.write_all(get("/held", "203.0.113.9").as_bytes()).await.unwrap();
    door.echo.began.notified().await;

    let refused = door.ask(&get("/", "203.0.113.9")).await;
    assert_eq!(status_of(&refused), "429");
    assert!(refused.contains("retry-after: 5\r\n"), "{refused}");
    assert_eq!(status_of(&door.ask(&get("/", "203.0.113.10")).await), "200");

    door.echo.go_on.notify_one();
    assert_eq!(status_of(&answer_header(&mut held).await), "200");
    door.ask_until("200", &get("/", "203.0.113.9")).await;
    held.write_all(get("/", "203.0.113.9").as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut held).await), "200", "an open connection takes no place");
}
