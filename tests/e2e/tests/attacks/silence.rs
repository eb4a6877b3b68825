//! Suture is made to judge nothing, or made to stand still: it says so, and does not decide on what it saw before.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::installed::Installed;
use suture_e2e::objects::{invariant, list, namespace, pod, serves, service};
use suture_e2e::suture::NAMESPACE;
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Kubectl};

use super::{launched, prepared, seconds, table, until};

/// Longer than a pause has to be to count as one.
const PAUSE: Duration = Duration::from_secs(6);
const CONFIGURATION: &str = "validatingwebhookconfiguration/suture";

struct Scene {
    cluster: Cluster,
    admin: Kubectl,
    suture: Installed,
    table: Table,
}

#[test]
fn nothing_turns_it_off_in_silence() {
    let mut scene = Scene::start();
    scene.emptied();
    scene.switched_off();
    scene.tampered_with();
    scene.paused();
    scene.undefined();
    scene.table.print();
}

impl Scene {
    fn start() -> Self {
        let (cluster, admin) = prepared(2);
        admin.create(&list(vec![namespace("shop")])).expect("namespace");
        admin.apply(&invariant("service-keeps-endpoints").to_string()).expect("invariant");
        until("service account", || {
            admin.text(&["get", "serviceaccount", "default", "--namespace=shop"]).map(drop).map_err(|e| e.to_string())
        });
        let suture = launched(&cluster, &[]);
        let scene = Self { cluster, admin, suture, table: table() };
        scene.make("web");
        until("a denial", || scene.judges());
        scene
    }

    fn api(&self) -> Api {
        Api::new(&self.cluster, "admin").expect("api")
    }

    /// A Service with one pod.
    fn make(&self, app: &str) {
        let objects = vec![service("shop", app), pod("shop", &format!("{app}-a"), app, "node-0")];
        self.admin.create(&list(objects)).expect("objects");
        until("ready pods", || self.serving(app, 1));
    }

    fn serving(&self, app: &str, wanted: usize) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/shop/pods?labelSelector=app%3D{app}");
        let list = self.api().get(&path).map_err(|error| error.to_string())?;
        let count = list["items"].as_array().map_or(0, |pods| pods.iter().filter(|pod| serves(pod)).count());
        if count == wanted { Ok(()) } else { Err(format!("{count} of {app} serve")) }
    }

    /// Whether the last endpoint is kept.
    fn judges(&self) -> Result<(), String> {
        let reply = self.api().call("DELETE", "/api/v1/namespaces/shop/pods/web-a?dryRun=All", None);
        let reply = reply.map_err(|error| error.to_string())?;
        if reply.message().contains("service-keeps-endpoints") { Ok(()) } else { Err(reply.message().to_owned()) }
    }

    fn says(&self, cause: &str, text: &str) -> Result<(), String> {
        let (code, said) = self.suture.readyz().map_err(|error| error.to_string())?;
        let metrics = self.suture.metrics().map_err(|error| error.to_string())?;
        let metric = format!("suture_off{{reason=\"{cause}\"}} 1");
        let events = self.admin.json(&["get", "events", "--namespace", NAMESPACE]).unwrap_or_default();
        let told = events["items"].as_array().is_some_and(|events| {
            events.iter().any(|e| e["reason"] == "Off" && e["message"].as_str().is_some_and(|m| m.contains(text)))
        });
        let log = std::fs::read_to_string(self.suture.process.log()).unwrap_or_default();
        let warned = log.lines().any(|line| line.contains("\"WARN\"") && line.contains("off: no request is judged"));
        let all = [code == 200 && said.contains(&format!("off: {text}")), metrics.contains(&metric), told, warned];
        if all == [true; 4] { Ok(()) } else { Err(format!("readyz, metric, event, log: {all:?}; {code} {said}")) }
    }

    fn on(&self) -> Result<(), String> {
        match self.suture.readyz() {
            Ok((200, said)) if said == "ok\n" => self.judges(),
            other => Err(format!("{other:?}")),
        }
    }

    fn row(&mut self, attack: &str, may: &str, saw: &str, recovery: Duration) {
        self.table.row([attack.to_owned(), may.to_owned(), saw.to_owned(), seconds(recovery)]);
    }

    fn emptied(&mut self) {
        self.admin.text(&["delete", "invariant.suture.dev", "service-keeps-endpoints"]).expect("deletion");
        until("off", || self.says("policy", "no invariant and no grant is loaded"));
        self.admin.apply(&invariant("service-keeps-endpoints").to_string()).expect("invariant");
        let on = until("on", || self.on());
        self.row("the last invariant is deleted", "everything", "ready and off; metric, event, log", on);
    }

    fn switched_off(&mut self) {
        let off = json!({"metadata": {"annotations": {"suture.dev/off": "incident 4711"}}, "webhooks": []});
        self.admin.text(&["patch", CONFIGURATION, "--type=merge", "-p", &off.to_string()]).expect("patch");
        until("off", || self.says("switch", "turned off: incident 4711"));
        // and stays so, as a ready state
        self.suture.process.kill().expect("kill");
        self.suture.process.launch().expect("launch");
        until("off after a restart", || self.says("switch", "turned off: incident 4711"));
        self.suture.wait_ready().expect("ready");
        assert!(self.judges().is_err(), "it is off");
        until("the condition", || {
            let found = self.admin.json(&["get", "invariant.suture.dev/service-keeps-endpoints"]).unwrap_or_default();
            let enforced =
                found["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Enforced");
            match enforced {
                Some(c) if c["status"] == "False" && c["message"].to_string().contains("4711") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        self.admin.text(&["annotate", CONFIGURATION, "suture.dev/off-"]).expect("annotate");
        let on = until("on", || self.on());
        self.row("the switch is thrown, Suture restarted", "everything", "ready and off; also a condition", on);
    }

    fn tampered_with(&mut self) {
        let repairs = || self.suture.counted("suture_configuration_repairs_total");
        let before = repairs();
        self.admin.text(&["patch", CONFIGURATION, "--type=merge", "-p", r#"{"webhooks":[]}"#]).expect("patch");
        let changed = until("a repair", || if repairs() > before { self.on() } else { Err("not yet".to_owned()) });
        let before = repairs();
        self.admin.text(&["delete", CONFIGURATION]).expect("deletion");
        let deleted = until("a repair", || if repairs() > before { self.on() } else { Err("not yet".to_owned()) });
        let events = self.admin.json(&["get", "events", "--namespace", NAMESPACE]).unwrap_or_default();
        let told = events["items"].as_array().is_some_and(|events| events.iter().any(|e| e["reason"] == "Repaired"));
        assert!(told, "{events}");
        let saw = "put right; metric, event, log";
        self.row("the webhooks are emptied", "everything until then", saw, changed);
        self.row("the configuration is deleted", "everything until then", saw, deleted);
    }

    /// One of two endpoints goes while it sleeps; it saw both.
    fn paused(&mut self) {
        self.make("sleepy");
        self.admin.create(&pod("shop", "sleepy-b", "sleepy", "node-1").to_string()).expect("pod");
        until("ready pods", || self.serving("sleepy", 2));
        self.suture.process.pause().expect("pause");
        // by an account whose requests are never judged
        let mut own = self.api();
        own.impersonate("system:serviceaccount:kube-system:pod-garbage-collector", &["system:masters"]);
        own.call("DELETE", "/api/v1/namespaces/shop/pods/sleepy-b?gracePeriodSeconds=0", None).expect("deletion");
        thread::sleep(PAUSE);
        self.suture.process.resume().expect("resume");
        let resumed = until("a decision", || {
            let reply = self.api().call("DELETE", "/api/v1/namespaces/shop/pods/sleepy-a?dryRun=All", None);
            let reply = reply.map_err(|error| error.to_string())?;
            assert!(!reply.done(), "the last endpoint may go");
            if reply.message().contains("would break") { Ok(()) } else { Err(reply.message().to_owned()) }
        });
        let log = std::fs::read_to_string(self.suture.process.log()).expect("log");
        assert!(log.contains("stood still"), "the pause was not noticed");
        self.row("Suture is stopped for 6 s, an endpoint goes", "nothing", "denied until all was read again", resumed);
    }

    fn undefined(&mut self) {
        let definition = "customresourcedefinition/invariants.suture.dev";
        self.admin.text(&["delete", definition]).expect("deletion");
        until("off", || self.says("definitions", "the definitions of Invariant are gone"));
        let definitions = suture_e2e::suture::run(&["manifests", "crds"]).expect("definitions");
        self.admin.apply(&definitions).expect("definitions");
        let again: Value = invariant("service-keeps-endpoints");
        until("the kind", || self.admin.apply(&again.to_string()).map_err(|error| error.to_string()));
        let on = until("on", || self.on());
        self.row("Suture's definitions are deleted", "everything", "ready and off; metric, event, log", on);
    }
}
