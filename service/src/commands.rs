//! The subcommands: each reads its input, asks for an answer, prints it, and says with which exit code to end.

use std::fs;
use std::process::ExitCode;

use clap::CommandFactory;
use serde::Serialize;
use suture_checker::decision::Decision;
use suture_checker::version::z3_version;
use suture_model::change::User;
use suture_model::snapshot::Facts;
use suture_specs::spec::Profile;

use crate::arguments::{self, Arguments, Asked, Check, Command, Common, Completions, Manpages, Version};
use crate::bench::beside::POLICY;
use crate::bench::{cluster, measure, report};
use crate::decide::{Question, decide};
use crate::failure::{Exit, Failure};
use crate::input::{self, Source};
use crate::output;
use crate::output::decision::About;
use crate::output::progress::Progress;
use crate::output::terminal::{self, Paint};
use crate::policy::{Documents, diagnosed};
use crate::recorded::RecordedCluster;
use crate::report::Report;
use crate::request::{Against, RequestedChange, Write, review_of};

#[cfg(feature = "serve")]
use inputs::live;
use inputs::{engine, load_policy, load_state, one_standard_input, taken_as_none};
use show::{Shown, show};

mod audit;
mod diff;
#[cfg(feature = "serve")]
mod emergency_off;
mod eval;
mod explain;
mod fmt;
mod inputs;
mod lint;
#[cfg(feature = "serve")]
mod manifests;
mod replay;
#[cfg(feature = "serve")]
mod reports;
mod show;
mod test;
mod watch;

/// Runs the command line.
pub fn run(arguments: Arguments) -> ExitCode {
    let Arguments { common, command } = arguments;
    let exit = match dispatch(common, command) {
        Ok(exit) => exit,
        Err(failure) => {
            terminal::failure(&failure, Paint::stderr(common.color));
            failure.exit()
        }
    };
    ExitCode::from(exit as u8)
}

fn dispatch(common: Common, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Check(arguments) => check(common, *arguments),
        Command::Test(arguments) => test::run(common, arguments),
        Command::Audit(arguments) => audit::run(common, arguments),
        Command::Replay(arguments) => replay::run(common, *arguments),
        Command::Diff(arguments) => diff::run(common, *arguments),
        Command::Lint(arguments) => lint::run(common, arguments),
        Command::Eval(arguments) => eval::run(arguments),
        Command::Explain(arguments) => explain::run(common, arguments),
        #[cfg(feature = "serve")]
        Command::Reports(arguments) => reports::run(arguments),
        Command::Fmt(arguments) => fmt::run(common, arguments),
        #[cfg(feature = "serve")]
        Command::Snapshot(arguments) => snapshot(&arguments),
        #[cfg(feature = "serve")]
        Command::Serve(options) => crate::serve::run(&options).map(|()| Exit::Good),
        Command::Bench(arguments) => bench(common, arguments),
        #[cfg(feature = "serve")]
        Command::Manifests(arguments) => manifests::print(arguments),
        #[cfg(feature = "serve")]
        Command::EmergencyOff(arguments) => emergency_off::run(arguments),
        Command::Completions(arguments) => completions(arguments),
        Command::Manpages(arguments) => manpages(arguments),
        Command::Version(arguments) => version(arguments),
    }
}

fn check(common: Common, arguments: Check) -> Result<Exit, Failure> {
    let Check { state, policy, asked, unmodelled, output } = arguments;
    let Asked { review, apply, namespace, user, .. } = &asked;
    one_standard_input(&[&state.state, &policy.invariants, &policy.adapters, apply, review.as_slice()])?;
    let mut policy = load_policy(&policy)?;
    let (namespace, user) = (namespace.as_deref(), user.as_deref().map_or_else(User::admin, User::named));
    let asked = requested(&asked)?;
    let (recorded, time) = load_state(&state, &mut policy, &asked.applied_keys(namespace))?;
    let RecordedCluster { snapshot, ownership, .. } = &recorded;
    let change = asked.change(&Against { snapshot, user: &user, ownership, namespace })?;
    let mut engine = engine(common, &policy, unmodelled.into())?;
    let question = Question {
        snapshot,
        change: &change,
        writers: &|_| Vec::new(),
        ways_max: 1,
        hopes: false,
        likely_reads: &Facts::default(),
        counted: &[],
        history: policy.grants.recorded(),
        time,
        unread: &[],
    };
    let decision = decide(&policy, Some(&mut engine), &question).decision;
    let taken_as_none = taken_as_none(&policy, &recorded);
    let report = Report::of(Decision { taken_as_none, ..decision }, &change, &recorded.snapshot);
    show(common, output, report, About::Change, &Shown { snapshot, time })
}

/// What the flags ask for; one of them is given.
fn requested(asked: &Asked) -> Result<RequestedChange, Failure> {
    let Asked { review, apply, replace, field_manager, delete, propagation_policy, scale, .. } = asked;
    let Asked { evict, drain, force, cordon, patch, label, .. } = asked;
    let write = if *replace { Write::Replace } else { Write::Apply { manager: field_manager.clone() } };
    Ok(match review {
        Some(review) => RequestedChange::Review(Box::new(review_of(review)?)),
        None if !apply.is_empty() => RequestedChange::manifests(&input::read(apply)?, write)?,
        None if !delete.is_empty() => RequestedChange::Delete(delete.clone(), *propagation_policy),
        None if !scale.is_empty() => RequestedChange::Scale(scale.clone()),
        None if !evict.is_empty() => RequestedChange::Evict(evict.clone()),
        None if !drain.is_empty() => RequestedChange::Drain(drain.clone(), *force),
        None if !cordon.is_empty() => RequestedChange::Cordon(cordon.clone()),
        None if !patch.is_empty() => RequestedChange::Patch(patch.clone()),
        None if !label.is_empty() => RequestedChange::Label(label.clone()),
        None => RequestedChange::Nothing,
    })
}

#[cfg(feature = "serve")]
fn snapshot(arguments: &arguments::Snapshot) -> Result<Exit, Failure> {
    let live = live(&load_policy(&arguments.policy)?)?;
    output::print(&live.dump()?)?;
    for (what, why) in &live.unread {
        terminal::note(&format!("not read: {what}: {why}"));
    }
    Ok(Exit::Good)
}

fn bench(common: Common, arguments: arguments::Bench) -> Result<Exit, Failure> {
    let arguments::Bench { nodes, pods, seed, requests, templates: only, output } = arguments;
    let nodes = nodes as usize;
    let pods = pods.map_or(nodes * cluster::PODS_PER_NODE, |pods| pods as usize);
    let plan = measure::Plan { size: cluster::Size { nodes, pods, seed }, requests: requests as usize };
    // those templates that judge nothing by their defaults
    let stated = Source { name: "bench".to_owned(), text: POLICY.to_owned() };
    let mut documents = Documents::read(&[stated]).map_err(diagnosed)?;
    documents.add_profile(Some(Profile::Strict)).map_err(diagnosed)?;
    let policy = documents.compile().map_err(diagnosed)?;
    if let Some(unknown) = only.iter().find(|o| !policy.invariants.iter().any(|i| *i.name == ***o)) {
        return Err(Failure::invalid(format!("there is no template `{unknown}`")));
    }
    let mut profile = Documents::default();
    profile.add_profile(Some(Profile::Baseline)).map_err(diagnosed)?;
    let profile = profile.compile().map_err(diagnosed)?.invariants;
    let progress = Progress::of(policy.invariants.len() + 6);
    let result = measure::run(plan, &policy, &profile, &only, &progress)?;
    drop(progress);
    output::value(output.into(), &result, |result| report::text(result, common.verbose))?;
    Ok(Exit::Good)
}

fn completions(arguments: Completions) -> Result<Exit, Failure> {
    let Completions { shell } = arguments;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "suture", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Good)
}

fn manpages(arguments: Manpages) -> Result<Exit, Failure> {
    let failed = |source| Failure::write("the man pages", source);
    if let Some(folder) = arguments.to {
        fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(Arguments::command(), &folder).map_err(failed)?;
        return Ok(Exit::Good);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(failed)?;
    output::print(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Good)
}

/// What `suture version` says.
#[derive(Debug, Serialize)]
struct Versions {
    suture: &'static str,
    z3: &'static str,
}

fn version(arguments: Version) -> Result<Exit, Failure> {
    let Version { output } = arguments;
    let versions = Versions { suture: env!("CARGO_PKG_VERSION"), z3: z3_version().map_err(Failure::invalid)? };
    output::value(output, &versions, |Versions { suture, z3 }| format!("suture {suture}\nz3 {z3}\n"))?;
    Ok(Exit::Good)
}
