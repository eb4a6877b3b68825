//! Reports in a browser of whoever may read them: a request is denied, and its report is found through `suture reports`, the API
//! server's proxy of a Service, and the cluster's own word on who may read what.
#![expect(clippy::expect_used, reason = "a test may stop where it fails")]

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::kubeconfig::User;
use suture_e2e::objects::{ingress, invariant, list, place, pod_spec};
use suture_e2e::ports::Port;
use suture_e2e::suture::{NAMESPACE, Suture, get_from, program};
use suture_e2e::{Cluster, Kubectl, Nodes, Options, Plan, suture, wait};

/// How long it may take until the API server knows where a Service leads, and who may what.
const KNOWN: Duration = Duration::from_secs(30);

/// A Service that leads to a port of this machine, by a pod that stands in for it: pods cannot run here, and an API server
/// proxies to addresses of pods alone (`isValidAddress` in Kubernetes' `pkg/registry/core/service/storage/storage.go`).
fn stand_in(admin: &Kubectl, port: u16) {
    let metadata = json!({"name": "suture-reports", "namespace": NAMESPACE});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec()});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"ports": [{"name": "reports", "port": 9444}]}});
    let (address, target) = (own_address(), json!({"kind": "Pod", "name": "suture-reports", "namespace": NAMESPACE}));
    let subset =
        json!({"addresses": [{"ip": address, "targetRef": target}], "ports": [{"name": "reports", "port": port}]});
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]});
    admin.create(&list(vec![pod, service, endpoints])).expect("the Service");
    let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
    let scope = format!("--namespace={NAMESPACE}");
    let patch = ["patch", "pod", "suture-reports", &scope, "--subresource=status", "--type=merge", "--patch"];
    admin.text(&[&patch[..], &[&status.to_string()]].concat()).expect("its status");
}

/// An address of this machine that a pod may have: not a loopback one. Nothing is sent.
fn own_address() -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.connect("192.0.2.1:9").expect("a way out of this machine");
    socket.local_addr().expect("an address").ip().to_string()
}

/// `suture reports` of a user, and its printed address: port and path.
struct Page(Child, u16, String);

impl Page {
    fn open(cluster: &Cluster, user: &str) -> Result<Self, String> {
        let mut command = Command::new(program());
        command.args(["reports", "--kubeconfig"]).arg(cluster.kubeconfig(user).expect("kubeconfig"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("suture runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let Some((_, address)) = line.trim().split_once("http://127.0.0.1:") else {
            let output = child.wait_with_output().expect("it has ended");
            assert_eq!(output.status.code(), Some(2), "{line}");
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        };
        let (port, path) = address.split_once('/').expect("a path");
        Ok(Self(child, port.parse().expect("a port"), format!("/{path}")))
    }

    fn get(&self, path: &str) -> (u16, String) {
        get_from(&format!("127.0.0.1:{}", self.1), self.1, &format!("{}{path}", self.2)).expect("an answer")
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn a_denial_is_found_by_whoever_may_read_it_and_by_nobody_else() {
    let users = vec![suture::user(), User::new("ana", &[]), User::new("eve", &[])];
    let cluster = Cluster::start(&Options { users, nodes: Nodes::new(0), ..Options::default() }).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    let port = Port::reserve().expect("a port");
    let folder = cluster.folder().join("reports").display().to_string();
    let flags =
        ["--reports", &folder, "--reports-listen", &format!("0.0.0.0:{}", port.number())].map(str::to_owned).to_vec();
    let plan = Plan { flags, ..Plan::of(vec![invariant("unique-host")]) };
    let suture = Suture::start(&cluster, &plan).expect("suture");
    admin.create(&list(["vault", "right"].iter().flat_map(|name| place(name)).collect())).expect("places");
    stand_in(&admin, port.number());
    suture.register(&admin).expect("registered");

    admin.create(&ingress("vault", "taken", "shop.example").to_string()).expect("the first one");
    let denied = wait::until("a denial", KNOWN, || {
        let asked = admin.run_with(&["create", "--filename=-"], &ingress("right", "late", "shop.example").to_string());
        let asked = asked.map_err(|error| error.to_string())?;
        if asked.stderr.contains("--id ") { Ok(asked.stderr) } else { Err(format!("{asked:?}")) }
    });
    let denied = denied.expect("denied");
    let id = denied.split("--id ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an id").to_owned();

    let page = wait::until("the reports", KNOWN, || Page::open(&cluster, "admin")).expect("a page");
    let link = format!("href=\"reports/{id}/page\"");
    let (_, text) = wait::until("the report", KNOWN, || {
        let (status, text) = page.get("?namespace=right");
        if text.contains(&link) { Ok((status, text)) } else { Err(format!("{status} {text}")) }
    })
    .expect("it is listed");
    assert!(
        text.contains("Denied") && text.contains("unique-host") && text.contains("kubernetes-admin")
            || text.contains("admin"),
        "{text}"
    );
    let (status, text) = page.get(&format!("reports/{id}/page"));
    assert!(
        status == 200 && text.contains("Ingress/vault/taken") && text.contains("href=\"../../\""),
        "{status} {text}"
    );
    assert_eq!(page.get("reports/0000000000000/page").0, 404);
    assert_eq!(get_from("evil.example", page.1, &page.2).expect("an answer").0, 421);
    assert_eq!(get_from(&format!("127.0.0.1:{}", page.1), page.1, "/").expect("an answer").0, 404);

    // who may not use the Service is told what he needs; who may read nothing sees nothing
    let refused = Page::open(&cluster, "ana").err().expect("ana may not");
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
    let eve = wait::until("eve's page", KNOWN, || Page::open(&cluster, "eve")).expect("a page");
    assert!(eve.get("").1.contains("data-count=\"0\""), "{}", eve.get("").1);
    assert_eq!(eve.get(&format!("reports/{id}/page")).0, 404);
    let ana = wait::until("ana's page", KNOWN, || Page::open(&cluster, "ana")).expect("a page");
    let (_, text) = ana.get("");
    assert!(text.contains("data-count=\"1\"") && text.contains(&link) && !text.contains("vault"), "{text}");
    let (_, text) = ana.get(&format!("reports/{id}/page"));
    assert!(text.contains("an object in another namespace") && !text.contains("Ingress/vault"), "{text}");
}
