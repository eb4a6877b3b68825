//! Nodes without machines: plain `Node` objects that kwok keeps ready, on which pods run at once.

use serde_json::{Value, json};

/// A set of equal nodes, `node-0` and so on, spread evenly over zones.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// How many.
    pub count: usize,
    /// The zones `zone-0` and so on; at least one.
    pub zones: usize,
    /// Allocatable processors of each, as a quantity.
    pub cpu: String,
    /// Allocatable memory of each, as a quantity.
    pub memory: String,
    /// Pods that each can hold.
    pub pods: usize,
}

impl Default for Nodes {
    fn default() -> Self {
        // 110 pods is the kubelet's own default (maxPods in its configuration)
        Self { count: 0, zones: 3, cpu: "16".to_owned(), memory: "64Gi".to_owned(), pods: 110 }
    }
}

impl Nodes {
    /// This many nodes in three zones.
    pub fn new(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// The nodes as one list to create.
    pub fn manifest(&self) -> Value {
        let items: Vec<Value> = (0..self.count).map(|index| self.node(index)).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn node(&self, index: usize) -> Value {
        let name = format!("node-{index}");
        let room = json!({"cpu": self.cpu, "memory": self.memory, "pods": self.pods.to_string()});
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/region": "region",
                    "topology.kubernetes.io/zone": format!("zone-{}", index % self.zones.max(1)),
                },
            },
            "status": {"capacity": room, "allocatable": room},
        })
    }
}

/// What of a list of nodes is not ready to take pods, for people; empty if nothing.
pub fn not_ready(list: &Value, count: usize) -> Vec<String> {
    let nodes = list.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let waiting = nodes.iter().filter(|node| !is_ready(node)).filter_map(|node| node.pointer("/metadata/name"));
    let mut missing: Vec<String> = waiting.map(Value::to_string).collect();
    if nodes.len() < count {
        missing.push(format!("{} of {count} nodes", count - nodes.len()));
    }
    missing
}

/// Ready, and without the taint that a new node has until its controller has seen that it is ready.
fn is_ready(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
    let taints = node.pointer("/spec/taints").and_then(Value::as_array);
    ready && taints.is_none_or(|taints| taints.iter().all(|taint| taint["key"] != "node.kubernetes.io/not-ready"))
}
