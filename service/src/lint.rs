//! What is wrong with documents: all of it, in the order of the files; and what makes sense and can hardly be meant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::impact::Impact;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::ir::{Expr, Node};
use suture_specs::library::{LIBRARY, Library};
use suture_specs::spec::{Invariant, Profile, SpecError, Suite, parse_what_is_right};
use suture_specs::suggest::nearest;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::grants;
use crate::input::Source;
use crate::policy::{Documents, Policy};
use crate::suite;

/// What reads the future: `after` is `now` too.
const FUTURE: &str = "now";
/// What may decide a clause that reads no future: it says something of who asks for what.
const ASKED: [&str; 2] = ["request", "requests"];

/// The documents, and what was found.
#[derive(Debug, Default)]
pub struct Linted {
    /// Those that can be read, without what is wrong in them.
    pub documents: Documents,
    /// The errors and warnings.
    pub found: Vec<SpecError>,
    /// What a suite names and cannot be read.
    pub unreadable: Vec<Failure>,
    /// What they compile to, if nothing is wrong.
    pub policy: Option<Policy>,
}

/// Reads and compiles documents, their suites' included.
pub fn lint(sources: &[Source], now: Clock) -> Linted {
    let mut linted = Linted::default();
    for Source { name, text } in sources {
        let (specs, errors) = parse_what_is_right(text, name);
        specs.into_iter().for_each(|spec| linted.documents.extend(spec.into()));
        linted.found.extend(errors);
    }
    let broken: BTreeSet<Str> = linted.found.iter().filter_map(broken_template).collect();
    match linted.documents.compile() {
        Ok(policy) => {
            let of = |invariant: &Invariant| policy.invariants.iter().find(|c| *c.name == *invariant.qualified_name());
            let pairs = linted.documents.invariants.iter().filter_map(|invariant| Some((invariant, of(invariant)?)));
            linted.found.extend(pairs.flat_map(|(invariant, compiled)| without_future(invariant, compiled)));
            linted.policy = Some(policy);
        }
        Err(errors) => linted.found.extend(errors.into_iter().filter(|error| !follows(error, &broken))),
    }
    linted.found.extend(exemptions(&linted.documents, now));
    for suite in &linted.documents.suites {
        match suite::documents::check(suite) {
            Ok(errors) => linted.found.extend(errors),
            Err(failure) => linted.unreadable.push(failure),
        }
        linted.found.extend(cases(suite));
    }
    linted.found.retain(|error| !error.may_follow);
    in_order(sources, &mut linted.found);
    linted
}

/// The invariants of which a state has no instance.
pub fn without_instances(linted: &Linted, snapshot: &Snapshot) -> Vec<SpecError> {
    let state = State::new(snapshot);
    let impact = Impact::new(&state, &[], &[]);
    let compiled = linted.policy.iter().flat_map(|policy| &policy.invariants);
    let none = |compiled: &&Arc<CompiledInvariant>| {
        let analysis = Analysis::of((*compiled).clone());
        let admitted = |key| state.get(key).is_some_and(|object| compiled.matches.admits(object));
        !impact.of_kinds(&analysis, compiled.namespaced.as_deref()).iter().any(admitted)
    };
    let names: BTreeSet<&Str> = compiled.filter(none).map(|compiled| &compiled.name).collect();
    let unmet = linted.documents.invariants.iter().filter(|invariant| names.contains(&invariant.qualified_name()));
    let error = |invariant: &Invariant| {
        SpecError::new(&invariant.origin, "spec", "no object of the state is an instance of it")
    };
    unmet.map(error).collect()
}

/// The template that could not be read, if that is what is wrong.
fn broken_template(error: &SpecError) -> Option<Str> {
    error.document.as_ref().filter(|(kind, _)| &**kind == "InvariantTemplate").map(|(_, name)| name.clone())
}

/// Whether an error only follows from a template that is broken itself.
fn follows(error: &SpecError, broken: &BTreeSet<Str>) -> bool {
    let is_about = |name: &Str| error.message.ends_with(&format!("template `{name}`"));
    let asks_of = |name: &Str| error.message.starts_with(&format!("template `{name}` "));
    broken.iter().any(|name| is_about(name) || asks_of(name))
}

/// By files, in the order in which they were read, then by places; each once.
fn in_order(sources: &[Source], found: &mut Vec<SpecError>) {
    let order: BTreeMap<&str, usize> = (0..).zip(sources).map(|(at, source)| (source.name.as_str(), at)).collect();
    let place = |error: &SpecError| (order.get(&*error.file).copied().unwrap_or(usize::MAX), error.line, error.column);
    found.sort_by_key(place);
    let mut seen = BTreeSet::new();
    found.retain(|error| seen.insert(error.to_string()));
}

/// The clauses of an invariant of its own that read neither the future nor what is asked.
fn without_future(invariant: &Invariant, compiled: &CompiledInvariant) -> Vec<SpecError> {
    let mut reading: BTreeSet<&str> = [FUTURE].into_iter().chain(ASKED).collect();
    for (name, value) in &compiled.lets {
        if reads(value, &reading) {
            reading.insert(name);
        }
    }
    let own = invariant.spec.require.iter().enumerate();
    let silent = own.filter(|(_, requirement)| {
        let mut clauses = compiled.require.iter().filter(|clause| *clause.source == *requirement.expression.0);
        clauses.any(|clause| !reads(&clause.expression, &reading))
    });
    let warn = |at: usize| {
        let path = format!("spec.require[{at}].expression");
        SpecError::new(&invariant.origin, &path, "the clause never reads `now`: no change makes a difference to it")
            .helped("write `o.at(now)` for the object in the future")
    };
    silent.map(|(at, _)| warn(at)).collect()
}

fn reads(expr: &Expr, names: &BTreeSet<&str>) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(&part.node, Node::Var(name) if names.contains(&**name)));
    found
}

/// Exemptions from nothing, and those that are over.
fn exemptions(documents: &Documents, now: Clock) -> Vec<SpecError> {
    let known: BTreeSet<Str> = names(documents).collect();
    let mut found = Vec::new();
    for exemption in &documents.exemptions {
        let name = &exemption.spec.invariant;
        if !known.contains(name.as_str()) {
            let error = SpecError::new(
                &exemption.origin,
                "spec.invariant",
                format!("it exempts from nothing: there is no invariant `{name}`"),
            );
            found.push(error.suggesting(name, known.iter().map(|known| &**known)));
        }
        if Clock::parse(&exemption.spec.expires).is_ok_and(|expires| expires < now) {
            found.push(SpecError::new(&exemption.origin, "spec.expires", "it has expired, and lifts nothing any more"));
        }
    }
    found
}

/// The names of all invariants: those of documents, of the profiles, and of grants.
fn names(documents: &Documents) -> impl Iterator<Item = Str> {
    let own = documents.invariants.iter().map(|invariant| invariant.qualified_name());
    let library = Library::shipped().unwrap_or_default();
    let profiles =
        [Profile::Baseline, Profile::Strict].into_iter().flat_map(move |profile| library.invariants(profile));
    let shipped = profiles.map(|invariant| invariant.name);
    let of_grants = grants::TEMPLATES.iter().map(|name| Str::from(*name));
    own.chain(shipped).chain(LIBRARY.iter().map(|(name, _)| Str::from(*name))).chain(of_grants)
}

/// Cases that ask nothing, or bear the name of another one, or name invariants that the suite does not have.
fn cases(suite: &Suite) -> Vec<SpecError> {
    let mut found = Vec::new();
    let loaded = suite::documents::documents(suite).ok();
    let known: Option<BTreeSet<Str>> = loaded.map(|documents| names_of(&documents));
    let mut seen = BTreeSet::new();
    for (at, case) in suite.spec.cases.iter().enumerate() {
        let path = format!("spec.cases[{at}]");
        if !seen.insert(case.name.as_str()) {
            let message = format!("a case of this name is there already: `{}`", case.name);
            found.push(SpecError::new(&suite.origin, &format!("{path}.name"), message));
        }
        if case.steps.is_empty() {
            found.push(SpecError::new(&suite.origin, &format!("{path}.steps"), "a case without steps asks nothing"));
        }
        let Some(known) = &known else { continue };
        for (step, names) in case.steps.iter().enumerate().map(|(number, step)| (number, &step.by)) {
            for name in names.iter().filter(|name| !known.contains(name.as_str())) {
                let place = format!("{path}.steps[{step}].by");
                let message = format!("`by` names `{name}`, which is no invariant of the suite");
                let near = nearest(name, known.iter().map(|known| &**known));
                let error = SpecError::new(&suite.origin, &place, message);
                found.push(match near {
                    Some(near) => error.helped(format!("did you mean `{near}`?")),
                    None => error,
                });
            }
        }
    }
    found
}

/// The names by which a step may call the invariants of a suite: a NamespacedInvariant also without its namespace.
fn names_of(documents: &Documents) -> BTreeSet<Str> {
    let own = documents.invariants.iter().flat_map(|invariant| [invariant.qualified_name(), invariant.name.clone()]);
    let others = ["confirm-delete"].iter().chain(&grants::TEMPLATES).map(|name| Str::from(*name));
    own.chain(others).collect()
}
