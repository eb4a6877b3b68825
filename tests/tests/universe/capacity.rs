//! What workloads may ask for, and who writes what: quotas, limits, leases, CronJobs, and custom resources that write.

use serde_json::{Value, json};
use suture_model::change::{Request, User};
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Val;

use super::draft::{Draft, reference};
use super::focus::Focus;
use super::random::Random;

impl Draft<'_> {
    /// The objects of universes that are about capacity, or about writers.
    pub fn capacity(&mut self) {
        match self.focus {
            Focus::Capacity => {}
            Focus::Writers => return self.writers(),
            _ => return,
        }
        for namespace in self.objects.iter_mut().filter(|o| o["kind"] == "Namespace") {
            namespace["metadata"]["labels"] = json!({"tenant": *self.random.pick(&["t1", "t1", "t2"])});
        }
        for ns in self.namespaces.clone() {
            if self.random.chance(75) {
                let meta = self.meta(&ns, "quota");
                let mut spec = json!({"hard": hard(self.random)});
                if self.random.chance(25) {
                    spec["scopes"] =
                        json!([*self.random.pick(&["BestEffort", "NotBestEffort", "NotTerminating", "Terminating"])]);
                }
                self.objects.push(json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}));
            }
            if self.random.chance(40) {
                let meta = self.meta(&ns, "limits");
                let spec = json!({"limits": limits(self.random)});
                self.objects.push(json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": spec}));
            }
        }
        if self.random.chance(60) {
            let ns = self.ns();
            let meta = self.meta(&ns, "cron");
            let spec = cron_spec(self.random);
            let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec});
            if self.random.chance(40) {
                let mut meta = self.meta(&ns, "cron-1");
                meta["ownerReferences"] = json!([reference(&cron, true)]);
                let spec = json!({"parallelism": self.random.range(0, 3), "template": cron["spec"]["jobTemplate"]["spec"]["template"]});
                self.objects.push(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}));
            }
            self.objects.push(cron);
        }
    }

    /// Custom resources that write Secrets.
    fn writers(&mut self) {
        for at in 0..1 + self.random.below(3) {
            let ns = self.ns();
            let mut meta = self.meta(&ns, &format!("writer{at}"));
            let owners = ["Secret", "ConfigMap", "Deployment"].map(|kind| self.of_kind(kind)).concat();
            if !owners.is_empty() && self.random.chance(25) {
                let owner = self.random.pick(&owners).clone();
                meta["ownerReferences"] = json!([reference(&owner, false)]);
            }
            self.objects.push(
                json!({"apiVersion": "example.com/v1", "kind": "Db", "metadata": meta, "spec": writing(self.random)}),
            );
        }
    }
}

fn hard(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"pods": random.range(0, 5).to_string()}),
        1 => json!({"requests.cpu": random.range(0, 4).to_string()}),
        2 => json!({"limits.cpu": random.range(1, 3).to_string(), "pods": random.range(1, 6).to_string()}),
        _ => json!({"pods": random.range(2, 6), "cpu": "2500m", "services": "0"}),
    }
}

fn limits(random: &mut Random) -> Value {
    random
        .pick(&[
            json!([{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}]),
            json!([{"type": "Container", "min": {"cpu": "600m"}}]),
            json!([{"type": "Container", "max": {"cpu": "2"}}]),
            json!([{"type": "Pod", "max": {"cpu": "1"}}]),
            json!([{"type": "Container", "defaultRequest": {"cpu": "1"}}]),
        ])
        .clone()
}

fn cron_spec(random: &mut Random) -> Value {
    let template = json!({"metadata": {"labels": {"app": "y"}}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": *random.pick(&["500m", "1"])}}}]}});
    let mut job = json!({"template": template});
    for (field, most) in [("parallelism", 4), ("completions", 3)] {
        if random.chance(50) {
            job[field] = json!(random.range(0, most));
        }
    }
    if random.chance(60) {
        job["activeDeadlineSeconds"] = json!(*random.pick(&[0, 60, 600, 7200]));
    }
    let mut spec =
        json!({"schedule": *random.pick(&["*/5 * * * *", "@daily", "0 * * * 1-5"]), "jobTemplate": {"spec": job}});
    if random.chance(70) {
        spec["concurrencyPolicy"] = json!(*random.pick(&["Allow", "Forbid", "Replace"]));
    }
    if random.chance(20) {
        spec["suspend"] = json!(random.chance(70));
    }
    spec
}

fn writing(random: &mut Random) -> Value {
    json!({"secret": *random.pick(&["s1", "s1", "s2"]), "writes": random.chance(85)})
}

/// A request about capacity.
pub fn request(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let ns = if random.chance(75) { "a" } else { "b" };
    let create = |manifest: Value| Request::create(User::admin(), state, &Val::from(&manifest)).ok();
    if random.chance(25) {
        let cpu = json!([{"name": "c", "resources": {"requests": {"cpu": *random.pick(&["500m", "2"])}}}]);
        return create(match random.below(4) {
            0 => {
                json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "more", "namespace": ns}, "spec": {"hard": hard(random)}})
            }
            1 => {
                json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "more", "namespace": ns}, "spec": {"limits": limits(random)}})
            }
            2 => {
                json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "more", "namespace": ns}, "spec": cron_spec(random)})
            }
            _ => {
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more", "namespace": ns}, "spec": {"containers": cpu}})
            }
        });
    }
    let all: [&[&str]; 2] = [&["ResourceQuota", "LimitRange", "Namespace", "Job"], &["CronJob"]];
    let kinds = *random.pick(&all);
    edit(random, state, kinds, |random, target| match &*target.key.kind.kind {
        "ResourceQuota" => json!({"spec": {"hard": hard(random)}}),
        "LimitRange" => json!({"spec": {"limits": limits(random)}}),
        "CronJob" => json!({"spec": cron_spec(random)}),
        "Job" => json!({"spec": {"parallelism": random.range(0, 3)}}),
        _ => json!({"metadata": {"labels": {"tenant": *random.pick(&["t1", "t2"])}}}),
    })
}

/// A request about writers.
pub fn writer(random: &mut Random, state: &State<'_>) -> Option<Request> {
    if random.chance(45) {
        let ns = if random.chance(75) { "a" } else { "b" };
        let name = format!("writer{}", random.below(4));
        let manifest = json!({"apiVersion": "example.com/v1", "kind": "Db", "metadata": {"name": name, "namespace": ns}, "spec": writing(random)});
        return Request::create(User::admin(), state, &Val::from(&manifest)).ok();
    }
    edit(random, state, &["Db"], |random, _| json!({"spec": writing(random)}))
}

fn edit(
    random: &mut Random,
    state: &State<'_>,
    kinds: &[&str],
    with: impl Fn(&mut Random, &Object) -> Value,
) -> Option<Request> {
    let found: Vec<_> = state.iter().into_iter().filter(|o| kinds.contains(&&*o.key.kind.kind)).cloned().collect();
    if found.is_empty() {
        return None;
    }
    let target = random.pick(&found).clone();
    let with = with(random, &target);
    Request::patch(User::admin(), state, target.key.clone(), &Val::from(&with), "").ok()
}
