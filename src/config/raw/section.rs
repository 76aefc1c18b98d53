//! A table of the file, read key by key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::raw::{File, Reported, Value, did_you_mean, listed};

/// A table whose keys are taken one by one; those left at the end are unknown.
pub(in crate::config) struct Section<'f> {
    file: &'f File<'f>,
    title: Title,
    line: Option<usize>,
    values: BTreeMap<Cow<'f, str>, (usize, DeValue<'f>)>,
    known: Vec<&'static str>,
}

/// How the file itself would head the table: `[sources.shop]`, `[[routes]]`; empty at the top.
#[derive(Clone)]
pub(super) struct Title {
    path: String,
    is_list: bool,
}

impl Title {
    /// The title of the table under one of its keys.
    pub(super) fn of(&self, key: &str, is_list: bool) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{dot}{}", self.path, shown(key)), is_list }
    }

    /// `key` as people find it: with the table that it stands in.
    pub(super) fn name(&self, key: &str) -> String {
        let key = shown(key);
        if self.path.is_empty() { format!("`{key}`") } else { format!("`{key}` in {}", self.brackets()) }
    }

    fn brackets(&self) -> String {
        if self.is_list { format!("[[{}]]", self.path) } else { format!("[{}]", self.path) }
    }
}

impl<'f> Section<'f> {
    /// The whole file.
    pub(super) fn top(file: &'f File<'f>, table: DeTable<'f>) -> Self {
        Self::new(file, Title { path: String::new(), is_list: false }, None, table)
    }

    pub(super) fn new(file: &'f File<'f>, title: Title, line: Option<usize>, table: DeTable<'f>) -> Self {
        let entry = |(key, value): (Spanned<Cow<'f, str>>, Spanned<DeValue<'f>>)| {
            let line = file.line(&key.span());
            (key.into_inner(), (line, value.into_inner()))
        };
        Self { file, title, line, values: table.into_iter().map(entry).collect(), known: Vec::new() }
    }

    /// Reads a key that must be there.
    pub(in crate::config) fn required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'f>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        match self.take(key) {
            Some(value) => read(&value),
            None => Err(self.file.report(self.line, format!("{} is missing", self.title.name(key)), None)),
        }
    }

    /// Reads a key that may be absent.
    pub(in crate::config) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'f>) -> Result<T, Reported>,
    ) -> Result<Option<T>, Reported> {
        self.take(key).map(|value| read(&value)).transpose()
    }

    /// Reads a key that has a default.
    pub(in crate::config) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Value<'f>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        self.optional(key, read).map(|value| value.unwrap_or(default))
    }

    /// Takes all that is left, where the file's author chooses the keys.
    pub(in crate::config) fn take_all(&mut self) -> Vec<(String, Value<'f>)> {
        let values = std::mem::take(&mut self.values);
        values.into_iter().map(|(key, (line, content))| (key.to_string(), self.value(&key, line, content))).collect()
    }

    /// Reports that the table as a whole is wrong.
    pub(in crate::config) fn refuse(&self, text: impl Display, hint: Option<String>) -> Reported {
        self.file.report(self.line, format!("{} {text}", self.title.brackets()), hint)
    }

    /// Reports every key that nobody asked for.
    pub(in crate::config) fn finish(self) -> Result<(), Reported> {
        let mut outcome = Ok(());
        for (key, (line, _)) in &self.values {
            let known = || self.known.iter().copied();
            let hint = did_you_mean(key, known()).unwrap_or_else(|| format!("known here: {}", listed(known())));
            let text = format!("unknown key {}", self.title.name(key));
            outcome = Err(self.file.report(Some(*line), text, Some(hint)));
        }
        outcome
    }

    fn take(&mut self, key: &'static str) -> Option<Value<'f>> {
        self.known.push(key);
        let (line, content) = self.values.remove(key)?;
        Some(self.value(key, line, content))
    }

    fn value(&self, key: &str, line: usize, content: DeValue<'f>) -> Value<'f> {
        Value::new(self.file, self.title.clone(), key.to_owned(), line, content)
    }
}

/// A quoted TOML key may hold anything; people see one line of it.
fn shown(key: &str) -> String {
    const CHARS_MAX: usize = 40;
    key.chars().take(CHARS_MAX).collect::<String>().escape_debug().to_string()
}
