//! Questions as they are asked of Z3, in SMT-LIB: the text of each is kept in `snapshots`, and Z3 answers the text as it
//! answers the problem. `INSTA_UPDATE=always` writes what has changed on purpose.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop where it fails")]

use std::fmt::Write;

use suture_checker::solve::{Answer, Budget, solve_here};
use suture_encode::outage::outages;
use suture_encode::problem::Problem;
use suture_encode::question::{Inputs, Question, encode};
use suture_encode::scene::{Preparations, Scene};
use suture_encode::smtlib;
use suture_model::change::{Change, Preconditions, Propagation, Request, User};
use suture_model::effects::View;
use suture_model::futures::Outage;
use suture_model::ingest;
use suture_model::kinds::Kind;
use suture_model::land::scenarios;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::error::EvalError;
use suture_specs::library::Library;
use suture_specs::spec::{Spec, parse_specs};
use suture_specs::value::Value;
use z3::{SatResult, Solver};

/// Three nodes in as many zones, each with room for four pods.
fn nodes() -> String {
    let node = |number| {
        format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{number}, labels: {{topology.kubernetes.io/zone: z{number}}}}}, \
             status: {{allocatable: {{cpu: 4, pods: 10}}, conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
        )
    };
    [1, 2, 3].map(node).concat()
}

fn invariant(spec: &str) -> CompiledInvariant {
    let text = format!("kind: Invariant\nmetadata: {{name: asked}}\nspec: {spec}\n");
    let specs = parse_specs(&text, "asked").expect("it parses");
    let [Spec::Invariant(invariant)] = specs.as_slice() else { panic!("{text}") };
    compile_invariant(invariant, &Library::shipped().expect("it compiles")).expect("it compiles")
}

fn cluster(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    ingest::ingest(&mut snapshot, text, "cluster").expect("it is a cluster");
    snapshot
}

/// A pod of a workload, which owns it and whose name is its label.
fn pod(owner: (&str, &str), name: &str, node: &str, ready: bool) -> String {
    let (kind, owner) = owner;
    let app = owner.split('-').next().expect("a name");
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: a, uid: {name}, labels: {{app: {app}}}, \
         ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {owner}, uid: {owner}, controller: true}}]}}, \
         spec: {{nodeName: {node}, containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]}}, \
         status: {{phase: Running, conditions: [{{type: Ready, status: '{}'}}]}}}}\n",
        if ready { "True" } else { "False" }
    )
}

/// A Service over the pods of a Deployment with one ReplicaSet.
fn web(replicas: usize, more: &str) -> String {
    let spec = format!(
        "{{replicas: {replicas}, selector: {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, \
         spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]{more}}}}}}}"
    );
    format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: a, uid: s}}, spec: {{selector: {{app: web}}}}}}\n\
         ---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: a, uid: web}}, spec: {spec}}}\n\
         ---\n{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-1, namespace: a, uid: web-1, ownerReferences: \
         [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}}]}}, spec: {spec}}}\n"
    ) + &nodes()
}

fn web_pod(name: &str, node: &str) -> String {
    pod(("ReplicaSet", "web-1"), name, node, true)
}

/// What holds for the labels of a question, as comments, and its text.
fn text(question: &Question<'_, '_>) -> String {
    let mut text = String::new();
    let failed = &question.scene.view.outage.nodes;
    if !failed.is_empty() {
        writeln!(text, "; fails: {}", failed.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", "))
            .expect("text");
    }
    let mut labels: Vec<_> = question.problem.assertions.iter().map(|(label, _)| *label).collect();
    labels.dedup();
    for label in labels {
        if let Some(meaning) = question.meaning(label) {
            writeln!(text, "; L{}: {meaning}", label.0).expect("text");
        }
    }
    text + &smtlib::print(&question.problem).expect("it is printed")
}

/// Whether Z3 finds a violating future, asked by the text and by the problem.
fn answers(problem: &Problem, text: &str) -> (Option<bool>, Option<bool>) {
    let solver = Solver::new();
    solver.from_string(text);
    let read = match solver.check() {
        SatResult::Sat => Some(true),
        SatResult::Unsat => Some(false),
        SatResult::Unknown => None,
    };
    let asked = match solve_here(problem, Budget::OFFLINE).answer {
        Answer::Sat(_) => Some(true),
        Answer::Unsat { .. } => Some(false),
        Answer::Unknown(_) => None,
    };
    (read, asked)
}

/// Asks whether the last scenario of a change breaks an instance, for each outage that it must survive, with new pods
/// placed precisely. Keeps the text of the first question that does not fold, or else of one that does; that nothing fails
/// is asked last.
fn keep(name: &str, state: &str, spec: &str, instance: Key, request: impl Fn(&State<'_>) -> Request) -> Option<bool> {
    let (snapshot, compiled) = (cluster(state), invariant(spec));
    let before = State::new(&snapshot);
    let change = Change::from(request(&before));
    let scenarios = scenarios(&snapshot, &[], Some(&change), compiled.hold).expect("nothing is in flight");
    let scenario = scenarios.last().expect("there is one");
    let (object, preparations) = (before.get(&instance).expect("it is there"), Preparations::default());
    let inputs = Inputs {
        request: Value::Null,
        requests: Value::list(Vec::new()),
        time: Err(EvalError::invalid("nobody asks")),
    };
    let ask = |outage: Outage| {
        let view = View {
            moment: compiled.hold,
            outage,
            places: true,
            merge_equivalent_nodes: true,
            coarse: false,
            remade: compiled.remade,
        };
        let start = |grain| Scene::new(&before, scenario, view.clone(), compiled.faults, grain, &preparations);
        encode(&compiled, object, &inputs, &start).expect("it is encoded")
    };
    let mut possible = outages(&ask(Outage::default()).scene, compiled.faults, false).expect("they are few");
    possible.sort_by_key(|outage| outage.nodes.is_empty());
    let open = |question: &Question<'_, '_>| !question.problem.goal.is_false() && !question.problem.goal.is_true();
    let mut questions: Vec<_> = possible.into_iter().map(ask).collect();
    let question = questions.swap_remove(questions.iter().position(open).unwrap_or(0));
    let text = text(&question);
    insta::assert_snapshot!(name, text);
    let (read, asked) = answers(&question.problem, &text);
    assert_eq!(read, asked, "{text}");
    asked
}

/// Something else of a namespace, with more of its metadata.
fn object(version: &str, kind: &str, name: &str, meta: &str, more: &str) -> String {
    format!(
        "---\n{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}, namespace: a, uid: {name}{meta}}}{more}}}\n"
    )
}

/// An instance, and a request about which a template asks.
type Asked = (String, &'static str, Key, Box<dyn Fn(&State<'_>) -> Request>);

fn scale(kind: &str, name: &str, replicas: i64) -> Box<dyn Fn(&State<'_>) -> Request> {
    let key = Key::of(kind, "a", name);
    Box::new(move |state| Request::scale(User::admin(), state, key.clone(), replicas))
}

fn delete(key: Key) -> Box<dyn Fn(&State<'_>) -> Request> {
    let policy = Some(Propagation::Background);
    Box::new(move |state| Request::delete(User::admin(), state, key.clone(), policy, Preconditions::default()))
}

fn patch(key: Key, patch: &'static str) -> Box<dyn Fn(&State<'_>) -> Request> {
    let documents = ingest::parse_documents(patch, "patch").expect("it is YAML");
    Box::new(move |state| {
        let patch = &documents.first().expect("there is one").val;
        Request::patch(User::admin(), state, key.clone(), patch, "").expect("it is there")
    })
}

fn create(manifest: &'static str) -> Box<dyn Fn(&State<'_>) -> Request> {
    let documents = ingest::parse_documents(manifest, "manifest").expect("it is YAML");
    Box::new(move |state| {
        let manifest = &documents.first().expect("there is one").val;
        Request::create(User::admin(), state, manifest).expect("it is an object")
    })
}

/// An `App` and what it owns: it goes along, but nobody knows when.
const OF_APP: &str =
    ", ownerReferences: [{apiVersion: example.org/v1, kind: App, name: app, uid: app, controller: true}]";

fn app() -> Key {
    Key::new(Kind::new("example.org", "App"), "a", "app")
}

/// Nodes, and an `App`.
fn apps() -> String {
    nodes() + &object("example.org/v1", "App", "app", "", "")
}

/// A volume that a pod uses.
fn used() -> String {
    let user = ", spec: {nodeName: n1, containers: [{name: c, image: i}], volumes: [{name: d, persistentVolumeClaim: \
                {claimName: data}}]}, status: {phase: Running}";
    let claim = ", spec: {volumeName: pv}, status: {phase: Bound}";
    apps()
        + &object("v1", "PersistentVolumeClaim", "data", OF_APP, claim)
        + &object("v1", "Pod", "user", "", user)
        + "---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv, uid: pv}, \
           spec: {persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: a, name: data, uid: data}}}\n"
}

/// A StatefulSet that is a quorum of three.
fn group() -> String {
    let spec = ", spec: {replicas: 3, selector: {matchLabels: {app: etcd}}, template: {metadata: {labels: {app: etcd}}, \
                spec: {containers: [{name: c, image: i}]}}}";
    let members = [("0", "n1"), ("1", "n1"), ("2", "n2")];
    nodes()
        + &object("apps/v1", "StatefulSet", "etcd", ", labels: {suture.dev/quorum: 'true'}", spec)
        + &members.map(|(at, node)| pod(("StatefulSet", "etcd"), &format!("etcd-{at}"), node, true)).concat()
}

/// The question of each shipped template that is kept: a cluster, parameters, an instance and a request.
fn asked(template: &str) -> Asked {
    let (none, of) = ("{}", |kind, name| Key::of(kind, "a", name));
    let serving = || {
        let pods = [("a", "n1"), ("b", "n1"), ("c", "n2")];
        web(3, "") + &pods.map(|(name, node)| web_pod(&format!("web-1-{name}"), node)).concat()
    };
    match template {
        "service-keeps-endpoints" => (serving(), "{floor: 2}", of("Service", "web"), scale("Deployment", "web", 2)),
        "service-survives-fault" => (serving(), none, of("Service", "web"), scale("Deployment", "web", 2)),
        "serving-service-kept" => {
            let failing = "---\n{apiVersion: v1, kind: Node, metadata: {name: n9}, status: {conditions: [{type: Ready, status: Unknown}]}}\n";
            let state = web(1, "") + failing + &web_pod("web-1-a", "n9");
            (state, none, of("Service", "web"), delete(of("Service", "web")))
        }
        "selector-keeps-matches" => {
            let policy = ", spec: {podSelector: {matchLabels: {app: web}}}";
            let state = serving() + &object("networking.k8s.io/v1", "NetworkPolicy", "web", "", policy);
            (state, "{floor: '100%'}", of("NetworkPolicy", "web"), scale("Deployment", "web", 2))
        }
        "quorum-kept" => (group(), none, of("StatefulSet", "etcd"), scale("StatefulSet", "etcd", 1)),
        "quorum-survives-fault" => (group(), none, of("StatefulSet", "etcd"), delete(of("Pod", "etcd-2"))),
        "volume-in-use-kept" | "data-recoverable" => (used(), none, of("PersistentVolumeClaim", "data"), delete(app())),
        "references-resolve" => {
            let named = ", spec: {nodeName: n1, containers: [{name: c, image: i, envFrom: [{configMapRef: {name: conf}}]}]}, status: {phase: Running}";
            let held = format!("{OF_APP}, finalizers: [example.org/held]");
            let state =
                apps() + &object("v1", "ConfigMap", "conf", &held, "") + &object("v1", "Pod", "user", "", named);
            (state, none, of("Pod", "user"), delete(app()))
        }
        "owner-references-resolve" => {
            let (state, conf) = (nodes() + &object("v1", "ConfigMap", "conf", "", ""), of("ConfigMap", "conf"));
            let gone = "{metadata: {ownerReferences: [{apiVersion: v1, kind: Secret, name: conf, uid: gone}]}}";
            (state, none, conf.clone(), patch(conf, gone))
        }
        "live-child-kept" => {
            let state = apps() + &object("v1", "ConfigMap", "conf", OF_APP, "");
            (state, none, of("ConfigMap", "conf"), delete(of("ConfigMap", "conf")))
        }
        "crd-without-instances" => {
            let crd = "---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: apps.example.org, uid: crd}, \
                       spec: {group: example.org, scope: Namespaced, names: {plural: apps, kind: App}, versions: [{name: v1, served: true, storage: true}]}}\n";
            let key = Key::of("CustomResourceDefinition", "", "apps.example.org");
            (apps() + crd, none, key.clone(), delete(key))
        }
        "serving-namespace-kept" => {
            let namespace = Key::of("Namespace", "", "a");
            let state = serving() + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: ns}}\n";
            (state, none, namespace.clone(), delete(namespace))
        }
        "pdb-allows-disruption" => {
            let budget = ", spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}";
            let state = serving() + &object("policy/v1", "PodDisruptionBudget", "web", "", budget);
            (state, none, of("PodDisruptionBudget", "web"), scale("Deployment", "web", 2))
        }
        "unique-host" => {
            let rules = ", spec: {rules: [{host: h, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}";
            let state = nodes() + &object("networking.k8s.io/v1", "Ingress", "mine", OF_APP, rules);
            let other = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: theirs, namespace: b}, \
                         spec: {rules: [{host: h, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}}";
            (state, none, of("Ingress", "mine"), create(other))
        }
        other => asked_of_workloads(other),
    }
}

/// The same of templates about workloads, their budgets and webhooks.
fn asked_of_workloads(template: &str) -> Asked {
    let (none, of) = ("{}", |kind, name| Key::of(kind, "a", name));
    match template {
        "critical-workload-kept" => {
            let spec = ", spec: {selector: {matchLabels: {app: net}}, template: {metadata: {labels: {app: net}}, spec: {priorityClassName: system-node-critical}}}";
            let state = apps() + &object("apps/v1", "DaemonSet", "net", OF_APP, spec);
            (state, none, of("DaemonSet", "net"), delete(app()))
        }
        "ports-resolve" => {
            let ports = "{spec: {ports: [{port: 80, targetPort: http}]}}";
            (web(2, "") + &web_pod("web-1-a", "n1"), none, of("Service", "web"), patch(of("Service", "web"), ports))
        }
        "webhook-backend-kept" | "webhook-not-self-blocking" => {
            let hook = "---\n{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook, uid: hook}, \
                        webhooks: [{name: h, clientConfig: {service: {namespace: a, name: web}}}]}\n\
                        ---\n{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: ns}}\n";
            let state = web(2, "") + hook + &web_pod("web-1-a", "n1") + &web_pod("web-1-b", "n2");
            let key = Key::of("ValidatingWebhookConfiguration", "", "hook");
            match template {
                "webhook-backend-kept" => (state, none, key, scale("Deployment", "web", 1)),
                _ => (
                    state,
                    none,
                    key.clone(),
                    patch(
                        key,
                        "{webhooks: [{name: h, clientConfig: {service: {namespace: a, name: web}}, \
                     rules: [{operations: ['*'], apiGroups: [''], resources: [pods]}]}]}",
                    ),
                ),
            }
        }
        "local-traffic-has-endpoints" => {
            let state = web(3, "")
                .replace("spec: {selector: {app: web}}", "spec: {externalTrafficPolicy: Local, selector: {app: web}}")
                + &web_pod("web-1-a", "n1")
                + &web_pod("web-1-b", "n1")
                + &web_pod("web-1-c", "n2");
            (state, none, of("Service", "web"), scale("Deployment", "web", 1))
        }
        "autoscaled-replicas-kept" => {
            let target = ", spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: etcd}}";
            let state = with_app(&object("autoscaling/v2", "HorizontalPodAutoscaler", "etcd", OF_APP, target));
            (state, none, of("HorizontalPodAutoscaler", "etcd"), scale("StatefulSet", "etcd", 1))
        }
        "idle-workload-has-activator" => {
            let service = object("v1", "Service", "etcd", OF_APP, ", spec: {selector: {app: etcd}}");
            (with_app(&service), none, of("StatefulSet", "etcd"), scale("StatefulSet", "etcd", 0))
        }
        "one-member-at-a-time" => (group(), none, of("StatefulSet", "etcd"), scale("StatefulSet", "etcd", 1)),
        "quorum-has-pdb" => (with_app(&budget("etcd")), none, of("StatefulSet", "etcd"), delete(app())),
        other => asked_of_owners(other),
    }
}

/// A group, an `App`, and something else.
fn with_app(more: &str) -> String {
    group() + &object("example.org/v1", "App", "app", "", "") + more
}

/// A budget of the group, which goes with the `App`.
fn budget(name: &str) -> String {
    let spec = ", spec: {maxUnavailable: 1, selector: {matchLabels: {app: etcd}}}";
    object("policy/v1", "PodDisruptionBudget", name, OF_APP, spec)
}

/// The same of templates about storage, owners and selectors.
fn asked_of_owners(template: &str) -> Asked {
    let (none, of) = ("{}", |kind, name| Key::of(kind, "a", name));
    match template {
        "bound-volume-kept" | "retained-volume-kept" => {
            let volume = Key::of("PersistentVolume", "", "pv");
            (
                used(),
                if template == "bound-volume-kept" { none } else { "{selector: {}}" },
                volume.clone(),
                delete(volume),
            )
        }
        "no-stale-volume-adopted" => {
            let claim = object("v1", "PersistentVolumeClaim", "data-etcd-3", OF_APP, ", spec: {}");
            let state = with_app(&claim)
                .replace("{replicas: 3, ", "{replicas: 3, volumeClaimTemplates: [{metadata: {name: data}}], ");
            (state, none, of("StatefulSet", "etcd"), scale("StatefulSet", "etcd", 4))
        }
        "controller-kept" => {
            let (state, conf) = (apps() + &object("v1", "ConfigMap", "conf", OF_APP, ""), of("ConfigMap", "conf"));
            (state, none, conf.clone(), patch(conf, "{metadata: {ownerReferences: null}}"))
        }
        // no adapter says what belongs to the App
        "child-follows-owner" => (group(), none, of("StatefulSet", "etcd"), scale("StatefulSet", "etcd", 2)),
        "finalizer-respected" => {
            let going = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.org/held]";
            (
                nodes() + &object("example.org/v1", "App", "app", going, ""),
                none,
                app(),
                patch(app(), "{metadata: {finalizers: null}}"),
            )
        }
        "selectors-disjoint" => {
            let twin = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: twin, namespace: a}, spec: {selector: {matchLabels: {app: etcd}}, template: {metadata: {labels: {app: etcd}}}}}";
            (group(), none, of("StatefulSet", "etcd"), create(twin))
        }
        "no-stray-adoption" => {
            (group(), none, of("Pod", "etcd-0"), patch(of("Pod", "etcd-0"), "{metadata: {ownerReferences: null}}"))
        }
        "pdbs-disjoint" => {
            let state = with_app(&(budget("one") + &budget("two")));
            (state, none, of("Pod", "etcd-0"), patch(of("Pod", "etcd-0"), "{metadata: {labels: {a: b}}}"))
        }
        "pdb-evaluable" => {
            let state = with_app(&budget("etcd"));
            (state, none, of("PodDisruptionBudget", "etcd"), scale("StatefulSet", "etcd", 2))
        }
        other => asked_of_capacity(other),
    }
}

/// The same of templates about what may be asked for, and who writes.
fn asked_of_capacity(template: &str) -> Asked {
    let (none, of) = ("{}", |kind, name| Key::of(kind, "a", name));
    let namespace = || Key::of("Namespace", "", "a");
    let group =
        || group() + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: ns, labels: {tenant: red}}}\n";
    match template {
        "batch-bounded" => {
            let spec = ", spec: {schedule: '@daily', concurrencyPolicy: Forbid, jobTemplate: {spec: {template: {spec: {containers: []}}}}}";
            let state = nodes() + &object("batch/v1", "CronJob", "cron", "", spec);
            (state, none, of("CronJob", "cron"), patch(of("CronJob", "cron"), "{spec: {concurrencyPolicy: Allow}}"))
        }
        // no adapter says who writes
        "single-writer" => {
            let state = nodes() + &object("v1", "Secret", "key", "", "");
            (state, none, of("Secret", "key"), patch(of("Secret", "key"), "{metadata: {labels: {a: b}}}"))
        }
        "quota-fits" => {
            let state = group() + &object("v1", "ResourceQuota", "quota", "", ", spec: {hard: {pods: 4}}");
            (state, none, namespace(), scale("StatefulSet", "etcd", 5))
        }
        "data-stays-resident" => {
            let labelled = "{spec: {template: {metadata: {labels: {suture.dev/residency: eu}}}}}";
            (group(), "{zones: {eu: [z1]}}", of("StatefulSet", "etcd"), patch(of("StatefulSet", "etcd"), labelled))
        }
        "rights-kept" => {
            let role = "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: lead, namespace: a, uid: lead}, \
                        rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [update]}]}\n\
                        ---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lead, namespace: a, uid: bound}, \
                        roleRef: {kind: Role, name: lead}, subjects: [{kind: ServiceAccount, name: default}]}\n";
            (group() + role, none, of("StatefulSet", "etcd"), delete(of("Role", "lead")))
        }
        "workload-schedulable" => {
            let tight = "{spec: {template: {spec: {nodeSelector: {disk: tape}}}}}";
            (group(), none, of("StatefulSet", "etcd"), patch(of("StatefulSet", "etcd"), tight))
        }
        "rollout-can-progress" => {
            let tight = "{spec: {template: {spec: {nodeSelector: {disk: tape}}}}}";
            (group(), none, of("StatefulSet", "etcd"), patch(of("StatefulSet", "etcd"), tight))
        }
        "critical-not-preempted" => {
            let class = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: plain}, value: 5, globalDefault: true}";
            (group(), "{priority: 0}", of("StatefulSet", "etcd"), create(class))
        }
        "tenant-lease-kept" => (group(), "{leases: {red: {pods: 4}}}", namespace(), scale("StatefulSet", "etcd", 5)),
        other => panic!("`{other}` has no question here: write one"),
    }
}

#[test]
fn each_template_asks_a_question() {
    for template in Library::shipped().expect("it compiles").names() {
        let (state, params, instance, request) = asked(template);
        let spec = format!("{{template: {template}, params: {params}}}");
        keep(&template.replace('-', "_"), &state, &spec, instance, request);
    }
}

#[test]
fn a_quorum_that_is_scaled_down_in_order() {
    let group = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: etcd, namespace: a, uid: etcd, labels: {suture.dev/quorum: 'true'}}, \
                 spec: {replicas: 3, selector: {matchLabels: {app: etcd}}, template: {metadata: {labels: {app: etcd}}, spec: {}}}}\n";
    let member = |name, ready| pod(("StatefulSet", "etcd"), name, "n1", ready);
    let state = format!(
        "{}---\n{group}{}{}{}",
        nodes(),
        member("etcd-0", false),
        member("etcd-1", true),
        member("etcd-2", true)
    );
    let key = || Key::of("StatefulSet", "a", "etcd");
    let found = keep("quorum_in_order", &state, "{template: quorum-kept}", key(), |state| {
        Request::scale(User::admin(), state, key(), 2)
    });
    assert_eq!(found, Some(false));
}

#[test]
fn an_eviction_that_a_budget_allows() {
    let budget = "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: a}, \
                  spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3}}\n";
    let state = web(2, "") + budget + &web_pod("web-1-a", "n1") + &web_pod("web-1-b", "n2") + &web_pod("web-1-c", "n3");
    let spec = "{template: service-keeps-endpoints, params: {floor: 2}}";
    let found = keep("eviction_under_a_budget", &state, spec, Key::of("Service", "a", "web"), |_| {
        Request::evict(User::admin(), Key::of("Pod", "a", "web-1-a"))
    });
    assert_eq!(found, Some(true));
}

#[test]
fn a_service_whose_node_fails() {
    let state = web(4, "")
        + &["a", "b"].map(|name| web_pod(&format!("web-1-{name}"), "n1")).concat()
        + &["c", "d"].map(|name| web_pod(&format!("web-1-{name}"), "n2")).concat();
    let spec = "{template: service-survives-fault}";
    let found = keep("outage", &state, spec, Key::of("Service", "a", "web"), |state| {
        Request::scale(User::admin(), state, Key::of("Deployment", "a", "web"), 2)
    });
    assert_eq!(found, Some(true));
}

#[test]
fn new_pods_within_limits() {
    let spread = ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, \
                  labelSelector: {matchLabels: {app: web}}}]";
    let state = web(2, spread) + &web_pod("web-1-a", "n1") + &web_pod("web-1-b", "n2");
    let spec = "{hold: After, under: {nodeFailures: 1}, forEach: {var: svc, kind: Service}, \
                require: [{expression: svc.endpoints(now).size() >= 4}]}";
    let found = keep("placement", &state, spec, Key::of("Service", "a", "web"), |state| {
        Request::scale(User::admin(), state, Key::of("Deployment", "a", "web"), 6)
    });
    assert_eq!(found, Some(false));
}
