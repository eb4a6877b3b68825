//! What each function of the language means to this crate, one row per function. The match has no other arm: a new
//! function does not compile until its row says all of it.
//!
//! | column | asked by |
//! |---|---|
//! | reads | what must be watched, and which writes can break an invariant (`analysis/reads.rs`) |
//! | source | where the objects come from that an expression speaks about (`analysis/footprint.rs`) |
//! | inverse | which instances a change reaches (`impact`) |
//! | lift | the function over fates (`navigate.rs`) |
//! | tells | whether interchangeable objects can be taken together (`eval.rs`, `analysis/footprint.rs`) |
//! | detail | how much of the instance is read (`analysis`) |
//! | annotations | which annotations a verdict may depend on (`analysis/annotations.rs`) |
//! | alone | what an instance decides by itself (`analysis/by_itself.rs`) |

use suture_model::kinds::KindTraits;
use suture_model::navigate;
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::functions::Func;

/// Stands for every kind that makes pods, or says how many: as in `forEach`, with autoscalers and all custom resources that
/// have an adapter.
pub const WORKLOAD: &str = "Workload";

/// The row of a function.
#[derive(Clone, Copy, Debug)]
pub struct Relations {
    /// What it reads of the cluster beside the object that it is about and the kinds that its arguments name.
    pub reads: &'static [Read],
    /// Where the objects that it gives come from.
    pub source: Source,
    /// How a change reaches the instances that use it.
    pub inverse: Inverse,
    /// What it is over fates.
    pub lift: Lift,
    /// What it tells apart.
    pub tells: Tells,
    /// How much it reads of the object that it is about.
    pub detail: Detail,
    /// Which annotations it reads of its arguments.
    pub annotations: AnnotationUse,
    /// What it reads of the object that it is about, beside its other arguments.
    pub alone: Alone,
}

impl Relations {
    /// The same row of a function that reads no more of the object that it is about.
    const fn alone(self, alone: Alone) -> Self {
        Self { alone, ..self }
    }

    /// The same row of a function that a change reaches otherwise.
    const fn inverse(self, inverse: Inverse) -> Self {
        Self { inverse, ..self }
    }

    /// Whether it says that the object that it is about restricts its nodes.
    pub fn restricts_nodes(&self) -> bool {
        self.detail == Detail::Nodes && self.lift == Lift::Values
    }
}

/// Something that a function reads.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// What becomes of pods: they, what makes them, and where they run.
    Pods,
    /// Custom resources that have an adapter.
    Adapted,
    /// Objects of any custom resource.
    Customs,
    /// Objects of the built-in kinds of which this is true.
    Playing(IsPlayed),
    /// Objects of these built-in kinds.
    Kinds(&'static [&'static str]),
    /// Whatever may refer to the instance.
    Referring,
    /// Whatever the instance may refer to.
    Referred,
}

/// Whether a built-in kind plays a role.
pub type IsPlayed = fn(&KindTraits) -> bool;

/// Where the objects that a function gives come from, and what of a state it asks for.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// From its arguments; it asks for no state.
    Arguments,
    /// The object that it is about, as the state has it.
    Itself,
    /// No object: whether the state has the one that it is about.
    Presence,
    /// What the state relates to the object that it is about.
    Object,
    /// What the state relates to what this function gives for an object.
    After(Func),
    /// The list of the kind that its last argument names; the one before names the group, if there is one.
    OfKind,
    /// The objects of this kind in the namespace that its second argument names.
    InNamespace(KindArgument),
    /// No object: what objects of these kinds say about the one that it is about, in its namespace, or in none if they are
    /// in none.
    Beside(Beside),
    /// No object: whether the state has one of the kind that its second argument names.
    Lookup,
    /// A node, of a pod.
    Node,
}

/// Which kinds say something about an object beside them.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    /// This one, or [`WORKLOAD`].
    Kind(&'static str),
    /// The built-in kinds of which this is true.
    Playing(IsPlayed),
}

/// How a function names a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindArgument {
    /// It is always this one.
    Is(&'static str),
    /// By the argument in this place.
    At(usize),
}

/// How a change reaches the instances of which a function is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inverse {
    /// As a changed object, or one that goes with it.
    Itself,
    /// As what selects a touched pod, or a template that may make one.
    Selecting,
    /// The same, and as budgets of namespaces in which a definition changes what has a scale.
    Budgets,
    /// As what a changed selector means: a pod, or what makes such pods.
    Selected,
    /// As a custom resource whose operator may delete a touched object or pod with it.
    Deleting,
    /// As a controller above a touched pod.
    Controllers,
    /// As what refers to a touched object, or writes what one writes.
    Referrers,
    /// As what a touched object refers to.
    Referred,
    /// As what a touched object writes.
    Written,
    /// As dependent of a touched object.
    Dependents,
    /// As what a touched workload, custom resource or autoscaler may be counted for: owners, dependents, what is scaled.
    Wanting,
    /// As what claims a host that a changed object claims.
    Hosts,
    /// As the definition of the kind of a touched object.
    Definitions,
    /// As claim or volume of a touched volume or claim.
    Volumes,
    /// As what a changed node may have admitted, or admits now.
    Nodes,
    /// By the accounts that a changed role or binding means.
    Rights,
    /// As what may be placed elsewhere than before: by what nodes, volumes and classes say, and by touched pods where a pod
    /// affinity follows them.
    Placement,
    /// As what may find no place any more: by nodes that change, by pods that come to nodes or go, by volumes and classes.
    Room,
    /// As what the new pods of a touched workload may preempt.
    Preemption,
    /// By the lists of the state that have a touched object: all instances, or those of its namespace.
    Lists,
    /// By any change: all instances.
    Everything,
    /// By no change: what it says can excuse a change, and breaks nothing by itself.
    Nothing,
}

impl Inverse {
    /// Whether it is found over pods that a change touches.
    pub fn is_over_pods(self) -> bool {
        match self {
            Self::Itself
            | Self::Selecting
            | Self::Budgets
            | Self::Deleting
            | Self::Controllers
            | Self::Referrers
            | Self::Referred
            | Self::Written
            | Self::Dependents
            | Self::Placement
            | Self::Room
            | Self::Preemption
            | Self::Lists
            | Self::Everything => true,
            Self::Selected
            | Self::Wanting
            | Self::Hosts
            | Self::Definitions
            | Self::Rights
            | Self::Volumes
            | Self::Nodes
            | Self::Nothing => false,
        }
    }
}

/// What a function is over fates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lift {
    /// It asks for no state: a linear term, or by every value that its arguments can take.
    Values,
    /// The object in each of its fates.
    Itself,
    /// When the object is in a fate.
    Exists,
    /// When the object lives in a fate, and is no other of its name.
    Lives,
    /// The pods that the object selects.
    Selected(Held),
    /// The pods that a selector matches in a namespace.
    Matching,
    /// The pods below the object, by what is in between.
    Below,
    /// The list of the scenario, each object in the fates in which it is held to be in it.
    Listed(Held),
    /// The objects of a kind.
    OfKind,
    /// The objects of a kind in a namespace.
    InNamespace,
    /// What needs the object, pods by what they name in each fate.
    Referrers,
    /// When the target of a reference lives.
    Target,
    /// When an object of a name exists.
    Lookup,
    /// The owner references whose owner is gone.
    Dangling,
    /// The claims of a route, by what decides its class.
    Claims,
    /// Who claims a host, by what decides classes, each in the fates in which it lives.
    Claimants,
    /// By every way in which the pods and workloads that a budget counts may be there.
    Budget,
    /// The topmost workloads of a namespace; pods by what makes them in each fate.
    Workloads,
    /// By every way in which the workloads whose pods a selector matches may be there.
    Counted,
    /// By every way in which what decides how many pods the object wants may be there.
    Deciding,
    /// By every way in which what decides about pods as they are admitted may be there.
    Admission,
    /// The nodes that are possible places, by every way in which claims, volumes and classes may be there.
    Places,
    /// By every way in which the EndpointSlices of the object may be there.
    Slices,
    /// By every way in which roles and bindings may be there.
    Rights,
    /// By every way in which the objects that confirm it may be there.
    Meant,
    /// The lowest of those of the pods that are there.
    Priority,
    /// As in the scenario: specs have no fates.
    Scenario,
    /// Not supported.
    Refused,
}

/// In which of its fates an object stays in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// In those in which it is there.
    There,
    /// In those in which it lives.
    Live,
    /// In those in which it is a ready endpoint.
    Ready,
    /// In those in which it is the owner and not another of its name.
    Owner,
    /// In those in which it lives and, if it is a pod, is the owner: an adapter is for no pod.
    Wanting,
}

impl Held {
    /// Whether an object is held in the list of another one.
    pub fn holds(self, found: &Object, of: &Object) -> bool {
        // a pod that takes the place and name of an owner is not the owner
        let owns = || of.owners().iter().any(|named| named.uid == found.uid);
        match self {
            Self::There => true,
            Self::Live => found.live(),
            Self::Ready => found.ready(),
            Self::Owner => owns(),
            Self::Wanting => found.live() && (!found.key.kind.is("Pod") || owns()),
        }
    }
}

/// What a function of an object tells apart, among objects that are otherwise alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Nothing: it reads no name, uid, time or node.
    Nothing,
    /// Nothing, unless they refer to others by their own names.
    OwnNames,
    /// Nothing where a swap of both turns the states into each other too: it looks the object, or what names it, up in a state.
    NothingSwapped,
    /// Their nodes.
    Nodes,
    /// Anything.
    Identity,
}

/// How much a function reads of the object that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing: how many there are.
    Count,
    /// Whether it is there.
    Presence,
    /// Whom it names.
    Names,
    /// The same, and the owners that it gives may be read where the instance may not.
    Owners,
    /// Which nodes its constraint admits.
    Nodes,
    /// What stays the same of an owner as long as the owner stays.
    Marks,
    /// Anything.
    All,
}

/// Which annotations a function reads of the objects in its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationUse {
    /// None, or those that effects read aside.
    None,
    /// The one that the argument in this place names.
    Key(usize),
    /// All: it compares, prints or looks into whole objects.
    All,
}

/// What a function reads of the object that it is about, if that decides what it says.
#[derive(Clone, Copy, Debug)]
pub enum Alone {
    /// Other objects decide as well, or its status.
    No,
    /// Its labels, annotations, owner references and `spec`.
    Body,
    /// Its `spec`, and whether it is done: then it stays so.
    Spec,
    /// A text of it, by the name in the next argument.
    Text(TextOf),
    /// Its owner references.
    Owners,
    /// Whether a state has it.
    Exists,
    /// Whether a state has it, and it is not being deleted.
    Lives,
    /// Its label and its kind, and its controller's: whether its pods vote.
    Votes,
}

/// A text of an object by its name.
pub type TextOf = fn(&State, &Object, &str) -> Option<Str>;

/// A function of values: an object among them is one value as a whole.
const fn values(detail: Detail, annotations: AnnotationUse) -> Relations {
    part(&[], Tells::Identity, detail, annotations)
}

/// A function of a part of an object that asks for no state.
const fn part(reads: &'static [Read], tells: Tells, detail: Detail, annotations: AnnotationUse) -> Relations {
    let (source, inverse, lift) = (Source::Arguments, Inverse::Itself, Lift::Values);
    Relations { reads, source, inverse, lift, tells, detail, annotations, alone: Alone::No }
}

/// A function of a state.
const fn state(reads: &'static [Read], source: Source, inverse: Inverse, lift: Lift) -> Relations {
    let (tells, detail, annotations) = (Tells::Identity, Detail::All, AnnotationUse::None);
    Relations { reads, source, inverse, lift, tells, detail, annotations, alone: Alone::No }
}

/// A function of an object, or a reference, in a state that a swap of two objects leaves as it is.
const fn swapped(reads: &'static [Read], source: Source, inverse: Inverse, lift: Lift, detail: Detail) -> Relations {
    let (tells, annotations) = (Tells::NothingSwapped, AnnotationUse::None);
    Relations { reads, source, inverse, lift, tells, detail, annotations, alone: Alone::No }
}

/// Whether a state has an object.
const fn presence(lift: Lift) -> Relations {
    swapped(&[], Source::Presence, Inverse::Itself, lift, Detail::Presence)
}

/// What a state relates to an object.
const fn related(reads: &'static [Read], inverse: Inverse, lift: Lift, tells: Tells, detail: Detail) -> Relations {
    let (source, annotations) = (Source::Object, AnnotationUse::None);
    Relations { reads, source, inverse, lift, tells, detail, annotations, alone: Alone::No }
}

/// The same, where it tells objects apart and may read all of them.
const fn object(reads: &'static [Read], inverse: Inverse, lift: Lift) -> Relations {
    related(reads, inverse, lift, Tells::Identity, Detail::All)
}

/// A function of the objects of a kind in a namespace.
const fn within(reads: &'static [Read], kind: &'static str, lift: Lift) -> Relations {
    state(reads, Source::InNamespace(KindArgument::Is(kind)), Inverse::Lists, lift)
}

/// What objects of these kinds beside an object say about it.
const fn beside(reads: &'static [Read], kinds: Beside, lift: Lift) -> Relations {
    let source = Source::Beside(kinds);
    Relations { source, ..object(reads, Inverse::Lists, lift) }
}

/// A function of a reference in a state.
const fn of_reference(reads: &'static [Read], lift: Lift, detail: Detail) -> Relations {
    swapped(reads, Source::After(Func::References), Inverse::Referrers, lift, detail)
}

/// A function that hands an object on as it is.
const HANDED_ON: Relations = values(Detail::All, AnnotationUse::None);
const ADAPTED: &[Read] = &[Read::Adapted];
const GROUPS: &[Read] = &[Read::Adapted, Read::Playing(KindTraits::decides)];
const PODS: &[Read] = &[Read::Pods];
const NODES: &[Read] = &[Read::Kinds(&["Node"])];
const HOSTS: &[Read] = &[Read::Playing(KindTraits::claims_hosts), Read::Kinds(&["GatewayClass"])];
const VOLUMES: &[Read] = &[Read::Kinds(&["PersistentVolume", "PersistentVolumeClaim"])];
/// Namespaces and definitions may be confirmed for what is in them.
const CONFIRMING: &[Read] = &[Read::Pods, Read::Adapted, Read::Kinds(&["Namespace", "CustomResourceDefinition"])];
const INSTANCES: &[Read] = &[Read::Kinds(&["CustomResourceDefinition"]), Read::Customs];
const LISTED_ENDPOINTS: &[Read] = &[Read::Kinds(&["EndpointSlice"])];
/// A DaemonSet wants as many pods as there are nodes for it.
const WANTED: &[Read] = &[Read::Kinds(&["Node"]), Read::Adapted];
/// What makes pods, and what says how many.
const WORKLOADS: &[Read] = &[
    Read::Pods,
    Read::Adapted,
    Read::Kinds(&["Node"]),
    Read::Playing(KindTraits::runs_pods),
    Read::Playing(KindTraits::scales),
];
const ADMISSION: &[Read] = &[Read::Adapted, Read::Playing(KindTraits::decides_admission)];
const REFERRED: &[Read] = &[Read::Referred, Read::Adapted];
const RIGHTS: &[Read] =
    &[Read::Adapted, Read::Playing(KindTraits::grants_rights), Read::Kinds(&["CustomResourceDefinition"])];
const PLACES: &[Read] =
    &[Read::Pods, Read::Adapted, Read::Playing(KindTraits::runs_pods), Read::Playing(KindTraits::decides_places)];
/// What decides whether pods find a place, and which have to go for others.
const ROOM: &[Read] = &[
    Read::Pods,
    Read::Adapted,
    Read::Playing(KindTraits::runs_pods),
    Read::Playing(KindTraits::decides_room),
    Read::Kinds(&["PodDisruptionBudget"]),
];
const PODS_WANTED: &[Read] = &[Read::Pods, Read::Kinds(&["Node"]), Read::Adapted];
const DISRUPTIONS: &[Read] = &[
    Read::Pods,
    Read::Adapted,
    Read::Playing(KindTraits::scales),
    Read::Kinds(&["CustomResourceDefinition", "CronJob"]),
];
/// What has a selector of pods.
const SELECTING: &[Read] = &[Read::Adapted, Read::Playing(KindTraits::selects_pods), Read::Kinds(&["CronJob"])];
const SCALERS: &[Read] = &[Read::Adapted, Read::Playing(KindTraits::scales)];
const SCALED: &[Read] = &[Read::Adapted, Read::Playing(KindTraits::has_scale)];
/// An operator may make and delete objects of any kind.
const CASCADED: &[Read] = &[Read::Adapted, Read::Referred];

/// What a function means to this crate.
pub const fn relations(func: Func) -> Relations {
    use AnnotationUse::{All as AllAnnotations, Key, None as NoAnnotations};
    use Func::*;
    match func {
        Add | Sub | Mul | Div | Rem | Neg | Eq | Ne | Lt | Le | Gt | Ge | In | Contains | StartsWith | EndsWith
        | Matches | CharAt | IndexOf | LastIndexOf | LowerAscii | UpperAscii | Replace | Split | Join | Substring
        | Trim | Reverse | Sum | Min | Max | Distinct | Without | Sort | Slice | Greatest | Least | Abs | ToInt
        | ToUInt | ToDouble | ToString | ToBytes | ToBool | ToTimestamp | ToDuration | TypeOf | GetFullYear
        | GetMonth | GetDate | GetDayOfMonth | GetDayOfWeek | GetDayOfYear | GetHours | GetMinutes | GetSeconds
        | GetMilliseconds | DueWithin | OptionalOfNonZero | Floor | Amount => values(Detail::All, AllAnnotations),
        Flatten | OptionalOf | OptionalNone | HasValue | OptionalValue | OrOptional | OrValue => HANDED_ON,
        Size => values(Detail::Count, NoAnnotations),
        Live | Terminating => part(&[], Tells::Nothing, Detail::Marks, NoAnnotations),
        IsSelectedBy => part(&[], Tells::Nothing, Detail::Marks, NoAnnotations).alone(Alone::Body),
        Label => part(&[], Tells::Nothing, Detail::Marks, NoAnnotations).alone(Alone::Text(label)),
        Annotation => part(&[], Tells::Nothing, Detail::Marks, Key(1)).alone(Alone::Text(annotation)),
        Owners => part(&[], Tells::Nothing, Detail::Names, NoAnnotations).alone(Alone::Owners),
        Surge | Taken => part(&[], Tells::Nothing, Detail::All, NoAnnotations),
        Ready => part(PODS, Tells::Nothing, Detail::All, NoAnnotations),
        Requests => part(ADAPTED, Tells::Nothing, Detail::All, NoAnnotations),
        RestrictsNodes => part(NODES, Tells::Nothing, Detail::Nodes, NoAnnotations).alone(Alone::Spec),
        ObjectName | ServedVersions => part(&[], Tells::Identity, Detail::All, NoAnnotations),
        PodZone => part(PODS, Tells::Nodes, Detail::All, NoAnnotations),
        PodNode => Relations { source: Source::Node, ..part(PODS, Tells::Nodes, Detail::All, NoAnnotations) },
        Objects => state(&[], Source::OfKind, Inverse::Lists, Lift::OfKind),
        InNamespace => state(&[], Source::InNamespace(KindArgument::At(2)), Inverse::Lists, Lift::InNamespace),
        PodsMatching => within(PODS, "Pod", Lift::Matching),
        HasObject => state(&[], Source::Lookup, Inverse::Lists, Lift::Lookup),
        HostClaimants => state(HOSTS, Source::After(HostClaims), Inverse::Hosts, Lift::Claimants),
        Workloads => within(WORKLOADS, WORKLOAD, Lift::Workloads),
        PodsWanted => within(PODS_WANTED, WORKLOAD, Lift::Counted),
        MostWanted => beside(WORKLOADS, Beside::Kind(WORKLOAD), Lift::Deciding).inverse(Inverse::Wanting),
        Usage | Counts | Refusals => beside(ADMISSION, Beside::Playing(KindTraits::decides_admission), Lift::Admission),
        ListedEndpoints => beside(LISTED_ENDPOINTS, Beside::Kind("EndpointSlice"), Lift::Slices),
        At => swapped(&[], Source::Itself, Inverse::Itself, Lift::Itself, Detail::Names),
        ExistsIn => presence(Lift::Exists).alone(Alone::Exists),
        LiveIn => presence(Lift::Lives).alone(Alone::Lives),
        // owners are of any kind, and are watched as they are seen; parents have an adapter
        OwnersIn => swapped(ADAPTED, Source::Object, Inverse::Dependents, Lift::Listed(Held::Owner), Detail::Owners),
        UnresolvedOwners => swapped(ADAPTED, Source::Object, Inverse::Dependents, Lift::Dangling, Detail::Names),
        // a confirmation stays as it is, also that of what is gone; it names the uid of its object (`symmetry_memo.rs`)
        Meant => swapped(CONFIRMING, Source::Object, Inverse::Nothing, Lift::Meant, Detail::Names),
        ResolvesIn => of_reference(REFERRED, Lift::Target, Detail::Names),
        Target => of_reference(REFERRED, Lift::Listed(Held::There), Detail::All),
        TargetWriters => of_reference(ADAPTED, Lift::Listed(Held::Live), Detail::All),
        Writers => swapped(ADAPTED, Source::Object, Inverse::Written, Lift::Listed(Held::Live), Detail::All),
        SelectedBy => related(SELECTING, Inverse::Selected, Lift::Listed(Held::There), Tells::Nothing, Detail::All),
        Autoscalers => object(SCALERS, Inverse::Referred, Lift::Listed(Held::There)),
        Scaled => object(SCALED, Inverse::Referrers, Lift::Listed(Held::There)),
        Cascaded => object(CASCADED, Inverse::Deleting, Lift::Listed(Held::There)),
        RightsLost => object(RIGHTS, Inverse::Rights, Lift::Rights),
        PossibleNodes => object(PLACES, Inverse::Placement, Lift::Places),
        Unplaced | Obstacles => object(ROOM, Inverse::Room, Lift::Scenario),
        RolloutObstacles => object(ROOM, Inverse::Itself, Lift::Scenario),
        // of the pods that there are as well
        Priority => beside(ROOM, Beside::Kind("PriorityClass"), Lift::Priority).inverse(Inverse::Selecting),
        Preempted | Preemptors => object(ROOM, Inverse::Preemption, Lift::Listed(Held::Live)),
        PodLabel => part(ADAPTED, Tells::Nothing, Detail::All, NoAnnotations).alone(Alone::Text(pod_label)),
        PodSpec | ReplicaRange | SameTemplate => part(ADAPTED, Tells::Identity, Detail::All, NoAnnotations),
        References => related(ADAPTED, Inverse::Itself, Lift::Values, Tells::OwnNames, Detail::Names),
        HasSelector => related(ADAPTED, Inverse::Selecting, Lift::Scenario, Tells::Nothing, Detail::All),
        AdmittedNodes => related(NODES, Inverse::Nodes, Lift::Listed(Held::Live), Tells::Identity, Detail::Nodes),
        Referrers => object(&[Read::Referring, Read::Adapted], Inverse::Referred, Lift::Referrers),
        WantedBy => object(ADAPTED, Inverse::Dependents, Lift::Listed(Held::Wanting)),
        Parents => object(ADAPTED, Inverse::Dependents, Lift::Listed(Held::There)),
        Selects => object(PODS, Inverse::Selecting, Lift::Selected(Held::There)),
        Endpoints => object(PODS, Inverse::Selecting, Lift::Selected(Held::Ready)),
        PodsOwnedBy => object(PODS, Inverse::Controllers, Lift::Below),
        StandingSelector => object(PODS, Inverse::Everything, Lift::Refused),
        WantedReplicas => object(WANTED, Inverse::Selecting, Lift::Scenario),
        // by its controller's label as well
        IsQuorumGroup => object(GROUPS, Inverse::Dependents, Lift::Scenario).alone(Alone::Votes),
        Unscaled | DisruptionsWhenSettled => object(DISRUPTIONS, Inverse::Budgets, Lift::Budget),
        Instances => object(INSTANCES, Inverse::Definitions, Lift::Listed(Held::There)),
        Volume => object(VOLUMES, Inverse::Volumes, Lift::Listed(Held::There)),
        HostClaims => object(HOSTS, Inverse::Hosts, Lift::Claims),
    }
}

/// The label of this name, as [`TextOf`].
pub fn label(_: &State, object: &Object, name: &str) -> Option<Str> {
    object.label(name).cloned()
}

fn annotation(_: &State, object: &Object, name: &str) -> Option<Str> {
    object.annotation(name).cloned()
}

fn pod_label(state: &State, object: &Object, name: &str) -> Option<Str> {
    navigate::template_labels(state, object)?.str_at(&[name]).cloned()
}

#[cfg(test)]
mod tests;
