//! The table of signatures, the lists of a state by their names, and the names that are kept for later.

use suture_model::kinds::Kind;

use super::{Class, Func, Param, Signature, Style};

use Class::{Navigates, Pure, Reads};
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

const fn op(func: Func, name: &'static str, params: &'static [Param], result: Param) -> Signature {
    Signature { func, name, style: Style::Operator, params, result, class: Pure, doc: "an operator of CEL" }
}

const fn function(
    func: Func,
    name: &'static str,
    params: &'static [Param],
    result: Param,
    doc: &'static str,
) -> Signature {
    Signature { func, name, style: Style::Function, params, result, class: Pure, doc }
}

const fn method(
    func: Func,
    name: &'static str,
    params: &'static [Param],
    result: Param,
    doc: &'static str,
) -> Signature {
    Signature { func, name, style: Style::Method, params, result, class: Pure, doc }
}

const fn reads(
    func: Func,
    name: &'static str,
    params: &'static [Param],
    result: Param,
    doc: &'static str,
) -> Signature {
    Signature { func, name, style: Style::Method, params, result, class: Reads, doc }
}

const fn navigates(
    func: Func,
    name: &'static str,
    params: &'static [Param],
    result: Param,
    doc: &'static str,
) -> Signature {
    Signature { func, name, style: Style::Method, params, result, class: Navigates, doc }
}

/// All signatures; those of one function stand together.
pub fn signatures() -> &'static [Signature] {
    TABLE
}

const SIZE: &str = "how many characters, bytes, items or entries there are";
const SUM: &str = "the sum of a list; 0 of an empty one";
const MIN: &str = "the smallest item; fails on an empty list";
const MAX: &str = "the largest item; fails on an empty list";
const TO_INT: &str = "as an int; fails if it does not fit";
const TO_UINT: &str = "as a uint; fails if it does not fit";
const TO_DOUBLE: &str = "as a double";
const TO_STRING: &str = "as a string";
const TO_TIME: &str = "from RFC 3339, or from seconds since 1970";
const INDEX_OF: &str = "where a string first occurs, or -1";
const LAST_INDEX_OF: &str = "where a string last occurs, or -1";
const HOURS: &str = "of a timestamp the hour, of a duration all of it in hours";
const MINUTES: &str = "of a timestamp the minute, of a duration all of it in minutes";
const SECONDS: &str = "of a timestamp the second, of a duration all of it in seconds";
const MILLIS: &str = "the milliseconds within the second";
const GREATEST: &str = "the greatest of two or three numbers, or of a list";
const LEAST: &str = "the least of two or three numbers, or of a list";

const TABLE: &[Signature] = &[
    op(Func::Add, "+", &[Int, Int], Int),
    op(Func::Add, "+", &[UInt, UInt], UInt),
    op(Func::Add, "+", &[Double, Double], Double),
    op(Func::Add, "+", &[String, String], String),
    op(Func::Add, "+", &[Bytes, Bytes], Bytes),
    op(Func::Add, "+", &[LIST, LIST], LIST),
    op(Func::Add, "+", &[Timestamp, Duration], Timestamp),
    op(Func::Add, "+", &[Duration, Timestamp], Timestamp),
    op(Func::Add, "+", &[Duration, Duration], Duration),
    op(Func::Sub, "-", &[Int, Int], Int),
    op(Func::Sub, "-", &[UInt, UInt], UInt),
    op(Func::Sub, "-", &[Double, Double], Double),
    op(Func::Sub, "-", &[Timestamp, Timestamp], Duration),
    op(Func::Sub, "-", &[Timestamp, Duration], Timestamp),
    op(Func::Sub, "-", &[Duration, Duration], Duration),
    op(Func::Mul, "*", &[Int, Int], Int),
    op(Func::Mul, "*", &[UInt, UInt], UInt),
    op(Func::Mul, "*", &[Double, Double], Double),
    op(Func::Div, "/", &[Int, Int], Int),
    op(Func::Div, "/", &[UInt, UInt], UInt),
    op(Func::Div, "/", &[Double, Double], Double),
    op(Func::Rem, "%", &[Int, Int], Int),
    op(Func::Rem, "%", &[UInt, UInt], UInt),
    op(Func::Neg, "-", &[Int], Int),
    op(Func::Neg, "-", &[Double], Double),
    op(Func::Eq, "==", &[T, T], Bool),
    op(Func::Ne, "!=", &[T, T], Bool),
    op(Func::Lt, "<", &[T, T], Bool),
    op(Func::Le, "<=", &[T, T], Bool),
    op(Func::Gt, ">", &[T, T], Bool),
    op(Func::Ge, ">=", &[T, T], Bool),
    op(Func::In, "in", &[T, LIST], Bool),
    op(Func::In, "in", &[T, MAP], Bool),
    method(Func::Size, "size", &[String], Int, SIZE),
    method(Func::Size, "size", &[Bytes], Int, SIZE),
    method(Func::Size, "size", &[LIST], Int, SIZE),
    method(Func::Size, "size", &[MAP], Int, SIZE),
    function(Func::Size, "size", &[String], Int, SIZE),
    function(Func::Size, "size", &[Bytes], Int, SIZE),
    function(Func::Size, "size", &[LIST], Int, SIZE),
    function(Func::Size, "size", &[MAP], Int, SIZE),
    method(Func::Contains, "contains", &[String, String], Bool, "whether a string occurs in it"),
    method(Func::StartsWith, "startsWith", &[String, String], Bool, "whether it starts with a string"),
    method(Func::EndsWith, "endsWith", &[String, String], Bool, "whether it ends with a string"),
    method(
        Func::Matches,
        "matches",
        &[String, String],
        Bool,
        "whether a regular expression (RE2) matches a part of it",
    ),
    function(
        Func::Matches,
        "matches",
        &[String, String],
        Bool,
        "whether a regular expression (RE2) matches a part of it",
    ),
    method(Func::CharAt, "charAt", &[String, Int], String, "the character at a position; empty at the end"),
    method(Func::IndexOf, "indexOf", &[String, String], Int, INDEX_OF),
    method(Func::IndexOf, "indexOf", &[String, String, Int], Int, INDEX_OF),
    method(Func::LastIndexOf, "lastIndexOf", &[String, String], Int, LAST_INDEX_OF),
    method(Func::LastIndexOf, "lastIndexOf", &[String, String, Int], Int, LAST_INDEX_OF),
    method(Func::LowerAscii, "lowerAscii", &[String], String, "with ASCII letters in lower case"),
    method(Func::UpperAscii, "upperAscii", &[String], String, "with ASCII letters in upper case"),
    method(Func::Replace, "replace", &[String, String, String], String, "with one string in place of another"),
    method(Func::Replace, "replace", &[String, String, String, Int], String, "with the first n replaced"),
    method(Func::Split, "split", &[String, String], STRINGS, "the parts between separators"),
    method(Func::Split, "split", &[String, String, Int], STRINGS, "at most n parts between separators"),
    method(Func::Join, "join", &[STRINGS], String, "the strings, one after the other"),
    method(Func::Join, "join", &[STRINGS, String], String, "the strings, with a separator between them"),
    method(Func::Substring, "substring", &[String, Int], String, "from a position to the end"),
    method(Func::Substring, "substring", &[String, Int, Int], String, "from a position to before another"),
    method(Func::Trim, "trim", &[String], String, "without white space at both ends"),
    method(Func::Reverse, "reverse", &[String], String, "in reverse order"),
    method(Func::Reverse, "reverse", &[LIST], LIST, "in reverse order"),
    method(Func::Sum, "sum", &[INTS], Int, SUM),
    method(Func::Sum, "sum", &[UINTS], UInt, SUM),
    method(Func::Sum, "sum", &[DOUBLES], Double, SUM),
    method(Func::Sum, "sum", &[DURATIONS], Duration, SUM),
    method(Func::Min, "min", &[LIST], T, MIN),
    method(Func::Max, "max", &[LIST], T, MAX),
    method(Func::Distinct, "distinct", &[LIST], LIST, "each item once, in order of first occurrence"),
    method(Func::Flatten, "flatten", &[Param::List(&LIST)], LIST, "the items of the lists, one after the other"),
    method(Func::Sort, "sort", &[LIST], LIST, "in ascending order"),
    method(Func::Slice, "slice", &[LIST, Int, Int], LIST, "from a position to before another"),
    function(Func::Greatest, "math.greatest", &[LIST], T, GREATEST),
    function(Func::Greatest, "math.greatest", &[T, T], T, GREATEST),
    function(Func::Greatest, "math.greatest", &[T, T, T], T, GREATEST),
    function(Func::Least, "math.least", &[LIST], T, LEAST),
    function(Func::Least, "math.least", &[T, T], T, LEAST),
    function(Func::Least, "math.least", &[T, T, T], T, LEAST),
    function(Func::Abs, "math.abs", &[Int], Int, "the absolute value"),
    function(Func::Abs, "math.abs", &[Double], Double, "the absolute value"),
    function(Func::ToInt, "int", &[Int], Int, TO_INT),
    function(Func::ToInt, "int", &[UInt], Int, TO_INT),
    function(Func::ToInt, "int", &[Double], Int, TO_INT),
    function(Func::ToInt, "int", &[String], Int, TO_INT),
    function(Func::ToInt, "int", &[Timestamp], Int, TO_INT),
    function(Func::ToUInt, "uint", &[UInt], UInt, TO_UINT),
    function(Func::ToUInt, "uint", &[Int], UInt, TO_UINT),
    function(Func::ToUInt, "uint", &[Double], UInt, TO_UINT),
    function(Func::ToUInt, "uint", &[String], UInt, TO_UINT),
    function(Func::ToDouble, "double", &[Double], Double, TO_DOUBLE),
    function(Func::ToDouble, "double", &[Int], Double, TO_DOUBLE),
    function(Func::ToDouble, "double", &[UInt], Double, TO_DOUBLE),
    function(Func::ToDouble, "double", &[String], Double, TO_DOUBLE),
    function(Func::ToString, "string", &[String], String, TO_STRING),
    function(Func::ToString, "string", &[Bool], String, TO_STRING),
    function(Func::ToString, "string", &[Int], String, TO_STRING),
    function(Func::ToString, "string", &[UInt], String, TO_STRING),
    function(Func::ToString, "string", &[Double], String, TO_STRING),
    function(Func::ToString, "string", &[Bytes], String, TO_STRING),
    function(Func::ToString, "string", &[Timestamp], String, TO_STRING),
    function(Func::ToString, "string", &[Duration], String, TO_STRING),
    function(Func::ToBytes, "bytes", &[Bytes], Bytes, "as UTF-8 bytes"),
    function(Func::ToBytes, "bytes", &[String], Bytes, "as UTF-8 bytes"),
    function(Func::ToBool, "bool", &[Bool], Bool, "as a Boolean"),
    function(Func::ToBool, "bool", &[String], Bool, "as a Boolean"),
    function(Func::ToTimestamp, "timestamp", &[Timestamp], Timestamp, TO_TIME),
    function(Func::ToTimestamp, "timestamp", &[String], Timestamp, TO_TIME),
    function(Func::ToTimestamp, "timestamp", &[Int], Timestamp, TO_TIME),
    function(Func::ToDuration, "duration", &[Duration], Duration, "from text such as `1h30m`"),
    function(Func::ToDuration, "duration", &[String], Duration, "from text such as `1h30m`"),
    function(Func::TypeOf, "type", &[T], Type, "the type of a value"),
    method(Func::GetFullYear, "getFullYear", &[Timestamp], Int, "the year"),
    method(Func::GetFullYear, "getFullYear", &[Timestamp, String], Int, "the year at an offset such as `+02:00`"),
    method(Func::GetMonth, "getMonth", &[Timestamp], Int, "the month, from 0"),
    method(Func::GetMonth, "getMonth", &[Timestamp, String], Int, "the month, from 0"),
    method(Func::GetDate, "getDate", &[Timestamp], Int, "the day of the month, from 1"),
    method(Func::GetDate, "getDate", &[Timestamp, String], Int, "the day of the month, from 1"),
    method(Func::GetDayOfMonth, "getDayOfMonth", &[Timestamp], Int, "the day of the month, from 0"),
    method(Func::GetDayOfMonth, "getDayOfMonth", &[Timestamp, String], Int, "the day of the month, from 0"),
    method(Func::GetDayOfWeek, "getDayOfWeek", &[Timestamp], Int, "the day of the week, Sunday is 0"),
    method(Func::GetDayOfWeek, "getDayOfWeek", &[Timestamp, String], Int, "the day of the week, Sunday is 0"),
    method(Func::GetDayOfYear, "getDayOfYear", &[Timestamp], Int, "the day of the year, from 0"),
    method(Func::GetDayOfYear, "getDayOfYear", &[Timestamp, String], Int, "the day of the year, from 0"),
    method(Func::GetHours, "getHours", &[Timestamp], Int, HOURS),
    method(Func::GetHours, "getHours", &[Timestamp, String], Int, HOURS),
    method(Func::GetHours, "getHours", &[Duration], Int, HOURS),
    method(Func::GetMinutes, "getMinutes", &[Timestamp], Int, MINUTES),
    method(Func::GetMinutes, "getMinutes", &[Timestamp, String], Int, MINUTES),
    method(Func::GetMinutes, "getMinutes", &[Duration], Int, MINUTES),
    method(Func::GetSeconds, "getSeconds", &[Timestamp], Int, SECONDS),
    method(Func::GetSeconds, "getSeconds", &[Timestamp, String], Int, SECONDS),
    method(Func::GetSeconds, "getSeconds", &[Duration], Int, SECONDS),
    method(Func::GetMilliseconds, "getMilliseconds", &[Timestamp], Int, MILLIS),
    method(Func::GetMilliseconds, "getMilliseconds", &[Timestamp, String], Int, MILLIS),
    method(Func::GetMilliseconds, "getMilliseconds", &[Duration], Int, MILLIS),
    function(Func::OptionalOf, "optional.of", &[T], OPTIONAL, "an optional that has this value"),
    function(Func::OptionalNone, "optional.none", &[], OPTIONAL, "an empty optional"),
    function(
        Func::OptionalOfNonZero,
        "optional.ofNonZeroValue",
        &[T],
        OPTIONAL,
        "empty for null, 0, false and empty values",
    ),
    method(Func::HasValue, "hasValue", &[OPTIONAL], Bool, "whether the optional has a value"),
    method(Func::OptionalValue, "value", &[OPTIONAL], T, "the value; fails when there is none"),
    method(Func::OrOptional, "or", &[OPTIONAL, OPTIONAL], OPTIONAL, "this optional, or the other if this is empty"),
    method(Func::OrValue, "orValue", &[OPTIONAL, T], T, "the value, or the argument if there is none"),
    navigates(Func::Objects, "objects", &[World, String], OBJECTS, "the objects of a kind in a state"),
    navigates(
        Func::Objects,
        "objects",
        &[World, String, String],
        OBJECTS,
        "the objects of a group and kind in a state",
    ),
    navigates(
        Func::InNamespace,
        "inNamespace",
        &[World, String, String],
        OBJECTS,
        "the objects of a kind in a namespace",
    ),
    navigates(
        Func::PodsMatching,
        "podsMatching",
        &[World, String, Any],
        PODS,
        "the pods of a namespace that a LabelSelector matches",
    ),
    navigates(
        Func::PodsWanted,
        "podsWanted",
        &[World, String, Any],
        Int,
        "how many pods that a LabelSelector matches the workloads of a namespace want",
    ),
    navigates(
        Func::PodsOwnedBy,
        "podsOwnedBy",
        &[World, Object],
        PODS,
        "the pods that an object owns, directly or through others",
    ),
    navigates(
        Func::HostClaimants,
        "hostClaimants",
        &[World, HostClaim],
        OBJECTS,
        "the Ingresses and routes that claim a host and path",
    ),
    navigates(
        Func::HasObject,
        "has",
        &[World, String, String, String],
        Bool,
        "whether kind, namespace, name exists in a state",
    ),
    navigates(Func::At, "at", &[Object, World], Receiver, "the same object in a state; fails when it is not there"),
    navigates(Func::ExistsIn, "existsIn", &[Object, World], Bool, "whether the object is in a state"),
    navigates(
        Func::LiveIn,
        "liveIn",
        &[Object, World],
        Bool,
        "whether the object is in a state, has the same uid there, and no deletion takes it",
    ),
    method(Func::Live, "live", &[Object], Bool, "whether no deletion takes the object"),
    method(Func::Terminating, "terminating", &[Object], Bool, "whether the object bears a deletionTimestamp"),
    method(
        Func::Taken,
        "taken",
        &[Object],
        Bool,
        "whether a requested deletion, or what follows from it, takes the object",
    ),
    method(Func::Ready, "ready", &[POD], Bool, "whether the pod is Ready and not terminating"),
    navigates(
        Func::Selects,
        "selects",
        &[Object, World],
        PODS,
        "the pods that the object's selector matches in a state",
    ),
    reads(Func::HasSelector, "hasSelector", &[Object], Bool, "whether the object selects anything"),
    navigates(Func::HasSelector, "hasSelector", &[Object, World], Bool, "whether the object selects anything"),
    navigates(
        Func::Endpoints,
        "endpoints",
        &[Param::Kind("Service"), World],
        PODS,
        "the ready endpoints of a service: selected pods that are Ready and not terminating",
    ),
    navigates(
        Func::ListedEndpoints,
        "listedEndpoints",
        &[Param::Kind("Service"), World],
        Int,
        "how many ready endpoints the EndpointSlices, or else the Endpoints, of a service without a selector list",
    ),
    navigates(
        Func::AdmittedNodes,
        "admittedNodes",
        &[Object, World],
        NODES,
        "the nodes that the pod's node selector and required affinity admit",
    ),
    reads(
        Func::RestrictsNodes,
        "restrictsNodes",
        &[Object],
        Bool,
        "whether a node selector or required affinity restricts its nodes",
    ),
    navigates(
        Func::Referrers,
        "referrers",
        &[Object, World],
        OBJECTS,
        "the live objects that refer to this one in a state",
    ),
    reads(Func::References, "references", &[Object], Param::List(&Reference), "what the object refers to by name"),
    navigates(
        Func::ResolvesIn,
        "resolvesIn",
        &[Reference, World],
        Bool,
        "whether what is referred to is there, with its keys",
    ),
    method(Func::Owners, "owners", &[Object], Param::List(&Owner), "the entries of its ownerReferences"),
    navigates(Func::OwnersIn, "ownersIn", &[Object, World], OBJECTS, "its owners, those that resolve in a state"),
    navigates(
        Func::UnresolvedOwners,
        "unresolvedOwners",
        &[Object, World],
        Param::List(&Owner),
        "its owner references that do not resolve in a state",
    ),
    navigates(
        Func::WantedBy,
        "wantedBy",
        &[Object, World],
        OBJECTS,
        "the live owners, and adapters' live parents, that want the object",
    ),
    navigates(
        Func::Parents,
        "parents",
        &[Object, World],
        OBJECTS,
        "the custom resources whose adapter lists the object among their children, live or not",
    ),
    navigates(Func::WantedReplicas, "wantedReplicas", &[Object, World], Int, "how many pods the object wants"),
    navigates(
        Func::Instances,
        "instances",
        &[Param::Kind("CustomResourceDefinition"), World],
        OBJECTS,
        "the objects of a custom resource definition",
    ),
    method(
        Func::ServedVersions,
        "servedVersions",
        &[Param::Kind("CustomResourceDefinition")],
        STRINGS,
        "the versions that a definition serves",
    ),
    navigates(
        Func::Volume,
        "volume",
        &[Param::Kind("PersistentVolumeClaim"), World],
        Param::List(&Param::Kind("PersistentVolume")),
        "the volume of a claim: none or one",
    ),
    navigates(
        Func::DisruptionsWhenSettled,
        "disruptionsWhenSettled",
        &[Param::Kind("PodDisruptionBudget"), World],
        INTS,
        "how many disruptions the budget allows once every wanted pod is ready: none (it cannot tell) or one number",
    ),
    navigates(
        Func::HostClaims,
        "hostClaims",
        &[Object, World],
        Param::List(&HostClaim),
        "the hosts and paths that an Ingress or route claims",
    ),
    reads(Func::PodNode, "node", &[POD], Param::Kind("Node"), "the node of a pod; fails when it has none"),
    reads(Func::PodZone, "zone", &[Object], String, "the zone of a pod's node, or of a node; empty when unknown"),
    reads(
        Func::Requests,
        "requests",
        &[Object, String],
        Int,
        "what a pod, or one pod of a workload, requests: cpu in milli, else in units or bytes",
    ),
    navigates(
        Func::IsQuorumGroup,
        "isQuorumGroup",
        &[Object, World],
        Bool,
        "whether its pods vote: label suture.dev/quorum \"true\", or by its adapter",
    ),
    function(Func::Floor, "floor", &[Any, Int], Int, "an integer, or a percentage of the second argument, rounded up"),
    method(Func::ObjectName, "name", &[Object], String, "Kind/namespace/name"),
    method(Func::Label, "label", &[Object, String], String, "the value of a label; empty when absent"),
    method(Func::Annotation, "annotation", &[Object, String], String, "the value of an annotation; empty when absent"),
];

/// The lists of a state: `before.pods` and so on, each with its group and kind.
pub const WORLD_FIELDS: &[(&str, &str, &str)] = &[
    ("nodes", "", "Node"),
    ("namespaces", "", "Namespace"),
    ("pods", "", "Pod"),
    ("services", "", "Service"),
    ("persistentvolumeclaims", "", "PersistentVolumeClaim"),
    ("persistentvolumes", "", "PersistentVolume"),
    ("configmaps", "", "ConfigMap"),
    ("secrets", "", "Secret"),
    ("serviceaccounts", "", "ServiceAccount"),
    ("resourcequotas", "", "ResourceQuota"),
    ("limitranges", "", "LimitRange"),
    ("deployments", "apps", "Deployment"),
    ("replicasets", "apps", "ReplicaSet"),
    ("statefulsets", "apps", "StatefulSet"),
    ("daemonsets", "apps", "DaemonSet"),
    ("jobs", "batch", "Job"),
    ("cronjobs", "batch", "CronJob"),
    ("endpointslices", "discovery.k8s.io", "EndpointSlice"),
    ("ingresses", "networking.k8s.io", "Ingress"),
    ("ingressclasses", "networking.k8s.io", "IngressClass"),
    ("networkpolicies", "networking.k8s.io", "NetworkPolicy"),
    ("poddisruptionbudgets", "policy", "PodDisruptionBudget"),
    ("horizontalpodautoscalers", "autoscaling", "HorizontalPodAutoscaler"),
    ("storageclasses", "storage.k8s.io", "StorageClass"),
    ("priorityclasses", "scheduling.k8s.io", "PriorityClass"),
    ("runtimeclasses", "node.k8s.io", "RuntimeClass"),
    ("leases", "coordination.k8s.io", "Lease"),
    ("roles", "rbac.authorization.k8s.io", "Role"),
    ("clusterroles", "rbac.authorization.k8s.io", "ClusterRole"),
    ("rolebindings", "rbac.authorization.k8s.io", "RoleBinding"),
    ("clusterrolebindings", "rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("customresourcedefinitions", "apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiservices", "apiregistration.k8s.io", "APIService"),
    ("validatingwebhookconfigurations", "admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("mutatingwebhookconfigurations", "admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("volumesnapshots", "snapshot.storage.k8s.io", "VolumeSnapshot"),
    ("gateways", "gateway.networking.k8s.io", "Gateway"),
    ("httproutes", "gateway.networking.k8s.io", "HTTPRoute"),
    ("referencegrants", "gateway.networking.k8s.io", "ReferenceGrant"),
];

/// The kind that a field of a state lists.
pub fn world_field(name: &str) -> Option<Kind> {
    WORLD_FIELDS.iter().find(|(field, _, _)| *field == name).map(|(_, group, kind)| Kind::new(group, kind))
}

/// Names kept for later, and names that users know from elsewhere, with what to do instead.
pub const UNSUPPORTED: &[(&str, &str)] = &[
    ("can", "questions about rights are not supported yet"),
    ("fits", "placement as a question is not supported yet"),
    ("schedulable", "placement as a question is not supported yet"),
    ("evictions", "evictions as a fault are not supported yet"),
    ("authorizer", "questions about rights are not supported yet"),
    ("object", "there is no `object`: `forEach` names the object, and `o.at(now)` is what becomes of it"),
    ("oldObject", "there is no `oldObject`: the `forEach` variable is the object as it was before"),
    ("namespaceObject", "there is no `namespaceObject`: look the namespace up in `before.namespaces`"),
    ("variables", "there is no `variables`: the names of `let` are variables themselves"),
    ("dyn", "`dyn` is not supported: every expression has a type"),
    ("format", "`format` is not supported: join strings with `+` and `string(..)`"),
    ("quantity", "quantities are not supported: `o.requests('cpu')` gives numbers"),
    ("isQuantity", "quantities are not supported: `o.requests('cpu')` gives numbers"),
    ("url", "URLs are not supported"),
    ("ip", "IP addresses are not supported"),
    ("cidr", "IP addresses are not supported"),
    ("sortBy", "`sortBy` is not supported: `sort` orders plain values"),
    ("find", "`find` is not supported: use `matches`, `indexOf` and `substring`"),
    ("findAll", "`findAll` is not supported: use `matches`, `indexOf` and `substring`"),
];
