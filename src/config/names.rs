//! Names in the configuration, and names in keys.
//!
//! A key is built with the first name that a thing had, for good: a task row, an
//! entity and the marker in the CRM must stay what they are when somebody
//! renames `[sources.shop]`. So an entry with `formerly` has that as its name in
//! the whole program, and the name in the file is only how people write it.
//!
//! The data file remembers which names its keys hold. A configuration in which
//! one of them is neither an entry, nor somebody's `formerly`, nor retired would
//! make everything anew under other keys, so it is refused ([`LostNames`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::config::{Config, defaults};
use crate::domain::{NameKind, UsedName};

/// What had another name, and what is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names in keys, by the names in the file; only where they differ.
    former: BTreeMap<(NameKind, String), String>,
    retired: BTreeSet<(NameKind, String)>,
}

impl Names {
    pub(super) fn new(renamed: &[(NameKind, Vec<(&str, &str)>)], retired: BTreeSet<(NameKind, String)>) -> Self {
        let pairs = renamed.iter().flat_map(|(kind, pairs)| pairs.iter().map(|pair| (*kind, *pair)));
        let former = pairs.map(|(kind, (written, name))| ((kind, written.to_owned()), name.to_owned())).collect();
        Self { former, retired }
    }

    /// The name in keys of what people call `name`; a former name is taken as it is.
    pub fn in_keys<'a>(&'a self, kind: NameKind, name: &'a str) -> &'a str {
        self.former.iter().find(|((of, written), _)| *of == kind && written == name).map_or(name, |(_, name)| name)
    }

    /// How the configuration writes what keys call `name`.
    pub fn written<'a>(&'a self, kind: NameKind, name: &'a str) -> &'a str {
        let found = self.former.iter().find(|((of, _), former)| *of == kind && *former == name);
        found.map_or(name, |((_, written), _)| written)
    }

    /// The names of one kind that are gone for good.
    pub fn retired(&self, kind: NameKind) -> impl Iterator<Item = &str> {
        self.retired.iter().filter(move |(of, _)| *of == kind).map(|(_, name)| name.as_str())
    }
}

impl Config {
    /// Refuses the configuration if a name that keys hold is not in it any more.
    ///
    /// # Errors
    /// [`LostNames`] with what to write.
    pub fn keeps(&self, used: Vec<UsedName>) -> Result<(), LostNames> {
        let is_new = |kind, name: &str| {
            !used.iter().any(|used| used.kind == kind && used.name == name) && !self.is_left_out(kind, name)
        };
        let lost = used.iter().filter(|used| !self.knows(used)).map(|used| {
            let mut fresh = self.entries(used.kind).into_iter().filter(|name| is_new(used.kind, name));
            // Only when there is no choice may it be guessed.
            let entry = fresh.next().filter(|_| fresh.next().is_none());
            LostName { used: used.clone(), entry: entry.map(|name| self.names.written(used.kind, name).to_owned()) }
        });
        let lost: Vec<LostName> = lost.collect();
        if lost.is_empty() { Ok(()) } else { Err(LostNames(lost)) }
    }

    fn knows(&self, used: &UsedName) -> bool {
        self.entries(used.kind).contains(&used.name.as_str())
            || self.names.retired(used.kind).any(|name| name == used.name)
    }

    /// Whether the file gives a notice task no entry of its own.
    fn is_left_out(&self, kind: NameKind, name: &str) -> bool {
        let target = name.strip_prefix(defaults::NOTICE_PREFIX).filter(|_| kind == NameKind::Task);
        target.is_some_and(|target| self.targets.contains_key(target))
    }

    /// The names in keys of all entries of a kind.
    fn entries(&self, kind: NameKind) -> Vec<&str> {
        match kind {
            NameKind::Source => self.sources.keys().map(String::as_str).collect(),
            NameKind::Target => self.targets.keys().map(String::as_str).collect(),
            NameKind::Task => self.tasks.keys().map(String::as_str).collect(),
        }
    }
}

/// A name that keys hold and the configuration has lost. Prints with what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostName {
    used: UsedName,
    /// The one new entry of its kind, if there is exactly one.
    entry: Option<String>,
}

impl fmt::Display for LostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UsedName { kind, name, since } = &self.used;
        let kind = kind.as_str();
        let entry = self.entry.as_deref().unwrap_or("<its new name>");
        write!(
            f,
            "the data file knows the {kind} `{name}` (since {since}), and the configuration does not: \
             if it has another name now, write formerly = \"{name}\" in [{kind}s.{entry}]; \
             if it is gone for good, write retire = [\"{}\"] at the top",
            self.used
        )
    }
}

/// All names that a configuration has lost; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostNames(Vec<LostName>);

impl LostNames {
    /// Each of them.
    pub fn as_slice(&self) -> &[LostName] {
        &self.0
    }
}

impl fmt::Display for LostNames {
    /// One a line, without a line end after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, lost) in self.0.iter().enumerate() {
            let line_end = if i == 0 { "" } else { "\n" };
            write!(f, "{line_end}{lost}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LostNames {}
