//! The rules of the house that the compiler does not hold: which room may name
//! which, where a foreign crate may be named, and a few words with one place.
//!
//! A rule is a function from one source file to complaints. Its exceptions stand
//! in the list beside it, each with the reason. Every rule is tried on snippets
//! that break it, so none can pass because it has stopped looking.

#[path = "tidy/scan.rs"]
mod scan;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use scan::{NamedPath, Token, paths, tokens};

/// The rooms of `src`, from the ground up; a room names only rooms of lower floors.
const FLOORS: [&[&str]; 7] = [
    &["domain", "telemetry", "clock"],
    &["config", "store", "source", "client", "render", "text"],
    &["rules", "intake", "effect", "listener", "systemd"],
    &["ingress", "worker", "sweep", "watch", "admin", "sandbox"],
    &["server"],
    &["cli"],
    &["main"],
];

/// The floor whose rooms meet in the store and never name each other.
const FLOOR_OF_SERVICES: usize = 3;

/// Rooms that may name one of their own floor: who, whom, why.
const SAME_FLOOR: [(&str, &str, &str); 9] = [
    ("clock", "domain", "a clock tells its times in the queue's words"),
    ("telemetry", "domain", "metrics count states, endings and refusals"),
    ("config", "text", "a checked configuration holds compiled templates"),
    ("source", "config", "a sender is verified with its configured secrets"),
    ("client", "config", "a target is reached by its configured address and token"),
    ("client", "store", "a writing call takes the proof of a durable intent"),
    ("store", "source", "only verified deliveries are stored"),
    ("intake", "rules", "facts meet the route table there"),
    ("effect", "rules", "a step carries out what the rules decided"),
];

/// Rooms that must not name a lower one either: who, whom, why.
const NEVER: [(&str, &[&str], &str); 1] = [(
    "sandbox",
    &["source", "client", "rules", "effect"],
    "an oracle that shares code with what it judges shares its mistakes",
)];

/// Where a foreign crate may be named: crates, then places as prefixes of paths.
const CRATES: [(&[&str], &[&str]); 13] = [
    // What lies on disk is the store's alone.
    (&["redb", "postcard"], &["src/store/"]),
    // Pages of the file leave the cache by the kernel's own call.
    (&["rustix"], &["src/store/"]),
    (&["reqwest"], &["src/client/"]),
    // The sandbox is the oracle: it signs by itself what `source` verifies.
    (&["hmac"], &["src/source/", "src/sandbox/"]),
    // The demo sends deliveries as a shop does, below any client of ours.
    (
        &["hyper", "hyper_util", "http_body_util"],
        &["src/listener/", "src/ingress/", "src/admin/", "src/sandbox/", "src/cli/demo"],
    ),
    // The client tells a refused certificate from a lost call, `main` picks the
    // provider for the process, the demo trusts the certificate that it made.
    (
        &["rustls", "tokio_rustls"],
        &["src/listener/", "src/client/http", "src/sandbox/sender", "src/main.rs", "src/cli/demo"],
    ),
    (&["arc_swap", "listenfd"], &["src/listener/"]),
    (&["sd_notify"], &["src/systemd.rs"]),
    (&["minijinja", "rlibphonenumber"], &["src/text/"]),
    (&["clap"], &["src/cli/", "src/main.rs"]),
    (&["toml"], &["src/config/"]),
    (&["prometheus_client", "tracing_subscriber"], &["src/telemetry/"]),
    (&["getrandom"], &["src/telemetry/"]),
];

/// Where tokio's timers may be named. Everywhere else time comes from the `Clock`,
/// so that a simulation can move it.
const TOKIO_TIME: [&str; 5] = ["src/clock.rs", "src/listener/", "src/ingress/", "src/sandbox/http", "src/cli/"];

/// What may lie at the top beside dotfiles.
const TOP_LEVEL: [&str; 8] = ["Cargo.toml", "Cargo.lock", "src", "tests", "fuzz", "packaging", "README.md", "LICENSE"];

/// A longer file holds a second idea, unless it stands in [`LONG_FILES`].
const LINES_MAX: usize = 600;

/// Files that are one long table or state machine.
const LONG_FILES: [&str; 0] = [];

#[test]
fn rooms_name_only_lower_floors() {
    hold(arrows, "src");
}

#[test]
fn every_room_has_a_floor() {
    hold(floors, "src");
}

#[test]
fn foreign_crates_have_one_room() {
    hold(foreign_crates, "src");
}

#[test]
fn guarded_names_stay_at_home() {
    hold(guarded_names, "src");
}

#[test]
fn only_the_clock_reads_a_clock() {
    hold(clock_reads, "src");
}

#[test]
fn timers_are_the_clocks() {
    hold(tokio_time, "src");
}

#[test]
fn nothing_is_left_for_later() {
    hold(left_overs, "src");
    hold(left_overs, "tests");
}

#[test]
fn files_say_what_they_are_for_and_hold_one_idea() {
    hold(file_shape, "src");
    hold(file_shape, "tests");
}

#[test]
fn the_top_level_is_as_agreed() {
    let entries = top_level_entries();
    assert!(entries.iter().any(|entry| entry == "src"), "the listing looks elsewhere: {entries:?}");
    let strangers: Vec<_> = entries.iter().filter(|entry| !is_agreed(entry)).collect();
    assert!(strangers.is_empty(), "not agreed at the top level: {strangers:?}");
}

/// One source file, as the rules see it.
struct Source<'a> {
    /// From the top of the repository: `src/store/mod.rs`.
    path: &'a str,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    paths: Vec<NamedPath<'a>>,
}

impl<'a> Source<'a> {
    fn new(path: &'a str, text: &'a str) -> Self {
        let tokens = tokens(text);
        let paths = paths(&tokens);
        Self { path, text, tokens, paths }
    }

    /// `src/store/mod.rs` and `src/intake.rs` are `store` and `intake`; `lib.rs` is no room.
    fn room(&self) -> Option<&'a str> {
        let inside = self.path.strip_prefix("src/")?;
        let room = inside.split('/').next()?;
        Some(room.strip_suffix(".rs").unwrap_or(room)).filter(|room| *room != "lib")
    }

    /// How many modules lie between the crate and the top of this file.
    fn depth(&self) -> usize {
        let inside = self.path.strip_prefix("src/").unwrap_or(self.path);
        let folders = inside.matches('/').count();
        if inside.ends_with("/mod.rs") || matches!(inside, "lib.rs" | "main.rs") { folders } else { folders + 1 }
    }

    /// The room that a path leads to, if it starts at the root of our crate.
    fn room_of(&self, path: &NamedPath<'a>) -> Option<&'a str> {
        let supers = path.segments.iter().take_while(|segment| **segment == "super").count();
        let from_root = match path.segments.first() {
            Some(&"crate" | &"tambour") => 1,
            Some(&"super") if supers == self.depth() + path.depth => supers,
            _ => return None,
        };
        path.segments.get(from_root).copied()
    }

    fn complaint(&self, line: usize, text: &str) -> String {
        format!("{}:{line}: {text}", self.path)
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }
}

type Rule = fn(&Source<'_>) -> Vec<String>;

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn arrows(source: &Source<'_>) -> Vec<String> {
    let Some((from, floor)) = source.room().and_then(|room| Some((room, floor_of(room)?))) else {
        return Vec::new();
    };
    let is_wrong = |to: &str| {
        let never = NEVER.iter().any(|(who, whom, _)| *who == from && whom.contains(&to));
        let same = SAME_FLOOR.iter().any(|(who, whom, _)| *who == from && *whom == to);
        never || (to != from && !same && floor_of(to).is_some_and(|other| other >= floor))
    };
    let wrong = source.paths.iter().filter_map(|path| Some((path.line, source.room_of(path)?)));
    wrong
        .filter(|(_, to)| is_wrong(to))
        .map(|(line, to)| source.complaint(line, &format!("`{from}` must not name `{to}`")))
        .collect()
}

fn floors(source: &Source<'_>) -> Vec<String> {
    let homeless = source.room().filter(|room| floor_of(room).is_none());
    homeless.map(|room| source.complaint(1, &format!("room `{room}` has no floor"))).into_iter().collect()
}

fn foreign_crates(source: &Source<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (crates, places) in CRATES.iter().filter(|(_, places)| !source.is_in(places)) {
        let named = source.paths.iter().filter(|path| {
            let is_path = path.segments.len() > 1 || path.before == "use";
            is_path && path.segments.first().is_some_and(|first| crates.contains(first))
        });
        complaints.extend(named.map(|path| {
            source.complaint(path.line, &format!("`{}` is named only in {places:?}", path.segments.join("::")))
        }));
    }
    complaints
}

/// Proofs that only their room may make.
fn guarded_names(source: &Source<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for path in &source.paths {
        if path.segments.contains(&"assume_verified") && !source.is_in(&["src/source/"]) {
            complaints.push(source.complaint(path.line, "only `source` says that bytes are verified"));
        }
        if makes_intent_durable(path) && !source.is_in(&["src/store/"]) {
            complaints.push(source.complaint(path.line, "only `store` says that an intent is durable"));
        }
    }
    complaints
}

/// Whether the path begins a struct literal, or names a constructor but the one for tests.
fn makes_intent_durable(path: &NamedPath<'_>) -> bool {
    match path.segments.as_slice() {
        [.., "IntentDurable", function] => !matches!(*function, "id" | "for_test"),
        [.., "IntentDurable"] => {
            let is_type = matches!(path.before, "->" | "&" | "for" | "impl" | "struct" | "mut" | "dyn")
                || path.before.starts_with('\'');
            path.after == "{" && !is_type
        }
        _ => false,
    }
}

fn clock_reads(source: &Source<'_>) -> Vec<String> {
    let reads = |path: &&NamedPath<'_>| {
        let segments = &path.segments;
        segments.contains(&"Instant")
            || segments.contains(&"SystemTime")
            || matches!(segments.as_slice(), [.., "Timestamp" | "Zoned", "now"])
    };
    let outside = !source.is_in(&["src/clock.rs"]);
    let wrong = source.paths.iter().filter(reads).filter(|_| outside);
    wrong.map(|path| source.complaint(path.line, "the clock is read in src/clock.rs only")).collect()
}

fn tokio_time(source: &Source<'_>) -> Vec<String> {
    let outside = !source.is_in(&TOKIO_TIME);
    let wrong = source.paths.iter().filter(|path| outside && path.segments.starts_with(&["tokio", "time"]));
    wrong.map(|path| source.complaint(path.line, "timers come from the `Clock`")).collect()
}

fn left_overs(source: &Source<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for window in source.tokens.windows(3) {
        let [first, second, third] = window else { continue };
        let text = match (first.text, second.text, third.text) {
            ("todo" | "unimplemented" | "dbg", "!", "(" | "[" | "{") => "nothing is left for later",
            ("#", "[", "ignore") => "no test is ignored: assert what holds today",
            _ => continue,
        };
        complaints.push(source.complaint(first.line, text));
    }
    complaints
}

fn file_shape(source: &Source<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    if !source.text.starts_with("//!") {
        complaints.push(source.complaint(1, "a file begins with what it is for (`//!`)"));
    }
    let lines = source.text.lines().count();
    if lines > LINES_MAX && !LONG_FILES.contains(&source.path) {
        complaints.push(source.complaint(lines, &format!("more than {LINES_MAX} lines: look for the second idea")));
    }
    complaints
}

fn is_agreed(entry: &str) -> bool {
    entry.starts_with('.') || TOP_LEVEL.contains(&entry)
}

/// What git tracks at the top; without git what lies there, but for build output.
fn top_level_entries() -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let mut entries: Vec<String> = match listed {
        Ok(listed) if listed.status.success() => String::from_utf8_lossy(&listed.stdout)
            .split_terminator('\0')
            .filter_map(|path| path.split('/').next())
            .map(str::to_owned)
            .collect(),
        _ => names_in(&root()).into_iter().filter(|name| name != "target").collect(),
    };
    entries.dedup();
    entries
}

/// Applies a rule to every source under a folder.
fn hold(rule: Rule, folder: &str) {
    let mut complaints = Vec::new();
    let mut files = Vec::new();
    collect(folder, &mut files);
    assert!(!files.is_empty(), "no sources in {folder}");
    for path in files {
        let text = fs::read_to_string(root().join(&path)).expect("a listed source can be read");
        complaints.extend(rule(&Source::new(&path, &text)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn collect(folder: &str, files: &mut Vec<String>) {
    for name in names_in(&root().join(folder)) {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            collect(&path, files);
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder of the repository can be read");
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Rules that have stopped looking would pass everything; these must not pass.
mod rules_can_fail {
    use super::*;

    #[track_caller]
    fn good(rule: Rule, path: &str, text: &str) {
        assert_eq!(rule(&Source::new(path, text)), Vec::<String>::new(), "{text}");
    }

    #[track_caller]
    fn bad(rule: Rule, path: &str, text: &str) {
        assert_ne!(rule(&Source::new(path, text)), Vec::<String>::new(), "{text}");
    }

    #[test]
    fn arrows_see_every_way_to_name_a_room() {
        bad(arrows, "src/store/mod.rs", "use crate::worker::Lease;");
        bad(arrows, "src/store/mod.rs", "use crate::{domain::Key, worker::Lease};");
        bad(arrows, "src/store/write/mod.rs", "fn f() -> crate::intake::Accept { loop {} }");
        bad(arrows, "src/store/mod.rs", "use super::worker;");
        bad(arrows, "src/store/record.rs", "use super::super::worker::Lease;");
        bad(arrows, "src/store/record.rs", "mod tests { use super::super::super::worker; }");
        bad(arrows, "src/intake.rs", "use crate::ingress::Reply;");
        bad(arrows, "src/server.rs", "use tambour::cli;");
        bad(arrows, "src/worker/mod.rs", "pub(crate) use crate::ingress as door;");

        good(arrows, "src/store/mod.rs", "use crate::{domain::Key, clock::Clock};");
        good(arrows, "src/store/mod.rs", "// use crate::worker::Lease;\nconst A: &str = \"crate::worker\";");
        good(arrows, "src/store/mod.rs", "use crate::store::record;\nmod worker { use super::worker; }");
        good(arrows, "src/cli/mod.rs", "mod tests { use super::sweep; }");
        good(arrows, "src/lib.rs", "pub mod cli;");
        good(arrows, "src/main.rs", "use tambour::cli;");
    }

    #[test]
    fn services_never_name_each_other_and_the_ground_only_what_is_listed() {
        bad(arrows, "src/worker/mod.rs", "use crate::ingress::Reply;");
        bad(arrows, "src/sandbox/mod.rs", "use crate::admin::View;");
        bad(arrows, "src/text/mod.rs", "use crate::config::Config;");
        bad(arrows, "src/domain/mod.rs", "use crate::clock::Clock;");
        good(arrows, "src/config/model.rs", "use crate::text::Template;");
        good(arrows, "src/clock.rs", "use crate::domain::Timestamp;");
        let of_services = SAME_FLOOR.iter().find(|(who, _, _)| floor_of(who) == Some(FLOOR_OF_SERVICES));
        assert_eq!(of_services, None, "services meet in the store");
        assert!(SAME_FLOOR.iter().all(|(who, whom, _)| floor_of(who) == floor_of(whom)));
    }

    #[test]
    fn the_sandbox_is_an_oracle() {
        bad(arrows, "src/sandbox/amocrm/mod.rs", "use crate::client::Call;");
        good(arrows, "src/sandbox/amocrm/mod.rs", "use crate::clock::Clock;");
    }

    #[test]
    fn a_new_room_needs_a_floor() {
        bad(floors, "src/util/mod.rs", "");
        bad(floors, "src/helpers.rs", "");
        good(floors, "src/worker/kind/deal.rs", "");
        good(floors, "src/lib.rs", "");
    }

    #[test]
    fn crates_are_seen_in_use_lines_and_in_code() {
        bad(foreign_crates, "src/domain/key.rs", "use redb;");
        bad(foreign_crates, "src/domain/key.rs", "use redb::{Database, TableDefinition};");
        bad(foreign_crates, "src/domain/key.rs", "fn f() { ::postcard::to_stdvec(&1) }");
        bad(foreign_crates, "src/worker/mod.rs", "#[derive(clap::Parser)] struct A;");
        bad(foreign_crates, "src/effect/mod.rs", "fn f(client: reqwest::Client) {}");
        bad(foreign_crates, "src/cli/serve.rs", "use hyper_util::rt::TokioIo;");

        good(foreign_crates, "src/store/schema.rs", "use redb::TableDefinition;");
        good(foreign_crates, "src/cli/demo/send.rs", "use hyper::Request;");
        good(foreign_crates, "src/domain/key.rs", "let toml = 1; f(toml); crate::config::toml::x();");
        good(foreign_crates, "src/domain/key.rs", "/// As [`redb::Key`].\nconst A: &str = \"redb::Key\";");
    }

    #[test]
    fn proofs_are_made_at_home() {
        bad(guarded_names, "src/ingress/mod.rs", "VerifiedDelivery::assume_verified(raw)");
        bad(guarded_names, "src/ingress/mod.rs", "deliveries.map(VerifiedDelivery::assume_verified)");
        bad(guarded_names, "src/effect/mod.rs", "let proof = IntentDurable { id };");
        bad(guarded_names, "src/effect/mod.rs", "f(&store::IntentDurable::new(id))");
        bad(guarded_names, "src/effect/mod.rs", "Ok(crate::store::IntentDurable { id })");

        good(guarded_names, "src/source/shopify.rs", "VerifiedDelivery::assume_verified(raw)");
        good(guarded_names, "src/store/intent.rs", "IntentDurable { id }");
        good(guarded_names, "src/client/writer.rs", "fn f(proof: &IntentDurable) -> &IntentDurable { proof }");
        good(guarded_names, "src/client/writer.rs", "impl Show for IntentDurable { }");
        good(guarded_names, "src/client/writer.rs", "f(&IntentDurable::for_test())");
    }

    #[test]
    fn clocks_and_timers_are_seen() {
        bad(clock_reads, "src/worker/mod.rs", "use std::time::{Duration, Instant};");
        bad(clock_reads, "src/worker/mod.rs", "let now = std::time::SystemTime::now();");
        bad(clock_reads, "src/text/date.rs", "jiff::Timestamp::now()");
        bad(clock_reads, "src/text/date.rs", "let today = Zoned::now();");
        good(clock_reads, "src/worker/mod.rs", "use std::time::Duration; clock.now(); Timestamp::from_secs(1)");
        good(clock_reads, "src/clock.rs", "std::time::Instant::now()");

        bad(tokio_time, "src/worker/mod.rs", "tokio::time::sleep(pause).await");
        bad(tokio_time, "src/effect/mod.rs", "use tokio::{sync::watch, time::timeout};");
        bad(tokio_time, "src/effect/mod.rs", "use tokio::time;");
        good(tokio_time, "src/worker/mod.rs", "use tokio::sync::watch; clock.sleep(pause).await");
        good(tokio_time, "src/listener/serve.rs", "tokio::time::timeout(limit, future).await");
    }

    #[test]
    fn left_overs_are_seen() {
        bad(left_overs, "src/a.rs", "fn f() { todo!() }");
        bad(left_overs, "src/a.rs", "fn f() { unimplemented!(\"later\") }");
        bad(left_overs, "src/a.rs", "let a = dbg!(b);");
        bad(left_overs, "tests/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}");
        good(left_overs, "src/a.rs", "/// Not `todo!()`.\nfn todo() { ignore(\"dbg!(x)\") }");
    }

    #[test]
    fn files_without_a_purpose_or_an_end_are_seen() {
        bad(file_shape, "src/a.rs", "use std::fmt;\n");
        bad(file_shape, "src/a.rs", &format!("//! A.\n{}", "\n".repeat(LINES_MAX)));
        good(file_shape, "src/a.rs", &format!("//! A.\n{}", "\n".repeat(LINES_MAX - 1)));
    }

    #[test]
    fn strangers_at_the_top_are_seen() {
        assert!(is_agreed("src") && is_agreed(".gitignore") && is_agreed("LICENSE"));
        assert!(!is_agreed("docs") && !is_agreed("Makefile") && !is_agreed("NOTES.md"));
    }
}
