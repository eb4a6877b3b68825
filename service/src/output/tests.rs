//! The results of suites for people: what failed and why, and how many passed.

use std::fmt::Write;

use super::terminal::Paint;
use crate::suite::report::{CaseFailure, Report};

/// The text. Passed cases are listed only when asked for.
pub fn text(report: &Report, paint: Paint, verbose: bool) -> String {
    let mut out = String::new();
    if verbose {
        for suite in &report.suites {
            for case in &suite.cases {
                let mark = if case.failure.is_none() { paint.good("passed") } else { paint.bad("failed") };
                let took = case.micros.map_or_else(String::new, |micros| format!(" ({micros} µs)"));
                _ = writeln!(out, "{mark}  {}: {}{took}", suite.name, case.name);
            }
        }
    }
    for (suite, case, failure) in report.failures() {
        let CaseFailure { step, line, reason, details } = failure;
        let step = step.map_or_else(String::new, |step| format!("step {step}: "));
        _ = writeln!(out, "{} {}: {}", paint.bad("failed:"), suite.name, case.name);
        _ = writeln!(out, "  {step}{reason}");
        for line in details.iter().flat_map(|detail| detail.lines()) {
            _ = writeln!(out, "    {line}");
        }
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        _ = writeln!(out, "  {}", paint.dim(&format!("{}{line}", suite.file)));
    }
    if let Some(clauses) = &report.coverage {
        let never: Vec<&String> = clauses.iter().filter(|(_, broken)| !**broken).map(|(clause, _)| clause).collect();
        _ = writeln!(out, "{} of {} clauses were never false", never.len(), clauses.len());
        never.iter().for_each(|clause| _ = writeln!(out, "  {clause}"));
    }
    let Report { passed, failed, .. } = report;
    let summary = format!("{passed} passed, {failed} failed");
    _ = writeln!(out, "{}", if *failed == 0 { paint.good(&summary) } else { paint.bad(&summary) });
    out
}
