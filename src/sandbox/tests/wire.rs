//! Real HTTP, seen from a bare socket.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Fixture;
use crate::sandbox::{Fault, Operation, Running, When};

async fn serve(fixture: &Fixture) -> Running {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    fixture.sandbox.serve(listener).unwrap()
}

/// Sends a call that makes a deal and closes nothing.
async fn send(running: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(running.addr).await.unwrap();
    let body = r#"[{"name":"Окна"}]"#;
    let head = "POST /api/v4/leads HTTP/1.1\r\nHost: sandbox\r\nAuthorization: Bearer sandbox-amocrm-token";
    let request = format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// Splits an answer and gives the announced length beside the body.
fn parts(answer: &[u8]) -> (String, usize, Vec<u8>) {
    let at = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..at].to_vec()).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    (head, length, answer[at + 4..].to_vec())
}

#[tokio::test]
async fn a_whole_answer_arrives() {
    let fixture = Fixture::new();
    let running = serve(&fixture).await;
    let answer = read_to_end(&mut send(&running).await).await;
    let (head, length, body) = parts(&answer);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-type: application/hal+json"), "{head}");
    assert_eq!(body.len(), length);
    assert!(String::from_utf8(body).unwrap().contains("http://sandbox/api/v4/leads/50000001"), "links lead back here");
    running.stop().await;
}

/// The deal exists, the client has nothing: a cut connection without one byte.
#[tokio::test]
async fn a_dropped_answer_closes_the_connection_after_the_change() {
    let fixture = Fixture::new();
    let running = serve(&fixture).await;
    fixture.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::LostAnswer);
    assert_eq!(read_to_end(&mut send(&running).await).await, b"");
    assert_eq!(fixture.sandbox.counts().leads, 1);
    running.stop().await;
}

/// The deal exists and its answer is one byte short, until a release.
#[tokio::test]
async fn a_withheld_answer_lacks_one_byte_until_the_release() {
    let fixture = Fixture::new();
    let running = serve(&fixture).await;
    fixture.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::WithholdLastByte);
    let mut stream = send(&running).await;
    fixture.sandbox.seen(Operation::LeadCreate, 1).await;
    assert_eq!(fixture.sandbox.counts().leads, 1);
    let mut answer = Vec::new();
    while !answer.windows(4).any(|window| window == b"\r\n\r\n") || parts(&answer).2.len() + 1 < parts(&answer).1 {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "the connection stays open");
    }
    assert_eq!(parts(&answer).2.len() + 1, parts(&answer).1, "all but the last byte");
    fixture.sandbox.release();
    answer.extend(read_to_end(&mut stream).await);
    let (_, length, body) = parts(&answer);
    assert_eq!(body.len(), length);
    assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok());
    running.stop().await;
}

#[tokio::test]
async fn a_stop_ends_withheld_answers_too() {
    let fixture = Fixture::new();
    let running = serve(&fixture).await;
    fixture.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::WithholdLastByte);
    let mut stream = send(&running).await;
    fixture.sandbox.seen(Operation::LeadCreate, 1).await;
    running.stop().await;
    let mut answer = Vec::new();
    // The end may come as a reset; either way the last byte does not.
    stream.read_to_end(&mut answer).await.ok();
    assert!(answer.is_empty() || parts(&answer).2.len() < parts(&answer).1);
}

/// A slow answer comes when the clock says so, and the change is there before it.
#[tokio::test]
async fn a_slow_answer_waits_for_the_clock() {
    let fixture = Fixture::new();
    let running = serve(&fixture).await;
    fixture.sandbox.inject(Operation::LeadCreate, When::Nth(1), Fault::Slow(Duration::from_secs(20)));
    let mut stream = send(&running).await;
    fixture.sandbox.seen(Operation::LeadCreate, 1).await;
    assert_eq!(fixture.sandbox.counts().leads, 1);
    let woken = async {
        // The answer starts to wait some time after the signal: the clock is moved until it has.
        loop {
            fixture.clock.advance(Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
    };
    let answer = tokio::select! {
        answer = read_to_end(&mut stream) => answer,
        () = woken => unreachable!("it never ends"),
    };
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    running.stop().await;
}
