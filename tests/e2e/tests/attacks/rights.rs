//! Suture may do no more than `suture manifests rbac` prints, and says what it lacks: a kind that it may not read is unknown,
//! and keeps it neither from being ready nor from deciding about what does not depend on it.

use std::time::Instant;

use serde_json::{Value, json};
use suture_e2e::installed::{Installed, install};
use suture_e2e::objects::{definition, ingress, list, place};
use suture_e2e::suture::user;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options};

use super::attackers::tenant;
use super::{seconds, table, until};

const GROUP: &str = "owners.example";

#[test]
fn least_rights_are_enough_and_what_is_lacking_is_told() {
    let options = Options { users: vec![user()], nodes: Nodes::new(0), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    let policy = cluster.folder().join("policy.yaml");
    std::fs::write(&policy, suture_e2e::objects::invariant("unique-host").to_string()).expect("policy");
    let policy = policy.display().to_string();
    install(&admin, &["--profile=none", "--invariants", &policy]).expect("install");
    let objects = [place("left").to_vec(), place("right").to_vec(), vec![definition(GROUP, "Owner")]].concat();
    admin.create(&list(objects)).expect("objects");
    let api = Api::new(&cluster, "admin").expect("api");
    owned_by_what_may_not_be_read(&api);
    let flags = ["--profile=none", "--invariants", &policy];
    let suture = Installed::new(&cluster, "suture-0", None, &flags).expect("suture");
    suture.process.launch().expect("launch");
    let began = Instant::now();
    suture.wait_ready().expect("ready, though a kind may not be read");
    let ready = began.elapsed();
    until("the metric", || {
        let metrics = suture.metrics().map_err(|error| error.to_string())?;
        let line = format!("suture_forbidden{{resource=\"owners.{GROUP}\"}} 1");
        if metrics.contains(&line) { Ok(()) } else { Err("not told yet".to_owned()) }
    });
    let log = std::fs::read_to_string(suture.process.log()).expect("log");
    let lacks = format!("kubectl create clusterrole suture-read-owners.{GROUP} --verb=get,list,watch");
    assert!(log.contains(&lacks), "the log has no line that grants it");
    // what does not depend on it is decided
    let ask = |ns: &str, host: &str| {
        let path = format!("{}?dryRun=All", ingresses(ns));
        let reply = api.call("POST", &path, Some(&ingress(ns, "new", host))).expect("answer");
        if reply.done() { Ok(()) } else { Err(reply.message().to_owned()) }
    };
    until("an allowance", || ask("right", "free.example"));
    // granting it is enough
    admin
        .text(&[
            "create",
            "clusterrole",
            "suture-read-owners",
            "--verb=get,list,watch",
            &format!("--resource=owners.{GROUP}"),
        ])
        .expect("role");
    admin.text(&["label", "clusterrole", "suture-read-owners", "suture.dev/aggregate-to-read=true"]).expect("label");
    let granted = until("the kind is read", || {
        let metrics = suture.metrics().map_err(|error| error.to_string())?;
        if metrics.contains("suture_forbidden{") { Err("not yet".to_owned()) } else { Ok(()) }
    });
    until("a denial", || match ask("right", "taken.example") {
        Err(why) if why.contains("unique-host") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let began = Instant::now();
    namesake(&admin, &api);
    until("it may not be read", || {
        let metrics = suture.metrics().map_err(|error| error.to_string())?;
        let line = format!("suture_forbidden{{resource=\"secretives.{GROUP}\"}} 1");
        if metrics.contains(&line) { Ok(()) } else { Err("not told yet".to_owned()) }
    });
    ask("right", "free.example").expect("an allowance beside the namesake");
    let denied = ask("right", "taken.example").expect_err("a denial beside the namesake");
    assert!(denied.contains("unique-host"), "{denied}");
    let blind = began.elapsed();
    let told = told_to_a_tenant(&cluster, &admin, &ingress("right", "new", "taken.example"));
    assert!(told.contains("an object in another namespace") && !told.contains("left"), "{told}");
    listed_rights(&admin.text(&["auth", "can-i", "--list", &format!("--as={}", user().name)]).expect("rights"));
    let mut table = table();
    let saw = format!("ready after {} s, other requests decided", seconds(ready));
    let attack = "an owner of a kind that Suture may not read".to_owned();
    table.row([attack, "nothing".to_owned(), saw, seconds(granted)]);
    let attack = "an invariant of that name about what may not be read".to_owned();
    let saw = format!("after {} s what is harmful denied, all else admitted", seconds(blind));
    table.row([attack, "write invariants in a namespace".to_owned(), saw, "0.0".to_owned()]);
    let attack = "a dry run that breaks what is in another namespace".to_owned();
    let saw = "that it breaks, not whose it is".to_owned();
    table.row([attack, "edit in one namespace".to_owned(), saw, "-".to_owned()]);
    table.print();
}

/// What a tenant makes names an owner of a kind that nobody has granted.
fn owned_by_what_may_not_be_read(api: &Api) {
    let owners = format!("/apis/{GROUP}/v1/namespaces/left/owners");
    let owner = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Owner", "metadata": {"name": "owner"}});
    until("the owner", || api.create(&owners, &owner).map(drop).map_err(|error| error.to_string()));
    let uid = api.get(&format!("{owners}/owner")).expect("owner")["metadata"]["uid"].clone();
    let mut taken = ingress("left", "taken", "taken.example");
    taken["metadata"]["ownerReferences"] =
        json!([{"apiVersion": format!("{GROUP}/v1"), "kind": "Owner", "name": "owner", "uid": uid}]);
    api.create(&ingresses("left"), &taken).expect("ingress");
}

fn ingresses(ns: &str) -> String {
    format!("/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses")
}

/// An invariant of one namespace with the name of one of the cluster, about a kind that nobody has granted.
fn namesake(admin: &Kubectl, api: &Api) {
    admin.create(&definition(GROUP, "Secretive").to_string()).expect("definition");
    let invariant = json!({"apiVersion": "suture.dev/v1alpha1", "kind": "NamespacedInvariant",
        "metadata": {"name": "unique-host", "namespace": "right"},
        "spec": {"forEach": {"var": "s", "kind": {"group": GROUP, "kind": "Secretive"}},
                 "require": [{"expression": "s.at(now).metadata.name != ''"}]}});
    let path = "/apis/suture.dev/v1alpha1/namespaces/right/namespacedinvariants";
    until("the namesake", || api.create(path, &invariant).map(drop).map_err(|error| error.to_string()));
}

/// What somebody is told who may edit one namespace, and sends a dry run of this there.
fn told_to_a_tenant(cluster: &Cluster, admin: &Kubectl, ingress: &Value) -> String {
    admin
        .text(&["create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant", "-n", "right"])
        .expect("binding");
    let tenant = tenant(cluster);
    let path = "/apis/networking.k8s.io/v1/namespaces/right/ingresses?dryRun=All";
    let mut told = String::new();
    until("a denial of the tenant", || {
        let reply = tenant.call("POST", path, Some(ingress)).map_err(|error| error.to_string())?;
        told = reply.message().to_owned();
        if told.contains("unique-host") { Ok(()) } else { Err(told.clone()) }
    });
    told
}

/// No subresource but the status of its own kinds, nothing by `*`, and no write but what is its own: in a namespace that is
/// not its own.
fn listed_rights(text: &str) {
    let own = ["selfsubject", "subjectaccessreviews", "validatingwebhookconfigurations"];
    let mut seen = 0;
    // what is no resource begins with the column of addresses
    for line in text.lines().skip(1).filter(|line| !line.starts_with(' ')) {
        let resource = line.split_whitespace().next().unwrap_or_default();
        let verbs = line.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
        assert!(!resource.contains('*') && !verbs.contains('*'), "{line}");
        if let Some((_, subresource)) = resource.split_once('/') {
            assert!(subresource == "status" && resource.contains(".suture.dev/") && verbs == "patch", "{line}");
        } else if verbs.split_whitespace().any(|verb| !["get", "list", "watch"].contains(&verb)) {
            assert!(own.iter().any(|own| resource.starts_with(own)), "{line}");
        }
        seen += 1;
    }
    assert!(seen > 10, "{text}");
}
