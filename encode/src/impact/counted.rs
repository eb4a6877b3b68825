//! Where workloads may want another number of pods: the inverse of counting those whose pods a selector means.

use std::collections::BTreeSet;

use suture_model::kinds::Kind;
use suture_model::navigate;
use suture_model::value::Str;

use super::pods::Touch;
use super::seeds::Seeds;

/// The namespaces in which a change of nodes and pods alone changes how many pods workloads want: of those that objects of a kind
/// select, if it is asked about these. Nodes change how many a DaemonSet wants; no workload wants more or fewer for its pods.
pub(super) fn by_nodes_and_pods(seeds: &Seeds<'_, '_>, touch: &Touch, selecting: Option<&Str>) -> BTreeSet<Str> {
    let state = seeds.before;
    let sets = touch.controllers.iter().filter(|key| key.kind.is("DaemonSet")).filter_map(|key| state.get(key));
    let counted = sets.filter(|set| {
        let Some(kind) = selecting else { return true };
        let (kinds, labels) = (Kind::builtin(kind), navigate::template_labels(state, set).unwrap_or_default());
        let selecting = state.selecting_any(kinds.as_slice(), &set.key.ns, &labels).into_iter();
        selecting.filter_map(|object| navigate::selector_of(state, object)).any(|selector| selector.matches(&labels))
    });
    counted.map(|set| set.key.ns.clone()).collect()
}
