//! Priorities, classes and defaults that decide whether pods find a place, and for whom others go.

use serde_json::json;
use suture_model::change::{Request, User};
use suture_model::state::State;
use suture_model::value::Val;

use super::draft::Draft;
use super::focus::Focus;
use super::random::Random;

const CLASS: &str = "scheduling.k8s.io/v1";

impl Draft<'_> {
    /// The classes of universes that are about room.
    pub fn room(&mut self) {
        if self.focus != Focus::Room {
            return;
        }
        if self.random.chance(85) {
            let meta = self.meta("", "high");
            let policy = if self.random.chance(15) { "Never" } else { "PreemptLowerPriority" };
            self.objects.push(json!({"apiVersion": CLASS, "kind": "PriorityClass", "metadata": meta, "value": 10,
                "preemptionPolicy": policy}));
        }
        if self.random.chance(25) {
            let meta = self.meta("", "plain");
            let value = *self.random.pick(&[0, 5, 20]);
            self.objects.push(json!({"apiVersion": CLASS, "kind": "PriorityClass", "metadata": meta, "value": value,
                "globalDefault": true}));
        }
    }
}

/// A request about a class, or about what a workload's pods are worth.
pub fn request(random: &mut Random, state: &State<'_>) -> Option<Request> {
    if random.chance(40) {
        let value = *random.pick(&[0, 7, 15]);
        let class = json!({"apiVersion": CLASS, "kind": "PriorityClass", "metadata": {"name": "another"}, "value": value,
            "globalDefault": random.chance(60)});
        return Request::create(User::admin(), state, &Val::from(&class)).ok();
    }
    let kinds = ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"];
    let found: Vec<_> = state.iter().into_iter().filter(|o| kinds.iter().any(|kind| o.key.kind.is(kind))).collect();
    if found.is_empty() {
        return None;
    }
    let target = random.pick(&found).key.clone();
    let class = if random.chance(70) { json!("high") } else { json!(null) };
    let with = json!({"spec": {"template": {"spec": {"priorityClassName": class}}}});
    Request::patch(User::admin(), state, target, &Val::from(&with), "").ok()
}
