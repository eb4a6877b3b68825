//! Whatever a snapshot answers otherwise than before, its journal tells; and what an event has nothing to do with stays.

use std::sync::Arc;

use super::super::{Lack, Lacks, Snapshot, Usage, lacking_kinds};
use super::{FactIndex, Facts, PART_LEN, PARTS_MAX};
use crate::adapter::{AdapterFacts, Adapters};
use crate::fields::NodeConstraint;
use crate::ingest::objects;
use crate::kinds::Kind;
use crate::object::Object;
use crate::testing::{key, numbers, val};
use crate::value::Val;

/// Versions of objects, of several keys.
const VERSIONS: [&str; 24] = [
    "{kind: Pod, metadata: {name: p, namespace: a, uid: p, labels: {app: x}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: n, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}",
    "{kind: Pod, metadata: {name: p, namespace: a, uid: p, deletionTimestamp: x, labels: {app: y}}, spec: {nodeName: m, nodeSelector: {pool: x}, volumes: [{name: v, configMap: {name: c}}]}}",
    "{kind: Pod, metadata: {name: p, namespace: a, uid: p2, labels: {app: x}}, spec: {priorityClassName: high, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}}]}}}}",
    "{kind: Pod, metadata: {name: q, namespace: a, uid: q, labels: {app: x}}, spec: {nodeName: n, priorityClassName: high, nodeSelector: {pool: x}}}",
    "{kind: Pod, metadata: {name: p, namespace: b, uid: pb, labels: {app: x}}, spec: {nodeName: n, priority: -1}}",
    "{kind: Node, metadata: {name: n, labels: {pool: x}}}",
    "{kind: Node, metadata: {name: n, labels: {pool: y}}}",
    "{kind: Node, metadata: {name: m, labels: {pool: x}}}",
    "{kind: Service, metadata: {name: s, namespace: a, uid: s}, spec: {selector: {app: x}}}",
    "{kind: Service, metadata: {name: s, namespace: a, uid: s}, spec: {selector: {a: b, app: x}}}",
    "{kind: ConfigMap, metadata: {name: c, namespace: a, uid: c}}",
    "{kind: ConfigMap, metadata: {name: c, namespace: a, uid: c, ownerReferences: [{apiVersion: v1, kind: Secret, name: k, uid: r}]}}",
    "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: a, uid: i}, spec: {rules: [{host: h}]}}",
    "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: a, uid: i}, spec: {rules: [{host: g}]}}",
    "{kind: PersistentVolume, metadata: {name: v}, spec: {claimRef: {namespace: a, name: c}}}",
    "{kind: PersistentVolume, metadata: {name: v}, spec: {nodeAffinity: {required: {nodeSelectorTerms: []}}}}",
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {nodeSelector: {pool: x}}}}}",
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r}, spec: {selector: {matchLabels: {app: x}}, replicas: 0, template: {metadata: {labels: {app: y}}, spec: {topologySpreadConstraints: [{topologyKey: zone}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}}}}}",
    "{kind: Secret, metadata: {name: k, namespace: b, uid: k}}",
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: a}, subjects: [{kind: ServiceAccount, name: s}]}",
    "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: b, uid: w, deletionTimestamp: x}}",
    "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: b, uid: w}}",
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: a, uid: h}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: r}}}",
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: a, uid: h}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: s}}}",
];

fn version(text: &str) -> Object {
    let text =
        if text.starts_with("{apiVersion") { text.to_owned() } else { text.replacen('{', "{apiVersion: v1, ", 1) };
    objects(&val(&text)).unwrap().remove(0)
}

/// Of a Widget that is not being deleted it says that its operator makes a ConfigMap.
#[derive(Debug)]
struct OfWidgets;

impl Adapters for OfWidgets {
    fn facts(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        let children = object.live().then(|| vec![key("ConfigMap/a/c")]);
        let errors = if object.live() { Vec::new() } else { vec!["replicas: it goes".to_owned()] };
        let facts = || Arc::new(AdapterFacts { children, errors, ..AdapterFacts::default() });
        (&*object.key.kind.kind == "Widget").then(facts)
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::new("example.org", "Widget")]
    }
}

/// A way to read a snapshot, and what it says.
type Reading = (&'static str, fn(&Snapshot) -> String);

fn said<'o>(found: impl IntoIterator<Item = &'o Arc<Object>>) -> String {
    found.into_iter().map(|object| format!("{} {:?};", object.key, object.val())).collect()
}

fn kind(name: &str) -> Kind {
    Kind::builtin(name).unwrap()
}

fn labels() -> Val {
    val("{app: x}")
}

const READINGS: &[Reading] = &[
    ("unknown", |s| format!("{:?}", s.unknown())),
    ("get", |s| said(s.get(&key("Pod/a/p")))),
    ("get a node", |s| said(s.get(&key("Node/n")))),
    ("by_uid", |s| said(s.by_uid("p"))),
    ("iter", |s| said(s.iter())),
    ("list", |s| said(s.list(&kind("Pod"), None))),
    ("list a namespace", |s| said(s.list(&kind("Pod"), Some("a")))),
    ("iter_kind", |s| said(s.iter_kind(&kind("Pod")))),
    ("read_kinds", |s| {
        // what it is told of reads past the index of facts
        s.read_kinds([kind("Pod")]);
        said(s.by_key.values().filter_map(|slot| s.at(*slot)).filter(|object| object.key.kind == kind("Pod")))
    }),
    ("in_namespace", |s| said(s.in_namespace("b"))),
    ("kinds", |s| format!("{:?}", s.kinds())),
    ("has_kind", |s| format!("{:?}", ["Pod", "Node"].map(|name| s.has_kind(&kind(name))))),
    ("owned_by", |s| said(s.owned_by("r"))),
    ("owns", |s| format!("{} {}", s.owns(&kind("ReplicaSet")), s.owns(&kind("Secret")))),
    ("pods_on", |s| said(s.pods_on("n"))),
    ("pools", |s| {
        format!("{:?}", s.pools().iter().map(|(_, pool)| (pool.nodes(), pool.is_calm())).collect::<Vec<_>>())
    }),
    ("busiest", |s| {
        let busiest = |(_, pool): (usize, &super::super::Pool)| pool.busiest(|node| s.usage(node));
        format!("{:?}", s.pools().iter().map(busiest).collect::<Vec<Usage>>())
    }),
    ("usage", |s| format!("{:?}", s.usage("n"))),
    ("selecting", |s| said(s.selecting(&"a".into(), &labels()))),
    ("asking_beside", |s| said(s.asking_beside(&"a".into(), &labels()))),
    ("labelled", |s| said(s.labelled("a", &"app".into(), &"x".into()))),
    ("claiming", |s| said(s.claiming("h", "/"))),
    ("keeping_apart", |s| said(s.keeping_apart("a"))),
    ("claimed_by", |s| said(s.claimed_by("a", "c"))),
    ("node_constraints", |s| format!("{:?}", s.node_constraints().collect::<Vec<_>>())),
    ("constrained", |s| {
        let constraint = NodeConstraint::of(&version(VERSIONS[3])).unwrap();
        s.constrained(&constraint, |_| true).into_iter().map(said).collect()
    }),
    ("constrained by nothing", |s| s.constrained(&NodeConstraint::default(), |_| true).into_iter().map(said).collect()),
    ("admitted", |s| said(&*s.admitted(&val("{nodeSelector: {pool: x}}")))),
    ("missing_nodes", |s| format!("{:?}", s.missing_nodes())),
    ("ending", |s| said(s.ending())),
    ("spreading", |s| said(s.spreading())),
    ("listing", |s| said(s.listing(&key("ConfigMap/a/c")))),
    ("binding", |s| said(s.binding("a", "s"))),
    ("following", |s| said(s.following())),
    ("ranked", |s| said(s.ranked())),
    ("waiting", |s| said(s.waiting())),
    ("failing", |s| said(s.failing())),
    ("low", |s| said(s.low(""))),
    ("low by class", |s| said(s.low("high"))),
    ("related_to", |s| said(s.related_to("a", &labels()))),
    ("fleeting", |s| said(s.fleeting())),
    ("leaving", |s| said(s.leaving())),
    ("missing_owners", |s| format!("{:?}", s.missing_owners())),
    ("lacking", |s| {
        // what it is told of is found past the index of facts
        let live =
            |kind: &Kind| s.by_key.values().filter_map(|slot| s.at(*slot)).filter(|o| o.key.kind == *kind).count();
        let number = |n: usize| (key(&format!("Pod/a/{n}")), Lack::Now);
        let found = s.lacking(|_, _| lacking_kinds().iter().map(live).map(number).collect());
        format!("{found:?}")
    }),
    ("referrers", |s| said(s.referrers(&key("ConfigMap/a/c")))),
    ("referrers that scale", |s| said(s.referrers(&key("ReplicaSet/a/r")))),
    ("len", |s| format!("{} {}", s.len(), s.is_empty())),
];

#[test]
fn what_is_answered_otherwise_was_changed_by_an_event() {
    let (mut differed, mut stayed) = (vec![0; READINGS.len()], vec![0; READINGS.len()]);
    for seed in 0..32 {
        let mut number = numbers(seed);
        let mut now = Snapshot::new(Arc::new(OfWidgets));
        let mut past: Vec<(Snapshot, Vec<(String, Facts)>)> = Vec::new();
        for _ in 0..25 {
            let at = number(VERSIONS.len());
            let object = version(VERSIONS[at]);
            match number(10) {
                0 => now.mark_unknown("Widget"),
                1 => now.set_unknown(["Secret".into()].into()),
                2 | 3 => drop(now.remove(&object.key)),
                // the past goes another way
                4 if !past.is_empty() => now = past.swap_remove(number(past.len())).0,
                _ => now.insert(object),
            }
            let read: Vec<_> = READINGS.iter().map(|(_, reading)| Facts::read_by(|| reading(&now))).collect();
            for (at, ((name, _), (here, facts))) in READINGS.iter().zip(&read).enumerate() {
                for (other, read_there) in &past {
                    let (there, facts_there) = &read_there[at];
                    differed[at] += usize::from(here != there);
                    let same = other.unchanged_since(now.last_event(), facts);
                    assert!(here == there || !same, "{name}, seed {seed}: {here}\n--- and\n{there}");
                    let same = now.unchanged_since(other.last_event(), facts_there);
                    assert!(here == there || !same, "{name}, seed {seed}: {there}\n--- and then\n{here}");
                    stayed[at] += usize::from(same);
                }
            }
            past.push((now.clone(), read));
        }
    }
    let never: Vec<&str> =
        READINGS.iter().zip(&differed).filter(|(_, n)| **n == 0).map(|((name, _), _)| *name).collect();
    assert_eq!(never, [""; 0], "never differed");
    let always: Vec<&str> =
        READINGS.iter().zip(&stayed).filter(|(_, n)| **n == 0).map(|((name, _), _)| *name).collect();
    assert_eq!(always, [""; 0], "looked changed by every event");
}

#[test]
fn lists_are_of_the_kinds_that_there_are() {
    let (mut number, mut snapshot) = (numbers(1), Snapshot::default());
    let (mut came, mut went) = (0, 0);
    for _ in 0..400 {
        let object = version(VERSIONS[number(VERSIONS.len())]);
        let (kind, before) = (object.key.kind.clone(), snapshot.kinds());
        match number(2) {
            0 => drop(snapshot.remove(&object.key)),
            _ => snapshot.insert(object),
        }
        let mut kinds: Vec<_> = snapshot.iter().map(|object| object.key.kind.clone()).collect();
        let listed = snapshot.list(&kind, None).len();
        assert_eq!(listed, kinds.iter().filter(|known| **known == kind).count());
        kinds.sort();
        kinds.dedup();
        assert_eq!(snapshot.kinds(), kinds);
        came += usize::from(kinds.len() > before.len());
        went += usize::from(kinds.len() < before.len());
    }
    assert!(came > 0 && went > 0, "{came} {went}");
}

#[test]
fn what_an_event_has_nothing_to_do_with_stays() {
    let mut snapshot = Snapshot::default();
    VERSIONS.iter().for_each(|text| snapshot.insert(version(text)));
    let before = snapshot.clone();
    snapshot.insert(version("{kind: ConfigMap, metadata: {name: d, namespace: c, uid: d}}"));
    let changes = |(_, reading): &&Reading| {
        let (_, facts) = Facts::read_by(|| reading(&before));
        !snapshot.unchanged_since(before.last_event(), &facts)
    };
    let changed: Vec<&str> = READINGS.iter().filter(changes).map(|(name, _)| *name).collect();
    assert_eq!(changed, ["iter", "len"]);
}

#[test]
fn what_only_tells_of_pods_leaves_those_that_lack_some() {
    let mut snapshot = Snapshot::default();
    VERSIONS.iter().for_each(|text| snapshot.insert(version(text)));
    let mut changed = Vec::new();
    for text in [VERSIONS[1], VERSIONS[16], VERSIONS[5], VERSIONS[10], VERSIONS[14]] {
        let object = version(text);
        snapshot.insert(object.clone());
        let before = snapshot.clone();
        snapshot.insert(object.map_body(|of| of.with_at(&["status"], val("{observed: true}"))));
        let (_, facts) = Facts::read_by(|| before.lacking(|_, _| Lacks::new()));
        let status = !snapshot.unchanged_since(before.last_event(), &facts);
        let before = snapshot.clone();
        drop(snapshot.remove(&object.key));
        changed.push((status, !snapshot.unchanged_since(before.last_event(), &facts)));
    }
    // what goes does not, if workloads have to do with it
    assert_eq!(changed, [(false, false), (false, true), (false, true), (false, false), (false, false)]);
}

#[test]
fn snapshots_that_are_no_copies_have_nothing_in_common() {
    let snapshot = Snapshot::default();
    let ((), facts) = Facts::read_by(|| ());
    assert!(snapshot.clone().unchanged_since(snapshot.last_event(), &facts));
    assert!(!Snapshot::default().unchanged_since(snapshot.last_event(), &facts));
    let mut later = snapshot.clone();
    later.insert(version(VERSIONS[0]));
    assert!(later.unchanged_since(snapshot.last_event(), &facts));
    assert!(!snapshot.unchanged_since(later.last_event(), &facts), "it has not seen that yet");
}

#[test]
fn what_is_long_ago_is_not_known_to_stay() {
    let before = Snapshot::default();
    let ((), facts) = Facts::read_by(|| ());
    let (mut snapshot, object) = (before.clone(), version(VERSIONS[0]));
    for _ in 0..100 {
        snapshot.insert(object.clone());
    }
    assert!(snapshot.unchanged_since(before.last_event(), &facts));
    for _ in 0..PARTS_MAX * PART_LEN {
        snapshot.insert(object.clone());
    }
    assert!(!snapshot.unchanged_since(before.last_event(), &facts));
}

#[test]
fn work_within_work_is_told_to_both() {
    let snapshot = Snapshot::default();
    let uid = |uid: &str| drop(snapshot.by_uid(uid).cloned());
    let (inner, outer) = Facts::read_by(|| {
        uid("a");
        Facts::read_by(|| uid("b")).1
    });
    let [a, b] = ["a", "b"].map(|name| Facts::read_by(|| uid(name)).1);
    assert_eq!((inner.len(), outer.len()), (2, 3));
    assert!(outer.meets(&inner));
    let index = |facts: &Facts| {
        let mut index = FactIndex::default();
        index.insert(facts, 7);
        index
    };
    // a fact of its own tells each apart from what both read
    assert_eq!([&a, &b].map(|facts| index(&inner).find(facts).len()), [1, 1]);
    let mut emptied = index(&outer);
    emptied.remove(&outer, 7);
    assert!(emptied.find(&outer).is_empty());
}

#[test]
fn what_an_object_may_change_is_all_that_its_events_change() {
    for seed in 0..8 {
        let mut number = numbers(seed);
        let mut now = Snapshot::new(Arc::new(OfWidgets));
        for _ in 0..60 {
            let object = version(VERSIONS[number(VERSIONS.len())]);
            let (event, goes) = (now.last_event(), number(3) == 0);
            let old = now.get(&object.key).cloned();
            let may = now.facts_between(old.as_deref(), (!goes).then_some(&object));
            if goes {
                drop(now.remove(&object.key))
            } else {
                now.insert(object)
            }
            let changed = now.changed_since(event).unwrap();
            assert!(changed.is_within(&may), "seed {seed}: an event changed what its object does not say");
        }
    }
}

#[test]
fn every_way_to_read_a_snapshot_is_tried() {
    let source = include_str!("../../snapshot.rs");
    let methods =
        source.lines().filter_map(|line| line.strip_prefix("    pub fn ")).filter(|line| line.contains("(&self"));
    let name = |text: &'static str| text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
    let tried: Vec<_> = READINGS.iter().filter_map(|(reading, _)| name(reading)).collect();
    // what is fixed as long as the adapters are, and what is no reading
    let others = [
        "adapter",
        "adapters",
        "with_adapters",
        "last_event",
        "unchanged_since",
        "changed_since",
        "facts_between",
        "is_empty",
    ];
    let missing: Vec<_> = methods.filter_map(name).filter(|n| !tried.contains(n) && !others.contains(n)).collect();
    assert_eq!(missing, [""; 0]);
}
