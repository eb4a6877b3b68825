//! The invariants that are compared: every shipped template with several values of its parameters, and handwritten ones
//! that use the language in other ways.

use std::collections::BTreeMap;
use std::sync::Arc;

use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::library::Library;
use suture_specs::spec::{Spec, parse_specs};

use super::evictions::BESIDE_EVICTIONS;
use super::focus::Focus;
use super::random::Random;

/// One invariant of the pool.
#[derive(Debug)]
struct Entry {
    /// The template, or the handwritten invariant's name: what counts are kept by.
    family: String,
    focus: Focus,
    text: String,
    compiled: Arc<CompiledInvariant>,
}

/// The invariants, compiled.
#[derive(Debug)]
pub struct Pool {
    entries: Vec<Entry>,
    families: Vec<(String, Vec<usize>)>,
}

/// Template, focus, and parameters in flow style, each a variant; a variant may end with fields of the invariant itself.
const TEMPLATES: &[(&str, Focus, &[&str])] = &[
    (
        "service-keeps-endpoints",
        Focus::Services,
        &["", "{floor: 2}", "{floor: 50%}", "{floor: 100%}", "{} violations: Strict"],
    ),
    ("serving-service-kept", Focus::Services, &["", "{} match: {namespaces: [a]}"]),
    (
        "service-survives-fault",
        Focus::Faults,
        &["", "{floor: 2}", "{nodeFailures: 2}", "{nodeFailures: 0, zoneFailures: 1}", "{zoneFailures: 1, floor: 50%}"],
    ),
    ("selector-keeps-matches", Focus::Selectors, &["", "{floor: 2}", "{floor: 100%}"]),
    ("quorum-kept", Focus::Quorum, &["", "", "{members: {matchLabels: {app: x}}}"]),
    (
        "quorum-survives-fault",
        Focus::Faults,
        &["", "{nodeFailures: 0, zoneFailures: 1}", "{members: {matchLabels: {app: x}}}", "{nodeFailures: 2}"],
    ),
    ("volume-in-use-kept", Focus::Claims, &[""]),
    ("data-recoverable", Focus::Claims, &[""]),
    ("references-resolve", Focus::References, &["", "{kinds: [Secret]}"]),
    ("owner-references-resolve", Focus::Owners, &[""]),
    ("live-child-kept", Focus::Owners, &["", "{except: []}"]),
    ("crd-without-instances", Focus::Definitions, &[""]),
    ("serving-namespace-kept", Focus::Namespaces, &[""]),
    ("pdb-allows-disruption", Focus::Budgets, &[""]),
    ("unique-host", Focus::Hosts, &[""]),
    ("critical-workload-kept", Focus::Selectors, &["{namespaces: [a]}"]),
    ("ports-resolve", Focus::Services, &["", "{created: false}"]),
    ("webhook-backend-kept", Focus::Services, &["", "{introduced: false}"]),
    ("webhook-not-self-blocking", Focus::Namespaces, &[""]),
    ("local-traffic-has-endpoints", Focus::Services, &[""]),
    ("autoscaled-replicas-kept", Focus::Budgets, &["", "{percent: 0}"]),
    ("idle-workload-has-activator", Focus::Budgets, &[""]),
    ("one-member-at-a-time", Focus::Quorum, &["", "{members: {matchLabels: {app: x}}}"]),
    ("quorum-has-pdb", Focus::Budgets, &["", "{members: {matchLabels: {app: x}}}"]),
    ("bound-volume-kept", Focus::Claims, &[""]),
    ("retained-volume-kept", Focus::Claims, &["{selector: {}}", "{approvers: [kubernetes-admin], selector: {}}"]),
    ("no-stale-volume-adopted", Focus::Claims, &[""]),
    ("controller-kept", Focus::Owners, &[""]),
    ("child-follows-owner", Focus::Owners, &[""]),
    ("finalizer-respected", Focus::Claims, &[""]),
    ("selectors-disjoint", Focus::Selectors, &[""]),
    ("no-stray-adoption", Focus::Pods, &[""]),
    ("pdbs-disjoint", Focus::Budgets, &[""]),
    ("pdb-evaluable", Focus::Budgets, &[""]),
    ("batch-bounded", Focus::Capacity, &["{pods: 3}", "{pods: 1}"]),
    (
        "data-stays-resident",
        Focus::Faults,
        &["{label: app, zones: {x: [z1], y: [z2]}}", "{label: app, zones: {x: [z1]}}"],
    ),
    ("rights-kept", Focus::Rights, &[""]),
    (
        "workload-schedulable",
        Focus::Room,
        &["", "{nodeFailures: 1}", "{autoscaled: false}", "{growing: {}}", "{growing: {matchLabels: {disk: ssd}}}"],
    ),
    ("rollout-can-progress", Focus::Room, &["", "{judges: [place]}", "{growing: {}}"]),
    (
        "critical-not-preempted",
        Focus::Room,
        &["{priority: 0}", "{priority: 5, floor: 50%}", "{selector: {matchLabels: {app: x}}, floor: 1}"],
    ),
    ("single-writer", Focus::Writers, &[""]),
    ("quota-fits", Focus::Capacity, &[""]),
    (
        "tenant-lease-kept",
        Focus::Capacity,
        &["{leases: {t1: {cpu: 3}, t2: {pods: 2}}}", "{surge: true, leases: {t1: {cpu: 4, pods: 6}}}"],
    ),
];

/// Name, focus, and the spec of handwritten invariants.
const HANDWRITTEN: &[(&str, Focus, &str)] = &[
    (
        "design-example",
        Focus::Faults,
        "forEach: {var: sts, kind: StatefulSet, apiGroup: apps, selector: {matchLabels: {suture.dev/quorum: 'true'}}}
hold: During
under: {nodeFailures: 1}
let: {members: 'before.podsOwnedBy(sts)'}
require:
- expression: 'members.filter(p, p.existsIn(now) && p.at(now).ready()).size() * 2 > members.size()'
degree: 'members.size() - members.filter(p, p.existsIn(now) && p.at(now).ready()).size()'",
    ),
    (
        "unguarded-at",
        Focus::Pods,
        "forEach: {var: sts, kind: StatefulSet}
require:
- expression: 'before.podsOwnedBy(sts).exists(p, p.at(now).ready()) || sts.wantedReplicas(before) == 0'",
    ),
    (
        "mapped-pods",
        Focus::Pods,
        "forEach: {var: sts, kind: StatefulSet}
require:
- expression: 'before.podsOwnedBy(sts).map(p, p.at(now).ready()).size() >= 0 || sts.wantedReplicas(before) == 0'",
    ),
    (
        "distinct-nodes",
        Focus::Quorum,
        "forEach: {var: sts, kind: StatefulSet}
let:
  nodes: \"before.podsOwnedBy(sts).filter(p, p.existsIn(now)).map(p, p.?spec.?nodeName.orValue(''))\"
require:
- expression: 'nodes.distinct().size() >= 2 || nodes.max() == nodes.sort().min()'",
    ),
    (
        "nodes-left",
        Focus::Quorum,
        "forEach: {var: sts, kind: StatefulSet}
let:
  was: \"before.podsOwnedBy(sts).map(p, p.?spec.?nodeName.orValue(''))\"
  is: \"before.podsOwnedBy(sts).filter(p, p.existsIn(now)).map(p, p.?spec.?nodeName.orValue(''))\"
require:
- expression: \"was.without(is).size() <= 1 && is.without(['']).size() >= 1\"
degree: 'was.without(is).size()'",
    ),
    (
        "few-pods",
        Focus::Pods,
        "forEach: {var: ns, kind: Namespace}
require:
- expression: 'now.pods.filter(p, p.metadata.namespace == ns.metadata.name && !p.terminating()).size() <= 3'
degree: 'now.pods.filter(p, p.metadata.namespace == ns.metadata.name && !p.terminating()).size()'",
    ),
    (
        "few-matching-settled",
        Focus::Pods,
        "forEach: {var: ns, kind: Namespace}
hold: After
require:
- expression: \"now.podsMatching(ns.metadata.name, {'app': 'x'}).filter(p, p.ready()).size() <= 2\"",
    ),
    (
        "few-lost-at-once",
        Focus::Pods,
        "forEach: {var: svc, kind: Service}
hold: AtOnce
require:
- expression: '!svc.liveIn(now) || svc.at(now).endpoints(now).size() >= svc.endpoints(before).size() - 1'",
    ),
    (
        "by-name",
        Focus::Pods,
        "forEach: {var: svc, kind: Service}
require:
- expression: \"svc.endpoints(before).all(p, svc.selects(now).exists(q, q.metadata.name == p.metadata.name && q.live()))\"
  message: an endpoint is lost",
    ),
    (
        "first-replica",
        Focus::Quorum,
        "forEach: {var: sts, kind: StatefulSet}
require:
- expression: \"!before.podsOwnedBy(sts).exists(p, p.metadata.name.endsWith('-0') && p.ready())
    || now.podsOwnedBy(sts).exists(p, p.metadata.name.endsWith('-0') && p.ready())\"",
    ),
    (
        "not-all-on-one-node",
        Focus::Selectors,
        "forEach: {var: svc, kind: Service}
hold: After
require:
- expression: \"before.nodes.all(n, svc.selects(now).filter(p, p.ready() && p.?spec.?nodeName.orValue('') == n.metadata.name).size() <= 1)\"",
    ),
    (
        "in-zone",
        Focus::Faults,
        "forEach: {var: svc, kind: Service}
under: {nodeFailures: 1}
violations: Strict
require:
- expression: \"!svc.liveIn(now) || svc.endpoints(before).size() == 0 || svc.endpoints(now).exists(p, p.zone() == 'z1')\"",
    ),
    (
        "exactly-one",
        Focus::Services,
        "forEach: {var: svc, kind: Service, where: 'svc.endpoints(before).size() == 1'}
require:
- expression: 'svc.selects(now).exists_one(p, p.ready())'",
    ),
    (
        "all-owned-ready",
        Focus::Pods,
        "forEach: {var: d, kinds: [Deployment, ReplicaSet, DaemonSet, Db]}
hold: After
require:
- expression: 'now.podsOwnedBy(d).all(p, p.ready())'
degree: 'now.podsOwnedBy(d).filter(p, !p.ready()).size()'",
    ),
    (
        "as-many-as-wanted",
        Focus::Pods,
        "forEach: {var: d, kinds: [Deployment, StatefulSet]}
hold: After
require:
- expression: '!d.liveIn(now) || now.podsOwnedBy(d).size() >= d.at(now).wantedReplicas(now)'",
    ),
    (
        "sum-of-requests",
        Focus::Pods,
        "forEach: {var: ns, kind: Namespace}
require:
- expression: \"now.pods.filter(p, p.metadata.namespace == ns.metadata.name).map(p, p.requests('cpu')).sum() <= 1500\"",
    ),
    (
        "halves",
        Focus::Services,
        "forEach: {var: svc, kind: Service}
let:
  up: 'svc.selects(now).filter(p, p.ready()).size()'
  all: 'svc.selects(now).size()'
require:
- expression: 'all == 0 || up >= all / 2'
- expression: 'math.greatest(up, 1) <= 4'
degree: 'all - up'",
    ),
    (
        "other-services",
        Focus::Services,
        "forEach: {var: ns, kind: Namespace}
require:
- expression: \"before.services.filter(s, s.metadata.namespace == ns.metadata.name && s.endpoints(before).size() > 0)
    .all(s, !s.liveIn(now) || s.at(now).endpoints(now).size() > 0)\"",
    ),
    (
        "secret-kept",
        Focus::References,
        "forEach: {var: d, kinds: [Deployment, StatefulSet]}
require:
- expression: \"!before.has('Secret', d.metadata.namespace, 's1') || now.has('Secret', d.metadata.namespace, 's1')\"
violations: Strict",
    ),
    (
        "requester",
        Focus::Owners,
        "forEach: {var: o, kinds: [Secret, ConfigMap, Db]}
require:
- expression: \"o.liveIn(now) || (request.user.username == 'kubernetes-admin' && request.operation == 'DELETE')\"",
    ),
    (
        "nodes-left",
        Focus::Faults,
        "forEach: {var: ns, kind: Namespace}
under: {nodeFailures: 1}
require:
- expression: \"now.nodes.exists(n, n.live() && !n.?spec.?unschedulable.orValue(false)
    && n.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True'))\"",
    ),
    (
        "either-service",
        Focus::Faults,
        "forEach: {var: ns, kind: Namespace}
under: {nodeFailures: 2}
let: {serving: 'before.services.filter(s, s.metadata.namespace == ns.metadata.name && s.endpoints(before).size() > 0)'}
require:
- expression: \"serving.size() < 2 || serving.exists(s, s.liveIn(now) && s.endpoints(now).size() > 0)\"",
    ),
    (
        "pods-by-list",
        Focus::Pods,
        "forEach: {var: ns, kind: Namespace}
require:
- expression: \"now.inNamespace(ns.metadata.name, 'Pod').filter(p, p.live()).size() <= 2\"
- expression: \"now.objects('Pod').filter(p, p.isSelectedBy({'app': 'x'}) && p.metadata.namespace == ns.metadata.name).size() >= before.objects('Pod').filter(p, p.label('app') == 'x' && p.metadata.namespace == ns.metadata.name).size() - 1\"",
    ),
    (
        "claim-still-used",
        Focus::Claims,
        "forEach: {var: pvc, kind: PersistentVolumeClaim}
require:
- expression: \"!pvc.referrers(before).exists(r, r.kind == 'Pod') || pvc.referrers(now).exists(r, r.kind == 'Pod')\"
- expression: 'pvc.referrers(now).size() <= 2'",
    ),
    (
        "secret-users",
        Focus::References,
        "forEach: {var: s, kinds: [Secret, ConfigMap]}
hold: After
require:
- expression: 's.liveIn(now) || s.referrers(now).size() == 0'
degree: 's.referrers(now).size()'",
    ),
    (
        "zones-and-nodes",
        Focus::Faults,
        "forEach: {var: svc, kind: Service}
hold: After
under: {nodeFailures: 1, zoneFailures: 1}
require:
- expression: 'svc.endpoints(before).size() == 0 || svc.endpoints(now).size() > 0'
degree: '0 - svc.endpoints(now).size()'",
    ),
    (
        "spread-settled",
        Focus::Selectors,
        "forEach: {var: d, kinds: [Deployment, StatefulSet, ReplicaSet]}
hold: After
require:
- expression: \"now.podsOwnedBy(d).filter(p, p.ready()).size() < 2 || now.podsOwnedBy(d).exists(p, p.ready() && p.zone() == 'z2')\"",
    ),
    (
        "selected-by",
        Focus::Selectors,
        "forEach: {var: o, kinds: [Pod, Deployment, StatefulSet, DaemonSet, Db]}
require:
- expression: \"!o.liveIn(now) || o.at(now).selectedBy(now).filter(s, s.kind == 'Service' && s.live()).size() <= 1\"
degree: \"o.liveIn(now) ? o.at(now).selectedBy(now).size() : 0\"",
    ),
    (
        "scaled",
        Focus::Budgets,
        "forEach: {var: o, kinds: [HorizontalPodAutoscaler, Db]}
require:
- expression: \"!o.liveIn(now) || o.scaled(before).size() == 0 || o.at(now).scaled(now).exists(t, t.live())\"",
    ),
    (
        "autoscalers",
        Focus::Budgets,
        "forEach: {var: o, kinds: [Deployment, StatefulSet, Db]}
require:
- expression: \"!o.liveIn(now) || o.autoscalers(before).size() == 0 || o.at(now).autoscalers(now).exists(a, a.live()
    && a.replicaRange().size() == 2)\"
- expression: '!o.liveIn(now) || o.at(now).podSpec().?containers.orValue([]).size() < 9'",
    ),
    (
        "targets",
        Focus::References,
        "forEach: {var: o, kinds: [Pod, Deployment, StatefulSet, Ingress]}
require:
- expression: \"!o.liveIn(now) || o.at(now).references().all(r, r.optional || r.target(now).exists(t, t.live()))\"",
    ),
    (
        "cascaded",
        Focus::Claims,
        "forEach: {var: o, kinds: [Db]}
require:
- expression: 'o.existsIn(now) || o.cascaded(now).size() == 0'
degree: 'o.cascaded(now).size()'",
    ),
    (
        "unscaled",
        Focus::Budgets,
        "forEach: {var: b, kind: PodDisruptionBudget}
require:
- expression: '!b.liveIn(now) || b.at(now).unscaled(now).size() == 0'
degree: 'b.liveIn(now) ? b.at(now).unscaled(now).size() : 0'",
    ),
    (
        "owner-stays",
        Focus::Owners,
        "forEach: {var: o, kind: '*', where: 'o.existsIn(before) && o.ownersIn(before).size() > 0'}
require:
- expression: '!o.existsIn(now) || o.ownersIn(now).exists(w, w.live())'",
    ),
    (
        "settled-endpoints",
        Focus::Services,
        "forEach: {var: svc, kind: Service, where: 'svc.endpoints(before).size() > 0'}
hold: After
under: {remade: true}
require:
- expression: '!svc.liveIn(now) || svc.at(now).endpoints(now).size() >= 1'",
    ),
    (
        "remade-where-they-were",
        Focus::Quorum,
        "forEach: {var: o, kinds: [Db, StatefulSet]}
hold: After
under: {remade: true}
require:
- expression: \"!o.liveIn(now) || before.podsOwnedBy(o).filter(p, p.ready()).all(p, now.podsOwnedBy(o).exists(q,
    q.metadata.name == p.metadata.name && q.?spec.?nodeName.orValue('') == p.?spec.?nodeName.orValue('')))\"",
    ),
    (
        "remade-under-faults",
        Focus::Faults,
        "forEach: {var: svc, kind: Service}
hold: After
under: {remade: true, nodeFailures: 1}
require:
- expression: 'svc.endpoints(before).size() < 2 || svc.endpoints(now).size() > 0'
degree: '0 - svc.endpoints(now).size()'",
    ),
    (
        "meant",
        Focus::Owners,
        "forEach: {var: o, kinds: [ConfigMap, Secret, PersistentVolumeClaim, Service, Deployment, StatefulSet, Db]}
require:
- expression: '!o.existsIn(before) || o.liveIn(now) || o.meant(now)'
degree: 'o.existsIn(now) ? 0 : 1'",
    ),
    (
        "meant-itself",
        Focus::Namespaces,
        "forEach: {var: o, kinds: [Namespace, PersistentVolumeClaim, Service, Ingress, Deployment, StatefulSet]}
hold: After
require:
- expression: '!o.existsIn(before) || o.liveIn(now) || o.meant(now, false)'",
    ),
    (
        "meant-targets",
        Focus::References,
        "forEach: {var: o, kinds: [Pod, Deployment, StatefulSet]}
require:
- expression: '!o.liveIn(now) || o.references().all(r, r.optional || r.target(now).exists(t, t.live()) || r.meant(now))'",
    ),
    (
        "standing",
        Focus::Services,
        "forEach: {var: o, kinds: [Service, PodDisruptionBudget], where: 'o.selects(before).exists(p, p.ready())'}
require:
- expression: \"!o.liveIn(now) || o.at(now).?spec.?selector.orValue(null) == null
    || now.podsMatching(o.metadata.namespace, o.at(now).standingSelector(before)).exists(p, p.ready())\"",
    ),
    (
        "standing-settled",
        Focus::Budgets,
        "forEach: {var: o, kinds: [Service, PodDisruptionBudget], where: 'o.selects(before).exists(p, p.ready())'}
hold: After
require:
- expression: \"!o.liveIn(now) || o.at(now).?spec.?selector.orValue(null) == null
    || now.podsMatching(o.metadata.namespace, o.at(now).standingSelector(now)).filter(p, p.ready()).size() >= 1\"",
    ),
];

impl Pool {
    /// All of them.
    pub fn new() -> Self {
        let library = Library::shipped().expect("the shipped library compiles");
        let mut pool = Self { entries: Vec::new(), families: Vec::new() };
        for (template, focus, variants) in TEMPLATES {
            for (number, variant) in variants.iter().enumerate() {
                let (params, rest) = match variant.split_once("} ") {
                    Some((params, rest)) => (format!("{params}}}"), rest),
                    None => ((*variant).to_owned(), ""),
                };
                let params = if params.is_empty() { "{}".to_owned() } else { params };
                let spec = format!("template: {template}\nparams: {params}\n{rest}");
                pool.add(&library, template, number, *focus, &spec);
            }
        }
        for (name, focus, spec) in HANDWRITTEN.iter().chain(BESIDE_EVICTIONS) {
            pool.add(&library, name, 0, *focus, spec);
        }
        pool
    }

    fn add(&mut self, library: &Library, family: &str, number: usize, focus: Focus, spec: &str) {
        let indented = spec.replace('\n', "\n  ");
        let text = format!("kind: Invariant\nmetadata: {{name: {family}-{number}}}\nspec:\n  {indented}\n");
        let specs = parse_specs(&text, family).unwrap_or_else(|e| panic!("{family}: {e:?}\n{text}"));
        let Some(Spec::Invariant(invariant)) = specs.into_iter().next() else { panic!("{family} is no invariant") };
        let compiled = compile_invariant(&invariant, library).unwrap_or_else(|e| panic!("{family}: {e:?}"));
        let at = self.entries.len();
        self.entries.push(Entry { family: family.to_owned(), focus, text, compiled: Arc::new(compiled) });
        match self.families.iter_mut().find(|(name, _)| name == family) {
            Some((_, entries)) => entries.push(at),
            None => self.families.push((family.to_owned(), vec![at])),
        }
    }

    /// One of them: a template in two of three cases.
    pub fn choose(&self, random: &mut Random) -> usize {
        let templates = TEMPLATES.len();
        let family = if random.chance(67) {
            random.below(templates)
        } else {
            templates + random.below(self.families.len() - templates)
        };
        *random.pick(&self.families[family].1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The families, templates first.
    pub fn families(&self) -> Vec<String> {
        self.families.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The entries by family.
    pub fn by_family(&self) -> BTreeMap<String, Vec<usize>> {
        self.families.iter().cloned().collect()
    }

    /// The family of an invariant.
    pub fn family(&self, at: usize) -> &str {
        &self.entries[at].family
    }

    /// What an invariant is about.
    pub fn focus(&self, at: usize) -> Focus {
        self.entries[at].focus
    }

    /// An invariant, compiled.
    pub fn get(&self, at: usize) -> &Arc<CompiledInvariant> {
        &self.entries[at].compiled
    }

    /// An invariant as it is written.
    pub fn text(&self, at: usize) -> &str {
        &self.entries[at].text
    }
}
