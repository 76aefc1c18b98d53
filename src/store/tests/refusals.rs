//! Windows and alerts: opened, extended, raised, resolved.

use super::*;
use crate::store::{AlertChange, AlertKind, AlertView, WindowReason, WindowSpan, WindowView};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(START.as_secs() + secs)
}

fn span(source: &str, reason: WindowReason, from: i64, to: i64, count: u64) -> WindowSpan {
    WindowSpan { source: source.to_owned(), reason, from: at(from), to: at(to), count }
}

fn window(source: &str, reason: &str, from: i64, to: i64, count: u64) -> WindowView {
    let (source, reason) = (source.to_owned(), reason.to_owned());
    WindowView { source, reason, from: at(from), to: at(to), count, open: true }
}

/// What is refused again and again is one window, which grows and outlives the process.
#[tokio::test]
async fn a_source_has_one_open_window_a_reason() {
    let mut desk = Desk::new();
    let first = [span("shop", WindowReason::TooLarge, 0, 5, 2), span("crm", WindowReason::Unavailable, 1, 1, 1)];
    desk.store.extend_windows(first.to_vec()).await.unwrap();
    desk.kill();
    let more = [span("shop", WindowReason::TooLarge, 60, 70, 3), span("shop", WindowReason::Signature, 61, 62, 4)];
    desk.store.extend_windows(more.to_vec()).await.unwrap();
    let expected = [
        window("crm", "unavailable", 1, 1, 1),
        window("shop", "signature", 61, 62, 4),
        window("shop", "too_large", 0, 70, 5),
    ];
    assert_eq!(desk.view().windows().unwrap(), expected);
    assert_eq!(desk.count("windows/open"), 3);
}

#[tokio::test]
async fn an_alert_counts_until_it_is_resolved_and_then_anew() {
    let desk = Desk::new();
    let raised = |first, last, count| AlertChange::Raised { first: at(first), last: at(last), count, text: "look" };
    let expect = |first, last, count, resolved: Option<i64>| {
        let (kind, source, text) = ("signature".to_owned(), "shop".to_owned(), "look".to_owned());
        let resolved_at = resolved.map(at);
        let expected = AlertView { kind, source, first: at(first), last: at(last), count, text, resolved_at };
        assert_eq!(desk.view().alerts().unwrap(), [expected]);
    };
    let change = async |change| desk.store.change_alert(AlertKind::Signature, "shop", change).await.unwrap();
    change(AlertChange::Resolved { at: at(0) }).await;
    assert_eq!(desk.view().alerts().unwrap(), [], "nothing is resolved that was not raised");
    change(raised(1, 3, 3)).await;
    change(raised(60, 70, 5)).await;
    expect(1, 70, 8, None);
    change(AlertChange::Resolved { at: at(80) }).await;
    change(AlertChange::Resolved { at: at(90) }).await;
    expect(1, 70, 8, Some(80));
    change(raised(100, 102, 3)).await;
    expect(100, 102, 3, None);
}
