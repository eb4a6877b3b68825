//! Objects of OpenReports.

use super::*;

fn results(count: usize, namespace: &str) -> Vec<Placed> {
    let result = Outcome {
        source: SOURCE,
        policy: "p".to_owned(),
        result: "fail",
        severity: "high",
        scored: true,
        message: String::new(),
        resources: Vec::new(),
        timestamp: None,
        properties: BTreeMap::new(),
    };
    (0..count).map(|_| Placed { namespace: namespace.to_owned(), result: result.clone() }).collect()
}

#[test]
fn an_object_has_no_more_results_than_the_api_server_takes() {
    let made = objects("audit", results(RESULTS_MAX * 2 + 1, "shop"));
    let of_shop: Vec<&Value> = made.iter().filter(|object| object["kind"] == "Report").collect();
    let names: Vec<&str> = of_shop.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["suture-audit", "suture-audit-2", "suture-audit-3"]);
    assert_eq!(of_shop[2]["summary"]["fail"], 1);
}

#[test]
fn what_is_in_no_namespace_is_in_a_cluster_report() {
    let made = objects("audit", results(1, ""));
    assert_eq!((made.len(), &made[0]["kind"], made[0].get("scope")), (1, &json!("ClusterReport"), None));
}

#[test]
fn a_message_is_cut_between_letters() {
    let long = "ä".repeat(MESSAGE_BYTES_MAX);
    let cut = cut(&long);
    assert!(cut.len() <= MESSAGE_BYTES_MAX + '…'.len_utf8() && cut.ends_with("ä…"), "{}", cut.len());
}

#[test]
fn an_instance_is_taken_apart() {
    assert_eq!(named("Pod/n/a"), ("Pod", "n", "a"));
    assert_eq!(named("Node/x"), ("Node", "", "x"));
}
