//! What is one step away from breaking, for people.

use std::fmt::Write;

use super::denial::{About, by_cause};
use super::differences::covered;
use super::terminal::Paint;
use super::visible;
use crate::near::{ByFault, ByRequest, Fault, Near};

/// More than these are only counted, of faults and of requests, unless all are asked for.
const SHOWN_MAX: usize = 20;

/// The text.
pub fn text(near: &Near, paint: Paint, verbose: bool) -> String {
    let mut out = String::new();
    let shown = if verbose { usize::MAX } else { SHOWN_MAX };
    for ByFault { fault, verdict } in near.faults.iter().take(shown) {
        let label = match fault {
            Fault::None => paint.bad("may break anyway:"),
            Fault::Node => paint.warn("one node away:"),
            Fault::Zone => paint.warn("one zone away:"),
        };
        told(&label, verdict, paint, &mut out);
    }
    more(near.faults.len(), shown, &mut out);
    for ByRequest { count, smallest, verdict, .. } in near.requests.iter().take(shown) {
        let others = if *count > 1 { format!(", and {} other requests do", count - 1) } else { String::new() };
        told(&paint.warn("one request away:"), verdict, paint, &mut out);
        _ = writeln!(out, "  {}{others}", visible(smallest));
    }
    more(near.requests.len(), shown, &mut out);
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&covered(&near.covered, near.objects));
    _ = writeln!(out, "faults: one node, one zone; every instance that holds now");
    if near.undecided > 0 {
        _ = writeln!(out, "{} {} of these questions", paint.warn("undecided:"), near.undecided);
    }
    out
}

fn told(label: &str, verdict: &suture_checker::decision::Verdict, paint: Paint, out: &mut String) {
    for cause in by_cause([verdict], About::Change) {
        for (number, line) in cause.lines(About::Change, paint).iter().enumerate() {
            let line = visible(line);
            _ = if number == 0 { writeln!(out, "{label} {line}") } else { writeln!(out, "  {line}") };
        }
    }
}

fn more(count: usize, shown: usize, out: &mut String) {
    if count > shown {
        _ = writeln!(out, "and {} more, which --verbose lists", count - shown);
    }
}
