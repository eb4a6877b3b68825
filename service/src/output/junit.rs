//! What was found as JUnit's XML, as CI systems read it: a testsuite for each suite and a testcase for each of its cases, or
//! one testsuite with a testcase for each remark.

use std::fmt::Write;

use super::remarks::{Level, Remark};
use crate::suite::report::{CaseReport, Report, SuiteReport};

/// The name of the testcase that says that nothing is to be mended.
const CLEAN: &str = "nothing to mend";

/// The document.
pub fn xml(report: &Report) -> String {
    let Report { passed, failed, suites, coverage: _ } = report;
    let time = time(suites.iter().flat_map(|suite| &suite.cases));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    _ = writeln!(
        out,
        "<testsuites name=\"suture\" tests=\"{}\" failures=\"{failed}\" errors=\"0\"{time}>",
        passed + failed,
    );
    for suite in suites {
        testsuite(&mut out, suite);
    }
    out.push_str("</testsuites>\n");
    out
}

/// The document of remarks: an error is a failed testcase, a warning one that passed and says so. Where there is none, one
/// testcase passed: a document without any is an error for some of its readers.
pub fn of_remarks(remarks: &[Remark]) -> String {
    let failures = remarks.iter().filter(|remark| remark.level == Level::Error).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", remarks.len().max(1));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    _ = writeln!(out, "<testsuites name=\"suture\" {counts}>\n  <testsuite name=\"suture\" {counts}>");
    for Remark { rule, level, file, line, column: _, subject, message, help } in remarks {
        let mut head = format!("classname=\"{}\" name=\"{}\"", escaped(rule), escaped(subject));
        head.extend(file.iter().map(|file| format!(" file=\"{}\"", escaped(file))));
        head.extend(line.map(|line| format!(" line=\"{line}\"")));
        let (first, help) = (message.lines().next().unwrap_or_default(), help.as_deref().unwrap_or_default());
        let more = escaped([message, help].join("\n").trim_end());
        _ = writeln!(out, "    <testcase {head}>");
        _ = match level {
            Level::Error => writeln!(out, "      <failure message=\"{}\">{more}</failure>", escaped(first)),
            Level::Warning => writeln!(out, "      <system-out>{more}</system-out>"),
        };
        out.push_str("    </testcase>\n");
    }
    if remarks.is_empty() {
        _ = writeln!(out, "    <testcase classname=\"suture\" name=\"{CLEAN}\"/>");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn testsuite(out: &mut String, suite: &SuiteReport) {
    let SuiteReport { name, file, cases } = suite;
    let failed = cases.iter().filter(|case| case.failure.is_some()).count();
    let (name, file) = (escaped(name), escaped(file));
    let time = time(cases);
    _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" file=\"{file}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\"{time}>",
        cases.len()
    );
    for case in cases {
        let CaseReport { name: of, micros: _, failure } = case;
        let head = format!("classname=\"{name}\" name=\"{}\"{}", escaped(of), self::time([case]));
        match failure {
            None => _ = writeln!(out, "    <testcase {head}/>"),
            Some(failure) => {
                let place = failure.step.map_or_else(String::new, |step| format!("step {step}: "));
                _ = writeln!(out, "    <testcase {head}>");
                _ = writeln!(
                    out,
                    "      <failure message=\"{}{}\">{}</failure>",
                    place,
                    escaped(&failure.reason),
                    escaped(&failure.details.join("\n"))
                );
                out.push_str("    </testcase>\n");
            }
        }
    }
    out.push_str("  </testsuite>\n");
}

/// How long cases took together, as an attribute; nothing where that is not to be told.
fn time<'c>(cases: impl IntoIterator<Item = &'c CaseReport>) -> String {
    let micros: Option<u64> = cases.into_iter().map(|case| case.micros).sum();
    micros.map_or_else(String::new, |micros| format!(" time=\"{}\"", seconds(micros)))
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Text for an attribute or an element: markup is escaped, and what XML 1.0 cannot hold at all becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => _ = write!(out, "&#{};", u32::from(c)),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
