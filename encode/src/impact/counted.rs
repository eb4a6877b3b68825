//! Where workloads may want another number of pods: the inverse of counting those whose pods a selector means.

use std::collections::BTreeSet;

use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate;
use suture_model::object::{Key, Owner};
use suture_model::value::Str;

use super::pods::Touch;
use super::seeds::Seeds;

/// The namespaces in which a change may make other workloads, or make them want more or fewer pods. A pod that a workload makes
/// is none itself, and the workload wants as many without it; nodes change how many a DaemonSet wants.
pub(super) fn by_workloads(seeds: &Seeds<'_, '_>, touch: &Touch, adapted: &[Kind]) -> BTreeSet<Str> {
    let is_pod = |key: &&Key| key.kind.is("Pod");
    let concerns = |traits: &KindTraits| traits.runs_pods() || traits.scales();
    let decides = |key: &&Key| !is_pod(key) && (key.kind.has(concerns) || adapted.contains(&key.kind));
    let sets = touch.controllers.iter().filter(|key| key.kind.is("DaemonSet"));
    let mut found: BTreeSet<Str> = seeds.touched().filter(decides).chain(sets).map(|key| key.ns.clone()).collect();
    let changed = seeds.touched().filter(is_pod).flat_map(|key| seeds.versions(key));
    let mut seen: BTreeSet<(&Str, &Owner)> = BTreeSet::new();
    for pod in changed.chain(&touch.pods) {
        let is_new = pod.controller().is_none_or(|owner| seen.insert((&pod.key.ns, owner)));
        if is_new && seeds.states().any(|state| !navigate::is_made(state, pod)) {
            found.insert(pod.key.ns.clone());
        }
    }
    found
}

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
