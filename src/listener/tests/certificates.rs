//! A certificate renewed on disk, over real handshakes (B84: a renewed one was
//! not served until a restart).

use super::*;
use crate::listener::{CERTIFICATE_LOOK_EVERY, CertificateState};

impl Door {
    /// Whether a new client that trusts only `root` is answered.
    async fn answers_to(&self, root: CertificateDer<'static>) -> bool {
        let Ok(mut stream) = self.tls_trusting(root, &[b"http/1.1"]).await else { return false };
        stream.write_all(GET.as_bytes()).await.unwrap();
        status_of(&answer_header(&mut stream).await) == "200"
    }

    async fn reloaded(&self) -> CertificateState {
        self.certificate.reload().await;
        self.certificate.state().borrow().clone()
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_served_and_open_connections_go_on() {
    let door = Door::open(PATIENT).await;
    let (old, renewed) = (door.pair.root(), TestPair::ending_in(2101));
    let mut open = door.tls().await;
    open.write_all(GET.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut open).await), "200");

    door.pair.replace_with(&renewed);
    let state = door.reloaded().await;
    assert_eq!(state.last_error, None);
    assert_eq!(state.not_after.to_string(), "2101-01-01T00:00:00.000Z");
    assert!(door.answers_to(renewed.root()).await);
    assert!(!door.answers_to(old).await);
    open.write_all(GET.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer_header(&mut open).await), "200", "the connection of before goes on");
}

#[tokio::test]
async fn a_half_written_file_keeps_the_old_certificate() {
    let door = Door::open(PATIENT).await;
    let (old, renewed) = (door.pair.root(), TestPair::generate());
    for file in [&door.pair.certificate, &door.pair.key] {
        let whole = std::fs::read_to_string(file).unwrap();
        for length in [0, 20, whole.len() / 2, whole.len() - 10] {
            std::fs::write(file, &whole[..length]).unwrap();
            let state = door.reloaded().await;
            assert!(state.last_error.is_some_and(|error| error.starts_with("failed to read the ")), "{length} bytes");
            assert!(door.answers_to(old.clone()).await, "{length} bytes");
        }
        std::fs::write(file, &whole).unwrap();
        assert_eq!(door.reloaded().await.last_error, None);
    }
    door.pair.replace_with(&renewed);
    assert_eq!(door.reloaded().await.last_error, None);
    assert!(door.answers_to(renewed.root()).await);
}

/// Between the two files of a renewal lies a moment in which they do not fit.
#[tokio::test]
async fn a_pair_that_does_not_fit_keeps_the_old_certificate() {
    let door = Door::open(PATIENT).await;
    let (old, renewed) = (door.pair.root(), TestPair::generate());
    std::fs::copy(&renewed.certificate, &door.pair.certificate).unwrap();
    let state = door.reloaded().await;
    assert!(state.last_error.is_some_and(|error| error.contains("does not belong to the first certificate")));
    assert!(door.answers_to(old).await);
    std::fs::copy(&renewed.key, &door.pair.key).unwrap();
    assert_eq!(door.reloaded().await.last_error, None);
    assert!(door.answers_to(renewed.root()).await);
}

#[tokio::test]
async fn a_change_on_disk_is_found_without_a_word() {
    let pair = TestPair::ending_in(2030);
    let clock = ManualClock::starting_at(Timestamp::from_secs(0));
    let certificate = Certificate::load(&pair.certificate, &pair.key, clock.clone()).unwrap();
    let mut state = certificate.state();
    let (stop, stopped) = oneshot::channel::<Infallible>();
    let mut watching = JoinSet::new();
    watching.spawn(certificate.watch(async move { assert!(stopped.await.is_err()) }));
    pair.replace_with(&TestPair::ending_in(2031));
    // The watch may not have begun to wait for the clock.
    let found = async {
        while !state.has_changed().unwrap() {
            clock.advance(CERTIFICATE_LOOK_EVERY);
            tokio::task::yield_now().await;
        }
    };
    timeout(HUNG, found).await.expect("the change is found");
    assert_eq!(state.borrow_and_update().not_after.to_string(), "2031-01-01T00:00:00.000Z");
    drop(stop);
    watching.join_next().await.unwrap().unwrap();
}
