//! What is noted, and what is written when; the clock moves when told.

use tokio::task::JoinSet;

use super::*;
use crate::clock::{Clock as _, ManualClock};
use crate::domain::Pauses;
use crate::store::{AlertView, WindowView};

const START: Timestamp = Timestamp::from_secs(1_796_036_400);
const CAUSES: &str = "usually the secret";

struct Desk {
    clock: Arc<ManualClock>,
    refusals: Refusals,
}

impl Desk {
    fn new() -> Self {
        let clock = ManualClock::starting_at(START);
        Self { refusals: Refusals::new(clock.clone(), Arc::default()), clock }
    }

    fn pass(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    fn wrong(&self, times: usize) {
        (0..times).for_each(|_| self.refusals.wrong_signature("shop", CAUSES));
    }

    /// What is due now, a line each; times in seconds from the start.
    fn due(&self) -> Vec<String> {
        let notes = self.refusals.noted().take(Some(self.clock.monotonic()));
        let secs = |at: Timestamp| at.as_secs() - START.as_secs();
        let line = |note: Note| match note {
            Note::Window(WindowSpan { source, reason, from, to, count }) => {
                format!("{source} {}: {count} from {} to {}", reason.as_str(), secs(from), secs(to))
            }
            Note::Alert(source, AlertChange::Raised { first, last, count, text }) => {
                assert_eq!(text, CAUSES);
                format!("{source} raised: {count} from {} to {}", secs(first), secs(last))
            }
            Note::Alert(source, AlertChange::Resolved { at }) => format!("{source} resolved at {}", secs(at)),
        };
        notes.into_iter().map(line).collect()
    }
}

/// A flood of refusals must not be a flood of commits.
#[test]
fn a_window_is_written_at_once_and_then_once_a_minute() {
    let desk = Desk::new();
    let refused = |source| desk.refusals.refused(source, WindowReason::TooLarge);
    refused("shop");
    assert_eq!(desk.due(), ["shop too_large: 1 from 0 to 0"]);
    desk.pass(10);
    refused("shop");
    refused("crm");
    assert_eq!(desk.due(), ["crm too_large: 1 from 10 to 10"]);
    desk.pass(20);
    refused("shop");
    assert_eq!(desk.due(), [""; 0]);
    let next = desk.refusals.noted().next_due();
    assert_eq!(next.map(Monotonic::since_start), Some(WRITE_EVERY));
    desk.pass(30);
    assert_eq!(desk.due(), ["shop too_large: 2 from 10 to 30"]);
    assert_eq!(desk.refusals.noted().next_due(), None);
}

#[test]
fn the_third_wrong_signature_within_five_minutes_raises_an_alert() {
    let desk = Desk::new();
    desk.wrong(2);
    desk.pass(301);
    desk.wrong(1);
    desk.pass(299);
    desk.wrong(1);
    assert_eq!(desk.due(), [""; 0], "no three of them lie within five minutes");
    desk.wrong(1);
    assert_eq!(desk.due(), ["shop signature: 3 from 301 to 600", "shop raised: 3 from 301 to 600"]);
    desk.pass(600);
    desk.wrong(1);
    assert_eq!(desk.due(), ["shop signature: 1 from 1200 to 1200", "shop raised: 1 from 1200 to 1200"]);
}

/// With two secrets in the world right and wrong ones come in turns.
#[test]
fn a_verified_delivery_resolves_the_alert_and_the_next_series_raises_it() {
    let desk = Desk::new();
    desk.refusals.verified("shop");
    desk.wrong(1);
    desk.refusals.verified("shop");
    desk.wrong(2);
    desk.pass(1);
    desk.wrong(1);
    desk.refusals.verified("shop");
    desk.refusals.verified("shop");
    let raised = ["shop signature: 4 from 0 to 1", "shop raised: 4 from 0 to 1", "shop resolved at 1"];
    assert_eq!(desk.due(), raised);
    desk.wrong(2);
    assert_eq!(desk.due(), [""; 0]);
    desk.wrong(1);
    assert_eq!(desk.due(), ["shop raised: 3 from 1 to 1"], "the window stands and waits for its minute");
}

/// From the note to the file, over a restart.
#[tokio::test]
async fn notes_reach_the_file_and_its_alerts_are_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::new();
    let store = Store::open(folder.path(), desk.clock.clone(), Pauses::default(), Arc::default()).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut recording = JoinSet::new();
    let mut pulse = store.pulse();
    recording.spawn(desk.refusals.clone().record(store.clone(), async { drop(stopped.await) }));
    desk.wrong(3);
    pulse.wait_for(|pulse| pulse.commits >= 2).await.unwrap();
    desk.wrong(1);
    desk.refusals.refused("crm", WindowReason::Unavailable);
    pulse.wait_for(|pulse| pulse.commits >= 3).await.unwrap();
    drop(stop);
    recording.join_next().await.unwrap().unwrap();
    desk.refusals.flush(&store).await;
    let windows = |store: &Store| {
        let windows = store.view().unwrap().windows().unwrap().into_iter();
        windows.map(|WindowView { source, reason, count, .. }| format!("{source} {reason} {count}")).collect::<Vec<_>>()
    };
    assert_eq!(windows(&store), ["crm unavailable 1", "shop signature 4"]);

    let next = Refusals::new(desk.clock.clone(), Arc::default());
    next.resume(&store).unwrap();
    desk.pass(60);
    next.wrong_signature("shop", CAUSES);
    next.verified("shop");
    next.flush(&store).await;
    let alerts = store.view().unwrap().alerts().unwrap();
    let [AlertView { count: 5, resolved_at: Some(at), .. }] = alerts.as_slice() else { panic!("{alerts:?}") };
    assert_eq!(at.as_secs() - START.as_secs(), 60);
}

/// What the file does not take is kept and tried again, not lost and not hammered.
#[tokio::test]
async fn what_is_not_written_waits_for_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::new();
    let store = Store::open(folder.path(), desk.clock.clone(), Pauses::default(), Arc::default()).unwrap();
    store.close().await;
    desk.refusals.refused("shop", WindowReason::OverQuota);
    desk.refusals.flush(&store).await;
    assert_eq!(desk.due(), [""; 0]);
    desk.refusals.refused("shop", WindowReason::OverQuota);
    desk.pass(60);
    assert_eq!(desk.due(), ["shop over_quota: 2 from 0 to 0"]);
}
