//! A stored report for people: the requests, and every verdict with all that is known of it.

use std::fmt::Write;

use super::decision;
use super::terminal::Paint;
use crate::report::{Report, Requested};

/// The text.
pub fn text(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(id) = &report.id {
        let time = report.time.as_ref().map_or_else(String::new, |time| format!(", {time}"));
        _ = writeln!(out, "{} {id}{time}", paint.dim("report"));
    }
    for Requested { text, groups, dry_run, .. } in &report.requests {
        let groups = if groups.is_empty() { String::new() } else { format!(" (of {})", groups.join(", ")) };
        let dry = if *dry_run { ", as a dry run" } else { "" };
        _ = writeln!(out, "{} {text}{dry}{groups}", paint.strong("request:"));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out + &decision::text(&report.decision, report.about(), paint, true)
}
