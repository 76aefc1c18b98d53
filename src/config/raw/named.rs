//! Tables whose names the file's author chooses: sources, targets, tasks.

use std::collections::BTreeMap;

use crate::config::raw::scalar::is_name;
use crate::config::raw::{Reported, Section, Value, did_you_mean, listed};

/// What was read under each name. A name that failed stays known, so that
/// those who name it are not told that it does not exist.
pub(in crate::config) struct Named<T> {
    kind: &'static str,
    read: Result<BTreeMap<String, Result<T, Reported>>, Reported>,
}

/// One of the tables, with its name.
pub(in crate::config) struct NamedSection<'f> {
    /// The name.
    pub(in crate::config) name: String,
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
        let mut one = |(name, value): (String, Value<'f>)| {
            let outcome = if is_name(&name) {
                value.section().and_then(|section| read(NamedSection { name: name.clone(), section }))
            } else {
                Err(value.refuse("must be named in a-z, 0-9, `-` and `_`, at most 40 characters"))
            };
            (name, outcome)
        };
        let tables = top.optional(kind, Value::section);
        let read = tables.map(|tables| tables.into_iter().flat_map(|mut t| t.take_all()).map(&mut one).collect());
        Self { kind, read }
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

    /// What was read without a problem under this name.
    pub(in crate::config) fn get(&self, name: &str) -> Option<&T> {
        self.read.as_ref().ok()?.get(name)?.as_ref().ok()
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

    /// All, if nothing was reported.
    pub(in crate::config) fn into_map(self) -> Result<BTreeMap<String, T>, Reported> {
        self.read?.into_iter().map(|(name, outcome)| Ok((name, outcome?))).collect()
    }
}
