//! Which workloads lack pods: found out once for a snapshot, and from then on again for those only that an event has to do
//! with. What "lack" means is said by who asks ([`crate::placement`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::pools::shape;
use crate::adapter::Adapters;
use crate::fields::has_deadline;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::references::named;
use crate::value::Str;

/// With more marks all workloads are looked at again.
const MARKS_MAX: usize = 4_096;
/// Of so many versions that are not known, those of the older half are put together: decisions are done by then.
const VERSIONS_MAX: usize = 64;

/// Which workloads may lack pods since something changed that did not before, or no more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// This one.
    Itself(Key),
    /// The object of this uid, and all above it.
    Above(Str),
    /// All below the object of this uid.
    Below(Str),
    /// Whatever has pods on this node.
    On(Str),
    /// All in this namespace.
    In(Str),
    /// All.
    All,
}

/// Since when a workload lacks pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// It wants more than it has.
    Now,
    /// What scales it may make it want more.
    Later,
}

/// The workloads that lack pods.
pub type Lacks = BTreeMap<Key, Lack>;

/// The marks that an object makes by becoming another one, by coming or by going; `owns` says whether something names a uid as its
/// owner. Without marks which workloads lack pods stays as it is.
pub fn marks(
    old: Option<&Object>,
    new: Option<&Object>,
    adapters: &dyn Adapters,
    owns: impl Fn(&str) -> bool,
) -> Vec<Mark> {
    let Some(object) = new.or(old) else { return Vec::new() };
    let versions = || [old, new].into_iter().flatten();
    let (kind, name) = (&object.key.kind, &object.key.name);
    let live = |object: Option<&Object>| object.map(Object::live);
    if kind.is("Pod") {
        return if places_alike(old, new) { Vec::new() } else { versions().flat_map(above).collect() };
    }
    if kind.is("Node") {
        let same = old.zip(new).is_some_and(|(old, new)| shape(old) == shape(new));
        return if same { Vec::new() } else { vec![Mark::On(name.clone())] };
    }
    if kind.is("Namespace") {
        return if live(old) == live(new) { Vec::new() } else { vec![Mark::In(name.clone())] };
    }
    if kind.is("CustomResourceDefinition") {
        return vec![Mark::All];
    }
    if old.zip(new).is_some_and(|(old, new)| wants_alike(old, new)) {
        return Vec::new();
    }
    let mut found: Vec<Mark> = itself(object.key.clone()).into_iter().collect();
    for version in versions() {
        found.extend(above(version));
        found.extend(owns(&version.uid).then(|| Mark::Below(version.uid.clone())));
        // what scales a workload names it
        found.extend(named(version, adapters.facts(version).as_deref()).into_iter().filter_map(itself));
    }
    if adapters.kinds().contains(kind) {
        let listed = versions().filter_map(|version| adapters.facts(version)?.children.clone());
        found.extend(listed.flatten().filter_map(itself));
        // what goes takes along what its adapter selects
        if live(old) != live(new) {
            found.push(if object.key.ns.is_empty() { Mark::All } else { Mark::In(object.key.ns.clone()) });
        }
    }
    found
}

/// The mark on an object; none where no workload is meant by it, or by what it names as an owner.
fn itself(key: Key) -> Option<Mark> {
    let is_meant = kinds().contains(&key.kind) || key.kind.is("Pod") || key.is_partial();
    is_meant.then_some(Mark::Itself(key))
}

fn above(object: &Object) -> impl Iterator<Item = Mark> {
    object.owners().iter().map(|owner| Mark::Above(owner.uid.clone()))
}

/// Whether two versions of a workload want the same pods: no more than the status differs, of a kind of which that says how many
/// pods there are, and nothing of how many it wants.
fn wants_alike(old: &Object, new: &Object) -> bool {
    let counts = ["Deployment", "ReplicaSet"].iter().any(|kind| new.key.kind.is(kind));
    let said = |object: &Object| (object.uid.clone(), object.in_deletion_closure, object.unobserved());
    counts
        && said(old) == said(new)
        && ["metadata", "spec"].iter().all(|part| old.val().get(part) == new.val().get(part))
}

/// Whether two versions of a pod are placed alike, for as long, and ask for the same.
fn places_alike(old: Option<&Object>, new: Option<&Object>) -> bool {
    let Some((old, new)) = old.zip(new) else { return false };
    let said = |pod: &Object| (pod.node.clone(), pod.live(), pod.finished(), has_deadline(pod));
    said(old) == said(new)
        && old.uid == new.uid
        && old.owners() == new.owners()
        && old.labels() == new.labels()
        && old.val().get("spec") == new.val().get("spec")
}

/// What is known of them. Copies of a snapshot share what is found of the versions that they have in common, whichever of
/// them is asked.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The last version that is known, if one is, and those after it that somebody may ask yet; in their order.
    earlier: Vec<Version>,
    present: Version,
}

/// One version of a snapshot.
#[derive(Clone, Debug)]
struct Version {
    /// What has changed since the one before.
    marks: Arc<BTreeSet<Mark>>,
    /// Those that lack some, once somebody has asked.
    lacking: Arc<OnceLock<Arc<Lacks>>>,
}

impl Version {
    fn new(marks: impl IntoIterator<Item = Mark>) -> Self {
        Self { marks: Arc::new(marks.into_iter().collect()), lacking: Arc::default() }
    }

    fn is_known(&self) -> bool {
        self.lacking.get().is_some()
    }

    /// Whether a copy of the snapshot may be asked for it.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.lacking) > 1
    }

    fn mark(&mut self, marks: impl IntoIterator<Item = Mark>) {
        let all = Arc::make_mut(&mut self.marks);
        all.extend(marks);
        if all.len() > MARKS_MAX {
            *all = BTreeSet::from([Mark::All]);
        }
    }
}

impl Default for Known {
    fn default() -> Self {
        Self { earlier: Vec::new(), present: Version::new([Mark::All]) }
    }
}

impl Known {
    /// Whether all workloads are looked at when somebody asks, whatever changes before.
    fn is_open(&self) -> bool {
        !self.present.is_known() && !self.present.is_shared() && self.present.marks.contains(&Mark::All)
    }

    /// Notes what an event changes.
    pub fn mark(&mut self, marks: Vec<Mark>) {
        if marks.is_empty() || self.is_open() {
            return;
        }
        if self.present.is_known() || self.present.is_shared() {
            self.earlier.push(std::mem::replace(&mut self.present, Version::new([])));
            self.forget();
        }
        self.present.mark(marks);
    }

    /// Forgets the versions before the last one that is known and, of many after it, what the older half could be asked for.
    fn forget(&mut self) {
        let known = self.earlier.iter().rposition(Version::is_known);
        self.earlier.drain(..known.unwrap_or(0));
        if self.earlier.len() > VERSIONS_MAX {
            let oldest = usize::from(known.is_some());
            let half: Vec<Version> = self.earlier.drain(oldest..VERSIONS_MAX / 2).collect();
            // where none is known all are looked at, whatever has changed
            if known.is_some()
                && let Some(next) = self.earlier.get_mut(oldest)
            {
                next.mark(half.iter().flat_map(|version| version.marks.iter().cloned()));
            }
        }
    }

    /// Those that lack some, as `find` says by those that did and what has changed since.
    pub fn get(&self, find: impl FnOnce(Option<&Lacks>, &BTreeSet<Mark>) -> Lacks) -> &Arc<Lacks> {
        self.present.lacking.get_or_init(|| {
            let mut marks = BTreeSet::clone(&self.present.marks);
            for version in self.earlier.iter().rev() {
                if let Some(lacking) = version.lacking.get() {
                    return Arc::new(find(Some(lacking), &marks));
                }
                marks.extend(version.marks.iter().cloned());
            }
            Arc::new(find(None, &marks))
        })
    }
}

/// The kinds of the workloads that are meant.
pub fn kinds() -> &'static [Kind] {
    Kind::deciding()
}
