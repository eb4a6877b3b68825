//! The group of a name: stratum by stratum, each over what the one before says.
//!
//! | stratum | says |
//! |---|---|
//! | `survival` | what becomes of existing objects whatever their controllers do |
//! | controllers (`deployment`, `replica_set`, `statefulset`, `daemonset`, `custom`) | which pods go and come |
//! | `scheduling` | where new pods go; it reads what controllers do with pods of other workloads |
//! | what pods own | what goes with pods; it reads whole groups of pods |

use std::collections::BTreeSet;
use std::sync::Arc;

use super::builder::{Builder, Described, View};
use super::linear::STAY;
use super::members::group_name;
use super::memo::Memo;
use super::scheduling::foreign_pods::Staying;
use super::scheduling::limits::scheduled;
use super::survival::Survival;
use super::{coarse, custom, daemonset, deployment, remade, replica_set, statefulset};
use crate::futures::{FateKind, Group, Moment};
use crate::kinds::KindTraits;
use crate::navigate;
use crate::object::{Key, Object};
use crate::scenario::Scenario;

/// The group of this name: its pods, their fates and limits.
pub fn group(scenario: &Scenario<'_>, memo: &Memo, name: &Key, view: &View) -> Group {
    match scenario.state.get(name) {
        Some(object) if !makes_pods(scenario, object) => {
            let builder = Builder::new(scenario, memo, view, name.clone());
            let object = collected(&builder, object);
            alone(builder, &object)
        }
        Some(_) | None => pods(scenario, memo, name, view),
    }
}

/// The fates of an object that is no pod: what happens to it whatever its controller does.
pub fn own(scenario: &Scenario<'_>, memo: &Memo, key: &Key, view: &View) -> Group {
    let builder = Builder::new(scenario, memo, view, key.clone());
    match scenario.state.get(key) {
        Some(object) => alone(builder, object),
        None => builder.group,
    }
}

/// The group of one object that no controller touches.
fn alone(mut builder: Builder<'_, '_>, object: &Arc<Object>) -> Group {
    let survival = match builder.survival(object) {
        Survival::Stays if follows_pods(&builder, object) => Survival::MayGo,
        survival => survival,
    };
    let entity = builder.surviving(object, survival, &[], false);
    builder.group.entities.push(entity);
    builder.group
}

/// The object of a group, marked where it is collected for certain by the time that all has settled: it makes no pods any more.
fn collected(builder: &Builder<'_, '_>, object: &Arc<Object>) -> Arc<Object> {
    if builder.after() && builder.survivals.surely_goes(object) {
        return Arc::new(Object { in_deletion_closure: true, ..(**object).clone() });
    }
    object.clone()
}

/// Whether the group of an object's name is one of pods.
fn makes_pods(scenario: &Scenario<'_>, object: &Arc<Object>) -> bool {
    let decides = object.key.kind.has(KindTraits::decides);
    object.key.kind.is("Pod") || decides || scenario.state.adapter(object).is_some()
}

/// The pods of a workload, or one that nothing controls.
fn pods(scenario: &Scenario<'_>, memo: &Memo, name: &Key, view: &View) -> Group {
    let described = described(scenario, memo, name, view);
    if view.coarse {
        return coarse::limited(described);
    }
    scheduled(described, &Staying::new(&|name| stay(scenario, memo, name)))
}

/// The pods of a workload with what its controller does, not placed.
fn described<'s, 'a>(scenario: &'s Scenario<'a>, memo: &'s Memo, name: &Key, view: &'s View) -> Described<'s, 'a> {
    let mut builder = Builder::new(scenario, memo, view, name.clone());
    let object = scenario.state.get(name).map(|object| collected(&builder, object));
    let Some(object) = object else { return builder.described() };
    if name.kind.is("Deployment") {
        deployment::deployment(&mut builder, &object);
    } else if name.kind.is("ReplicaSet") || name.kind.is("ReplicationController") {
        replica_set::replica_set(&mut builder, &object);
    } else if name.kind.is("StatefulSet") {
        statefulset::stateful_set(&mut builder, &object);
    } else if name.kind.is("DaemonSet") {
        daemonset::daemon_set(&mut builder, &object);
    } else if name.kind.is("Pod") {
        remade::pod(&mut builder, &object);
    } else {
        custom::custom_resource(&mut builder, &object);
    }
    if view.moment == Moment::AtOnce {
        builder.undo_controllers();
    }
    builder.described()
}

/// The pods of a workload that meet no other fate than to stay once all has settled: what becomes of those that exist does not
/// depend on where new ones go.
fn stay(scenario: &Scenario<'_>, memo: &Memo, name: &Key) -> BTreeSet<Key> {
    let view = View { moment: Moment::After, coarse: true, ..View::default() };
    let entities = described(scenario, memo, name, &view).group().entities.into_iter();
    let stays = entities.filter(|entity| entity.fates.iter().all(|fate| fate.kind == FateKind::Stays));
    stays.filter_map(|entity| entity.key().cloned()).collect()
}

/// Whether all owners of an object are pods that may go, whoever makes them go: the garbage collector takes it along
/// (`pkg/controller/garbagecollector/garbagecollector.go`, `attemptToDeleteItem`). That it goes no earlier than they do is
/// left aside.
fn follows_pods(builder: &Builder<'_, '_>, object: &Object) -> bool {
    let (scenario, owners) = (builder.scenario, object.owners());
    !object.key.kind.is("Pod")
        && !owners.is_empty()
        && owners.iter().all(|owner| owner.kind.is("Pod"))
        && owners.iter().all(|owner| {
            let Some(pod) = navigate::owner_object(&scenario.state, object, owner) else { return true };
            let group = pods(scenario, builder.survivals.memo, &group_name(&scenario.state, pod), builder.view);
            let mut entity = group.entities.iter().filter(|entity| entity.key() == Some(&pod.key));
            entity.any(|entity| entity.fates.iter().any(|fate| !STAY.contains(&fate.kind)))
        })
}
