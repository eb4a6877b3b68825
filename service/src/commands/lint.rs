//! `suture lint`: what is wrong with documents.

use std::collections::BTreeSet;

use suture_specs::spec::SpecError;

use super::inputs::{live, one_standard_input};
use crate::arguments::{self, Common, ReportFormat};
use crate::clock::Clock;
use crate::failure::{Exit, Failure, plural};
use crate::lint::{lint, without_instances};
use crate::output::remarks::Remark;
use crate::output::terminal::{self, Paint};
use crate::output::{self};
use crate::policy;
use crate::recorded;

/// Compiles files, and says all that is wrong with them.
pub(super) fn run(common: Common, arguments: arguments::Lint) -> Result<Exit, Failure> {
    let arguments::Lint { paths, state, output } = arguments;
    one_standard_input(&[&paths, &state])?;
    let sources = policy::sources(&paths)?;
    let mut linted = lint(&sources, Clock::now());
    if let (false, Some(policy)) = (state.is_empty(), &mut linted.policy) {
        let recorded = recorded::load(&state, &[], &BTreeSet::new(), policy, live)?;
        let more = without_instances(&linted, &recorded.snapshot);
        linted.found.extend(more);
    }
    if let Some(unreadable) = linted.unreadable.into_iter().next() {
        return Err(unreadable);
    }
    let counts = linted.documents.counts();
    let count: usize = counts.iter().map(|(_, count)| count).sum();
    if count == 0 && linted.found.is_empty() {
        return Err(Failure::invalid("no document of `suture.dev` in the files given"));
    }
    let exit = if linted.found.iter().all(SpecError::is_warning) { Exit::Good } else { Exit::Invalid };
    if output != ReportFormat::Text {
        let remarks: Vec<Remark> = linted.found.iter().map(Remark::from).collect();
        output::report(output, &remarks, Clone::clone, |_| String::new())?;
        return Ok(exit);
    }
    let (warnings, errors): (Vec<SpecError>, Vec<SpecError>) =
        linted.found.into_iter().partition(SpecError::is_warning);
    for warning in warnings.iter().filter(|_| !common.quiet) {
        terminal::note(&terminal::diagnostic(warning, Paint::stderr(common.color)));
    }
    if !errors.is_empty() {
        return Err(Failure::Diagnosed(errors));
    }
    if common.quiet {
        return Ok(exit);
    }
    let mut text = String::new();
    for (kind, count) in counts.iter().filter(|(_, count)| common.verbose && *count > 0) {
        text += &format!("{count} {kind}\n");
    }
    let (documents, files) = (plural(count, "document", "documents"), plural(sources.len(), "file", "files"));
    let verdict = match warnings.len() {
        0 => Paint::stdout(common.color).good("clean"),
        warned => Paint::stdout(common.color).warn(&plural(warned, "warning", "warnings")),
    };
    text += &format!("{verdict}: {documents} in {files}\n");
    output::print(&text)?;
    Ok(exit)
}
