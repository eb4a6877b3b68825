//! `suture audit`: what is violated now, and what is one step away from it.

use std::collections::BTreeSet;

use serde::Serialize;
use suture_checker::decision::{Decision, Finding};
use suture_model::change::Change;
use suture_specs::spec::OnUndecided;

use super::inputs::{engine, load_policy, load_state, one_standard_input, taken_as_none};
use super::show::{Shown, exit_of, show, timed};
use crate::arguments::{self, Common, DecisionFormat, Format, ReportFormat};
use crate::failure::{Exit, Failure};
use crate::near::{Near, look_ahead};
use crate::output::denial::About;
use crate::output::progress::Progress;
use crate::output::terminal::Paint;
use crate::output::{self, decision, near};
use crate::report::Report;

/// What is violated, and what nearly is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Audited {
    #[serde(flatten)]
    report: Report,
    one_step: Near,
}

/// Audits.
pub(super) fn run(common: Common, arguments: arguments::Audit) -> Result<Exit, Failure> {
    let arguments::Audit { state, policy, one_step, output } = arguments;
    one_standard_input(&[&state.state, &policy.invariants, &policy.adapters])?;
    let format = plain(output).filter(|_| one_step);
    if one_step && format.is_none() {
        return Err(Failure::invalid("--one-step is told as text, json or yaml"));
    }
    let mut policy = load_policy(&policy)?;
    let (recorded, time) = load_state(&state, &mut policy, &BTreeSet::new())?;
    let mut engine = engine(common, &policy, OnUndecided::Allow)?;
    let decision = engine.audit(&recorded.snapshot, time.map(|time| time.to_string()).as_deref());
    let taken_as_none = taken_as_none(&policy, &recorded);
    let report = Report::of(Decision { taken_as_none, ..decision }, &Change::default(), &recorded.snapshot);
    let Some(format) = format else {
        return show(common, output, report, About::Present, &Shown { snapshot: &recorded.snapshot, time });
    };
    let broken = report.decision.verdicts.iter().filter(|verdict| verdict.outcome == Finding::Refuted);
    let broken = broken.map(|verdict| (verdict.invariant.clone(), verdict.instance.clone())).collect();
    let bar = if common.quiet { Progress::hidden() } else { Progress::of(recorded.snapshot.len() + 1) };
    let near =
        look_ahead(&policy, &recorded.snapshot, time, &broken, |what| bar.say(what)).map_err(Failure::invalid)?;
    drop(bar);
    let exit = exit_of(&report, About::Present);
    if !common.quiet {
        let paint = Paint::stdout(common.color);
        let text = |audited: &Audited| {
            let present = decision::text(&audited.report.decision, About::Present, paint, common.verbose);
            format!("{}\n{present}", near::text(&audited.one_step, paint, common.verbose))
        };
        output::value(format, &Audited { report: timed(common, report), one_step: near }, text)?;
    }
    Ok(exit)
}

fn plain(output: DecisionFormat) -> Option<Format> {
    let DecisionFormat::Report(format) = output else { return None };
    match format {
        ReportFormat::Text => Some(Format::Text),
        ReportFormat::Json => Some(Format::Json),
        ReportFormat::Yaml => Some(Format::Yaml),
        ReportFormat::Junit | ReportFormat::Github | ReportFormat::Sarif => None,
    }
}
