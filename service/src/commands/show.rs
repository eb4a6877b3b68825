//! How a decision or an audit is printed, and how the command ends that made it.

use suture_checker::decision::{Decision, Finding, Outcome};
use suture_model::snapshot::Snapshot;

use crate::arguments::{Common, DecisionFormat};
use crate::clock::Clock;
use crate::failure::{Exit, Failure};
use crate::output::decision::{self, About};
use crate::output::terminal::Paint;
use crate::output::{self, openreports, remarks};
use crate::report::Report;

/// What a report is about.
pub(super) struct Shown<'s> {
    /// The cluster.
    pub snapshot: &'s Snapshot,
    /// When it was so, if that is known.
    pub time: Option<Clock>,
}

/// Prints a report, and says how to end.
pub(super) fn show(
    common: Common,
    output: DecisionFormat,
    report: Report,
    about: About,
    of: &Shown<'_>,
) -> Result<Exit, Failure> {
    let exit = exit_of(&report, about);
    let report = timed(common, report);
    match output {
        _ if common.quiet => {}
        DecisionFormat::Openreports => output::print(&openreports::of_report(&report, of.snapshot, of.time)?)?,
        DecisionFormat::Report(output) => {
            let paint = Paint::stdout(common.color);
            let text = |report: &Report| decision::text(&report.decision, about, paint, common.verbose);
            output::report(output, &report, |report| remarks::of_decision(&report.decision, about), text)?;
        }
    }
    Ok(exit)
}

/// A report that says how long it took only where that is to be told.
pub(super) fn timed(common: Common, report: Report) -> Report {
    let duration = report.decision.duration.filter(|_| !common.no_timing);
    Report { decision: Decision { duration, ..report.decision }, ..report }
}

/// How a command ends that has this report.
pub(super) fn exit_of(report: &Report, about: About) -> Exit {
    let decision = &report.decision;
    let found = |finding| decision.verdicts.iter().any(|verdict| verdict.outcome == finding);
    match (about, decision.decision) {
        (About::Present, _) if found(Finding::Refuted) => Exit::Bad,
        (About::Present, _) if found(Finding::Undecided) => Exit::Undecided,
        (About::Present, _) | (About::Change, Outcome::Allowed | Outcome::Warned) => Exit::Good,
        (About::Change, Outcome::Undecided) => Exit::Undecided,
        (About::Change, Outcome::Denied) => Exit::Bad,
    }
}
