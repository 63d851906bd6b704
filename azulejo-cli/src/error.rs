//! What a command can fail with, and the exit code that says so to scripts.

use crate::interrupt;
use azulejo::Error as EngineError;
use std::io;
use std::path::Path;

/// What an array lacks that nobody can guess.
pub const NO_SCHEMA: &str = "no schema";
/// What is not there where a deletion was cut short.
pub const UNFINISHED_DELETION: &str = "it is being deleted, or its deletion was cut short";
/// What is not there where a copy was cut short.
pub const UNFINISHED_COPY: &str = "a copy is under way there, or was cut short";

/// What is written to where no file is named.
const STANDARD_OUTPUT: &str = "standard output";

/// A command's result.
pub type Result<T, E = CliError> = std::result::Result<T, E>;

/// The exit codes, as printed under `azulejo --help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done (also when the reader of a pipe stops early)
  1  the work failed: storage, memory budget, something not supported
  2  the command line, a selection or a condition does not make sense
  3  nothing of that kind lies at the URI
  4  the stored bytes are damaged
  5  the array is encrypted and the key is missing or wrong
130  interrupted: what was under way was given up, and nothing of it is left";

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments make no sense, alone or for this array.
    #[error("{0}")]
    Usage(String),
    /// The engine refused or failed.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// A local file, or standard output.
    #[error("cannot {op} {what}: {source}")]
    Io {
        /// What was tried, such as `write`.
        op: &'static str,
        /// The file.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The cells do not fit the format asked for.
    #[error("{0}")]
    Format(String),
    /// A check has found damage.
    #[error("{0}")]
    Damaged(String),
    /// A manifest does not show what is there.
    #[error("{0}")]
    Stale(String),
    /// A part of an array or group is not there.
    #[error("{uri} is missing ({what}), and the {object} cannot do without")]
    Missing {
        /// The file or folder.
        uri: String,
        /// What was looked for there.
        what: &'static str,
        /// What it belongs to: `array` or `group`.
        object: &'static str,
    },
    /// A program that was started has ended with this code, and has said why itself.
    #[error("the program failed")]
    Ended(u8),
    /// Ctrl-C, or the system wants this program to end.
    #[error("interrupted")]
    Interrupted,
    /// Whoever reads our output has seen enough.
    #[error("the pipe was closed")]
    BrokenPipe,
}

/// Why a file or a store of another format cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError(pub String);

impl FileError {
    /// An error of these words.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// With what it is about before it.
    pub fn of(self, what: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self(match error.kind() {
            io::ErrorKind::UnexpectedEof => "the file is cut off".to_owned(),
            _ => error.to_string(),
        })
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        Self::Format(error.0)
    }
}

impl CliError {
    /// A [`CliError::Usage`] in one call.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// An IO error of a file; a closed pipe is told apart.
    pub fn io(op: &'static str, what: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::Io {
            op,
            what: what.display().to_string(),
            source,
        }
    }

    /// The same error of what was written to a file.
    pub fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Io { op, what, source } if what == STANDARD_OUTPUT => Self::Io {
                op,
                what: file.display().to_string(),
                source,
            },
            other => other,
        }
    }

    /// The exit code of [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Ended(code) => *code,
            Self::Damaged(_) | Self::Missing { .. } => 4,
            Self::Interrupted => interrupt::EXIT_CODE,
            Self::Usage(_) => 2,
            Self::Io { .. } | Self::Format(_) | Self::Stale(_) => 1,
            Self::Engine(error) => match error {
                EngineError::InvalidArgument(_) | EngineError::SchemaMismatch(_) => 2,
                EngineError::NotFound { .. } => 3,
                // A bucket that does not exist, or a folder above.
                EngineError::Storage { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                    3
                }
                EngineError::Corrupt { .. } => 4,
                EngineError::Encryption { .. } => 5,
                EngineError::Cancelled => interrupt::EXIT_CODE,
                _ => 1,
            },
        }
    }

    /// What the user can do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Engine(EngineError::Encryption { .. }) => Some(
                "--key-file FILE gives the key of an encrypted array (32 bytes, or 64 hexadecimal digits); leave it out for others",
            ),
            Self::Engine(EngineError::NotFound { what, .. }) => place_hint(what),
            Self::Engine(EngineError::Budget { .. }) => {
                Some("raise it with --memory, for example --memory 4GiB")
            }
            Self::Engine(EngineError::SchemaMismatch(_)) => {
                Some("`azulejo schema URI` shows the dimensions and attributes")
            }
            Self::Engine(EngineError::Storage { op, source, .. }) => storage_hint(op, source),
            Self::Io { op, source, .. } => storage_hint(op, source),
            Self::Missing { what, .. } if *what == NO_SCHEMA => Some(
                "cells were written there, and nothing says what they are: only a copy of the schema's file brings them back",
            ),
            Self::Missing { .. } => Some("`azulejo check` says what is lost and what can be done"),
            Self::Stale(_) => Some("`azulejo manifest URI` makes it anew"),
            _ => None,
        }
    }
}

/// Where to look for what was not found.
fn place_hint(what: &str) -> Option<&'static str> {
    Some(match what {
        "no such object" | "no such file" => return None,
        "a named snapshot" => "`azulejo snapshot list URI` shows the names that there are",
        "an array at that time" | "a group with anything in it at that time" => {
            "`azulejo history URI` shows since when it is there"
        }
        UNFINISHED_DELETION => "`azulejo delete URI --yes` removes what is left of it",
        UNFINISHED_COPY => {
            "the same copy goes on; `azulejo delete URI --yes` removes what is there"
        }
        "it is a group, not an array" => {
            "`azulejo ls URI` shows what is in it; commands for many arrays take --recursive"
        }
        _ => "`azulejo ls` on the folder above shows the arrays and groups that are there",
    })
}

/// What can be done about a storage that refuses.
fn storage_hint(op: &str, source: &io::Error) -> Option<&'static str> {
    use io::ErrorKind as Kind;
    match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Some(
            "what was there before is unharmed; make room, then do it again (`azulejo check` finds leftovers)",
        ),
        Kind::PermissionDenied if op == "read" || op == "list" => Some("this user may not read it"),
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            Some("this user may not write there; nothing has changed")
        }
        _ => None,
    }
}

impl From<io::Error> for CliError {
    fn from(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Io {
                op: "write",
                what: STANDARD_OUTPUT.into(),
                source,
            },
        }
    }
}

impl From<arrow_schema::ArrowError> for CliError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, source) => source.into(),
            other => Self::Format(other.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for CliError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>()
            {
                Ok(source) => (*source).into(),
                Err(other) => Self::Format(other.to_string()),
            },
            other => Self::Format(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            io::Error::from(error).into()
        } else {
            Self::Format(error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_table() {
        let not_found = EngineError::NotFound {
            uri: "x".into(),
            what: "array",
        };
        assert_eq!(CliError::from(not_found).exit_code(), 3);
        let key = EngineError::Encryption {
            uri: "x".into(),
            reason: "no key",
        };
        assert_eq!(CliError::from(key).exit_code(), 5);
        assert_eq!(CliError::usage("no").exit_code(), 2);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(CliError::from(pipe), CliError::BrokenPipe));
        assert_eq!(CliError::BrokenPipe.exit_code(), 0);
    }

    #[test]
    fn errors_name_the_file() {
        let full = CliError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(full.to_string().contains("standard output"), "{full}");
        let full = full.in_file(Path::new("x.csv"));
        assert!(
            full.to_string().starts_with("cannot write x.csv: "),
            "{full}"
        );
        assert!(full.hint().is_some());
        let other = CliError::usage("no").in_file(Path::new("x.csv"));
        assert_eq!(other.to_string(), "no");
    }
}
