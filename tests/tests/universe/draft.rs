//! What a random cluster is collected in: how large it may be, its objects so far, and what all of them have.

use serde_json::{Value, json};

use super::focus::Focus;
use super::random::Random;

/// The labels that pods and selectors draw from.
pub const APPS: [&str; 2] = ["x", "y"];

/// How large a universe may be.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Pods at most.
    pub pods: usize,
    /// Nodes at most.
    pub nodes: usize,
    /// Requests in flight at most.
    pub in_flight: usize,
}

impl Size {
    /// The largest universes.
    pub const FULL: Self = Self { pods: 6, nodes: 3, in_flight: 2 };

    /// The next smaller size.
    pub fn smaller(self) -> Self {
        Self {
            pods: self.pods.saturating_sub(1).max(2),
            nodes: self.nodes.saturating_sub(1).max(1),
            in_flight: self.in_flight.saturating_sub(1),
        }
    }
}

/// Collects the objects of a cluster.
pub struct Draft<'r> {
    /// Where numbers come from.
    pub random: &'r mut Random,
    /// What the invariant is about.
    pub focus: Focus,
    /// The objects so far.
    pub objects: Vec<Value>,
    /// How many more pods there may be.
    pub pods_left: usize,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The namespaces.
    pub namespaces: Vec<String>,
    /// Whether nothing is wrong or under way: then it is the change that breaks what breaks.
    pub calm: bool,
    /// Whether there is little room for pods, and much that keeps them apart.
    pub tight: bool,
    uids: usize,
}

impl<'r> Draft<'r> {
    /// A cluster of one namespace or two, without objects.
    pub fn new(random: &'r mut Random, focus: Focus, size: Size) -> Self {
        let calm = random.chance(55);
        let tight = focus == Focus::Room
            || matches!(focus, Focus::Services | Focus::Quorum | Focus::Faults | Focus::Selectors | Focus::Pods)
                && random.chance(35);
        let mut namespaces = vec!["a".to_owned()];
        if random.chance(if focus == Focus::Hosts { 90 } else { 45 }) {
            namespaces.push("b".to_owned());
        }
        Self {
            random,
            focus,
            objects: Vec::new(),
            pods_left: size.pods,
            nodes: Vec::new(),
            namespaces,
            calm,
            tight,
            uids: 0,
        }
    }

    /// A uid that no other object has.
    pub fn uid(&mut self) -> String {
        self.uids += 1;
        format!("u{}", self.uids)
    }

    /// One of the namespaces, the first most often.
    pub fn ns(&mut self) -> String {
        let at = if self.random.chance(75) { 0 } else { self.random.below(self.namespaces.len()) };
        self.namespaces[at].clone()
    }

    /// One of the app labels.
    pub fn app(&mut self) -> &'static str {
        if self.random.chance(70) { APPS[0] } else { APPS[1] }
    }

    /// The metadata of an object, with a uid and now and then what makes objects odd.
    pub fn meta(&mut self, ns: &str, name: &str) -> Value {
        let uid = self.uid();
        let mut meta = json!({"name": name, "uid": uid, "resourceVersion": format!("{}", 100 + self.uids)});
        if !ns.is_empty() {
            meta["namespace"] = json!(ns);
        }
        if self.calm {
            return meta;
        }
        if self.random.chance(3) {
            meta["finalizers"] = json!(["example.com/hold"]);
        }
        if self.random.chance(2) {
            meta["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
        }
        meta
    }

    /// Whether something that the invariant is about is to be made, which else is rare.
    pub fn wants(&mut self, focus: &[Focus], else_percent: usize) -> bool {
        let percent = if focus.contains(&self.focus) { 85 } else { else_percent };
        self.random.chance(percent)
    }

    /// The objects of a kind so far.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.objects.iter().filter(|o| o["kind"] == kind).cloned().collect()
    }

    /// A claim, bound most often, with its volume most often.
    pub fn claim(&mut self, ns: &str, name: &str, labels: Value) {
        let mut meta = self.meta(ns, name);
        meta["labels"] = labels;
        if self.random.chance(8) {
            meta["labels"]["suture.dev/disposable"] = json!("true");
        }
        if self.random.chance(25) {
            meta["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
        }
        let uid = meta["uid"].clone();
        let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {}, "status": {"phase": "Pending"}});
        if self.random.chance(80) {
            let volume = format!("pv-{ns}-{name}");
            claim["spec"]["volumeName"] = json!(volume);
            claim["status"]["phase"] = json!("Bound");
            if self.random.chance(75) {
                let policy = if self.random.chance(60) { "Delete" } else { "Retain" };
                let mut spec = json!({"persistentVolumeReclaimPolicy": policy,
                    "claimRef": {"kind": "PersistentVolumeClaim", "namespace": ns, "name": name, "uid": uid}});
                if self.random.chance(20) {
                    spec["local"] = json!({"path": "/d"});
                    let node = format!("n{}", 1 + self.random.below(3));
                    spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}});
                }
                let meta = self.meta("", &volume);
                self.objects.push(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": "Bound"}}));
            }
        }
        self.objects.push(claim);
    }
}

/// An owner reference to an object.
pub fn reference(owner: &Value, controller: bool) -> Value {
    json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": controller})
}
