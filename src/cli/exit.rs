//! The exit codes: scripts and service managers branch on them, so they stay.

use std::process::ExitCode;

/// For the help text; a test compares it with the codes.
pub(super) const HELP: &str = "\
Exit codes:
  0    done
  1    refused, nothing matched, or the data file is damaged
  2    the command line means nothing
  3    the configuration, or what it names, must be put right
  4    the data file is in use, absent or unusable
  5    a system could not be reached
  70   serve: the data file takes no more writes; start again
  101  a mistake of tambour itself";

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Ok,
    /// Somebody said no, nothing matched, or the data file is damaged.
    Refused,
    /// The command line means nothing.
    Usage,
    /// The configuration, or what it names, must be put right.
    Configuration,
    /// The data file is in use, absent or unusable.
    DataFile,
    /// A system could not be reached.
    Unreachable,
    /// `serve` ended after a failed write; the next start checks the file.
    Stopped,
    /// A mistake of ours; also the code of a panic.
    Internal,
}

impl Exit {
    /// The number.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Configuration => 3,
            Self::DataFile => 4,
            Self::Unreachable => 5,
            Self::Stopped => 70,
            Self::Internal => 101,
        }
    }

    /// The kind in an error's first line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "none",
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::Configuration => "configuration",
            Self::DataFile => "data file",
            Self::Unreachable => "unreachable",
            Self::Stopped => "stopped",
            Self::Internal => "internal",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_code() {
        let all = [
            Exit::Ok,
            Exit::Refused,
            Exit::Usage,
            Exit::Configuration,
            Exit::DataFile,
            Exit::Unreachable,
            Exit::Stopped,
            Exit::Internal,
        ];
        let listed = HELP.lines().skip(1).map(|line| line.split_whitespace().next().unwrap_or_default().to_owned());
        assert_eq!(listed.collect::<Vec<_>>(), all.map(|exit| exit.code().to_string()));
    }
}
