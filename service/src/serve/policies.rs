//! What must hold, from files and from Suture's own resources in the cluster: compiled one by one, so that one that is
//! wrong does not keep the others out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use suture_encode::analysis::Analysis;
use suture_model::adapter::NoAdapters;
use suture_model::ingest::project;
use suture_model::kinds::Kind;
use suture_model::object::Object;
use suture_model::value::{Str, Val};
use suture_specs::adapters::{self, AdapterSet};
use suture_specs::compile::compile_invariant;
use suture_specs::library::Library;
use suture_specs::spec::{Invariant, Origin, Profile, ResourceAdapter, Spec, SpecError, parse_spec};
use suture_specs::time::parse_timestamp;

use super::health::Readiness;
use super::in_flight_log::InFlightLog;
use super::kind_events::{KindEvent, List};
use super::loaded::{Edition, Loaded, Problem, ReadKinds, Wanted};
use super::off::Cause;
use super::resources::{RESOURCES, ResourceName};
use super::spendings;
use super::store::{Change, Store, lacks};
use crate::failure::{Failure, in_one_line};
use crate::grants::{self, Grants};
use crate::no_op::RelevantFields;
use crate::policy::{self, Documents, Policy, diagnosed};
use crate::rules;

/// Resources that change within this time are compiled together: `kubectl apply` of a folder sends one after the other.
const TOGETHER: Duration = Duration::from_millis(20);

/// The kind of definitions of custom resources, which say where these keep their scale.
pub const DEFINITION: &str = "CustomResourceDefinition";

/// The documents at hand.
#[derive(Debug, Default)]
pub struct Policies {
    files: Documents,
    resources: BTreeMap<Name, Val>,
    editions: BTreeMap<Name, Edition>,
    /// What the definitions of custom resources say, by their names.
    defined: BTreeMap<Name, ResourceAdapter>,
    generation: u64,
    /// The adapters of the load before: a snapshot is indexed by them, so that equal ones are kept.
    adapters: Option<(String, Arc<AdapterSet>)>,
}

/// Kind, namespace (empty for cluster-scoped kinds), name.
type Name = (Str, Str, Str);

impl Policies {
    /// What the flags name, beside the invariants of a profile; resources of the cluster come on top.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong: a typo on the command line stops the start.
    pub fn of_files(profile: Option<Profile>, invariants: &[PathBuf], adapters: &[PathBuf]) -> Result<Self, Failure> {
        let mut read = policy::sources(invariants)?;
        read.extend(policy::sources(adapters)?);
        let mut files = Documents::read(&read).map_err(diagnosed)?;
        files.add_profile(profile).map_err(diagnosed)?;
        files.compile().map_err(diagnosed)?;
        Ok(Self { files, ..Self::default() })
    }

    /// A resource of the cluster is so now.
    pub fn put(&mut self, resource: Val) {
        if let Some(name) = name(&resource) {
            if &*name.0 == DEFINITION {
                let object = Object::from_val(&project(&resource)).ok();
                match object.as_ref().and_then(adapters::defined) {
                    Some(adapter) => drop(self.defined.insert(name, adapter)),
                    None => drop(self.defined.remove(&name)),
                }
                return;
            }
            // what the API server adds is none of the document's
            let metadata = ["name", "namespace", "labels"].iter().filter_map(|field| {
                resource.at_some(&["metadata", field]).map(|value| (Str::from(*field), value.clone()))
            });
            let metadata = Val::map(metadata.collect());
            let uid = resource.str_at(&["metadata", "uid"]).map(ToString::to_string).unwrap_or_default();
            let generation = resource.at_some(&["metadata", "generation"]).and_then(Val::as_int).unwrap_or_default();
            self.editions.insert(name.clone(), Edition { uid, generation });
            self.resources.insert(name, resource.with("metadata", metadata).without_at(&["status"]));
        }
    }

    /// A resource of the cluster is gone.
    pub fn remove(&mut self, resource: &Val) {
        if let Some(name) = name(resource) {
            self.resources.remove(&name);
            self.editions.remove(&name);
            self.defined.remove(&name);
        }
    }

    /// Of a kind there are these resources: the end of a list.
    pub fn retain(&mut self, kind: &str, mut listed: impl FnMut(&str, &str) -> bool) {
        self.resources.retain(|(of, ns, name), _| &**of != kind || listed(ns, name));
        self.editions.retain(|name, _| self.resources.contains_key(name));
        self.defined.retain(|(of, ns, name), _| &**of != kind || listed(ns, name));
    }

    /// Takes in what the watches of Suture's own kinds and of definitions tell, until nobody tells any more; what changes is
    /// loaded into the store. Part `policies` of the readiness is whether all kinds were read once.
    pub fn follow(
        mut self,
        told: &Receiver<(Kind, KindEvent)>,
        store: &Store,
        log: &InFlightLog,
        readiness: &Readiness,
    ) {
        let mut unread: BTreeSet<&str> = RESOURCES.iter().map(|resource| resource.kind).collect();
        let mut problems: Vec<Problem> = Vec::new();
        let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
        let is_grant = |kind: &Kind| &*kind.kind == "OperatorGrant";
        while let Ok(first) = told.recv() {
            let mut note = |kind: &Kind, told: &KindEvent| match told {
                KindEvent::Listed(_) => {
                    gone.remove(kind);
                    there.insert(kind.clone());
                }
                KindEvent::Absent if there.contains(kind) => drop(gone.insert(kind.clone())),
                KindEvent::Put(grant) if is_grant(kind) => spendings::take_over(log, grant),
                KindEvent::Page(grants, _) if is_grant(kind) => {
                    grants.iter().for_each(|grant| spendings::take_over(log, grant));
                }
                _ => {}
            };
            note(&first.0, &first.1);
            let mut changed = self.take(first, &mut unread);
            // what comes together is compiled together
            thread::sleep(TOGETHER);
            while let Ok(next) = told.try_recv() {
                note(&next.0, &next.1);
                changed |= self.take(next, &mut unread);
            }
            if changed {
                let loaded = self.load();
                for problem in loaded.problems.iter().filter(|problem| !problems.contains(problem)) {
                    tracing::warn!(resource = problem.resource, message = problem.message, "left out");
                }
                problems.clone_from(&loaded.problems);
                let (generation, invariants) = (loaded.generation, loaded.policy.invariants.len());
                tracing::info!(generation, invariants, problems = problems.len(), "loaded");
                store.write(vec![Change::Load(Arc::new(loaded))]);
            }
            let missing = || format!("not read yet: {}", unread.iter().copied().collect::<Vec<_>>().join(", "));
            readiness.set("policies", if unread.is_empty() { Ok(()) } else { Err(missing()) });
            if unread.is_empty() {
                say_off(readiness, &store.read().loaded.policy, &gone);
            }
        }
    }

    /// Says whether what decisions are made by may have changed.
    fn take(&mut self, (kind, told): (Kind, KindEvent), unread: &mut BTreeSet<&str>) -> bool {
        let before = (self.resources.clone(), self.editions.clone(), self.said_by_definitions());
        match told {
            KindEvent::Page(resources, taken) => {
                resources.into_iter().for_each(|resource| self.put(resource));
                // the watch may have ended meanwhile
                _ = taken.send(());
            }
            KindEvent::Put(resource) => self.put(resource),
            KindEvent::Gone(resource) => self.remove(&resource),
            KindEvent::Listed(List { names, .. }) => {
                self.retain(&kind.kind, |ns, name| names.contains(&(ns.into(), name.into())));
                unread.remove(&*kind.kind);
            }
            KindEvent::Absent => {
                self.retain(&kind.kind, |_, _| false);
                unread.remove(&*kind.kind);
            }
            KindEvent::Failed(why) => tracing::warn!(kind = &*kind.kind, why, "cannot be read"),
            KindEvent::Forbidden(resource) => {
                tracing::warn!(resource, why = lacks(&resource), "a kind may not be read");
            }
            KindEvent::Wanted | KindEvent::Unwanted | KindEvent::Lost | KindEvent::Every | KindEvent::Progress(_) => {}
        }
        (&self.resources, &self.editions, self.said_by_definitions()) != (&before.0, &before.1, before.2)
    }

    fn said_by_definitions(&self) -> String {
        said(self.defined.values())
    }

    /// Compiles everything that can be.
    pub fn load(&mut self) -> Loaded {
        self.generation += 1;
        let mut problems = Vec::new();
        let mut documents = self.files.clone();
        let mut names: BTreeSet<Str> = BTreeSet::new();
        for invariant in &documents.invariants {
            names.insert(invariant.qualified_name());
        }
        for ((kind, ns, name), resource) in &self.resources {
            let label = named(kind, ns, name).label();
            match parse_spec(resource, Origin::named(&label)) {
                Ok(Spec::Invariant(invariant)) if names.contains(&invariant.qualified_name()) => {
                    let message = "an invariant of this name comes from a file".to_owned();
                    problems.push(Problem { resource: label, message });
                }
                Ok(spec) => documents.extend(spec.into()),
                Err(errors) => problems.push(Problem { resource: label, message: in_one_line(&errors) }),
            }
        }
        let mut policy = compile(&mut documents, &mut problems);
        let adapters = self.adapters(&mut documents, &mut problems);
        policy.written_adapters = adapters.written(&documents.adapters);
        policy.defined_adapters = adapters.defined();
        policy.adapters = adapters;
        policy.documents = Arc::new(documents);
        let mut kinds = rules::watched(&policy);
        // what is defined says which kinds are absent
        kinds.extend(Kind::builtin(DEFINITION));
        let stated = Policy { defined_adapters: Arc::default(), ..policy.clone() };
        let beside: BTreeSet<Kind> = kinds.difference(&rules::watched(&stated)).cloned().collect();
        let wanted = Wanted { kinds, every: rules::watches_every(&policy) };
        let reads = policy.invariants.iter().map(|invariant| {
            let alone = Policy { invariants: vec![invariant.clone()], grants: Grants::default(), ..stated.clone() };
            ReadKinds { kinds: rules::watched(&alone), every: rules::watches_every(&alone) }
        });
        let reads = reads.collect();
        let resources = self.editions.iter();
        let resources = resources.map(|((kind, ns, name), edition)| (named(kind, ns, name), edition.clone())).collect();
        Loaded {
            analyses: Analysis::of_all(policy.invariants.iter().cloned()).into(),
            relevant_fields: RelevantFields::of(&policy),
            policy,
            generation: self.generation,
            wanted,
            beside,
            reads,
            problems,
            resources,
        }
    }

    /// The adapters that compile, one for each kind: of two the first, by file and name. The others are taken out of the
    /// documents.
    fn adapters(&mut self, documents: &mut Documents, problems: &mut Vec<Problem>) -> Arc<AdapterSet> {
        let mut seen: BTreeMap<(String, String), Str> = BTreeMap::new();
        let mut note = |adapter: &ResourceAdapter, message: String| {
            problems.push(Problem { resource: adapter.origin.file.to_string(), message });
        };
        documents.adapters.retain(|adapter| {
            let of = (adapter.spec.group.clone(), adapter.spec.kind.clone());
            if let Some(other) = seen.get(&of) {
                note(adapter, format!("`{other}` says already what a `{}` of `{}` means", of.1, of.0));
                return false;
            }
            if let Err(errors) = AdapterSet::compile([adapter]) {
                note(adapter, in_one_line(&errors));
                return false;
            }
            seen.insert(of, adapter.name.clone());
            true
        });
        let good = &documents.adapters;
        let text = said(good.iter().chain(self.defined.values()));
        if let Some((_, known)) = self.adapters.as_ref().filter(|(of, _)| *of == text) {
            return known.clone();
        }
        let set = AdapterSet::over_shipped(good).unwrap_or_else(|errors| {
            problems.push(Problem { resource: "ResourceAdapters".to_owned(), message: in_one_line(&errors) });
            AdapterSet::default()
        });
        let set = Arc::new(set.with_defined(self.defined.values().cloned()));
        self.adapters = Some((text, set.clone()));
        set
    }
}

/// Compiles what can be, adapters aside, and notes what cannot; that is taken out of the documents.
fn compile(documents: &mut Documents, problems: &mut Vec<Problem>) -> Policy {
    let mut note = |origin: &Origin, errors: &[SpecError]| {
        problems.push(Problem { resource: origin.file.to_string(), message: in_one_line(errors) });
    };
    let mut library = Library::shipped().unwrap_or_else(|errors| {
        note(&Origin::named("the shipped library"), &errors);
        Library::default()
    });
    documents.templates.retain(|template| {
        let shipped = library.get(&template.name).is_some() || grants::TEMPLATES.contains(&&*template.name);
        let added = if shipped {
            let message = format!("there is a template `{}` already", template.name);
            Err(vec![SpecError::new(&template.origin, "metadata.name", message)])
        } else {
            library.add(template.clone())
        };
        added.inspect_err(|errors| note(&template.origin, errors)).is_ok()
    });
    let mut compiled = Vec::new();
    let about_grants = |invariant: &Invariant| {
        invariant.spec.template.as_deref().is_some_and(|name| grants::TEMPLATES.contains(&name))
    };
    documents.invariants.retain(|invariant| {
        let made = if about_grants(invariant) {
            Grants::compile(&[], &[invariant]).map(drop)
        } else {
            compile_invariant(invariant, &library).map(|invariant| compiled.push(Arc::new(invariant)))
        };
        made.inspect_err(|errors| note(&invariant.origin, errors)).is_ok()
    });
    documents.grants.retain(|grant| {
        let made = Grants::compile(std::slice::from_ref(grant), &[]);
        made.inspect_err(|errors| note(&grant.origin, errors)).is_ok()
    });
    documents.exemptions.retain(|exemption| match parse_timestamp(&exemption.spec.expires) {
        Ok(_) => true,
        Err(error) => {
            note(&exemption.origin, &[SpecError::new(&exemption.origin, "spec.expires", error.to_string())]);
            false
        }
    });
    let about: Vec<&Invariant> = documents.invariants.iter().filter(|invariant| about_grants(invariant)).collect();
    let compiled_grants = Grants::compile(&documents.grants, &about).unwrap_or_else(|errors| {
        note(&Origin::named("OperatorGrants"), &errors);
        Grants::default()
    });
    Policy {
        invariants: compiled,
        adapters: Arc::new(NoAdapters),
        written_adapters: Arc::default(),
        defined_adapters: Arc::default(),
        exemptions: documents.exemptions.clone(),
        grants: compiled_grants,
        documents: Arc::default(),
    }
}

/// Says whether there is nothing to judge by, or less than there was.
fn say_off(readiness: &Readiness, policy: &Policy, gone: &BTreeSet<Kind>) {
    let kinds = gone.iter().map(|kind| &*kind.kind).collect::<Vec<_>>().join(", ");
    let lost = format!("the definitions of {kinds} are gone, with all that was defined");
    readiness.turn(Cause::Definitions, (!gone.is_empty()).then_some(lost.as_str()));
    let nothing = policy.invariants.is_empty() && policy.grants.is_empty();
    readiness.turn(Cause::Policy, nothing.then_some("no invariant and no grant is loaded"));
}

fn name(resource: &Val) -> Option<Name> {
    let kind = resource.str_at(&["kind"])?.clone();
    let ns = resource.str_at(&["metadata", "namespace"]).cloned().unwrap_or_else(|| "".into());
    Some((kind, ns, resource.str_at(&["metadata", "name"])?.clone()))
}

fn named(kind: &str, ns: &str, name: &str) -> ResourceName {
    let namespace = (!ns.is_empty()).then(|| ns.to_owned());
    ResourceName { kind: kind.to_owned(), namespace, name: name.to_owned() }
}

/// What adapters say, to be compared.
fn said<'a>(adapters: impl Iterator<Item = &'a ResourceAdapter>) -> String {
    format!("{:?}", adapters.map(|adapter| &adapter.spec).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::metrics::Metrics;
    use crate::serve::off::Off;
    use crate::serve::resources;

    fn resource(text: &str) -> Val {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn one_that_is_wrong_is_told_and_the_others_go_on() {
        let mut policies = Policies::default();
        policies.put(resource(
            r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"good","uid":"u"},
                "spec":{"template":"service-keeps-endpoints"},"status":{"x":1}}"#,
        ));
        policies.put(resource(
            r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"bad"},
                "spec":{"template":"no-such-template"}}"#,
        ));
        policies.put(resource(
            r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"odd"},"spec":{"x":1}}"#,
        ));
        let first = policies.load();
        assert_eq!(first.policy.invariants.len(), 1);
        let wrong: Vec<&str> = first.problems.iter().map(|problem| &*problem.resource).collect();
        assert_eq!(wrong, ["Invariant/odd", "Invariant/bad"]);
        let all: Vec<String> = first.resources.keys().map(ResourceName::label).collect();
        assert_eq!(all, ["Invariant/bad", "Invariant/good", "Invariant/odd"]);
        policies.retain("Invariant", |_, name| name != "good");
        let second = policies.load();
        assert!(second.policy.invariants.is_empty());
        assert_eq!(second.resources.len(), 2);
        assert!(second.generation > first.generation);
    }

    #[test]
    fn the_scale_of_a_definition_is_an_adapter_that_nothing_waits_for() {
        let kind = Kind::new("example.com", "Fleet");
        let definition = |path: &str| {
            resource(&format!(
                r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"{DEFINITION}","metadata":{{"name":"fleets.example.com"}},
                "spec":{{"group":"example.com","names":{{"kind":"Fleet"}},"versions":[{{"name":"v1","storage":true,
                "subresources":{{"scale":{{"specReplicasPath":"{path}","labelSelectorPath":".status.selector"}}}}}}]}}}}"#
            ))
        };
        let fleet = r#"{"apiVersion":"example.com/v1","kind":"Fleet","metadata":{"name":"web","namespace":"a"},
            "spec":{"size":3},"status":{"selector":"app=web"}}"#;
        let fleet = Object::from_val(&resource(fleet)).unwrap();
        let mut policies = Policies::default();
        policies.put(resource(
            r#"{"kind":"Invariant","metadata":{"name":"good"},"spec":{"template":"service-keeps-endpoints"}}"#,
        ));
        let told = |kind: &str, told| (Kind::new("apiextensions.k8s.io", kind), told);
        let mut unread = BTreeSet::new();
        assert!(policies.take(told(DEFINITION, KindEvent::Put(definition(".spec.size"))), &mut unread));
        let loaded = policies.load();
        let facts = loaded.policy.adapters.facts(&fleet).unwrap();
        assert_eq!(facts.replicas, Some(3));
        assert!(facts.selector.as_ref().unwrap().matches(&Val::object([("app", Val::str("web"))])));
        assert!(loaded.wanted.kinds.contains(&kind));
        assert_eq!(loaded.beside, [kind.clone()].into());
        assert!(loaded.reads.iter().all(|reads| !reads.kinds.contains(&kind)));
        let rules = rules::rules(&loaded.policy);
        let update = suture_model::change::Operation::Update;
        assert!(rules.iter().any(|rule| rule.covers("example.com", "fleets", "scale", update)));
        // the same again is no other policy, and neither is a status
        assert!(!policies.take(told(DEFINITION, KindEvent::Put(definition(".spec.size"))), &mut unread));
        let again = policies.load().policy.adapters;
        assert!(Arc::ptr_eq(&loaded.policy.adapters, &again));
        assert!(policies.take(told(DEFINITION, KindEvent::Put(definition(".spec.pods"))), &mut unread));
        assert_eq!(policies.load().policy.adapters.facts(&fleet).unwrap().replicas, None);
        assert!(policies.take(told(DEFINITION, KindEvent::Gone(definition(".spec.pods"))), &mut unread));
        assert!(policies.load().policy.adapters.facts(&fleet).is_none());
    }

    #[test]
    fn definitions_that_go_and_a_policy_without_invariants_are_told() {
        let (events, told) = std::sync::mpsc::channel();
        let (off, _notices) = Off::new(Metrics::default());
        let readiness = Readiness::expecting(&["policies"]).unless_off(off.clone());
        let store = Arc::new(Store::new(Arc::new(Policies::default().load())));
        let own: Vec<Kind> = RESOURCES.iter().map(|resource| Kind::new(resources::GROUP, resource.kind)).collect();
        let following = thread::spawn({
            let (readiness, store, log) = (readiness.clone(), store.clone(), InFlightLog::lasting(60));
            move || Policies::default().follow(&told, &store, &log, &readiness)
        });
        let until = |lines: &[&str]| {
            let began = crate::clock::now();
            while readiness.off() != lines {
                assert!(began.elapsed() < Duration::from_secs(20), "{:?}", readiness.off());
                thread::sleep(Duration::from_millis(5));
            }
        };
        let listed = |names: &[&str]| {
            let names = names.iter().map(|name| ("".into(), (*name).into())).collect();
            KindEvent::Listed(List { names, version: Some(1), began: crate::clock::now() })
        };
        for kind in &own {
            events.send((kind.clone(), listed(&[]))).unwrap();
        }
        let nothing = "off: no invariant and no grant is loaded";
        until(&[nothing]);
        let kind = Kind::new(resources::GROUP, "Invariant");
        let good = r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"good"},
            "spec":{"template":"service-keeps-endpoints"}}"#;
        events.send((kind.clone(), KindEvent::Put(resource(good)))).unwrap();
        until(&[]);
        events.send((kind, KindEvent::Absent)).unwrap();
        until(&["off: the definitions of Invariant are gone, with all that was defined", nothing]);
        drop(events);
        following.join().unwrap();
    }
}
