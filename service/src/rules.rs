//! What the loaded policy looks at: the kinds to watch, and the requests that can break an invariant or a grant.
//!
//! Both are derived from what the invariants read (`suture_encode::analysis::footprint`), closed under what the effects of
//! `model` read and take along. They err on the side of more: a request too many is decided in microseconds, one that
//! never reaches the webhook is decided by nobody.
//!
//! | because | watched | requests |
//! |---|---|---|
//! | an invariant reads a kind in the future | that kind | its CREATE, UPDATE, DELETE, and subresources that write it |
//! | an invariant reads a kind only as it was | that kind | none: no request changes the past |
//! | pods are read, or what may have a pod as its owner | what makes, scales, holds, places and protects pods | the same, with eviction, binding, status, scale |
//! | anything may be collected with its owner | owners, as they are seen, of what is watched | of every resource DELETE, and UPDATE of its owners and finalizers ([`Judged`]) |
//! | an adapter says what a custom resource means | its kind, and kinds it names | all requests on its group |
//! | a grant binds somebody | what its budgets count | all writes of its subjects |

use std::collections::{BTreeMap, BTreeSet};

use suture_encode::analysis::footprint::Footprint;
use suture_encode::analysis::reads::{ANY_GROUP, Reads};
use suture_model::change::{Operation, plural};
use suture_model::kinds::{Kind, KindTraits, Watched};
use suture_specs::spec::{Listed, ResourceAdapterSpec, ScaleTarget};

use crate::policy::Policy;

/// Requests on resources, as a webhook rule has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API groups; `*` for all.
    pub groups: Vec<String>,
    /// Resources, `resource` or `resource/subresource`; `*` for all resources, `*/*` with their subresources.
    pub resources: Vec<String>,
    /// Operations.
    pub operations: Vec<Operation>,
}

impl Rule {
    /// Whether a request falls under this rule, as the API server finds out
    /// (`apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go`).
    pub fn covers(&self, group: &str, resource: &str, subresource: &str, operation: Operation) -> bool {
        let named = |given: &str, found: &str| given == "*" || given == found;
        self.operations.contains(&operation)
            && self.groups.iter().any(|g| named(g, group))
            && self.resources.iter().any(|r| match r.split_once('/') {
                Some((r, s)) => named(r, resource) && named(s, subresource),
                None => named(r, resource) && subresource.is_empty(),
            })
    }
}

/// The kinds that the loaded invariants, grants and the effects read. Where [`watches_every`] says so, all others of the
/// cluster are needed too; owners (`serve::store::View::owners`) are added as they are seen.
pub fn watched(policy: &Policy) -> BTreeSet<Kind> {
    let mut reads = Reads::default();
    for invariant in &policy.invariants {
        reads.join(&Footprint::of(invariant).reads);
    }
    let mut kinds = always();
    let stated = policy.adapters.stated_kinds();
    for adapter in policy.each_adapter() {
        let kind = Kind::new(&adapter.spec.group, &adapter.spec.kind);
        // what a shipped one names is of interest only beside custom resources themselves
        if reads.adapted || stated.contains(&kind) {
            kinds.extend(named_by(&adapter.spec));
        }
        kinds.insert(kind);
    }
    kinds.extend(policy.grants.kinds());
    reads.pods |= policy.grants.count_pods() || kinds.contains(&Kind::new("", "Pod")) || may_go_with_pods(&reads);
    kinds.extend(reads.kinds.iter().filter(|kind| &*kind.group != ANY_GROUP).cloned());
    if reads.any {
        kinds.extend(Kind::with(|traits| traits.watched != Watched::WhenNamed));
    }
    close(&mut kinds, reads.pods);
    kinds
}

/// Whether objects of every kind of the cluster are read: built-in or custom, as discovery lists them.
pub fn watches_every(policy: &Policy) -> bool {
    policy.invariants.iter().any(|invariant| {
        let reads = Footprint::of(invariant).reads;
        reads.any || reads.customs || reads.kinds.iter().any(|kind| &*kind.group == ANY_GROUP)
    })
}

/// The requests that can break an invariant, from all sides. Those of a grant's subjects are all covered, by
/// [`grant_rules`].
pub fn rules(policy: &Policy) -> Vec<Rule> {
    if policy.invariants.is_empty() {
        return Vec::new();
    }
    let future = future(policy);
    let mut written = written(policy, &future);
    let every = written.entry("*".to_owned()).or_default();
    if future.reads.any || future.reads.customs {
        every.write.insert("*".to_owned());
    } else {
        // whatever owns something takes it along
        every.delete.insert("*".to_owned());
        every.update.insert("*".to_owned());
    }
    // metadata is written with the status as well (`pkg/registry/*/*/strategy.go`)
    every.update.insert("*/status".to_owned());
    rules_of(written)
}

/// What is written of the kinds that are read, by group.
fn written(policy: &Policy, future: &Future) -> BTreeMap<String, Writes> {
    let Future { kinds, status, .. } = future;
    let mut written: BTreeMap<String, Writes> = BTreeMap::new();
    for kind in kinds {
        let writes = written.entry(kind.group.to_string()).or_default();
        let status = status.contains(kind);
        match kind.builtin_namespaced() {
            Some(_) => builtin_writes(kind, status, writes),
            // the plural of a custom resource is its definition's: take the whole group, which one operator owns
            None => custom_writes(status, writes),
        }
    }
    for adapter in policy.each_adapter() {
        custom_writes(mentions_status(&adapter.spec), written.entry(adapter.spec.group.clone()).or_default());
    }
    written
}

/// All writes, for the subjects of grants.
pub fn grant_rules() -> Vec<Rule> {
    let operations = vec![Operation::Create, Operation::Update, Operation::Delete];
    vec![Rule { groups: vec!["*".to_owned()], resources: vec!["*/*".to_owned()], operations }]
}

/// Which creations and updates that [`rules`] cover matter for what is read. Of all others only those do that change the
/// owners of an object or, by its finalizers, whether and when its dependents go with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Those of all resources, their subresources aside.
    pub every: bool,
    /// Those of all custom resources.
    pub customs: bool,
    /// Those of these, `group/resource` or `group/resource/subresource`.
    pub places: BTreeSet<String>,
    /// Those of the resources of these groups, and of their scales.
    pub groups: BTreeSet<String>,
    /// Those of their statuses.
    pub status_groups: BTreeSet<String>,
}

impl Judged {
    /// For the sake of a policy's invariants.
    pub fn of(policy: &Policy) -> Self {
        let future = future(policy);
        let mut judged = Self { every: future.reads.any, customs: future.reads.customs, ..Self::default() };
        for (group, Writes { write, update, create, .. }) in written(policy, &future) {
            for resource in [write, update, create].into_iter().flatten() {
                match resource.as_str() {
                    "*" | "*/scale" => drop(judged.groups.insert(group.clone())),
                    "*/status" => drop(judged.status_groups.insert(group.clone())),
                    resource => drop(judged.places.insert(format!("{group}/{resource}"))),
                }
            }
        }
        judged
    }
}

/// What is read of the future.
struct Future {
    reads: Reads,
    /// Kinds that are read, by invariants and by effects.
    kinds: BTreeSet<Kind>,
    /// Those whose status is.
    status: BTreeSet<Kind>,
}

fn future(policy: &Policy) -> Future {
    let mut future = Future { reads: Reads::default(), kinds: always(), status: BTreeSet::new() };
    for invariant in &policy.invariants {
        let mut own = Footprint::of(invariant).future;
        own.pods |= may_go_with_pods(&own);
        // without its group a custom kind may be in any
        own.any |= own.kinds.iter().any(|kind| &*kind.group == ANY_GROUP);
        own.kinds.retain(|kind| &*kind.group != ANY_GROUP);
        if own.any {
            // for their subresources
            own.kinds.extend(Kind::with(|traits| traits.watched != Watched::WhenNamed));
        }
        if own.adapted {
            own.kinds.extend(policy.each_adapter().flat_map(|adapter| named_by(&adapter.spec)));
        }
        if own.status {
            future
                .status
                .extend(own.kinds.iter().filter(|kind| kind.traits().is_none_or(|traits| traits.has_status)).cloned());
        }
        close(&mut own.kinds, own.pods);
        future.kinds.extend(own.kinds.iter().cloned());
        future.reads.join(&own);
    }
    if future.kinds.contains(&Kind::new("", "Pod")) {
        future.status.extend(Kind::with(KindTraits::decides_by_status));
    }
    future
}

/// Whether something that is read may have a pod as its owner, and goes with that: whatever lies in a namespace may.
fn may_go_with_pods(reads: &Reads) -> bool {
    let in_namespace = |kind: &Kind| kind.builtin_namespaced() != Some(false);
    reads.any || reads.customs || reads.adapted || reads.kinds.iter().any(in_namespace)
}

/// Adds what the effects on these kinds read.
fn close(kinds: &mut BTreeSet<Kind>, pods: bool) {
    if pods || kinds.contains(&Kind::new("", "Pod")) {
        kinds.extend(Kind::with(KindTraits::decides_about_pods));
        // new pods may wait for volumes that nothing provides
        kinds.extend(builtin(&["StorageClass"]));
    }
    if kinds.contains(&Kind::new("", "PersistentVolume")) {
        // a volume is reclaimed with its claim
        kinds.extend(builtin(&["PersistentVolumeClaim"]));
    }
    if kinds.contains(&Kind::new("", "PersistentVolumeClaim")) {
        // a claim goes as its StatefulSet's retention policy says, and takes its volume along
        kinds.extend(builtin(&["StatefulSet", "PersistentVolume"]));
    }
}

/// The kinds that every decision needs.
pub fn always() -> BTreeSet<Kind> {
    Kind::with(|traits| traits.watched == Watched::Always).collect()
}

fn builtin(names: &[&str]) -> BTreeSet<Kind> {
    names.iter().filter_map(|name| Kind::builtin(name)).collect()
}

/// Resources of one group, by what is done to them.
#[derive(Default)]
struct Writes {
    /// CREATE, UPDATE, DELETE.
    write: BTreeSet<String>,
    /// UPDATE only.
    update: BTreeSet<String>,
    /// CREATE only.
    create: BTreeSet<String>,
    /// DELETE only.
    delete: BTreeSet<String>,
}

fn builtin_writes(kind: &Kind, status: bool, writes: &mut Writes) {
    let resource = plural(&kind.kind);
    let of = |subresource: &str| format!("{resource}/{subresource}");
    writes.write.insert(resource.clone());
    if kind.is("Pod") {
        // an eviction deletes, and calls no delete admission (pkg/registry/core/pod/storage/eviction.go)
        writes.create.extend([of("eviction"), of("binding")]);
        writes.update.extend([of("status"), of("ephemeralcontainers"), of("resize")]);
    } else if kind.is("Namespace") {
        writes.update.insert(of("finalize"));
    } else if kind.has(KindTraits::has_scale) {
        writes.update.insert(of("scale"));
    }
    if status {
        writes.update.insert(of("status"));
    }
}

fn custom_writes(status: bool, writes: &mut Writes) {
    writes.write.insert("*".to_owned());
    writes.update.insert("*/scale".to_owned());
    if status {
        writes.update.insert("*/status".to_owned());
    }
}

/// Rules in a stable order.
fn rules_of(mut written: BTreeMap<String, Writes>) -> Vec<Rule> {
    use Operation::{Create, Delete, Update};
    let mut rules = Vec::new();
    if written.get("*").is_some_and(|every| every.write.contains("*")) {
        // what is covered already is not said again
        written.iter_mut().filter(|(group, _)| *group != "*").for_each(|(_, writes)| writes.write.clear());
    }
    for (group, Writes { write, update, create, delete }) in written {
        for (resources, operations) in [
            (write, vec![Create, Update, Delete]),
            (update, vec![Update]),
            (create, vec![Create]),
            (delete, vec![Delete]),
        ] {
            if !resources.is_empty() {
                let resources = resources.into_iter().collect();
                rules.push(Rule { groups: vec![group.clone()], resources, operations });
            }
        }
    }
    rules
}

/// The built-in kinds that an adapter names, in a field or as a text in an expression.
fn named_by(adapter: &ResourceAdapterSpec) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::new();
    let mut named = |group: Option<&str>, kind: &str| {
        let known = group.map_or_else(|| Kind::builtin(kind), |group| Some(Kind::new(group, kind)));
        match known {
            Some(kind) if is_word(&kind.kind) && !kind.group.contains(['\'', '"', ' ']) => drop(kinds.insert(kind)),
            _ => kinds.extend(quoted(kind).filter_map(Kind::builtin)),
        }
    };
    match &adapter.children {
        Some(Listed::Entries(children)) => children.iter().for_each(|c| named(c.group.as_deref(), &c.kind)),
        Some(Listed::Expression(text)) => named(None, &text.0),
        None => {}
    }
    match &adapter.references {
        Some(Listed::Entries(references)) => references.iter().for_each(|r| named(r.group.as_deref(), &r.kind)),
        Some(Listed::Expression(text)) => named(None, &text.0),
        None => {}
    }
    match &adapter.scale_target {
        Some(ScaleTarget::Parts(target)) => named(target.group.as_deref(), &target.kind),
        Some(ScaleTarget::Expression(text)) => named(None, &text.0),
        None => {}
    }
    kinds
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The texts between quotes in an expression.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\'', '"']).skip(1).step_by(2)
}

fn mentions_status(adapter: &ResourceAdapterSpec) -> bool {
    format!("{adapter:?}").contains("status")
}

#[cfg(test)]
mod tests;
