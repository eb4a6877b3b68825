//! Mixed traffic: what a client and the controllers that follow it ask from the creation of an app until nothing is left
//! of it, again and again, about thirteen kinds, in a namespace of its own and about objects that all share.
//!
//! The controllers are down, so a client asks what they would, as a user whom the webhook is called for. Everything that
//! is asked is harmless: an app is at three nodes and its owner is deleted before what it owns.

use serde_json::{Value, json};
use suture_e2e::objects::{self, service};

use crate::fill::{SUFFIX, World, place};
use crate::manifests::{HUB, PODS, SHARED, budget, cron, host, member, policy, ready, set_of, store, web};
use crate::step::{Step, bind, create, delete, end, evict, object, scale, status, update};

/// What a client asks in one of its rounds, whose parts come in another order for each.
pub fn steps(world: &World, client: usize, round: usize) -> Vec<Step> {
    let app = App { place: place(world, client), name: format!("mixed-{client}-{round}"), world, seed: client + round };
    let mut parts = [app.web(), app.store(), app.batch(), app.member(client, round)];
    parts.rotate_left((client + round) % 4);
    parts.concat()
}

/// The names of one round.
struct App<'a> {
    place: String,
    name: String,
    world: &'a World,
    seed: usize,
}

/// A status of a workload all of whose pods are ready.
fn counts(kind: &str, pods: usize, generation: usize) -> Value {
    let mut counts = json!({"replicas": pods, "readyReplicas": pods, "availableReplicas": pods,
        "observedGeneration": generation});
    if kind != "ReplicaSet" {
        counts["updatedReplicas"] = json!(pods);
    }
    counts
}

/// A status of a budget that allows one eviction.
fn allows_one(generation: usize, pods: usize) -> Value {
    json!({"observedGeneration": generation, "expectedPods": pods, "currentHealthy": pods, "desiredHealthy": pods - 1,
           "disruptionsAllowed": 1})
}

impl App<'_> {
    /// The creation of a pod, its way to a node, and that it is ready.
    fn pod(&self, place: &str, name: &str, template: &Value, owner: &str, node: usize) -> [Step; 3] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"name": name, "labels": template["metadata"]["labels"]}});
        let node = format!("node-{}", (self.seed * 5 + node) % self.world.nodes);
        [create("Pod", place, pod).owned_by(owner), bind(place, name, &node), status("Pod", place, name, &ready())]
    }

    /// A Deployment with its Service, configuration, budget, policy and host, from its creation to its end.
    fn web(&self) -> Vec<Step> {
        let (place, name) = (self.place.as_str(), format!("{}-web", self.name));
        let name = name.as_str();
        let deployment = web(place, name);
        let owner = object("Deployment", place, name);
        let set = set_of(&deployment);
        let set_path = object("ReplicaSet", place, name);
        let template = &set["spec"]["template"];
        let pod = |index: usize| self.pod(place, &format!("{name}-{index}"), template, &set_path, index);
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"level": "1"}});
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": "1"}});
        let mut claim = objects::claim(place, name);
        claim["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        let mut all = vec![
            create("ConfigMap", place, config),
            create("Secret", place, secret),
            create("PersistentVolumeClaim", place, claim),
            create("Deployment", place, deployment),
            create("Service", place, service(place, name)).owned_by(&owner),
            create("ReplicaSet", place, set.clone()).owned_by(&owner),
        ];
        all.extend((0..PODS).flat_map(pod));
        all.extend([
            status("ReplicaSet", place, name, &counts("ReplicaSet", PODS, 1)),
            status("Deployment", place, name, &counts("Deployment", PODS, 1)),
            create("PodDisruptionBudget", place, budget(name)),
            status("PodDisruptionBudget", place, name, &allows_one(1, PODS)),
            create("NetworkPolicy", place, policy(name)),
            create("Ingress", place, host(place, name, &format!("{name}{SUFFIX}"), "/", name)),
        ]);
        all.extend(changes(place, name));
        all.extend([scale("Deployment", place, name, PODS + 1), scale("ReplicaSet", place, name, PODS + 1)]);
        all.extend(pod(PODS));
        all.extend([
            status("Deployment", place, name, &counts("Deployment", PODS + 1, 2)),
            status("PodDisruptionBudget", place, name, &allows_one(2, PODS + 1)),
            evict(place, &format!("{name}-0")),
            end(place, &format!("{name}-0")),
        ]);
        all.extend(pod(PODS + 1));
        all.extend([scale("Deployment", place, name, PODS), scale("ReplicaSet", place, name, PODS)]);
        all.extend(leaves(place, &format!("{name}-1")));
        all.push(status("Deployment", place, name, &counts("Deployment", PODS, 3)));
        let mut containers = template["spec"]["containers"].clone();
        containers[0]["image"] = json!("web:2");
        let image = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        all.push(update("Deployment", place, name, image));
        all.extend(
            ["Ingress", "NetworkPolicy", "PodDisruptionBudget", "Deployment", "ReplicaSet"]
                .map(|kind| delete(kind, place, name)),
        );
        all.extend((2..PODS + 2).flat_map(|index| leaves(place, &format!("{name}-{index}"))));
        all.push(delete("Service", place, name));
        all.extend(claim_leaves(place, name));
        all.extend(["ConfigMap", "Secret"].map(|kind| delete(kind, place, name)));
        all
    }

    /// A StatefulSet with claims and its Service, from its creation to its end.
    fn store(&self) -> Vec<Step> {
        let (place, name) = (self.place.as_str(), format!("{}-store", self.name));
        let name = name.as_str();
        let set = store(place, name);
        let owner = object("StatefulSet", place, name);
        let mut governing = service(place, name);
        governing["spec"]["clusterIP"] = json!("None");
        let mut all =
            vec![create("StatefulSet", place, set.clone()), create("Service", place, governing).owned_by(&owner)];
        let member = |index: usize| {
            let pod = format!("{name}-{index}");
            let claim = format!("data-{pod}");
            let mut template = set["spec"]["template"].clone();
            template["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
            let mut steps = vec![create("PersistentVolumeClaim", place, objects::claim(place, &claim))];
            steps.extend(self.pod(place, &pod, &template, &owner, index));
            steps
        };
        all.extend((0..PODS).flat_map(member));
        all.push(status("StatefulSet", place, name, &counts("StatefulSet", PODS, 1)));
        all.push(scale("StatefulSet", place, name, PODS + 1));
        all.extend(member(PODS));
        all.push(status("StatefulSet", place, name, &counts("StatefulSet", PODS + 1, 2)));
        all.push(scale("StatefulSet", place, name, PODS));
        all.extend(leaves(place, &format!("{name}-{PODS}")));
        all.push(update("StatefulSet", place, name, json!({"spec": {"minReadySeconds": 5}})));
        all.push(delete("StatefulSet", place, name));
        all.extend((0..PODS).flat_map(|index| leaves(place, &format!("{name}-{index}"))));
        all.push(delete("Service", place, name));
        all.extend((0..=PODS).flat_map(|index| claim_leaves(place, &format!("data-{name}-{index}"))));
        all
    }

    /// A CronJob and a Job of it.
    fn batch(&self) -> Vec<Step> {
        let (place, name) = (self.place.as_str(), format!("{}-batch", self.name));
        let name = name.as_str();
        let cron = cron(name);
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": cron["spec"]["jobTemplate"]["spec"]});
        let owner = object("CronJob", place, name);
        vec![
            create("CronJob", place, cron),
            create("Job", place, job).owned_by(&owner),
            status("Job", place, name, &json!({"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 1})),
            update("CronJob", place, name, json!({"spec": {"schedule": "30 * * * *"}})),
            update("Job", place, name, json!({"spec": {"parallelism": 2}})),
            update("CronJob", place, name, json!({"spec": {"suspend": true}})),
            delete("CronJob", place, name),
            delete("Job", place, name),
        ]
    }

    /// A Deployment whose pods are among those of the shared Service and need the shared ConfigMap, and a path of the
    /// shared host.
    fn member(&self, client: usize, round: usize) -> Vec<Step> {
        let name = format!("{}-member", self.name);
        let name = name.as_str();
        let deployment = member(name);
        let set = set_of(&deployment);
        let owner = object("Deployment", HUB, name);
        let set_path = object("ReplicaSet", HUB, name);
        let pod = |index: usize| self.pod(HUB, &format!("{name}-{index}"), &set["spec"]["template"], &set_path, index);
        let client = format!("client-{client}");
        let mut all =
            vec![create("Deployment", HUB, deployment), create("ReplicaSet", HUB, set.clone()).owned_by(&owner)];
        all.extend(pod(0));
        all.push(create("Ingress", HUB, host(HUB, name, &format!("www{SUFFIX}"), &format!("/{name}"), SHARED)));
        all.push(update("ConfigMap", HUB, SHARED, json!({"data": {client: round.to_string()}})));
        all.extend([scale("Deployment", HUB, name, 2), scale("ReplicaSet", HUB, name, 2)]);
        all.extend(pod(1));
        all.extend([
            status("Deployment", HUB, name, &counts("Deployment", 2, 2)),
            evict(HUB, &format!("{name}-0")),
            end(HUB, &format!("{name}-0")),
            delete("Ingress", HUB, name),
            delete("Deployment", HUB, name),
            delete("ReplicaSet", HUB, name),
        ]);
        all.extend(leaves(HUB, &format!("{name}-1")));
        all
    }
}

/// A change of each object of an app but its workload.
fn changes(place: &str, name: &str) -> [Step; 7] {
    let ports = json!([{"name": "web", "port": 80}, {"name": "metrics", "port": 9090}]);
    let from = json!([{"from": [{"podSelector": {}}]}]);
    let backend = json!({"service": {"name": name, "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend},
        {"path": "/more", "pathType": "Prefix", "backend": backend}]);
    [
        update("ConfigMap", place, name, json!({"data": {"level": "2", "more": "1"}})),
        update("Secret", place, name, json!({"stringData": {"key": "2", "more": "1"}})),
        update("Service", place, name, json!({"spec": {"ports": ports}})),
        update(
            "Ingress",
            place,
            name,
            json!({"spec": {"rules": [{"host": format!("{name}{SUFFIX}"), "http": {"paths": paths}}]}}),
        ),
        update("NetworkPolicy", place, name, json!({"spec": {"ingress": from}})),
        update("PodDisruptionBudget", place, name, json!({"spec": {"maxUnavailable": "50%"}})),
        update("PersistentVolumeClaim", place, name, json!({"metadata": {"labels": {"tier": "web"}}})),
    ]
}

/// A pod is deleted, and its node ends it.
fn leaves(place: &str, pod: &str) -> [Step; 2] {
    [delete("Pod", place, pod), end(place, pod)]
}

/// A claim is deleted, and the controller that protects it lets it go.
fn claim_leaves(place: &str, claim: &str) -> [Step; 2] {
    let free = json!({"metadata": {"finalizers": null}});
    [delete("PersistentVolumeClaim", place, claim), update("PersistentVolumeClaim", place, claim, free)]
}
