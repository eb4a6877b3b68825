//! What effects work out about one scenario, once for all views of it: changed bodies, new pods, classes of nodes.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::by_body::ByBody;
use super::scheduling::node_classes::NodeCache;
use super::scheduling::template::Template;
use super::steady::{unsteady, unwanted};
use crate::futures::FateKind;
use crate::kinds::Kind;
use crate::object::{Body, Key, Object};
use crate::snapshot::Usage;
use crate::state::State;
use crate::value::{Str, Val};

/// What was worked out so far about one scenario.
#[derive(Debug, Default)]
pub struct Memo {
    /// By fate and by where the body is in memory.
    bodies: RefCell<BTreeMap<(FateKind, *const Body), Changed>>,
    /// By workload and name.
    pods: RefCell<BTreeMap<(Key, Str), Vec<NewPod>>>,
    /// Nodes on which something may happen to a pod whatever its controller does.
    unhealthy: OnceCell<BTreeSet<Str>>,
    /// Classes of nodes.
    pub nodes: NodeCache,
    /// Whether pods are expected to go: it depends on owners and namespace only.
    pub(super) expected_pods: ByBody,
    /// Whether pods have gone once all has settled, of those that no request deletes and that are on nodes that are well.
    pub(super) gone_pods: ByBody,
    /// The nodes on which pods may have gone once all has settled.
    emptied: OnceCell<BTreeSet<Str>>,
    /// What is taken of those of these nodes that were asked for.
    settled: RefCell<BTreeMap<Str, Settled>>,
}

/// What is taken of a node once all has settled, whatever new pods there are.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// By the pods that have not gone.
    pub taken: Usage,
    /// By those of them that are live.
    pub live: Usage,
}

/// A body and what it becomes. It stays where it is in memory as long as it is held.
type Changed = (Arc<Body>, Arc<Body>);

/// A new pod, not placed.
#[derive(Clone, Debug)]
pub struct NewPod {
    template: Val,
    /// As it is made.
    pub unready: Arc<Object>,
    /// Once it is ready.
    pub ready: Arc<Object>,
}

impl NewPod {
    /// The pod, ready or not, on a node.
    pub fn on(&self, node: Str, ready: bool) -> Object {
        let pod = if ready { &self.ready } else { &self.unready };
        Object { node, ..(**pod).clone() }
    }
}

impl Memo {
    /// Whether a pod is on a node of the scenario's state that is not plainly well.
    pub fn on_unhealthy_node(&self, state: &State<'_>, pod: &Object) -> bool {
        let unhealthy = self.unhealthy(state);
        let is_unread = || !pod.node.is_empty() && state.base().unknown().contains("Node");
        (!unhealthy.is_empty() && unhealthy.contains(&pod.node)) || is_unread()
    }

    /// The nodes of the scenario's state that are not plainly well.
    pub fn unhealthy(&self, state: &State<'_>) -> &BTreeSet<Str> {
        self.unhealthy.get_or_init(|| {
            let pools = state.base().pools().iter().filter(|(_, pool)| !pool.is_calm());
            let changed = state.changed_keys(&Kind::new("", "Node")).map(|key| &key.name);
            let missing = state.base().missing_nodes();
            pools.flat_map(|(_, pool)| pool.nodes()).chain(changed).chain(missing).cloned().collect()
        })
    }

    /// What is taken of a node of the scenario's state once all has settled: what is taken of it now, where all of its pods stay;
    /// else as `find` says the first time.
    pub fn settled(&self, state: &State<'_>, node: &Str, now: Usage, find: impl FnOnce() -> Settled) -> Settled {
        let emptied = self.emptied.get_or_init(|| {
            let mut found = unsteady(state, self.unhealthy(state));
            found.extend(unwanted(state));
            found
        });
        if !emptied.contains(node) {
            return Settled { taken: now, live: now };
        }
        if let Some(known) = self.settled.borrow().get(node) {
            return *known;
        }
        let found = find();
        self.settled.borrow_mut().insert(node.clone(), found);
        found
    }

    /// The body of an object in a fate of this kind, the same for all objects of the same body.
    pub fn body(&self, kind: FateKind, object: &Object, change: impl FnOnce(&Object) -> Object) -> Arc<Body> {
        let mut bodies = self.bodies.borrow_mut();
        let made = bodies.entry((kind, Arc::as_ptr(&object.body)));
        made.or_insert_with(|| (object.body.clone(), change(object).body)).1.clone()
    }

    /// A pod of this name that `maker`, which is `owner`, makes from a template, with the labels that it adds.
    pub fn pod(
        &self,
        template: &Template,
        maker: &Key,
        owner: Option<&Object>,
        name: &str,
        labels: &[(&str, &Val)],
    ) -> NewPod {
        let mut pods = self.pods.borrow_mut();
        let known = pods.entry((maker.clone(), name.into())).or_default();
        if let Some(new) = known.iter().find(|new| new.template == template.val) {
            return new.clone();
        }
        let pod = template.pod(maker, owner, name, labels);
        let ready = Arc::new(pod.with_ready(true));
        let new = NewPod { template: template.val.clone(), unready: Arc::new(pod), ready };
        known.push(new.clone());
        new
    }
}
