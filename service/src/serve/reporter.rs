//! What this replica has to say about Suture's own resources: how each stands in what is loaded, read and audited.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Action;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch::{Receiver, Sender};

use super::audits::{Auditor, name_of};
use super::costs::Costs;
use super::findings::{Compared, Findings};
use super::judge::Replicas;
use super::loaded::Edition;
use super::metrics::Metrics;
use super::options::Telling;
use super::overruns::Overruns;
use super::peers::There;
use super::reports::board::Standing;
use super::resources::ResourceName;
use super::status::{Audited, ResourceStatus, Said};
use super::store::{Store, View};
use crate::clock::{Clock, now};
use crate::output::openreports::Standing as Told;
use crate::policy::Policy;

/// How often it is looked whether anything is to be said.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The priority of its thread (`nice(2)`): requests come first.
const NICE: i32 = 15;

/// Says it, from a thread of its own.
pub struct Reporter {
    /// What is loaded and read.
    pub store: Arc<Store>,
    /// How replicas share the work.
    pub replicas: Replicas,
    /// Which invariants overran of late.
    pub overruns: Arc<Overruns>,
    /// What each invariant took of decisions.
    pub costs: Arc<Costs>,
    /// The name of this replica.
    pub identity: String,
    /// Which replicas there are.
    pub there: Receiver<There>,
    /// Whether the API server is told to ask.
    pub registered: Receiver<Result<(), String>>,
    /// Who is shown how all invariants stand, if anybody is.
    pub standings: Option<Sender<Vec<Standing>>>,
    /// Where what is violated is counted.
    pub metrics: Metrics,
    /// By what else it is told what is violated, and who writes that.
    pub telling: Telling,
    /// See above.
    pub findings: UnboundedSender<Findings>,
}

/// What is known of all resources.
struct Known<'v> {
    view: &'v View,
    /// What each invariant misses.
    blind: BTreeMap<ResourceName, String>,
    problems: BTreeMap<&'v str, &'v str>,
    overruns: &'v Overruns,
    costs: &'v Costs,
    /// What each invariant and grant does.
    actions: BTreeMap<ResourceName, Action>,
    /// Why no request is judged, if none is.
    idle: Result<(), String>,
    now: Clock,
}

impl Reporter {
    /// Says it to `said`, until nobody listens any more.
    pub fn run(self, said: &Sender<Said>) {
        // of this thread alone (`setpriority(2)`, C library/kernel differences); it does without
        _ = setpriority_process(None, NICE);
        let (mut auditor, mut compared) = (Auditor::default(), Compared::default());
        while !said.is_closed() {
            let replicas = self.there.borrow().names.clone();
            let audits = self.is_auditor(&replicas);
            let has_audited = audits && auditor.audit(&self.store);
            if !audits {
                // what is found next is found anew, and is told by another one until then
                (auditor, compared) = (Auditor::default(), Compared::default());
            }
            if has_audited || !audits {
                self.metrics.audited(auditor.found());
            }
            let has_looked = audits
                && auditor.look_ahead(&self.store).unwrap_or_else(|error| {
                    tracing::error!(%error, "it is not known what is one step away");
                    false
                });
            if has_looked || !audits {
                let (counts, rounds) = auditor.near();
                self.metrics.near(counts, rounds);
            }
            let (view, found) = (self.store.read(), audits.then_some(&auditor));
            for invariant in &view.loaded.policy.invariants {
                self.metrics.took(name_of(invariant).label(), self.costs.of(&invariant.name).steps);
            }
            let known = self.known(&view);
            if has_audited && self.telling.any() {
                let findings = compared.with(&known.found(&auditor), &view.snapshot, self.telling);
                // nobody listens when the process ends
                _ = self.findings.send(findings);
            }
            let statuses = known.statuses(found);
            if let Some(shown) = &self.standings {
                tell(shown, known.standings(found));
            }
            drop(known);
            drop(view);
            let new = Said { statuses, replicas };
            tell(said, new);
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether this replica is the one that audits: the one that holds the Lease, or where there is none the first by name.
    fn is_auditor(&self, replicas: &BTreeSet<String>) -> bool {
        match &self.replicas {
            Replicas::Single(active) => active.check().is_ok(),
            Replicas::Announced(_) | Replicas::Audit => replicas.first() == Some(&self.identity),
        }
    }

    fn known<'v>(&'v self, view: &'v View) -> Known<'v> {
        let problems = &view.loaded.problems;
        Known {
            view,
            blind: view.blind().into_iter().map(|(invariant, why)| (name_of(&invariant), why)).collect(),
            problems: problems.iter().map(|problem| (&*problem.resource, &*problem.message)).collect(),
            overruns: &self.overruns,
            costs: &self.costs,
            actions: actions(&view.loaded.policy),
            idle: self.idle(),
            now: Clock::now(),
        }
    }

    /// Why no request is judged by this replica, though one should be.
    fn idle(&self) -> Result<(), String> {
        match &self.replicas {
            Replicas::Audit => Err("replicas mode audit: nothing is denied".to_owned()),
            // another one judges
            Replicas::Single(active) if active.check().is_err() => Ok(()),
            Replicas::Single(_) | Replicas::Announced(_) => self.registered.borrow().clone(),
        }
    }
}

impl Known<'_> {
    fn statuses(&self, auditor: Option<&Auditor>) -> BTreeMap<ResourceName, ResourceStatus> {
        let resource_status =
            |(name, edition): (&ResourceName, &Edition)| (name.clone(), self.resource_status(name, edition, auditor));
        self.view.loaded.resources.iter().map(resource_status).collect()
    }

    /// What was found of each invariant that is loaded, to be told.
    fn found<'a>(&'a self, auditor: &'a Auditor) -> Vec<Told<'a>> {
        let told = |invariant: &'a Arc<CompiledInvariant>| {
            let name = name_of(invariant);
            let (_, audited) = auditor.all().find(|(of, _)| **of == name)?;
            let violations = match audited {
                Audited::Found(found) => Ok(&**found),
                Audited::Unknown(_, why) => Err(&**why),
                Audited::Nothing | Audited::Elsewhere => return None,
            };
            let action = self.actions.get(&name).copied().unwrap_or(invariant.action);
            Some(Told { invariant: &invariant.name, action, violations })
        };
        self.view.loaded.policy.invariants.iter().filter_map(told).collect()
    }

    /// How all invariants stand, whether a resource or a file has them; those that do not compile come last.
    fn standings(&self, auditor: Option<&Auditor>) -> Vec<Standing> {
        let standing = |invariant: &Arc<CompiledInvariant>| {
            let name = name_of(invariant);
            let (violations, unclear) = match auditor.map(|auditor| auditor.says(&name)) {
                Some(Audited::Found(found)) => (Some(found), None),
                Some(Audited::Unknown(_, why)) => (None, Some(why)),
                Some(Audited::Nothing | Audited::Elsewhere) | None => (None, None),
            };
            let nearly = auditor.and_then(|auditor| auditor.nearly(&name)).cloned();
            Standing {
                loaded: true,
                action: self.actions.get(&name).copied(),
                unread: self.blind.get(&name).cloned(),
                idle: self.idle.clone().err(),
                violations,
                unclear,
                nearly,
                cost: self.costs.of(&invariant.name),
                problem: None,
                name: invariant.name.to_string(),
            }
        };
        let broken = self.problems.iter().filter_map(|(resource, message)| {
            let name = ["Invariant/", "NamespacedInvariant/"].iter().find_map(|kind| resource.strip_prefix(kind))?;
            let (name, problem) = (name.to_owned(), Some((*message).to_owned()));
            Some(Standing { name, loaded: true, problem, ..Standing::default() })
        });
        self.view.loaded.policy.invariants.iter().map(standing).chain(broken).collect()
    }

    fn resource_status(&self, name: &ResourceName, edition: &Edition, auditor: Option<&Auditor>) -> ResourceStatus {
        let compiled = match self.problems.get(&*name.label()) {
            Some(message) => Err((*message).to_owned()),
            None => Ok(()),
        };
        let ready = match self.blind.get(name) {
            Some(why) => Err(why.clone()),
            None => compiled.clone(),
        };
        let enforced = ready.clone().and_then(|()| self.idle.clone()).and_then(|()| self.current(name));
        let audited = match auditor {
            _ if !name.kind.ends_with("Invariant") => Audited::Nothing,
            _ if compiled.is_err() => Audited::Unknown("DoesNotCompile", String::new()),
            None => Audited::Elsewhere,
            Some(auditor) => auditor.says(name),
        };
        let in_time = name.kind.ends_with("Invariant").then(|| self.overruns.in_time(name, now()));
        let action = compiled.is_ok().then(|| self.actions.get(name).copied()).flatten();
        ResourceStatus {
            uid: edition.uid.clone(),
            generation: edition.generation,
            action,
            compiled,
            ready,
            enforced,
            in_time,
            audited,
            near: auditor.and_then(|auditor| auditor.nearly(name)).map(|n| (n.instances.len(), n.complete)),
        }
    }

    /// An exemption ends.
    fn current(&self, name: &ResourceName) -> Result<(), String> {
        let exemptions = &self.view.loaded.policy.exemptions;
        let exemption = exemptions.iter().find(|exemption| name.kind == "Exemption" && *exemption.name == *name.name);
        let Some(expires) = exemption.map(|exemption| &exemption.spec.expires) else { return Ok(()) };
        match Clock::parse(expires) {
            Ok(end) if end.nanos() > self.now.nanos() => Ok(()),
            _ => Err(format!("expired at {expires}")),
        }
    }
}

/// Tells what differs from what was told last.
fn tell<T: PartialEq>(told: &Sender<T>, new: T) {
    told.send_if_modified(|old| {
        let differs = *old != new;
        if differs {
            *old = new;
        }
        differs
    });
}

fn actions(policy: &Policy) -> BTreeMap<ResourceName, Action> {
    let of = |kind: &str, name: &Str| ResourceName { kind: kind.to_owned(), namespace: None, name: name.to_string() };
    let grants = policy.grants.actions().map(|(name, action)| (of("OperatorGrant", name), action));
    let overrides = policy.grants.overrides().map(|(name, action)| (of("Invariant", name), action));
    let invariants = policy.invariants.iter().map(|invariant| (name_of(invariant), invariant.action));
    invariants.chain(grants).chain(overrides).collect()
}
