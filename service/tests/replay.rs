//! `suture replay` as a script sees it: what of a log would have been denied, what is not judged, parts that add up, and a run
//! that is taken up again.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what the test itself gets wrong may end it")]

mod run;

use std::fs;
use std::path::PathBuf;

use run::{CLUSTER, INVARIANT, Ran, folder, suture, write};
use serde_json::{Value, json};

/// A log, and what it is replayed on.
struct Scene {
    folder: PathBuf,
    state: String,
    invariants: String,
    lines: Vec<String>,
}

/// A pod of [`CLUSTER`], as the API server answers with it.
fn pod(name: &str, uid: &str, version: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "uid": uid,
        "resourceVersion": version.to_string(), "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": true}]},
        "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        let state = write(&folder, "cluster.yaml", CLUSTER);
        let invariants = write(&folder, "invariants.yaml", INVARIANT);
        Self { folder, state, invariants, lines: Vec::new() }
    }

    /// Adds an event; `more` says what is not as usual.
    fn event(&mut self, verb: &str, reference: Value, more: Value) -> &mut Self {
        let second = self.lines.len();
        let time = format!("2026-11-01T12:{:02}:{:02}.000000Z", second / 60, second % 60);
        let mut event = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
            "auditID": format!("id-{second}"), "stage": "ResponseComplete", "requestURI": "/", "verb": verb,
            "user": {"username": "ana", "groups": ["system:authenticated"]}, "objectRef": reference,
            "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": time, "stageTimestamp": time});
        for (field, value) in more.as_object().unwrap() {
            event[field] = value.clone();
        }
        self.lines.push(event.to_string());
        self
    }

    fn scale(&mut self, replicas: u32) -> &mut Self {
        let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": replicas}});
        let of = json!({"resource": "deployments", "subresource": "scale", "namespace": "shop", "name": "web", "apiGroup": "apps"});
        self.event("patch", of, json!({"requestObject": {"spec": {"replicas": replicas}}, "responseObject": scale}))
    }

    fn delete_pod(&mut self, name: &str) -> &mut Self {
        let of = json!({"resource": "pods", "namespace": "shop", "name": name});
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
        self.event("delete", of, json!({"responseObject": status}))
    }

    fn log(&self) -> String {
        write(&self.folder, "audit.log", &(self.lines.join("\n") + "\n"))
    }

    fn replay(&self, more: &[&str]) -> Ran {
        let log = self.log();
        let flags =
            ["replay", "--log", &log, "--state", &self.state, "--profile", "none", "--invariants", &self.invariants];
        suture(&[&flags, more].concat())
    }

    fn found(&self, more: &[&str]) -> Value {
        let ran = self.replay(&[&["-o", "json", "--no-timing"], more].concat());
        assert!(ran.code < 2, "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }
}

/// Reads, refusals, leases, a pod that goes and comes again, and a scaling to nothing.
fn day(scene: &mut Scene) {
    let pods = json!({"resource": "pods", "namespace": "shop"});
    let one = json!({"resource": "pods", "namespace": "shop", "name": "web-1-c"});
    let lease =
        json!({"resource": "leases", "namespace": "kube-node-lease", "name": "n1", "apiGroup": "coordination.k8s.io"});
    let controller = json!({"username": "system:serviceaccount:kube-system:replicaset-controller"});
    scene.event("list", pods.clone(), json!({"responseObject": {"kind": "PodList", "items": []}}));
    scene.event("update", lease, json!({"responseObject": {"kind": "Lease"}}));
    scene.event("delete", one.clone(), json!({"responseStatus": {"code": 404}}));
    scene.event("delete", one, json!({"stage": "RequestReceived"}));
    scene.delete_pod("web-1-a");
    scene.event("create", pods, json!({"user": controller, "responseObject": pod("web-1-c", "c", 30)}));
    scene.scale(0);
    scene.scale(2);
}

#[test]
fn what_would_have_been_denied_is_told_with_when_by_whom_and_why() {
    let mut scene = Scene::new("replay-told");
    day(&mut scene);
    let Ran { code, out, err } = scene.replay(&[]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    let first = "denied: ana scales Deployment/shop/web from 2 to 0, at 2026-11-01T12:00:06.000000Z\n  web-serves would break for Service/shop/web: ";
    assert!(out.starts_with(first), "{out}");
    assert!(out.contains("audit.log:7, id-6"), "{out}");
    for line in [
        "  1 reads",
        "  1 earlier stages of requests",
        "  1 refused by the API server",
        "  1 leases, events and the like",
        "  1 writes of the control plane and of nodes, applied and not judged",
        "  3 writes judged",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}: {out}");
    }
    assert!(out.ends_with("would have refused 1\n"), "{out}");

    let found = scene.found(&[]);
    assert_eq!(found["outcomes"], json!({"allowed": 2, "warned": 0, "undecided": 0, "denied": 1}), "{found}");
    let report = &found["findings"][0]["report"];
    assert_eq!(report["decision"], "Denied");
    let path = write(&scene.folder, "report.json", &report.to_string());
    let explained = suture(&["explain", &path]);
    assert!(
        explained.out.contains("web-serves"),
        "a report of a replay can be shown: {}{}",
        explained.out,
        explained.err
    );
}

#[test]
fn each_write_is_judged_in_the_cluster_that_those_before_it_left() {
    let mut scene = Scene::new("replay-order");
    scene.delete_pod("web-1-a").delete_pod("web-1-b");
    let found = scene.found(&[]);
    assert_eq!(found["outcomes"]["denied"], 1, "{found}");
    assert_eq!(found["findings"][0]["entry"], 1, "the second one takes the last endpoint");

    // the same, with a pod that was made in between
    let mut scene = Scene::new("replay-made");
    let pods = json!({"resource": "pods", "namespace": "shop"});
    scene.delete_pod("web-1-a");
    scene.event("create", pods, json!({"responseObject": pod("web-1-c", "c", 30)}));
    scene.delete_pod("web-1-b");
    assert_eq!(scene.found(&[])["outcomes"]["denied"], 0);
}

#[test]
fn what_cannot_be_judged_is_counted_and_said() {
    let mut scene = Scene::new("replay-gaps");
    let web = json!({"resource": "deployments", "namespace": "shop", "name": "web", "apiGroup": "apps"});
    scene.event("patch", web, json!({"level": "Metadata"}));
    scene.event("delete", json!({"resource": "pods", "namespace": "shop", "name": "nobody"}), json!({}));
    scene.lines.push("{\"kind\": \"Ev".to_owned());
    let Ran { code, out, err } = scene.replay(&[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("not judged: 1 writes without a body"), "{out}");
    assert!(out.contains("audit.log:1: patch deployments shop/web: recorded at level Metadata"), "{out}");
    assert!(out.contains("not judged: 1 entries that cannot be read") && out.contains("audit.log:3: "), "{out}");
    assert!(out.contains("not judged: 1 writes of objects that the state does not hold"), "{out}");
    assert!(out.contains("audit.log:2: ana deletes Pod/shop/nobody"), "{out}");
}

#[test]
fn a_deletion_at_level_metadata_needs_no_body() {
    let mut scene = Scene::new("replay-metadata");
    for name in ["web-1-a", "web-1-b"] {
        scene.event(
            "delete",
            json!({"resource": "pods", "namespace": "shop", "name": name}),
            json!({"level": "Metadata"}),
        );
    }
    assert_eq!(scene.found(&[])["outcomes"]["denied"], 1);
}

#[test]
fn what_the_state_holds_already_is_passed_over() {
    let mut scene = Scene::new("replay-known");
    let state = write(&scene.folder, "later.yaml", &format!("{CLUSTER}---\n{}", pod("web-1-c", "c", 30)));
    scene.state = state;
    scene.event(
        "create",
        json!({"resource": "pods", "namespace": "shop"}),
        json!({"responseObject": pod("web-1-c", "c", 30)}),
    );
    let found = scene.found(&[]);
    assert_eq!((&found["left"]["inState"], &found["outcomes"]["allowed"]), (&json!(1), &json!(0)), "{found}");
}

#[test]
fn a_deletion_of_many_is_judged_one_by_one() {
    let mut scene = Scene::new("replay-many");
    let items = ["a", "b"].map(|id| pod(&format!("web-1-{id}"), id, 20));
    let list = json!({"kind": "PodList", "apiVersion": "v1", "items": items});
    scene.event("deletecollection", json!({"resource": "pods", "namespace": "shop"}), json!({"responseObject": list}));
    let found = scene.found(&[]);
    assert_eq!((&found["outcomes"]["allowed"], &found["outcomes"]["denied"]), (&json!(1), &json!(1)), "{found}");
    assert_eq!((&found["findings"][0]["entry"], &found["findings"][0]["part"]), (&json!(0), &json!(1)));
}

#[test]
fn the_parts_of_shards_add_up_to_the_whole() {
    let mut scene = Scene::new("replay-shards");
    day(&mut scene);
    day(&mut scene);
    scene.delete_pod("web-1-b").scale(0).scale(2).delete_pod("web-1-c");
    let whole = scene.replay(&["-o", "json", "--no-timing"]);
    let parts = ["0/3", "1/3", "2/3"].map(|shard| {
        let part = scene.folder.join(format!("{}.json", &shard[..1])).to_str().unwrap().to_owned();
        let ran = scene.replay(&["--shard", shard, "--part", &part, "-q"]);
        assert_eq!(ran.code, 0, "a Job does not run again what has ended: {}", ran.err);
        part
    });
    let merge = |parts: &[&str]| suture(&[&["replay", "-o", "json", "--no-timing", "--merge"], parts].concat());
    let [first, second, third] = &parts;
    let merged = merge(&[third, first, second]);
    assert_eq!(merged.out, whole.out, "{}", merged.err);
    assert_eq!(merged.code, whole.code);
    let missing = merge(&[third, first]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("shard 1/3 is missing"), "{}", missing.err);
    assert!(merge(&[first, first, second]).err.contains("are both shard 0/3"));
    scene.scale(1);
    fs::remove_file(first).unwrap();
    scene.replay(&["--shard", "0/3", "--part", first, "-q"]);
    assert!(merge(&[first, second, third]).err.contains("is of another log"), "parts of two logs are not one report");
}

#[test]
fn budgets_count_what_other_shards_judge() {
    let mut scene = Scene::new("replay-budget");
    let grant = "apiVersion: suture.dev/v1alpha1\nkind: OperatorGrant\nmetadata: {name: ana}\nspec:\n  subjects: [{kind: User, name: ana}]\n  \
                 budgets: [{verb: delete, kind: Pod, max: 1, window: 1h}]\n";
    scene.invariants = write(&scene.folder, "grant.yaml", grant);
    scene.delete_pod("web-1-a").delete_pod("web-1-b");
    let found = scene.found(&["--shard", "1/2"]);
    assert_eq!((&found["entries"], &found["outcomes"]["denied"]), (&json!(1), &json!(1)), "{found}");
    assert_eq!(found["findings"][0]["broken"][0]["invariant"], "deletion-budget");
}

#[test]
fn a_run_goes_on_where_it_was_ended() {
    let mut scene = Scene::new("replay-resumed");
    day(&mut scene);
    let part = scene.folder.join("part.json").to_str().unwrap().to_owned();
    let first = scene.replay(&["--part", &part, "-q"]);
    assert_eq!(first.code, 1, "{}", first.err);
    // as a run leaves it that is ended before the log is
    let mut ended: Value = serde_json::from_str(&fs::read_to_string(&part).unwrap()).unwrap();
    ended["complete"] = json!(false);
    fs::write(&part, ended.to_string()).unwrap();
    scene.scale(0).scale(2);
    let resumed = scene.replay(&["--part", &part, "-o", "json", "--no-timing"]);
    assert_eq!(resumed.out, scene.replay(&["-o", "json", "--no-timing"]).out, "{}", resumed.err);
    fs::write(&part, ended.to_string()).unwrap();
    scene.lines[0] = scene.lines[0].replace("ana", "ben");
    let other = scene.replay(&["--part", &part]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("was begun with another log"), "{}", other.err);
}

#[test]
fn admission_reviews_are_replayed_as_well() {
    let scene = Scene::new("replay-reviews");
    let review = |name: &str, allowed: Option<bool>| {
        let request = json!({"uid": name, "operation": "DELETE", "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "shop", "name": name,
            "userInfo": {"username": "ana"}});
        let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        if let Some(allowed) = allowed {
            review["response"] = json!({"uid": name, "allowed": allowed});
        }
        review.to_string()
    };
    let lines = [review("web-1-a", Some(false)), review("web-1-b", Some(true)), review("web-1-a", None)];
    let log = write(&scene.folder, "reviews.log", &lines.join("\n"));
    let flags =
        ["--state", &scene.state, "--profile", "none", "--invariants", &scene.invariants, "-o", "json", "--no-timing"];
    let ran = suture(&[&["replay", "--log", &log], &flags[..]].concat());
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&found["left"]["refused"], &found["outcomes"]["allowed"], &found["outcomes"]["denied"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let file = write(&scene.folder, "reviews.json", &format!("[{}]", lines[1..].join(",")));
    let ran = suture(&[&["replay", "--reviews", &file], &flags[..]].concat());
    let found: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    assert_eq!(found["outcomes"], json!({"allowed": 1, "warned": 0, "undecided": 0, "denied": 1}));
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let scene = Scene::new("replay-wrong");
    let flags = ["--state", &scene.state, "--profile", "none", "--invariants", &scene.invariants];
    let none = suture(&[&["replay", "--log", "/nowhere/audit.log"], &flags[..]].concat());
    assert_eq!(none.code, 4, "{}", none.err);
    let shard = scene.replay(&["--shard", "3/3"]);
    assert_eq!(shard.code, 2);
    assert!(shard.err.contains("shards are counted from 0, as in 0/3"), "{}", shard.err);
    let compressed = scene.folder.join("audit.log.gz");
    fs::write(&compressed, [0x1f, 0x8b, 8, 0, 10]).unwrap();
    let ran = suture(&[&["replay", "--log", compressed.to_str().unwrap()], &flags[..]].concat());
    assert!(ran.err.contains("is compressed: `zcat FILE | suture replay --log -"), "{}", ran.err);
}
