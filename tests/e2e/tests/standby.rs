//! Replicas of `suture serve` with exactly the rights that `suture manifests rbac` gives for one invariant: in each mode of
//! sharing the work, and when the one that decides is killed.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it measured"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use suture_e2e::balancer::Balancer;
use suture_e2e::installed::{Installed, install, requests};
use suture_e2e::objects::{ingress, invariant, list, namespace};
use suture_e2e::ports::Port;
use suture_e2e::reports_page::{ReportsPage, report_id, stand_in};
use suture_e2e::suture::ready;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options, suture, wait};

/// How often the replica that decides is killed.
const KILLS: usize = 3;
/// Far longer than it takes until the other one decides: the Lease lasts 1.5 s.
const RECOVERED: Duration = Duration::from_secs(20);
/// How long until a replica that is gone is told no more, and others are audited.
const STATUS: Duration = Duration::from_secs(60);
/// Between two requests of the traffic.
const PAUSE: Duration = Duration::from_millis(20);
/// What a webhook may take, and the API server itself.
const STUCK: Duration = Duration::from_secs(12);

/// Ends the traffic, also where a test stops.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

struct Scene {
    cluster: Cluster,
    admin: Kubectl,
    api: Api,
}

#[test]
fn replicas_share_the_work_with_the_rights_that_they_are_given() {
    let options = Options { users: vec![suture::user()], nodes: Nodes::new(0), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    let policy = cluster.folder().join("policy.yaml");
    fs::write(&policy, invariant("unique-host").to_string()).expect("policy");
    install(&admin, &["--invariants", &policy.display().to_string()]).expect("install");
    admin.apply(&invariant("unique-host").to_string()).expect("invariant");
    admin.create(&list(["left", "right"].map(namespace).to_vec())).expect("namespaces");
    let api = Api::new(&cluster, "admin").expect("api");
    let scene = Scene { cluster, admin, api };
    assert_eq!(scene.create("left", "taken", "taken.example"), Ok(()));
    // as who shows reports is told to do
    let account = format!("--serviceaccount={}:suture", suture::NAMESPACE);
    let delegator = ["create", "clusterrolebinding", "suture-reviews", "--clusterrole=system:auth-delegator", &account];
    scene.admin.text(&delegator).expect("bound");
    scene.single();
    scene.in_mode("announced");
    scene.in_mode("audit");
    scene.rights();
}

impl Scene {
    /// Two replicas, and a Service's worth of balancer before those of them that are ready. Each gets flags of its own.
    fn replicas(&self, mode: &str, flags: [&[String]; 2]) -> ([Installed; 2], Balancer) {
        let ports = [(); 2].map(|()| [(); 2].map(|()| Port::reserve().expect("port")));
        let health: BTreeMap<u16, u16> =
            ports.iter().map(|[webhook, health]| (webhook.number(), health.number())).collect();
        let targets = ports.iter().map(|[webhook, _]| webhook.number()).collect();
        let is_ready = move |port: u16| health.get(&port).is_some_and(|health| ready(*health).is_ok());
        let balancer = Balancer::start_where(targets, is_ready).expect("balancer");
        let url = format!("https://127.0.0.1:{}", balancer.port());
        let mode = format!("--replicas-mode={mode}");
        let mut each = ["suture-0", "suture-1"].into_iter().zip(flags);
        let replicas = ports.map(|ports| {
            let (name, flags) = each.next().unwrap_or_default();
            let flags: Vec<&str> = [&mode].into_iter().chain(flags).map(String::as_str).collect();
            let replica = Installed::on(&self.cluster, name, ports, Some(&url), &flags).expect("suture");
            replica.process.launch().expect("launch");
            replica
        });
        (replicas, balancer)
    }

    /// Creates an Ingress for a host; says why not.
    fn create(&self, namespace: &str, name: &str, host: &str) -> Result<(), String> {
        let collection = format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses");
        create(&self.api, &collection, &ingress(namespace, name, host))
    }

    fn until(&self, what: &str, limit: Duration, attempt: impl FnMut() -> Result<(), String>) -> Duration {
        let ((), took) = wait::timed(|| wait::until(what, limit, attempt).expect("in time"));
        println!("  {what}: after {:.1} s", took.as_secs_f64());
        took
    }

    fn until_denied(&self, what: &str) {
        self.until(what, STATUS, || match self.create("right", "probe", "taken.example") {
            Err(why) if denied(&why) => Ok(()),
            Err(why) => Err(why),
            Ok(()) => {
                self.admin
                    .text(&["delete", "ingress", "probe", "--namespace=right"])
                    .map_err(|error| error.to_string())?;
                Err("admitted".to_owned())
            }
        });
    }

    fn holder(&self) -> String {
        suture::lease(&self.admin).0
    }

    /// Whether it has all but the Lease, and the Lease says so.
    fn stands_by(&self, replica: &Installed) -> Result<(), String> {
        let missing = replica.ready().err().unwrap_or_default();
        let waits = |line: &str| ["lease: replica", "certificates: "].iter().any(|part| line.starts_with(part));
        let (_, copies) = suture::lease(&self.admin);
        let named = copies.split(',').any(|name| name.starts_with(&format!("{}/", replica.name())));
        if named && missing.lines().all(waits) { Ok(()) } else { Err(format!("{missing}; the Lease names `{copies}`")) }
    }

    fn status(&self) -> Value {
        let found = self.admin.json(&["get", "invariants.suture.dev/unique-host"]).unwrap_or_default();
        found["status"].clone()
    }

    /// Waits until the status is told of these replicas, and that it is `wanted`.
    fn told(&self, replicas: &[&str], enforced: &str) {
        self.until(&format!("status of {replicas:?}, Enforced={enforced}"), STATUS, || {
            let status = self.status();
            let pods = status["byPod"].as_array().cloned().unwrap_or_default();
            let pods: Vec<&str> = pods.iter().filter_map(|pod| pod["pod"].as_str()).collect();
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let is = |name: &str, wanted: &str| conditions.iter().any(|c| c["type"] == name && c["status"] == wanted);
            let right =
                pods == replicas && is("Ready", "True") && is("Enforced", enforced) && !is("Violated", "Unknown");
            if right { Ok(()) } else { Err(status.to_string()) }
        });
    }

    /// One decides; it is killed again and again, with harmful and harmless requests on their way.
    fn single(&self) {
        println!("single:");
        let (replicas, _balancer) = self.replicas("single", [&[], &[]]);
        self.until_denied("judged");
        self.told(&["suture-0", "suture-1"], "True");
        let holder = self.holder();
        let standby = replicas.iter().find(|replica| replica.name() != holder).expect("standby");
        self.until("the other one stands by", STATUS, || self.stands_by(standby));
        let done = AtomicBool::new(false);
        let (harmful, mut times) = thread::scope(|scope| {
            let traffic = scope.spawn(|| self.harmful(&done));
            let ends = Ends(&done);
            let times: Vec<Duration> = (0..KILLS).map(|round| self.kill(&replicas, round)).collect();
            drop(ends);
            (traffic.join().expect("traffic"), times)
        });
        times.sort();
        let (sent, refused) = harmful;
        println!(
            "  killed {KILLS} times: recovered within {:.1} s; of {sent} harmful requests {refused} denied, 0 admitted",
            times.last().expect("times").as_secs_f64()
        );
        let [first, second] = &replicas;
        second.process.kill().expect("kill");
        self.told(&["suture-0"], "True");
        first.process.stop().expect("stop");
    }

    /// The replica that decides is killed right after it admitted something with which the next request is in conflict.
    fn kill(&self, replicas: &[Installed], round: usize) -> Duration {
        let holder = self.holder();
        let active = replicas.iter().find(|replica| replica.name() == holder).expect("holder");
        let host = format!("round-{round}.example");
        let name = format!("round-{round}");
        assert_eq!(self.create("left", &name, &host), Ok(()));
        active.process.kill().expect("kill");
        let took =
            self.until(&format!("{holder} killed, the other one denies what is in conflict"), RECOVERED, || match self
                .create("right", &name, &host)
            {
                Err(why) if denied(&why) => Ok(()),
                Err(why) => Err(why),
                Ok(()) => panic!("admitted twice: {host}"),
            });
        assert_ne!(self.holder(), holder, "another one has taken over");
        assert_eq!(self.create("left", &format!("{name}-fine"), &format!("fine-{host}")), Ok(()));
        active.process.launch().expect("launch");
        // it stands by: not ready, and with a copy of what is in flight when the other one is killed next
        self.until("it is back", STATUS, || self.stands_by(active));
        took
    }

    /// Asks for what is never to be admitted; how often, and how often it was denied.
    fn harmful(&self, done: &AtomicBool) -> (usize, usize) {
        let api = Api::new(&self.cluster, "admin").expect("api");
        let (mut sent, mut refused) = (0, 0);
        while !done.load(Ordering::Acquire) {
            let body = ingress("right", "harm", "taken.example");
            let collection = "/apis/networking.k8s.io/v1/namespaces/right/ingresses";
            let (answer, took) = wait::timed(|| create(&api, collection, &body));
            let why = answer.expect_err("harm was admitted");
            assert!(took < STUCK, "stuck for {took:?}: {why}");
            sent += 1;
            refused += usize::from(denied(&why));
            thread::sleep(PAUSE);
        }
        (sent, refused)
    }

    fn in_mode(&self, mode: &str) {
        println!("{mode}:");
        let ports = [(); 2].map(|()| Port::reserve().expect("port"));
        let flags = [0, 1].map(|at: usize| match mode {
            "announced" => reporting(&self.cluster.folder().join(format!("reports-{at}")), &ports[at]),
            _ => Vec::new(),
        });
        let [first, second] = &flags;
        let (replicas, balancer) = self.replicas(mode, [first, second]);
        replicas.iter().for_each(|replica| replica.wait_ready().expect("ready"));
        if mode == "audit" {
            self.told(&["suture-0", "suture-1"], "False");
            self.until("admitted, and told in the audit log", STATUS, || {
                assert_eq!(self.create("right", "audited", "taken.example"), Ok(()));
                self.admin.text(&["delete", "ingress", "audited", "--namespace=right"]).expect("delete");
                let events = requests(&self.cluster, "admin").map_err(|error| error.to_string())?;
                let told = |event: &Value| event["annotations"]["decide.suture.dev/would-deny"].is_string();
                if events.iter().any(told) { Ok(()) } else { Err("not told".to_owned()) }
            });
        } else {
            self.until_denied("judged");
            self.told(&["suture-0", "suture-1"], "True");
            assert_eq!(self.create("left", mode, &format!("{mode}.example")), Ok(()));
            self.reports(&replicas, &balancer, &ports);
        }
        replicas.iter().for_each(|replica| replica.process.stop().expect("stop"));
        let leases =
            self.admin.text(&["get", "leases", "--namespace", suture::NAMESPACE, "--output=name"]).expect("leases");
        assert!(!leases.contains("suture-replica-"), "who leaves takes its Lease away: {leases}");
    }

    /// Each replica keeps the reports of what it denied itself. Whoever asks one of them is told what both keep, and whose
    /// reports are missing once one is gone.
    fn reports(&self, replicas: &[Installed; 2], balancer: &Balancer, ports: &[Port; 2]) {
        stand_in(&self.admin, ports[0].number()).expect("the Service");
        let kept = |replica: &Installed| replica.counted("suture_reports_present");
        let mut ids = BTreeSet::new();
        self.until("both have denied something", STATUS, || {
            // the API server keeps its connections, and so its replica
            balancer.cut();
            let denied = self.create("right", "late", "taken.example").expect_err("it is taken");
            ids.extend(report_id(&denied));
            let [first, second] = replicas.each_ref().map(kept);
            if first * second > 0.0 { Ok(()) } else { Err(format!("{first} and {second} reports; {denied}")) }
        });
        let page = wait::until("the reports", STATUS, || ReportsPage::open(&self.cluster, "admin")).expect("a page");
        self.until("one replica tells what both keep", STATUS, || {
            let (_, text) = page.get("").map_err(|error| error.to_string())?;
            let is_listed = |id: &String| text.contains(&format!("href=\"reports/{id}/page\""));
            let missing: Vec<&String> = ids.iter().filter(|id| !is_listed(id)).collect();
            if missing.is_empty() {
                Ok(())
            } else {
                Err(format!("{missing:?} of {} are not listed: {text}", ids.len()))
            }
        });
        for id in &ids {
            let (status, text) = page.get(&format!("reports/{id}/page")).expect("an answer");
            assert!(status == 200 && text.contains("Ingress/left/taken"), "{status} {text}");
        }
        replicas[1].process.kill().expect("kill");
        self.until("what the other one keeps is said to be missing", STATUS, || {
            let (_, text) = page.get("").map_err(|error| error.to_string())?;
            if text.contains("what suture-1 keeps is not shown") { Ok(()) } else { Err(text) }
        });
        replicas[1].process.launch().expect("launch");
        replicas[1].wait_ready().expect("ready");
    }

    /// What was asked of the API server with those rights: nothing that is forbidden, and no right is left over.
    fn rights(&self) {
        let events = requests(&self.cluster, &suture::user().name).expect("audit log");
        let text =
            |event: &Value, path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let forbidden = events.iter().filter(|event| event["responseStatus"]["code"] == 403);
        let forbidden: BTreeSet<String> =
            forbidden.map(|event| format!("{} {}", text(event, "/verb"), text(event, "/requestURI"))).collect();
        assert!(forbidden.is_empty(), "{forbidden:?}");
        let writes =
            events.iter().filter(|event| !["get", "list", "watch"].contains(&event["verb"].as_str().unwrap_or("")));
        let writes: BTreeSet<String> = writes
            .map(|event| {
                let subresource = text(event, "/objectRef/subresource");
                let slash = if subresource.is_empty() { "" } else { "/" };
                format!("{} {}{slash}{subresource}", text(event, "/verb"), text(event, "/objectRef/resource"))
            })
            .collect();
        println!("{} requests of suture's, none forbidden; its writes:", events.len());
        println!("  {}", writes.iter().cloned().collect::<Vec<_>>().join(", "));
        let judged = writes.iter().filter(|write| {
            // a review of rights is a question, and stores nothing
            [
                "leases",
                "configmaps",
                "secrets",
                "validatingwebhookconfigurations",
                "invariants/status",
                "subjectaccessreviews",
                "tokenreviews",
            ]
            .iter()
            .all(|own| !write.ends_with(own))
        });
        assert_eq!(judged.collect::<Vec<_>>(), Vec::<&String>::new());
        let foreign = events.iter().filter(|event| {
            let namespace = event.pointer("/objectRef/namespace").and_then(Value::as_str);
            let reads = ["list", "watch"].contains(&event["verb"].as_str().unwrap_or(""));
            !reads && namespace.is_some_and(|namespace| namespace != suture::NAMESPACE)
        });
        assert_eq!(foreign.count(), 0, "it touches no other namespace");
    }
}

/// Flags by which a replica keeps reports in a folder, and shows them at a port.
fn reporting(folder: &Path, port: &Port) -> Vec<String> {
    let at = format!("0.0.0.0:{}", port.number());
    ["--reports", &folder.display().to_string(), "--reports-listen", &at].map(str::to_owned).to_vec()
}

fn create(api: &Api, collection: &str, object: &Value) -> Result<(), String> {
    match api.call("POST", collection, Some(object)) {
        Ok(reply) if reply.done() => Ok(()),
        Ok(reply) => Err(format!("{} {}", reply.code, reply.message())),
        Err(error) => Err(error.to_string()),
    }
}

/// Denied by the invariant, and not for want of an answer.
fn denied(why: &str) -> bool {
    why.starts_with("403 ") && why.contains("unique-host would break")
}
