//! The configuration file while it is read, and the list of its problems.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::config::Problem;
use crate::config::raw::Section;

/// Proof that a problem stands in the list; stands for the value that is missing.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Reported(());

/// Whether secrets are read from where the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Secrets {
    /// Each is read and checked.
    Read,
    /// References are checked by their form only.
    Unread,
}

/// A configuration file and what its references are looked up in.
pub(in crate::config) struct File<'f> {
    path: &'f Path,
    text: &'f str,
    environment: &'f dyn Fn(&str) -> Option<String>,
    secrets: Secrets,
    problems: RefCell<Vec<Problem>>,
}

impl<'f> File<'f> {
    pub(in crate::config) fn new(
        path: &'f Path,
        text: &'f str,
        environment: &'f dyn Fn(&str) -> Option<String>,
        secrets: Secrets,
    ) -> Self {
        Self { path, text, environment, secrets, problems: RefCell::default() }
    }

    /// Parses the whole text; every syntax error is reported, and then nothing else.
    pub(in crate::config) fn top(&'f self) -> Result<Section<'f>, Reported> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        let mut outcome = Ok(());
        for error in errors {
            // Only the message: the parser's full text quotes the line, which may hold a secret.
            let line = error.span().map(|span| self.line(&span));
            outcome = Err(self.report(line, format!("not valid TOML: {}", error.message()), None));
        }
        outcome.map(|()| Section::top(self, table.into_inner()))
    }

    /// Adds a problem.
    pub(super) fn report(&self, line: Option<usize>, text: String, hint: Option<String>) -> Reported {
        self.problems.borrow_mut().push(Problem { file: self.path.to_owned(), line, text, hint });
        Reported(())
    }

    /// The line, from 1, where a piece of the text starts.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        1 + self.text.bytes().take(span.start).filter(|&byte| byte == b'\n').count()
    }

    /// A path as the file means it: relative to its own folder.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.with_file_name(path)
    }

    /// A variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    /// Whether secrets are read.
    pub(super) const fn secrets(&self) -> Secrets {
        self.secrets
    }

    pub(in crate::config) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }
}
