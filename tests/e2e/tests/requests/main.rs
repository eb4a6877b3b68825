//! Requests as people send them, with kubectl, to a real API server that asks Suture: for each of 15 templates one that is
//! denied and one that is allowed; with all shipped templates, a release, and what controllers do, to its end.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use serde_json::json;
use suture_e2e::objects::{apart, bound_claim, ingress, invariant, list, pod_spec, service, workload};
use suture_e2e::{Api, Plan, wait};

mod bench;
mod release;
mod templates;

use bench::{Bench, settled};
use release::{collection, controllers_finish, dry_runs_leave_nothing, release};

/// The templates that are asked about one by one.
const TEMPLATES: [&str; 15] = [
    "crd-without-instances",
    "data-recoverable",
    "live-child-kept",
    "owner-references-resolve",
    "pdb-allows-disruption",
    "quorum-kept",
    "quorum-survives-fault",
    "references-resolve",
    "selector-keeps-matches",
    "service-keeps-endpoints",
    "service-survives-fault",
    "serving-namespace-kept",
    "serving-service-kept",
    "unique-host",
    "volume-in-use-kept",
];

#[test]
fn every_template_denies_and_allows_what_kubectl_asks() {
    let mut bench = Bench::start();
    let places = ["shop", "rival", "data", "quorum", "lone", "empty", "doomed"];
    bench.make(&places, templates::objects());
    bench.serving("shop", "web", 3);
    bench.serving("shop", "single", 1);
    bench.serving("quorum", "kv", 3);
    bench.serving("lone", "duo", 2);
    settled(
        "bound claims",
        || {
            let claims = bench.admin.json(&["get", "pvc", "--namespace=data"]).expect("claims");
            claims["items"].as_array().map_or(0, |all| all.iter().filter(|c| c["status"]["phase"] == "Bound").count())
        },
        &4,
    );
    bench.judge(Plan::of(TEMPLATES.map(invariant).to_vec()));
    templates::endpoints(&mut bench);
    templates::scale_of_a_definition(&mut bench);
    templates::quorums_and_budgets(&mut bench);
    templates::data_and_owners(&mut bench);
    templates::references_and_hosts(&mut bench);
    templates::whole_sets(&mut bench);
    bench.table.print();
    let counted = |outcome: &str| bench.counted(&format!("suture_decisions_total{{outcome=\"{outcome}\"}}"));
    println!(
        "  decided: {} allowed, {} denied, {} undecided",
        counted("allowed"),
        counted("denied"),
        counted("undecided")
    );
    println!("15 of the templates: each denied and allowed as it should");
}

#[test]
fn a_release_of_fifty_objects_and_the_work_of_controllers_go_through() {
    let mut bench = Bench::start();
    let mut web = workload("Deployment", "shop", "web", 4, &apart("web"));
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}});
    let [volume, claim] = bound_claim("doomed", "data", "Retain");
    let mut spec = pod_spec();
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let storing = workload("Deployment", "doomed", "web", 2, &spec);
    bench.make(
        &["shop", "rival", "release", "doomed"],
        vec![
            service("shop", "web"),
            web,
            ingress("rival", "rival", "rival.example"), // nothing sends it requests
            workload("Deployment", "release", "tool", 1, &pod_spec()),
            volume,
            claim,
            storing,
        ],
    );
    bench.serving("shop", "web", 4);
    bench.serving("doomed", "web", 2);
    bench.judge(Plan::shipped());

    // as Helm sends a release: one request after the other, as fast as they are answered
    let (_, took) = wait::timed(|| bench.admin.create(&list(release("one"))).expect("the release"));
    println!("a release of {} objects in {:.0} ms", release("one").len(), took.as_secs_f64() * 1e3);
    let api = Api::new(&bench.cluster, "admin").expect("api");
    let (answers, took) = wait::timed(|| {
        release("two")
            .iter()
            .map(|object| api.call("POST", &collection(object), Some(object)).expect("answer").code)
            .collect::<Vec<u16>>()
    });
    assert_eq!(answers, vec![201; answers.len()]);
    println!("another one over one connection in {:.0} ms", took.as_secs_f64() * 1e3);
    let mut bad = release("three");
    bad.push(ingress("release", "stolen", "rival.example"));
    let output = bench.admin.run_with(&["create", "--filename=-"], &list(bad)).expect("kubectl");
    assert!(!output.success && output.stderr.matches("denied the request").count() == 1, "{}", output.stderr);
    assert!(output.stderr.contains("unique-host"), "{}", output.stderr);

    dry_runs_leave_nothing(&bench);

    controllers_finish(&bench);
    println!("controllers, scheduler and garbage collector keep working");
}
