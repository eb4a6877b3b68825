//! Which spread constraints count otherwise where nodes change: all of them where a domain may come or go, and else those that
//! are over single nodes or choose nodes by name, and those that count pods which may come or go.

use std::collections::BTreeSet;
use std::sync::Arc;

use suture_model::effects::ports_of;
use suture_model::fields::{HOSTNAME, hard_spreads, names_nodes, pod_spec, pod_terms};
use suture_model::object::{Key, Object};
use suture_model::selector::Selector;
use suture_model::value::{Str, Val};

use super::seeds::Seeds;

/// A workload whose pods hard spread constraints place.
pub(super) struct Spreading<'s> {
    pub workload: &'s Arc<Object>,
    /// Whether a node that changes may be another place to it than the [others in its place](has_others).
    pub by_node: bool,
    /// What its constraints count, in its namespace.
    counted: Vec<Selector>,
}

impl<'s> Spreading<'s> {
    /// Those that a cluster has, as every state has them.
    pub fn all(seeds: &Seeds<'s, '_>) -> Vec<Self> {
        let of = |workload: &'s Arc<Object>| {
            let versions = seeds.states().filter_map(|state| state.get(&workload.key)).chain([workload]);
            let mut found = Self { workload, by_node: false, counted: Vec::new() };
            let mut last: Option<&Arc<Object>> = None;
            for version in versions {
                if last.is_some_and(|last| Arc::ptr_eq(&last.body, &version.body)) {
                    continue;
                }
                last = Some(version);
                let Some(spec) = pod_spec(version) else { continue };
                let is_by_node = |spread: &Val| spread.str_at(&["topologyKey"]).is_none_or(|key| **key == *HOSTNAME);
                found.by_node |=
                    names_nodes(spec) || heeds_pods_on_its_node(spec) || hard_spreads(spec).any(is_by_node);
                let selectors = hard_spreads(spec).filter_map(|spread| spread.get("labelSelector"));
                found.counted.extend(selectors.map(Selector::from_label_selector));
            }
            found
        };
        seeds.before.base().spreading().into_iter().map(of).collect()
    }

    /// Whether its constraints may count one of these pods, of which labels and namespaces are known.
    pub fn counts(&self, pods: &BTreeSet<(Str, Val)>) -> bool {
        let counts = |labels: &Val| self.counted.iter().any(|selector| selector.matches(labels));
        pods.iter().any(|(ns, labels)| *ns == self.workload.key.ns && counts(labels))
    }
}

/// Whether it may matter to new pods what else runs on a node: then one node more or less is not the same to them.
fn heeds_pods_on_its_node(spec: &Val) -> bool {
    let terms = ["podAffinity", "podAntiAffinity"].iter().any(|kind| !pod_terms(spec, kind).is_empty());
    terms || ["containers", "initContainers"].iter().any(|part| ports_of(spec, part).next().is_some())
}

/// Whether each node that is touched has others that stay as they are, one more than may fail, and that no pod tells from it but
/// by their names and by what runs there: whichever version of it is in a domain, these are in the same.
pub(super) fn has_others(seeds: &Seeds<'_, '_>, failing: u32) -> bool {
    let base = seeds.before.base();
    let enough = failing as usize + 1;
    let touched: BTreeSet<&Key> = seeds.touched().filter(|key| key.kind.is("Node")).collect();
    let stays = |node: &&Arc<Object>| !touched.contains(&node.key) && !seeds.may_differ(node);
    let calm = base.pools().iter().filter(|(_, pool)| pool.is_calm());
    let others: Vec<Vec<&Arc<Object>>> = calm
        .map(|(_, pool)| {
            let nodes = pool.nodes().iter().filter_map(|name| base.get(&Key::global("Node", name)));
            nodes.filter(stays).take(enough).collect()
        })
        .collect();
    touched.into_iter().all(|key| {
        let stands_in = |node: &Object| seeds.versions(key).iter().all(|version| stands_in(node, version));
        // those of a pool are alike
        let alike = others.iter().filter(|pool| pool.first().is_some_and(|node| stands_in(node)));
        alike.map(Vec::len).sum::<usize>() >= enough
    })
}

/// Whether a node is in every domain that another one is in, for whatever pod may come to that.
fn stands_in(other: &Object, node: &Object) -> bool {
    let is_cordoned = |node: &Object| node.val().at(&["spec", "unschedulable"]) == Some(&Val::Bool(true));
    let taints = node.val().items_at(&["spec", "taints"]);
    other.labels().without_at(&[HOSTNAME]) == node.labels().without_at(&[HOSTNAME])
        && other.val().items_at(&["spec", "taints"]).iter().all(|taint| taints.contains(taint))
        && (!is_cordoned(other) || is_cordoned(node))
}
