//! What is wrong with a configuration: all of it at once, each with its line.

use std::fmt;
use std::path::PathBuf;

/// One thing to put right. Prints as `tambour.toml:12: what is wrong; what to do`.
///
/// Holds no secret: what a secret's reference says is never repeated, because
/// people paste the secret itself there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The configuration file, as it was named to us.
    pub file: PathBuf,
    /// The line, from 1; absent when the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong, and where in the file's own words.
    pub text: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Every problem of a configuration, in the order of lines; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Sorts them by line; problems of one line keep their order.
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.line);
        Self(problems)
    }

    /// Each problem.
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    /// One problem a line, without a line end after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let line_end = if i == 0 { "" } else { "\n" };
            write!(f, "{line_end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
