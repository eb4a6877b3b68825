//! Why a text could not be read, and where.

/// Why a text could not be read: the first thing wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct IngestError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if that can be said.
    pub help: Option<String>,
}

/// The place and reason of an error, before its file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Fault {
    pub(super) fn at(line: usize, message: impl Into<String>) -> Self {
        Self { line, column: 1, message: message.into(), help: None }
    }

    pub(super) fn helped(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub(super) fn within(self, file: &str) -> IngestError {
        let Self { line, column, message, help } = self;
        IngestError { file: file.to_owned(), line, column, message, help }
    }
}
