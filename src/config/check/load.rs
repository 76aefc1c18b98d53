//! The file as a whole, and its small tables.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::check::{retire, route, source, target, task};
use crate::config::raw::{File, Named, Reported, Secrets, Section, Value};
use crate::config::{Config, Front, Language, Listener, Names, Problem, Problems, defaults};
use crate::domain::{NameKind, Pauses};

/// More would only wait for the same file and the same targets.
const WORKERS: RangeInclusive<usize> = 1..=64;
/// A shorter pause hammers a target that is down; a longer one forgets the task.
const PAUSE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24);
const LANGUAGES: [(&str, Language); 2] = [("ru", Language::Ru), ("en", Language::En)];

/// Reads and checks the file at `path`, and reads the secrets that it points to.
///
/// `environment` tells the variables that secrets may be in, and
/// `CREDENTIALS_DIRECTORY`. Relative paths begin at the file's folder.
///
/// # Errors
/// All [`Problems`] at once; but a file that is not TOML has only those.
pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Config, Problems> {
    read(path, environment, Secrets::Read)
}

/// Reads and checks the file at `path`, all but its secrets, which stay unread.
///
/// For whoever needs only the names and the data folder, where the secrets of the service may not be reached.
///
/// # Errors
/// As [`load`].
pub fn load_without_secrets(path: &Path) -> Result<Config, Problems> {
    read(path, &|_| None, Secrets::Unread)
}

fn read(path: &Path, environment: &dyn Fn(&str) -> Option<String>, secrets: Secrets) -> Result<Config, Problems> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        let text = format!("cannot be read: {e}");
        Problems::new(vec![Problem { file: path.to_owned(), line: None, text, hint: None }])
    })?;
    let file = File::new(path, &text, environment, secrets);
    let config = file.top().and_then(whole);
    let problems = file.into_problems();
    match config {
        Ok(config) if problems.is_empty() => Ok(config),
        Ok(_) | Err(_) => Err(Problems::new(problems)),
    }
}

fn whole(mut top: Section<'_>) -> Result<Config, Reported> {
    let language = top.or("language", defaults::LANGUAGE, |value| value.one_of(&LANGUAGES));
    let data = top.required("data", folder);
    let workers = top.or("workers", defaults::WORKERS, |value| value.number(&WORKERS));
    let pauses = top.or("pauses", Pauses::default(), pauses);
    let listener = top.required("listener", listener);
    let admin = top.or("admin", defaults::ADMIN, admin);
    let sources = Named::read(&mut top, "sources", source::read);
    let targets = Named::read(&mut top, "targets", target::read);
    let mut noticed = BTreeSet::new();
    let mut tasks = Named::read(&mut top, "tasks", |named| task::read(named, &targets, &mut noticed));
    let routes =
        top.or("routes", Vec::new(), |value| value.each(|value| route::read(value, &sources, &targets, &tasks)));
    let retired = top.or("retire", BTreeSet::new(), |value| retire::read(value, &sources, &targets, &tasks));
    top.finish()?;
    task::add_notices(&mut tasks, &targets, &noticed);
    let renamed = [
        (NameKind::Source, sources.renamed().collect::<Vec<_>>()),
        (NameKind::Target, targets.renamed().collect()),
        (NameKind::Task, tasks.renamed().collect()),
    ];
    let names = Names::new(&renamed, retired?);
    Ok(Config {
        language: language?,
        data: data?,
        listener: listener?,
        admin: admin?,
        sources: sources.into_map()?,
        targets: targets.into_map()?,
        tasks: tasks.into_map()?,
        routes: routes?,
        workers: workers?,
        pauses: pauses?,
        names,
    })
}

/// A folder, which may be made later.
fn folder(value: &Value<'_>) -> Result<PathBuf, Reported> {
    let path = value.path()?;
    if path.exists() && !path.is_dir() { Err(value.refuse("names a file, not a folder")) } else { Ok(path) }
}

fn pauses(value: &Value<'_>) -> Result<Pauses, Reported> {
    let pauses = value.each(|pause| pause.duration(&PAUSE))?;
    Pauses::new(&pauses).ok_or_else(|| value.refuse("is an empty list"))
}

/// `trusted_proxies` decides which other keys there are.
fn listener(value: &Value<'_>) -> Result<Listener, Reported> {
    let mut section = value.section()?;
    let trusted = section.optional("trusted_proxies", |value| value.each_of_some(Value::network));
    let is_plain = !matches!(trusted, Ok(None));
    let address = section.required("address", |value| match value.address()? {
        address if is_plain && !is_inside(address.ip()) => {
            Err(value.refuse("must be a loopback or private address, since behind `trusted_proxies` HTTP is plain"))
        }
        address => Ok(address),
    });
    let front = if is_plain {
        let unused = |value: &Value<'_>| Err::<(), _>(value.refuse("has no use: `trusted_proxies` end TLS"));
        let (certificate, key) = (section.optional("certificate", unused), section.optional("key", unused));
        trusted.and_then(|trusted| {
            certificate.and(key)?;
            Ok(Front::Proxies { trusted: trusted.unwrap_or_default() })
        })
    } else {
        let certificate = section.required("certificate", Value::existing_file);
        let key = section.required("key", Value::existing_file);
        certificate.and_then(|certificate| Ok(Front::Tls { certificate, key: key? }))
    };
    section.finish()?;
    Ok(Listener { address: address?, front: front? })
}

/// Whether only this machine or its own network reaches the address (RFC 1918, RFC 4193).
fn is_inside(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    }
}

fn admin(value: &Value<'_>) -> Result<SocketAddr, Reported> {
    let mut section = value.section()?;
    let address = section.or("address", defaults::ADMIN, |value| match value.address()? {
        address if address.ip().is_loopback() => Ok(address),
        _ => Err(value.refuse("must be a loopback address, such as \"127.0.0.1:9464\"")),
    });
    section.finish()?;
    address
}
