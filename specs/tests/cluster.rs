//! Expressions over a small cluster: fields, navigation, what is unknown, and what adapters say.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of tests that fails fails the test"
)]

use std::sync::Arc;

use suture_model::adapter::Adapters;
use suture_model::ingest::ingest;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::adapters::AdapterSet;
use suture_specs::cel::{Scope, compile};
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::eval::{Env, eval, eval_bool};
use suture_specs::functions::Worlds;
use suture_specs::ir::Type;
use suture_specs::library::Library;
use suture_specs::spec::{ResourceAdapter, Spec, SpecError, parse_specs};
use suture_specs::value::Value;

const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, disk: ssd}}
status: {conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, uid: s1}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: shop, uid: r1, labels: {suture.dev/quorum: "true"}}
spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, uid: p1, labels: {app: web}, creationTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]}
spec: {nodeName: n1, containers: [{name: c, image: "img:1", resources: {requests: {cpu: 500m, memory: 1Gi}}}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: shop, uid: p2, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]}
spec: {containers: [{name: c, envFrom: [{secretRef: {name: creds}}]}]}
status: {phase: Pending}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, uid: c1}
spec: {volumeName: pv1}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1}
spec: {claimRef: {namespace: shop, name: data, uid: c1}, persistentVolumeReclaimPolicy: Retain}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: shop, uid: w1}
spec: {size: 3, tls: {secretName: creds}, mode: null, parts: [a, b], labels: {app: w}}
"#;

const ADAPTER: &str = r#"
kind: ResourceAdapter
metadata: {name: widgets}
spec:
  group: example.com
  kind: Widget
  replicas: self.spec.size
  selector: "{'app': self.metadata.name}"
  claimSelector: self.spec.labels
  template: "{'metadata': {'labels': {'app': self.metadata.name}}, 'spec': {'containers': [{'name': 'c'}]}}"
  children:
  - {kind: StatefulSet, name: self.metadata.name}
  - {kind: ConfigMap, name: self.spec.configName}
  - {kind: Gadget, group: example.com, name: "self.metadata.name + '-g'", namespace: "'elsewhere'"}
  references:
  - {kind: Secret, name: self.spec.tls.secretName, optional: "false"}
  - {kind: ConfigMap, name: self.spec.absent.name}
  - {kind: StorageClass, name: "'fast'", namespace: "'ignored'", access: Write, optional: true}
  quorum: true
  scaleTarget: "{'kind': 'Deployment', 'name': self.spec.target}"
  replicaRange: "[1, self.spec.size]"
  deletesVolumes: self.spec.persistence.reclaimPolicy == 'Delete'
  cascades: "true"
"#;

const WIDGETS: &str = r#"
kind: ResourceAdapter
metadata: {name: widgets}
spec: {group: example.com, kind: Widget, replicas: self.spec.size, selector: "{'app': self.metadata.name}"}
"#;

fn adapters(yaml: &str) -> Result<AdapterSet, Vec<SpecError>> {
    let specs = parse_specs(yaml, "adapters.yaml")?;
    let adapters: Vec<ResourceAdapter> = specs
        .into_iter()
        .filter_map(|spec| match spec {
            Spec::ResourceAdapter(adapter) => Some(*adapter),
            _ => None,
        })
        .collect();
    AdapterSet::compile(&adapters)
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::new(Arc::new(adapters(ADAPTER).unwrap()));
    ingest(&mut snapshot, CLUSTER, "cluster.yaml").unwrap();
    snapshot
}

/// `before` is the cluster; in `now` pod web-1 is gone and claim `data` terminates.
fn show(source: &str) -> String {
    let snapshot = snapshot();
    let before = State::new(&snapshot);
    let mut now = State::new(&snapshot);
    now.take(&Key::of("Pod", "shop", "web-1"));
    let claim = now.get(&Key::of("PersistentVolumeClaim", "shop", "data")).unwrap().clone();
    now.put(claim.with_deletion("2026-01-01T00:00:00Z"));
    let get = |kind: &str, ns: &str, name: &str| before.get(&Key::of(kind, ns, name)).unwrap().clone();
    let mut env = Env::new(Worlds { before: &before, now: &now });
    let mut scope = Scope::invariant(false);
    for (name, object) in [
        ("p", get("Pod", "shop", "web-1")),
        ("q", get("Pod", "shop", "web-2")),
        ("svc", get("Service", "shop", "web")),
        ("rs", get("ReplicaSet", "shop", "web")),
        ("pvc", get("PersistentVolumeClaim", "shop", "data")),
        ("n", get("Node", "", "n1")),
        (
            "w",
            before
                .get(&Key::new(suture_model::kinds::Kind::new("example.com", "Widget"), "shop", "w"))
                .unwrap()
                .clone(),
        ),
    ] {
        scope = scope.with(name, Value::Object(object.clone()).type_of());
        env.bind(name, Ok(Value::Object(object)));
    }
    env.bind("request", Ok(Value::from(&Val::object([("user", Val::object([("username", Val::str("ana"))]))]))));
    env.bind("params", Ok(Value::from(&Val::object([("floor", Val::str("50%"))]))));
    match compile(source, &scope, None) {
        Err(error) => format!("refused: {error}"),
        Ok(expr) => eval(&expr, &env).map_or_else(|e| format!("error: {e}"), |v| v.display()),
    }
}

/// Fails unless each expression over the cluster is shown as it should be.
#[track_caller]
fn expect_shown(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(source, expected)| {
            let found = show(source);
            (found != *expected).then(|| format!("{source}\n  expected {expected}\n  found    {found}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_field_is_read_from_the_object() {
    expect_shown(&[
        ("p.metadata.name", "web-1"),
        ("p.kind + '/' + p.apiVersion", "Pod/v1"),
        ("p.spec.nodeName", "n1"),
        ("q.spec.nodeName", "error: no such key: `spec.nodeName`"),
        ("has(q.spec.nodeName)", "false"),
        ("has(p.spec.nodeName)", "true"),
        ("has(svc.status.loadBalancer)", "error: no such key: `status`"),
        ("q.?spec.?nodeName.orValue('none')", "none"),
        ("p.spec.containers[0].image", "img:1"),
        ("p.spec.containers.map(c, c.name)", "['c']"),
        ("p.metadata.labels", "{'app': 'web'}"),
        ("p.metadata.labels['app']", "web"),
        ("'app' in p.metadata.labels", "true"),
        ("p.metadata.creationTimestamp.getFullYear()", "2026"),
        ("p.metadata.creationTimestamp < timestamp('2027-01-01T00:00:00Z')", "true"),
        ("svc.spec.ports[0].targetPort == 'http'", "true"),
        ("w.spec.size == 3 && w.spec.parts == ['a', 'b']", "true"),
        ("has(w.spec.mode)", "true"),
        ("w.spec.mode == null", "true"),
        ("has(w.spec.absent)", "false"),
    ]);
}

#[test]
fn an_object_says_what_it_is() {
    expect_shown(&[
        ("p.name()", "Pod/shop/web-1"),
        ("n.name()", "Node/n1"),
        ("p.label('app') + p.label('x') + n.label('disk')", "webssd"),
        ("n.isSelectedBy({'matchLabels': {'disk': 'ssd'}})", "true"),
        ("n.isSelectedBy({'matchExpressions': [{'key': 'disk', 'operator': 'DoesNotExist'}]})", "false"),
        ("rs.annotation('x')", ""),
        ("p.ready()", "true"),
        ("q.ready()", "false"),
        ("p.live() && !p.terminating()", "true"),
        ("p.existsIn(before) && !p.existsIn(now)", "true"),
        ("p.at(now).ready()", "error: Pod/shop/web-1 does not exist in `now`"),
        ("p.existsIn(now) && p.at(now).ready()", "false"),
        ("pvc.liveIn(before) && !pvc.liveIn(now) && pvc.existsIn(now)", "true"),
    ]);
}

#[test]
fn objects_are_found_in_a_state() {
    expect_shown(&[
        ("before.pods.size() - now.pods.size()", "1"),
        ("before.pods.filter(x, x.ready()).map(x, x.metadata.name)", "['web-1']"),
        ("before.objects('Pod').size() + before.objects('apps', 'ReplicaSet').size()", "3"),
        ("before.objects('Widget').map(x, x.name())", "['Widget/shop/w']"),
        ("before.inNamespace('shop', 'Pod').size()", "2"),
        ("before.inNamespace('shop', 'Pod', 'web-1').map(p, p.metadata.name)", "['web-1']"),
        ("before.inNamespace('shop', 'Pod', 'web').size() + now.inNamespace('shop', 'Pod', 'web-1').size()", "0"),
        ("before.podsMatching('shop', {'matchLabels': {'app': 'web'}}).size()", "2"),
        ("before.podsMatching('shop', rs.spec.selector).size()", "2"),
        ("before.has('Pod', 'shop', 'web-1') && !now.has('Pod', 'shop', 'web-1')", "true"),
        ("before.podsOwnedBy(rs).size()", "2"),
        ("svc.selects(before).size()", "2"),
        ("svc.endpoints(before).map(x, x.name())", "['Pod/shop/web-1']"),
        ("svc.endpoints(now)", "[]"),
        ("svc.hasSelector() && svc.hasSelector(now)", "true"),
    ]);
}

#[test]
fn a_function_follows_what_an_object_names() {
    expect_shown(&[
        ("p.node().label('disk')", "ssd"),
        ("q.node()", "error: no such key: `spec.nodeName`"),
        ("p.zone() + n.zone() + q.zone()", "aa"),
        ("p.requests('cpu')", "500"),
        ("p.requests('memory')", "1073741824"),
        ("rs.requests('cpu') * rs.wantedReplicas(before)", "1000"),
        ("before.pods.map(x, x.requests('cpu')).sum()", "500"),
        ("p.owners().map(o, o.kind + ' ' + o.name + ' ' + o.uid)", "['ReplicaSet web r1']"),
        ("p.owners()[0].controller", "true"),
        ("p.ownersIn(before).map(o, o.name())", "['ReplicaSet/shop/web']"),
        ("p.unresolvedOwners(before)", "[]"),
        ("p.wantedBy(before).map(o, o.name())", "['ReplicaSet/shop/web']"),
        ("q.references().filter(r, r.kind == 'Secret').map(r, r.name)", "['creds']"),
        (
            "q.references().filter(r, r.kind == 'Secret').all(r, !r.resolvesIn(before) && r.needed && !r.optional)",
            "true",
        ),
        ("pvc.volume(before).map(v, v.spec.persistentVolumeReclaimPolicy)", "['Retain']"),
        ("rs.isQuorumGroup(before) && w.isQuorumGroup(before) && !svc.isQuorumGroup(before)", "true"),
        ("w.wantedReplicas(before)", "3"),
        ("n.admittedNodes(before)", "[]"),
        ("p.admittedNodes(before).size()", "1"),
        ("rs.restrictsNodes()", "false"),
    ]);
}

#[test]
fn what_is_computed_and_what_else_is_bound() {
    expect_shown(&[
        ("floor(params.floor, 5)", "3"),
        ("floor(2, 5) + floor('50%', 4)", "4"),
        ("floor('x', 5)", "error: `x` is neither an integer nor a percentage"),
        ("params.floor == '50%'", "true"),
        ("request.user.username == 'ana'", "true"),
        ("request.user.groups", "error: no such key: `groups`"),
        ("time", "error: `time` is not bound"),
        ("p == before.pods[0] && p in before.pods", "true"),
        ("type(p) == type(q)", "true"),
    ]);
}

#[test]
fn what_was_not_read_is_unknown_and_never_absent() {
    let mut snapshot = snapshot();
    snapshot.mark_unknown("Pod");
    snapshot.mark_unknown("Secret");
    let state = State::new(&snapshot);
    let env = Env::new(Worlds { before: &state, now: &state });
    let show = |source: &str| {
        let expr = compile(source, &Scope::invariant(false), None).unwrap();
        eval(&expr, &env).map_or_else(|e| e.to_string(), |v| v.display())
    };
    for source in [
        "before.pods.size() == 0",
        "before.has('Secret', 'shop', 'creds')",
        "before.services.exists(s, s.endpoints(now).size() > 0)",
        "before.services.all(s, s.selects(now).size() > 0)",
        "before.pods[?0].hasValue()",
    ] {
        assert!(show(source).ends_with("were not read"), "{source}: {}", show(source));
    }
    assert_eq!(show("before.pods.size() == 0 || before.services.size() == 1"), "true", "but it need not matter");
}

#[test]
fn pods_are_not_counted_while_a_kind_that_makes_them_was_not_read() {
    let budget = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
";
    for maker in Kind::with(KindTraits::makes_pods) {
        let maker = &*maker.kind;
        let mut snapshot = snapshot();
        ingest(&mut snapshot, budget, "budget.yaml").unwrap();
        snapshot.mark_unknown(maker);
        let state = State::new(&snapshot);
        let env = Env::new(Worlds { before: &state, now: &state });
        for source in [
            "now.podsWanted('shop', {'app': 'web'})",
            "now.podsOwnedBy(before.services[0])",
            "before.poddisruptionbudgets[0].disruptionsWhenSettled(now)",
        ] {
            let expr = compile(source, &Scope::invariant(false), None).unwrap();
            let found = eval(&expr, &env).map_or_else(|e| e.to_string(), |v| v.display());
            assert_eq!(found, format!("objects of kind `{maker}` were not read"), "{source}");
        }
    }
}

#[test]
fn adapters_give_facts() {
    let snapshot = snapshot();
    let widget = snapshot.iter().find(|o| &*o.key.kind.kind == "Widget").unwrap().clone();
    let facts = snapshot.adapter(&widget).unwrap();
    assert_eq!(facts.errors, Vec::<String>::new());
    assert_eq!(facts.replicas, Some(3));
    assert_eq!(facts.replicas_path, Some(vec!["spec".to_owned(), "size".to_owned()]));
    assert!(facts.selector.as_ref().unwrap().matches(&Val::object([("app", Val::str("w"))])));
    assert_eq!(facts.selector_labels, Val::object([("app", Val::str("w"))]));
    assert!(facts.claim_selector.is_some() && facts.template.is_some());
    let names = |keys: &[Key]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(facts.children.as_ref().unwrap()), ["StatefulSet/shop/w", "Gadget/elsewhere/w-g"]);
    assert_eq!(facts.children.as_ref().unwrap()[0].kind.group, "apps".into());
    let references: Vec<(String, bool, bool)> =
        facts.references.iter().map(|r| (r.target.to_string(), r.optional, r.write)).collect();
    assert_eq!(
        references,
        [("Secret/shop/creds".to_owned(), false, false), ("StorageClass/fast".to_owned(), true, true)]
    );
    assert!(facts.quorum && facts.cascades && !facts.deletes_volumes);
    assert_eq!(facts.scale_target, None, "a missing field is absence");
    assert_eq!(facts.replica_range, Some((1, 3)));
}

#[test]
fn failures_of_adapters_are_kept() {
    let adapter = "kind: ResourceAdapter\nmetadata: {name: w}\nspec:\n  group: example.com\n  kind: Widget\n";
    let widget = |spec: &str| {
        let mut snapshot = Snapshot::default();
        let text =
            format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: w, namespace: ns}}\nspec: {spec}\n");
        ingest(&mut snapshot, &text, "w.yaml").unwrap();
        let object: Object = (**snapshot.iter().next().unwrap()).clone();
        object
    };
    let facts = |more: &str, spec: &str| adapters(&format!("{adapter}{more}")).unwrap().facts(&widget(spec)).unwrap();
    assert_eq!(
        facts("  replicas: self.spec.n\n", "{n: lots}").errors,
        ["replicas: expected an integer, found string `lots`"]
    );
    assert_eq!(facts("  replicas: 6 / self.spec.n\n", "{n: 0}").errors, ["replicas: division by zero"]);
    assert_eq!(facts("  replicas: self.spec.n\n", "{}").errors, Vec::<String>::new());
    let listed = "  children: \"self.spec.parts.map(p, {'kind': 'Pod', 'name': p})\"\n";
    let keys = |f: &suture_model::adapter::AdapterFacts| {
        f.children.as_ref().map(|c| c.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(keys(&facts(listed, "{parts: [a, b]}")), Some(vec!["Pod/ns/a".into(), "Pod/ns/b".into()]));
    assert_eq!(keys(&facts(listed, "{parts: []}")), Some(vec![]));
    assert_eq!(keys(&facts(listed, "{}")), None);
    let selects = |text: &str| facts("  selector: self.spec.selector\n", &format!("{{selector: '{text}'}}"));
    let selector = selects("app=web,tier in (a,b)").selector.clone().unwrap();
    for (tier, matches) in [("b", true), ("c", false)] {
        assert_eq!(selector.matches(&Val::object([("app", Val::str("web")), ("tier", Val::str(tier))])), matches);
    }
    assert_eq!((selects("").selector.clone(), selects("").errors.len()), (None, 0));
    assert_eq!(
        selects("app in web").errors,
        ["selector: expected a map of labels or a label selector, found string `app in web`"]
    );
    let wrong = |more: &str| {
        adapters(&format!("{adapter}{more}")).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(wrong("  replicas: sel.spec.n\n"), ["adapters.yaml:6:13: spec.replicas: `sel` is not known"]);
    assert_eq!(wrong("  replicas: \"'x'\"\n"), ["adapters.yaml:6:3: spec.replicas: expected int, found string"]);
    assert_eq!(wrong("  replica: 1\n"), ["adapters.yaml:6:3: spec.replica: unknown field `replica`"]);
    assert_eq!(
        wrong("  children: [{kind: Pod, name: self.before.x, namespce: x}]\n"),
        ["adapters.yaml:6:47: spec.children[0].namespce: unknown field `namespce`"]
    );
    assert_eq!(
        wrong("  selector: \"1\"\n"),
        ["adapters.yaml:6:3: spec.selector: expected map<string, any> or string, found int"]
    );
    assert_eq!(wrong("  selector: before.pods\n"), ["adapters.yaml:6:13: spec.selector: `before` is not known"]);
}

fn invariant(spec: &str) -> CompiledInvariant {
    let yaml = format!("kind: Invariant\nmetadata: {{name: x}}\nspec:\n{spec}");
    let Some(Spec::Invariant(invariant)) = parse_specs(&yaml, "i.yaml").unwrap().into_iter().next() else { panic!() };
    compile_invariant(&invariant, &Library::default()).unwrap()
}

#[test]
fn a_compiled_invariant_runs() {
    let compiled = invariant(
        r#"
  forEach: {var: svc, kind: Service, where: svc.endpoints(before).size() > 0}
  hold: After
  under: {nodeFailures: 1}
  let:
    lost: serving - svc.endpoints(now).size()
    need: serving
    serving: svc.endpoints(before).size()
  require:
  - {expression: svc.endpoints(after).size() >= need, messageExpression: "'lost ' + string(lost)"}
"#,
    );
    let names: Vec<&str> = compiled.lets.iter().map(|(n, _)| &**n).collect();
    let place = |name: &str| names.iter().position(|n| *n == name).unwrap();
    assert!(place("serving") < place("lost") && place("serving") < place("need"), "{names:?}");
    assert_eq!((compiled.faults.nodes, compiled.faults.zones), (1, 0));
    let snapshot = snapshot();
    let before = State::new(&snapshot);
    let mut now = State::new(&snapshot);
    now.take(&Key::of("Pod", "shop", "web-1"));
    let svc = before.get(&Key::of("Service", "shop", "web")).unwrap();
    assert!(compiled.for_each.matches(svc, snapshot.adapters().as_ref()));
    let env = compiled.env(Worlds { before: &before, now: &now }, svc, &Val::Null, None);
    assert_eq!(eval_bool(compiled.for_each.where_.as_ref().unwrap(), &env), Ok(true));
    let clause = &compiled.require[0];
    assert_eq!(eval_bool(&clause.expression, &env), Ok(false));
    assert_eq!(eval(clause.message.as_ref().unwrap(), &env).unwrap().display(), "lost 1");
    let env = compiled.env(Worlds { before: &before, now: &before }, svc, &Val::Null, None);
    assert_eq!(eval_bool(&clause.expression, &env), Ok(true));
}

#[test]
fn instances_by_kind_label_and_namespace() {
    let snapshot = snapshot();
    let all = |compiled: &CompiledInvariant| {
        let adapters = snapshot.adapters().as_ref();
        let found = snapshot.iter().filter(|o| compiled.for_each.matches(o, adapters) && compiled.matches.admits(o));
        found.map(|o| o.key.to_string()).collect::<Vec<_>>().join(" ")
    };
    let with = |for_each: &str, matches: &str| {
        all(&invariant(&format!(
            "  forEach: {{var: o, {for_each}}}\n  match: {matches}\n  require: [{{expression: 'true'}}]\n"
        )))
    };
    assert_eq!(with("kind: Service", "{}"), "Service/shop/web");
    assert_eq!(with("kind: Workload", "{}"), "Pod/shop/web-1 Pod/shop/web-2 ReplicaSet/shop/web Widget/shop/w");
    assert_eq!(with("kind: Adapted", "{}"), "Widget/shop/w");
    assert_eq!(with("kinds: [Node, {group: example.com, kind: Widget}]", "{}"), "Node/n1 Widget/shop/w");
    assert_eq!(with("kind: Widget", "{}"), "Widget/shop/w");
    assert_eq!(with("kind: Pod, selector: {matchLabels: {app: x}}", "{}"), "");
    assert_eq!(
        with("kind: '*'", "{namespaces: [sho*], selector: {matchLabels: {app: web}}}"),
        "Pod/shop/web-1 Pod/shop/web-2"
    );
    assert_eq!(with("kind: '*'", "{excludedNamespaces: [shop]}"), "Node/n1 PersistentVolume/pv1");
}

#[test]
fn functions_and_kinds_in_use_are_noted() {
    let compiled = invariant(
        "  forEach: {var: o, kind: Service}\n  let: {a: 'before.pods.size()'}\n  \
         require: [{expression: \"now.objects('Widget').size() + now.inNamespace('x', 'Node').size() >= a\"}]\n",
    );
    let kinds: Vec<String> = compiled.kinds.iter().map(|k| format!("{}/{k}", k.group)).collect();
    assert_eq!(kinds, ["/Node", "/Pod", "/Widget"]);
    let functions: Vec<&str> = compiled.functions.iter().map(|f| f.name()).collect();
    assert_eq!(functions, ["+", ">=", "size", "objects", "inNamespace"]);
    assert_eq!(Type::object("Pod").to_string(), "Pod");
}

#[test]
fn of_an_object_that_is_nested_too_deep_nothing_but_its_metadata_is_known() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let text = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w","namespace":"shop","labels":{{"a":"b"}}}},
            "spec":{{"size":3,"deep":{deep}}}}}"#
    );
    let suture_model::ingest::Passed(val) = serde_json::from_str(&text).unwrap();
    let object = Object::from_val(&val).unwrap();
    let facts = adapters(WIDGETS).unwrap().facts(&object).unwrap();
    assert!(facts.replicas.is_none() && facts.errors.len() == 1, "{:?}", facts.errors);
    assert!(facts.errors[0].starts_with("replicas: Widget/shop/w is nested too deep"), "{:?}", facts.errors);
    assert!(facts.selector.is_some());
}

#[test]
fn what_adapters_say_of_an_object_is_kept_no_longer_than_the_object() {
    let set = adapters(WIDGETS).unwrap();
    let large = |name: &str| {
        let long = Val::Str("x".repeat(1 << 20).into());
        let meta = Val::object([("name", Val::str(name)), ("namespace", Val::str("shop"))]);
        let (version, kind) = (Val::str("example.com/v1"), Val::str("Widget"));
        let spec = Val::object([("long", long)]);
        let val = [("apiVersion", version), ("kind", kind), ("metadata", meta), ("spec", spec)];
        Object::from_val(&Val::object(val)).unwrap()
    };
    let (kept, gone) = (large("kept"), large("gone"));
    let said = |object: &Object| Arc::downgrade(&set.facts(object).unwrap());
    let (said_of_kept, said_of_gone) = (said(&kept), said(&gone));
    let body = Arc::downgrade(&gone.body);
    drop(gone);
    assert!(body.upgrade().is_none(), "an object is kept for what is said of it");
    for i in 0..16 {
        said(&large(&format!("w-{i}")));
    }
    assert!(said_of_gone.upgrade().is_none(), "what is said of an object that is gone is kept");
    let again = said_of_kept.upgrade().expect("what is said of one that stands is kept");
    assert!(Arc::ptr_eq(&again, &set.facts(&kept).unwrap()));
}
