//! What is wrong with a document, and where: file, line, path, reason, help.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceCode};
use suture_model::value::Str;

use crate::cel::CelError;
use crate::suggest::nearest;

/// Where a document was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file, or what stands for one.
    pub file: Str,
    /// The line on which the document starts, when known.
    pub line: Option<usize>,
    /// The text of the whole file, to find lines in; empty when it is not at hand.
    pub text: Str,
}

impl Origin {
    /// An origin without a text, such as the cluster.
    pub fn named(file: &str) -> Self {
        Self { file: file.into(), line: None, text: "".into() }
    }

    /// The line of a path: of its last part that is found, looking for its keys one after the other from the document's
    /// start. A guess, exact unless keys repeat within the document.
    fn line_of(&self, path: &str) -> Option<usize> {
        let start = self.line?;
        let lines: Vec<&str> = self.text.lines().skip(start.saturating_sub(1)).collect();
        let mut at = 0;
        for part in path.split('.').filter(|p| !p.is_empty()) {
            let (key, index) = match part.split_once('[') {
                Some((key, index)) => (key, index.trim_end_matches(']').parse::<usize>().ok()),
                None => (part, None),
            };
            if let Some(found) = (at..lines.len()).find(|i| lines.get(*i).is_some_and(|l| has_key(l, key))) {
                at = found;
            }
            if let Some(index) = index {
                let items = (at + 1..lines.len()).filter(|i| lines.get(*i).is_some_and(|l| is_item(l)));
                at = items.into_iter().nth(index).unwrap_or(at);
            }
        }
        (!lines.is_empty()).then_some(start + at)
    }
}

fn is_item(line: &str) -> bool {
    line.trim_start().starts_with("- ")
}

fn has_key(line: &str, key: &str) -> bool {
    line.match_indices(key).any(|(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().last());
        let after = line.get(at + key.len()..).unwrap_or_default().trim_start_matches(['"', '\'']);
        before.is_none_or(|c| " {,-\"'".contains(c)) && after.starts_with(':')
    })
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The file.
    pub file: Str,
    /// The line, when known.
    pub line: Option<usize>,
    /// The path of the field, `spec.require[0].expression`.
    pub path: String,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The expression that does not compile, when that is what is wrong.
    pub cel: Option<Box<CelError>>,
}

impl SpecError {
    /// An error at a path of a document.
    pub fn new(origin: &Origin, path: &str, message: impl Into<String>) -> Self {
        Self {
            file: origin.file.clone(),
            line: origin.line_of(path),
            path: path.to_owned(),
            message: message.into(),
            help: None,
            cel: None,
        }
    }

    /// The error of a field that does not exist.
    pub fn unknown_field<'k>(
        origin: &Origin,
        path: &str,
        field: &str,
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) -> Self {
        let place = if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
        let mut error = Self::new(origin, &place, format!("unknown field `{field}`")).suggesting(&field, known.clone());
        if error.help.is_none() {
            let names: Vec<String> = known.into_iter().map(|k| format!("`{k}`")).collect();
            error.help = (names.len() <= 16).then(|| format!("there are {}", names.join(", ")));
        }
        error
    }

    /// This error with the help that the nearest of the known names gives.
    #[must_use]
    pub fn suggesting<'k>(mut self, name: &impl AsRef<str>, known: impl IntoIterator<Item = &'k str>) -> Self {
        self.help = nearest(name.as_ref(), known).map(|near| format!("did you mean `{near}`?"));
        self
    }

    /// This error with help.
    #[must_use]
    pub fn helped(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The error of an expression that does not compile.
    pub fn expression(origin: &Origin, path: &str, error: CelError) -> Self {
        let mut out = Self::new(origin, path, error.to_string());
        out.help = error.help_text().map(ToOwned::to_owned);
        out.cel = Some(Box::new(error));
        out
    }
}

/// `file:line: path: message`.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpecError {}

impl Diagnostic for SpecError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.cel.as_ref().and_then(|cel| cel.source_code())
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.cel.as_ref().and_then(|cel| cel.labels())
    }
}
