//! `suture test`: runs suites, once or whenever they change.

use std::path::PathBuf;

use regex::Regex;
use suture_specs::spec::Suite;

use super::watch;
use crate::arguments::{self, Common, ReportFormat};
use crate::failure::{Exit, Failure};
use crate::output::progress::Progress;
use crate::output::terminal::{self, Paint};
use crate::output::{self, junit, remarks, tests};
use crate::suite;

/// Runs suites; with `--watch` again and again, until the process is ended.
pub(super) fn run(common: Common, arguments: arguments::Test) -> Result<Exit, Failure> {
    if !arguments.watch {
        return once(common, &arguments);
    }
    loop {
        // before the suites are read: what changes meanwhile counts
        let changes = watch::Changes::of(&folders(&arguments.paths))?;
        if let Err(failure) = once(common, &arguments) {
            terminal::failure(&failure, Paint::stderr(common.color));
        }
        terminal::note("waiting for a change, until Ctrl-C");
        changes.wait()?;
    }
}

fn once(common: Common, arguments: &arguments::Test) -> Result<Exit, Failure> {
    let arguments::Test { paths, run, coverage, watch: _, output } = arguments;
    let mut found = suite::documents::find(paths)?;
    if let Some(pattern) = run {
        only(&mut found, pattern)?;
    }
    let progress = if common.quiet { Progress::hidden() } else { Progress::of(found.len()) };
    let mut report = suite::run::run(&found, *coverage, &progress)?;
    drop(progress);
    if common.no_timing {
        report.forget_times();
    }
    let exit = if report.failed == 0 { Exit::Good } else { Exit::Bad };
    let paint = Paint::stdout(common.color);
    match output {
        _ if common.quiet => {}
        ReportFormat::Junit => output::print(&junit::xml(&report))?,
        _ => output::report(*output, &report, remarks::of_report, |report| tests::text(report, paint, common.verbose))?,
    }
    Ok(exit)
}

/// Keeps the cases of which `SUITE: CASE` matches a regular expression.
fn only(found: &mut Vec<Suite>, pattern: &str) -> Result<(), Failure> {
    let pattern = Regex::new(pattern).map_err(|error| Failure::invalid(format!("--run: {error}")))?;
    for suite in &mut *found {
        let name = suite.name.clone();
        suite.spec.cases.retain(|case| pattern.is_match(&format!("{name}: {}", case.name)));
    }
    found.retain(|suite| !suite.spec.cases.is_empty());
    if found.is_empty() {
        return Err(Failure::invalid(format!("--run: no case matches `{pattern}`")));
    }
    Ok(())
}

/// The files and folders that suites are made of. Where one cannot be read, what was named at least.
fn folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let suites = suite::documents::find(paths).unwrap_or_default();
    paths.iter().cloned().chain(suites.iter().flat_map(suite::documents::files)).collect()
}
