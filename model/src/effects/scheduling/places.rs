//! Where new pods may go: any node that their hard constraints admit.
//!
//! Nodes that are not there yet are not looked at: `LimitLabel::NoNodeAdmits` says where that matters.

use std::sync::Arc;

use super::classifier::classes;
use super::node_classes::{AntiAffinityPresence, Demand};
use super::plugins::PLUGINS;
use super::spread::{SPREAD_DOMAINS_MAX, is_by_node};
use super::template::Template;
use crate::effects::builder::{Builder, View};
use crate::effects::survival::Survivals;
use crate::futures::Place;
use crate::node_names::NodeNames;
use crate::object::Object;
use crate::value::Str;

/// More pods than these are not counted beside new ones on a node that has room for all that are new.
const BESIDE_MAX: i64 = 8;

/// Works out where pods of the registered templates may be placed beside these; `most` bounds how many there may be.
pub fn place<'p>(builder: &mut Builder<'_, '_>, pods: impl IntoIterator<Item = &'p Arc<Object>>, most: i64) {
    if !builder.wants_places() || builder.templates.is_empty() {
        return;
    }
    if builder.view.coarse {
        builder.group.places = vec![Place { nodes: NodeNames::default(), down: false }];
        if !builder.view.outage.nodes.is_empty() {
            // a pod that was ready when its node failed has counted for its controller
            builder.group.places.push(Place { nodes: NodeNames::default(), down: true });
        }
        let places = builder.group.places.len();
        builder.templates.iter_mut().for_each(|t| t.anywhere(places));
        return;
    }
    let pods: Vec<&Arc<Object>> = pods.into_iter().collect();
    builder.caused_by_request = builder.is_touched(&pods);
    // where few are there, it is looked at whether there is room for one more
    let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let most = if present <= BESIDE_MAX { most.saturating_add(present) } else { most };
    builder.group.quiescent = builder.after() && builder.caused_by_request;
    builder.group.caused_by_request = builder.caused_by_request;
    let demand = Demand {
        anti_affinity: AntiAffinityPresence::of(pods.into_iter()),
        most,
        quiescent: builder.group.quiescent,
        caused_by_request: builder.caused_by_request,
    };
    builder.group.places = places(&builder.survivals, &builder.name.ns, &mut builder.templates, demand, builder.view);
}

/// The places of a scenario for these templates, and what each template finds there.
fn places(
    survivals: &Survivals<'_, '_>,
    ns: &Str,
    templates: &mut [Template],
    demand: Demand,
    view: &View,
) -> Vec<Place> {
    let classes = classes(survivals, ns, templates, demand);
    let number: usize = classes.nodes().map(NodeNames::len).sum();
    // a spread over nodes counts pods on each
    let merge_equivalent_nodes =
        view.merge_equivalent_nodes && !(number <= SPREAD_DOMAINS_MAX && templates.iter().any(is_by_node));
    let mut found: Vec<(Place, usize)> = Vec::new();
    for (at, (_, nodes)) in classes.classes.iter().enumerate() {
        let down: Arc<[Str]> = view.outage.nodes.iter().filter(|n| nodes.contains(n)).cloned().collect();
        let up = nodes.but(&*down, Vec::new());
        for (nodes, down) in [(up, false), (NodeNames::of(down), true)] {
            if merge_equivalent_nodes && !nodes.is_empty() {
                found.push((Place { nodes, down }, at));
            } else {
                let each = nodes.iter().map(|node| Place { nodes: NodeNames::one(node.clone()), down });
                found.extend(each.map(|place| (place, at)));
            }
        }
    }
    // none is in two places
    found.sort_by(|a, b| a.0.nodes.first().cmp(&b.0.nodes.first()));
    for (number, template) in templates.iter_mut().enumerate() {
        let signatures = found.iter().filter_map(|(_, at)| classes.classes.get(*at).map(|(s, _)| s));
        template.admitted = signatures.clone().map(|s| s.admitted.get(number).copied().unwrap_or(false)).collect();
        template.room = signatures.map(|s| s.room.get(number).copied().unwrap_or_default()).collect();
    }
    found.into_iter().map(|(place, _)| place).collect()
}

/// Whether a node takes a pod of a template for certain, beside these pods on it.
pub fn is_sure_to_fit(own: &Template, node: &Object, others: &[&Arc<Object>]) -> bool {
    PLUGINS.iter().all(|plugin| plugin.is_sure(own, node, others))
}
