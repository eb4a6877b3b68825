//! Requests that touch the generated cluster: for each template those that could break it, each drawn at random.

use suture_model::change::{Preconditions, Request, User};
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::state::State;
use suture_model::value::{Str, Val};

use super::beside;
use super::cluster::{Inventory, Workload};
use super::manifests::{self, APP, GROUP, Ids, POOL, ZONE};
use super::prng::Prng;

mod hard;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    /// A Deployment loses some of its replicas, or all.
    ScaleDeployment,
    /// A Deployment gets a new image.
    RolloutDeployment,
    /// A Deployment selects another node pool.
    MoveDeployment,
    /// A Deployment's pod is deleted.
    DeletePod,
    /// A Deployment's pod is evicted.
    EvictPod,
    /// A Deployment's ReplicaSet is deleted.
    DeleteReplicaSet,
    /// A Deployment is deleted.
    DeleteDeployment,
    /// A StatefulSet loses some of its replicas, or all.
    ScaleStatefulSet,
    /// A StatefulSet gets a new image.
    RolloutStatefulSet,
    /// A StatefulSet is deleted.
    DeleteStatefulSet,
    /// A member is deleted.
    DeleteMember,
    /// A member is evicted.
    EvictMember,
    /// A claim is deleted.
    DeleteClaim,
    /// A volume is deleted.
    DeleteVolume,
    /// A Service is deleted.
    DeleteService,
    /// A Service selects other pods.
    EditService,
    /// A ConfigMap is deleted.
    DeleteConfigMap,
    /// A Secret is deleted.
    DeleteSecret,
    /// A ServiceAccount is deleted.
    DeleteAccount,
    /// A node is cordoned.
    CordonNode,
    /// A node gets a NoExecute taint.
    TaintNode,
    /// A node loses the label that Deployments select by.
    UnlabelNode,
    /// A node is deleted.
    DeleteNode,
    /// A namespace is deleted.
    DeleteNamespace,
    /// A definition is deleted.
    DeleteDefinition,
    /// A custom resource is deleted.
    DeleteCustom,
    /// An Ingress is made, on a free host or on one that is taken.
    CreateIngress,
    /// A budget is made.
    CreateBudget,
    /// An object is made that names an owner, which exists or does not.
    CreateOwned,
    /// A Deployment gets more replicas, up to three times as many.
    GrowDeployment,
    /// A Deployment's pods get a class of a high priority, and ask for more.
    RaiseDeployment,
    /// A Deployment's pods spread over zones and nodes, and ask for most of a node.
    SpreadDeployment,
    /// An autoscaler of a Deployment is made.
    CreateAutoscaler,
    /// A ResourceQuota is made.
    CreateQuota,
    /// A ResourceQuota allows for less: about as much as is asked for.
    LowerQuota,
    /// A Deployment of the pool that is nearly full gets more replicas, spread over zones.
    GrowTight,
    /// Its pods spread over zones and nodes, and ask for more.
    SpreadTight,
    /// A node of that pool is cordoned, or deleted.
    DrainTight,
    /// A Deployment whose pods spread over zones gets a new image and other replicas at once.
    RolloutSpread,
    /// A DaemonSet gets a new image, or asks for more.
    RolloutDaemonSet,
    /// What lets an account read is deleted.
    DeleteBinding,
    /// A webhook is asked about every namespace.
    WidenWebhook,
    /// The Deployment that answers a webhook goes to 0.
    StopBackend,
    /// A Service names a port of its pods.
    EditPort,
    /// A CronJob runs more often.
    EditCronJob,
    /// A certificate is made, for a Secret of its own or one that is written already.
    CreateCertificate,
    /// An issuer is deleted.
    DeleteIssuer,
    /// The last finalizer of what is being deleted is taken off.
    DropFinalizer,
    /// A PriorityClass is made.
    CreatePriority,
}

use Touch::{
    CordonNode, CreateAutoscaler, CreateBudget, CreateCertificate, CreateIngress, CreateOwned, CreatePriority,
    CreateQuota, DeleteAccount, DeleteBinding, DeleteClaim, DeleteConfigMap, DeleteCustom, DeleteDefinition,
    DeleteDeployment, DeleteIssuer, DeleteMember, DeleteNamespace, DeleteNode, DeletePod, DeleteReplicaSet,
    DeleteSecret, DeleteService, DeleteStatefulSet, DeleteVolume, DrainTight, DropFinalizer, EditCronJob, EditPort,
    EditService, EvictMember, EvictPod, GrowDeployment, GrowTight, LowerQuota, MoveDeployment, RaiseDeployment,
    RolloutDaemonSet, RolloutDeployment, RolloutSpread, RolloutStatefulSet, ScaleDeployment, ScaleStatefulSet,
    SpreadDeployment, SpreadTight, StopBackend, TaintNode, UnlabelNode, WidenWebhook,
};

/// Every kind of request; deletions of whole namespaces are drawn rarely ([`draw`]).
pub const ALL: &[Touch] = &[
    ScaleDeployment,
    RolloutDeployment,
    MoveDeployment,
    DeletePod,
    EvictPod,
    DeleteReplicaSet,
    DeleteDeployment,
    ScaleStatefulSet,
    RolloutStatefulSet,
    DeleteStatefulSet,
    DeleteMember,
    EvictMember,
    DeleteClaim,
    DeleteVolume,
    DeleteService,
    EditService,
    DeleteConfigMap,
    DeleteSecret,
    DeleteAccount,
    CordonNode,
    TaintNode,
    UnlabelNode,
    DeleteNode,
    DeleteNamespace,
    DeleteDefinition,
    DeleteCustom,
    CreateIngress,
    CreateBudget,
    CreateOwned,
    GrowDeployment,
    RaiseDeployment,
    SpreadDeployment,
    CreateAutoscaler,
    CreateQuota,
    LowerQuota,
    GrowTight,
    SpreadTight,
    DrainTight,
    RolloutSpread,
    RolloutDaemonSet,
    DeleteBinding,
    WidenWebhook,
    StopBackend,
    EditPort,
    EditCronJob,
    CreateCertificate,
    DeleteIssuer,
    DropFinalizer,
    CreatePriority,
];

/// Those that take most to decide: pods that spread beside tight room, that preempt others, quotas beside autoscalers.
pub const HARD: &[Touch] = &[
    GrowTight,
    SpreadTight,
    DrainTight,
    RolloutSpread,
    RaiseDeployment,
    SpreadDeployment,
    CreateAutoscaler,
    LowerQuota,
    GrowDeployment,
];

/// What can break which templates.
const TOUCHING: &[(&[&str], &[Touch])] = &[
    (
        &["service-keeps-endpoints", "service-survives-fault"],
        &[
            ScaleDeployment,
            RolloutDeployment,
            MoveDeployment,
            DeletePod,
            EvictPod,
            DeleteReplicaSet,
            DeleteDeployment,
            ScaleStatefulSet,
            RolloutStatefulSet,
            EditService,
            TaintNode,
            DeleteNode,
            DeleteNamespace,
        ],
    ),
    (&["serving-service-kept"], &[DeleteService, DeleteNamespace, DeleteCustom]),
    (
        &["selector-keeps-matches"],
        &[
            ScaleDeployment,
            DeleteReplicaSet,
            DeleteDeployment,
            ScaleStatefulSet,
            DeletePod,
            EditService,
            MoveDeployment,
            UnlabelNode,
            DeleteNode,
            CordonNode,
        ],
    ),
    (
        &["quorum-kept", "quorum-survives-fault"],
        &[ScaleStatefulSet, RolloutStatefulSet, DeleteMember, EvictMember, DeleteStatefulSet, TaintNode, DeleteNode],
    ),
    (
        &["volume-in-use-kept", "data-recoverable"],
        &[DeleteClaim, DeleteVolume, DeleteStatefulSet, ScaleStatefulSet, DeleteNamespace],
    ),
    (
        &["references-resolve"],
        &[DeleteConfigMap, DeleteSecret, DeleteAccount, DeleteClaim, DeleteService, RolloutDeployment, DeleteNamespace],
    ),
    (&["owner-references-resolve"], &[CreateOwned, DeleteCustom, DeleteDeployment, DeleteReplicaSet, DeleteNamespace]),
    (&["live-child-kept"], &[DeleteReplicaSet, DeleteDeployment, DeleteMember, DeleteCustom, DeleteNamespace]),
    (&["crd-without-instances"], &[DeleteDefinition, DeleteCustom]),
    (&["serving-namespace-kept"], &[DeleteNamespace, DeleteService, DeleteDeployment]),
    (&["pdb-allows-disruption"], &[CreateBudget, ScaleDeployment, ScaleStatefulSet, DeleteDeployment]),
    (&["unique-host"], &[CreateIngress]),
    (
        &["workload-schedulable"],
        &[
            GrowDeployment,
            SpreadDeployment,
            MoveDeployment,
            RolloutDeployment,
            CreateAutoscaler,
            EvictPod,
            DeletePod,
            ScaleStatefulSet,
            CordonNode,
            TaintNode,
            UnlabelNode,
            DeleteNode,
            GrowTight,
            SpreadTight,
            DrainTight,
            RolloutSpread,
        ],
    ),
    (
        &["rollout-can-progress"],
        &[
            RolloutDeployment,
            MoveDeployment,
            SpreadDeployment,
            RolloutStatefulSet,
            SpreadTight,
            RolloutSpread,
            RolloutDaemonSet,
        ],
    ),
    (
        &["critical-not-preempted"],
        &[
            RaiseDeployment,
            GrowDeployment,
            EvictPod,
            DeletePod,
            DeleteReplicaSet,
            TaintNode,
            DeleteNode,
            RolloutDaemonSet,
            CreatePriority,
        ],
    ),
    (
        &["quota-fits", "tenant-lease-kept"],
        &[CreateQuota, LowerQuota, GrowDeployment, GrowTight, CreateAutoscaler, SpreadDeployment],
    ),
    (&["rights-kept"], &[DeleteBinding, DeleteAccount, RolloutDeployment, DeleteNamespace]),
    (&["webhook-backend-kept", "webhook-not-self-blocking"], &[WidenWebhook, StopBackend, DeleteService]),
    (&["ports-resolve"], &[EditPort, EditService, RolloutDeployment, DeleteService]),
    (&["batch-bounded"], &[EditCronJob]),
    (&["single-writer"], &[CreateCertificate, DeleteIssuer, DeleteSecret]),
    (&["finalizer-respected"], &[DropFinalizer]),
    (&["critical-workload-kept"], &[RolloutDaemonSet, TaintNode, DeleteNode]),
    (&["autoscaled-replicas-kept", "idle-workload-has-activator"], &[CreateAutoscaler, ScaleDeployment]),
];

/// What can break a template; everything, for a template that is not listed.
pub fn touching(template: &str) -> &'static [Touch] {
    TOUCHING.iter().find(|(templates, _)| templates.contains(&template)).map_or(ALL, |(_, touches)| touches)
}

/// Deletions of whole namespaces are one of so many when others can be drawn: they are rare, and take thousands of
/// objects with them.
const NAMESPACES_ONE_IN: usize = 50;

/// Draws one of these requests; none when the cluster has nothing of the kind.
pub fn draw(touches: &[Touch], state: &State, inventory: &Inventory, prng: &mut Prng) -> Option<(Touch, Request)> {
    let mut touch = *prng.pick(touches)?;
    while touch == DeleteNamespace && touches.len() > 1 && !prng.one_in(NAMESPACES_ONE_IN) {
        touch = *prng.pick(touches)?;
    }
    Drawing { state, inventory, prng }.request(touch).map(|request| (touch, request))
}

struct Drawing<'a, 's> {
    state: &'a State<'s>,
    inventory: &'a Inventory,
    prng: &'a mut Prng,
}

impl Drawing<'_, '_> {
    fn request(&mut self, touch: Touch) -> Option<Request> {
        match touch {
            ScaleDeployment => self.scale("Deployment"),
            RolloutDeployment | MoveDeployment => self.rollout("Deployment", touch == MoveDeployment),
            DeletePod | EvictPod => self.pod("Deployment", touch == EvictPod),
            DeleteReplicaSet => self.delete_of("Deployment", "ReplicaSet", |w| w.replica_set.clone()),
            DeleteDeployment => self.delete_of("Deployment", "Deployment", |w| w.name.clone()),
            ScaleStatefulSet => self.scale("StatefulSet"),
            RolloutStatefulSet => self.rollout("StatefulSet", false),
            DeleteStatefulSet => self.delete_of("StatefulSet", "StatefulSet", |w| w.name.clone()),
            DeleteMember | EvictMember => self.pod("StatefulSet", touch == EvictMember),
            DeleteClaim => self.delete_of("StatefulSet", "PersistentVolumeClaim", |w| format!("data-{}", w.pod)),
            DeleteVolume => {
                let (ns, pod) = self.workload("StatefulSet").map(|w| (w.ns.clone(), w.pod.clone()))?;
                Some(self.delete(Key::of("PersistentVolume", "", &format!("pvc-{ns}-data-{pod}"))))
            }
            DeleteService => self.delete_of("Deployment", "Service", |w| w.name.clone()),
            EditService => self.edit_service(),
            DeleteConfigMap => self.delete_of("Deployment", "ConfigMap", |w| w.name.clone()),
            DeleteSecret => self.delete_of("Deployment", "Secret", |w| w.name.clone()),
            DeleteAccount => self.delete_of("Deployment", "ServiceAccount", |w| w.account.clone()),
            CordonNode | TaintNode | UnlabelNode => self.edit_node(touch),
            DeleteNode => {
                let node = self.prng.pick(&self.inventory.nodes)?;
                Some(self.delete(Key::of("Node", "", node)))
            }
            DeleteNamespace => {
                let ns = self.prng.pick(&self.inventory.namespaces)?;
                Some(self.delete(Key::of("Namespace", "", ns)))
            }
            DeleteDefinition => {
                let kind = *self.prng.pick(&super::cluster::CUSTOM_KINDS)?;
                let name = format!("{}s.{GROUP}", kind.to_lowercase());
                Some(self.delete(Key::of("CustomResourceDefinition", "", &name)))
            }
            DeleteCustom => {
                let owned: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.owned).collect();
                let workload = self.prng.pick(&owned)?;
                Some(self.delete(Key::new(Kind::new(GROUP, "App"), &workload.ns, &workload.name)))
            }
            CreateIngress => self.create_ingress(),
            CreateBudget => self.create_budget(),
            CreateOwned => self.create_owned(),
            GrowDeployment => self.grow(),
            RaiseDeployment | SpreadDeployment => self.ask_more(touch),
            CreateAutoscaler => self.create_autoscaler(),
            CreateQuota => self.create_quota(),
            LowerQuota => self.lower_quota(),
            GrowTight | SpreadTight | RolloutSpread => self.placed(touch),
            DrainTight => self.drain_tight(),
            RolloutDaemonSet => self.rollout_daemon_set(),
            DeleteBinding => self.delete_of("Deployment", "RoleBinding", |w| w.account.clone()),
            WidenWebhook | StopBackend => self.webhook(touch),
            EditPort => self.edit_port(),
            EditCronJob => self.edit_cron_job(),
            CreateCertificate => self.create_certificate(),
            DeleteIssuer => self.in_namespace("cert-manager.io", "Issuer", "ca").map(|key| self.delete(key)),
            DropFinalizer => {
                let key = self.in_namespace("cert-manager.io", "Certificate", "leaving")?;
                self.patch(key, &Val::object([("metadata", Val::object([("finalizers", Val::Null)]))]))
            }
            CreatePriority => self.create_priority(),
        }
    }

    /// A Deployment of any size alike (most are small), or a StatefulSet.
    fn workload(&mut self, kind: &str) -> Option<&'_ Workload> {
        if kind == "StatefulSet" {
            return self.prng.pick(&self.inventory.stateful_sets);
        }
        let size = *self.prng.pick(&[250, 30, 5])?;
        let of_size: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.replicas == size).collect();
        match self.prng.pick(&of_size) {
            Some(found) => Some(found),
            None => self.prng.pick(&self.inventory.deployments),
        }
    }

    fn key_of(&mut self, of: &str, kind: &str, name: impl Fn(&Workload) -> String) -> Option<(Key, usize)> {
        let workload = self.workload(of)?;
        Some((Key::of(kind, &workload.ns, &name(workload)), workload.replicas))
    }

    fn delete(&self, key: Key) -> Request {
        Request::delete(user(), self.state, key, None, Preconditions::default())
    }

    fn delete_of(&mut self, of: &str, kind: &str, name: impl Fn(&Workload) -> String) -> Option<Request> {
        let (key, _) = self.key_of(of, kind, name)?;
        Some(self.delete(key))
    }

    fn scale(&mut self, kind: &str) -> Option<Request> {
        let (key, replicas) = self.key_of(kind, kind, |w| w.name.clone())?;
        let drawn = self.prng.below(replicas + 1);
        Some(Request::scale(user(), self.state, key, i64::try_from(drawn).unwrap_or(0)))
    }

    fn grow(&mut self) -> Option<Request> {
        let (key, replicas) = self.key_of("Deployment", "Deployment", |w| w.name.clone())?;
        let more = replicas + 1 + self.prng.below(2 * replicas + 1);
        Some(Request::scale(user(), self.state, key, i64::try_from(more).unwrap_or(0)))
    }

    fn ask_more(&mut self, touch: Touch) -> Option<Request> {
        let (key, _) = self.key_of("Deployment", "Deployment", |w| w.name.clone())?;
        let spec = if touch == RaiseDeployment {
            Val::object([("priorityClassName", Val::str("system-cluster-critical"))])
        } else {
            let spreads = [ZONE, "kubernetes.io/hostname"].map(|by| manifests::spread(by, &key.name));
            Val::object([("topologySpreadConstraints", Val::list(spreads.to_vec()))])
        };
        let cpu = *self.prng.pick(&["500m", "2", "6", "14"])?;
        let spec = spec.with("containers", self.asking(&key, cpu)?);
        self.patch(key, &Val::object([("spec", Val::object([("template", Val::object([("spec", spec)]))]))]))
    }

    fn create_autoscaler(&mut self) -> Option<Request> {
        let (key, replicas) = self.key_of("Deployment", "Deployment", |w| w.name.clone())?;
        let most = i64::try_from(replicas + self.prng.below(3 * replicas + 1)).unwrap_or(1);
        let spec = beside::autoscaler_spec(&key.name, 1, most);
        self.create(&object("autoscaling/v2", "HorizontalPodAutoscaler", &key.ns, spec))
    }

    fn create_quota(&mut self) -> Option<Request> {
        let ns = self.prng.pick(&self.inventory.namespaces)?.clone();
        let pods = *self.prng.pick(&["10", "1000", "100000"])?;
        let hard = Val::object([("pods", Val::str(pods)), ("requests.cpu", Val::str("4000"))]);
        self.create(&object("v1", "ResourceQuota", &ns, Val::object([("hard", hard)])))
    }

    fn pod(&mut self, of: &str, evict: bool) -> Option<Request> {
        let (key, _) = self.key_of(of, "Pod", |w| w.pod.clone())?;
        Some(if evict { Request::evict(user(), key) } else { self.delete(key) })
    }

    fn patch(&self, key: Key, patch: &Val) -> Option<Request> {
        Request::patch(user(), self.state, key, patch, "").ok()
    }

    fn rollout(&mut self, kind: &str, moves: bool) -> Option<Request> {
        let (key, _) = self.key_of(kind, kind, |w| w.name.clone())?;
        let template = if moves {
            Val::object([("spec", Val::object([("nodeSelector", manifests::one(POOL, "batch"))]))])
        } else {
            let restarted = manifests::one("kubectl.kubernetes.io/restartedAt", "2026-02-01T00:00:00Z");
            Val::object([("metadata", Val::object([("annotations", restarted)]))])
        };
        self.patch(key, &Val::object([("spec", Val::object([("template", template)]))]))
    }

    fn edit_service(&mut self) -> Option<Request> {
        let with: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.service).collect();
        let service = self.prng.pick(&with)?;
        let other = self.prng.pick(&self.inventory.deployments)?;
        let key = Key::of("Service", &service.ns, &service.name);
        self.patch(key, &Val::object([("spec", Val::object([("selector", manifests::one(APP, other.name.as_str()))]))]))
    }

    fn edit_node(&mut self, touch: Touch) -> Option<Request> {
        let batch: Vec<&String> = self.inventory.nodes.iter().step_by(10).collect();
        let node = match touch {
            UnlabelNode => (*self.prng.pick(&batch)?).clone(),
            _ => self.prng.pick(&self.inventory.nodes)?.clone(),
        };
        let taint = Val::object([("key", Val::str("maintenance")), ("effect", Val::str("NoExecute"))]);
        let patch = match touch {
            CordonNode => Val::object([("spec", Val::object([("unschedulable", Val::Bool(true))]))]),
            TaintNode => Val::object([("spec", Val::object([("taints", Val::list(vec![taint]))]))]),
            _ => Val::object([("metadata", Val::object([("labels", Val::object([(POOL, Val::Null)]))]))]),
        };
        self.patch(Key::of("Node", "", &node), &patch)
    }

    fn create(&self, manifest: &Val) -> Option<Request> {
        Request::create(user(), self.state, &unnamed(manifest)).ok()
    }

    fn create_ingress(&mut self) -> Option<Request> {
        let with: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.ingress).collect();
        let taken = self.prng.pick(&with)?;
        let free = self.prng.one_in(2);
        let ns = self.prng.pick(&self.inventory.namespaces)?;
        let host = if free { "new.example.com".to_owned() } else { format!("{}.{}.example.com", taken.name, taken.ns) };
        self.create(&manifests::ingress(&mut Ids::default(), ns, "bench", &host, &taken.name))
    }

    fn create_budget(&mut self) -> Option<Request> {
        let most = *self.prng.pick(&["0%", "1%", "10%", "50%"])?;
        let (key, _) = self.key_of("Deployment", "Deployment", |w| w.name.clone())?;
        let budget = manifests::budget(&mut Ids::default(), &key.ns, &key.name, Val::str(most), 0);
        self.create(&budget.with_at(&["metadata", "name"], Val::str("bench")))
    }

    fn create_owned(&mut self) -> Option<Request> {
        let exists = self.prng.one_in(2);
        let (key, _) = self.key_of("Deployment", "Deployment", |w| w.name.clone())?;
        let owner = self.state.get(&key)?.to_val();
        let owner = if exists { owner } else { owner.with_at(&["metadata", "uid"], Val::str("gone")) };
        let made = manifests::config_map(&mut Ids::default(), &key.ns, "bench");
        let meta = manifests::controlled(made.get("metadata")?, &owner);
        self.create(&made.with("metadata", meta))
    }
}

fn object(api_version: &str, kind: &str, ns: &str, spec: Val) -> Val {
    let meta = [("name", "bench"), ("namespace", ns)].map(|(field, value)| (field, Val::str(value)));
    let named = [("apiVersion", Val::str(api_version)), ("kind", Val::str(kind)), ("metadata", Val::object(meta))];
    Val::object(named).with("spec", spec)
}

fn user() -> User {
    User::named("system:serviceaccount:bench:operator")
}

/// The manifest without what only an object in the cluster has.
fn unnamed(manifest: &Val) -> Val {
    let fields: [Str; 3] = ["uid".into(), "resourceVersion".into(), "creationTimestamp".into()];
    fields.iter().fold(manifest.clone(), |manifest, field| manifest.without_at(&["metadata", field]))
}
