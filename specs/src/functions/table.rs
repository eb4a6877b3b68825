//! The table of functions, and the lists of a state by their names.

use suture_model::kinds::{Kind, KindTraits};

use super::docs::{
    DISRUPTIONS, DUE_WITHIN, GREATEST, HOURS, INDEX_OF, LAST_INDEX_OF, LEAST, LISTED_ENDPOINTS, MAX, MEANT, MILLIS,
    MIN, MINUTES, MOST_WANTED, OBSTACLES, POSSIBLE_NODES, PREEMPTED, REFUSALS, RIGHTS_LOST, ROLLOUT_OBSTACLES, SECONDS,
    SELECTED_BY, SIZE, SUM, TO_DOUBLE, TO_INT, TO_STRING, TO_TIME, TO_UINT, UNPLACED, UNSCALED, USAGE, WORKLOADS,
};
use super::{Class, Confinement, Param, Signature, Style};

use Class::{Navigates, Pure, Reads};
use Confinement::{Argument, Beyond, Own};
use Param::{
    Any, Bool, Bytes, Double, Duration, HostClaim, Int, Object, Owner, Receiver, Reference, String, T, Timestamp, Type,
    U, UInt, World,
};

const POD: Param = Param::Kind("Pod");
const PODS: Param = Param::List(&POD);
const NODES: Param = Param::List(&Param::Kind("Node"));
const OBJECTS: Param = Param::List(&Object);
const LIST: Param = Param::List(&T);
const MAP: Param = Param::Map(&T, &U);
const OPTIONAL: Param = Param::Optional(&T);
const STRINGS: Param = Param::List(&String);
const INTS: Param = Param::List(&Int);
const UINTS: Param = Param::List(&UInt);
const DOUBLES: Param = Param::List(&Double);
const DURATIONS: Param = Param::List(&Duration);

const fn signature(
    (func, name): (Func, &'static str),
    style: Style,
    params: &'static [Param],
    result: Param,
    doc: &'static str,
) -> Signature {
    Signature { func, name, style, params, result, doc }
}

const fn operator(func: (Func, &'static str), params: &'static [Param], result: Param) -> Signature {
    signature(func, Style::Operator, params, result, "an operator of CEL")
}

const fn function(func: (Func, &'static str), params: &'static [Param], result: Param, doc: &'static str) -> Signature {
    signature(func, Style::Function, params, result, doc)
}

const fn method(func: (Func, &'static str), params: &'static [Param], result: Param, doc: &'static str) -> Signature {
    signature(func, Style::Method, params, result, doc)
}

/// All signatures; those of one function stand together.
pub fn signatures() -> &'static [Signature] {
    SIGNATURES
}

/// Declares the functions, one row each: variant, name in the source, class and confinement, then the signatures with
/// their style, parameters (the receiver first), result and documentation.
macro_rules! functions {
    ($($func:ident, $name:literal, $class:expr, $confinement:expr => [
        $($style:ident($($part:expr),* $(,)?)),* $(,)?
    ];)*) => {
        /// Every operator, function and method.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "documented by its signatures")]
        pub enum Func {
            $($func,)*
        }

        impl Func {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$func),*];

            /// Its name in the source.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$func => $name,)*
                }
            }

            /// What it depends on.
            pub const fn class(self) -> Class {
                match self {
                    $(Self::$func => $class,)*
                }
            }

            /// What a NamespacedInvariant may read by it.
            pub const fn confinement(self) -> Confinement {
                match self {
                    $(Self::$func => $confinement,)*
                }
            }
        }

        const SIGNATURES: &[Signature] = &[$($($style((Func::$func, $name), $($part),*),)*)*];
    };
}

functions! {
    // operators
    Add, "+", Pure, Own => [
        operator(&[Int, Int], Int),
        operator(&[UInt, UInt], UInt),
        operator(&[Double, Double], Double),
        operator(&[String, String], String),
        operator(&[Bytes, Bytes], Bytes),
        operator(&[LIST, LIST], LIST),
        operator(&[Timestamp, Duration], Timestamp),
        operator(&[Duration, Timestamp], Timestamp),
        operator(&[Duration, Duration], Duration),
    ];
    Sub, "-", Pure, Own => [
        operator(&[Int, Int], Int),
        operator(&[UInt, UInt], UInt),
        operator(&[Double, Double], Double),
        operator(&[Timestamp, Timestamp], Duration),
        operator(&[Timestamp, Duration], Timestamp),
        operator(&[Duration, Duration], Duration),
    ];
    Mul, "*", Pure, Own => [
        operator(&[Int, Int], Int),
        operator(&[UInt, UInt], UInt),
        operator(&[Double, Double], Double),
    ];
    Div, "/", Pure, Own => [
        operator(&[Int, Int], Int),
        operator(&[UInt, UInt], UInt),
        operator(&[Double, Double], Double),
    ];
    Rem, "%", Pure, Own => [
        operator(&[Int, Int], Int),
        operator(&[UInt, UInt], UInt),
    ];
    Neg, "-", Pure, Own => [
        operator(&[Int], Int),
        operator(&[Double], Double),
    ];
    Eq, "==", Pure, Own => [operator(&[T, T], Bool)];
    Ne, "!=", Pure, Own => [operator(&[T, T], Bool)];
    Lt, "<", Pure, Own => [operator(&[T, T], Bool)];
    Le, "<=", Pure, Own => [operator(&[T, T], Bool)];
    Gt, ">", Pure, Own => [operator(&[T, T], Bool)];
    Ge, ">=", Pure, Own => [operator(&[T, T], Bool)];
    In, "in", Pure, Own => [
        operator(&[T, LIST], Bool),
        operator(&[T, MAP], Bool),
    ];
    // strings, lists, maps
    Size, "size", Pure, Own => [
        method(&[String], Int, SIZE),
        method(&[Bytes], Int, SIZE),
        method(&[LIST], Int, SIZE),
        method(&[MAP], Int, SIZE),
        function(&[String], Int, SIZE),
        function(&[Bytes], Int, SIZE),
        function(&[LIST], Int, SIZE),
        function(&[MAP], Int, SIZE),
    ];
    Contains, "contains", Pure, Own => [method(&[String, String], Bool, "whether a string occurs in it")];
    StartsWith, "startsWith", Pure, Own => [method(&[String, String], Bool, "whether it starts with a string")];
    EndsWith, "endsWith", Pure, Own => [method(&[String, String], Bool, "whether it ends with a string")];
    Matches, "matches", Pure, Own => [
        method(&[String, String], Bool, "whether a regular expression (RE2) matches a part of it"),
        function(&[String, String], Bool, "whether a regular expression (RE2) matches a part of it"),
    ];
    CharAt, "charAt", Pure, Own => [method(&[String, Int], String, "the character at a position; empty at the end")];
    IndexOf, "indexOf", Pure, Own => [
        method(&[String, String], Int, INDEX_OF),
        method(&[String, String, Int], Int, INDEX_OF),
    ];
    LastIndexOf, "lastIndexOf", Pure, Own => [
        method(&[String, String], Int, LAST_INDEX_OF),
        method(&[String, String, Int], Int, LAST_INDEX_OF),
    ];
    LowerAscii, "lowerAscii", Pure, Own => [method(&[String], String, "with ASCII letters in lower case")];
    UpperAscii, "upperAscii", Pure, Own => [method(&[String], String, "with ASCII letters in upper case")];
    Replace, "replace", Pure, Own => [
        method(&[String, String, String], String, "with one string in place of another"),
        method(&[String, String, String, Int], String, "with the first n replaced"),
    ];
    Split, "split", Pure, Own => [
        method(&[String, String], STRINGS, "the parts between separators"),
        method(&[String, String, Int], STRINGS, "at most n parts between separators"),
    ];
    Join, "join", Pure, Own => [
        method(&[STRINGS], String, "the strings, one after the other"),
        method(&[STRINGS, String], String, "the strings, with a separator between them"),
    ];
    Substring, "substring", Pure, Own => [
        method(&[String, Int], String, "from a position to the end"),
        method(&[String, Int, Int], String, "from a position to before another"),
    ];
    DueWithin, "dueWithin", Pure, Own => [
        method(&[String, Duration], Int, DUE_WITHIN),
    ];
    Trim, "trim", Pure, Own => [method(&[String], String, "without white space at both ends")];
    Reverse, "reverse", Pure, Own => [
        method(&[String], String, "in reverse order"),
        method(&[LIST], LIST, "in reverse order"),
    ];
    Sum, "sum", Pure, Own => [
        method(&[INTS], Int, SUM),
        method(&[UINTS], UInt, SUM),
        method(&[DOUBLES], Double, SUM),
        method(&[DURATIONS], Duration, SUM),
    ];
    Min, "min", Pure, Own => [method(&[LIST], T, MIN)];
    Max, "max", Pure, Own => [method(&[LIST], T, MAX)];
    Distinct, "distinct", Pure, Own => [method(&[LIST], LIST, "each item once, in order of first occurrence")];
    Without, "without", Pure, Own => [method(&[LIST, LIST], LIST, "the items that equal none of the other list")];
    Flatten, "flatten", Pure, Own => [
        method(&[Param::List(&LIST)], LIST, "the items of the lists, one after the other"),
    ];
    Sort, "sort", Pure, Own => [method(&[LIST], LIST, "in ascending order")];
    Slice, "slice", Pure, Own => [method(&[LIST, Int, Int], LIST, "from a position to before another")];
    Greatest, "math.greatest", Pure, Own => [
        function(&[LIST], T, GREATEST),
        function(&[T, T], T, GREATEST),
        function(&[T, T, T], T, GREATEST),
    ];
    Least, "math.least", Pure, Own => [
        function(&[LIST], T, LEAST),
        function(&[T, T], T, LEAST),
        function(&[T, T, T], T, LEAST),
    ];
    Abs, "math.abs", Pure, Own => [
        function(&[Int], Int, "the absolute value"),
        function(&[Double], Double, "the absolute value"),
    ];
    // conversions
    ToInt, "int", Pure, Own => [
        function(&[Int], Int, TO_INT),
        function(&[UInt], Int, TO_INT),
        function(&[Double], Int, TO_INT),
        function(&[String], Int, TO_INT),
        function(&[Timestamp], Int, TO_INT),
    ];
    ToUInt, "uint", Pure, Own => [
        function(&[UInt], UInt, TO_UINT),
        function(&[Int], UInt, TO_UINT),
        function(&[Double], UInt, TO_UINT),
        function(&[String], UInt, TO_UINT),
    ];
    ToDouble, "double", Pure, Own => [
        function(&[Double], Double, TO_DOUBLE),
        function(&[Int], Double, TO_DOUBLE),
        function(&[UInt], Double, TO_DOUBLE),
        function(&[String], Double, TO_DOUBLE),
    ];
    ToString, "string", Pure, Own => [
        function(&[String], String, TO_STRING),
        function(&[Bool], String, TO_STRING),
        function(&[Int], String, TO_STRING),
        function(&[UInt], String, TO_STRING),
        function(&[Double], String, TO_STRING),
        function(&[Bytes], String, TO_STRING),
        function(&[Timestamp], String, TO_STRING),
        function(&[Duration], String, TO_STRING),
    ];
    ToBytes, "bytes", Pure, Own => [
        function(&[Bytes], Bytes, "as UTF-8 bytes"),
        function(&[String], Bytes, "as UTF-8 bytes"),
    ];
    ToBool, "bool", Pure, Own => [
        function(&[Bool], Bool, "as a Boolean"),
        function(&[String], Bool, "as a Boolean"),
    ];
    ToTimestamp, "timestamp", Pure, Own => [
        function(&[Timestamp], Timestamp, TO_TIME),
        function(&[String], Timestamp, TO_TIME),
        function(&[Int], Timestamp, TO_TIME),
    ];
    ToDuration, "duration", Pure, Own => [
        function(&[Duration], Duration, "from text such as `1h30m`"),
        function(&[String], Duration, "from text such as `1h30m`"),
    ];
    TypeOf, "type", Pure, Own => [function(&[T], Type, "the type of a value")];
    // time
    GetFullYear, "getFullYear", Pure, Own => [
        method(&[Timestamp], Int, "the year"),
        method(&[Timestamp, String], Int, "the year at an offset such as `+02:00`"),
    ];
    GetMonth, "getMonth", Pure, Own => [
        method(&[Timestamp], Int, "the month, from 0"),
        method(&[Timestamp, String], Int, "the month, from 0"),
    ];
    GetDate, "getDate", Pure, Own => [
        method(&[Timestamp], Int, "the day of the month, from 1"),
        method(&[Timestamp, String], Int, "the day of the month, from 1"),
    ];
    GetDayOfMonth, "getDayOfMonth", Pure, Own => [
        method(&[Timestamp], Int, "the day of the month, from 0"),
        method(&[Timestamp, String], Int, "the day of the month, from 0"),
    ];
    GetDayOfWeek, "getDayOfWeek", Pure, Own => [
        method(&[Timestamp], Int, "the day of the week, Sunday is 0"),
        method(&[Timestamp, String], Int, "the day of the week, Sunday is 0"),
    ];
    GetDayOfYear, "getDayOfYear", Pure, Own => [
        method(&[Timestamp], Int, "the day of the year, from 0"),
        method(&[Timestamp, String], Int, "the day of the year, from 0"),
    ];
    GetHours, "getHours", Pure, Own => [
        method(&[Timestamp], Int, HOURS),
        method(&[Timestamp, String], Int, HOURS),
        method(&[Duration], Int, HOURS),
    ];
    GetMinutes, "getMinutes", Pure, Own => [
        method(&[Timestamp], Int, MINUTES),
        method(&[Timestamp, String], Int, MINUTES),
        method(&[Duration], Int, MINUTES),
    ];
    GetSeconds, "getSeconds", Pure, Own => [
        method(&[Timestamp], Int, SECONDS),
        method(&[Timestamp, String], Int, SECONDS),
        method(&[Duration], Int, SECONDS),
    ];
    GetMilliseconds, "getMilliseconds", Pure, Own => [
        method(&[Timestamp], Int, MILLIS),
        method(&[Timestamp, String], Int, MILLIS),
        method(&[Duration], Int, MILLIS),
    ];
    // optionals
    OptionalOf, "optional.of", Pure, Own => [function(&[T], OPTIONAL, "an optional that has this value")];
    OptionalNone, "optional.none", Pure, Own => [function(&[], OPTIONAL, "an empty optional")];
    OptionalOfNonZero, "optional.ofNonZeroValue", Pure, Own => [
        function(&[T], OPTIONAL, "empty for null, 0, false and empty values"),
    ];
    HasValue, "hasValue", Pure, Own => [method(&[OPTIONAL], Bool, "whether the optional has a value")];
    OptionalValue, "value", Pure, Own => [method(&[OPTIONAL], T, "the value; fails when there is none")];
    OrOptional, "or", Pure, Own => [
        method(&[OPTIONAL, OPTIONAL], OPTIONAL, "this optional, or the other if this is empty"),
    ];
    OrValue, "orValue", Pure, Own => [method(&[OPTIONAL, T], T, "the value, or the argument if there is none")];
    // the cluster: lists of a state
    Objects, "objects", Navigates, Beyond => [
        method(&[World, String], OBJECTS, "the objects of a kind in a state"),
        method(&[World, String, String], OBJECTS, "the objects of a group and kind in a state"),
    ];
    InNamespace, "inNamespace", Navigates, Argument(1) => [
        method(&[World, String, String], OBJECTS, "the objects of a namespace, which comes first, that have a kind"),
        method(&[World, String, String, String], OBJECTS, "those of them that have a name, which comes last; not pods of the future"),
    ];
    PodsMatching, "podsMatching", Navigates, Argument(1) => [
        method(&[World, String, Any], PODS, "the pods of a namespace that a LabelSelector matches"),
    ];
    PodsWanted, "podsWanted", Navigates, Argument(1) => [
        method(
            &[World, String, Any], Int,
            "how many pods that a LabelSelector matches the workloads of a namespace want",
        ),
    ];
    Workloads, "workloads", Navigates, Argument(1) => [method(&[World, String], OBJECTS, WORKLOADS)];
    PodsOwnedBy, "podsOwnedBy", Navigates, Own => [
        method(&[World, Object], PODS, "the pods that an object owns, directly or through others"),
    ];
    HostClaimants, "hostClaimants", Navigates, Beyond => [
        method(&[World, HostClaim], OBJECTS, "the Ingresses and routes that claim a host and path"),
    ];
    HasObject, "has", Navigates, Argument(2) => [
        method(&[World, String, String, String], Bool, "whether kind, namespace, name exists in a state"),
    ];
    // the cluster: one object
    At, "at", Navigates, Own => [
        method(&[Object, World], Receiver, "the same object in a state; fails when it is not there"),
    ];
    ExistsIn, "existsIn", Navigates, Own => [method(&[Object, World], Bool, "whether the object is in a state")];
    LiveIn, "liveIn", Navigates, Own => [
        method(
            &[Object, World], Bool,
            "whether the object is in a state, has the same uid there, and no deletion takes it",
        ),
    ];
    Live, "live", Pure, Own => [method(&[Object], Bool, "whether no deletion takes the object")];
    Terminating, "terminating", Pure, Own => [method(&[Object], Bool, "whether the object bears a deletionTimestamp")];
    Taken, "taken", Pure, Own => [
        method(&[Object], Bool, "whether a requested deletion, or what follows from it, takes the object"),
    ];
    Ready, "ready", Pure, Own => [method(&[POD], Bool, "whether the pod is Ready and not terminating")];
    Selects, "selects", Navigates, Own => [
        method(&[Object, World], PODS, "the pods that the object's selector matches in a state"),
    ];
    HasSelector, "hasSelector", Reads, Own => [
        method(&[Object], Bool, "whether the object selects anything"),
        method(&[Object, World], Bool, "whether the object selects anything"),
    ];
    Endpoints, "endpoints", Navigates, Own => [
        method(
            &[Param::Kind("Service"), World], PODS,
            "the ready endpoints of a service: selected pods that are Ready and not terminating",
        ),
    ];
    ListedEndpoints, "listedEndpoints", Navigates, Own => [
        method(&[Param::Kind("Service"), World], Int, LISTED_ENDPOINTS),
    ];
    AdmittedNodes, "admittedNodes", Navigates, Beyond => [
        method(&[Object, World], NODES, "the nodes that the pod's node selector and required affinity admit"),
    ];
    PossibleNodes, "possibleNodes", Navigates, Beyond => [
        method(&[Object, World], NODES, POSSIBLE_NODES),
    ];
    Unplaced, "unplaced", Navigates, Beyond => [
        method(&[Object, World, Int, Int, Any], Int, UNPLACED),
    ];
    Obstacles, "obstacles", Navigates, Beyond => [
        method(&[Object, World, Int, Int, Any], STRINGS, OBSTACLES),
    ];
    RolloutObstacles, "rolloutObstacles", Navigates, Beyond => [
        method(&[Object, World, Any], STRINGS, ROLLOUT_OBSTACLES),
    ];
    SameTemplate, "sameTemplate", Reads, Own => [
        method(&[Object, Object], Bool, "whether two objects make their pods from one template"),
    ];
    Priority, "priority", Navigates, Beyond => [
        method(&[Object, World], Int, "the lowest priority of the object's pods, and of those that it makes"),
    ];
    Preempted, "preempted", Navigates, Beyond => [
        method(&[Object, World], PODS, PREEMPTED),
    ];
    Preemptors, "preemptors", Navigates, Beyond => [
        method(&[Object, World], OBJECTS, "the workloads whose new pods may preempt pods of the object"),
    ];
    RestrictsNodes, "restrictsNodes", Reads, Own => [
        method(&[Object], Bool, "whether a node selector or required affinity restricts its nodes"),
    ];
    Referrers, "referrers", Navigates, Beyond => [
        method(&[Object, World], OBJECTS, "the live objects that refer to this one in a state"),
    ];
    References, "references", Reads, Own => [
        method(&[Object], Param::List(&Reference), "what the object refers to by name"),
    ];
    ResolvesIn, "resolvesIn", Navigates, Beyond => [
        method(&[Reference, World], Bool, "whether what is referred to is there, with its keys"),
    ];
    Target, "target", Navigates, Beyond => [
        method(&[Reference, World], OBJECTS, "what is referred to, if it is there: none or one"),
    ];
    Writers, "writers", Navigates, Beyond => [
        method(&[Object, World], OBJECTS, "the live custom resources that write the object, by `access: Write`"),
    ];
    TargetWriters, "targetWriters", Navigates, Beyond => [
        method(
            &[Reference, World], OBJECTS,
            "the live custom resources that write what is referred to, whether it is there or not",
        ),
    ];
    SelectedBy, "selectedBy", Navigates, Own => [
        method(&[Object, World], OBJECTS, SELECTED_BY),
    ];
    PodSpec, "podSpec", Reads, Own => [
        method(&[Object], Any, "the spec of the pod, or of the pods that the object makes; empty if it makes none"),
    ];
    PodLabel, "podLabel", Reads, Own => [
        method(
            &[Object, String], String,
            "the value of a label of the pod, or of the pods that the object makes; empty when absent",
        ),
    ];
    Autoscalers, "autoscalers", Navigates, Own => [
        method(
            &[Object, World], OBJECTS,
            "the HorizontalPodAutoscalers, and the custom resources with a `scaleTarget`, that scale the object",
        ),
    ];
    Scaled, "scaled", Navigates, Own => [
        method(&[Object, World], OBJECTS, "what an autoscaler scales, if it is there: none or one"),
    ];
    ReplicaRange, "replicaRange", Reads, Own => [
        method(&[Object], INTS, "the lowest and the highest number that an autoscaler sets; empty for any other object"),
    ];
    Cascaded, "cascaded", Navigates, Beyond => [
        method(
            &[Object, World], OBJECTS,
            "what the operator of a custom resource deletes with it, as its adapter says, and no owner reference does",
        ),
    ];
    Owners, "owners", Pure, Own => [method(&[Object], Param::List(&Owner), "the entries of its ownerReferences")];
    OwnersIn, "ownersIn", Navigates, Beyond => [
        method(&[Object, World], OBJECTS, "its owners, those that resolve in a state"),
    ];
    UnresolvedOwners, "unresolvedOwners", Navigates, Beyond => [
        method(&[Object, World], Param::List(&Owner), "its owner references that do not resolve in a state"),
    ];
    WantedBy, "wantedBy", Navigates, Beyond => [
        method(&[Object, World], OBJECTS, "the live owners, and adapters' live parents, that want the object"),
    ];
    Parents, "parents", Navigates, Beyond => [
        method(
            &[Object, World], OBJECTS,
            "the custom resources whose adapter lists the object among their children, live or not",
        ),
    ];
    Meant, "meant", Navigates, Own => [
        method(
            &[Object, World], Bool,
            MEANT,
        ),
        method(
            &[Object, World, Bool], Bool,
            "the same; with false, a namespace confirms nothing of what is in it",
        ),
        method(&[Reference, World], Bool, "whether what is referred to is meant to go"),
    ];
    StandingSelector, "standingSelector", Navigates, Own => [
        method(
            &[Object, World], Any,
            "the label selector of the object without the labels that software moves from pod to pod: those that the templates of the pods which it selects do not bear",
        ),
    ];
    WantedReplicas, "wantedReplicas", Navigates, Own => [
        method(&[Object, World], Int, "how many pods the object wants"),
    ];
    RightsLost, "rightsLost", Navigates, Beyond => [
        method(&[Object, World], STRINGS, RIGHTS_LOST),
    ];
    MostWanted, "mostWanted", Navigates, Own => [
        method(&[Object, World], Int, MOST_WANTED),
    ];
    Surge, "surge", Pure, Own => [
        method(&[Object, Int], Int, "how many pods more than so many a Deployment or DaemonSet may have in a rollout"),
    ];
    Usage, "usage", Navigates, Beyond => [
        method(&[Object, World, String], Int, USAGE),
    ];
    Counts, "counts", Navigates, Beyond => [
        method(&[Object, Object, World], Bool, "whether a ResourceQuota counts a pod, or the pods that an object makes"),
    ];
    Refusals, "refusals", Navigates, Beyond => [
        method(&[Object, World], STRINGS, REFUSALS),
    ];
    Instances, "instances", Navigates, Beyond => [
        method(
            &[Param::Kind("CustomResourceDefinition"), World], OBJECTS,
            "the objects of a custom resource definition",
        ),
    ];
    ServedVersions, "servedVersions", Pure, Own => [
        method(&[Param::Kind("CustomResourceDefinition")], STRINGS, "the versions that a definition serves"),
    ];
    Volume, "volume", Navigates, Beyond => [
        method(
            &[Param::Kind("PersistentVolumeClaim"), World], Param::List(&Param::Kind("PersistentVolume")),
            "the volume of a claim: none or one",
        ),
    ];
    DisruptionsWhenSettled, "disruptionsWhenSettled", Navigates, Own => [
        method(
            &[Param::Kind("PodDisruptionBudget"), World], INTS,
            DISRUPTIONS,
        ),
    ];
    Unscaled, "unscaled", Navigates, Own => [
        method(&[Param::Kind("PodDisruptionBudget"), World], OBJECTS, UNSCALED),
    ];
    HostClaims, "hostClaims", Navigates, Beyond => [
        method(&[Object, World], Param::List(&HostClaim), "the hosts and paths that an Ingress or route claims"),
    ];
    PodNode, "node", Reads, Beyond => [
        method(&[POD], Param::Kind("Node"), "the node of a pod; fails when it has none"),
    ];
    PodZone, "zone", Reads, Beyond => [
        method(&[Object], String, "the zone of a pod's node, or of a node; empty when unknown"),
    ];
    Requests, "requests", Reads, Own => [
        method(
            &[Object, String], Int,
            "what a pod, or one pod of a workload, requests: cpu in milli, else in units or bytes",
        ),
    ];
    IsQuorumGroup, "isQuorumGroup", Navigates, Own => [
        method(&[Object, World], Bool, "whether its pods vote: label suture.dev/quorum \"true\", or by its adapter"),
    ];
    Floor, "floor", Pure, Own => [
        function(&[Any, Int], Int, "an integer, or a percentage of the second argument, rounded up"),
    ];
    Amount, "amount", Pure, Own => [
        function(
            &[Any, String], Int,
            "a quantity of a resource, a number or a text such as `500m` or `2Gi`, in the unit of `requests`",
        ),
    ];
    ObjectName, "name", Pure, Own => [method(&[Object], String, "Kind/namespace/name")];
    Label, "label", Pure, Own => [method(&[Object, String], String, "the value of a label; empty when absent")];
    IsSelectedBy, "isSelectedBy", Pure, Own => [
        method(&[Object, Any], Bool, "whether a LabelSelector matches its labels"),
        method(&[MAP, Any], Bool, "whether a LabelSelector matches these labels"),
    ];
    Annotation, "annotation", Pure, Own => [
        method(&[Object, String], String, "the value of an annotation; empty when absent"),
    ];
}

/// The kind that a field of a state lists.
pub fn world_field(name: &str) -> Option<Kind> {
    KindTraits::listed().find(|traits| traits.resource == name).map(|traits| Kind::new(traits.group, traits.kind))
}
