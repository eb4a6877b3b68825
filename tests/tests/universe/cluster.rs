//! A random cluster of a few objects: nodes, namespaces, workloads with their pods, and what refers to them.

use serde_json::{Value, json};
use suture_model::value::Val;

use super::draft::{Draft, Size, reference};
use super::focus::Focus;
use super::random::Random;
use super::workloads;

/// The objects of a random cluster.
pub fn cluster(random: &mut Random, focus: Focus, size: Size) -> Vec<Val> {
    let mut draft = Draft::new(random, focus, size);
    draft.namespace_objects();
    draft.node_objects(size.nodes);
    let workloads = if focus == Focus::Hosts { draft.random.below(2) } else { 1 + draft.random.below(2) };
    for at in 0..workloads {
        workloads::workload(&mut draft, at);
    }
    // more groups of pods than are encoded at first
    let is_crowded = matches!(focus, Focus::Services | Focus::Faults) && draft.random.chance(12);
    let bare = if is_crowded { 9 + draft.random.below(3) } else { draft.random.below(2) };
    workloads::bare_pods(&mut draft, bare);
    draft.services();
    draft.budgets();
    draft.autoscalers();
    draft.storage();
    draft.references();
    draft.routes();
    draft.definitions();
    draft.odds_and_ends();
    draft.capacity();
    draft.rights();
    draft.room();
    let mut objects = draft.objects;
    objects.truncate(40);
    objects.iter().map(Val::from).collect()
}

impl Draft<'_> {
    fn namespace_objects(&mut self) {
        for ns in self.namespaces.clone() {
            if self.random.chance(10) && self.focus != Focus::Namespaces {
                continue;
            }
            let mut meta = self.meta("", &ns);
            if self.random.chance(12) {
                let uid = if self.random.chance(70) { meta["uid"].clone() } else { json!("other") };
                meta["annotations"] = json!({"suture.dev/confirm-delete": uid});
            }
            self.objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}));
        }
    }

    fn node_objects(&mut self, most: usize) {
        let many = matches!(self.focus, Focus::Faults) && self.random.chance(70);
        let number = if many { 3 } else { 1 + [0, 1, 1, 1, 2, 2][self.random.below(6)] }.min(most);
        let (zoned, plain) = (self.random.chance(75), !self.tight && (self.calm || self.random.chance(55)));
        for at in 1..=number {
            let name = format!("n{at}");
            let mut meta = json!({"name": name, "uid": self.uid(), "resourceVersion": "9", "labels": {"kubernetes.io/hostname": name}});
            if zoned && self.random.chance(95) {
                let zone = if at == 1 || (at > 2 && self.random.chance(50)) { "z1" } else { "z2" };
                meta["labels"]["topology.kubernetes.io/zone"] = json!(zone);
            }
            if self.random.chance(40) {
                meta["labels"]["disk"] = json!("ssd");
            }
            let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {}});
            if self.random.chance(90) {
                let ready = if self.calm || self.random.chance(92) { "True" } else { "False" };
                node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
            }
            if !plain {
                if self.random.chance(12) {
                    node["spec"]["unschedulable"] = json!(true);
                }
                if self.random.chance(if self.tight { 25 } else { 12 }) {
                    node["spec"]["taints"] = json!([self.taint()]);
                }
                if self.random.chance(if self.tight { 75 } else { 30 }) {
                    let cpu = self.random.range(1, 3);
                    node["status"]["allocatable"] =
                        json!({"cpu": cpu.to_string(), "pods": self.random.range(2, 4).to_string()});
                }
            }
            self.nodes.push(name);
            self.objects.push(node);
        }
    }

    /// A taint of a node.
    pub fn taint(&mut self) -> Value {
        taint(self.random)
    }

    fn services(&mut self) {
        let number = if self.wants(&[Focus::Services, Focus::Namespaces], 40) { 1 + self.random.below(2) } else { 0 };
        for at in 0..number {
            let ns = self.ns();
            let mut meta = self.meta(&ns, &format!("svc{at}"));
            let owners = ["Db", "StatefulSet", "Deployment"].map(|k| self.of_kind(k)).concat();
            if !owners.is_empty() && self.random.chance(25) {
                let owner = self.random.pick(&owners).clone();
                meta["ownerReferences"] = json!([reference(&owner, self.random.chance(50))]);
            }
            let app = self.app();
            let mut spec = json!({"selector": {"app": app}});
            if self.random.chance(20) {
                spec["selector"]["ver"] = json!("v1");
            }
            if self.random.chance(12) {
                spec["selector"]["role"] = json!("x");
            }
            if self.random.chance(6) {
                spec["selector"] = Value::Null;
            }
            let sets = self.of_kind("StatefulSet");
            if !sets.is_empty() && self.random.chance(12) {
                // one for a single pod
                let name = format!("{}-0", self.random.pick(&sets)["metadata"]["name"].as_str().unwrap_or_default());
                spec["selector"] = json!({"statefulset.kubernetes.io/pod-name": name});
            }
            self.objects.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}));
        }
    }

    fn budgets(&mut self) {
        if !self.wants(&[Focus::Budgets], 20) {
            return;
        }
        let ns = self.ns();
        let app = self.app();
        let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
        if self.random.chance(15) {
            spec["selector"]["matchLabels"] = json!({"role": "x"});
        }
        let (field, value) = match self.random.below(4) {
            0 => ("minAvailable", json!(self.random.range(0, 3))),
            1 => ("maxUnavailable", json!(self.random.range(0, 2))),
            2 => ("minAvailable", json!(self.random.pick(&["50%", "100%"]))),
            _ => ("maxUnavailable", json!(self.random.pick(&["0%", "50%"]))),
        };
        spec[field] = value;
        let mut budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": self.meta(&ns, "pdb"), "spec": spec});
        if self.random.chance(70) {
            budget["status"] = json!({"disruptionsAllowed": self.random.range(0, 2), "currentHealthy": 2, "desiredHealthy": self.random.range(1, 2)});
        }
        self.objects.push(budget);
    }

    /// An autoscaler, mostly of what is there.
    fn autoscalers(&mut self) {
        let focus = [Focus::Budgets, Focus::Services, Focus::Quorum, Focus::Faults, Focus::Selectors, Focus::Pods];
        let targets = ["Deployment", "StatefulSet", "ReplicaSet", "Db"].map(|kind| self.of_kind(kind)).concat();
        if targets.is_empty() || !self.wants(&focus, 10) || self.random.chance(50) {
            return;
        }
        let target = self.random.pick(&targets).clone();
        let ns = target["metadata"]["namespace"].as_str().unwrap_or("a").to_owned();
        let mut made = autoscaler(self.random, &target["kind"], &target["apiVersion"], &target["metadata"]["name"]);
        made["metadata"] = self.meta(&ns, "hpa");
        if self.random.chance(8) {
            made["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            made["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        self.objects.push(made);
    }

    /// Claims that nothing made yet, volumes, snapshots.
    fn storage(&mut self) {
        if self.wants(&[Focus::Claims], 12) {
            let ns = self.ns();
            self.claim(&ns, "loose", json!({"app": "x"}));
        }
        for claim in self.of_kind("PersistentVolumeClaim") {
            if self.random.chance(15) {
                let ns = claim["metadata"]["namespace"].as_str().unwrap_or("a").to_owned();
                let name = format!("snap-{}", claim["metadata"]["name"].as_str().unwrap_or_default());
                let ready = self.random.chance(75);
                let meta = self.meta(&ns, &name);
                self.objects.push(json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": meta,
                    "spec": {"source": {"persistentVolumeClaimName": claim["metadata"]["name"]}}, "status": {"readyToUse": ready}}));
            }
        }
    }

    /// Secrets, ConfigMaps and others that templates name.
    fn references(&mut self) {
        for ns in self.namespaces.clone() {
            for (kind, name) in [("Secret", "s1"), ("ConfigMap", "c1"), ("ServiceAccount", "sa")] {
                if self.wants(&[Focus::References], 15) {
                    let mut meta = self.meta(&ns, name);
                    let owners = ["Db", "Deployment", "StatefulSet"].map(|k| self.of_kind(k)).concat();
                    if !owners.is_empty() && self.random.chance(25) {
                        let owner = self.random.pick(&owners).clone();
                        meta["ownerReferences"] = json!([reference(&owner, self.random.chance(40))]);
                    }
                    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": meta});
                    if kind != "ServiceAccount" {
                        object["data"] = if self.random.chance(80) { json!({"k": "dg=="}) } else { json!({}) };
                    }
                    self.objects.push(object);
                }
            }
        }
        if self.wants(&[Focus::References], 5) {
            let meta = self.meta("", "high");
            self.objects.push(
                json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": 10}),
            );
        }
    }

    /// Ingresses and routes.
    fn routes(&mut self) {
        let number = if self.wants(&[Focus::Hosts, Focus::Services], 15) { 1 + self.random.below(3) } else { 0 };
        for at in 0..number {
            let ns = self.namespaces[self.random.below(self.namespaces.len())].clone();
            let object = route(self.random, &ns, &format!("in{at}"));
            let mut object = object;
            let mut meta = self.meta(&ns, &format!("in{at}"));
            if let Some(annotations) = object["metadata"].get("annotations") {
                meta["annotations"] = annotations.clone();
            }
            object["metadata"] = meta;
            self.objects.push(object);
        }
        if !self.of_kind("HTTPRoute").is_empty() && self.random.chance(70) {
            let meta = self.meta("a", "gw");
            let spec = json!({"gatewayClassName": "nginx", "listeners": listeners(self.random)});
            self.objects.push(
                json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": meta, "spec": spec}),
            );
        }
        if self.focus == Focus::Hosts && self.random.chance(20) {
            let mut meta = self.meta("", "other");
            meta["annotations"] = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
            meta["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
            self.objects.push(
                json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": meta, "spec": {}}),
            );
        }
        if self.focus == Focus::Hosts && self.random.chance(30) {
            let mut meta = self.meta("", "nginx");
            meta["annotations"] = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
            self.objects.push(
                json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": meta, "spec": {}}),
            );
        }
    }

    /// The definition of the custom resource, and something that needs it.
    fn definitions(&mut self) {
        let has_custom = !self.of_kind("Db").is_empty();
        if !self.wants(&[Focus::Definitions], if has_custom { 40 } else { 5 }) {
            return;
        }
        let meta = self.meta("", "dbs.example.com");
        let mut spec = json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Db", "plural": "dbs"},
            "versions": [{"name": "v1", "served": true, "storage": true}]});
        if self.random.chance(40) {
            let served = self.random.chance(80);
            spec["versions"] =
                json!([{"name": "v1", "served": true, "storage": true}, {"name": "v1beta1", "served": served}]);
        }
        if self.random.chance(30) {
            spec["versions"][0]["subresources"] =
                json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas"}});
        }
        if self.random.chance(30) {
            spec["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"namespace": "a", "name": "svc0"}}}});
        }
        self.objects.push(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}));
        if !has_custom && self.random.chance(60) {
            let meta = self.meta("a", "db9");
            self.objects.push(json!({"apiVersion": "example.com/v1", "kind": "Db", "metadata": meta, "spec": {}}));
        }
    }

    fn odds_and_ends(&mut self) {
        if self.wants(&[Focus::Selectors], 6) {
            let ns = self.ns();
            let app = self.app();
            let meta = self.meta(&ns, "np");
            let selector = if self.random.chance(80) { json!({"matchLabels": {"app": app}}) } else { json!({}) };
            self.objects.push(json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": {"podSelector": selector}}));
        }
        if self.wants(&[Focus::Selectors, Focus::References], 6) {
            let ns = self.ns();
            let kind = *self.random.pick(&["Job", "CronJob"]);
            let meta = self.meta(&ns, "job");
            let template = workloads::template(self, "y");
            let spec = if kind == "Job" {
                json!({"template": template})
            } else {
                json!({"jobTemplate": {"spec": {"template": template}}})
            };
            self.objects.push(json!({"apiVersion": "batch/v1", "kind": kind, "metadata": meta, "spec": spec}));
        }
        if self.wants(&[Focus::Owners], 8) {
            let ns = self.ns();
            let mut meta = self.meta(&ns, "owned");
            let dangling = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "none"});
            let all = self.objects.clone();
            let mut owners = vec![reference(&self.random.pick(&all).clone(), self.random.chance(50))];
            if self.random.chance(30) {
                owners.push(reference(&self.random.pick(&all).clone(), false));
            }
            if self.random.chance(30) {
                owners.push(dangling);
            }
            meta["ownerReferences"] = json!(owners);
            self.objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}));
        }
        if self.random.chance(6) {
            let meta = self.meta("", "hook");
            self.objects.push(json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": meta,
                "webhooks": [{"name": "h", "clientConfig": {"service": {"namespace": "a", "name": "svc0"}}}]}));
        }
    }
}

/// A taint of a node.
pub fn taint(random: &mut Random) -> Value {
    let effect = *random.pick(&["NoExecute", "NoSchedule", "PreferNoSchedule"]);
    json!({"key": *random.pick(&["t1", "t2"]), "effect": effect})
}

/// An autoscaler of this workload, or of one that is not there.
pub fn autoscaler(random: &mut Random, kind: &Value, api: &Value, name: &Value) -> Value {
    let low = random.range(0, 2);
    let name = if random.chance(92) { name.clone() } else { json!("gone") };
    let target = json!({"apiVersion": api, "kind": kind, "name": name});
    let mut spec = json!({"scaleTargetRef": target, "minReplicas": low, "maxReplicas": low + random.range(0, 2)});
    if random.chance(15) {
        spec["minReplicas"] = Value::Null;
    }
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec})
}

/// The listeners of the Gateway.
pub fn listeners(random: &mut Random) -> Value {
    let mut one = |name| match *random.pick(&["", "h1", "h2", "*.d", "x.d"]) {
        "" => json!({"name": name, "port": 80, "protocol": "HTTP"}),
        host => json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": host}),
    };
    json!([one("one"), one("two")])
}

/// An Ingress, or now and then an HTTPRoute.
pub fn route(random: &mut Random, ns: &str, name: &str) -> Value {
    let host = *random.pick(&["h1", "h1", "h2", "H1"]);
    let path = *random.pick(&["/", "/", "/p", "/p/"]);
    let service = format!("svc{}", random.below(2));
    if random.chance(30) {
        let mut route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name, "namespace": ns},
            "spec": {"rules": [{"matches": [{"path": {"value": path}}], "backendRefs": [{"name": service}]}]}});
        if random.chance(70) {
            route["spec"]["hostnames"] = json!([*random.pick(&[host, host, "*.d"])]);
        }
        if random.chance(70) {
            let parent = json!({"name": "gw", "namespace": "a"});
            let at = json!({"name": "gw", "namespace": "a", "sectionName": *random.pick(&["one", "two"])});
            route["spec"]["parentRefs"] = json!([random.pick(&[parent, at])]);
        }
        return route;
    }
    let mut ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name, "namespace": ns},
        "spec": {"rules": [{"host": host, "http": {"paths": [{"path": path, "pathType": "Prefix",
            "backend": {"service": {"name": service, "port": {"number": 80}}}}]}}]}});
    if random.chance(30) {
        ingress["spec"]["ingressClassName"] = json!(*random.pick(&["nginx", "other"]));
    }
    if random.chance(20) {
        ingress["spec"]["tls"] = json!([{"secretName": "s1"}]);
    }
    if random.chance(10) {
        ingress["metadata"]["annotations"] = json!({"nginx.ingress.kubernetes.io/canary": "true"});
    }
    ingress
}
