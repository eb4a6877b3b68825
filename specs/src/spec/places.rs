//! Where the parts of a document stand in its file: the lines and columns of errors, in YAML and JSON of any style.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, Span};
use suture_model::value::Str;

/// A place in a text: line and column from 1, in characters, and the same in bytes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub line: usize,
    pub column: usize,
    pub byte: usize,
}

impl Place {
    /// The place of a byte of a text.
    pub fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Self { line: before.matches('\n').count() + 1, column, byte: before.len() }
    }
}

/// One node of a document.
#[derive(Clone, Debug)]
struct Node {
    document: usize,
    path: String,
    /// Where its key begins, if it has one.
    key: Option<usize>,
    start: usize,
    line: usize,
    is_map: bool,
}

/// The nodes of all documents of a text, as far as it is well formed.
#[derive(Debug, Default)]
pub(super) struct Places {
    nodes: Vec<Node>,
    by_path: BTreeMap<(usize, String), usize>,
}

thread_local! {
    /// The places of the text that was asked about last: errors come in numbers.
    static LAST: RefCell<Option<(Str, Rc<Places>)>> = const { RefCell::new(None) };
}

impl Places {
    /// Those of a text.
    pub fn of(text: &Str) -> Rc<Self> {
        LAST.with_borrow_mut(|last| match last {
            Some((known, places)) if std::ptr::eq(&raw const **known, &raw const **text) => places.clone(),
            _ => {
                let places = Rc::new(Self::read(text));
                *last = Some((text.clone(), places.clone()));
                places
            }
        })
    }

    /// Where the key, or else the value, of a path begins: of its last part that is there, from the document, or the map
    /// within one, that begins on a line.
    pub fn find(&self, text: &str, line: usize, path: &str) -> Option<Place> {
        self.node(line, path).map(|node| Place::of(text, node.key.unwrap_or(node.start)))
    }

    /// Where an offset into the value of a path stands, which is an expression.
    pub fn within(&self, text: &str, line: usize, path: &str, value: &str, offset: usize) -> Option<Place> {
        let node = self.node(line, path).filter(|node| node.path.ends_with(last_part(path)))?;
        aligned(text, node.start, value, offset).map(|byte| Place::of(text, byte))
    }

    fn node(&self, line: usize, path: &str) -> Option<&Node> {
        let begins = |node: &&Node| node.is_map && node.line == line;
        let last = || self.nodes.iter().rev().find(|node| node.path.is_empty() && node.line <= line);
        let base = self.nodes.iter().find(begins).or_else(last)?;
        let mut path = join(&base.path, path);
        loop {
            let found = self.by_path.get(&(base.document, path.clone())).and_then(|at| self.nodes.get(*at));
            if found.is_some() || path.len() <= base.path.len() {
                return found.or(Some(base));
            }
            path.truncate(path.rfind(['.', '[']).unwrap_or(0));
        }
    }

    fn read(text: &str) -> Self {
        let mut reader = Reader::default();
        for event in Parser::new_from_str(text) {
            let Ok((event, span)) = event else { break };
            reader.event(&event, span, text);
        }
        let nodes = reader.nodes;
        let by_path =
            nodes.iter().enumerate().rev().map(|(at, node)| ((node.document, node.path.clone()), at)).collect();
        Self { nodes, by_path }
    }
}

fn join(base: &str, path: &str) -> String {
    let dot = if base.is_empty() || path.is_empty() || path.starts_with('[') { "" } else { "." };
    format!("{base}{dot}{path}")
}

fn last_part(path: &str) -> &str {
    path.rfind(['.', '[']).and_then(|at| path.get(at..)).unwrap_or(path).trim_start_matches('.')
}

/// A collection that is not closed yet.
enum Open {
    Map { path: String, key: Option<(String, usize)> },
    List { path: String, count: usize },
}

#[derive(Default)]
struct Reader {
    nodes: Vec<Node>,
    documents: usize,
    open: Vec<Open>,
}

impl Reader {
    fn event(&mut self, event: &Event<'_>, span: Span, text: &str) {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                self.open.clear();
            }
            Event::MappingStart(..) => {
                let path = self.node(None, span, text, true);
                self.open.push(Open::Map { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.node(None, span, text, false);
                self.open.push(Open::List { path, count: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => _ = self.open.pop(),
            Event::Scalar(value, ..) => _ = self.node(Some(value), span, text, false),
            Event::Alias(_) => _ = self.node(None, span, text, false),
            _ => {}
        }
    }

    /// Notes a node, unless it is a key, and gives its path.
    fn node(&mut self, scalar: Option<&str>, span: Span, text: &str, is_map: bool) -> String {
        let start = span
            .start
            .byte_offset()
            .unwrap_or_else(|| text.char_indices().nth(span.start.index()).map_or(text.len(), |(at, _)| at));
        let (path, key) = match self.open.last_mut() {
            None => (String::new(), None),
            Some(Open::List { path, count }) => {
                *count += 1;
                (format!("{path}[{}]", *count - 1), None)
            }
            Some(Open::Map { path, key }) => match key.take() {
                Some((name, at)) => (join(path, &name), Some(at)),
                None => {
                    *key = Some((scalar.unwrap_or("?").to_owned(), start));
                    return "?".to_owned();
                }
            },
        };
        let line = span.start.line();
        self.nodes.push(Node { document: self.documents, path: path.clone(), key, start, line, is_map });
        path
    }
}

/// Where a byte of a scalar's value stands in the text, in which the scalar begins at `start`: as many characters that are no
/// white space come before it in both. Block scalars have a header, quotes have escapes.
fn aligned(text: &str, start: usize, value: &str, offset: usize) -> Option<usize> {
    let raw = text.get(start..)?;
    let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
    let skipped = match raw.chars().next()? {
        '|' | '>' => raw.find('\n')? + 1,
        '"' | '\'' => 1,
        _ => 0,
    };
    let wanted = value.get(..offset)?.chars().filter(|c| !c.is_whitespace()).count();
    let is_end = value.get(offset..)?.trim().is_empty();
    let mut chars = raw.get(skipped..)?.char_indices();
    let mut seen = 0;
    let mut end = skipped;
    while let Some((at, c)) = chars.next().filter(|_| seen < wanted || !is_end) {
        let escaped = match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '\\') => chars.next().map(|(_, escaped)| escaped),
            _ => None,
        };
        let is_space = c.is_whitespace() || (quote == Some('"') && matches!(escaped, Some('n' | 't' | '\n')));
        if !is_space {
            if seen == wanted {
                return Some(start + skipped + at);
            }
            seen += 1;
            end = skipped + at + c.len_utf8();
        }
    }
    Some(start + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
kind: A
spec:
  plain: a && b  # a remark
  quoted: 'it''s > 1'
  folded: >-
    one +
      two
    + three
  literal: |
    x
    y
  list:
  - {name: n, expr: \"p \\\"q\\\" r\"}
---
{kind: B, spec: {deep: {er: 1}}}
";

    #[track_caller]
    fn at(line: usize, path: &str) -> (usize, usize) {
        let text: Str = TEXT.into();
        let place = Places::of(&text).find(TEXT, line, path).unwrap();
        (place.line, place.column)
    }

    #[test]
    fn keys_and_items_have_places() {
        assert_eq!(at(1, "spec"), (2, 1));
        assert_eq!(at(1, "spec.folded"), (5, 3));
        assert_eq!(at(1, "spec.list[0]"), (13, 5));
        assert_eq!(at(1, "spec.list[0].expr"), (13, 15));
        assert_eq!(at(1, "spec.list[3].expr"), (12, 3));
        assert_eq!(at(15, "spec.deep.er"), (15, 25));
        assert_eq!(at(13, "expr"), (13, 15));
    }

    #[test]
    fn offsets_into_scalars_of_any_style_have_places() {
        let text: Str = TEXT.into();
        let within = |path: &str, value: &str, part: &str| {
            let place = Places::of(&text).within(TEXT, 1, path, value, value.find(part).unwrap()).unwrap();
            (place.line, place.column)
        };
        assert_eq!(within("spec.plain", "a && b", "b"), (3, 15));
        assert_eq!(within("spec.quoted", "it's > 1", "1"), (4, 20));
        assert_eq!(within("spec.folded", "one +\n  two\n+ three", "two"), (7, 7));
        assert_eq!(within("spec.folded", "one +\n  two\n+ three", "three"), (8, 7));
        assert_eq!(within("spec.literal", "x\ny\n", "y"), (11, 5));
        assert_eq!(within("spec.list[0].expr", "p \"q\" r", "r"), (13, 30));
    }
}
