//! Whole files: every documented key, the packaged file, bad files, secrets.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::*;
use crate::domain::{NameKind, Timestamp, UsedName};

const FULL: &str = include_str!("../../tests/data/config/full.toml");
const PACKAGED: &str = include_str!("../../packaging/tambour.toml");

/// A folder with a configuration, its PEM files and its secrets.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        for pem in ["one.pem", "two.pem", "three.pem", "fullchain.pem", "privkey.pem"] {
            fixture.write(pem, "");
        }
        fixture.write("old.secret", "old-shop-secret\n");
        fixture.write("other.secret", "other-shop-secret\r\n");
        fs::create_dir(fixture.folder.path().join("credentials")).unwrap();
        for name in ["shop-api", "shopify", "shopify-api", "amocrm-address", "amocrm-token"] {
            fixture.write(&format!("credentials/{name}"), &format!("credential-of-{name}\n"));
        }
        fixture
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        #[cfg(unix)]
        set_mode(&path, 0o600);
    }

    fn load(&self, text: &str) -> Result<Config, Problems> {
        self.write("tambour.toml", text);
        let credentials = self.folder.path().join("credentials").display().to_string();
        let environment = |name: &str| match name {
            "CREDENTIALS_DIRECTORY" => Some(credentials.clone()),
            "SHOP_NEW" => Some("new-shop-secret".to_owned()),
            "ADDRESS" => Some("address-token-0001".to_owned()),
            "TOKEN" => Some("crm-token".to_owned()),
            "EMPTY" => Some(String::new()),
            "SHORT" => Some("address-token-1".to_owned()),
            "SLASH" => Some("address/token/0001".to_owned()),
            "LINES" => Some("crm\ntoken".to_owned()),
            _ => None,
        };
        load(&self.folder.path().join("tambour.toml"), &environment)
    }

    /// Each setting as a line, or each problem without the file's path.
    fn outcome(&self, text: &str, show: fn(&Secret) -> &str) -> String {
        match self.load(text) {
            Ok(config) => dump(&config, show).replace(&self.folder.path().display().to_string(), "<folder>"),
            Err(problems) => {
                problems.as_slice().iter().fold(String::new(), |all, problem| format!("{all}{}\n", problem.text))
            }
        }
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Every setting of a checked configuration, a line each.
fn dump(config: &Config, show: fn(&Secret) -> &str) -> String {
    let Config { language, data, listener, admin, sources, targets, tasks, routes, workers, pauses, names } = config;
    let mut out = format!("language = {language:?}\ndata = {}\nworkers = {workers}\n", data.display());
    writeln!(out, "pauses = {pauses:?}").unwrap();
    for kind in NameKind::ALL {
        names.retired(kind).for_each(|name| writeln!(out, "retired: {} {name}", kind.as_str()).unwrap());
    }
    writeln!(out, "listener.address = {}", listener.address).unwrap();
    match &listener.front {
        Front::Tls { certificate, key } => {
            writeln!(out, "listener.certificate = {}", certificate.display()).unwrap();
            writeln!(out, "listener.key = {}", key.display()).unwrap();
        }
        Front::Proxies { trusted } => {
            let trusted: Vec<_> = trusted.iter().map(Network::to_string).collect();
            writeln!(out, "listener.trusted_proxies = {}", trusted.join(" ")).unwrap();
        }
    }
    writeln!(out, "admin = {admin}").unwrap();
    for (name, source) in sources {
        assert_eq!(name, &source.name);
        dump_name(&mut out, "sources", name, names.written(NameKind::Source, name));
        dump_source(&mut out, source, show);
    }
    for (name, target) in targets {
        assert_eq!(name, &target.name);
        dump_name(&mut out, "targets", name, names.written(NameKind::Target, name));
        dump_target(&mut out, target, show);
    }
    for (name, task) in tasks {
        assert_eq!(name, &task.name);
        dump_name(&mut out, "tasks", name, names.written(NameKind::Task, name));
        dump_task(&mut out, task);
    }
    for (i, route) in routes.iter().enumerate() {
        let Route { source, events, conditions, task, since } = route;
        writeln!(out, "routes.{i} = {source} {events:?} -> {task}").unwrap();
        writeln!(out, "routes.{i}.since = {since:?}").unwrap();
        for Condition { field, any_of } in conditions {
            writeln!(out, "routes.{i}.where.{field} = {any_of:?}").unwrap();
        }
    }
    out
}

/// What has another name in the file than in keys.
fn dump_name(out: &mut String, table: &str, name: &str, written: &str) {
    if written != name {
        writeln!(out, "{table}.{name} is written {written}").unwrap();
    }
}

fn dump_source(out: &mut String, source: &Source, show: fn(&Secret) -> &str) {
    let Source { name, kind, address_token, body_bytes_max, answer_within, quota } = source;
    let Quota { events_per_hour, bytes_per_day, inflight } = quota;
    writeln!(out, "sources.{name}.body_bytes_max = {body_bytes_max}").unwrap();
    writeln!(out, "sources.{name}.answer_within = {answer_within:?}").unwrap();
    writeln!(out, "sources.{name}.quota.events_per_hour = {events_per_hour}").unwrap();
    writeln!(out, "sources.{name}.quota.bytes_per_day = {bytes_per_day}").unwrap();
    writeln!(out, "sources.{name}.quota.inflight = {inflight}").unwrap();
    writeln!(out, "sources.{name}.address_token = {:?}", address_token.as_ref().map(show)).unwrap();
    match kind {
        SourceKind::Amocrm { account_id } => writeln!(out, "sources.{name} = amocrm {account_id}").unwrap(),
        SourceKind::Shopify { shops, secrets, api } => {
            writeln!(out, "sources.{name} = shopify {shops:?}").unwrap();
            for LabelledSecret { label, secret } in secrets {
                writeln!(out, "sources.{name}.secrets.{label} = {}", show(secret)).unwrap();
            }
            if let Some(ShopApi { url, version, token, timeout }) = api {
                writeln!(out, "sources.{name}.api.url = {url}").unwrap();
                writeln!(out, "sources.{name}.api.version = {version}").unwrap();
                writeln!(out, "sources.{name}.api.token = {}", show(token)).unwrap();
                writeln!(out, "sources.{name}.api.timeout = {timeout:?}").unwrap();
            }
        }
    }
}

fn dump_target(out: &mut String, target: &Target, show: fn(&Secret) -> &str) {
    let Target { name, kind, in_flight_max, calls_per_second, timeout, search_lag, doubt_tail } = target;
    let TargetKind::Amocrm(AmocrmTarget { url, account_id, token, responsible_user_id, currency }) = kind;
    writeln!(out, "targets.{name}.url = {url}").unwrap();
    writeln!(out, "targets.{name}.account_id = {account_id}").unwrap();
    writeln!(out, "targets.{name}.token = {}", show(token)).unwrap();
    writeln!(out, "targets.{name}.responsible_user_id = {responsible_user_id}").unwrap();
    writeln!(out, "targets.{name}.currency = {currency}").unwrap();
    writeln!(out, "targets.{name}.in_flight_max = {in_flight_max}").unwrap();
    writeln!(out, "targets.{name}.calls_per_second = {calls_per_second}").unwrap();
    writeln!(out, "targets.{name}.timeout = {timeout:?}").unwrap();
    writeln!(out, "targets.{name}.search_lag = {search_lag:?}").unwrap();
    writeln!(out, "targets.{name}.doubt_tail = {doubt_tail:?}").unwrap();
}

fn dump_task(out: &mut String, task: &Task) {
    let Task { name, target, mode, kind } = task;
    writeln!(out, "tasks.{name} = {} on {target}, {mode:?}", kind.as_str()).unwrap();
    match kind {
        TaskKind::Deal(deal) => dump_deal(out, name, deal),
        TaskKind::Note(NoteTask { text, valid_in, version }) => {
            writeln!(out, "tasks.{name}.text = {}", text.source()).unwrap();
            writeln!(out, "tasks.{name}.valid_in = {valid_in:?}").unwrap();
            writeln!(out, "tasks.{name}.version = {version}").unwrap();
        }
        TaskKind::Notice(NoticeTask { due_in }) => writeln!(out, "tasks.{name}.due_in = {due_in:?}").unwrap(),
    }
}

fn dump_deal(out: &mut String, task: &str, deal: &DealTask) {
    let DealTask { pipeline_id, status_id, responsible_user_id, name, fields, moves, hand_made, test_orders, .. } =
        deal;
    let DealTask { field_id_code, field_version_code, field_total_code, .. } = deal;
    writeln!(out, "tasks.{task}.pipeline_id = {pipeline_id}").unwrap();
    writeln!(out, "tasks.{task}.status_id = {status_id}").unwrap();
    writeln!(out, "tasks.{task}.responsible_user_id = {responsible_user_id:?}").unwrap();
    writeln!(out, "tasks.{task}.name = {}", name.source()).unwrap();
    for FieldTemplate { field_id, value } in fields {
        writeln!(out, "tasks.{task}.fields.{field_id} = {}", value.source()).unwrap();
    }
    for Move { when, from, to } in moves {
        writeln!(out, "tasks.{task}.moves.{when} = {from:?} -> {to}").unwrap();
    }
    writeln!(out, "tasks.{task}.hand_made = {hand_made:?}").unwrap();
    writeln!(out, "tasks.{task}.test_orders = {test_orders}").unwrap();
    writeln!(out, "tasks.{task}.field_codes = {field_id_code} {field_version_code} {field_total_code}").unwrap();
}

/// One block of `keys.txt`.
struct Change {
    key: String,
    old: String,
    new: String,
    expected: BTreeSet<String>,
}

fn changes() -> Vec<Change> {
    let text = include_str!("../../tests/data/config/keys.txt");
    let blocks = text.split("\n\n").filter(|block| !block.starts_with('#'));
    let change = |block: &str| {
        let mut lines = block.lines();
        let key = lines.next().unwrap().to_owned();
        let marked = |mark| block.lines().filter_map(|line| line.strip_prefix(mark)).collect::<Vec<_>>().join("\n");
        let is_expected = |line: &&str| !line.starts_with("- ") && !line.starts_with("+ ");
        Change {
            key,
            old: marked("- "),
            new: marked("+ "),
            expected: lines.filter(is_expected).map(str::to_owned).collect(),
        }
    };
    blocks.map(change).collect()
}

/// The keys of the table in the module doc, as `keys.txt` writes them.
fn documented_keys() -> BTreeSet<String> {
    let cells = |line: &'static str| {
        let mut cells = line.strip_prefix("//! |")?.split('|').map(|cell| cell.trim().trim_matches('`'));
        Some((cells.next()?, cells.next()?))
    };
    let rows = include_str!("mod.rs").lines().filter_map(cells).skip(2);
    rows.map(|(table, key)| if table.is_empty() { key.to_owned() } else { format!("{key} in {table}") }).collect()
}

/// P09: keys that are read and then ignored. Each documented key is changed in
/// a whole file, and exactly what it promises must change.
#[test]
fn every_documented_key_is_obeyed() {
    let fixture = Fixture::new();
    let before = fixture.outcome(FULL, Secret::expose);
    assert!(before.contains("language = En"), "{before}");
    let before: BTreeSet<&str> = before.lines().collect();
    for Change { key, old, new, expected } in changes() {
        assert_eq!(FULL.matches(&old).count(), 1, "{key}: full.toml must hold this once: {old}");
        let after = fixture.outcome(&FULL.replace(&old, &new), Secret::expose);
        let fresh: BTreeSet<String> = after.lines().filter(|line| !before.contains(line)).map(str::to_owned).collect();
        assert_eq!(fresh, expected, "{key}");
    }
    let changed: BTreeSet<String> = changes().into_iter().map(|change| change.key).collect();
    assert_eq!(changed, documented_keys(), "keys.txt and the table in mod.rs must name the same keys");
}

#[test]
fn the_packaged_file_is_short_and_loads() {
    assert!(PACKAGED.lines().count() < 60, "one shop's whole configuration stays under 60 lines");
    let outcome = Fixture::new().outcome(PACKAGED, |_| "(secret)");
    assert_eq!(outcome, include_str!("../../tests/data/config/tambour.txt"));
}

#[test]
fn the_default_language_is_russian() {
    let fixture = Fixture::new();
    let without = PACKAGED.replace("language = \"ru\"\n", "");
    assert_ne!(without, PACKAGED);
    assert_eq!(fixture.load(&without).unwrap().language, Language::Ru);
}

/// Plain HTTP from a proxy must not be readable, or forgeable, on the way.
#[test]
fn behind_proxies_only_inner_addresses_are_bound() {
    let fixture = Fixture::new();
    let plain = FULL.replace("certificate = \"one.pem\"\nkey = \"two.pem\"", "trusted_proxies = [\"127.0.0.1\"]");
    assert_ne!(plain, FULL);
    let check = |address: &str, expected| {
        let loaded = fixture.load(&plain.replace("127.0.0.1:8443", address));
        assert_eq!(loaded.is_ok(), expected, "{address}");
    };
    for inner in ["127.0.0.1:80", "127.9.0.1:80", "10.1.2.3:80", "172.31.0.1:0", "192.168.0.1:80", "[::1]:80"] {
        check(inner, true);
    }
    check("[fd00::1]:80", true);
    check("[::ffff:10.0.0.1]:80", true);
    for outer in ["0.0.0.0:80", "[::]:80", "203.0.113.9:80", "172.32.0.1:80", "[2001:db8::1]:80", "[fe80::1]:80"] {
        check(outer, false);
    }
}

/// Each bad file has all of its problems told at once, in the words of the `.txt` beside it.
#[test]
fn bad_files_are_explained() {
    let folder = Path::new("tests/data/config");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("bad-") && name.ends_with(".toml") {
            count += 1;
            let problems = load(&path, &|name| (name == "SET").then(|| "a-secret-of-the-environment".to_owned()));
            let text = problems.expect_err(name).to_string() + "\n";
            assert_eq!(text, fs::read_to_string(path.with_extension("txt")).unwrap_or_default(), "{name}");
        }
    }
    assert_eq!(count, 6);
    let problems = load(Path::new("absent.toml"), &|_| None).unwrap_err();
    assert_eq!(problems.to_string(), "absent.toml: cannot be read: No such file or directory (os error 2)");
}

/// A secret may stand in the right place or, pasted by mistake, in any other;
/// neither `Debug` nor a problem may show it.
#[test]
fn secrets_are_never_shown() {
    const CANARY: &str = "shpss_canary0123456789abcdef";
    let fixture = Fixture::new();
    for name in ["shop-api", "shopify", "shopify-api", "amocrm-address", "amocrm-token"] {
        fixture.write(&format!("credentials/{name}"), CANARY);
    }
    let config = fixture.load(PACKAGED).unwrap();
    let TargetKind::Amocrm(target) = &config.targets["crm"].kind;
    assert_eq!(target.token.expose(), CANARY);
    assert!(!format!("{config:?} {config:#?}").contains(CANARY));

    let quoted = FULL.split('"').skip(1).step_by(2);
    let pasted = quoted.map(|text| FULL.replacen(&format!("\"{text}\""), &format!("\"{CANARY}\""), 1));
    let references = ["{ env = \"ADDRESS\" }", "{ env = \"TOKEN\" }", "{ credential = \"shop-api\" }"];
    let plain = references.map(|reference| FULL.replace(reference, &format!("\"{CANARY}\"")));
    let unquoted = references.map(|reference| FULL.replace(reference, CANARY));
    let unclosed = references.map(|reference| FULL.replace(reference, &format!("\"{CANARY}")));
    let mut refused = 0;
    for text in pasted.chain(plain).chain(unquoted).chain(unclosed) {
        assert!(text.contains(CANARY));
        if let Err(problems) = fixture.load(&text) {
            refused += 1;
            assert!(!format!("{problems} {problems:?}").contains(CANARY), "{problems}");
        }
    }
    assert!(refused > 30, "only {refused} were refused");
}

#[test]
fn references_lead_to_one_good_secret() {
    let fixture = Fixture::new();
    fixture.write("empty.secret", "\n");
    fixture.write("two-lines.secret", "one\n\n");
    fixture.write("long.secret", &"x".repeat(64 * 1024 + 1));
    fixture.write("open.secret", "secret");
    #[cfg(unix)]
    set_mode(&fixture.folder.path().join("open.secret"), 0o640);
    let check = |reference: &str, expected: &str| {
        let text = FULL.replace("address_token = { env = \"ADDRESS\" }", &format!("address_token = {reference}"));
        let problems = fixture.load(&text).expect_err(reference);
        let texts: Vec<_> = problems.as_slice().iter().map(|problem| problem.text.as_str()).collect();
        assert_eq!(texts, [expected], "{reference}");
    };
    let once = "[sources.crm.address_token] must say once where the secret is";
    check("{}", once);
    check("{ env = \"ADDRESS\", file = \"old.secret\" }", once);
    check("[]", "`address_token` in [sources.crm] must be a reference, not the secret itself");
    check("12345678901234567890", "`address_token` in [sources.crm] must be a reference, not the secret itself");
    let of = |key: &str, text: &str| format!("`{key}` in [sources.crm.address_token] {text}");
    let absent = "names what cannot be read: No such file or directory (os error 2)";
    let blank = "leads to a secret with a blank, a second line or a control character in it";
    check("{ env = \"ABSENT\" }", &of("env", "names a variable that is not set"));
    check("{ env = \"EMPTY\" }", &of("env", "leads to an empty secret"));
    check("{ env = \"LINES\" }", &of("env", blank));
    check("{ file = \"absent.secret\" }", &of("file", absent));
    check("{ file = \"empty.secret\" }", &of("file", "leads to an empty secret"));
    check("{ file = \"two-lines.secret\" }", &of("file", blank));
    check("{ file = \"long.secret\" }", &of("file", "names a file that is too long for a secret"));
    #[cfg(unix)]
    check("{ file = \"open.secret\" }", &of("file", "names a file that is open to its group or to all"));
    check("{ credential = \"absent\" }", &of("credential", absent));
    for path in ["../old.secret", "..", "/etc/passwd", ""] {
        let text = of("credential", "must be the name of a credential, not a path");
        check(&format!("{{ credential = \"{path}\" }}"), &text);
    }
    check("{ env = \"SHORT\" }", "`address_token` in [sources.crm] must have 16 characters or more");
    let plain = "`address_token` in [sources.crm] must hold only letters, digits, `-`, `.`, `_` and `~`";
    check("{ env = \"SLASH\" }", plain);
}

/// Who only needs names can do without the secrets, but not without a file that is well.
#[test]
fn secrets_can_stay_where_they_are() {
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.folder.path().join("credentials")).unwrap();
    fs::remove_file(fixture.folder.path().join("old.secret")).unwrap();
    let load = |text: &str| {
        fixture.write("tambour.toml", text);
        load_without_secrets(&fixture.folder.path().join("tambour.toml"))
    };
    let config = load(FULL).unwrap();
    let known = |secret: &Secret| secret.known().map_or("unread", |_| "SECRET");
    assert!(dump(&config, known).contains("unread"));
    assert!(!dump(&config, known).contains("SECRET"));
    assert_eq!(load(PACKAGED).unwrap().targets.len(), 1);
    let check = |from: &str, to: &str, expected: &str| {
        assert!(FULL.contains(from), "{from}");
        let problems = load(&FULL.replace(from, to)).expect_err(to).to_string();
        assert!(problems.contains(expected), "{problems}");
    };
    let address = "address_token = { env = \"ADDRESS\" }";
    check(address, "address_token = \"pasted-address-token\"", "must be a reference, not the secret itself");
    check(address, "address_token = {}", "must say once where the secret is");
    check(address, "address_token = { credential = \"../x\" }", "must be the name of a credential, not a path");
}

#[test]
fn a_condition_on_an_unknown_field_is_told() {
    let fixture = Fixture::new();
    let check = |to: &str, expected: &str| {
        let problems = fixture.load(&PACKAGED.replace("where = { status_id", &format!("where = {{ {to}"))).unwrap_err();
        assert!(problems.to_string().contains(expected), "{problems}");
    };
    let text = "in [routes.where] is no field of these events, so the route would never act";
    check("statusid", &format!("`statusid` {text}; did you mean `status_id`?"));
    check("order.total", &format!("`order` {text}"));
}

#[test]
fn every_target_has_one_notice_task() {
    let config = Fixture::new().load(FULL).unwrap();
    assert_eq!(config.notice_task("crm").unwrap().name, "tell");
    assert_eq!(config.notice_task("twin").unwrap().name, "notice-twin", "both stay with the first name");
    assert!(config.notice_task("third").is_none());
}

/// Tasks of shops that are renamed, removed and brought back.
#[test]
fn a_lost_name_is_refused_with_what_to_write() {
    let fixture = Fixture::new();
    let used = |kind: NameKind, name: &str| UsedName { kind, name: name.to_owned(), since: Timestamp::from_secs(0) };
    let used = || {
        vec![
            used(NameKind::Source, "shop"),
            used(NameKind::Source, "kommo"),
            used(NameKind::Target, "crm"),
            used(NameKind::Task, "note"),
            used(NameKind::Task, "notice-twin"),
        ]
    };
    let check = |old: &str, new: &str, expected: &[&str]| {
        assert!(FULL.contains(old), "{old}");
        let config = fixture.load(&FULL.replace(old, new)).unwrap_or_else(|problems| panic!("{problems}"));
        let lost = config.keeps(used()).err().map(|lost| lost.to_string()).unwrap_or_default();
        assert_eq!(lost.lines().collect::<Vec<_>>(), expected, "{new}");
    };
    check("tasks.note", "tasks.note", &[]);
    let both = "the data file knows the task `note` (since 1970-01-01T00:00:00.000Z), and the configuration does not: \
        if it has another name now, write formerly = \"note\" in [tasks.<its new name>]; \
        if it is gone for good, write retire = [\"task note\"] at the top";
    let renamed = FULL.replace("[tasks.note]", "[tasks.paid]").replace("task = \"note\"", "task = \"paid\"");
    check(FULL, &renamed, &[both]);
    check(FULL, &renamed.replace("[tasks.paid]", "[tasks.paid]\nformerly = \"note\""), &[]);
    check(FULL, &renamed.replace("\"source gone\"", "\"source gone\", \"task note\""), &[]);
    // One new source and one lost one: likely the same.
    let renamed = FULL.replace("[sources.shop", "[sources.moscow").replace("source = \"shop\"", "source = \"moscow\"");
    let one = both.replace("task `note`", "source `shop`").replace("\"note\"", "\"shop\"");
    let one = one.replace("task note", "source shop").replace("[tasks.<its new name>]", "[sources.moscow]");
    check(FULL, &renamed, &[&one]);
}
