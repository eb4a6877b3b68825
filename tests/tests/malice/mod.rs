//! What hostile input is made of, and what it is fed to.

mod expressions;
mod text;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use suture_checker::engine::{Engine, Input, Settings};
use suture_model::adapter::NoAdapters;
use suture_model::change::{Change, Request};
use suture_model::ingest::{ingest, parse_documents};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_service::bench::prng::Prng;
use suture_service::policy::{Documents, Policy};
use suture_service::suite::run::run_suite;
use suture_specs::library::LIBRARY;
use suture_specs::spec::{Profile, Spec, parse_specs};

/// A way into Suture, with well-formed inputs to start from.
pub enum Target {
    /// Manifests of a state.
    Documents(Vec<String>),
    /// Documents of Suture's own kinds.
    Specs(Vec<String>),
    /// Expressions of an invariant, evaluated on the demo's cluster and proved against a request.
    Expressions(Vec<String>, Box<(Snapshot, Request)>),
    /// AdmissionReviews, decided against the demo's cluster.
    Reviews(Vec<String>, Box<(Snapshot, Policy)>),
    /// Suites, run.
    Suites(Vec<String>),
}

impl Target {
    /// Every one of them.
    pub fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let states = texts(&root.join("demo/cluster"), "yaml");
        let mut own: Vec<String> = LIBRARY.iter().map(|(_, text)| (*text).to_owned()).collect();
        own.extend(texts(&root.join("demo"), "yaml"));
        let reviews = texts(&root.join("demo"), "json");
        let suites = texts(&root.join("cases"), "yaml");
        // their states are worth mutating too; suites that name files are not among them
        let mut documents = states.clone();
        documents.extend(suites.iter().flat_map(|suite| values::states(suite)));
        let expressions = own.iter().flat_map(|text| expressions::of(text)).collect();
        let mut snapshot = Snapshot::new(std::sync::Arc::new(NoAdapters));
        for text in &states {
            ingest(&mut snapshot, text, "state").unwrap();
        }
        snapshot.complete();
        let mut invariants = Documents::default();
        invariants.add_profile(Some(Profile::Strict)).unwrap();
        let review = parse_documents(&reviews[0], "review").unwrap();
        let request = Request::from_review(&review[0].val).unwrap();
        let evaluate = Box::new((snapshot.clone(), request));
        let decide = Box::new((snapshot, invariants.compile().unwrap()));
        vec![
            Self::Documents(documents),
            Self::Specs(own),
            Self::Expressions(expressions, evaluate),
            Self::Reviews(reviews, decide),
            Self::Suites(suites),
        ]
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Documents(_) => "documents",
            Self::Specs(_) => "specs",
            Self::Expressions(..) => "expressions",
            Self::Reviews(..) => "reviews",
            Self::Suites(_) => "suites",
        }
    }

    /// An input for it.
    pub fn input(&self, prng: &mut Prng) -> String {
        match self {
            Self::Expressions(seeds, _) => expressions::mutated(seeds, prng),
            Self::Documents(seeds) | Self::Specs(seeds) | Self::Reviews(seeds, _) | Self::Suites(seeds) => {
                let seed = prng.pick(seeds).unwrap();
                // half of them keep their syntax, so that what is behind the parser is reached
                if prng.one_in(2) { text::mutated(seed, prng) } else { values::mutated(seed, prng) }
            }
        }
    }

    /// Feeds it an input, and says whether it was accepted.
    pub fn feed(&self, input: &str) -> bool {
        match self {
            Self::Documents(_) => {
                let mut snapshot = Snapshot::default();
                let read = ingest(&mut snapshot, input, "hostile").is_ok();
                snapshot.complete();
                read
            }
            Self::Specs(_) => compiled(input).is_some(),
            Self::Expressions(_, evaluate) => {
                let Some(policy) = compiled(&expressions::invariant(input)) else { return false };
                let (snapshot, request) = &**evaluate;
                let mut engine = Engine::new(policy.invariants, Settings::default()).unwrap();
                engine.audit(snapshot, Some("2026-11-01T12:00:00Z"));
                let change = Change::from(request.clone());
                engine.decide(&Input { snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] });
                true
            }
            Self::Reviews(_, decide) => {
                let (snapshot, policy) = &**decide;
                decided(input, snapshot, policy)
            }
            Self::Suites(_) => suites_run(input),
        }
    }
}

fn compiled(text: &str) -> Option<Policy> {
    let mut documents = Documents::default();
    for spec in parse_specs(text, "hostile").ok()? {
        // a mutated copy of a shipped template is refused for its name alone
        let renamed = match spec {
            Spec::InvariantTemplate(mut template) => {
                template.name = format!("{}-hostile", template.name).into();
                Spec::InvariantTemplate(template)
            }
            other => other,
        };
        documents.extend(Documents::from(renamed));
    }
    documents.compile().ok()
}

fn decided(text: &str, snapshot: &Snapshot, policy: &Policy) -> bool {
    let Ok(documents) = parse_documents(text, "hostile") else { return false };
    let mut engine = Engine::new(policy.invariants.clone(), Settings::default()).unwrap();
    let requests = documents.iter().filter_map(|document| Request::from_review(&document.val).ok());
    let requests: Vec<Request> = requests.take(2).map(|request| request.resolve(&State::new(snapshot))).collect();
    let accepted = !requests.is_empty();
    let change = Change { requests };
    engine.decide(&Input { snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] });
    accepted
}

fn suites_run(text: &str) -> bool {
    let Ok(specs) = parse_specs(text, "hostile") else { return false };
    let suites = specs.into_iter().filter_map(|spec| match spec {
        Spec::Suite(suite) => Some(suite),
        _ => None,
    });
    let mut accepted = false;
    for mut suite in suites {
        // a case is enough
        suite.spec.cases.truncate(1);
        accepted |= run_suite(&suite).is_ok();
    }
    accepted
}

/// The texts of a folder's files, in order.
fn texts(folder: &Path, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == extension)).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}
