//! Why a command could not do its work, and the exit code that says so.

use std::io;
use std::path::Path;

use suture_specs::spec::SpecError;

/// Exit codes of FORMATS: the whole contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Allowed, clean, all passed.
    Good = 0,
    /// Denied, violated, a case failed.
    Bad = 1,
    /// Usage, or invalid input.
    Invalid = 2,
    /// Undecided.
    Undecided = 3,
    /// A file cannot be read or written.
    Io = 4,
}

/// What stops a command before it has an answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file, folder or stream cannot be read or written.
    #[error("cannot {verb} `{name}`: {source}")]
    Io {
        /// `read` or `write`.
        verb: &'static str,
        /// Which file.
        name: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// Input that says nothing usable, in one line.
    #[error("{0}")]
    Invalid(String),
    /// Input with errors that know their places.
    #[error("{} in the input", plural(.0.len(), "error", "errors"))]
    Diagnosed(Vec<SpecError>),
}

impl Failure {
    /// A file cannot be read.
    pub fn read(path: &Path, source: io::Error) -> Self {
        Self::Io { verb: "read", name: path.display().to_string(), source }
    }

    /// Output cannot be written.
    pub fn write(name: &str, source: io::Error) -> Self {
        Self::Io { verb: "write", name: name.to_owned(), source }
    }

    /// Input that says nothing usable.
    pub fn invalid(text: impl ToString) -> Self {
        Self::Invalid(text.to_string())
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Io { .. } => Exit::Io,
            Self::Invalid(_) | Self::Diagnosed(_) => Exit::Invalid,
        }
    }
}

/// `1 error`, `2 errors`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// All that is wrong, in one line.
pub fn in_one_line(errors: &[SpecError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
