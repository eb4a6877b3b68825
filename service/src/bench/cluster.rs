//! The generated cluster, in the shape of clusterloader2's load test: 100 nodes for each namespace; a quarter of the pods
//! in Deployments of 250, a quarter in Deployments of 30, half in Deployments of 5. Beside them, what that test leaves
//! out and invariants are about: StatefulSets with claims, quorum groups, Services, budgets, Ingresses, custom resources; a
//! DaemonSet, priorities, autoscalers, quotas, CronJobs, roles, webhooks, certificates; pods that are spread over zones or kept
//! apart; and a pool of nodes that is nearly full.

use suture_model::value::Val;

use super::beside;
use super::manifests::{self, APP, Ids, Needs, Places};
use super::prng::Prng;

/// How large a cluster is to be.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Pods.
    pub pods: usize,
    /// Where the generator starts.
    pub seed: u64,
}

/// Pods of a node in clusterloader2's load test.
pub const PODS_PER_NODE: usize = 30;
/// Nodes for each namespace in the same test.
const NODES_PER_NAMESPACE: usize = 100;
/// The sizes of Deployments, each with its share of the pods in percent.
const DEPLOYMENTS: [(usize, usize); 3] = [(250, 25), (30, 25), (5, 50)];
/// Percent of the pods that StatefulSets run, taken from the small Deployments.
const STATEFUL_PERCENT: usize = 2;
/// Members of a StatefulSet.
const MEMBERS: usize = 3;
/// Workloads that share a ServiceAccount.
const TEAM_WORKLOADS: usize = 20;
/// The zones, in which nodes take turns.
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// Every so many nodes one is of the pool `batch`.
const BATCH_NODES: usize = 10;
/// Of the nodes of each namespace's share this one is of the pool `tight`, which others keep off.
const TIGHT_NODE: usize = 55;
/// One of so many workloads is critical.
const CRITICAL_ONE_IN: usize = 32;
/// With fewer pods for each node no DaemonSet runs.
const DAEMON_SHARE: usize = 10;
/// The kinds of custom resources.
pub const CUSTOM_KINDS: [&str; 3] = ["App", "Tenant", "Idle"];

/// What was made, for requests to choose from.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Nodes.
    pub nodes: Vec<String>,
    /// Namespaces.
    pub namespaces: Vec<String>,
    /// Deployments and their pods.
    pub deployments: Vec<Workload>,
    /// StatefulSets and their pods.
    pub stateful_sets: Vec<Workload>,
    /// The webhook configurations of the first namespace, each named as the Deployment and Service that answers it.
    pub webhooks: Vec<String>,
}

/// One workload of the generated cluster.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its namespace.
    pub ns: String,
    /// Its name, which its Service, budget, ConfigMap and Secret share.
    pub name: String,
    /// The ServiceAccount of its pods.
    pub account: String,
    /// How many pods it wants and has.
    pub replicas: usize,
    /// The name of one of its pods.
    pub pod: String,
    /// The name of its ReplicaSet, if it is a Deployment.
    pub replica_set: String,
    /// Whether it has a Service.
    pub service: bool,
    /// Whether it has a budget.
    pub budget: bool,
    /// Whether it has an Ingress.
    pub ingress: bool,
    /// Whether a custom resource controls it.
    pub owned: bool,
    /// Whether its members vote.
    pub quorum: bool,
    /// Where its pods may be.
    pub places: Places,
}

/// The ServiceAccount of a workload: that of its team, named after the workloads' size.
fn account(app: &str, number: usize) -> String {
    format!("team-{}-{:04}", app.split('-').next().unwrap_or_default(), number / TEAM_WORKLOADS)
}

/// The pool of a node.
fn pool(index: usize) -> &'static str {
    match index {
        _ if index % NODES_PER_NAMESPACE == TIGHT_NODE => manifests::TIGHT,
        _ if index.is_multiple_of(BATCH_NODES) => "batch",
        _ => "general",
    }
}

struct Maker<'a> {
    ids: Ids,
    prng: Prng,
    inventory: Inventory,
    /// How many pods have a node of the pool `tight`.
    tight: usize,
    sink: &'a mut dyn FnMut(Val),
}

/// Makes the cluster, one manifest after the other, and says what it holds.
pub fn generate(size: Size, sink: &mut dyn FnMut(Val)) -> Inventory {
    let prng = Prng::new(size.seed);
    let mut maker = Maker { ids: Ids::default(), prng, inventory: Inventory::default(), tight: 0, sink };
    maker.infrastructure(size.nodes);
    let namespaces = size.nodes.div_ceil(NODES_PER_NAMESPACE).max(1);
    // a small cluster has none
    let daemons = if size.pods >= DAEMON_SHARE * size.nodes { size.nodes } else { 0 };
    for index in 0..namespaces {
        // the first ones take what does not divide
        let share = |of: usize| of / namespaces + usize::from(index < of % namespaces);
        maker.namespace(index, share(size.pods), share(daemons));
    }
    if daemons > 0 {
        maker.daemon_set();
    }
    maker.inventory
}

impl Maker<'_> {
    fn emit(&mut self, manifest: Val) {
        (self.sink)(manifest);
    }

    fn infrastructure(&mut self, nodes: usize) {
        for (index, zone) in ZONES.iter().cycle().take(nodes.max(1)).enumerate() {
            let name = format!("node-{index:05}");
            let node = manifests::node(&mut self.ids, &name, zone, pool(index));
            self.emit(node);
            self.inventory.nodes.push(name);
        }
        let class = manifests::storage_class(&mut self.ids, "fast");
        self.emit(class);
        for (name, value) in [(manifests::CRITICAL, 1_000_000), ("spare", -1_000)] {
            let class = beside::priority_class(&mut self.ids, name, value);
            self.emit(class);
        }
        for kind in CUSTOM_KINDS {
            let definition = manifests::definition(&mut self.ids, kind);
            self.emit(definition);
        }
    }

    fn namespace(&mut self, index: usize, pods: usize, daemons: usize) {
        let ns = format!("load-{index:03}");
        for made in beside::namespace(&mut self.ids, &ns, index, pods) {
            self.emit(made);
        }
        self.inventory.namespaces.push(ns.clone());
        // a small cluster has one too, so that every template has something to judge
        let stateful = (pods * STATEFUL_PERCENT / 100 / MEMBERS).max(usize::from(pods > 2 * MEMBERS));
        let mut left = pods.saturating_sub(daemons);
        for number in 0..stateful {
            self.stateful_set(&ns, number);
            left -= MEMBERS;
        }
        for (size, percent) in DEPLOYMENTS {
            for number in 0..pods * percent / 100 / size {
                if left >= size {
                    self.deployment(&ns, size, number, size);
                    left -= size;
                }
            }
        }
        if left > 0 {
            self.deployment(&ns, left, 0, 1);
        }
        if index == 0 {
            // who checks what is written is one of the workloads
            let backends = self.inventory.deployments.iter().filter(|workload| workload.service).step_by(50).take(3);
            let backends: Vec<String> = backends.map(|workload| workload.name.clone()).collect();
            for name in backends {
                let made = beside::webhook(&mut self.ids, &ns, &name);
                self.emit(made);
                self.inventory.webhooks.push(name);
            }
        }
    }

    /// The ConfigMap and Secret of a workload and the ServiceAccount of its team with its rights, and the spec of its pods,
    /// which need them.
    fn needs(&mut self, ns: &str, app: &str, number: usize, places: Places) -> Val {
        let account = account(app, number);
        if number.is_multiple_of(TEAM_WORKLOADS) {
            let made = manifests::service_account(&mut self.ids, ns, &account);
            self.emit(made);
            let bound = beside::role_binding(&mut self.ids, ns, &account);
            self.emit(bound);
        }
        let config = manifests::config_map(&mut self.ids, ns, app);
        self.emit(config);
        let secret = manifests::secret(&mut self.ids, ns, app);
        self.emit(secret);
        let critical = number % CRITICAL_ONE_IN == 13;
        manifests::pod_spec(app, &Needs { account: &account, config: app, secret: app, places, critical })
    }

    /// A node that pods may be on, of which so many were placed before.
    fn node(&mut self, places: Places, before: usize) -> String {
        let nodes = &self.inventory.nodes;
        let mut at = self.prng.below(nodes.len());
        match places {
            Places::Batch => at -= at % BATCH_NODES,
            Places::Tight => {
                let tight = nodes.len().saturating_sub(TIGHT_NODE).div_ceil(NODES_PER_NAMESPACE).max(1);
                at = TIGHT_NODE + NODES_PER_NAMESPACE * (self.tight % tight);
                self.tight += 1;
            }
            Places::Spread => at = (at - at % ZONES.len()) + before % ZONES.len(),
            Places::Any | Places::Apart => {}
        }
        if places != Places::Tight && pool(at) == manifests::TIGHT {
            // the next one of the same zone
            at += ZONES.len();
        }
        nodes.get(at).or(nodes.first()).cloned().unwrap_or_default()
    }

    /// Where the pods of a Deployment may be.
    fn places(&self, replicas: usize, number: usize) -> Places {
        let is_small = replicas < 10;
        match number % 64 {
            5 if is_small && self.inventory.nodes.len() > TIGHT_NODE => Places::Tight,
            _ => match number % 16 {
                3 => Places::Batch,
                7 => Places::Spread,
                11 if is_small => Places::Apart,
                _ => Places::Any,
            },
        }
    }

    fn deployment(&mut self, ns: &str, replicas: usize, number: usize, size: usize) {
        let app = format!("d{size:03}-{number:04}");
        let (service, budget, owned) = (number.is_multiple_of(2), number.is_multiple_of(4), number % 8 == 1);
        let ingress = service && number.is_multiple_of(10);
        let places = self.places(replicas, number);
        let count = i64::try_from(replicas).unwrap_or(i64::MAX);
        let spec = self.needs(ns, &app, number, places);
        let mut meta = self.ids.meta(ns, &app);
        if owned {
            let owner = manifests::custom(&mut self.ids, "App", ns, &app);
            meta = manifests::controlled(&meta, &owner);
            self.emit(owner);
        }
        let deployment = manifests::deployment(meta, &app, count, &spec);
        let hash = format!("{:09x}", self.prng.bits() & 0xf_ffff_ffff);
        let set = format!("{app}-{hash}");
        let meta = self.ids.meta(ns, &set);
        let owner = manifests::replica_set(&meta, &deployment, &app, &hash, count, &spec);
        self.emit(deployment);
        let labels = Val::object([(APP, Val::str(app.as_str())), ("pod-template-hash", Val::str(hash))]);
        let mut pod = String::new();
        for before in 0..replicas {
            pod = format!("{set}-{:05x}", self.ids.made());
            let node = self.node(places, before);
            let meta = self.ids.meta(ns, &pod);
            let made = manifests::pod(&meta, labels.clone(), &owner, &spec, &node);
            self.emit(made);
        }
        self.emit(owner);
        if service {
            let local = number.is_multiple_of(20);
            let service = manifests::service(&mut self.ids, ns, &app, local);
            self.emit(service);
        }
        if budget {
            let made = manifests::budget(&mut self.ids, ns, &app, Val::str("10%"), (count / 10).max(1));
            self.emit(made);
        }
        if ingress {
            let made = manifests::ingress(&mut self.ids, ns, &app, &format!("{app}.{ns}.example.com"), &app);
            self.emit(made);
            for made in beside::certificate(&mut self.ids, ns, &app) {
                self.emit(made);
            }
        }
        if size > 10 && number % 8 == 2 {
            let made = beside::autoscaler(&mut self.ids, ns, &app, count / 2, 2 * count);
            self.emit(made);
        }
        let (name, ns, quorum) = (app, ns.to_owned(), false);
        let account = account(&name, number);
        let workload = Workload {
            ns,
            name,
            account,
            replicas,
            pod,
            replica_set: set,
            service,
            budget,
            ingress,
            owned,
            quorum,
            places,
        };
        self.inventory.deployments.push(workload);
    }

    /// A pod on every node, as what makes nodes of machines runs.
    fn daemon_set(&mut self) {
        let (ns, name) = ("load-000", "agent");
        let set = beside::daemon_set(&mut self.ids, ns, name, self.inventory.nodes.len());
        let spec = set.at(&["spec", "template", "spec"]).cloned().unwrap_or_default();
        let labels = Val::object([(APP, Val::str(name)), ("controller-revision-hash", Val::str("5d8b"))]);
        for node in self.inventory.nodes.clone() {
            let meta = self.ids.meta(ns, &format!("{name}-{node}"));
            let made = manifests::pod(&meta, labels.clone(), &set, &beside::daemon_spec(&spec, &node), &node);
            self.emit(made);
        }
        self.emit(set);
    }

    fn stateful_set(&mut self, ns: &str, number: usize) {
        let app = format!("s{MEMBERS:03}-{number:04}");
        let (quorum, budget) = (!number.is_multiple_of(4), number.is_multiple_of(2));
        let count = i64::try_from(MEMBERS).unwrap_or(i64::MAX);
        let spec = self.needs(ns, &app, number, Places::Any);
        let meta = self.ids.meta(ns, &app);
        let owner = manifests::stateful_set(meta, &app, count, quorum, &spec);
        for ordinal in 0..MEMBERS {
            let (name, claim) = (format!("{app}-{ordinal}"), format!("data-{app}-{ordinal}"));
            let labels = Val::object([
                (APP, Val::str(app.as_str())),
                ("apps.kubernetes.io/pod-index", Val::str(ordinal.to_string())),
                ("statefulset.kubernetes.io/pod-name", Val::str(name.as_str())),
            ]);
            let node = self.node(Places::Any, ordinal);
            let meta = self.ids.meta(ns, &name);
            let pod = manifests::pod(&meta, labels, &owner, &manifests::member_spec(&spec, &claim), &node);
            let starts = number % 16 == 9 && ordinal + 1 == MEMBERS;
            self.emit(if starts { manifests::not_ready(&pod) } else { pod });
            for made in manifests::claim_and_volume(&mut self.ids, ns, &claim, &app, number.is_multiple_of(5)) {
                self.emit(made);
            }
        }
        self.emit(owner);
        let service = manifests::service(&mut self.ids, ns, &app, false);
        self.emit(service);
        if budget {
            let budget = manifests::budget(&mut self.ids, ns, &app, Val::Int(1), 1);
            self.emit(budget);
        }
        let (pod, ns, replica_set) = (format!("{app}-0"), ns.to_owned(), String::new());
        let (service, ingress, owned) = (true, false, false);
        let workload = Workload {
            ns,
            account: account(&app, number),
            name: app,
            replicas: MEMBERS,
            pod,
            replica_set,
            service,
            budget,
            ingress,
            owned,
            quorum,
            places: Places::Any,
        };
        self.inventory.stateful_sets.push(workload);
    }
}

#[cfg(test)]
mod tests;
