//! What a command prints: text for people, JSON and YAML for programs, JUnit for CI, made once, last.

pub mod decision;
pub mod denial;
pub mod differences;
pub mod explained;
pub mod junit;
pub mod near;
pub mod openreports;
pub mod progress;
pub mod remarks;
pub mod replayed;
pub mod terminal;
pub mod tests;

use std::io::{self, Write};

use serde::Serialize;

use crate::arguments::{Format, ReportFormat};
use crate::failure::Failure;
use crate::output::remarks::Remark;

/// Prints a value in a form for programs, or as the text that `text` makes of it.
///
/// # Errors
/// When standard output cannot be written.
pub fn value<T: Serialize>(format: Format, value: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let printed = match format {
        Format::Text => text(value),
        Format::Json => {
            let mut json = serde_json::to_string_pretty(value).map_err(Failure::invalid)?;
            json.push('\n');
            json
        }
        Format::Yaml => serde_saphyr::to_string(value).map_err(Failure::invalid)?,
    };
    print(&printed)
}

/// Prints a value in a form for programs or tools, or as the text that `text` makes of it.
///
/// # Errors
/// When standard output cannot be written.
pub fn report<T: Serialize>(
    format: ReportFormat,
    value: &T,
    remarks: impl FnOnce(&T) -> Vec<Remark>,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    match format {
        ReportFormat::Text => self::value(Format::Text, value, text),
        ReportFormat::Json => self::value(Format::Json, value, text),
        ReportFormat::Yaml => self::value(Format::Yaml, value, text),
        ReportFormat::Junit => print(&junit::of_remarks(&remarks(value))),
        ReportFormat::Github => print(&remarks::github(&remarks(value))),
        ReportFormat::Sarif => self::value(Format::Json, &remarks::sarif(&remarks(value)), |_| String::new()),
    }
}

/// A text in lines whose other control characters are escaped, and those that turn the direction of writing: what an object
/// says must not move the cursor of a terminal, or make one text look like another.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        let turns =
            matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\n') || turns { visible.extend(c.escape_default()) } else { visible.push(c) }
    }
    visible
}

/// Prints text. A reader that went away (`suture ... | head`) is no error.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::write("standard output", error)),
        _ => Ok(()),
    }
}
