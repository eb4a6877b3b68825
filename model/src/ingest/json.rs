//! JSON texts: one value or several in a row.

use serde::de::{DeserializeSeed, IgnoredAny};

use super::fault::Fault;
use super::tree::{Allowance, Tree};
use crate::value::Val;

/// Whether a text starts with a brace or bracket.
pub(super) fn looks_like(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Whether its first brace or bracket is followed by a quote or another one, as hardly any YAML's is.
pub(super) fn must_be(text: &str) -> bool {
    let inner = text.trim_start().get(1..).unwrap_or("").trim_start();
    inner.starts_with('"') || (text.trim_start().starts_with('[') && inner.starts_with(['{', '[']))
}

/// The values of a text, each with the line it starts on.
pub(super) fn parse(text: &str, allowance: &Allowance) -> Result<Vec<(Val, usize)>, Fault> {
    let mut values = Vec::new();
    let mut line = 1;
    let mut rest = text;
    loop {
        let start = rest.trim_start();
        line += lines(rest, rest.len() - start.len());
        rest = start;
        if rest.is_empty() {
            return Ok(values);
        }
        let mut source = serde_json::Deserializer::from_str(rest);
        let val = Tree::new(allowance).deserialize(&mut source).map_err(|error| fault(&error, line))?;
        let read = source.into_iter::<IgnoredAny>().byte_offset();
        values.push((val, line));
        line += lines(rest, read);
        rest = rest.get(read..).unwrap_or("");
    }
}

fn lines(text: &str, end: usize) -> usize {
    text.bytes().take(end).filter(|b| *b == b'\n').count()
}

fn fault(error: &serde_json::Error, first_line: usize) -> Fault {
    let whole = error.to_string();
    let message = whole.rsplit_once(" at line ").map_or(&*whole, |(message, _)| message);
    let line = first_line + error.line().saturating_sub(1);
    Fault { line, column: error.column().max(1), message: message.to_owned(), help: None }
}
