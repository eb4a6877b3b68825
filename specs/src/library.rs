//! The shipped library of templates, and those that users add.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use suture_model::value::{Str, Val};

use crate::compile::check_template;
use crate::spec::{
    Invariant, InvariantSpec, InvariantTemplate, Profile, ProfileInvariant, Spec, SpecError, parse_specs,
};

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../library/", $name, ".yaml")))),*]
    };
}

/// The templates that are shipped: name and YAML.
pub const LIBRARY: &[(&str, &str)] = shipped![
    "service-keeps-endpoints",
    "serving-service-kept",
    "service-survives-fault",
    "selector-keeps-matches",
    "quorum-kept",
    "quorum-survives-fault",
    "volume-in-use-kept",
    "data-recoverable",
    "references-resolve",
    "owner-references-resolve",
    "live-child-kept",
    "crd-without-instances",
    "serving-namespace-kept",
    "pdb-allows-disruption",
    "unique-host",
    "critical-workload-kept",
    "ports-resolve",
    "webhook-backend-kept",
    "webhook-not-self-blocking",
    "local-traffic-has-endpoints",
    "autoscaled-replicas-kept",
    "idle-workload-has-activator",
    "one-member-at-a-time",
    "quorum-has-pdb",
    "bound-volume-kept",
    "retained-volume-kept",
    "no-stale-volume-adopted",
    "controller-kept",
    "child-follows-owner",
    "finalizer-respected",
    "selectors-disjoint",
    "no-stray-adoption",
    "pdbs-disjoint",
    "pdb-evaluable",
    "batch-bounded",
    "single-writer",
    "quota-fits",
    "tenant-lease-kept",
    "data-stays-resident",
    "rights-kept",
    "workload-schedulable",
    "rollout-can-progress",
    "critical-not-preempted",
];

/// The shipped templates, read once in a process.
static SHIPPED: LazyLock<Result<Library, Vec<SpecError>>> = LazyLock::new(read_shipped);

/// Templates by name.
#[derive(Clone, Debug, Default)]
pub struct Library {
    templates: BTreeMap<Str, Arc<InvariantTemplate>>,
}

impl Library {
    /// The shipped templates.
    ///
    /// # Errors
    /// Never, as a test holds: what is wrong with a shipped template.
    pub fn shipped() -> Result<Self, Vec<SpecError>> {
        SHIPPED.clone()
    }

    /// Adds a template, or puts it in place of the one of its name.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn add(&mut self, template: InvariantTemplate) -> Result<(), Vec<SpecError>> {
        check_template(&template)?;
        self.templates.insert(template.name.clone(), Arc::new(template));
        Ok(())
    }

    /// The invariants that stand for the templates in a profile.
    pub fn invariants(&self, profile: Profile) -> Vec<Invariant> {
        self.templates.values().flat_map(|template| in_profile(template, profile)).collect()
    }

    /// The template of this name.
    pub fn get(&self, name: &str) -> Option<&InvariantTemplate> {
        self.templates.get(name).map(|template| &**template)
    }

    /// The names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates.keys().map(|name| &**name)
    }

    /// All templates, by name.
    pub fn iter(&self) -> impl Iterator<Item = &InvariantTemplate> {
        self.templates.values().map(|template| &**template)
    }
}

fn read_shipped() -> Result<Library, Vec<SpecError>> {
    let mut library = Library::default();
    for (name, text) in LIBRARY {
        for spec in parse_specs(text, &format!("specs/library/{name}.yaml"))? {
            if let Spec::InvariantTemplate(template) = spec {
                library.add(*template)?;
            }
        }
    }
    Ok(library)
}

/// The invariants that stand for a template in a profile.
fn in_profile(template: &InvariantTemplate, profile: Profile) -> Vec<Invariant> {
    let baseline = template.spec.profiles.baseline.as_deref();
    let plain = [ProfileInvariant::default()];
    let stated = baseline.filter(|_| profile == Profile::Baseline).unwrap_or(&plain);
    let invariant = |stated: &ProfileInvariant| {
        let ProfileInvariant { name, params, hold, under, matches, action } = stated.clone();
        Invariant {
            name: name.map_or_else(|| template.name.clone(), Str::from),
            namespace: None,
            labels: Val::Null,
            spec: InvariantSpec {
                template: Some(template.name.to_string()),
                params,
                hold,
                under,
                matches,
                action,
                ..InvariantSpec::default()
            },
            status: Val::Null,
            origin: template.origin.clone(),
        }
    };
    stated.iter().map(invariant).collect()
}
