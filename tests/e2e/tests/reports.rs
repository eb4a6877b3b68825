//! Reports in a browser of whoever may read them: a request is denied, and its report is found through `suture reports`, the API
//! server's proxy of a Service, and the cluster's own word on who may read what.

use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::kubeconfig::User;
use suture_e2e::objects::{ingress, invariant, list, place};
use suture_e2e::ports::Port;
use suture_e2e::reports_page::{ReportsPage, keeping_reports, report_id, stand_in};
use suture_e2e::suture::NAMESPACE;
use suture_e2e::{Cluster, Nodes, Options, suture, wait};

/// How long it may take until the API server knows where a Service leads, and who may what.
const KNOWN: Duration = Duration::from_secs(30);

#[test]
fn a_denial_is_found_by_whoever_may_read_it_and_by_nobody_else() {
    let users = vec![suture::user(), User::new("ana", &[]), User::new("eve", &[])];
    let cluster = Cluster::start(&Options { users, nodes: Nodes::new(0), ..Options::default() }).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    let port = Port::reserve().expect("a port");
    let invariants = vec![invariant("unique-host")];
    let suture = keeping_reports(&cluster, &port, invariants).expect("suture");
    admin.create(&list(["vault", "right"].iter().flat_map(|name| place(name)).collect())).expect("places");
    stand_in(&admin, port.number()).expect("the Service");
    suture.register(&admin).expect("registered");

    admin.create(&ingress("vault", "taken", "shop.example").to_string()).expect("the first one");
    let denied = wait::until("a denial", KNOWN, || {
        let asked = admin.run_with(&["create", "--filename=-"], &ingress("right", "late", "shop.example").to_string());
        let asked = asked.map_err(|error| error.to_string())?;
        if asked.stderr.contains("--id ") { Ok(asked.stderr) } else { Err(format!("{asked:?}")) }
    });
    let denied = denied.expect("denied");
    let id = report_id(&denied).expect("an id");

    let page = wait::until("the reports", KNOWN, || ReportsPage::open(&cluster, "admin")).expect("a page");
    let link = format!("href=\"reports/{id}/page\"");
    let (_, text) = wait::until("the report", KNOWN, || {
        let (status, text) = page.get("?namespace=right").map_err(|error| error.to_string())?;
        if text.contains(&link) { Ok((status, text)) } else { Err(format!("{status} {text}")) }
    })
    .expect("it is listed");
    assert!(
        text.contains("Denied") && text.contains("unique-host") && text.contains("kubernetes-admin")
            || text.contains("admin"),
        "{text}"
    );
    let (status, text) = page.get(&format!("reports/{id}/page")).expect("an answer");
    assert!(
        status == 200 && text.contains("Ingress/vault/taken") && text.contains("href=\"../../\""),
        "{status} {text}"
    );
    assert_eq!(page.get("reports/0000000000000/page").expect("an answer").0, 404);
    assert_eq!(page.get_of("evil.example", page.path()).expect("an answer").0, 421);
    assert_eq!(page.get_of(&format!("127.0.0.1:{}", page.port()), "/").expect("an answer").0, 404);

    // who may not use the Service is told what he needs; who may read nothing sees nothing
    let refused = ReportsPage::open(&cluster, "ana").expect_err("ana may not");
    assert!(
        refused.contains("services/proxy") && refused.contains("--resource-name https:suture-reports:reports"),
        "{refused}"
    );
    let role = |name: &str, namespace: &str, rule: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": namespace},
            "rules": [rule]})
    };
    let visits = json!({"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"],
        "resourceNames": ["https:suture-reports:reports"]});
    let reads = json!({"apiGroups": ["suture.dev"], "resources": ["reports"], "verbs": ["get"]});
    admin.create(&list(vec![role("visits", NAMESPACE, visits), role("reads", "right", reads)])).expect("roles");
    for (name, namespace, users) in
        [("visits", NAMESPACE, &["--user=ana", "--user=eve"][..]), ("reads", "right", &["--user=ana"])]
    {
        let (scope, role) = (format!("--namespace={namespace}"), format!("--role={name}"));
        admin.text(&[&["create", "rolebinding", name, &scope, &role], users].concat()).expect("bound");
    }
    let eve = wait::until("eve's page", KNOWN, || ReportsPage::open(&cluster, "eve")).expect("a page");
    let (_, text) = eve.get("").expect("an answer");
    assert!(text.contains("data-count=\"0\""), "{text}");
    assert_eq!(eve.get(&format!("reports/{id}/page")).expect("an answer").0, 404);
    let ana = wait::until("ana's page", KNOWN, || ReportsPage::open(&cluster, "ana")).expect("a page");
    let (_, text) = ana.get("").expect("an answer");
    assert!(text.contains("data-count=\"1\"") && text.contains(&link) && !text.contains("vault"), "{text}");
    let (_, text) = ana.get(&format!("reports/{id}/page")).expect("an answer");
    assert!(text.contains("an object in another namespace") && !text.contains("Ingress/vault"), "{text}");
}
