//! What is wrong with a document, and where: file, line, path, reason, help.

use std::fmt;
use std::ops::Range;

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, Severity, SourceCode, SourceSpan, SpanContents,
};
use suture_model::value::Str;

use super::codes::code_of;
use super::places::{Place, Places};
use super::repair::as_written;
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
    /// The paths of what was left out of the document since it is wrong.
    pub left_out: Vec<String>,
}

impl Origin {
    /// An origin without a text, such as the cluster.
    pub fn named(file: &str) -> Self {
        Self { file: file.into(), ..Self::default() }
    }

    /// Where the key, or else the value, of a path stands.
    fn place(&self, path: &str) -> Option<Place> {
        let line = self.line.filter(|_| !self.text.is_empty())?;
        Places::of(&self.text).find(&self.text, line, path)
    }
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The file.
    pub file: Str,
    /// The line, when known.
    pub line: Option<usize>,
    /// The column, from 1, in characters, when known.
    pub column: Option<usize>,
    /// The class of the error, as [`super::CODES`] explains it.
    pub code: &'static str,
    /// The kind and name of the document, when it could not be read.
    pub document: Option<(Str, Str)>,
    /// Whether it may only follow from what was left out of the document.
    pub may_follow: bool,
    /// The path of the field, `spec.require[0].expression`.
    pub path: String,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The expression that does not compile, when that is what is wrong.
    pub cel: Option<Box<CelError>>,
    /// The text of the file and the bytes in it that are wrong, when it is at hand.
    shown: Option<(Str, Range<usize>)>,
}

impl SpecError {
    /// An error at a path of a document.
    pub fn new(origin: &Origin, path: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let path = &as_written(path, &origin.left_out);
        let error = Self {
            file: origin.file.clone(),
            line: origin.line,
            column: None,
            code: "",
            document: None,
            may_follow: false,
            path: path.to_owned(),
            message,
            help: None,
            cel: None,
            shown: None,
        };
        match origin.place(path) {
            Some(place) => error.at(origin, place, word_at(&origin.text, place.byte)),
            None => error,
        }
        .coded(origin, false)
    }

    /// This error with the code of its message.
    fn coded(self, origin: &Origin, is_expression: bool) -> Self {
        let code = code_of(&self.message, is_expression);
        Self { code, may_follow: may_follow(code, &self.path, &origin.left_out), ..self }
    }

    /// The error of a text that is neither YAML nor JSON: the origin's line, and the column from 1.
    pub(super) fn malformed(origin: &Origin, column: usize, message: String, help: Option<String>) -> Self {
        let unread = Origin { text: "".into(), ..origin.clone() };
        let column = (column > 0).then_some(column);
        Self { column, code: "E0001", help, ..Self::new(&unread, "", message) }
    }

    /// This error at a place, with so many bytes that are wrong.
    fn at(self, origin: &Origin, place: Place, length: usize) -> Self {
        let bytes = place.byte..place.byte + length;
        let shown = is_readable(&origin.text, &bytes).then(|| (origin.text.clone(), bytes));
        Self { line: Some(place.line), column: Some(place.column), shown, ..self }
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

    /// Whether it may be meant all the same.
    pub fn is_warning(&self) -> bool {
        self.code.starts_with('W')
    }

    /// The error of an expression that does not compile.
    pub fn expression(origin: &Origin, path: &str, error: CelError) -> Self {
        let mut out = Self::new(origin, path, error.to_string());
        out = out.coded(origin, true);
        out.help = error.help_text().map(ToOwned::to_owned);
        let (span, source) = (error.span(), error.source_text());
        let line = origin.line.filter(|_| !origin.text.is_empty());
        let within = |offset: usize| Places::of(&origin.text).within(&origin.text, line?, path, source, offset);
        if let Some(place) = within(span.start) {
            let end = within(span.end).map_or(place.byte, |end| end.byte);
            let one_word = span.text(source).len();
            let is_one = !span.text(source).contains(char::is_whitespace);
            out = out.at(origin, place, if is_one { one_word } else { end.saturating_sub(place.byte) });
        }
        out.cel = Some(Box::new(error));
        out
    }
}

/// Whether an error of this class, at this path, may only say that something is missing which was left out.
fn may_follow(code: &str, path: &str, left_out: &[String]) -> bool {
    let around = path.rsplit_once('.').map_or(path, |(around, _)| around);
    let is_field_of_spec = |path: &String| path.matches(['.', '[']).count() < 2;
    match code {
        // a template that is named is there or not, whatever else was left out
        "E0201" if path.ends_with(".template") => false,
        "E0006" | "E0201" | "E0303" => left_out.iter().any(|path| path.starts_with(around)),
        // perhaps it was written there
        "E0002" => left_out.iter().any(|path| !path.contains('.') && path != "apiVersion"),
        // perhaps it was declared there
        "E0102" => left_out.iter().any(is_field_of_spec),
        _ => false,
    }
}

/// `file:line:column: path: message`.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
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

    fn severity(&self) -> Option<Severity> {
        Some(if self.is_warning() { Severity::Warning } else { Severity::Error })
    }

    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        match &self.shown {
            Some(_) => Some(self),
            None => self.cel.as_ref().and_then(|cel| cel.source_code()),
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Some((_, bytes)) = &self.shown else { return self.cel.as_ref().and_then(|cel| cel.labels()) };
        let text = self.cel.as_ref().map_or_else(|| "here".to_owned(), |cel| cel.label().to_owned());
        let label = LabeledSpan::new(Some(text), bytes.start, bytes.len());
        Some(Box::new(std::iter::once(label)))
    }
}

/// The file, with the lines around what is wrong.
impl SourceCode for SpecError {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text: &str = self.shown.as_ref().map_or("", |(text, _)| text);
        let read = text.read_span(span, before, after)?;
        let (line, column, lines) = (read.line(), read.column(), read.line_count());
        let (file, span) = (self.file.to_string(), *read.span());
        Ok(Box::new(MietteSpanContents::new_named(file, read.data(), span, line, column, lines)))
    }
}

/// The bytes of three lines up to which they are shown: whole documents may be one line of JSON, which nobody reads.
const SHOWN_MAX: usize = 2000;

/// Whether the lines of these bytes, and those beside them, are short enough to be shown.
fn is_readable(text: &str, bytes: &Range<usize>) -> bool {
    let Some((before, after)) = text.split_at_checked(bytes.start) else { return false };
    let lines = before.rsplit('\n').take(2).chain(after.split('\n').take(2));
    lines.map(str::len).sum::<usize>() <= SHOWN_MAX
}

/// How long the key or word is that begins at a byte.
fn word_at(text: &str, byte: usize) -> usize {
    let rest = text.get(byte..).unwrap_or_default();
    rest.find(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '}' | ']')).unwrap_or(rest.len())
}
