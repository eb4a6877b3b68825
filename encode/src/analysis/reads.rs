//! What an invariant reads, by kind, whatever the cluster: what must be watched to decide it, and which writes can
//! break it from any side. Both are over-approximated: a kind too many costs a request, one too few a wrong proof.
//!
//! | reads | stands for |
//! |---|---|
//! | `kinds` | objects of these kinds; a kind that is not built in and names no group has the group `*` |
//! | `pods` | what becomes of pods: they, what makes them, and where they run |
//! | `adapted` | custom resources that have an adapter |
//! | `any` | objects of any kind |
//! | `customs` | objects of any custom resource |
//! | `status` | a field `status` |

use std::collections::BTreeSet;

use suture_model::kinds::{Kind, KindTraits, RbacKind};
use suture_model::value::Str;
use suture_specs::compile::{CompiledInvariant, Kinds};
use suture_specs::functions::Func;

use super::uses::Uses;
use crate::relations::{Inverse, Read, WORKLOAD, relations};

/// The group of kinds whose group is not known.
pub const ANY_GROUP: &str = "*";

/// What is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Objects of these kinds.
    pub kinds: BTreeSet<Kind>,
    /// What becomes of pods.
    pub pods: bool,
    /// Custom resources that have an adapter.
    pub adapted: bool,
    /// Objects of any kind.
    pub any: bool,
    /// Objects of any custom resource.
    pub customs: bool,
    /// Fields of a status.
    pub status: bool,
    /// Owners of any kind, beside instances ([`Self::beside_instance`]).
    pub(crate) owners: bool,
    /// The kinds of the instances.
    instances: BTreeSet<Kind>,
}

/// What expressions add to what their functions read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notes {
    /// A field `status` is read.
    pub status: bool,
    /// A kind is computed: it may be any.
    pub computed_kind: bool,
}

impl Reads {
    /// What a function reads beside the object that it is about and the kinds that its arguments name.
    pub fn of_function(func: Func) -> Self {
        let mut reads = Self::default();
        reads.function(func);
        reads
    }

    /// All that the invariant reads, in any state.
    pub(super) fn of(compiled: &CompiledInvariant, notes: Notes) -> Self {
        let mut reads = Self::of_instances(compiled);
        reads.kinds.extend(compiled.kinds.iter().cloned().map(grouped));
        for func in &compiled.functions {
            reads.function(*func);
        }
        reads.note(compiled, notes);
        reads
    }

    /// What it reads of the future, which is what a request can change.
    pub(super) fn of_future(compiled: &CompiledInvariant, notes: Notes, uses: &Uses, all: &Self) -> Self {
        let mut reads = Self::of_instances(compiled);
        reads.future(compiled, notes, uses, all);
        reads
    }

    /// What it reads of the future beside the instance itself.
    pub(super) fn beside_instance(compiled: &CompiledInvariant, notes: Notes, uses: &Uses, all: &Self) -> Self {
        let mut reads = Self { instances: Self::of_instances(compiled).instances, ..Self::default() };
        reads.future(compiled, notes, uses, all);
        reads.owners = compiled.functions.iter().any(|func| relations(*func).inverse == Inverse::Dependents);
        reads
    }

    fn future(&mut self, compiled: &CompiledInvariant, notes: Notes, uses: &Uses, all: &Self) {
        for func in &uses.funcs {
            self.function(*func);
        }
        self.kinds.extend(uses.lists.iter().cloned().map(grouped));
        let workloads = !(uses.selected.is_empty() && uses.counted.is_empty());
        let workloads = workloads.then(|| Str::from(WORKLOAD));
        for name in uses.named.iter().chain(uses.within.iter().map(|(kind, _)| kind)).chain(&workloads) {
            self.kind(name);
        }
        if uses.volume_nodes {
            self.kind("Node");
        }
        if uses.everything {
            // from an unknown place: all that the invariant reads anywhere, in the future too
            self.join(all);
        }
        self.note(compiled, notes);
    }

    /// Adds what another invariant reads.
    pub fn join(&mut self, other: &Self) {
        let Self { kinds, pods, adapted, any, customs, status, owners, instances } = other;
        self.owners |= owners;
        self.instances.extend(instances.iter().cloned());
        self.kinds.extend(kinds.iter().cloned());
        self.pods |= pods;
        self.adapted |= adapted;
        self.any |= any;
        self.customs |= customs;
        self.status |= status;
    }

    fn of_instances(compiled: &CompiledInvariant) -> Self {
        let mut reads = Self::default();
        for kinds in &compiled.for_each.kinds {
            match kinds {
                Kinds::Every => reads.any = true,
                Kinds::Workload => {
                    reads.playing(KindTraits::is_workload);
                    reads.adapted = true;
                }
                Kinds::Adapted => reads.adapted = true,
                Kinds::Kind(kind) => {
                    reads.kinds.insert(kind.resolve().unwrap_or_else(|| Kind::new(ANY_GROUP, &kind.kind)));
                }
            }
        }
        reads.instances = reads.kinds.clone();
        reads
    }

    fn has_instance(&self, kind: &str) -> bool {
        self.instances.iter().any(|instance| instance.is(kind))
    }

    /// Whether instances grant rights in this way.
    fn has_rbac(&self, kind: RbacKind) -> bool {
        self.instances.iter().any(|instance| instance.has(|traits| traits.rbac() == Some(kind)))
    }

    /// What the fields and faults of an invariant add.
    fn note(&mut self, compiled: &CompiledInvariant, notes: Notes) {
        self.status |= notes.status;
        self.any |= notes.computed_kind;
        let pod = Kind::new("", "Pod");
        self.pods |= self.kinds.contains(&pod) || compiled.faults.lose_nodes();
        if compiled.faults.evictions > 0 {
            self.pods = true;
            self.kind("PodDisruptionBudget");
            self.function(Func::DisruptionsWhenSettled);
        }
    }

    fn kind(&mut self, name: &str) {
        if name == WORKLOAD {
            self.playing(|traits| traits.runs_pods() || traits.scales());
            // a DaemonSet wants as many pods as there are nodes for it
            self.kind("Node");
            self.adapted = true;
            return;
        }
        self.kinds.insert(Kind::builtin(name).unwrap_or_else(|| Kind::new(ANY_GROUP, name)));
    }

    fn named(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.kind(name));
    }

    fn playing(&mut self, role: impl Fn(&KindTraits) -> bool) {
        self.kinds.extend(Kind::with(role));
    }

    fn function(&mut self, func: Func) {
        for read in relations(func).reads {
            match read {
                Read::Pods => self.pods = true,
                Read::Adapted => self.adapted = true,
                Read::Customs => self.customs = true,
                Read::Playing(is_played) => self.playing(is_played),
                Read::Kinds(names) => self.named(names),
                Read::Referring => self.referring(),
                Read::Referred => self.referred(),
            }
        }
    }

    /// What may refer to an instance.
    fn referring(&mut self) {
        let claims = Kind::new("", "PersistentVolumeClaim");
        if !self.any && self.instances.iter().all(|kind| *kind == claims) && !self.instances.is_empty() {
            self.playing(KindTraits::runs_pods);
        } else {
            self.playing(|traits| traits.refers);
        }
        if self.has_instance("ServiceAccount") || self.has_rbac(RbacKind::Role) {
            self.playing(|traits| traits.rbac() == Some(RbacKind::Binding));
        }
    }

    /// What an instance may refer to.
    fn referred(&mut self) {
        self.playing(|traits| traits.referred);
        if self.instances.iter().any(|instance| instance.has(KindTraits::scales)) {
            self.playing(KindTraits::has_scale);
        }
        if self.has_rbac(RbacKind::Binding) {
            self.playing(|traits| traits.rbac() == Some(RbacKind::Role));
        }
    }
}

/// A kind that `compile` left without a group, because it is not built in, is of any group.
fn grouped(kind: Kind) -> Kind {
    if kind.group.is_empty() && kind.builtin_namespaced().is_none() { Kind::new(ANY_GROUP, &kind.kind) } else { kind }
}
