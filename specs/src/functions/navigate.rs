//! The functions that look at the cluster: each asks `model::navigate` and wraps its answer. Where the answer depends on
//! a kind that was not read, it is the error that says so, never an absence.

use std::sync::Arc;

use suture_model::deletion::{cascaded, live_referrers};
use suture_model::fields;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate::{self, HostClaim, known};
use suture_model::object::{Key, Object};
use suture_model::references::{Reference, references};
use suture_model::state::State;
use suture_model::value::{Str, Val};

use super::answer::{Answer, no_overload};
use super::known::{adapted_known, adapter, all_known, makers_known, told_by_all, with_known};
use super::placement::{placement, priorities};
use super::pure::label_selector;
use super::{Func, call_pure};
use crate::error::{EvalError, EvalErrorKind};
use crate::value::{ListValue, Value, World};

/// The states that expressions speak about.
#[derive(Clone, Copy, Debug)]
pub struct Worlds<'a> {
    /// What the watch shows.
    pub before: &'a State<'a>,
    /// The future under judgement.
    pub now: &'a State<'a>,
}

impl<'a> Worlds<'a> {
    /// The state of this name.
    pub fn get(&self, world: World) -> &'a State<'a> {
        match world {
            World::Before => self.before,
            World::Now => self.now,
        }
    }
}

/// Calls any function that is no operator of logic: of class pure, reads or navigates.
///
/// # Errors
/// As [`call_pure`]; also when an object is not where the expression looks for it, or its kind was not read.
pub fn call_nav(func: Func, args: &[Value], worlds: &Worlds) -> Answer {
    match args {
        [Value::World(world), rest @ ..] => lists(func, worlds.get(*world), *world, rest),
        [Value::Object(o), Value::World(world), rest @ ..] if func == Func::Meant => {
            meant(o, worlds, *world, !matches!(rest, [Value::Bool(false)]))
        }
        [Value::Reference(r), Value::World(world)] if func == Func::Meant => {
            let target = worlds.before.resolve(&r.target);
            if target.is_none() {
                known(worlds.before, &r.target.kind)?;
            }
            target.map_or_else(|| bool(false), |o| meant(o, worlds, *world, true))
        }
        [Value::Object(o), Value::World(world)] if func == Func::RightsLost => {
            rights_lost(worlds.before, worlds.get(*world), o)
        }
        [Value::Object(o), Value::World(world)] => of_object(func, o, worlds.get(*world), *world),
        [Value::Reference(r), Value::World(world)] if func == Func::ResolvesIn => resolves(r, worlds.get(*world)),
        [Value::Reference(r), Value::World(world)] if func == Func::Target => target(r, worlds.get(*world)),
        [Value::Reference(r), Value::World(world)] if func == Func::TargetWriters => {
            writers(worlds.get(*world), &r.target)
        }
        [Value::Object(o), Value::World(world), Value::String(resource)] if func == Func::Usage => {
            admission(func, o, None, resource, worlds.get(*world))
        }
        [Value::Object(quota), Value::Object(o), Value::World(world)] if func == Func::Counts => {
            admission(func, o, Some(&**quota), "", worlds.get(*world))
        }
        [Value::Object(o), Value::World(world), rest @ ..]
            if matches!(func, Func::Unplaced | Func::Obstacles | Func::RolloutObstacles) =>
        {
            placement(func, o, rest, worlds.get(*world))
        }
        [Value::Object(o), rest @ ..] if func.class() != super::Class::Pure => reads(func, o, rest, worlds),
        _ => call_pure(func, args),
    }
}

fn objects(list: Vec<&Arc<Object>>) -> Answer {
    Ok(Value::objects(list))
}

fn bool(value: bool) -> Answer {
    Ok(Value::Bool(value))
}

/// Whether an object is meant to go. That something exists for what is confirmed only is not said where more may use it.
fn meant(o: &Object, worlds: &Worlds, world: World, namespaces: bool) -> Answer {
    bool(navigate::meant(worlds.before, worlds.get(world), o, namespaces)?)
}

/// The functions of a state.
fn lists(func: Func, state: &State, world: World, args: &[Value]) -> Answer {
    let refuse = || {
        let mut all = vec![Value::World(world)];
        all.extend_from_slice(args);
        no_overload(func, &all)
    };
    match (func, args) {
        (Func::Objects, [Value::String(group), Value::String(kind)]) => of_kind(state, &Kind::new(group, kind), None),
        (Func::Objects, [Value::String(kind)]) => of_short_kind(state, kind, None),
        (Func::InNamespace, [Value::String(ns), Value::String(kind)]) => of_short_kind(state, kind, Some(ns)),
        (Func::InNamespace, [Value::String(ns), Value::String(kind), Value::String(name)]) => {
            known(state, &Kind::new("", kind))?;
            let keys = kinds_of(state, kind).into_iter().map(|kind| Key::new(kind, ns, name));
            objects(keys.filter_map(|key| state.get(&key)).collect::<Vec<_>>())
        }
        (Func::PodsMatching, [Value::String(ns), selector]) => {
            known(state, &Kind::new("", "Pod"))?;
            let selector = label_selector(selector).ok_or_else(refuse)?;
            objects(state.pods_matching(ns, &selector))
        }
        (Func::PodsWanted, [Value::String(ns), selector]) => {
            makers_known(state)?;
            all_known(state, &["Node"])?;
            let selector = label_selector(selector).ok_or_else(refuse)?;
            Ok(Value::Int(navigate::pods_wanted(state, ns, &selector)))
        }
        (Func::Workloads, [Value::String(ns)]) => {
            all_known(state, &["Pod"])?;
            makers_known(state)?;
            told_by_all(state, &Key::of("Pod", ns, ""), &["replicas", "template", "children"])?;
            objects(navigate::workloads(state, ns))
        }
        (Func::PodsOwnedBy, [Value::Object(o)]) => {
            // what it owns through others is found through them
            all_known(state, &["Pod"])?;
            makers_known(state)?;
            objects(navigate::pods_owned_by(state, o))
        }
        (Func::HostClaimants, [Value::HostClaim(claim)]) => host_claimants(state, claim),
        (Func::HasObject, [Value::String(kind), Value::String(ns), Value::String(name)]) => {
            let kinds = kinds_of(state, kind);
            if kinds.iter().any(|k| state.get(&Key::new(k.clone(), ns, name)).is_some()) {
                return bool(true);
            }
            known(state, &Kind::new("", kind))?;
            bool(false)
        }
        _ => Err(refuse()),
    }
}

fn of_kind(state: &State, kind: &Kind, ns: Option<&str>) -> Answer {
    known(state, kind)?;
    objects(state.list(kind, ns))
}

/// The kinds of a short name: the built-in one, or those of the state.
fn kinds_of(state: &State, kind: &str) -> Vec<Kind> {
    match Kind::builtin(kind) {
        Some(builtin) => vec![builtin],
        None => state.kinds().into_iter().filter(|k| &*k.kind == kind).collect(),
    }
}

fn of_short_kind(state: &State, kind: &str, ns: Option<&str>) -> Answer {
    known(state, &Kind::new("", kind))?;
    let mut found: Vec<&Arc<Object>> = Vec::new();
    for kind in kinds_of(state, kind) {
        found.extend(state.list(&kind, ns));
    }
    objects(found)
}

fn host_claimants(state: &State, claim: &HostClaim) -> Answer {
    with_known(state, KindTraits::claims_hosts)?;
    objects(navigate::host_claimants(state, claim))
}

/// The error of the first kind that decides what a budget counts and was not read.
fn counted_known(state: &State) -> Result<(), EvalError> {
    all_known(state, &["Pod"])?;
    makers_known(state)?;
    with_known(state, KindTraits::scales)?;
    all_known(state, &["CustomResourceDefinition"])
}

/// The functions of an object in a state.
fn of_object(func: Func, o: &Arc<Object>, state: &State, world: World) -> Answer {
    let pods_known = || all_known(state, &["Pod"]);
    if matches!(
        func,
        Func::Selects | Func::StandingSelector | Func::HasSelector | Func::AdmittedNodes | Func::WantedReplicas
    ) {
        adapter(state, o)?;
    }
    match func {
        Func::At | Func::ExistsIn | Func::LiveIn => itself(func, o, state, world),
        Func::Selects => {
            pods_known()?;
            objects(navigate::selected(state, o))
        }
        Func::HasSelector => bool(navigate::selector_of(state, o).is_some()),
        Func::Endpoints => pods_known().and_then(|()| objects(navigate::endpoints(state, o))),
        Func::ListedEndpoints if navigate::selector_of(state, o).is_some() => Ok(Value::Int(0)),
        Func::ListedEndpoints => {
            known(state, &Kind::new("discovery.k8s.io", "EndpointSlice"))?;
            Ok(Value::Int(navigate::listed_endpoints(state, o)))
        }
        Func::AdmittedNodes => {
            known(state, &Kind::new("", "Node"))?;
            Ok(Value::List(ListValue::Objects(navigate::admitted_nodes(state, o))))
        }
        Func::Referrers => {
            all_read(navigate::unread_users(state, o))?;
            let is_claim = o.key.kind.is("PersistentVolumeClaim");
            told_by_all(state, &o.key, if is_claim { &["references", "claimSelector"] } else { &["references"] })?;
            objects(live_referrers(state, o))
        }
        Func::OwnersIn => owners_in(state, o),
        Func::UnresolvedOwners => unresolved_owners(state, o),
        Func::WantedBy => {
            owners_told(state, o)?;
            objects(navigate::wanted_by(state, o))
        }
        Func::Parents => {
            owners_told(state, o)?;
            objects(navigate::parents(state, o))
        }
        Func::StandingSelector => standing_selector(state, o),
        Func::SelectedBy => selected_by(state, o),
        Func::Autoscalers => autoscalers(state, o),
        Func::Scaled => scaled(state, o),
        Func::Cascaded => {
            adapter(state, o).and_then(|_| cascaded_known(state, o)).and_then(|()| objects(cascaded(state, o)))
        }
        Func::WantedReplicas => wanted_replicas(state, o),
        Func::PossibleNodes => possible_nodes(state, o),
        Func::MostWanted => most_wanted(state, o),
        Func::Refusals => admission(func, o, None, "", state),
        Func::Writers => writers(state, &o.key),
        Func::Instances => {
            if let Some(kind) = fields::defined_kind(o) {
                known(state, &kind)?;
            }
            objects(navigate::instances(state, o))
        }
        Func::Volume => {
            known(state, &Kind::new("", "PersistentVolume"))?;
            objects(navigate::volume(state, o).into_iter().collect())
        }
        Func::Unscaled => counted_known(state).and_then(|()| objects(navigate::unscaled(state, o))),
        Func::DisruptionsWhenSettled => {
            counted_known(state)?;
            let allowed = navigate::disruptions_when_settled(state, o);
            Ok(Value::list(allowed.into_iter().map(Value::Int).collect()))
        }
        Func::HostClaims => host_claims(state, o),
        Func::IsQuorumGroup => is_quorum_group(state, o),
        Func::Priority | Func::Preempted | Func::Preemptors => priorities(func, o, state),
        _ => Err(no_overload(func, &[Value::Object(o.clone()), Value::World(world)])),
    }
}

/// The object as a state has it, or whether it has it.
fn itself(func: Func, o: &Arc<Object>, state: &State, world: World) -> Answer {
    let Some(there) = state.get(&o.key) else {
        known(state, &o.key.kind)?;
        let absent = || EvalErrorKind::NoSuchObject { object: o.key.to_string(), state: world.name() };
        return if func == Func::At { Err(absent().into()) } else { bool(false) };
    };
    match func {
        Func::At => Ok(Value::Object(there.clone())),
        Func::ExistsIn => bool(true),
        Func::LiveIn => bool(there.live() && (there.uid.is_empty() || o.uid.is_empty() || there.uid == o.uid)),
        _ => Err(no_overload(func, &[Value::Object(o.clone()), Value::World(world)])),
    }
}

fn host_claims(state: &State, o: &Object) -> Answer {
    let class = if o.key.kind.is("HTTPRoute") { "Gateway" } else { "IngressClass" };
    all_known(state, &[class])?;
    let many = || EvalErrorKind::Invalid(format!("{} names too many hosts and paths to tell them apart", o.key));
    let claims = navigate::host_claims(state, o).ok_or_else(many)?;
    Ok(Value::list(claims.into_iter().map(|c| Value::HostClaim(Arc::new(c))).collect()))
}

fn wanted_replicas(state: &State, o: &Object) -> Answer {
    if o.key.kind.is("DaemonSet") {
        all_known(state, &["Node"])?;
    }
    Ok(Value::Int(navigate::wanted_replicas(state, o).unwrap_or(0)))
}

fn rights_lost(before: &State, state: &State, o: &Object) -> Answer {
    adapter(before, o)?;
    adapter(state, o)?;
    for state in [before, state] {
        with_known(state, KindTraits::grants_rights)?;
        all_known(state, &["CustomResourceDefinition"])?;
    }
    Ok(Value::list(navigate::rights_lost(before, state, o).into_iter().map(Value::str).collect()))
}

fn possible_nodes(state: &State, o: &Object) -> Answer {
    adapter(state, o)?;
    with_known(state, KindTraits::decides_places)?;
    if navigate::follows_pods(state, o) {
        all_known(state, &["Pod"])?;
        makers_known(state)?;
    }
    objects(navigate::possible_nodes(state, o))
}

fn most_wanted(state: &State, o: &Object) -> Answer {
    makers_known(state)?;
    with_known(state, KindTraits::scales)?;
    if o.key.kind.is("DaemonSet") {
        all_known(state, &["Node"])?;
    }
    told_by_all(state, &o.key, &["replicas", "children", "scaleTarget", "replicaRange"])?;
    Ok(Value::Int(navigate::most_wanted(state, o)))
}

/// What LimitRanges and quotas make of an object's pods.
fn admission(func: Func, o: &Arc<Object>, quota: Option<&Object>, resource: &str, state: &State) -> Answer {
    adapter(state, o)?;
    all_known(state, &["LimitRange"])?;
    match (func, quota) {
        (Func::Usage, _) => {
            let spec = navigate::admitted_spec(state, o);
            Ok(Value::Int(spec.map_or(0, |spec| fields::quota_usage(&spec, resource))))
        }
        (Func::Counts, Some(quota)) => {
            all_known(state, &["PriorityClass"])?;
            bool(navigate::counts(state, quota, o))
        }
        _ => {
            all_known(state, &["ResourceQuota", "PriorityClass"])?;
            Ok(Value::list(navigate::refusals(state, o).into_iter().map(Value::str).collect()))
        }
    }
}

fn standing_selector(state: &State, o: &Object) -> Answer {
    all_known(state, &["Pod"])?;
    makers_known(state)?;
    Ok(navigate::standing_selector(state, o).map_or(Value::Null, |selector| Value::from(&selector)))
}

fn owners_in(state: &State, o: &Object) -> Answer {
    let mut found = Vec::new();
    for owner in o.owners() {
        match navigate::owner_object(state, o, owner) {
            Some(object) => found.push(object),
            None => known(state, &owner.kind)?,
        }
    }
    objects(found)
}

fn unresolved_owners(state: &State, o: &Object) -> Answer {
    let mut found = Vec::new();
    for owner in o.owners() {
        if !navigate::owner_resolves(state, o, owner)? {
            found.push(Value::Owner(Arc::new(owner.clone())));
        }
    }
    Ok(Value::list(found))
}

fn is_quorum_group(state: &State, o: &Arc<Object>) -> Answer {
    if !may_be_quorum_group(&o.key.kind) {
        return bool(false);
    }
    // a Deployment's labels are often its template's too, and then its ReplicaSets': their pods are its members
    let is_labelled = |o: &Object| o.label(QUORUM).is_some_and(|v| &**v == "true");
    let has_members = |owner: &Object| {
        let runs_pods = owner.key.kind.has(KindTraits::decides) || state.adapter(owner).is_some();
        let selector = navigate::selector_of(state, owner).filter(|selector| runs_pods && !selector.is_empty());
        let labels = navigate::template_labels(state, o);
        selector.zip(labels).is_some_and(|(selector, labels)| selector.matches(&labels))
    };
    let is_part = || navigate::controller_of(state, o).is_some_and(|owner| is_labelled(owner) && has_members(owner));
    let labelled = is_labelled(o) && !is_part();
    let adapted = adapter(state, o)?.is_some_and(|facts| facts.quorum);
    bool(labelled || adapted)
}

/// The label of a workload whose pods vote.
pub const QUORUM: &str = "suture.dev/quorum";

/// Whether objects of a kind may have pods that vote: neither a pod nor a namespace runs any, whatever its labels say.
pub fn may_be_quorum_group(kind: &Kind) -> bool {
    kind.traits().is_none_or(KindTraits::may_be_quorum_group)
}

fn all_read(unread: Vec<Str>) -> Result<(), EvalError> {
    match unread.first() {
        Some(kind) => Err(EvalErrorKind::UnknownKind(kind.to_string()).into()),
        None => Ok(()),
    }
}

/// That what an operator deletes with its custom resource was read, and what that is found by.
fn cascaded_known(state: &State, o: &Object) -> Result<(), EvalError> {
    let Some(facts) = state.adapter(o) else { return Ok(()) };
    let by_pods = facts.deletes_volumes && facts.claim_selector.is_none();
    let asked = |kind: &&Str| facts.may_delete(kind) || (by_pods && ["Pod", "StatefulSet"].contains(&&***kind));
    all_read(state.base().unknown().iter().filter(asked).cloned().collect())
}

/// That what may own or list an object was read, and says so.
fn owners_told(state: &State, o: &Object) -> Result<(), EvalError> {
    all_read(navigate::unread_owners(state, o))?;
    told_by_all(state, &o.key, &["children"])
}

/// What writes an object.
fn writers(state: &State, target: &Key) -> Answer {
    adapted_known(state)?;
    told_by_all(state, target, &["references"])?;
    objects(navigate::writers(state, target))
}

/// What selects a pod, or the pods of a workload.
fn selected_by(state: &State, o: &Arc<Object>) -> Answer {
    with_known(state, KindTraits::selects_pods)?;
    adapted_known(state)?;
    told_by_all(state, &o.key, &["selector"])?;
    objects(navigate::selected_by(state, o))
}

/// What scales an object.
fn autoscalers(state: &State, o: &Object) -> Answer {
    with_known(state, KindTraits::scales)?;
    adapted_known(state)?;
    told_by_all(state, &o.key, &["scaleTarget"])?;
    objects(navigate::autoscalers(state, &o.key))
}

/// What an autoscaler scales.
fn scaled(state: &State, o: &Object) -> Answer {
    adapter(state, o)?;
    let found = navigate::scaled(state, o);
    if let (None, Some(target)) = (found, navigate::scale_target(state, o)) {
        known(state, &target.kind)?;
    }
    objects(found.into_iter().collect())
}

fn target(reference: &Reference, state: &State) -> Answer {
    let found = state.resolve(&reference.target);
    if found.is_none() {
        known(state, &reference.target.kind)?;
    }
    objects(found.into_iter().collect())
}

fn resolves(reference: &Reference, state: &State) -> Answer {
    bool(navigate::resolves(state, reference)?)
}

/// The functions that ask for no state: what they read is the same in every future. A node is taken as `before` shows
/// it, or as `now` does when it is new.
fn reads(func: Func, o: &Arc<Object>, args: &[Value], worlds: &Worlds) -> Answer {
    adapter(worlds.before, o)?;
    match (func, args) {
        (Func::HasSelector, []) => bool(navigate::selector_of(worlds.before, o).is_some()),
        (Func::RestrictsNodes, []) => {
            let spec = navigate::pod_spec(worlds.before, o);
            bool(spec.is_some_and(|spec| fields::restricts_nodes(&spec)) && !fields::makes_no_more(o))
        }
        (Func::References, []) => {
            let adapters = worlds.before.base().adapters().as_ref();
            let found = references(o, adapters).into_iter().map(|r| placed(r, worlds.before));
            Ok(Value::list(found.map(|r| Value::Reference(Arc::new(r))).collect()))
        }
        (Func::PodSpec, []) => {
            Ok(Value::from(&navigate::pod_spec(worlds.before, o).unwrap_or_else(|| Val::object([]))))
        }
        (Func::SameTemplate, [Value::Object(other)]) => bool(navigate::same_template(worlds.before, o, other)),
        (Func::PodLabel, [Value::String(key)]) => {
            let labels = navigate::template_labels(worlds.before, o).unwrap_or_default();
            Ok(Value::String(labels.str_at(&[key]).cloned().unwrap_or_else(|| "".into())))
        }
        (Func::ReplicaRange, []) => {
            let range = navigate::scaler_range(worlds.before, o);
            Ok(Value::list(range.into_iter().flat_map(|(low, high)| [low, high]).map(Value::Int).collect()))
        }
        (Func::PodNode, []) => node(o, worlds).map(|n| Value::Object(n.clone())),
        (Func::PodZone, []) => {
            let zone = match &o.key.kind {
                kind if kind.is("Node") => fields::node_zone(o),
                _ if o.node.is_empty() => None,
                _ => match node(o, worlds) {
                    Ok(node) => fields::node_zone(node),
                    Err(error) if error.is_absence() => None,
                    Err(error) => return Err(error),
                },
            };
            Ok(Value::String(zone.unwrap_or_else(|| "".into())))
        }
        (Func::Requests, [Value::String(resource)]) => {
            let spec = navigate::pod_spec(worlds.before, o);
            Ok(Value::Int(spec.map_or(0, |spec| fields::requests(&spec, resource))))
        }
        _ => {
            let mut all = vec![Value::Object(o.clone())];
            all.extend_from_slice(args);
            Err(no_overload(func, &all))
        }
    }
}

/// A reference that an adapter gives, outside of namespaces if that is where its target is.
fn placed(reference: Reference, before: &State) -> Reference {
    let is_global =
        reference.target.is_partial() && before.resolve(&reference.target).is_some_and(|o| o.key.ns.is_empty());
    if is_global { Reference { target: Key { ns: "".into(), ..reference.target }, ..reference } } else { reference }
}

fn node<'a>(pod: &Object, worlds: &Worlds<'a>) -> Result<&'a Arc<Object>, EvalError> {
    if pod.node.is_empty() {
        return Err(EvalErrorKind::NoSuchKey("spec.nodeName".into()).into());
    }
    let key = Key::of("Node", "", &pod.node);
    let (before, now) = (worlds.before, worlds.now);
    before.get(&key).or_else(|| now.get(&key)).ok_or_else(|| match known(before, &key.kind) {
        Ok(()) => EvalErrorKind::NoSuchObject { object: key.to_string(), state: "before" }.into(),
        Err(unknown) => unknown.into(),
    })
}
