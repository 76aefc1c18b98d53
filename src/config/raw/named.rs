//! Tables whose names the file's author chooses: sources, targets, tasks.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::raw::scalar::is_name;
use crate::config::raw::{Reported, Section, Value, did_you_mean, listed};

/// What was read under each name. A name that failed stays known, so that
/// those who name it are not told that it does not exist.
pub(in crate::config) struct Named<T> {
    kind: &'static str,
    read: Result<BTreeMap<String, Result<T, Reported>>, Reported>,
    /// The names in keys of those that have another name now.
    former: BTreeMap<String, String>,
}

/// One of the tables, with its name.
pub(in crate::config) struct NamedSection<'f> {
    /// The name that keys are built with: the former one, if it had another.
    pub(in crate::config) name: String,
    /// The name in the file.
    pub(in crate::config) written: String,
    /// What stands in it.
    pub(in crate::config) section: Section<'f>,
}

impl<T> Named<T> {
    /// Reads every table under `kind`, a key of the top table; none if it is absent.
    pub(in crate::config) fn read<'f>(
        top: &mut Section<'f>,
        kind: &'static str,
        mut read: impl FnMut(NamedSection<'f>) -> Result<T, Reported>,
    ) -> Self {
        let mut former = BTreeMap::new();
        let mut one = |(written, value): (String, Value<'f>), taken: &mut BTreeSet<String>| {
            if !is_name(&written) {
                let text = "must be named in a-z, 0-9, `-` and `_`, at most 40 characters";
                return (written, Err(value.refuse(text)));
            }
            let outcome = value.section().and_then(|mut section| {
                let formerly = section.optional("formerly", |value| free_name(value, taken));
                if let Ok(Some(name)) = &formerly {
                    former.insert(written.clone(), name.clone());
                }
                let name = formerly.as_ref().ok().cloned().flatten().unwrap_or_else(|| written.clone());
                let outcome = read(NamedSection { name, written: written.clone(), section });
                formerly.and(outcome)
            });
            (written, outcome)
        };
        let tables = top.optional(kind, Value::section);
        let read = tables.map(|tables| {
            let tables: Vec<_> = tables.into_iter().flat_map(|mut t| t.take_all()).collect();
            let mut taken = tables.iter().map(|(written, _)| written.clone()).collect();
            tables.into_iter().map(|table| one(table, &mut taken)).collect()
        });
        Self { kind, read, former }
    }

    /// Whether something has this name, now or in keys.
    pub(in crate::config) fn has(&self, name: &str) -> bool {
        self.former.values().any(|former| former == name) || self.read.iter().any(|read| read.contains_key(name))
    }

    /// Those with another name in keys than in the file: (in the file, in keys).
    pub(in crate::config) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.former.iter().map(|(written, name)| (written.as_str(), name.as_str()))
    }

    /// Looks up what a value names, or reports that there is no such thing.
    pub(in crate::config) fn find(&self, value: &Value<'_>) -> Result<&T, Reported> {
        let name = value.text()?;
        let read = self.read.as_ref().map_err(|&reported| reported)?;
        match read.get(name) {
            Some(outcome) => outcome.as_ref().map_err(|&reported| reported),
            None => {
                let known = || read.keys().map(String::as_str).filter(|name| is_name(name));
                let hint = did_you_mean(name, known())
                    .or_else(|| (!read.is_empty()).then(|| format!("there are: {}", listed(known()))));
                Err(value.refuse_with(format_args!("names what is not in [{}]", self.kind), hint))
            }
        }
    }

    /// What was read without a problem and has this name in keys.
    pub(in crate::config) fn get(&self, name: &str) -> Option<&T> {
        let written = match self.former.iter().find(|(_, former)| *former == name) {
            Some((written, _)) => written,
            None if self.former.contains_key(name) => return None,
            None => name,
        };
        self.read.as_ref().ok()?.get(written)?.as_ref().ok()
    }

    /// All that was read without a problem.
    pub(in crate::config) fn values(&self) -> impl Iterator<Item = &T> {
        self.read.iter().flat_map(BTreeMap::values).filter_map(|outcome| outcome.as_ref().ok())
    }

    /// Adds one that the file leaves out.
    pub(in crate::config) fn add(&mut self, name: String, made: T) {
        if let Ok(read) = &mut self.read {
            read.entry(name).or_insert(Ok(made));
        }
    }

    /// All by their names in keys, if nothing was reported.
    pub(in crate::config) fn into_map(mut self) -> Result<BTreeMap<String, T>, Reported> {
        let former = &mut self.former;
        let one = |(written, outcome): (String, Result<T, Reported>)| {
            let name = former.remove(&written).unwrap_or(written);
            Ok((name, outcome?))
        };
        self.read?.into_iter().map(one).collect()
    }
}

/// A former name is nobody else's, now or before.
fn free_name(value: &Value<'_>, taken: &mut BTreeSet<String>) -> Result<String, Reported> {
    let name = value.name()?;
    if taken.insert(name.clone()) { Ok(name) } else { Err(value.refuse("names what is still there, or twice")) }
}
