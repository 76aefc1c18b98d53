//! Crash points: the process dies on a named line, in debug builds only.

/// Ends the process at once when `TAMBOUR_CRASH_AT` names this point.
///
/// Names are `<task kind>/<object kind or task>/<boundary>`: `deal/lead/sent`.
#[cfg(debug_assertions)]
pub fn crash_point(name: &str) {
    use std::sync::OnceLock;
    static CRASH_AT: OnceLock<Option<String>> = OnceLock::new();
    let wanted = CRASH_AT.get_or_init(|| std::env::var("TAMBOUR_CRASH_AT").ok());
    if wanted.as_deref() == Some(name) {
        tracing::error!(name, "crash point reached");
        std::process::abort();
    }
}

/// Does nothing: crash points exist in debug builds only.
#[cfg(not(debug_assertions))]
pub fn crash_point(_name: &str) {}
