//! Limits on the source text, checked by a lexical scan before the parser runs: the parser and everything after it
//! recurse, and must not be driven to the end of the stack.

use super::error::{CelError, Reporter};
use crate::ir::Span;

/// The longest expression, in bytes; the longest one known from policies in use has a quarter of it.
pub const LENGTH_BYTES_MAX: usize = 8 * 1024;
/// The deepest nesting: brackets, conditionals and prefix operators that are open at once.
pub const NESTING_MAX: usize = 64;
/// The most operators: also field accesses, indexes and `?:`; they nest to the left, hence as deep as they are many.
pub const OPERATORS_MAX: usize = 512;

pub(super) fn check(source: &str, report: &Reporter) -> Result<(), CelError> {
    if source.len() > LENGTH_BYTES_MAX {
        let span = Span { start: 0, end: 0 };
        let message = format!("the expression has {} bytes, at most {LENGTH_BYTES_MAX} are allowed", source.len());
        return Err(report.error(message, span, "starts here", Some("move parts of it into `let`".into())));
    }
    Scan { text: source.as_bytes(), at: 0, frames: vec![0], prefixes: 0, operators: 0 }.run(report)
}

struct Scan<'s> {
    text: &'s [u8],
    at: usize,
    /// For every open bracket, the conditionals begun within it.
    frames: Vec<usize>,
    /// Prefix operators just before here.
    prefixes: usize,
    operators: usize,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn starts_with(&self, prefix: &[u8]) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(prefix))
    }

    fn run(mut self, report: &Reporter) -> Result<(), CelError> {
        while self.at < self.text.len() {
            let start = self.at;
            self.token();
            let span = Span { start, end: self.at.max(start + 1).min(self.text.len()) };
            let depth = self.frames.len() - 1 + self.frames.iter().sum::<usize>() + self.prefixes;
            if depth > NESTING_MAX {
                let message = format!("the expression is nested more than {NESTING_MAX} deep");
                return Err(report.error(message, span, "here", Some("move parts of it into `let`".into())));
            }
            if self.operators > OPERATORS_MAX {
                let message = format!("the expression has more than {OPERATORS_MAX} operators");
                return Err(report.error(message, span, "here", Some("move parts of it into `let`".into())));
            }
        }
        Ok(())
    }

    fn token(&mut self) {
        let byte = self.peek(0);
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
            b'/' if self.peek(1) == b'/' => {
                while self.at < self.text.len() && self.peek(0) != b'\n' {
                    self.at += 1;
                }
            }
            b'"' | b'\'' => self.string(false),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => {
                while self.peek(0).is_ascii_alphanumeric() || (self.peek(0) == b'.' && self.peek(1).is_ascii_digit()) {
                    self.at += 1;
                }
                self.prefixes = 0;
            }
            b'(' | b'[' | b'{' => {
                // the prefix operators before a bracket stay open as long as it does
                self.frames.push(self.prefixes);
                self.operators += usize::from(byte == b'[');
                self.prefixes = 0;
                self.at += 1;
                if byte != b'(' && self.peek(0) == b'?' {
                    self.at += 1;
                }
            }
            b')' | b']' | b'}' => {
                if self.frames.len() > 1 {
                    self.frames.pop();
                }
                self.prefixes = 0;
                self.at += 1;
            }
            b',' => {
                if let Some(frame) = self.frames.last_mut() {
                    *frame = 0;
                }
                self.at += 1;
            }
            b'?' => {
                if let Some(frame) = self.frames.last_mut() {
                    *frame += 1;
                }
                self.operators += 1;
                self.at += 1;
            }
            b'!' | b'-' if self.peek(1) != b'=' => {
                self.prefixes += 1;
                self.operators += 1;
                self.at += 1;
            }
            b':' => self.at += 1,
            b'.' => {
                self.operators += 1;
                self.at += if self.peek(1) == b'?' { 2 } else { 1 };
            }
            _ => {
                self.operators += 1;
                let two = [b"&&".as_slice(), b"||", b"==", b"!=", b"<=", b">="].iter().any(|op| self.starts_with(op));
                self.at += if two { 2 } else { 1 };
            }
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            self.at += 1;
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        let quoted = matches!(self.peek(0), b'"' | b'\'');
        if quoted && word.len() <= 2 && word.iter().all(|b| b"rRbB".contains(b)) {
            self.string(word.iter().any(|b| b"rR".contains(b)));
        }
        self.operators += usize::from(word == b"in");
        self.prefixes = 0;
    }

    fn string(&mut self, raw: bool) {
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        let close: &[u8] = if triple { &[quote, quote, quote] } else { &[quote] };
        self.at += close.len();
        while self.at < self.text.len() && !self.starts_with(close) {
            self.at += if !raw && self.peek(0) == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + close.len()).min(self.text.len());
        self.prefixes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(source: &str) -> Result<(), String> {
        check(source, &Reporter::new(source)).map_err(|e| e.to_string())
    }

    #[test]
    fn ordinary_expressions_pass() {
        for source in
            ["", "1 + 2", "a ? b : c ? d : e", "'((((' + r'\\' + \"\"\"[[[\"\"\"", "!!true", "[1, 2].map(x, -x)"]
        {
            assert_eq!(verdict(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn limits_hold() {
        let deep = |open: &str, n: usize| open.repeat(n);
        assert_eq!(verdict(&"x".repeat(8193)).unwrap_err(), "the expression has 8193 bytes, at most 8192 are allowed");
        for open in ["(", "[", "!", "-", "a ? b : ", "f(", "{1: "] {
            let message = verdict(&deep(open, 65)).unwrap_err();
            assert_eq!(message, "the expression is nested more than 64 deep", "{open}");
            assert_eq!(verdict(&deep(open, 64)), Ok(()), "{open}");
        }
        assert_eq!(verdict(&deep("!(", 33)).unwrap_err(), "the expression is nested more than 64 deep");
        let many = |op: &str| vec!["a"; 514].join(op);
        for op in [" + ", ".", " && ", " in "] {
            assert_eq!(verdict(&many(op)).unwrap_err(), "the expression has more than 512 operators", "{op}");
        }
        assert_eq!(verdict(&format!("'{}'", "(".repeat(100))), Ok(()), "brackets in strings do not nest");
        assert_eq!(verdict(&format!("a // {}", "(".repeat(100))), Ok(()), "nor in comments");
        assert_eq!(verdict(&"()".repeat(200)), Ok(()), "nor those that are closed");
    }
}
