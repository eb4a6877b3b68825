//! The diagnostic of an expression that does not compile.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::ir::Span;

/// Why an expression does not compile: the place, the reason and what to do, over its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelError {
    message: String,
    label: String,
    help: Option<String>,
    span: Span,
    source: String,
}

impl CelError {
    /// The error of a part of `source` that compiles, and cannot be meant.
    pub(crate) fn new(source: &str, message: String, span: Span, label: &str, help: Option<String>) -> Self {
        Self { message, label: label.to_owned(), help, span, source: source.to_owned() }
    }

    /// One line, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, when something can be said.
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// What is said at the place.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The place in the source.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The expression.
    pub fn source_text(&self) -> &str {
        &self.source
    }
}

impl fmt::Display for CelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CelError {}

impl Diagnostic for CelError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let length = self.span.end.saturating_sub(self.span.start);
        let label = LabeledSpan::new(Some(self.label.clone()), self.span.start, length);
        Some(Box::new(std::iter::once(label)))
    }
}

const NOT_CLOSED: &str = "a string is not closed";

/// Makes the errors of one source text.
pub(super) struct Reporter<'s> {
    pub(super) source: &'s str,
}

impl<'s> Reporter<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source }
    }

    pub(super) fn error(
        &self,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
        help: Option<String>,
    ) -> CelError {
        let (message, label) = (message.into(), label.into());
        CelError { message, label, help, span, source: self.source.to_owned() }
    }

    /// An error of the parser, in our words: its own name tokens in Rust.
    pub(super) fn syntax(&self, reason: &str, place: &std::ops::Range<usize>) -> CelError {
        let mut start = place.start.min(self.source.len());
        while !self.source.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = place.end.clamp(start, self.source.len());
        while !self.source.is_char_boundary(end) {
            end += 1;
        }
        let span = Span { start, end };
        let text = span.text(self.source);
        let message = if self.source.trim().is_empty() {
            "the expression is empty".to_owned()
        } else if reason.contains("reserved word") {
            format!("`{text}` is a reserved word of CEL")
        } else if reason.contains("overflow") {
            format!("`{text}` does not fit 64 bits")
        } else if reason.contains("escape") || reason.contains("string") {
            format!("in a string: {}", reason.replace('\'', "`"))
        } else if matches!(text, "'" | "\"") {
            NOT_CLOSED.to_owned()
        } else if text.trim().is_empty() {
            "unexpected end of the expression".to_owned()
        } else {
            format!("unexpected `{text}`")
        };
        let help = if message == NOT_CLOSED { None } else { hint(self.source, span) };
        self.error(message, span, "here", help)
    }
}

/// What was probably meant, by what is written where the parser stops.
fn hint(source: &str, span: Span) -> Option<String> {
    let words = [("and", "&&"), ("or", "||"), ("not", "!"), ("=", "=="), ("<>", "!="), ("&", "&&"), ("|", "||")];
    let at = span.text(source);
    let before = source.get(..span.start).unwrap_or_default().trim_end();
    // the last word before the place, or the operator that ends there
    let last = before.rsplit([' ', '(']).next().unwrap_or_default();
    let is_assignment = before.ends_with('=') && !["==", "!=", "<=", ">="].iter().any(|end| before.ends_with(end));
    let meant = |word: &str| at == word || last == word || (word == "=" && is_assignment);
    if let Some((word, operator)) = words.iter().find(|(word, _)| meant(word)) {
        return Some(format!("write `{operator}`, not `{word}`"));
    }
    unclosed(source).map(|(bracket, column)| format!("`{bracket}` at character {column} is not closed"))
}

/// The first bracket outside of strings that is not closed, and its position from 1.
fn unclosed(source: &str) -> Option<(char, usize)> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in (1..).zip(source.chars()) {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => open.push((c, at)),
            (None, ')' | ']' | '}') => _ = open.pop(),
            (None, _) => {}
        }
    }
    open.first().copied()
}

/// The place of the field's name at the end of `base.field`.
pub(super) fn field_span(span: Span, field: &str) -> Span {
    Span { start: span.end.saturating_sub(field.len()).max(span.start), end: span.end }
}
