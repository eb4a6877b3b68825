//! Small clusters, and what each question about them answers.

use super::*;
use crate::adapter::AdapterFacts;
use crate::deletion::live_referrers;
use crate::fields::*;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::references::Reference;
use crate::selector::Selector;
use crate::state::State;
use crate::testing::{Adapter, adapted, cluster, key, names, val};
use crate::value::Val;

/// Calls a question with the state that a YAML shows.
fn ask<R>(yaml: &str, question: impl Fn(&State) -> R) -> R {
    let snapshot = cluster(yaml);
    question(&State::new(&snapshot))
}

fn owned(kind: &str, name: &str, uid: &str) -> String {
    format!("ownerReferences: [{{apiVersion: {kind}, name: {name}, uid: {uid}, controller: true}}]")
}

#[test]
fn selectors_mean_what_their_kind_makes_of_them() {
    let count = |manifest: &str| {
        let yaml = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: a, labels: {{app: x}}}}}}\n---\n\
             {{apiVersion: v1, kind: Pod, metadata: {{name: q, namespace: b, labels: {{app: x}}}}}}\n---\n{{{manifest}}}"
        );
        ask(&yaml, |state| {
            let object = state.iter().into_iter().find(|o| &*o.key.name == "o").unwrap();
            selected(state, object).len()
        })
    };
    let of = |api: &str, kind: &str, spec: &str| {
        count(&format!("apiVersion: {api}, kind: {kind}, metadata: {{name: o, namespace: a}}, spec: {spec}"))
    };
    for (api, kind, spec, pods) in [
        ("v1", "Service", "{selector: {app: x}}", 1),
        ("v1", "Service", "{selector: {}}", 0),
        ("v1", "Service", "{}", 0),
        ("v1", "Service", "{type: ExternalName, selector: {app: x}}", 0),
        ("policy/v1", "PodDisruptionBudget", "{selector: {}}", 1),
        ("policy/v1beta1", "PodDisruptionBudget", "{selector: {}}", 0),
        ("policy/v1", "PodDisruptionBudget", "{}", 0),
        ("networking.k8s.io/v1", "NetworkPolicy", "{}", 1),
        ("networking.k8s.io/v1", "NetworkPolicy", "{podSelector: {matchLabels: {app: y}}}", 0),
        ("apps/v1", "Deployment", "{selector: {matchExpressions: [{key: app, operator: In, values: [x, y]}]}}", 1),
        ("v1", "ReplicationController", "{template: {metadata: {labels: {app: x}}}}", 1),
        ("v1", "ConfigMap", "{selector: {app: x}}", 0),
    ] {
        assert_eq!(of(api, kind, spec), pods, "{kind} {spec}");
    }
}

#[test]
fn what_is_found_is_in_order_however_it_came() {
    let owner = owned("apps/v1, kind: ReplicaSet", "r", "r");
    let pod = |name: &str| {
        let meta = format!("{{name: {name}, namespace: a, labels: {{app: x}}, {owner}}}");
        format!("{{apiVersion: v1, kind: Pod, metadata: {meta}, spec: {{nodeName: n}}}}")
    };
    let yaml = ["c", "a", "e", "b", "d"].map(pod).join("\n---\n");
    ask(&yaml, |state| {
        let selector = Selector::from_pairs(&val("{app: x}"));
        for found in [state.pods_on("n"), state.owned_by("r"), state.pods_matching("a", &selector)] {
            assert_eq!(found.iter().map(|o| &*o.key.name).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
        }
    });
}

#[test]
fn pods_are_owned_at_any_depth() {
    let yaml = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: d, namespace: a, uid: d}}}}\n---\n\
         {{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: r, namespace: a, uid: r, {}}}}}\n---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: a, {}}}}}\n---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: elsewhere, namespace: b, {}}}}}\n---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: stale, namespace: a, {}}}}}",
        owned("apps/v1, kind: Deployment", "d", "d"),
        owned("apps/v1, kind: ReplicaSet", "r", "r"),
        owned("apps/v1, kind: ReplicaSet", "r", "r"),
        owned("apps/v1, kind: ReplicaSet", "r", "older"),
    );
    ask(&yaml, |state| {
        let deployment = state.get(&key("Deployment/a/d")).unwrap();
        assert_eq!(names(&pods_owned_by(state, deployment)), ["Pod/a/p"]);
        let stale = state.get(&key("Pod/a/stale")).unwrap();
        assert_eq!(owner_resolves(state, stale, &stale.owners()[0]), Ok(false));
    });
}

#[test]
fn taints_keep_off_what_does_not_tolerate_them() {
    let node = |spec: &str| val(&format!("{{apiVersion: v1, kind: Node, metadata: {{name: n}}, spec: {spec}}}"));
    let gpu = "{taints: [{key: gpu, value: a100, effect: NoSchedule}]}";
    let down = "{taints: [{key: down, effect: NoExecute}]}";
    let soft = "{taints: [{key: soft, effect: PreferNoSchedule}]}";
    for (spec, tolerations, expected) in [
        ("{}", "[]", Tolerance::Forever),
        (soft, "[]", Tolerance::Forever),
        (gpu, "[]", Tolerance::Never),
        (gpu, "[{key: gpu, value: a100}]", Tolerance::Forever),
        (gpu, "[{key: gpu, operator: Equal, value: h100}]", Tolerance::Never),
        (gpu, "[{key: gpu, operator: Exists, effect: NoExecute}]", Tolerance::Never),
        (gpu, "[{key: gpu, operator: Exists}]", Tolerance::Forever),
        (gpu, "[{operator: Exists}]", Tolerance::Forever),
        (gpu, "[{key: gpu, operator: Gt, value: '1'}]", Tolerance::Never),
        (down, "[{operator: Exists, tolerationSeconds: 300}]", Tolerance::Limited),
        (down, "[{operator: Exists}]", Tolerance::Forever),
        ("{unschedulable: true}", "[]", Tolerance::Never),
        ("{unschedulable: true}", "[{key: node.kubernetes.io/unschedulable, operator: Exists}]", Tolerance::Forever),
    ] {
        let node = Object::from_val(&node(spec)).unwrap();
        let pod = val(&format!("{{tolerations: {tolerations}}}"));
        assert_eq!(tolerance(&pod, &node, SCHEDULING), expected, "{spec} {tolerations}");
    }
    let cordoned = Object::from_val(&node("{unschedulable: true}")).unwrap();
    assert!(tolerates(&daemon_pod_spec(&Val::Null), &cordoned, SCHEDULING));
}

#[test]
fn workloads_want_pods() {
    let nodes = "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {disk: ssd}}}\n---\n\
                 {apiVersion: v1, kind: Node, metadata: {name: n2}, spec: {taints: [{key: x, effect: NoSchedule}]}}\n---\n";
    for (kind, spec, wanted) in [
        ("apps/v1, kind: Deployment", "{}", Some(1)),
        ("apps/v1, kind: StatefulSet", "{replicas: 0}", Some(0)),
        ("apps/v1, kind: DaemonSet", "{template: {spec: {}}}", Some(1)),
        ("apps/v1, kind: DaemonSet", "{template: {spec: {nodeSelector: {disk: hdd}}}}", Some(0)),
        ("apps/v1, kind: DaemonSet", "{template: {spec: {tolerations: [{operator: Exists}]}}}", Some(2)),
        ("batch/v1, kind: Job", "{parallelism: 3, completions: 2}", Some(2)),
        ("batch/v1, kind: Job", "{parallelism: 3, suspend: true}", Some(0)),
        ("batch/v1, kind: CronJob", "{}", None),
    ] {
        let yaml = format!("{nodes}{{apiVersion: {kind}, metadata: {{name: w, namespace: a}}, spec: {spec}}}");
        let found = ask(&yaml, |state| {
            let workload = state.iter().into_iter().find(|o| &*o.key.name == "w").unwrap();
            wanted_replicas(state, workload)
        });
        assert_eq!(found, wanted, "{kind} {spec}");
    }
}

#[test]
fn requests_are_what_the_scheduler_counts() {
    for (spec, cpu) in [
        ("{containers: [{resources: {requests: {cpu: 100m}}}, {resources: {limits: {cpu: '0.2'}}}]}", 300),
        (
            "{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 3}}}]}",
            3000,
        ),
        (
            "{containers: [{resources: {requests: {cpu: 1}}}], initContainers: \
             [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 3}}}]}",
            4000,
        ),
        ("{containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m}}", 1250),
        ("{resources: {requests: {cpu: 2}}, containers: [{resources: {requests: {cpu: 1}}}]}", 2000),
        ("{containers: [{}]}", 0),
    ] {
        assert_eq!(requests(&val(spec), "cpu"), cpu, "{spec}");
    }
    assert_eq!(requests(&val("{containers: [{resources: {requests: {memory: 1Gi}}}]}"), "memory"), 1 << 30);
}

#[test]
fn claims_belong_to_ordinals() {
    let set = val("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a}, spec: {replicas: 2, \
         ordinals: {start: 3}, volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log}}]}}");
    let set = Object::from_val(&set).unwrap();
    assert_eq!(claims_wanted(&set), ["data-db-3", "data-db-4", "log-db-3", "log-db-4"]);
    for (claim, wanted, made) in [
        ("data-db-3", true, true),
        ("log-db-4", true, true),
        ("data-db-5", false, true),
        ("data-db-2", false, true),
        ("data-db-03", false, false),
        ("data-dbx-3", false, false),
        ("data-db", false, false),
        ("other-db-3", false, false),
    ] {
        assert_eq!((wants_claim(&set, claim), claim_ordinal(&set, claim).is_some()), (wanted, made), "{claim}");
    }
}

#[test]
fn a_claim_and_its_volume_find_each_other() {
    let claim = |volume: &str| {
        format!(
            "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c, namespace: a, uid: c1}}, spec: {{{volume}}}}}\n---\n"
        )
    };
    let volume_of = |yaml: &str| {
        ask(yaml, |state| {
            let claim = state.get(&key("PersistentVolumeClaim/a/c")).unwrap();
            volume(state, claim).map(|v| v.key.name.to_string())
        })
    };
    let volume = |uid: &str| {
        format!(
            "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: v}}, spec: {{claimRef: {{namespace: a, name: c, uid: {uid}}}}}}}"
        )
    };
    assert_eq!(volume_of(&(claim("volumeName: v") + &volume("c1"))), Some("v".into()));
    assert_eq!(volume_of(&(claim("") + &volume("c1"))), Some("v".into()));
    assert_eq!(volume_of(&(claim("volumeName: v") + &volume("older"))), None);
    assert_eq!(volume_of(&claim("volumeName: v")), None);
}

const USERS: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, namespace: a, labels: {app: db}}}
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a, uid: s}, spec: {replicas: 1, volumeClaimTemplates: [{metadata: {name: data}}]}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: idle, namespace: a, uid: d}, spec: {replicas: 0, template: &t {spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data-db-0}}]}}}}
- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: idle-1, namespace: a, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: idle, uid: d, controller: true}]}, spec: {replicas: 0, template: *t}}
- {apiVersion: v1, kind: Pod, metadata: {name: done, namespace: a}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data-db-0}}]}, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: run, namespace: a}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data-db-0}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: gone, namespace: a, deletionTimestamp: '2026-11-01T12:00:00Z'}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data-db-0}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: follows, namespace: a, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: old, uid: o, controller: true}]}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data-db-0}}]}}
- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: old, namespace: a, uid: o, deletionTimestamp: '2026-11-01T12:00:00Z', finalizers: [foregroundDeletion]}, spec: {replicas: 1}}
- {apiVersion: example.com/v1, kind: Db, metadata: {name: db, namespace: a}}
- {apiVersion: example.com/v1, kind: Db, metadata: {name: db, namespace: b}}
";

fn db_adapter() -> Vec<Adapter> {
    vec![(Kind::new("example.com", "Db"), |_| AdapterFacts {
        claim_selector: Some(Selector::from_pairs(&Val::object([("app", Val::str("db"))]))),
        children: Some(vec![key("StatefulSet/a/db")]),
        ..AdapterFacts::default()
    })]
}

#[test]
fn the_users_of_a_claim_are_live() {
    let snapshot = adapted(USERS, db_adapter());
    let state = State::new(&snapshot);
    let claim = state.get(&key("PersistentVolumeClaim/a/data-db-0")).unwrap();
    let users = names(&live_referrers(&state, claim));
    assert_eq!(users, ["Pod/a/run", "Deployment/a/idle", "StatefulSet/a/db", "Db/a/db"]);
    assert!(unread_users(&state, claim).is_empty());
    let mut snapshot = snapshot.clone();
    snapshot.mark_unknown("Db");
    snapshot.mark_unknown("Secret");
    assert_eq!(unread_users(&State::new(&snapshot), claim), ["Db".into()]);
}

#[test]
fn an_adapter_wants_the_children_it_lists() {
    let snapshot = adapted(USERS, db_adapter());
    let state = State::new(&snapshot);
    let wanted = |name: &str| names(&wanted_by(&state, state.get(&key(name)).unwrap()));
    assert_eq!(wanted("StatefulSet/a/db"), ["Db/a/db", "Db/b/db"]);
    assert_eq!(wanted("Deployment/a/idle"), Vec::<String>::new());
    assert_eq!(wanted("ReplicaSet/a/idle-1"), ["Deployment/a/idle"]);
    assert_eq!(wanted("Pod/a/follows"), Vec::<String>::new());
    let mut state = state.clone();
    let other = state.get(&key("Deployment/a/idle")).unwrap().map_body(|b| b.with_at(&["spec", "template"], Val::Null));
    state.put(other);
    assert!(wanted_by(&state, state.get(&key("ReplicaSet/a/idle-1")).unwrap()).is_empty());
}

#[test]
fn a_reference_resolves_to_what_stays_and_has_its_keys() {
    let yaml = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}, data: {k: eA==}}\n---\n\
                {apiVersion: v1, kind: Secret, metadata: {name: t, namespace: a, deletionTimestamp: x}}\n---\n\
                {apiVersion: v1, kind: Namespace, metadata: {name: dying, deletionTimestamp: x}}";
    let mut snapshot = cluster(yaml);
    snapshot.mark_unknown("ConfigMap");
    let state = State::new(&snapshot);
    let to = |target: &str, keys: &[&str]| Reference {
        keys: keys.iter().map(|k| (*k).into()).collect(),
        ..Reference::new(key(target), "env")
    };
    for (target, keys, expected) in [
        ("Secret/a/s", vec!["k"], Ok(true)),
        ("Secret/a/s", vec!["other"], Ok(false)),
        ("Secret/a/t", vec![], Ok(false)),
        ("Secret/a/u", vec![], Ok(false)),
        ("ServiceAccount/a/default", vec![], Ok(true)),
        ("ServiceAccount/dying/default", vec![], Ok(false)),
        ("ServiceAccount/a/other", vec![], Ok(false)),
        ("ConfigMap/a/m", vec![], Err(UnknownKind("ConfigMap".into()))),
    ] {
        assert_eq!(resolves(&state, &to(target, &keys)), expected, "{target}");
    }
}

#[test]
fn a_budget_counts_what_is_wanted() {
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: a, uid: w}, \
                      spec: {replicas: 4, template: {metadata: {labels: {app: w}}}}}\n---\n";
    let scaler = |min: u32| {
        format!(
            "{{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {{name: h, namespace: a}}, spec: \
             {{scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: w}}, minReplicas: {min}, maxReplicas: 9}}}}\n---\n"
        )
    };
    let bare = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, labels: {app: w}}}\n---\n";
    let daemon = "{apiVersion: v1, kind: Node, metadata: {name: n}}\n---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: \
                  {name: d, namespace: a}, spec: {template: {metadata: {labels: {app: w}}, spec: {}}}}\n---\n";
    for (cluster, spec, allowed) in [
        (String::new(), "minAvailable: 1", None),
        (deployment.to_owned(), "minAvailable: 1", Some(3)),
        (deployment.to_owned(), "minAvailable: 5", Some(0)),
        (deployment.to_owned(), "minAvailable: 51%", Some(1)),
        (deployment.to_owned(), "maxUnavailable: 10%", Some(1)),
        (deployment.to_owned(), "maxUnavailable: 0", Some(0)),
        (deployment.to_owned(), "maxUnavailable: x", Some(0)),
        (deployment.to_owned() + &scaler(1), "minAvailable: 1", Some(0)),
        (deployment.to_owned() + &scaler(2), "minAvailable: 1", Some(1)),
        (deployment.to_owned() + &scaler(0), "maxUnavailable: 1", Some(1)),
        (bare.to_owned(), "minAvailable: 1", Some(0)),
        (bare.to_owned(), "minAvailable: 0", Some(1)),
        (bare.to_owned(), "maxUnavailable: 1", Some(0)),
        (daemon.to_owned(), "minAvailable: 0", Some(1)),
        (daemon.to_owned(), "maxUnavailable: 1", Some(0)),
    ] {
        let yaml = format!(
            "{cluster}{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: b, namespace: a}}, \
             spec: {{selector: {{matchLabels: {{app: w}}}}, {spec}}}}}"
        );
        let found =
            ask(&yaml, |state| disruptions_when_settled(state, state.get(&key("PodDisruptionBudget/a/b")).unwrap()));
        assert_eq!(found, allowed, "{cluster} {spec}");
    }
}

/// Custom resources that own a workload, one of which lists another as well, and whose pods bear a label.
fn counted_adapter(object: &Object) -> AdapterFacts {
    AdapterFacts {
        replicas: object.val().int_at(&["spec", "replicas"]),
        template: object.val().at(&["spec", "template"]).cloned(),
        children: (*object.key.name == *"lists").then(|| vec![key("StatefulSet/a/s"), key("Deployment/a/d")]),
        ..AdapterFacts::default()
    }
}

/// What makes no difference to a budget, there or gone, is not among what is counted for it: over all clusters of some objects.
#[test]
fn what_a_budget_does_not_count_makes_no_difference_to_it() {
    let labels = |app: &str| format!("template: {{metadata: {{labels: {{app: {app}}}}}}}");
    let owned = |uid: &str| format!("ownerReferences: [{{apiVersion: e.com/v1, kind: Db, name: owns, uid: {uid}}}]");
    let objects = [
        format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: d, namespace: a, uid: d}}, spec: {{replicas: 4, {}}}}}", labels("w")),
        format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: e, namespace: a, uid: e}}, spec: {{replicas: 2, {}}}}}", labels("x")),
        format!("{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: s, namespace: a, uid: s, {}}}, spec: {{replicas: 3, {}}}}}", owned("o"), labels("w")),
        format!("{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: t, namespace: a, uid: t, {}}}, spec: {{replicas: 3, {}}}}}", owned("o"), labels("x")),
        format!("{{apiVersion: e.com/v1, kind: Db, metadata: {{name: owns, namespace: a, uid: o}}, spec: {{replicas: 1, {}}}}}", labels("w")),
        "{apiVersion: e.com/v1, kind: Db, metadata: {name: lists, namespace: a, uid: l}, spec: {replicas: 2}}".to_owned(),
        format!("{{apiVersion: e.com/v1, kind: Db, metadata: {{name: alone, namespace: a, uid: n}}, spec: {{replicas: 5, {}}}}}", labels("w")),
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: a}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: s}, minReplicas: 1, maxReplicas: 9}}".to_owned(),
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, labels: {app: w}, ownerReferences: [{apiVersion: e.com/v1, kind: Db, name: alone, uid: n, controller: true}]}}".to_owned(),
    ];
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: a}, \
                  spec: {selector: {matchLabels: {app: w}}, maxUnavailable: 50%}}";
    for chosen in 0_usize..1 << objects.len() {
        let here =
            objects.iter().enumerate().filter(|(at, _)| chosen & 1 << at != 0).map(|(_, object)| object.as_str());
        let yaml = here.chain([budget]).collect::<Vec<_>>().join("\n---\n");
        let snapshot = adapted(&yaml, vec![(Kind::new("e.com", "Db"), counted_adapter)]);
        let asked = |state: &State<'_>| {
            let budget = state.get(&key("PodDisruptionBudget/a/b")).unwrap();
            let selector = selector_of(state, budget).unwrap();
            let unscaled = names(&unscaled(state, budget));
            (disruptions_when_settled(state, budget), pods_wanted(state, "a", &selector), unscaled)
        };
        let state = State::new(&snapshot);
        let counted = counted_workloads(&state, state.get(&key("PodDisruptionBudget/a/b")).unwrap());
        for object in state.iter().into_iter().filter(|o| !["Pod", "PodDisruptionBudget"].contains(&&*o.key.kind.kind))
        {
            let mut without = state.clone();
            without.take(&object.key);
            if !counted.iter().any(|counted| counted.key == object.key) {
                assert_eq!(asked(&without), asked(&state), "{} in\n{yaml}", object.key);
            }
        }
    }
}

#[test]
fn hosts_are_claimed_by_class_and_path() {
    let yaml = "
apiVersion: v1
kind: List
items:
- {apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: std, annotations: {ingressclass.kubernetes.io/is-default-class: 'true'}}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: x}, spec: {ingressClassName: nginx, rules: [{host: H.example.com, http: {paths: [{path: /, pathType: Prefix}, {path: /b/, pathType: Prefix}]}}]}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: b, namespace: y, annotations: {kubernetes.io/ingress.class: nginx}}, spec: {rules: [{host: h.example.com, http: {paths: [{path: /b, pathType: Prefix}]}}]}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: c, namespace: y}, spec: {rules: [{}]}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: g, namespace: infra}, spec: {gatewayClassName: nginx}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: z}, spec: {parentRefs: [{name: g, namespace: infra}], hostnames: [h.example.com], rules: [{matches: [{path: {value: /b}}]}, {}]}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: s, namespace: z}, spec: {parentRefs: [{name: none}]}}
";
    ask(yaml, |state| {
        let claims = |kind: &str| {
            let claims = host_claims(state, state.get(&key(kind)).unwrap()).unwrap();
            claims.iter().map(|c| format!("{} {}{}", c.class, c.host, c.path)).collect::<Vec<_>>()
        };
        assert_eq!(claims("Ingress/x/a"), ["nginx h.example.com/", "nginx h.example.com/b"]);
        assert_eq!(claims("Ingress/y/c"), ["std */"]);
        assert_eq!(claims("HTTPRoute/z/r"), ["nginx h.example.com/", "nginx h.example.com/b"]);
        assert_eq!(claims("HTTPRoute/z/s"), ["Gateway/z/none */"]);
        let claim = HostClaim { class: "nginx".into(), host: "h.example.com".into(), path: "/b".into() };
        assert_eq!(names(&host_claimants(state, &claim)), ["HTTPRoute/z/r", "Ingress/x/a", "Ingress/y/b"]);
    });
}

#[test]
fn a_route_of_too_many_hosts_and_paths_is_still_found_by_each_of_them() {
    let hosts = (0..1_000).map(|at| format!("h{at}")).collect::<Vec<_>>().join(", ");
    let paths = (0..1_000).map(|at| format!("{{path: {{value: /p{at}}}}}")).collect::<Vec<_>>().join(", ");
    let yaml = format!(
        "{{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {{name: r, namespace: z}}, spec: \
         {{hostnames: [{hosts}], rules: [{{matches: [{paths}]}}]}}}}"
    );
    let snapshot = cluster(&yaml);
    let route = snapshot.get(&key("HTTPRoute/z/r")).unwrap().clone();
    let (kept, mut without) = (State::new(&snapshot), State::new(&snapshot));
    without.take(&route.key);
    let mut again = without.clone();
    again.put(route.map_body(|val| val.with("x", Val::Bool(true))));
    assert_eq!(host_claims(&kept, &route), None);
    for (host, path, count) in [("h1", "/p999", 1), ("h1", "/p1000", 0), ("h1000", "/p1", 0)] {
        let claim = HostClaim { class: "".into(), host: host.into(), path: path.into() };
        let found = [&kept, &without, &again].map(|state| host_claimants(state, &claim).len());
        assert_eq!(found, [count, 0, count], "{host}{path}");
    }
}

#[test]
fn definitions_know_their_instances_and_versions() {
    let yaml = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {group: e.com, \
                names: {kind: Db}, versions: [{name: v1, served: true}, {name: v2, served: false}, {name: v3, served: true, \
                subresources: {scale: {specReplicasPath: .spec.size}}}]}}\n---\n\
                {apiVersion: e.com/v3, kind: Db, metadata: {name: a, namespace: n}}\n---\n\
                {apiVersion: e.com/v1, kind: Db, metadata: {name: b, namespace: n}}";
    ask(yaml, |state| {
        let definition = state.get(&key("CustomResourceDefinition/x")).unwrap();
        assert_eq!(names(&instances(state, definition)), ["Db/n/a", "Db/n/b"]);
        assert_eq!(served_versions(definition), ["v1".into(), "v3".into()]);
        let at = |name: &str| state.get(&Key::new(Kind::new("e.com", "Db"), "n", name)).unwrap();
        assert_eq!(scale_path(state, at("a")), Some(vec!["spec".into(), "size".into()]));
        assert_eq!(scale_path(state, at("b")), None);
    });
}

#[test]
fn volumes_are_found_by_their_claim_as_they_come_and_go() {
    let volume = |name: &str, spec: &str| {
        let yaml = format!("{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}}, spec: {spec}}}");
        crate::ingest::objects(&val(&yaml)).unwrap().remove(0)
    };
    let bound = "{claimRef: {namespace: a, name: c}}";
    let mut snapshot = cluster("{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}}");
    snapshot.insert(volume("w", bound));
    let mut state = State::new(&snapshot);
    let claim = key("PersistentVolumeClaim/a/c");
    assert_eq!(names(&state.claimed_by(&claim)), ["PersistentVolume/w"]);
    state.put(volume("u", bound));
    assert_eq!(names(&state.claimed_by(&claim)), ["PersistentVolume/u", "PersistentVolume/w"]);
    state.take(&key("PersistentVolume/u"));
    assert_eq!(names(&state.claimed_by(&claim)), ["PersistentVolume/w"]);
}

#[test]
fn objects_are_found_by_their_constraint_on_nodes() {
    let text = "
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {nodeSelector: {disk: ssd}}}
- {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a}, spec: {nodeSelector: {}}}
- {apiVersion: v1, kind: PersistentVolume, metadata: {name: v}}
- {apiVersion: v1, kind: PersistentVolume, metadata: {name: w}, spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}}
- {apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: a}, spec: {template: {spec: {nodeSelector: {disk: ssd}}}}}
- {apiVersion: batch/v1, kind: Job, metadata: {name: over, namespace: a}, spec: {template: {spec: {nodeSelector: {disk: ssd}}}}, status: {conditions: [{type: Complete, status: 'True'}]}}
- {apiVersion: batch/v1, kind: Job, metadata: {name: free, namespace: a}, spec: {template: {spec: {}}}, status: {conditions: [{type: Failed, status: 'True'}]}}
";
    let snapshot = cluster(text);
    let restricting: Vec<NodeConstraint> = snapshot.node_constraints().cloned().collect();
    let found = |constraint: &NodeConstraint| -> Vec<String> {
        snapshot.constrained(constraint, |_| true).iter().flatten().map(|object| object.key.to_string()).collect()
    };
    let mut all: Vec<Vec<String>> = restricting.iter().chain(&NodeConstraint::FREE).map(found).collect();
    all.sort();
    let expected: [&[&str]; 5] = [
        &["Job/a/free"],
        &["Job/a/over"],
        &["PersistentVolume/v", "Pod/a/q"],
        &["PersistentVolume/w"],
        &["Pod/a/p", "Job/a/j"],
    ];
    assert_eq!(all, expected);
    let node = cluster("{apiVersion: v1, kind: Node, metadata: {name: n, labels: {disk: hdd}}}");
    let node = node.get(&key("Node/n")).unwrap();
    assert_eq!(restricting.iter().filter(|constraint| constraint.admits(node)).count(), 1);
    assert!(NodeConstraint::FREE.iter().all(|constraint| constraint.admits(node) && !constraint.restricts()));
}
