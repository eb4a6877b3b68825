//! Every request that a suite denies reaches the webhook, by the generated rules and match conditions, also of a policy that
//! has nothing but the invariant which it breaks.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use cel::{Context, Program, Value};
use serde_json::{Value as Json, json};
use suture_checker::decision::{Finding, Outcome};
use suture_model::change::{Operation, Request, User, plural};
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_service::input::Source;
use suture_service::never_asked::{is_housekeeping, is_never_asked};
use suture_service::policy::{Documents, Policy};
use suture_service::rules::{Rule, rules, watched};
use suture_service::serve::configuration::{Target, webhook};
use suture_service::suite::documents::{documents, find, missing_templates};
use suture_service::suite::run::{Seen, run_watched};
use suture_specs::library::Library;
use suture_specs::spec::{Profile, Suite};
use suture_tests::in_parts;

/// What suites deny, and by what of it.
#[derive(Default)]
struct Denials {
    count: usize,
    /// Those that never reach the webhook, in words.
    missed: Vec<String>,
    /// From which sides templates are broken.
    tested: BTreeMap<String, BTreeSet<Side>>,
}

impl Denials {
    /// Runs suites, each from the first one on by steps of so many.
    fn of(suites: &[Suite], first: usize, steps: usize) -> Self {
        let mut denials = Self::default();
        for suite in suites.iter().skip(first).step_by(steps) {
            let report = run_watched(suite, Some(&mut |seen: &Seen<'_>| denials.see(seen))).unwrap();
            assert!(report.cases.iter().all(|case| case.failure.is_none()), "{}", report.name);
        }
        denials
    }

    fn see(&mut self, seen: &Seen<'_>) {
        let by_controller = |r: &Request| r.user.username.starts_with("system:serviceaccount:kube-system:");
        if seen.decision.decision != Outcome::Denied || seen.change.requests.iter().all(by_controller) {
            return;
        }
        // each invariant alone sees what breaks it
        let broken = seen.decision.verdicts.iter().filter(|v| v.outcome == Finding::Refuted).map(|v| &v.invariant);
        for name in broken.collect::<BTreeSet<_>>() {
            self.count += 1;
            let mut policy = seen.policy.clone();
            policy.invariants.retain(|invariant| *invariant.name == **name);
            for template in policy.invariants.iter().filter_map(|invariant| invariant.template.as_ref()) {
                let found = seen.change.requests.iter().map(side_of);
                self.tested.entry(template.to_string()).or_default().extend(found);
            }
            if !policy.invariants.is_empty() && !seen.change.requests.iter().any(|request| comes(&policy, request)) {
                let what: Vec<String> = seen.change.requests.iter().map(Request::describe).collect();
                self.missed.push(format!("{}: {name}: {}", seen.suite.name, what.join(", then ")));
            }
        }
    }

    fn join(mut self, other: Self) -> Self {
        self.count += other.count;
        self.missed.extend(other.missed);
        for (template, sides) in other.tested {
            self.tested.entry(template).or_default().extend(sides);
        }
        self
    }
}

#[test]
fn whatever_is_denied_reaches_the_webhook() {
    let folders = ["cases", "effects", "samples"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    let mut suites = find(&folders).unwrap();
    suites.retain(|suite| missing_templates(&documents(suite).unwrap()).is_empty());
    let parts = in_parts(|first, steps| Denials::of(&suites, first, steps));
    let Denials { count, missed, tested } = parts.into_iter().fold(Denials::default(), Denials::join);
    println!("{count} denied requests, {} never seen", missed.len());
    show_sides(&tested);
    assert!(count > 90, "only {count} requests were denied: are the suites there?");
    assert!(missed.is_empty(), "never seen:\n{}", missed.join("\n"));
}

/// A side from which a template can be broken: a resource of a group, with its subresource, and what is done with it.
type Side = (String, Operation);

fn side_of(request: &Request) -> Side {
    let Request { operation, subresource, target, .. } = request;
    let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
    (format!("{}/{}{part}", target.kind.group, plural(&target.kind.kind)), *operation)
}

/// Those that the generated rules of a policy name, kind by kind.
fn sides(policy: &Policy) -> BTreeSet<Side> {
    let mut found = BTreeSet::new();
    for rule in rules(policy) {
        for (group, resource) in rule.groups.iter().flat_map(|g| rule.resources.iter().map(move |r| (g, r))) {
            if !group.contains('*') && !resource.contains('*') {
                found.extend(rule.operations.iter().map(|operation| (format!("{group}/{resource}"), *operation)));
            }
        }
    }
    found
}

/// Prints for each shipped template how many sides its break surface has, and from how many of them a suite breaks it.
fn show_sides(tested: &BTreeMap<String, BTreeSet<Side>>) {
    let (mut without, shipped) = (Vec::new(), shipped());
    println!("{:<32}{:>6}{:>8}  by", "template", "sides", "tested");
    for template in Library::shipped().unwrap().names() {
        let mut policy = shipped.clone();
        policy.invariants.retain(|invariant| invariant.template.as_deref() == Some(template));
        let all = sides(&policy);
        let broken: Vec<String> =
            tested.get(template).into_iter().flatten().map(|(what, how)| format!("{} {what}", how.as_str())).collect();
        println!("{template:<32}{:>6}{:>8}  {}", all.len(), broken.len(), broken.join(", "));
        without.extend(broken.is_empty().then(|| template.to_owned()));
    }
    assert!(without.is_empty(), "no suite breaks {}", without.join(", "));
}

#[test]
fn what_a_cluster_lives_by_never_waits() {
    let policy = shipped();
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    let manifest = |kind: &str, version: &str, ns: &str| {
        suture_model::value::Val::object([
            ("apiVersion", suture_model::value::Val::str(version)),
            ("kind", suture_model::value::Val::str(kind)),
            (
                "metadata",
                suture_model::value::Val::object([
                    ("name", suture_model::value::Val::str("x")),
                    ("namespace", suture_model::value::Val::str(ns)),
                ]),
            ),
        ])
    };
    let pod = Key::of("Pod", "shop", "x");
    let ana = || User::named("ana");
    for (what, request) in [
        ("a lease", Request::create(ana(), &state, &manifest("Lease", "coordination.k8s.io/v1", "kube-node-lease"))),
        ("an event", Request::create(ana(), &state, &manifest("Event", "v1", "shop"))),
        ("an event of the new group", Request::create(ana(), &state, &manifest("Event", "events.k8s.io/v1", "shop"))),
        ("a pod of a controller", {
            let user = User::named("system:serviceaccount:kube-system:replicaset-controller");
            Request::create(user, &state, &manifest("Pod", "v1", "shop"))
        }),
        ("the garbage collector", {
            let user = User::named("system:serviceaccount:kube-system:generic-garbage-collector");
            Ok(Request::delete(user, &state, pod.clone(), None, Default::default()))
        }),
        ("the scheduler", Ok(Request::bind(User::named("system:kube-scheduler"), pod.clone(), "n1"))),
        ("a mirror pod of a kubelet", {
            Request::create(User::named("system:node:n1"), &state, &manifest("Pod", "v1", "kube-system"))
        }),
        ("a certificate request of a node", {
            let manifest = manifest("CertificateSigningRequest", "certificates.k8s.io/v1", "");
            Request::create(User::named("system:bootstrap:abc"), &state, &manifest)
        }),
        ("Suture's own status", {
            let user = User::named("system:serviceaccount:suture-system:suture");
            Request::update(user, &state, &manifest("Node", "v1", ""), "status")
        }),
    ] {
        let request = request.unwrap();
        assert!(!comes(&policy, &request), "{what} waits for the webhook");
        let kind = &request.target.kind;
        let passes = is_never_asked(&request)
            || is_housekeeping(&kind.group, &plural(&kind.kind), &request.subresource)
            // no replay knows which account Suture runs as
            || request.user.username.ends_with(":suture");
        assert!(passes, "{what} is judged by a replay");
    }
    // and their neighbours come
    for (what, request) in [
        ("a pod of a person", Request::create(ana(), &state, &manifest("Pod", "v1", "shop")).unwrap()),
        ("a deletion by a person", Request::delete(ana(), &state, pod.clone(), None, Default::default())),
        ("a deletion of anything", {
            let key = Key::new(suture_model::kinds::Kind::new("example.com", "Thing"), "shop", "x");
            Request::delete(ana(), &state, key, None, Default::default())
        }),
        ("an eviction by a kubelet", Request::evict(User::named("system:node:n1"), pod.clone())),
        ("a service account of another namespace", {
            let user = User::named("system:serviceaccount:shop:replicaset-controller");
            Request::create(user, &state, &manifest("Pod", "v1", "shop")).unwrap()
        }),
    ] {
        assert!(comes(&policy, &request), "{what} does not reach the webhook");
        assert!(!is_never_asked(&request), "{what} is not judged by a replay");
    }
}

/// Requests: the failure policy of the one webhook that they come to, who, in which namespace, on what, how, the object as
/// it is to be and as it was (see [`known_object`]), and what that is.
const NEEDED: &str = "
    Ignore cloud                 -             /nodes                      CREATE usable  -       a node joins
    Ignore cloud                 -             /nodes                      UPDATE usable  tainted a node is initialized
    Ignore cni                   -             /nodes/status               UPDATE ready   waiting a network is up
    Ignore kube-system:ccm       -             /nodes                      DELETE -       usable  a node that is gone
    Ignore kube-system:ccm       shop          /services                   UPDATE one     three   a load balancer
    Ignore kube-system:csi       -             /persistentvolumes          CREATE one     -       a volume is made
    Ignore kube-system:cilium    shop          cilium.io/ciliumendpoints   DELETE -       one     a network's endpoint
    Ignore kube-system:horizontal-pod-autoscaler kube-system apps/deployments/scale UPDATE one three DNS is scaled
    Ignore ana                   kube-system   apps/deployments            UPDATE one     three   DNS is rolled out
    Ignore ana                   kube-system   /pods                       DELETE -       one     a pod of DNS
    Ignore ana                   kube-system   /configmaps                 UPDATE one     three   DNS is configured
    Ignore ana                   calico-system /configmaps                 DELETE -       one     the network's namespace
    Ignore calico-system:node    shop          /pods/status                UPDATE one     three   an account of it
    Ignore ana - apiextensions.k8s.io/customresourcedefinitions CREATE definition - Suture's own definitions
    Ignore ana - rbac.authorization.k8s.io/clusterroles         DELETE -      role  Suture's own rights
    Fail   ana                   -             /nodes                      UPDATE cordon  usable  a node is cordoned
    Fail   ana                   -             /nodes                      UPDATE tainted usable  a taint comes
    Fail   ana                   -             /nodes                      UPDATE bare    usable  a label goes
    Fail   ana                   -             /nodes                      DELETE -       usable  a node, by a person
    Fail   kube-system:ccm       shop          /pods/eviction              CREATE one     -       an eviction
    Fail   kube-system:horizontal-pod-autoscaler shop apps/deployments/scale UPDATE one three a workload's autoscaler
    Fail   kube-system:keda      shop          apps/deployments/scale      UPDATE one     three   scaled by kube-system
    Fail   kube-system:autoscaler shop         /pods                       DELETE -       one     a pod, by kube-system
    Fail   kube-system:csi       shop          /persistentvolumeclaims     DELETE -       one     a claim, by kube-system
    Fail   kube-system-2:x       shop          apps/deployments            UPDATE one     three   a namespace named alike
    Fail   ana                   shop          apps/deployments            UPDATE one     three   another namespace
    Fail   ana - apiextensions.k8s.io/customresourcedefinitions DELETE -      one   another definition
    Fail   ana - rbac.authorization.k8s.io/clusterroles         DELETE -      one   another role
";

/// The objects of [`NEEDED`].
fn known_object(name: &str) -> Json {
    let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"});
    let own = |value: &str| json!({"key": "own", "value": value, "effect": "NoSchedule"});
    let node = |spec: Json, labels: Json| json!({"metadata": {"name": "n1", "labels": labels}, "spec": spec});
    let status = |ready: &str| json!({"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
    match name {
        "-" => Json::Null,
        "usable" => node(json!({"taints": [own("x")], "providerID": "a"}), json!({"a": "b", "zone": "z"})),
        "tainted" => node(json!({"taints": [taint, own("y")]}), json!({"a": "b"})),
        "cordon" => node(json!({"taints": [own("x")], "unschedulable": true}), json!({"a": "b", "zone": "z"})),
        "bare" => node(json!({"taints": [own("x")]}), json!({"a": "b"})),
        "ready" => status("True"),
        "waiting" => status("False"),
        "definition" => json!({"metadata": {"name": "invariants.suture.dev"}}),
        "role" => json!({"metadata": {"name": "suture-read-policy"}}),
        "one" => json!({"metadata": {"name": "one"}, "spec": {"replicas": 1}}),
        "three" => json!({"metadata": {"name": "one", "finalizers": ["a/b"]}, "spec": {"replicas": 3}}),
        other => panic!("no object `{other}`"),
    }
}

#[test]
fn what_a_cluster_needs_to_come_up_never_waits() {
    let policy = shipped();
    let target = Target { system_namespaces: vec!["calico-system".to_owned()], ..Target::default() };
    let mut wrong = Vec::new();
    for row in NEEDED.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [wanted, user, ns, place, operation, object, old] = words[..7] else { panic!("{row}") };
        let user = if user.contains(':') { format!("system:serviceaccount:{user}") } else { user.to_owned() };
        let place: Vec<&str> = place.split('/').chain([""]).collect();
        let operation = match operation {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            _ => Operation::Delete,
        };
        let (object, old) = (known_object(object), known_object(old));
        let place = (place[0], place[1], place[2]);
        let mut review = review(place, operation, &User::named(&user), object.clone(), old.clone());
        if ns != "-" {
            review.request["namespace"] = ns.into();
        }
        let named = if object.is_null() { &old } else { &object };
        review.request["name"] = named["metadata"]["name"].clone();
        // it is judged all the same, as long as there is somebody to judge it
        let called = called(&policy, &target, &review);
        if called != [wanted] {
            wrong.push(format!("{}: {called:?}", words[7..].join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_node_is_judged_when_it_stops_being_ready_and_not_at_each_heartbeat() {
    let policy = shipped();
    let node = |ready: &str, time: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": time}],
        }})
    };
    let user = User::named("cni-agent");
    let review = |old: Json, new: Json| review(("", "nodes", "status"), Operation::Update, &user, new, old);
    assert!(!reaches(&policy, &review(node("True", "1"), node("True", "2"))));
    assert!(reaches(&policy, &review(node("True", "1"), node("False", "2"))));
    assert!(!reaches(&policy, &review(json!({"metadata": {"name": "n1"}}), json!({"metadata": {"name": "n1"}}))));
}

#[test]
fn the_rules_are_as_narrow_as_the_invariants() {
    let policy = |template: &str| {
        let mut documents = Documents::default();
        documents.add_profile(Some(Profile::Strict)).unwrap();
        documents.invariants.retain(|i| &*i.name == template);
        documents.compile().unwrap()
    };
    let covers = |rules: &[Rule], group: &str, resource: &str, subresource: &str, operation: Operation| {
        rules.iter().any(|rule| rule.covers(group, resource, subresource, operation))
    };
    let text = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: classes}, spec: {forEach: {var: c,
        kind: StorageClass}, require: [{expression: c.liveIn(now)}]}}";
    let source = Source { name: "a test".to_owned(), text: text.to_owned() };
    let classes = Documents::read(&[source]).unwrap().compile().unwrap();
    let allowed = rules(&classes);
    assert!(covers(&allowed, "storage.k8s.io", "storageclasses", "", Operation::Create));
    assert!(!covers(&allowed, "", "pods", "", Operation::Create), "{allowed:?}");
    assert!(!covers(&allowed, "", "pods", "eviction", Operation::Create));
    assert!(!watched(&classes).iter().any(|kind| kind.is("Pod")));
    // what lies in a namespace may have a pod as its owner
    let allowed = rules(&policy("unique-host"));
    assert!(covers(&allowed, "networking.k8s.io", "ingresses", "", Operation::Update));
    assert!(covers(&allowed, "", "pods", "eviction", Operation::Create));
    assert!(!covers(&allowed, "", "secrets", "", Operation::Create));
    let endpoints = policy("service-keeps-endpoints");
    let allowed = rules(&endpoints);
    for (group, resource, subresource, operation) in [
        ("", "pods", "eviction", Operation::Create),
        ("", "pods", "status", Operation::Update),
        ("apps", "deployments", "scale", Operation::Update),
        ("apps", "deployments", "", Operation::Update),
        ("", "services", "", Operation::Update),
        ("", "nodes", "", Operation::Update),
        ("example.com", "things", "", Operation::Delete),
    ] {
        assert!(covers(&allowed, group, resource, subresource, operation), "{resource}/{subresource}");
    }
    let secret = |metadata: Json| json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
    let update = |new: Json, subresource: &str| {
        let old = secret(json!({"name": "a", "finalizers": ["x/y"]}));
        reaches(
            &endpoints,
            &review(("", "secrets", subresource), Operation::Update, &User::named("ana"), secret(new), old),
        )
    };
    assert!(!update(json!({"name": "a", "labels": {"a": "b"}, "finalizers": ["x/y"]}), ""));
    assert!(update(json!({"name": "a"}), ""), "it holds its dependents no more");
    for subresource in ["", "status"] {
        let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none"}]);
        let owned = json!({"name": "a", "finalizers": ["x/y"], "ownerReferences": owners});
        assert!(update(owned, subresource), "it may be collected");
    }
    assert!(!covers(&allowed, "example.com", "things", "", Operation::Create));
}

fn shipped() -> Policy {
    let mut documents = Documents::default();
    documents.add_profile(Some(Profile::Strict)).unwrap();
    documents.compile().unwrap()
}

/// Whether the API server would send a request to one of the webhooks, and to one only.
fn comes(policy: &Policy, request: &Request) -> bool {
    let Request { user, operation, subresource, target, object, old, .. } = request;
    let json =
        |val: &Option<suture_model::value::Val>| val.as_ref().map_or(Json::Null, |v| serde_json::to_value(v).unwrap());
    let place = (&*target.kind.group, &*plural(&target.kind.kind), subresource.as_str());
    reaches(policy, &review(place, *operation, user, json(object), json(old)))
}

struct Review {
    place: (String, String, String),
    operation: Operation,
    request: Json,
    object: Json,
    old: Json,
}

/// A request as match conditions see it: what is empty is left out.
fn review(
    (group, resource, subresource): (&str, &str, &str),
    operation: Operation,
    user: &User,
    object: Json,
    old: Json,
) -> Review {
    let mut request = json!({
        "operation": operation.as_str(),
        "resource": {"group": group, "version": "v1", "resource": resource},
        "userInfo": {"username": &*user.username},
    });
    if !user.groups.is_empty() {
        request["userInfo"]["groups"] = user.groups.iter().map(|g| Json::from(&**g)).collect();
    }
    if !subresource.is_empty() {
        request["subResource"] = subresource.into();
    }
    let place = (group.to_owned(), resource.to_owned(), subresource.to_owned());
    Review { place, operation, request, object, old }
}

fn reaches(policy: &Policy, review: &Review) -> bool {
    let called = called(policy, &Target::default(), review).len();
    assert!(called <= 1, "a request comes {called} times");
    called == 1
}

/// The failure policies of the webhooks that a request comes to.
fn called(policy: &Policy, target: &Target, review: &Review) -> Vec<String> {
    let (group, resource, subresource) = &review.place;
    let hooks = webhook(policy, target).webhooks.unwrap();
    let called = hooks.iter().filter(|hook| {
        let covered = hook.rules.iter().flatten().any(|rule| {
            let rule = Rule {
                groups: rule.api_groups.clone().unwrap(),
                resources: rule.resources.clone().unwrap(),
                operations: if rule.operations.as_ref().unwrap().iter().any(|o| o == review.operation.as_str()) {
                    vec![review.operation]
                } else {
                    Vec::new()
                },
            };
            rule.covers(group, resource, subresource, review.operation)
        });
        covered && hook.match_conditions.iter().flatten().all(|c| holds(&c.expression, review))
    });
    called.filter_map(|hook| hook.failure_policy.clone()).collect()
}

/// An expression, compiled once: the same ones are asked of each request.
fn compiled(expression: &str) -> Rc<Program> {
    thread_local!(static KNOWN: RefCell<BTreeMap<String, Rc<Program>>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        let compile = || Program::compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        known.entry(expression.to_owned()).or_insert_with(|| Rc::new(compile())).clone()
    })
}

fn holds(expression: &str, review: &Review) -> bool {
    let mut context = Context::default();
    context.add_variable("request", &review.request).unwrap();
    context.add_variable("object", &review.object).unwrap();
    context.add_variable("oldObject", &review.old).unwrap();
    match compiled(expression).execute(&context) {
        Ok(Value::Bool(holds)) => holds,
        // with failurePolicy Fail this would refuse the request
        other => panic!("{expression}: {other:?}"),
    }
}
