//! For each shipped template a request that is denied, and one that is allowed.

use serde_json::{Value, json};
use suture_e2e::objects::{apart, bound_claim, definition, eviction, ingress, pod, pod_spec, service, workload};

use super::bench::{Ask, Bench, settled};

/// What the requests are about.
pub(super) fn objects() -> Vec<Value> {
    let mut web = workload("Deployment", "shop", "web", 3, &apart("web"));
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
    let mut kv = workload("StatefulSet", "quorum", "kv", 3, &apart("kv"));
    kv["metadata"]["labels"] = json!({"suture.dev/quorum": "true"});
    let mut mounting = pod("data", "reader", "reader", "node-0");
    mounting["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "mounted"}}]);
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "to-web", "namespace": "shop"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{}]}});
    let config = |place: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": place, "labels": {"made": "for-test"}}, "data": {"key": "value"}})
    };
    let mut all = vec![
        service("shop", "web"),
        web,
        config("shop", "settings"),
        config("shop", "unused"),
        policy,
        service("shop", "single"),
        pod("shop", "single", "single", "node-1"),
        service("shop", "idle"),
        ingress("shop", "shop", "shop.example"),
        service("quorum", "kv"),
        kv,
        service("lone", "duo"),
        pod("lone", "duo-0", "duo", "node-2"),
        pod("lone", "duo-1", "duo", "node-3"),
        mounting,
        config("empty", "nothing"),
        definition("e2e.example", "Widget"),
        definition("e2e.example", "Gadget"),
        service("doomed", "web"),
        workload("Deployment", "doomed", "web", 1, &pod_spec()),
    ];
    for (name, reclaim) in [("deleted", "Delete"), ("retained", "Retain"), ("mounted", "Retain"), ("free", "Retain")] {
        all.extend(bound_claim("data", name, reclaim));
    }
    all
}

/// Requests on pods that serve.
pub(super) fn endpoints(bench: &mut Bench) {
    let raw = |pod: &str| format!("--raw=/api/v1/namespaces/{pod}/eviction");
    let (single, web) = (raw("shop/pods/single"), bench.pod_of("shop", "web"));
    let of_web = raw(&format!("shop/pods/{web}"));
    let create = |path| vec!["create", path, "--filename=-"];
    let body = |place: &str, pod: &str| eviction(place, pod).to_string();
    bench.denied(
        "service-keeps-endpoints",
        "single",
        "evict the last endpoint",
        Ask::Read(&create(&single), body("shop", "single")),
    );
    bench.denied(
        "service-keeps-endpoints",
        "single",
        "delete it, dry run",
        Ask::Run(&["delete", "pod", "single", "--namespace=shop", "--dry-run=server"]),
    );
    let unready = r#"{"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#;
    bench.denied(
        "service-keeps-endpoints",
        "single",
        "write its /status: not ready",
        Ask::Run(&[
            "patch",
            "pod",
            "single",
            "--namespace=shop",
            "--subresource=status",
            "--type=strategic",
            "--patch",
            unready,
        ]),
    );
    bench.allowed("service-keeps-endpoints", "evict one of three", Ask::Read(&create(&of_web), body("shop", &web)));
    bench.serving("shop", "web", 3);

    bench.denied(
        "service-survives-fault",
        "duo",
        "delete one of two, which are on two nodes",
        Ask::Run(&["delete", "pod", "duo-0", "--namespace=lone"]),
    );
    bench.allowed(
        "service-survives-fault",
        "the same of three on three nodes",
        Ask::Run(&["delete", "pod", &bench.pod_of("shop", "web"), "--namespace=shop"]),
    );
    bench.serving("shop", "web", 3);
}

/// A definition that comes while Suture judges says which pods a custom resource without adapter runs.
pub(super) fn scale_of_a_definition(bench: &mut Bench) {
    let mut fleets = definition("e2e.example", "Fleet");
    fleets["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}});
    bench.admin.create(&fleets.to_string()).expect("the definition");
    let fleet = json!({"apiVersion": "e2e.example/v1", "kind": "Fleet", "metadata": {"name": "single", "namespace": "shop"},
        "spec": {"size": 2}, "status": {"selector": "app=single", "size": 1}});
    settled("the resource", || bench.admin.create(&fleet.to_string()).is_ok(), &true);
    let scale = |replicas| ["scale", "fleets.e2e.example", "single", "--namespace=shop", replicas];
    let dry = [scale("--replicas=0").as_slice(), &["--dry-run=server"]].concat();
    settled("its watch", || bench.admin.run(&dry).expect("kubectl").success, &false);
    bench.denied("service-keeps-endpoints", "single", "scale a custom resource to 0", Ask::Run(&scale("--replicas=0")));
    bench.allowed("service-keeps-endpoints", "scale it to 1", Ask::Run(&scale("--replicas=1")));
}

/// Requests on quorums, and on what may be disrupted.
pub(super) fn quorums_and_budgets(bench: &mut Bench) {
    bench.denied(
        "quorum-kept",
        "kv",
        "scale a quorum of 3 to 1",
        Ask::Run(&["scale", "statefulset", "kv", "--namespace=quorum", "--replicas=1"]),
    );
    bench.allowed(
        "quorum-kept",
        "scale it to 5",
        Ask::Run(&["scale", "statefulset", "kv", "--namespace=quorum", "--replicas=5"]),
    );
    bench.serving("quorum", "kv", 5);

    let quorum = |app: &str, spec: &Value| {
        let mut set = workload("StatefulSet", "quorum", app, 3, spec);
        set["metadata"]["labels"] = json!({"suture.dev/quorum": "true"});
        set.to_string()
    };
    let apply = ["apply", "--server-side", "--filename=-"];
    bench.denied(
        "quorum-survives-fault",
        "crowded",
        "server-side apply of a quorum that may share a node",
        Ask::Read(&apply, quorum("crowded", &pod_spec())),
    );
    bench.allowed(
        "quorum-survives-fault",
        "server-side apply of one that is kept apart",
        Ask::Read(&apply, quorum("spread", &apart("spread"))),
    );

    let budget = |max: u32| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": max, "selector": {"matchLabels": {"app": "web"}}}})
        .to_string()
    };
    bench.denied(
        "pdb-allows-disruption",
        "web",
        "create a budget of none",
        Ask::Read(&["create", "--filename=-"], budget(0)),
    );
    bench.allowed("pdb-allows-disruption", "create a budget of one", Ask::Read(&["create", "--filename=-"], budget(1)));
}

/// Requests on claims, and on what is owned.
pub(super) fn data_and_owners(bench: &mut Bench) {
    bench.denied(
        "data-recoverable",
        "deleted",
        "delete a claim whose volume goes with it",
        Ask::Run(&["delete", "pvc", "deleted", "--namespace=data"]),
    );
    bench.allowed(
        "data-recoverable",
        "delete one whose volume is retained",
        Ask::Run(&["delete", "pvc", "retained", "--namespace=data", "--wait=false"]),
    );
    bench.denied(
        "volume-in-use-kept",
        "mounted",
        "delete a claim that a pod mounts",
        Ask::Run(&["delete", "pvc", "mounted", "--namespace=data", "--wait=false"]),
    );
    bench.allowed(
        "volume-in-use-kept",
        "delete one that nobody mounts",
        Ask::Run(&["delete", "pvc", "free", "--namespace=data", "--wait=false"]),
    );

    let set = bench.admin.json(&["get", "replicasets", "--namespace=shop", "--selector=app=web"]).expect("sets");
    let set = set["items"][0]["metadata"]["name"].as_str().expect("name").to_owned();
    bench.denied(
        "live-child-kept",
        &set,
        "delete the ReplicaSet of a live Deployment",
        Ask::Run(&["delete", "replicaset", &set, "--namespace=shop"]),
    );
    let alone = workload("ReplicaSet", "empty", "alone", 0, &pod_spec());
    bench.admin.create(&alone.to_string()).expect("a ReplicaSet");
    bench.allowed(
        "live-child-kept",
        "delete a ReplicaSet that nobody owns",
        Ask::Run(&["delete", "replicaset", "alone", "--namespace=empty"]),
    );

    let owner = bench.admin.json(&["get", "deployment", "web", "--namespace=shop"]).expect("deployment");
    let owned = |uid: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "namespace": "shop",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid}]}})
        .to_string()
    };
    bench.denied(
        "owner-references-resolve",
        "owned",
        "create an object that names an owner of another life",
        Ask::Read(&["create", "--filename=-"], owned(&json!("11111111-2222-3333-4444-555555555555"))),
    );
    bench.allowed(
        "owner-references-resolve",
        "create one that names the living owner",
        Ask::Read(&["create", "--filename=-"], owned(&owner["metadata"]["uid"])),
    );
}

/// Requests on what others refer to.
pub(super) fn references_and_hosts(bench: &mut Bench) {
    bench.denied(
        "references-resolve",
        "settings",
        "delete a ConfigMap that pods need",
        Ask::Run(&["delete", "configmap", "settings", "--namespace=shop"]),
    );
    bench.allowed(
        "references-resolve",
        "delete one that nobody needs",
        Ask::Run(&["delete", "configmap", "unused", "--namespace=shop"]),
    );
    let collection = "--raw=/api/v1/namespaces/shop/configmaps?labelSelector=made%3Dfor-test";
    bench.denied("references-resolve", "settings", "deletecollection of ConfigMaps", Ask::Run(&["delete", collection]));
    let collection = "--raw=/api/v1/namespaces/empty/configmaps?labelSelector=made%3Dfor-test";
    bench.allowed("references-resolve", "deletecollection where nobody needs any", Ask::Run(&["delete", collection]));

    let select = |app: &str| json!({"spec": {"podSelector": {"matchLabels": {"app": app}}}}).to_string();
    let patch = |with: &'static str| ["patch", "networkpolicy", "to-web", "--namespace=shop", "--type=merge", with];
    let (typo, same) = (format!("--patch={}", select("wep")), format!("--patch={}", select("single")));
    let (typo, same): (&'static str, &'static str) = (typo.leak(), same.leak());
    bench.denied("selector-keeps-matches", "to-web", "select pods that there are none of", Ask::Run(&patch(typo)));
    bench.allowed("selector-keeps-matches", "select other pods", Ask::Run(&patch(same)));

    bench.denied(
        "serving-service-kept",
        "single",
        "delete a Service with endpoints",
        Ask::Run(&["delete", "service", "single", "--namespace=shop"]),
    );
    bench.allowed(
        "serving-service-kept",
        "delete one without",
        Ask::Run(&["delete", "service", "idle", "--namespace=shop"]),
    );

    bench.denied(
        "unique-host",
        "stolen",
        "claim the host of another namespace",
        Ask::Read(&["create", "--filename=-"], ingress("rival", "stolen", "shop.example").to_string()),
    );
    bench.allowed(
        "unique-host",
        "claim one that is free",
        Ask::Read(&["create", "--filename=-"], ingress("rival", "own", "rival.example").to_string()),
    );
}

/// Requests that take much along.
pub(super) fn whole_sets(bench: &mut Bench) {
    let widget =
        json!({"apiVersion": "e2e.example/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "shop"}});
    settled(
        "the definition",
        || bench.admin.run_with(&["apply", "--filename=-"], &widget.to_string()).expect("kubectl").success,
        &true,
    );
    settled(
        "the watch of the definition's objects",
        || bench.counted("suture_objects{kind=\"Widget\"}").to_string(),
        &"1".to_owned(),
    );
    bench.denied(
        "crd-without-instances",
        "widgets.e2e.example",
        "delete a definition in use",
        Ask::Run(&["delete", "crd", "widgets.e2e.example"]),
    );
    bench.allowed(
        "crd-without-instances",
        "delete one without objects",
        Ask::Run(&["delete", "crd", "gadgets.e2e.example"]),
    );

    bench.denied(
        "serving-namespace-kept",
        "shop",
        "delete a namespace that serves",
        Ask::Run(&["delete", "namespace", "shop"]),
    );
    bench.allowed(
        "serving-namespace-kept",
        "delete one that does not",
        Ask::Run(&["delete", "namespace", "empty", "--timeout=60s"]),
    );
}
