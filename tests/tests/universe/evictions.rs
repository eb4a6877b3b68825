//! Handwritten invariants that must survive evictions beside the change.

use super::focus::Focus;

/// Name, focus and spec.
pub const BESIDE_EVICTIONS: &[(&str, Focus, &str)] = &[
    (
        "serves-beside-an-eviction",
        Focus::Services,
        "forEach: {var: svc, kind: Service}
under: {evictions: 1}
require:
- expression: '!svc.liveIn(now) || svc.endpoints(before).size() == 0 || svc.at(now).endpoints(now).size() > 0'
degree: '0 - svc.endpoints(now).size()'",
    ),
    (
        "half-beside-evictions",
        Focus::Budgets,
        "forEach: {var: d, kinds: [Deployment, StatefulSet, ReplicaSet, DaemonSet, Db]}
under: {evictions: 2}
let: {had: 'before.podsOwnedBy(d).filter(p, p.ready())'}
require:
- expression: 'had.filter(p, p.existsIn(now) && p.at(now).ready()).size() * 2 >= had.size()'",
    ),
    (
        "settles-beside-evictions",
        Focus::Quorum,
        "forEach: {var: d, kinds: [Deployment, StatefulSet]}
hold: After
under: {evictions: 2}
require:
- expression: '!d.liveIn(now) || now.podsOwnedBy(d).size() >= d.at(now).wantedReplicas(now)'",
    ),
    (
        "claims-beside-an-eviction",
        Focus::Claims,
        "forEach: {var: pvc, kind: PersistentVolumeClaim}
under: {evictions: 1}
require:
- expression: \"pvc.existsIn(now) || !pvc.referrers(before).exists(r, r.kind == 'Pod' && r.ready())\"
- expression: \"!pvc.liveIn(now) || pvc.referrers(before).size() == 0 || pvc.referrers(now).exists(r, r.kind == 'Pod')\"",
    ),
    (
        "owned-beside-evictions",
        Focus::Owners,
        "forEach: {var: o, kinds: [ConfigMap, Secret, PersistentVolumeClaim, Pod]}
under: {evictions: 2}
require:
- expression: 'o.existsIn(now) || o.owners().size() == 0'",
    ),
    (
        "pods-beside-evictions",
        Focus::Pods,
        "forEach: {var: ns, kind: Namespace}
under: {evictions: 2}
require:
- expression: \"before.inNamespace(ns.metadata.name, 'Pod').size() < 3 || now.inNamespace(ns.metadata.name, 'Pod').exists(p, p.ready())\"
degree: \"0 - now.inNamespace(ns.metadata.name, 'Pod').filter(p, p.ready()).size()\"",
    ),
];
