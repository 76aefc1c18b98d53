//! A socket that systemd opened: the test runs itself under `systemd-socket-activate`.

use std::io::ErrorKind;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use super::*;
use crate::listener::inherit_or_bind;

const NAME: &str = "listener::tests::inherited::the_socket_that_systemd_passes_is_served";
const ACTIVATE: &str = "systemd-socket-activate";
/// Set in the service: the address that it is configured with.
const ADDRESS: &str = "TAMBOUR_TEST_ADDRESS";

/// The service has the port only from systemd: it could not bind what is bound.
#[tokio::test]
async fn the_socket_that_systemd_passes_is_served() {
    if let Ok(address) = std::env::var(ADDRESS) {
        return be_a_service(address.parse().unwrap()).await;
    }
    let Some(service) = activate().await else {
        assert_ne!(std::env::var("TAMBOUR_NO_SKIP").as_deref(), Ok("1"), "{ACTIVATE} is missing");
        println!("skipped: {NAME}: {ACTIVATE} is missing");
        return;
    };
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(GET.as_bytes()).await.unwrap();
    let answer = timeout(HUNG, answer_header(&mut stream)).await.expect("the service answers");
    assert_eq!(status_of(&answer), "200");
}

/// A service whose port is listened to; dropping it kills it.
struct Activated {
    address: SocketAddr,
    _service: Child,
    /// What it says must find a reader.
    _talk: BufReader<ChildStderr>,
}

/// Starts this test as the service of a free port; `None` without the program.
async fn activate() -> Option<Activated> {
    loop {
        // The program takes no port 0, so it gets one that was free just now; somebody may be faster.
        let free = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let started = Command::new(ACTIVATE)
            .args(["--listen", &address.to_string(), "--setenv", &format!("{ADDRESS}={address}")])
            .arg(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut service = match started {
            Ok(service) => service,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => panic!("{ACTIVATE} does not start: {error}"),
        };
        let mut talk = BufReader::new(service.stderr.take().unwrap());
        let mut first = String::new();
        talk.read_line(&mut first).await.unwrap();
        if first.starts_with("Listening on") {
            return Some(Activated { address, _service: service, _talk: talk });
        }
        assert!(first.contains("in use"), "{ACTIVATE} does not listen: {first}");
    }
}

/// Serves until it is killed.
async fn be_a_service(address: SocketAddr) {
    let listener = inherit_or_bind(address).await.unwrap();
    let echo = Echo::new(BodyRoom::default(), LONG);
    Server::plain(PATIENT, Arc::default()).run(listener, echo, std::future::pending()).await;
}
