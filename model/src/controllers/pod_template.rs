//! Whether two pod templates make the same pods.

use crate::object::Object;
use crate::steps;
use crate::value::Val;

/// What the API server fills in where a pod template says nothing (`pkg/apis/core/v1/zz_generated.defaults.go`,
/// `SetObjectDefaults_PodTemplate`), by the last part of a field's path.
const DEFAULTS: [(&str, Filled); 14] = [
    ("apiVersion", Filled::Text("v1")),
    ("defaultMode", Filled::Number(420)),
    ("dnsPolicy", Filled::Text("ClusterFirst")),
    ("enableServiceLinks", Filled::True),
    ("failureThreshold", Filled::Number(3)),
    ("periodSeconds", Filled::Number(10)),
    ("protocol", Filled::Text("TCP")),
    ("schedulerName", Filled::Text("default-scheduler")),
    ("scheme", Filled::Text("HTTP")),
    ("successThreshold", Filled::Number(1)),
    ("terminationGracePeriodSeconds", Filled::Number(30)),
    ("terminationMessagePath", Filled::Text("/dev/termination-log")),
    ("terminationMessagePolicy", Filled::Text("File")),
    ("timeoutSeconds", Filled::Number(1)),
];

enum Filled {
    Text(&'static str),
    Number(i64),
    True,
}

/// Whether two pod templates make the same pods: what means the same absent or empty, and what the API server fills in, is
/// left aside.
pub fn same(a: &Val, b: &Val) -> bool {
    let metadata = |val: &Val| val.get("metadata").map(kept);
    let spec = |val: &Val| val.get("spec").map(filled);
    a == b || (metadata(a) == metadata(b) && spec(a) == spec(b))
}

/// Whether a workload makes the same pods as before.
pub fn is_kept(before: &Object, now: &Object) -> bool {
    let template = |o: &Object| o.val().at(&["spec", "template"]).cloned().unwrap_or_default();
    same(&template(before), &template(now))
}

/// A value without fields that mean the same absent or empty.
fn kept(val: &Val) -> Val {
    without(val, &|_, key, _| key == "creationTimestamp")
}

/// A pod spec without those fields, and without what the API server fills in.
fn filled(spec: &Val) -> Val {
    without(spec, &|within, key, value| match key {
        // another name of serviceAccountName
        "serviceAccount" => true,
        // of a container it means something else
        "restartPolicy" => within.get("containers").is_some() && value.as_str().is_some_and(|s| &**s == "Always"),
        "imagePullPolicy" => value.as_str().is_some_and(|policy| **policy == *pull_policy(within)),
        _ => DEFAULTS.iter().any(|(known, filled)| {
            *known == key
                && match filled {
                    Filled::Text(text) => value.as_str().is_some_and(|s| &**s == *text),
                    Filled::Number(number) => value.as_int() == Some(*number),
                    Filled::True => *value == Val::Bool(true),
                }
        }),
    })
}

/// When a container's image is pulled, if it does not say (`pkg/apis/core/v1/defaults.go`, `SetDefaults_Container`).
fn pull_policy(container: &Val) -> &'static str {
    let image = container.str_at(&["image"]).map_or("", |image| &**image);
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    if tag == Some("latest") || (tag.is_none() && !digest) { "Always" } else { "IfNotPresent" }
}

/// A value without null and empty fields, and without those that `drops` says, which is given what they are in.
fn without(val: &Val, drops: &dyn Fn(&Val, &str, &Val) -> bool) -> Val {
    steps::count(4);
    match val {
        Val::Map(map) => Val::map(
            map.iter()
                .filter(|(key, value)| !drops(val, key, value))
                .map(|(key, value)| (key.clone(), without(value, drops)))
                .filter(|(_, v)| !matches!(v, Val::Null) && !matches!(v, Val::Map(m) if m.is_empty()))
                .collect(),
        ),
        Val::List(items) => Val::list(items.iter().map(|item| without(item, drops)).collect()),
        other => other.clone(),
    }
}
