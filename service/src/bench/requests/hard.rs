//! Requests about what stands beside the workloads, and those that take most to decide.

use suture_model::change::Request;
use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::value::Val;

use super::{Drawing, Touch, object};
use crate::bench::cluster::Workload;
use crate::bench::manifests::{self, Ids, POOL, Places, TIGHT, ZONE};

impl Drawing<'_, '_> {
    pub(super) fn in_namespace(&mut self, group: &str, kind: &str, name: &str) -> Option<Key> {
        let ns = self.prng.pick(&self.inventory.namespaces)?;
        Some(Key::new(Kind::new(group, kind), ns, name))
    }

    /// A ResourceQuota that allows for as many pods as a namespace has, and some more or fewer.
    pub(super) fn lower_quota(&mut self) -> Option<Request> {
        let quota = |ns: &String| Key::of("ResourceQuota", ns, "quota");
        let with: Vec<&String> =
            self.inventory.namespaces.iter().filter(|ns| self.state.get(&quota(ns)).is_some()).collect();
        let ns = (*self.prng.pick(&with)?).clone();
        let here = self.inventory.deployments.iter().chain(&self.inventory.stateful_sets).filter(|w| w.ns == ns);
        let pods: usize = here.map(|workload| workload.replicas).sum();
        let most = pods * (80 + self.prng.below(60)) / 100;
        let hard = Val::object([("pods", Val::str(most.to_string()))]);
        self.patch(quota(&ns), &Val::object([("spec", Val::object([("hard", hard)]))]))
    }

    /// More replicas, another image, other constraints for a Deployment whose pods spread over zones.
    pub(super) fn placed(&mut self, touch: Touch) -> Option<Request> {
        let places = if touch == Touch::RolloutSpread { Places::Spread } else { Places::Tight };
        let of: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.places == places).collect();
        let workload = self.prng.pick(&of)?;
        let key = Key::of("Deployment", &workload.ns, &workload.name);
        let replicas =
            Val::Int(i64::try_from(1 + workload.replicas + self.prng.below(3 * workload.replicas)).unwrap_or(1));
        let spec = match touch {
            Touch::GrowTight => Val::object([("replicas", replicas)]),
            Touch::RolloutSpread => {
                let restarted = manifests::one("kubectl.kubernetes.io/restartedAt", "2026-02-01T00:00:00Z");
                let template = Val::object([("metadata", Val::object([("annotations", restarted)]))]);
                Val::object([("replicas", replicas), ("template", template)])
            }
            _ => {
                let spreads = [ZONE, "kubernetes.io/hostname"].map(|by| manifests::spread(by, &workload.name));
                let spec = Val::object([("topologySpreadConstraints", Val::list(spreads.to_vec()))]);
                let cpu = *self.prng.pick(&["300m", "600m", "700m", "1"])?;
                let spec = spec.with("containers", self.asking(&key, cpu)?);
                Val::object([("template", Val::object([("spec", spec)]))])
            }
        };
        self.patch(key, &Val::object([("spec", spec)]))
    }

    pub(super) fn drain_tight(&mut self) -> Option<Request> {
        let is_tight = |name: &&String| {
            let node = self.state.get(&Key::of("Node", "", name));
            node.and_then(|node| node.label(POOL)).is_some_and(|pool| &**pool == TIGHT)
        };
        let nodes: Vec<&String> = self.inventory.nodes.iter().filter(is_tight).collect();
        let key = Key::of("Node", "", self.prng.pick(&nodes)?);
        if self.prng.one_in(2) {
            return Some(self.delete(key));
        }
        self.patch(key, &Val::object([("spec", Val::object([("unschedulable", Val::Bool(true))]))]))
    }

    pub(super) fn rollout_daemon_set(&mut self) -> Option<Request> {
        let key = Key::of("DaemonSet", self.inventory.namespaces.first()?, "agent");
        let cpu = *self.prng.pick(&["100m", "150m", "1500m"])?;
        let restarted = manifests::one("kubectl.kubernetes.io/restartedAt", "2026-02-01T00:00:00Z");
        let template = Val::object([
            ("metadata", Val::object([("annotations", restarted)])),
            ("spec", Val::object([("containers", self.asking(&key, cpu)?)])),
        ]);
        self.patch(key, &Val::object([("spec", Val::object([("template", template)]))]))
    }

    /// The containers of a workload, asking for so much cpu.
    pub(super) fn asking(&self, key: &Key, cpu: &str) -> Option<Val> {
        let containers = self.state.get(key)?.val().items_at(&["spec", "template", "spec", "containers"]).iter();
        let asking = containers.map(|c| c.with_at(&["resources", "requests", "cpu"], Val::str(cpu)));
        Some(Val::list(asking.collect()))
    }

    pub(super) fn webhook(&mut self, touch: Touch) -> Option<Request> {
        let name = self.prng.pick(&self.inventory.webhooks)?;
        if touch == Touch::StopBackend {
            let key = Key::of("Deployment", self.inventory.namespaces.first()?, name);
            return Some(Request::scale(super::user(), self.state, key, 0));
        }
        let key = Key::of("ValidatingWebhookConfiguration", "", name);
        let mut webhooks = self.state.get(&key)?.val().items_at(&["webhooks"]).to_vec();
        webhooks.iter_mut().for_each(|webhook| *webhook = webhook.without_at(&["namespaceSelector"]));
        self.patch(key, &Val::object([("webhooks", Val::list(webhooks))]))
    }

    pub(super) fn edit_port(&mut self) -> Option<Request> {
        let with: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.service).collect();
        let service = self.prng.pick(&with)?;
        let target = if self.prng.one_in(2) { Val::str("http") } else { Val::Int(8080) };
        let port = Val::object([("port", Val::Int(80)), ("protocol", Val::str("TCP")), ("targetPort", target)]);
        let key = Key::of("Service", &service.ns, &service.name);
        self.patch(key, &Val::object([("spec", Val::object([("ports", Val::list(vec![port]))]))]))
    }

    pub(super) fn edit_cron_job(&mut self) -> Option<Request> {
        let key = self.in_namespace("batch", "CronJob", "nightly-0")?;
        let schedule = *self.prng.pick(&["0 * * * *", "* * * * *", "0 4 * * *"])?;
        self.patch(key, &Val::object([("spec", Val::object([("schedule", Val::str(schedule))]))]))
    }

    pub(super) fn create_certificate(&mut self) -> Option<Request> {
        let with: Vec<&Workload> = self.inventory.deployments.iter().filter(|w| w.ingress).collect();
        let taken = self.prng.pick(&with)?;
        let secret = if self.prng.one_in(2) { "bench-tls".to_owned() } else { format!("{}-tls", taken.name) };
        let issuer = Val::object([("kind", Val::str("Issuer")), ("name", Val::str("ca"))]);
        let spec = Val::object([("secretName", Val::str(secret)), ("issuerRef", issuer)]);
        self.create(&object("cert-manager.io/v1", "Certificate", &taken.ns, spec))
    }

    pub(super) fn create_priority(&mut self) -> Option<Request> {
        let value = *self.prng.pick(&[500, 2_000_000])?;
        let class = crate::bench::beside::priority_class(&mut Ids::default(), "bench", value);
        let class = class.with("globalDefault", Val::Bool(self.prng.one_in(2)));
        self.create(&class)
    }
}
