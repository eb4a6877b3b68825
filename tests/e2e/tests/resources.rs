//! Suture's own resources in a real API server, with `suture serve` installed as anybody would: what is refused, what binds
//! without a restart, what their status says, and what switches it off.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it measured"
)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::authority::Authority;
use suture_e2e::installed::{Installed, install, install_open_reports, requests};
use suture_e2e::kubectl::{Kubectl, Output};
use suture_e2e::objects::{list, namespace};
use suture_e2e::ports::Port;
use suture_e2e::{Cluster, Nodes, Options, User, suture, wait};

/// How long anything may take to bind. `kubectl` itself takes a tenth of a second.
const SECONDS: Duration = Duration::from_secs(15);
/// How long a status may take: it is written every five seconds, and violations are looked for after that.
const STATUS: Duration = Duration::from_secs(40);
/// What the controller manager puts into every namespace.
const ROOT: &str = "kube-root-ca.crt";
/// Whom a grant binds.
const BOT: &str = "system:serviceaccount:ops:bot";
/// The kinds, as kubectl names them.
const PLURALS: [&str; 6] =
    ["invariants", "namespacedinvariants", "invarianttemplates", "resourceadapters", "operatorgrants", "exemptions"];

struct Scene {
    cluster: Cluster,
    suture: Installed,
    admin: Kubectl,
    /// What signs the certificate that the API server shows to the webhook on this port alone.
    authority: PathBuf,
}

#[test]
fn resources_bind_while_it_runs() {
    let folder = tempfile::tempdir().expect("folder");
    let authority = folder.path().join("clients.pem");
    let scene = Scene::start(folder.path().to_owned(), authority);
    scene.definitions();
    scene.refusals();
    scene.bound_at_once();
    scene.status();
    scene.findings();
    scene.parameters();
    scene.template_in_use();
    scene.exemption();
    scene.grant();
    scene.actions();
    scene.switched_off();
    scene.clients_checked();
    scene.rights();
}

/// The configuration by which the API server shows a certificate to the webhook on a port, and to no other
/// (`apiserver/pkg/util/webhook/authentication.go`, `WithIdentityOf`: users are named by host and port).
fn admission(folder: &std::path::Path, authority: &std::path::Path, port: u16) -> PathBuf {
    let signer = Authority::new().expect("authority");
    let identity = signer.identity().expect("identity");
    fs::write(authority, signer.certificate()).expect("authority");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("file");
        path
    };
    let certificate = write("client.pem", &identity.certificate);
    let key = write("client.key", &identity.key);
    let user = json!({"name": format!("127.0.0.1:{port}"),
        "user": {"client-certificate": certificate, "client-key": key}});
    let config = json!({"apiVersion": "v1", "kind": "Config", "users": [user]});
    let config = write("webhooks.kubeconfig", &config.to_string());
    let plugin = json!({"name": "ValidatingAdmissionWebhook", "configuration": {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": config}});
    let admission = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [plugin]});
    write("admission.yaml", &admission.to_string())
}

impl Scene {
    fn start(folder: PathBuf, authority: PathBuf) -> Self {
        // the port has to be known to the API server before it starts
        let ports = [(); 2].map(|()| Port::reserve().expect("port"));
        let admission = admission(&folder, &authority, ports[0].number());
        let users = vec![suture::user(), User::new(BOT, &[]), User::new("ana", &[]), User::new("ben", &[])];
        let options =
            Options { users, nodes: Nodes::new(0), admission_configuration: Some(admission), ..Options::default() };
        let cluster = Cluster::start(&options).expect("cluster");
        let admin = cluster.kubectl("admin").expect("admin");
        install(&admin, &["--open-reports", "--events"]).expect("install");
        install_open_reports(&admin).expect("definitions of OpenReports");
        admin.create(&list([namespace("shop"), namespace("ops")].to_vec())).expect("namespaces");
        for (name, user) in [("bot", BOT), ("ana", "ana"), ("ben", "ben")] {
            admin
                .text(&["create", "clusterrolebinding", name, "--clusterrole=cluster-admin", &format!("--user={user}")])
                .expect("rights");
        }
        let client_ca = format!("--client-ca={}", authority.display());
        let suture = Installed::on(&cluster, "suture-0", ports, None, &[&client_ca, "--open-reports", "--events"])
            .expect("suture");
        suture.process.launch().expect("launch");
        suture.wait_ready().expect("ready");
        let scene = Self { cluster, suture, admin, authority };
        scene.until("the webhook", || match scene.json(&["get", "validatingwebhookconfiguration", "suture"]) {
            Some(_) => Ok(()),
            None => Err("not there".to_owned()),
        });
        scene
    }

    fn json(&self, arguments: &[&str]) -> Option<Value> {
        self.admin.json(arguments).ok()
    }

    fn until(&self, what: &str, attempt: impl FnMut() -> Result<(), String>) {
        let ((), took) = wait::timed(|| wait::until(what, STATUS, attempt).expect("in time"));
        println!("  {what}: after {:.1} s", took.as_secs_f64());
    }

    fn user(&self, name: &str) -> Kubectl {
        self.cluster.kubectl(name).expect("user")
    }

    fn give(&self, kubectl: &Kubectl, object: &Value) -> Output {
        kubectl.run_with(&["apply", "--filename=-"], &object.to_string()).expect("kubectl")
    }

    fn applied(&self, object: &Value) {
        let output = self.give(&self.admin, object);
        assert!(output.success, "{}", output.stderr);
    }

    fn refused(&self, object: &Value, why: &[&str]) {
        let output = self.give(&self.admin, object);
        assert!(!output.success, "admitted: {object}");
        for part in why {
            assert!(output.stderr.contains(part), "no `{part}` in: {}", output.stderr);
        }
    }

    /// Whether the unlabelled object can be made; it is not, in the end.
    fn tries(&self, kubectl: &Kubectl, name: &str) -> Output {
        let arguments = ["create", "configmap", name, "--namespace=shop", "--dry-run=server"];
        kubectl.run(&arguments).expect("kubectl")
    }

    fn binds(&self, what: &str, bound: bool) {
        let begun = wait::timed(|| {
            wait::until(what, SECONDS, || {
                let output = self.tries(&self.admin, "plain");
                if output.success == bound { Err(output.stderr) } else { Ok(()) }
            })
            .expect("in time");
        });
        println!("  {what}: after {:.1} s", begun.1.as_secs_f64());
    }

    fn condition(&self, resource: &str, name: &str) -> (String, String, i64) {
        let object = self.json(&["get", resource]).unwrap_or_default();
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["type"] == name).unwrap_or_default();
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        (
            text("status"),
            format!("{}: {}", text("reason"), text("message")),
            one["observedGeneration"].as_i64().unwrap_or(0),
        )
    }

    fn says(&self, resource: &str, name: &str, status: &str, generation: i64) -> String {
        let mut told = String::new();
        self.until(&format!("{resource} {name}={status}"), || {
            let (found, why, of) = self.condition(resource, name);
            told.clone_from(&why);
            if (found.as_str(), of) == (status, generation) { Ok(()) } else { Err(format!("{found} of {of}, {why}")) }
        });
        told
    }

    fn definitions(&self) {
        for plural in PLURALS {
            let name = format!("{plural}.suture.dev");
            let crd = self.json(&["get", "crd", &name]).expect("definition");
            let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is = |of: &str| conditions.iter().any(|one| one["type"] == of && one["status"] == "True");
            assert!(is("Established") && !is("NonStructuralSchema"), "{conditions:?}");
            let text = self.admin.text(&["explain", &format!("{name}.spec")]).expect("explain");
            // a field without a description is told as `<no description>`
            assert!(text.contains("FIELDS:") && !text.contains("<no description>"), "{text}");
        }
        let text = self.admin.text(&["explain", "invariant.spec", "--recursive"]).expect("explain");
        assert!(text.contains("onUndecided"), "{text}");
        println!("  {} definitions: established, structural, every field of a spec explained", PLURALS.len());
    }

    fn refusals(&self) {
        self.refused(
            &json!({"apiVersion": "suture.dev/v1alpha1", "kind": "Invariant", "metadata": {"name": "odd"},
            "spec": {"template": "unique-host", "action": "Shout"}}),
            &["Unsupported value", "Shout"],
        );
        self.refused(
            &invariant("both", &json!({"template": "unique-host", "require": [{"expression": "true"}]})),
            &["exactly one of `template` and `require`"],
        );
        self.refused(
            &invariant("none", &json!({"template": "no-such-template"})),
            &["it does not compile", "no-such-template"],
        );
        let unknown = json!({"forEach": {"var": "map", "kind": "ConfigMap"},
            "require": [{"expression": "map.liveIn(now) && foo(map)"}]});
        self.refused(&invariant("unknown", &unknown), &["it does not compile", "foo"]);
        println!("  refused: two by the schema, two with the compiler's message");
    }

    fn bound_at_once(&self) {
        let before = self.suture.process.pid();
        self.applied(&template("app"));
        self.binds("nothing binds yet", false);
        self.applied(&labelled(&json!({"params": {"key": "app"}})));
        self.binds("an invariant that was added binds", true);
        // until the kind is listed, it is refused as undecided
        let decided = wait::until("a decision", SECONDS, || {
            let output = self.tries(&self.admin, "plain");
            let denied = output.stderr.contains("labelled") && output.stderr.contains("label app is missing");
            if denied { Ok(()) } else { Err(output.stderr) }
        });
        decided.expect("denied with its message");
        assert_eq!(self.suture.process.pid(), before, "not started again");
    }

    fn status(&self) {
        for condition in ["Ready", "Compiled", "Enforced"] {
            self.says("invariants.suture.dev/labelled", condition, "True", 1);
        }
        // what the controller manager puts into every namespace has no label
        self.says("invariants.suture.dev/labelled", "Violated", "True", 1);
        let status = &self.json(&["get", "invariants.suture.dev/labelled"]).expect("invariant")["status"];
        assert_eq!(status["observedGeneration"], 1);
        assert_eq!(status["violations"]["first"][0]["instance"], format!("ConfigMap/shop/{ROOT}"));
        assert_eq!(status["byPod"][0]["pod"], "suture-0");
        self.says("invarianttemplates.suture.dev/labelled", "Compiled", "True", 1);
        let columns = self.admin.text(&["get", "invariants"]).expect("columns");
        let shown = columns.lines().find(|line| line.starts_with("labelled ")).expect("its line");
        // its action is nobody's but the default's
        assert_eq!(shown.split_whitespace().take(3).collect::<Vec<_>>(), ["labelled", "labelled", "Deny"], "{columns}");
        println!("{}", columns.trim_end().replace('\n', "\n    ").replacen("NAME", "    NAME", 1));
    }

    /// What is violated is told by objects of other kinds, too, as it comes and goes.
    fn findings(&self) {
        let report = || self.json(&["get", "reports.openreports.io", "suture-serve", "--namespace=shop"]);
        self.until("a report of what is violated", || {
            let report = report().ok_or("no report")?;
            let found = &report["results"][0];
            let is_told = report["summary"]["fail"] == 1 && found["policy"] == "labelled";
            if is_told && found["resources"][0]["name"] == ROOT { Ok(()) } else { Err(report.to_string()) }
        });
        let label = |user: &Kubectl, label| user.run(&["label", "configmap", ROOT, label, "--namespace=shop"]);
        assert!(label(&self.admin, "app=root").expect("kubectl").success);
        // what is loaded anew is looked at anew
        self.applied(
            &json!({"apiVersion": "suture.dev/v1alpha1", "kind": "Exemption", "metadata": {"name": "root"}, "spec": {
            "invariant": "labelled", "instances": [format!("ConfigMap/shop/{ROOT}")], "expires": "2999-01-01T00:00:00Z",
            "subjects": [{"kind": "User", "name": "ana"}], "reason": "a drill"}}),
        );
        self.until("it goes with what it tells", || report().map_or(Ok(()), |report| Err(report.to_string())));
        // who takes the label away again breaks it
        self.says("invariants.suture.dev/labelled", "OneStepAway", "True", 1);
        let ana = self.user("ana");
        self.until("who is exempt breaks it", || {
            let output = label(&ana, "app-").map_err(|error| error.to_string())?;
            if output.success { Ok(()) } else { Err(output.stderr) }
        });
        self.admin.text(&["delete", "exemption", "root"]).expect("deleted");
        let events = ["get", "events", "--namespace=shop", "--field-selector=reason=InvariantViolated"];
        self.until("an event about what is violated since", || {
            let events = self.json(&events).ok_or("no list")?;
            let event = &events["items"][0];
            let is_told = event["involvedObject"]["name"] == ROOT && event["source"]["component"] == "suture";
            if is_told { Ok(()) } else { Err(events.to_string()) }
        });
        assert!(label(&self.admin, "app=root").expect("kubectl").success);
    }

    fn parameters(&self) {
        self.applied(&labelled(&json!({"params": {"key": "team"}})));
        self.until("other parameters bind", || {
            let stderr = self.tries(&self.admin, "plain").stderr;
            if stderr.contains("label team is missing") { Ok(()) } else { Err(stderr) }
        });
        self.says("invariants.suture.dev/labelled", "Enforced", "True", 2);
        self.refused(&labelled(&json!({"params": {"key": 7}})), &["it does not compile"]);
        self.applied(&labelled(&json!({"params": {"key": "app"}})));
        self.until("the first ones again", || {
            let stderr = self.tries(&self.admin, "plain").stderr;
            if stderr.contains("label app is missing") { Ok(()) } else { Err(stderr) }
        });
    }

    fn template_in_use(&self) {
        let output = self.admin.run(&["delete", "invarianttemplate", "labelled"]).expect("kubectl");
        assert!(!output.success && output.stderr.contains("in use by Invariant labelled"), "{}", output.stderr);
        self.admin.create(&template("app").to_string().replace("\"labelled\"", "\"idle\"")).expect("template");
        self.until("a template that nobody uses is deleted", || {
            let output = self.admin.run(&["delete", "invarianttemplate", "idle"]).expect("kubectl");
            if output.success { Ok(()) } else { Err(output.stderr) }
        });
    }

    fn exemption(&self) {
        let date = Command::new("date").args(["--utc", "--date=20 seconds", "+%FT%TZ"]).output().expect("date");
        let expires = String::from_utf8_lossy(&date.stdout).trim().to_owned();
        let (_, lasted) = wait::timed(|| {
            self.applied(
                &json!({"apiVersion": "suture.dev/v1alpha1", "kind": "Exemption", "metadata": {"name": "glass"},
                "spec": {"invariant": "labelled", "instances": ["ConfigMap/shop/glass"],
                         "subjects": [{"kind": "User", "name": "ana"}], "expires": expires, "reason": "a drill"}}),
            );
            let ana = self.user("ana");
            self.until("the exempt subject may break the exempt instance", || {
                let output = self.tries(&ana, "glass");
                if output.success { Ok(()) } else { Err(output.stderr) }
            });
            assert!(!self.tries(&ana, "other").success, "another instance is not exempt");
            assert!(!self.tries(&self.user("ben"), "glass").success, "another subject is not exempt");
            self.until("it expires", || {
                if self.tries(&ana, "glass").success { Err("still admitted".to_owned()) } else { Ok(()) }
            });
        });
        assert!(lasted > SECONDS, "it expired too early: {lasted:?}");
        let why = self.says("exemptions.suture.dev/glass", "Enforced", "False", 1);
        assert!(why.contains("expired"), "{why}");
        self.admin.text(&["delete", "exemption", "glass"]).expect("delete");
    }

    fn grant(&self) {
        let maps = ["one", "two", "three"].map(|name| {
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                   "metadata": {"name": name, "namespace": "shop", "labels": {"app": "x"}}})
        });
        self.admin.create(&list(maps.to_vec())).expect("maps");
        let bot = self.user(BOT);
        let outside = ["create", "secret", "generic", "s", "--namespace=ops", "--dry-run=server"];
        assert!(bot.run(&outside).expect("kubectl").success, "nothing binds it yet");
        self.applied(
            &json!({"apiVersion": "suture.dev/v1alpha1", "kind": "OperatorGrant", "metadata": {"name": "bot"},
            "spec": {"subjects": [{"kind": "ServiceAccount", "namespace": "ops", "name": "bot"}],
                     "scope": {"namespaces": ["shop"]},
                     "budgets": [{"verb": "delete", "kind": "ConfigMap", "max": 1, "window": "1h"}]}}),
        );
        self.until("its scope binds it", || {
            let output = bot.run(&outside).expect("kubectl");
            if output.success {
                return Err("admitted".to_owned());
            }
            assert!(output.stderr.contains("operator-in-scope"), "{}", output.stderr);
            Ok(())
        });
        assert!(self.admin.run(&outside).expect("kubectl").success, "others are not bound by it");
        let delete = |name: &str| bot.run(&["delete", "configmap", name, "--namespace=shop"]).expect("kubectl");
        let first = delete("one");
        assert!(first.success, "within its budget: {}", first.stderr);
        let second = delete("two");
        assert!(!second.success && second.stderr.contains("deletion-budget"), "{}", second.stderr);
        self.admin.text(&["delete", "configmap", "two", "--namespace=shop"]).expect("not bound by it");
        let third = delete("three");
        assert!(!third.success, "its budget is spent");
        let spent = self.json(&["get", "operatorgrant", "bot"]).expect("grant")["status"]["spent"].clone();
        assert_eq!(spent[0]["taken"][0]["object"]["name"], "one", "{spent}");
        assert_eq!(spent.as_array().map(Vec::len), Some(1), "{spent}");
        self.suture.process.kill().expect("kill");
        self.suture.process.launch().expect("launch");
        self.suture.wait_ready().expect("ready");
        let fourth = delete("three");
        assert!(!fourth.success && fourth.stderr.contains("after 1 within the last 1h"), "{}", fourth.stderr);
        println!("  what a grant has spent stands in its status, and counts after kill -9 and a new start");
        self.says("operatorgrants.suture.dev/bot", "Enforced", "True", 1);
        self.admin.text(&["delete", "operatorgrant", "bot"]).expect("delete");
        println!("  a grant's scope and budget bind its service account, and nobody else");
    }

    fn actions(&self) {
        self.applied(&labelled(&json!({"params": {"key": "app"}, "action": "Warn"})));
        self.until("action Warn: admitted with a warning of kubectl", || {
            let Output { success, stderr, .. } = self.tries(&self.admin, "plain");
            if success && stderr.contains("Warning: labelled would break for ConfigMap/shop/plain") {
                Ok(())
            } else {
                Err(stderr)
            }
        });
        self.applied(&labelled(&json!({"params": {"key": "app"}, "action": "Audit"})));
        self.until("action Audit: admitted without a word", || {
            let Output { success, stderr, .. } = self.tries(&self.admin, "silent");
            if success && stderr.is_empty() { Ok(()) } else { Err(stderr) }
        });
        self.until("the annotation in the audit log", || {
            let events = requests(&self.cluster, "admin").map_err(|error| error.to_string())?;
            let told = events.iter().filter_map(|event| event["annotations"]["decide.suture.dev/audited"].as_str());
            let told: Vec<&str> = told.collect();
            if told.contains(&"labelled ConfigMap/shop/silent") { Ok(()) } else { Err(format!("{told:?}")) }
        });
        self.applied(&labelled(&json!({"params": {"key": "app"}, "action": "Deny"})));
        self.binds("action Deny binds again", true);
    }

    fn switched_off(&self) {
        let kubeconfig = self.cluster.kubeconfig("admin").expect("kubeconfig");
        let switch = |arguments: &[&str]| {
            let mut command = Command::new(suture::program());
            let output =
                command.arg("emergency-off").args(arguments).env("KUBECONFIG", &kubeconfig).output().expect("suture");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        switch(&["--reason", "a drill"]);
        self.binds("emergency-off: nothing is judged", false);
        let why = self.says("invariants.suture.dev/labelled", "Enforced", "False", 6);
        assert!(why.contains("turned off: a drill"), "{why}");
        switch(&["--undo"]);
        self.binds("emergency-off --undo: judged again", true);
        self.says("invariants.suture.dev/labelled", "Enforced", "True", 6);
    }

    /// The same Suture on a port to which the API server shows no certificate.
    fn clients_checked(&self) {
        let labelled = ["create", "configmap", "fine", "--namespace=shop", "--dry-run=server"];
        self.admin.text(&["label", "namespace", "shop", "checked=yes"]).expect("judged with the certificate");
        self.suture.process.stop().expect("stop");
        let client_ca = format!("--client-ca={}", self.authority.display());
        let stranger = Installed::new(&self.cluster, "suture-1", None, &[&client_ca]).expect("suture");
        stranger.process.launch().expect("launch");
        stranger.wait_ready().expect("ready");
        self.until("without its certificate the API server is refused", || {
            let Output { success, stderr, .. } = self.admin.run(&labelled).expect("kubectl");
            let refused =
                !success && stderr.contains("failed calling webhook") && stderr.contains("certificate required");
            if refused { Ok(()) } else { Err(stderr) }
        });
        stranger.process.stop().expect("stop");
        let open = Installed::new(&self.cluster, "suture-2", None, &[]).expect("suture");
        open.process.launch().expect("launch");
        open.wait_ready().expect("ready");
        self.binds("without --client-ca it is not asked for", true);
    }

    /// Suture was never told that it may not.
    fn rights(&self) {
        let events = requests(&self.cluster, &suture::user().name).expect("audit log");
        let forbidden: Vec<String> = events
            .iter()
            .filter(|event| event["responseStatus"]["code"] == 403)
            .map(|event| format!("{} {}", event["verb"], event["requestURI"]))
            .collect();
        assert!(forbidden.is_empty(), "{forbidden:?}");
        assert!(!events.is_empty(), "it asked for something");
        println!("  {} requests of suture's with the rights of `suture manifests rbac`, none forbidden", events.len());
    }
}

fn invariant(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "suture.dev/v1alpha1", "kind": "Invariant", "metadata": {"name": name}, "spec": spec})
}

fn template(key: &str) -> Value {
    let labels = "map.at(now).metadata.labels";
    json!({"apiVersion": "suture.dev/v1alpha1", "kind": "InvariantTemplate", "metadata": {"name": "labelled"}, "spec": {
        "description": "A ConfigMap has a label.",
        "parameters": {"key": {"type": "string", "default": key, "description": "which label"}},
        "forEach": {"var": "map", "kind": "ConfigMap"},
        "require": [{"expression": format!("!map.liveIn(now) || (has({labels}) && params.key in {labels})"),
                     "messageExpression": "'label ' + params.key + ' is missing'"}]}})
}

fn labelled(more: &Value) -> Value {
    let mut spec = json!({"template": "labelled", "match": {"namespaces": ["shop"]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    invariant("labelled", &spec)
}
