//! What a change takes away: the objects that its requests delete, with all that goes along, and the pods that fewer
//! replicas cost.
//!
//! What is terminating, leaving with something in flight, or about to be collected costs nothing. What is in flight may
//! have landed or not; the cost is that of the worst case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::change::User;
use suture_model::deletion::expected_to_go;
use suture_model::fields::finished;
use suture_model::kinds::KindTraits;
use suture_model::navigate::{controller_of, pods_owned_by, selected, wanted_replicas};
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_model::value::Str;

use super::grant::GrantQuestion;
use super::history::{Spent, Taken};

/// Up to so many changes in flight every subset of them is tried; beyond it none, each alone, and all.
const SUBSETS_IN_FLIGHT_MAX: usize = 5;

/// Controllers nest no deeper than this; a longer chain is a cycle or no controller's work.
const CONTROLLERS_MAX: usize = 16;

impl Spent {
    /// What the requests of a grant's subjects take away in the worst case.
    pub(super) fn of(grant: &Str, asked: &GrantQuestion<'_>, covers: &dyn Fn(&User) -> bool) -> Self {
        let own = || asked.change.requests.iter().filter(|request| covers(&request.user));
        let mut spent = Self {
            grant: grant.clone(),
            requests: own().map(|request| request.uid.clone()).filter(|uid| !uid.is_empty()).collect(),
            taken: BTreeSet::new(),
            scaled: BTreeMap::new(),
            dry_run: own().all(|request| request.dry_run),
        };
        for subset in subsets(asked.in_flight.len()) {
            let mut scenario = Scenario::observed(asked.snapshot);
            for (at, request) in asked.in_flight.iter().enumerate() {
                if subset.contains(&at) {
                    scenario.land(request);
                }
            }
            spent.land(&mut scenario, asked, covers);
        }
        spent
    }

    fn land(&mut self, scenario: &mut Scenario<'_>, asked: &GrantQuestion<'_>, covers: &dyn Fn(&User) -> bool) {
        for request in &asked.change.requests {
            let before = scenario.state.clone();
            let gone: BTreeSet<Key> = scenario.in_deletion_closure.keys().cloned().collect();
            scenario.land(request);
            if !covers(&request.user) {
                continue;
            }
            for key in scenario.in_deletion_closure.keys().filter(|key| !gone.contains(*key)) {
                let Some(object) = before.get(key) else { continue };
                if object.live() && !expected_to_go(&before, object) {
                    let group = object.key.kind.is("Pod").then(|| group_of(&before, object)).flatten();
                    let group = group.map(|workload| workload.key.clone());
                    self.taken.insert(Taken { key: key.clone(), uid: object.uid.clone(), group });
                }
            }
            let resized = before.get(&request.target).zip(scenario.state.get(&request.target));
            if let Some((old, new)) = resized.filter(|(old, new)| old.live() && new.live()) {
                self.shrink(&before, old, &scenario.state, new);
            }
        }
    }

    /// Counts the pods that a workload no longer wants.
    fn shrink(&mut self, before: &State<'_>, old: &Arc<Object>, after: &State<'_>, new: &Object) {
        let Some(group) = group_of(before, old) else { return };
        let (Some(wanted), Some(left)) = (wanted_replicas(before, old), wanted_replicas(after, new)) else { return };
        let there = i64::try_from(present(before, old)).unwrap_or(i64::MAX);
        let lost = wanted.min(there).saturating_sub(left);
        if let Ok(lost @ 1..) = u64::try_from(lost) {
            let known = self.scaled.entry(group.key.clone()).or_default();
            *known = lost.max(*known);
        }
    }
}

/// Which of so many changes in flight have landed.
fn subsets(count: usize) -> Vec<BTreeSet<usize>> {
    if count <= SUBSETS_IN_FLIGHT_MAX {
        return (0..1_usize << count).map(|bits| (0..count).filter(|at| bits & (1 << at) != 0).collect()).collect();
    }
    let singles = (0..count).map(|at| BTreeSet::from([at]));
    singles.chain([BTreeSet::new(), (0..count).collect()]).collect()
}

/// The workload that decides how many pods like this one there are: the highest controller that says how many it wants;
/// of a workload, itself if nothing above it does.
pub(super) fn group_of(state: &State<'_>, object: &Arc<Object>) -> Option<Arc<Object>> {
    let decides =
        |o: &Object| o.key.kind.has(KindTraits::makes_pods) || state.adapter(o).is_some_and(|f| f.replicas.is_some());
    let mut at = object.clone();
    let mut found = decides(&at).then(|| at.clone());
    for _ in 0..CONTROLLERS_MAX {
        let Some(above) = controller_of(state, &at).cloned() else { break };
        if decides(&above) {
            found = Some(above.clone());
        }
        at = above;
    }
    found
}

/// How many pods a workload has, those that are on their way out left aside.
pub(super) fn present(state: &State<'_>, workload: &Arc<Object>) -> usize {
    let mut pods: BTreeSet<&Key> = BTreeSet::new();
    let adapted = state.adapter(workload).is_some();
    let selected = if adapted { selected(state, workload) } else { Vec::new() };
    for pod in pods_owned_by(state, workload).into_iter().chain(selected) {
        if pod.live() && !finished(pod) {
            pods.insert(&pod.key);
        }
    }
    pods.len()
}
