//! Colours, and how errors look.

use std::env;
use std::io::{self, IsTerminal, Write};

use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::arguments::Color;
use crate::failure::Failure;

/// Wraps parts of a text in colours, or leaves them as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    colored: bool,
}

impl Paint {
    /// For standard output.
    pub fn stdout(when: Color) -> Self {
        Self { colored: colored(when, io::stdout().is_terminal()) }
    }

    /// For standard error.
    pub fn stderr(when: Color) -> Self {
        Self { colored: colored(when, io::stderr().is_terminal()) }
    }

    /// No colours.
    pub const PLAIN: Self = Self { colored: false };

    /// Bad news.
    pub fn bad(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// Good news.
    pub fn good(self, text: &str) -> String {
        self.wrap("1;32", text)
    }

    /// Neither.
    pub fn warn(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    /// A heading.
    pub fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colored { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Whether to use colours (<https://no-color.org>).
fn colored(when: Color, terminal: bool) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
    }
}

/// Prints a remark on standard error.
pub fn note(text: &str) {
    // nobody is left to tell when standard error is gone too
    _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints why a command failed on standard error.
pub fn failure(failure: &Failure, paint: Paint) {
    let text = failure_text(failure, paint);
    // nobody is left to tell when standard error is gone too
    _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Why a command failed.
pub fn failure_text(failure: &Failure, paint: Paint) -> String {
    let mut text = String::new();
    if let Failure::Diagnosed(reports) = failure {
        text.extend(reports.iter().map(|report| diagnostic(report, paint) + "\n"));
    }
    text + &format!("{} {failure}\n", paint.bad("error:"))
}

/// An error with its source, as a compiler shows it.
pub fn diagnostic(report: &dyn miette::Diagnostic, paint: Paint) -> String {
    let theme = if paint.colored { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false).with_links(false);
    let mut text = String::new();
    match handler.render_report(&mut text, report) {
        Ok(()) => text,
        Err(_) => format!("{report}\n"),
    }
}
