//! Where workloads may want another number of pods: the inverse of counting those whose pods a selector means.

use std::collections::BTreeSet;

use suture_model::kinds::Kind;
use suture_model::navigate;
use suture_model::object::Object;
use suture_model::selector::Selector;
use suture_model::state::State;
use suture_model::value::{Str, Val};

use super::pods::Touch;
use super::seeds::Seeds;

/// The namespaces in which a change of nodes and pods alone changes how many pods workloads want: of those that objects of a kind
/// select, if it is asked about these. Nodes change how many a DaemonSet wants; what becomes of pods matters where these count as
/// they are.
pub(super) fn by_nodes_and_pods(seeds: &Seeds<'_, '_>, touch: &Touch, selecting: Option<&Str>) -> BTreeSet<Str> {
    let state = seeds.before;
    let mut found = BTreeSet::new();
    for pod in touch.distinct_pods() {
        let counts = match selecting {
            Some(kind) => selectors(state, kind, &pod.key.ns, pod.labels()).any(|selector| {
                counts_as_it_is(state, pod) || navigate::labelled_maker(state, pod, &selector).is_some()
            }),
            None => counts_as_it_is(state, pod) || has_labels_of_its_own(state, pod),
        };
        found.extend(counts.then(|| pod.key.ns.clone()));
    }
    let sets = touch.controllers.iter().filter(|key| key.kind.is("DaemonSet"));
    for set in sets.filter_map(|key| state.get(key)) {
        let is_selected = |kind| {
            let labels = navigate::template_labels(state, set);
            labels.is_some_and(|labels| selectors(state, kind, &set.key.ns, &labels).next().is_some())
        };
        found.extend(selecting.is_none_or(is_selected).then(|| set.key.ns.clone()));
    }
    found
}

/// Whether a pod counts as it is: no controller says how many of its kind there are to be.
fn counts_as_it_is(state: &State<'_>, pod: &Object) -> bool {
    !navigate::is_always_scaled(state, pod) || navigate::controller_of(state, pod).is_none()
}

/// Whether a pod bears what the template that it is made by has no label for.
fn has_labels_of_its_own(state: &State<'_>, pod: &Object) -> bool {
    let template = navigate::controller_of(state, pod).and_then(|maker| navigate::template_labels(state, maker));
    template.as_ref() != Some(pod.labels())
}

/// The selectors of objects of a kind in a namespace that mean a pod with these labels.
fn selectors<'s>(
    state: &'s State<'_>,
    kind: &Str,
    ns: &'s Str,
    labels: &'s Val,
) -> impl Iterator<Item = Selector> + use<'s> {
    let kinds: Vec<Kind> = Kind::builtin(kind).into_iter().collect();
    let selecting = state.selecting_any(&kinds, ns, labels);
    let selectors = selecting.into_iter().filter_map(|object| navigate::selector_of(state, object));
    selectors.filter(|selector| selector.matches(labels))
}
