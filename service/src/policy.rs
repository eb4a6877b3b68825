//! What must hold and what custom resources mean: documents of Suture's own kinds, read, compiled, and ready to be run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use suture_model::adapter::Adapters;
use suture_model::kinds::Kind;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::adapters::{AdapterSet, defined};
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::library::Library;
use suture_specs::spec::{
    Exemption, Invariant, InvariantTemplate, KINDS, OperatorGrant, Origin, Profile, ResourceAdapter, Spec, SpecError,
    Suite, parse_specs,
};
use suture_specs::time::parse_timestamp;

use crate::failure::Failure;
use crate::grants::{self, Grants};
use crate::input::{self, Source};

/// Documents by kind, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// Invariants.
    pub invariants: Vec<Invariant>,
    /// Templates.
    pub templates: Vec<InvariantTemplate>,
    /// Adapters.
    pub adapters: Vec<ResourceAdapter>,
    /// Grants.
    pub grants: Vec<OperatorGrant>,
    /// Exemptions.
    pub exemptions: Vec<Exemption>,
    /// Suites.
    pub suites: Vec<Suite>,
}

/// What decisions are made by.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The invariants.
    pub invariants: Vec<Arc<CompiledInvariant>>,
    /// The adapters.
    pub adapters: Arc<dyn Adapters>,
    /// The same as they were written: the documents', and the shipped ones for all other kinds.
    pub written_adapters: Arc<[ResourceAdapter]>,
    /// Those that the definitions of a cluster give for kinds that have no other. What such a kind's operator does is not
    /// modelled, so that nothing waits until its objects are read.
    pub defined_adapters: Arc<[ResourceAdapter]>,
    /// The exemptions.
    pub exemptions: Vec<Exemption>,
    /// The grants.
    pub grants: Grants,
    /// What all of it was compiled from.
    pub documents: Arc<Documents>,
}

impl Policy {
    /// The adapters, as they were written or as definitions give them.
    pub fn each_adapter(&self) -> impl Iterator<Item = &ResourceAdapter> {
        self.written_adapters.iter().chain(self.defined_adapters.iter())
    }

    /// Takes in what the definitions of a recorded cluster say of kinds that have no adapter, and reads it by that as well.
    pub fn read_definitions(&mut self, snapshot: &mut Snapshot) {
        let state = State::new(snapshot);
        let definitions = state.list(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None);
        let mut said = definitions.into_iter().filter_map(|definition| defined(definition)).peekable();
        if said.peek().is_none() {
            return;
        }
        // what compiled once compiles again
        let Ok(set) = AdapterSet::over_shipped(&self.documents.adapters) else { return };
        let set = set.with_defined(said);
        self.defined_adapters = set.defined();
        if !self.defined_adapters.is_empty() {
            self.adapters = Arc::new(set);
            *snapshot = snapshot.with_adapters(self.adapters.clone());
        }
    }
}

impl Documents {
    /// Reads documents from texts. Every one must be of one of Suture's kinds.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn read(sources: &[Source]) -> Result<Self, Vec<SpecError>> {
        let (mut documents, mut errors) = (Self::default(), Vec::new());
        for Source { name, text } in sources {
            match parse_specs(text, name) {
                Ok(specs) => specs.into_iter().for_each(|spec| documents.add(spec)),
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(documents) } else { Err(errors) }
    }

    /// Adds all documents of another set.
    pub fn extend(&mut self, other: Self) {
        let Self { invariants, templates, adapters, grants, exemptions, suites } = other;
        self.invariants.extend(invariants);
        self.templates.extend(templates);
        self.adapters.extend(adapters);
        self.grants.extend(grants);
        self.exemptions.extend(exemptions);
        self.suites.extend(suites);
    }

    /// Adds the invariants of a profile. One of its own name stands in place of a profile's.
    ///
    /// # Errors
    /// Never, as a test of the library holds: what is wrong with a shipped template.
    pub fn add_profile(&mut self, profile: Option<Profile>) -> Result<(), Vec<SpecError>> {
        let Some(profile) = profile else { return Ok(()) };
        let mut shipped = Library::shipped()?.invariants(profile);
        shipped.retain(|one| !self.invariants.iter().any(|own| own.namespace.is_none() && own.name == one.name));
        self.invariants.extend(shipped);
        Ok(())
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> [(&'static str, usize); 6] {
        let Self { invariants, templates, adapters, grants, exemptions, suites } = self;
        [
            ("Invariant", invariants.len()),
            ("InvariantTemplate", templates.len()),
            ("ResourceAdapter", adapters.len()),
            ("OperatorGrant", grants.len()),
            ("Exemption", exemptions.len()),
            ("Suite", suites.len()),
        ]
    }

    fn add(&mut self, spec: Spec) {
        match spec {
            Spec::Invariant(invariant) => self.invariants.push(*invariant),
            Spec::InvariantTemplate(template) => self.templates.push(*template),
            Spec::ResourceAdapter(adapter) => self.adapters.push(*adapter),
            Spec::OperatorGrant(grant) => self.grants.push(*grant),
            Spec::Exemption(exemption) => self.exemptions.push(*exemption),
            Spec::Suite(suite) => self.suites.push(*suite),
        }
    }

    /// Compiles the documents over the shipped library.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn compile(&self) -> Result<Policy, Vec<SpecError>> {
        let Self { invariants, templates, adapters, grants, exemptions, suites: _ } = self;
        let mut errors = self.twice();
        let mut library = Library::shipped()?;
        let mut broken: BTreeSet<&Str> = BTreeSet::new();
        for template in templates {
            if library.get(&template.name).is_some() || grants::TEMPLATES.contains(&&*template.name) {
                let message = format!("`{}` is the name of a shipped template", template.name);
                errors.push(SpecError::new(&template.origin, "metadata.name", message));
            } else if let Err(more) = library.add(template.clone()) {
                broken.insert(&template.name);
                errors.extend(more);
            }
        }
        let mut compiled = Vec::new();
        let (about_grants, others): (Vec<&Invariant>, Vec<&Invariant>) = invariants
            .iter()
            .partition(|i| i.spec.template.as_deref().is_some_and(|name| grants::TEMPLATES.contains(&name)));
        let grants = Grants::compile(grants, &about_grants);
        // what is wrong with a template is not said again of those that name it
        let names_broken =
            |i: &&&Invariant| i.spec.template.as_deref().is_some_and(|t| broken.iter().any(|b| ***b == *t));
        for invariant in others.iter().filter(|invariant| !names_broken(invariant)) {
            match compile_invariant(invariant, &library) {
                Ok(invariant) => compiled.push(Arc::new(invariant)),
                Err(more) => errors.extend(more),
            }
        }
        for exemption in exemptions {
            if let Err(error) = parse_timestamp(&exemption.spec.expires) {
                errors.push(SpecError::new(&exemption.origin, "spec.expires", error.to_string()));
            }
        }
        match (AdapterSet::over_shipped(adapters), grants) {
            (Ok(set), Ok(grants)) if errors.is_empty() => Ok(Policy {
                invariants: compiled,
                written_adapters: set.written(adapters),
                defined_adapters: set.defined(),
                adapters: Arc::new(set),
                exemptions: exemptions.clone(),
                grants,
                documents: Arc::new(Self { suites: Vec::new(), ..self.clone() }),
            }),
            (adapters, grants) => {
                errors.extend(adapters.err().into_iter().flatten());
                errors.extend(grants.err().into_iter().flatten());
                Err(errors)
            }
        }
    }

    /// Documents that have the kind and name of another one, and adapters for the kind of another one.
    fn twice(&self) -> Vec<SpecError> {
        let named = |kind: &'static str, name: &Str, origin: &Origin| (format!("{kind} `{name}`"), origin.clone());
        let all = (self.invariants.iter().map(|d| named("invariant", &d.qualified_name(), &d.origin)))
            .chain(self.templates.iter().map(|d| named("template", &d.name, &d.origin)))
            .chain(self.exemptions.iter().map(|d| named("exemption", &d.name, &d.origin)))
            .chain(self.grants.iter().map(|d| named("grant", &d.name, &d.origin)))
            .chain(self.adapters.iter().map(|d| {
                let of = format!("{}/{}", d.spec.group, d.spec.kind);
                named("adapter for", &of.into(), &d.origin)
            }));
        let mut seen: BTreeMap<String, Origin> = BTreeMap::new();
        let mut errors = Vec::new();
        for (what, origin) in all {
            if let Some(first) = seen.get(&what) {
                let line = first.line.map_or_else(String::new, |line| format!(":{line}"));
                let message = format!("{what} is there twice, first at {}{line}", first.file);
                errors.push(SpecError::new(&origin, "metadata.name", message));
            } else {
                seen.insert(what, origin);
            }
        }
        errors
    }
}

impl From<Spec> for Documents {
    fn from(spec: Spec) -> Self {
        let mut documents = Self::default();
        documents.add(spec);
        documents
    }
}

/// Reads the files that flags name. In a folder, files that name none of Suture's kinds are passed over: states and
/// charts lie beside specs. A file that is named itself must be one of ours.
///
/// # Errors
/// When a file cannot be read.
pub fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(input::read_one(path)?);
            continue;
        }
        for file in input::files(path)? {
            let source = input::read_one(&file)?;
            if file == *path || source.text.contains("suture.dev/v") || names_kind(&source.text, &KINDS) {
                sources.push(source);
            }
        }
    }
    Ok(sources)
}

/// Whether a line of a text, YAML or JSON, names one of these kinds.
pub fn names_kind(text: &str, kinds: &[&str]) -> bool {
    let values = text.split("kind").skip(1).map(|rest| rest.trim_start_matches(['"', '\'', ':', ' ']));
    values.into_iter().any(|value| {
        let word = value.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        kinds.contains(&word)
    })
}

/// Reads and compiles what flags name, beside the invariants of a profile.
///
/// # Errors
/// When a file cannot be read or is wrong.
pub fn load(profile: Option<Profile>, invariants: &[PathBuf], adapters: &[PathBuf]) -> Result<Policy, Failure> {
    let mut read = sources(invariants)?;
    read.extend(sources(adapters)?);
    let mut documents = Documents::read(&read).map_err(diagnosed)?;
    let named = !documents.invariants.is_empty() || !documents.grants.is_empty();
    if !named && !invariants.is_empty() {
        return Err(Failure::invalid("no invariant and no grant in the files that `--invariants` names"));
    }
    if !named && profile.is_none() {
        return Err(Failure::invalid("`--profile none` needs `--invariants`: there is nothing to check"));
    }
    documents.add_profile(profile).map_err(diagnosed)?;
    documents.compile().map_err(diagnosed)
}

/// Errors of documents, as a command fails with them.
pub fn diagnosed(errors: Vec<SpecError>) -> Failure {
    Failure::Diagnosed(errors)
}
