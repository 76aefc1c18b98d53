//! How a command ends badly: kind, causes, and a command to type next.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::iter;

use crate::admin::{self, AskError, FailureKind, ListenError};
use crate::cli::demo;
use crate::cli::exit::Exit;
use crate::client::SetupError;
use crate::config::{LostNames, Problems};
use crate::domain::Refusal;
use crate::store::OpenError;
use crate::{listener, server};

/// What went wrong, for the person at the terminal.
#[derive(Debug)]
pub(super) struct Error {
    exit: Exit,
    /// The error, then its causes.
    chain: Vec<String>,
    /// A command to type, or what to change.
    hint: Option<String>,
}

impl Error {
    /// Takes an error with its causes.
    pub(super) fn new(exit: Exit, error: &(dyn StdError + 'static)) -> Self {
        let chain = iter::successors(Some(error), |&error| error.source()).map(ToString::to_string);
        let mut chain: Vec<String> = chain.collect();
        chain.dedup();
        Self { exit, chain, hint: None }
    }

    /// Says something of our own.
    pub(super) fn of(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, chain: vec![text.into()], hint: None }
    }

    /// With what to do about it.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the hint said otherwise.
    #[must_use]
    pub(super) fn map_hint(mut self, change: impl FnOnce(&str) -> String) -> Self {
        self.hint = self.hint.map(|hint| change(&hint));
        self
    }

    /// The process's exit code.
    pub(super) const fn exit(&self) -> Exit {
        self.exit
    }
}

impl From<demo::Error> for Error {
    fn from(error: demo::Error) -> Self {
        let exit = if matches!(error, demo::Error::Used(_)) { Exit::Usage } else { Exit::Internal };
        Self::new(exit, &error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, causes) =
            self.chain.split_first().map_or(("", &[][..]), |(first, causes)| (first.as_str(), causes));
        write!(f, "error ({}): {first}", self.exit.word())?;
        for cause in causes {
            write!(f, "\n  because: {cause}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

const AS_OWNER: &str = "run it as the user of the service: sudo -u tambour tambour ...";

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        let count = problems.as_slice().len();
        let text = format!("{count} to put right in the configuration\n{problems}");
        Self::of(Exit::Configuration, text).hint("then see that all is well: tambour check")
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        let hint = match &error {
            OpenError::InUse { .. } => Some("if it has just started, try again; else stop it: systemctl stop tambour"),
            OpenError::Folder { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Some(AS_OWNER),
            OpenError::Absent { .. } => Some("tambour serve"),
            OpenError::Elsewhere { is_copy: false, .. } => {
                Some("once that host is off for good: tambour serve --take-over")
            }
            OpenError::Elsewhere { .. } => Some("once nothing works on the other file: tambour serve --take-over"),
            OpenError::Damaged { .. } | OpenError::Unrepaired { .. } => Some("look at the disk first: dmesg, smartctl"),
            OpenError::Newer { .. } | OpenError::Folder { .. } | OpenError::Broken { .. } => None,
        };
        Self { hint: hint.map(str::to_owned), ..Self::new(Exit::DataFile, &error) }
    }
}

impl From<admin::Failure> for Error {
    fn from(failure: admin::Failure) -> Self {
        let exit = match failure.kind {
            FailureKind::Invalid => Exit::Usage,
            FailureKind::Unknown => Exit::Refused,
            FailureKind::Store | FailureKind::Unavailable => Exit::DataFile,
            FailureKind::Outside => Exit::Unreachable,
            FailureKind::Internal => Exit::Internal,
        };
        Self::of(exit, failure.text)
    }
}

impl From<AskError> for Error {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Failed(failure) => failure.into(),
            AskError::Broken { ref source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Self::new(Exit::DataFile, &error).hint(AS_OWNER)
            }
            AskError::Broken { .. } | AskError::NobodyAnswers { .. } => Self::new(Exit::DataFile, &error),
        }
    }
}

impl From<server::Error> for Error {
    fn from(error: server::Error) -> Self {
        match error {
            server::Error::Listener(error) => error.into(),
            server::Error::Open(error) => error.into(),
            server::Error::Names(lost) => lost.into(),
            server::Error::Socket(error) => error.into(),
            server::Error::Stopped(_) => {
                Self::new(Exit::Stopped, &error).hint("see that the disk is well: df -h, dmesg")
            }
            server::Error::Service(_) | server::Error::Ended | server::Error::Signal(_) => {
                Self::new(Exit::Internal, &error)
            }
        }
    }
}

impl From<LostNames> for Error {
    fn from(lost: LostNames) -> Self {
        Self::of(Exit::Configuration, lost.to_string()).hint("then see that all is well: tambour check")
    }
}

impl From<ListenError> for Error {
    fn from(error: ListenError) -> Self {
        Self::new(Exit::DataFile, &error)
    }
}

impl From<listener::Error> for Error {
    fn from(error: listener::Error) -> Self {
        Self { hint: error.hint().map(str::to_owned), ..Self::new(Exit::Configuration, &error) }
    }
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(Exit::Configuration, &error).hint("apt-get install ca-certificates")
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(Exit::Unreachable, &refusal)
    }
}

/// The other end of stdout or stdin is gone.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Internal, &error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_error_ends_with_kind_causes_and_what_to_type() {
        let absent: Error = OpenError::Absent { path: PathBuf::from("/d/tambour.redb") }.into();
        assert_eq!(absent.exit(), Exit::DataFile);
        let text =
            "error (data file): there is no data file `/d/tambour.redb`; `tambour serve` makes it\nhint: tambour serve";
        assert_eq!(absent.to_string(), text);
        let source = io::Error::new(io::ErrorKind::PermissionDenied, "permission denied");
        let denied: Error = AskError::Broken { path: PathBuf::from("/d/tambour.sock"), source }.into();
        let text = "error (data file): failed to talk to the socket `/d/tambour.sock`\n  because: permission denied\n\
            hint: run it as the user of the service: sudo -u tambour tambour ...";
        assert_eq!(denied.to_string(), text);
    }

    #[test]
    fn a_failed_write_has_a_code_of_its_own() {
        let stopped = server::Error::Stopped(crate::store::Error::Stopped);
        assert_eq!(Error::from(stopped).exit(), Exit::Stopped);
    }

    #[test]
    fn every_failure_of_a_request_has_its_code() {
        let check = |kind: FailureKind, expected: Exit| {
            assert_eq!(Error::from(admin::Failure { kind, text: String::new() }).exit(), expected, "{kind:?}");
        };
        check(FailureKind::Invalid, Exit::Usage);
        check(FailureKind::Unknown, Exit::Refused);
        check(FailureKind::Store, Exit::DataFile);
        check(FailureKind::Unavailable, Exit::DataFile);
        check(FailureKind::Outside, Exit::Unreachable);
        check(FailureKind::Internal, Exit::Internal);
    }
}
