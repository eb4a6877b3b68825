//! What may become of a cluster: entities, the fates each may meet, and the limits on how many meet them.
//!
//! A [`Future`] set is a concrete cluster (`state`) in which some entities may still meet one of several fates. A
//! *world* is an assignment of one fate to every entity within all limits. `model::interpret` enumerates worlds one
//! entity at a time; crate `encode` counts them class by class.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::node_names::NodeNames;
use crate::object::{Body, Key, Object};
use crate::value::Str;

/// Which moments an invariant speaks about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Every intermediate state of the change and of what it sets going.
    #[default]
    During,
    /// The change and what it takes along, at any of its moments, while no controller of pods does anything yet. What a
    /// batch deletes in a row goes together.
    AtOnce,
    /// States in which every started effect has finished.
    After,
}

/// The faults that an invariant must survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Faults {
    /// How many nodes may fail together, at most.
    pub nodes: u32,
    /// How many zones may fail together, at most.
    pub zones: u32,
    /// How many pods somebody may evict beside the change, at most.
    pub evictions: u32,
}

impl Faults {
    /// The evictions among them.
    pub fn without_outages(self) -> Self {
        Self { evictions: self.evictions, ..Self::default() }
    }

    /// Whether nodes or zones may fail.
    pub fn lose_nodes(self) -> bool {
        self.nodes > 0 || self.zones > 0
    }
}

/// One concrete choice of what failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    /// The nodes that are down.
    pub nodes: BTreeSet<Str>,
    /// The zones whose failure that is, for the report.
    pub zones: BTreeSet<Str>,
}

/// What kind of thing happened to an entity. The order is canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FateKind {
    /// It is as the state shows it.
    Stays,
    /// A pod that was not ready became ready.
    BecomesReady,
    /// A ready pod is not ready any more.
    LosesReadiness,
    /// A pod has run to its end: it is Failed.
    Ends,
    /// It bears a deletionTimestamp and is still there.
    Terminating,
    /// It is gone.
    Gone,
    /// A pod that a controller may make has not been made.
    NotMade,
    /// A new pod exists and is not ready (pending, starting or failing).
    NewUnready,
    /// A new pod exists and is ready.
    NewReady,
}

/// One possible fate: its kind and the object as it then is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// What happened.
    pub kind: FateKind,
    /// The place of a new pod: an index into [`Group::places`].
    pub place: Option<usize>,
    /// What is there in that future.
    pub remains: Remains,
}

/// What there is of an entity in a fate. Equal entities have the same: what tells them apart is not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// Nothing.
    Nothing,
    /// The object as the state shows it.
    Itself,
    /// That object with another body.
    Changed(Arc<Body>),
    /// This new object.
    New(Arc<Object>),
}

impl Remains {
    /// The object in that future, of an entity that is this one so far.
    pub fn of(&self, itself: Option<&Arc<Object>>) -> Option<Arc<Object>> {
        match self {
            Self::Nothing => None,
            Self::Itself => itself.cloned(),
            Self::Changed(body) => itself.map(|o| Arc::new(Object { body: body.clone(), ..(**o).clone() })),
            Self::New(object) => Some(object.clone()),
        }
    }
}

/// Something that may meet one of several fates.
#[derive(Clone, Debug)]
pub struct Entity {
    /// The object as the state shows it; `None` for a pod not made yet.
    pub object: Option<Arc<Object>>,
    /// How many interchangeable ones of it there are: 1 for an object that exists, the number of pods that a
    /// controller may make otherwise.
    pub count: u32,
    /// The sets it belongs to, by which limits count; equals share them.
    pub sets: Rc<Vec<SetId>>,
    /// Its possible fates, at least one, in canonical order; equals share them.
    pub fates: Rc<Vec<Fate>>,
}

impl Entity {
    /// So many pods that may be made.
    pub fn new(count: u32, sets: Vec<SetId>, fates: Vec<Fate>) -> Self {
        Self { object: None, count, sets: Rc::new(sets), fates: Rc::new(fates) }
    }

    /// What names it; `None` for a pod not made yet.
    pub fn key(&self) -> Option<&Key> {
        self.object.as_ref().map(|object| &object.key)
    }

    /// The object as it is in one of its fates; `None` when it does not exist there.
    pub fn object_in(&self, fate: &Fate) -> Option<Arc<Object>> {
        fate.remains.of(self.object.as_ref())
    }
}

/// A set of entities within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetId(pub u32);

/// Nodes that are alike to every new pod of a group: where a new pod may be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The nodes; more than one only when telling them apart makes no difference.
    pub nodes: NodeNames,
    /// Whether they are down in this outage.
    pub down: bool,
}

/// What a linear term counts: entities of a set that met one of these fates, at any place or at one of the named ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// Which entities.
    pub set: SetId,
    /// Which fates.
    pub fates: Vec<FateKind>,
    /// Only these places; `None` for all.
    pub places: Option<Vec<usize>>,
}

/// A linear inequality: the sum of coefficient × count is at most `at_most`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Linear {
    /// Coefficients and what they count.
    pub terms: Vec<(i64, Count)>,
    /// The bound.
    pub at_most: i64,
}

/// A limit on the worlds of a group: at least one of the inequalities holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Why.
    pub label: LimitLabel,
    /// The alternatives.
    pub any_of: Vec<Linear>,
}

/// The reason of a limit, with its figures: the assumption that a proof relies on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitLabel {
    /// A rolling update keeps this many pods available.
    RolloutKeeps {
        /// The workload.
        workload: Key,
        /// Pods kept ready.
        floor: i64,
        /// Its effective maxUnavailable.
        max_unavailable: i64,
    },
    /// A scale-down removes only what is in excess.
    ScaleDownRemoves {
        /// The workload.
        workload: Key,
        /// How many pods.
        pods: i64,
    },
    /// A workload whose number is not told has no more pods than the highest at any time.
    ScalesUpTo {
        /// The workload.
        workload: Key,
        /// How many pods.
        pods: i64,
    },
    /// A scale-down removes lower-ranked pods first (not assigned, pending, not ready, cheaper).
    VictimOrder {
        /// The workload.
        workload: Key,
    },
    /// A StatefulSet replaces one pod at a time, from the highest ordinal down.
    OneAtATime {
        /// The workload.
        workload: Key,
        /// How many may be unavailable at once.
        max_unavailable: i64,
    },
    /// An OrderedReady StatefulSet touches no pod while another one is not ready.
    OrderedReady {
        /// The workload.
        workload: Key,
    },
    /// Once settled, the workload has the pods it wants.
    Settled {
        /// The workload.
        workload: Key,
        /// How many it wants.
        wanted: i64,
    },
    /// Required anti-affinity keeps these pods apart.
    AntiAffinity {
        /// The workload.
        workload: Key,
        /// The topology key.
        topology: Str,
    },
    /// Ports of a node that one pod has at a time keep these pods apart.
    HostPorts {
        /// The workload.
        workload: Key,
    },
    /// A spread constraint that may not be ignored.
    Spread {
        /// The workload.
        workload: Key,
        /// The topology key.
        topology: Str,
        /// The largest allowed difference.
        max_skew: i64,
    },
    /// A node takes no more than its allocatable resources.
    Capacity {
        /// One of the nodes.
        node: Str,
    },
    /// No node admits new pods of a workload; one that comes later is not looked at.
    NoNodeAdmits {
        /// The workload.
        workload: Key,
    },
    /// No node takes more new pods of a workload.
    NodesTake {
        /// The workload.
        workload: Key,
        /// How many, were it empty.
        pods: i64,
    },
    /// A controller that is not modelled makes its pods anew.
    Remade {
        /// The controller.
        workload: Key,
    },
    /// A pod stays pending only when no node admits it.
    PendingOnlyIfStuck {
        /// The workload.
        workload: Key,
    },
}

impl fmt::Display for LimitLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RolloutKeeps { workload, floor, max_unavailable } => {
                let kept = pods(*floor, "");
                write!(f, "the rollout of {workload} keeps {kept} ready (maxUnavailable {max_unavailable})")
            }
            Self::ScaleDownRemoves { workload, pods: removed } => {
                write!(f, "scaling {workload} down removes at most {}", pods(*removed, ""))
            }
            Self::ScalesUpTo { workload, pods: most } => {
                write!(f, "{workload} is scaled to no more than {}", pods(*most, ""))
            }
            Self::VictimOrder { workload } => {
                write!(
                    f,
                    "the controller of {workload} removes pods that are not ready, or crowd a node, before others"
                )
            }
            Self::OneAtATime { workload, max_unavailable } => {
                let replaced = pods(*max_unavailable, "");
                write!(f, "{workload} replaces at most {replaced} at a time and waits for readiness")
            }
            Self::OrderedReady { workload } => {
                write!(f, "{workload} is OrderedReady: it removes no pod while another one is not ready")
            }
            Self::Settled { workload, wanted } => write!(f, "{workload} settles at the {} it wants", pods(*wanted, "")),
            Self::AntiAffinity { workload, topology } => {
                write!(f, "required anti-affinity keeps new pods of {workload} apart by {topology}")
            }
            Self::HostPorts { workload } => {
                write!(f, "new pods of {workload} take ports of their node that one pod has at a time")
            }
            Self::Spread { workload, topology, max_skew } => {
                write!(f, "new pods of {workload} are spread over {topology} with maxSkew {max_skew}")
            }
            Self::Capacity { node } => write!(f, "node {node} takes no more than it can allocate"),
            Self::NoNodeAdmits { workload } => write!(f, "no node admits new pods of {workload}"),
            Self::NodesTake { workload, pods: taken } => {
                write!(f, "no node takes more than {} of {workload}", pods(*taken, "new "))
            }
            Self::Remade { workload } => {
                write!(f, "{workload}, whose kind is not modelled, makes pods of its own anew when they are gone")
            }
            Self::PendingOnlyIfStuck { workload } => {
                write!(f, "a pod of {workload} stays pending only when no node admits it")
            }
        }
    }
}

fn pods(number: i64, which: &str) -> String {
    format!("{number} {which}{}", if number == 1 { "pod" } else { "pods" })
}

/// Entities whose limits are about one another: usually the pods of one workload.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The workload, or the object itself where nothing controls it.
    pub name: Option<Key>,
    /// The entities.
    pub entities: Vec<Entity>,
    /// The limits, all of which hold.
    pub limits: Vec<Limit>,
    /// Where its new pods may be placed.
    pub places: Vec<Place>,
    /// Whether pods of other workloads are relied on to keep what they take of the nodes.
    pub quiescent: bool,
    /// Whether what is requested has to do with the workload, so that nodes are relied on to be as they are.
    pub caused_by_request: bool,
}

/// One thing that happened on the way into a future, for the report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// What happened.
    pub effect: String,
    /// To which objects.
    pub objects: Vec<Key>,
}

/// The fate that each entity of a world met: group and entity (and which of `count`) to the index of its fate.
pub type Assignment = BTreeMap<(Key, usize, u32), usize>;
