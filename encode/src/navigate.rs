//! Navigation of the future state: the same functions as in crate `specs`, with every object in every fate it may meet.
//!
//! Candidates come from the scenario's concrete cluster; what a fate changes (an object that is gone, a pod that lost
//! readiness) decides per fate. New pods come from the workloads whose template the selector matches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::deletion::stays_in_use;
use suture_model::fields;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate as model;
use suture_model::object::{Body, Key, Object};
use suture_model::references::{names_its_own, references};
use suture_model::selector::Selector;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::error::EvalErrorKind;
use suture_specs::functions::{Func, Worlds, call_nav, label_selector};
use suture_specs::value::{ListValue, Value};

use crate::class::ClassId;
use crate::eval::{Evaluator, Fates, Refusal, check_absence};
use crate::relations::{Held, Inverse, Lift, relations};
use crate::sym::{Item, Member, Sym, Truth};
use crate::term::{Bool, Int};

type Answer = Result<Sym, Refusal>;
type Predicate<'p> = &'p dyn Fn(&Object) -> bool;

/// How many objects of a list of the future state are looked at.
const LIST_MAX: usize = 200_000;

impl<'e, 's, 'a> Evaluator<'e, 's, 'a>
where
    's: 'e,
    'a: 'e,
{
    /// A function of the future state.
    pub(crate) fn navigate(&mut self, func: Func, args: &[Sym], values: &[Value]) -> Answer {
        match (relations(func).lift, values) {
            (Lift::Itself, [Value::Object(o), _]) => self.at(args.first(), o),
            (Lift::Exists, [Value::Object(o), _]) => self.in_fates(args.first(), o, &|_| true),
            (Lift::Lives, [Value::Object(o), _]) => {
                let uid = o.uid.clone();
                self.in_fates(args.first(), o, &|there| {
                    there.live() && (there.uid.is_empty() || uid.is_empty() || there.uid == uid)
                })
            }
            (Lift::Selected(held), [Value::Object(o), _]) => {
                let selector = model::selector_of(self.scene.state(), o);
                self.known_pods(func, values)?;
                self.selected(&o.key.ns, selector, &|pod| held.holds(pod, o))
            }
            (Lift::Matching, [_, Value::String(ns), selector]) => {
                self.known_pods(func, values)?;
                let selector = label_selector(selector);
                self.selected(ns, selector, &|_| true)
            }
            (Lift::Below, [_, Value::Object(o)]) => self.owned(func, values, o),
            (Lift::Referrers, [Value::Object(o), _]) => self.referrers(func, values, o),
            (Lift::Listed(held), [Value::Object(o), _]) => self.listed(func, values, &|found| held.holds(found, o)),
            (Lift::Listed(Held::There), [Value::Reference(_), _]) => self.listed(func, values, &|_| true),
            (Lift::Listed(Held::Live), [Value::Reference(_), _]) => self.listed(func, values, &Object::live),
            (Lift::Claims, _) => self.by_class(func, values),
            (Lift::Claimants, _) => {
                let claimants = self.by_class(func, values)?;
                self.over(claimants, |e, list| e.living(list))
            }
            (Lift::OfKind, [_, Value::String(group), Value::String(kind)]) => self.world_list(&Kind::new(group, kind)),
            (Lift::InNamespace, [_, Value::String(ns), Value::String(kind)]) if &**kind == "Pod" => {
                self.known_pods(func, values)?;
                self.selected(ns, Some(Selector::default()), &|_| true)
            }
            // a pod that is made in the place of another has whatever name
            (Lift::InNamespace, [_, _, Value::String(kind), _]) if &**kind == "Pod" => {
                Err(Refusal::NotLinear("a pod by its name".to_owned()))
            }
            (Lift::OfKind | Lift::InNamespace, _) => self.listed(func, values, &|_| true),
            (Lift::Target, [Value::Reference(r), _]) => {
                let resolves = self.concretely(func, values)?;
                match (resolves, self.scene.state().resolve(&r.target).cloned()) {
                    (Sym::Known(Value::Bool(true)), Some(target)) if !model::is_made_again(&r.target) => {
                        self.in_fates(None, &target, &Object::live)
                    }
                    (answer, _) => Ok(answer),
                }
            }
            (Lift::Dangling, [Value::Object(o), _]) => self.unresolved(func, values, o),
            (Lift::Lookup, [_, Value::String(kind), Value::String(ns), Value::String(name)]) => {
                match self.concretely(func, values)? {
                    Sym::Known(Value::Bool(true)) => self.exists(kind, ns, name),
                    answer => Ok(answer),
                }
            }
            (Lift::Budget, [Value::Object(o), _]) => {
                let (counted, groups) = self.counted_by(o, func);
                self.by_cases(func, values, counted, &groups)
            }
            (Lift::Workloads, [_, Value::String(ns)]) => self.workloads(func, values, ns),
            (Lift::Places, [Value::Object(o), _]) => self.places(func, values, o),
            (Lift::Counted | Lift::Deciding | Lift::Admission | Lift::Slices | Lift::Rights, _) => {
                self.by_deciding(func, values)
            }
            (Lift::Meant, [Value::Object(o), ..]) => self.meant(func, values, &o.clone()),
            (Lift::Meant, [Value::Reference(r), _]) => match self.scene.before.resolve(&r.target).cloned() {
                Some(target) => self.meant(func, values, &target),
                None => self.concretely(func, values),
            },
            (Lift::Priority, [Value::Object(o), _]) => self.priority(func, values, o),
            (Lift::Scenario, _) => self.concretely(func, values),
            _ => Err(Refusal::NotLinear(func.name().to_owned())),
        }
    }

    /// When an object of a name is there, whatever the group of its kind.
    fn exists(&mut self, kind: &Str, ns: &Str, name: &Str) -> Answer {
        let kinds: Vec<Kind> = self.scene.state().kinds().into_iter().filter(|k| k.kind == *kind).collect();
        let mut found = Truth::known(false);
        for kind in kinds {
            if let Some(o) = self.scene.state().get(&Key::new(kind, ns, name)).cloned() {
                found = found.or(&self.in_fates(None, &o, &|_| true)?.as_truth());
            }
        }
        Ok(Sym::from_truth(found))
    }

    /// What a budget counts one by one: pods whose controller, if it stays, makes none that it matches, and what may go of what
    /// makes or scales pods or says where their scale is; also the groups of pods that are made by what may go. Where only what
    /// has no scale is asked for, what always has one is left out.
    fn counted_by(&mut self, budget: &Object, func: Func) -> (Vec<Arc<Object>>, BTreeSet<Key>) {
        let (scene, state) = (&*self.scene, self.scene.state());
        let is_told = |o: &Object| func != Func::Unscaled || !model::is_always_scaled(state, o);
        let selector = model::selector_of(state, budget);
        let is_labelled =
            |pod: &'s Object| selector.as_ref().is_some_and(|s| model::labelled_maker(state, pod, s).is_some());
        // pods of one body have one controller, if they have any
        let mut last: Option<(&Arc<Body>, bool)> = None;
        let mut makes = |pod: &'s Arc<Object>| {
            let known = last.filter(|(body, _)| Arc::ptr_eq(body, &pod.body) && pod.controller().is_some());
            let makes = || {
                let controller = model::controller_of(state, pod);
                controller.is_some_and(|c| fields::template_path(c).is_some() && !scene.may_go(c)) && !is_labelled(pod)
            };
            let found = known.map_or_else(makes, |(_, makes)| makes);
            last = Some((&pod.body, found));
            found
        };
        let mut counted = model::selected(state, budget);
        let others = model::counted_workloads(state, budget);
        let definitions = model::definitions_of_scales(state, counted.iter().chain(&others).copied());
        counted.retain(|pod| is_told(pod) && !makes(pod));
        let others = others.into_iter().filter(|o| is_told(o)).chain(definitions);
        let others: Vec<_> = others.filter(|o| scene.may_go(o)).collect();
        let makers = others.iter().filter(|o| o.key.kind.has(KindTraits::decides));
        let groups = makers.map(|o| suture_model::effects::group_name(state, o)).collect();
        (counted.into_iter().chain(others).cloned().collect(), groups)
    }

    /// All objects of a kind in the future state.
    pub(crate) fn world_list(&mut self, kind: &Kind) -> Answer {
        let state = self.scene.state();
        if state.base().unknown().contains(&kind.kind) {
            return Err(Refusal::Unknown(format!("objects of kind `{}` were not read", kind.kind)));
        }
        let found = state.list(kind, None);
        if found.len() > LIST_MAX {
            return Err(Refusal::NotLinear(format!("a list of {} objects", found.len())));
        }
        if !kind.is("Pod") {
            let found = found.into_iter().cloned().collect();
            return self.expand(found, &|_| true).map(Sym::Bag);
        }
        let mut groups = self.scene.groups_of(found);
        for maker in Kind::deciding() {
            let workloads: Vec<Arc<Object>> = state.list(maker, None).into_iter().cloned().collect();
            groups.extend(workloads.iter().map(|o| suture_model::effects::group_name(state, o)));
        }
        self.pods_of(&groups, &|_| true)
    }

    /// Objects of a known list by class and fate, each as it is in the list: what `p.at(now)` of it is, its fate says.
    pub(crate) fn by_fate(&mut self, objects: Vec<Arc<Object>>) -> Result<Vec<Item>, Refusal> {
        let mut items = Vec::new();
        let mut by_class: BTreeMap<ClassId, Vec<Arc<Object>>> = BTreeMap::new();
        for object in objects {
            let here = self.scene.state().get(&object.key).cloned();
            let class = match &here {
                Some(here) => self.class_of(here)?,
                None => None,
            };
            match class {
                None => items.push(Item { count: Int::constant(1), value: Sym::Known(Value::Object(object)) }),
                Some(class) => by_class.entry(class).or_default().push(object),
            }
        }
        for (id, members) in by_class {
            let Some(class) = self.scene.class(id) else { continue };
            if class.entities.len() != members.len() {
                return Err(Refusal::FinerIdentity);
            }
            let Some(first) = members.into_iter().next() else { continue };
            for (at, count) in class.counts.clone().into_iter().enumerate() {
                let member = Member { object: first.clone(), fate: Some((id, at)) };
                items.push(Item { count, value: Sym::Member(member) });
            }
        }
        Ok(items)
    }

    /// A function of the future state where nothing decides about it that may go.
    pub(crate) fn concretely(&mut self, func: Func, values: &[Value]) -> Answer {
        let worlds = Worlds { before: self.scene.before, now: self.scene.state() };
        match call_nav(func, values, &worlds) {
            Ok(value) => Ok(Sym::Known(value)),
            Err(error) => check_absence(&error).map(|()| Sym::Error(error)),
        }
    }

    /// Refuses when pods, or what the function reads beside them, were not read.
    fn known_pods(&mut self, func: Func, values: &[Value]) -> Result<(), Refusal> {
        let unknown = self.scene.state().base().unknown();
        if unknown.is_empty() {
            return Ok(());
        }
        self.concretely(func, values)?;
        if unknown.contains("Pod") {
            return Err(Refusal::Unknown("objects of kind `Pod` were not read".to_owned()));
        }
        Ok(())
    }

    /// Refuses what becomes of the pods of a workload where what decides how many it has was not read: autoscalers, or custom
    /// resources that have an adapter; the nodes, each of which a DaemonSet has a pod for.
    fn known_scalers(&self, workload: &Key) -> Result<(), Refusal> {
        let base = self.scene.state().base();
        if base.unknown().is_empty() {
            return Ok(());
        }
        let scaled = workload.kind.has(KindTraits::has_scale) || workload.is_partial();
        let scalers = Kind::with(KindTraits::scales).chain(base.adapters().kinds()).filter(|_| scaled);
        let nodes = workload.kind.is("DaemonSet").then(|| Kind::new("", "Node"));
        match scalers.chain(nodes).find(|kind| base.unknown().contains(&kind.kind)) {
            Some(kind) => Err(Refusal::Unknown(format!("objects of kind `{kind}` were not read"))),
            None => Ok(()),
        }
    }

    /// The class of an object; `None` when it simply stays as it is.
    fn class_of(&mut self, object: &Object) -> Result<Option<ClassId>, Refusal> {
        if object.key.kind.is("Pod") && !self.scene.state().base().unknown().is_empty() {
            let workload = self.scene.group_of(object);
            self.known_scalers(&workload)?;
        }
        Ok(self.scene.class_of(object)?)
    }

    /// The object in the future state.
    fn at(&mut self, arg: Option<&Sym>, object: &Arc<Object>) -> Answer {
        let absent = || Sym::Error(EvalErrorKind::NoSuchObject { object: object.key.to_string(), state: "now" }.into());
        let mut alternatives = Vec::new();
        for (count, member) in self.fates(arg, object)?.iter() {
            let guard = Bool::ge(count, &Int::constant(1), &self.scene.vars)?;
            alternatives.push((guard, member.clone().map_or_else(absent, Sym::Member)));
        }
        match alternatives.len() {
            0 => Ok(absent()),
            _ => Ok(Sym::choice(alternatives, &self.scene.vars)?),
        }
    }

    /// When the object exists in the future state and satisfies a predicate there.
    fn in_fates(&mut self, arg: Option<&Sym>, object: &Arc<Object>, holds: Predicate<'_>) -> Answer {
        if self.scene.state().get(&object.key).is_none()
            && self.scene.state().base().unknown().contains(&object.key.kind.kind)
        {
            return Err(Refusal::Unknown(format!("objects of kind `{}` were not read", object.key.kind)));
        }
        let mut yes = Vec::new();
        for (count, member) in self.fates(arg, object)?.iter() {
            if member.as_ref().is_some_and(|m| holds(&m.object)) {
                yes.push(Bool::ge(count, &Int::constant(1), &self.scene.vars)?);
            }
        }
        Ok(Sym::truth(Bool::or(yes)))
    }

    /// The alternatives of one object.
    fn fates(&mut self, arg: Option<&Sym>, object: &Arc<Object>) -> Result<Fates, Refusal> {
        let one = |member| Fates::from([(Int::constant(1), member)]);
        if let Some(Sym::Member(Member { fate: Some((id, at)), .. })) = arg {
            let there = self.scene.class(*id).and_then(|c| c.object_in(c.fates.get(*at)?));
            self.scene.reads_nodes |= object.key.kind.is("Node");
            return Ok(one(there.map(|object| Member { object, fate: Some((*id, *at)) })));
        }
        if let Some((last, fates)) = &self.last_fates
            && Arc::ptr_eq(last, object)
        {
            return Ok(fates.clone());
        }
        self.scene.reads_nodes |= object.key.kind.is("Node");
        let fates = if let Some(failed) = self.scene.failed(&object.key) {
            one(Some(Member { object: failed, fate: None }))
        } else if let Some(here) = self.scene.state().get(&object.key).cloned() {
            match self.class_of(&here)? {
                Some(id) => self.fates_in(id)?,
                None => one(Some(Member { object: here, fate: None })),
            }
        } else {
            one(None)
        };
        self.last_fates = Some((object.clone(), fates.clone()));
        Ok(fates)
    }

    /// The alternatives of the only object of a class.
    fn fates_in(&self, id: ClassId) -> Result<Fates, Refusal> {
        let Some(class) = self.scene.class(id) else { return Ok(Fates::from([])) };
        if class.total > 1 {
            return Err(Refusal::FinerIdentity);
        }
        let fates = class.fates.iter().zip(&class.counts).enumerate();
        let fates = fates.map(|(at, (fate, count))| {
            (count.clone(), class.object_in(fate).map(|object| Member { object, fate: Some((id, at)) }))
        });
        Ok(fates.collect())
    }

    /// Pods of a namespace that a selector means, existing and new.
    pub(crate) fn selected(&mut self, ns: &Str, selector: Option<Selector>, holds: Predicate<'_>) -> Answer {
        let Some(selector) = selector else { return Ok(Sym::Bag(Vec::new())) };
        let groups = self.scene.selected(ns, &selector, |scene| {
            let state = scene.state();
            let pods = state.pods_matching(ns, &selector);
            let heirs = suture_model::effects::heirs(state, &pods).into_iter();
            let heirs: BTreeSet<Key> = heirs.map(|set| suture_model::effects::group_name(state, set)).collect();
            let mut groups = scene.groups_of(pods);
            groups.extend(heirs);
            let makers = state.making(Kind::deciding(), ns, &selector);
            groups.extend(makers.into_iter().map(|o| suture_model::effects::group_name(state, o)));
            groups
        });
        let ns = ns.clone();
        let (first, others) = self.scene.encoded_first(&groups)?;
        let found = self.pods_of(&first, &|pod| pod.key.ns == ns && selector.matches(pod.labels()) && holds(pod))?;
        Ok(match (found, others) {
            (Sym::Bag(mut items), Some(count)) => {
                items.push(Item { count, value: Sym::Open });
                Sym::Bag(items)
            }
            (found, _) => found,
        })
    }

    /// Pods below an object by controller references, existing and new; what is in between may go.
    pub(crate) fn owned(&mut self, func: Func, values: &[Value], object: &Arc<Object>) -> Answer {
        self.known_pods(func, values)?;
        let state = self.scene.state();
        let mut between: Vec<Arc<Object>> = Vec::new();
        let mut open = vec![object.clone()];
        while let Some(owner) = open.pop() {
            between.push(owner.clone());
            let controlled = |o: &&Arc<Object>| o.controller().is_some_and(|c| c.uid == owner.uid);
            let children = state.owned_by(&owner.uid).into_iter().filter(controlled).filter(|o| !o.key.kind.is("Pod"));
            for child in children.filter(|o| o.key != object.key && !between.iter().any(|b| b.key == o.key)) {
                open.push(child.clone());
            }
        }
        between.retain(|o| o.key != object.key && self.scene.may_go(o));
        if between.is_empty() {
            return self.owned_in(state, object);
        }
        let mut alternatives = Vec::new();
        for (guard, state) in self.cases(func, between, &BTreeSet::new())? {
            alternatives.push((guard, self.owned_in(&state, object)?));
        }
        Ok(Sym::choice(alternatives, &self.scene.vars)?)
    }

    /// Pods below an object where this is what is in between.
    fn owned_in(&mut self, state: &State<'a>, object: &Arc<Object>) -> Answer {
        let existing: BTreeSet<Key> = model::pods_owned_by(state, object).into_iter().map(|p| p.key.clone()).collect();
        let mut groups = self.scene.groups_of(existing.iter().filter_map(|key| state.get(key)));
        // who makes its pods is told by the owners that it has there, not by those that it had
        let there = state.get(&object.key).filter(|there| there.uid == object.uid).unwrap_or(object);
        let mut below: Vec<Arc<Object>> = vec![there.clone()];
        let here = |o: &Object| object.key.ns.is_empty() || o.key.ns == object.key.ns;
        let controlled = |o: &&Arc<Object>| here(o) && o.controller().is_some_and(|c| c.uid == object.uid);
        below.extend(state.owned_by(&object.uid).into_iter().filter(controlled).cloned());
        for workload in below.iter().filter(|o| o.key.kind.has(KindTraits::decides)) {
            groups.insert(suture_model::effects::group_name(self.scene.state(), workload));
        }
        let uids: BTreeSet<Str> = below.iter().map(|o| o.uid.clone()).collect();
        self.pods_of(&groups, &|pod| {
            existing.contains(&pod.key) || here(pod) && pod.controller().is_some_and(|c| uids.contains(&c.uid))
        })
    }

    /// The pods of these groups that satisfy a predicate, by class and fate.
    fn pods_of(&mut self, groups: &BTreeSet<Key>, holds: Predicate<'_>) -> Answer {
        let mut items = Vec::new();
        for name in groups {
            self.known_scalers(name)?;
            let group = self.scene.add_group(name)?;
            let classes = self.scene.encoded_groups().get(group).map_or(0, |c| c.classes.len());
            for class in 0..classes {
                let Some(class_ref) = self.scene.class((group, class)) else { continue };
                for (at, (fate, count)) in class_ref.fates.iter().zip(&class_ref.counts).enumerate() {
                    let Some(object) = class_ref.object_in(fate).filter(|o| o.key.kind.is("Pod") && holds(o)) else {
                        continue;
                    };
                    let member = Member { object, fate: Some(((group, class), at)) };
                    items.push(Item { count: count.clone(), value: Sym::Member(member) });
                }
            }
        }
        Ok(Sym::Bag(items))
    }

    /// The topmost workloads of a namespace: what makes pods as it is here, pods by what makes them in each fate. Where a
    /// live one may go, which others are topmost depends on it.
    fn workloads(&mut self, func: Func, values: &[Value], ns: &Str) -> Answer {
        self.known_pods(func, values)?;
        let adapted = self.scene.state().base().adapters().kinds();
        for kind in Kind::with(KindTraits::runs_pods).chain(adapted).filter(|kind| !kind.is("Pod")) {
            if self.scene.state().list(&kind, Some(ns)).into_iter().any(|o| o.live() && self.scene.may_go(o)) {
                return Err(Refusal::NotLinear(func.name().to_owned()));
            }
        }
        let list = match self.concretely(func, values)? {
            Sym::Known(Value::List(list)) => list,
            other => return Ok(other),
        };
        let state = self.scene.state();
        let is_pod = |o: &Arc<Object>| o.key.kind.is("Pod");
        let (mut pods, others): (Vec<_>, Vec<_>) = list.iter().filter_map(|v| v.as_object().cloned()).partition(is_pod);
        // one that is written may be released, or adopted
        let written = state.delta().values().flatten().filter(|o| o.key.ns == *ns);
        for object in written {
            match is_pod(object) {
                true => pods.push(object.clone()),
                false => pods.extend(state.owned_by(&object.uid).into_iter().filter(|o| is_pod(o)).cloned()),
            }
        }
        let groups = self.scene.groups_of(&pods);
        let mut items = self.expand(others, &Object::live)?;
        if let Sym::Bag(pods) = self.pods_of(&groups, &|pod| pod.key.ns == *ns && model::is_workload(state, pod))? {
            items.extend(pods);
        }
        Ok(Sym::Bag(items))
    }

    /// The live objects that need another: pods, existing and new, by what they name in each fate.
    fn referrers(&mut self, func: Func, values: &[Value], target: &Arc<Object>) -> Answer {
        let list = match self.concretely(func, values)? {
            Sym::Known(Value::List(list)) => list,
            other => return Ok(other),
        };
        let state = self.scene.state();
        let is_pod = |o: &Arc<Object>| o.key.kind.is("Pod");
        let (pods, others): (Vec<_>, Vec<_>) = list.iter().filter_map(|v| v.as_object().cloned()).partition(is_pod);
        let mut groups = self.scene.groups_of(&pods);
        for maker in state.referrers(&target.key).into_iter().filter(|o| o.key.kind.has(KindTraits::decides)) {
            groups.insert(suture_model::effects::group_name(state, maker));
        }
        let is_claim = target.key.kind.is("PersistentVolumeClaim");
        if is_claim && self.name_their_own(&groups)? {
            return Err(Refusal::FinerIdentity);
        }
        let adapters = state.base().adapters().as_ref();
        let mut items = self.expand(others, &Object::live)?;
        let needs = |pod: &Object| {
            let names = references(pod, adapters)
                .into_iter()
                .any(|r| r.target.means(&target.key) && !r.write && (is_claim || (r.needed && !r.optional)));
            names && stays_in_use(state, pod) && !(is_claim && model::goes_with_pod(state, pod, target))
        };
        if let Sym::Bag(pods) = self.pods_of(&groups, &needs)? {
            items.extend(pods);
        }
        Ok(Sym::Bag(items))
    }

    /// Whether one of several pods that are taken together, as they are now, names a claim by its own name.
    fn name_their_own(&mut self, groups: &BTreeSet<Key>) -> Result<bool, Refusal> {
        let state = self.scene.state();
        let Sym::Bag(items) = self.pods_of(groups, &|pod| names_its_own(pod) && state.get(&pod.key).is_some())? else {
            return Ok(false);
        };
        let classes = items.iter().filter_map(|item| match &item.value {
            Sym::Member(member) => self.scene.class(member.fate?.0),
            _ => None,
        });
        Ok(classes.into_iter().any(|class| class.total > 1))
    }

    /// A function of routes, by every way in which what decides their class may be there.
    fn by_class(&mut self, func: Func, values: &[Value]) -> Answer {
        let state = self.scene.state();
        let kinds = Kind::with(KindTraits::is_route_class);
        let mut classes: Vec<_> = kinds.flat_map(|kind| state.list(&kind, None)).cloned().collect();
        classes.retain(|o| self.scene.may_go(o));
        self.by_cases(func, values, classes, &BTreeSet::new())
    }

    /// A known list with each object in the fates in which it lives.
    pub(crate) fn living(&mut self, list: Sym) -> Answer {
        match list {
            Sym::Known(Value::List(list)) => {
                let objects = list.iter().filter_map(|v| v.as_object().cloned()).collect();
                Ok(Sym::Bag(self.expand(objects, &Object::live)?))
            }
            other => Ok(other),
        }
    }

    /// A list that the concrete cluster gives, each object in the fates that satisfy a predicate.
    pub(crate) fn listed(&mut self, func: Func, values: &[Value], holds: Predicate<'_>) -> Answer {
        match self.concretely(func, values)? {
            Sym::Known(Value::List(list)) => {
                let of_nodes = matches!(relations(func).inverse, Inverse::Nodes | Inverse::Placement);
                if of_nodes && self.plain_nodes(&list) {
                    return Ok(Sym::Known(Value::List(list)));
                }
                let objects = list.iter().filter_map(|v| v.as_object().cloned()).collect();
                Ok(Sym::Bag(self.expand(objects, holds)?))
            }
            other => Ok(other),
        }
    }

    /// Whether these nodes are in every future as they are here; no outage takes one of them.
    fn plain_nodes(&mut self, list: &ListValue) -> bool {
        let ListValue::Objects(nodes) = list else { return false };
        self.scene.reads_nodes |= !nodes.is_empty();
        let plain = |n: &Arc<Object>| n.live() && n.owners().is_empty() && n.key.ns.is_empty();
        self.scene.view.outage.nodes.is_empty() && nodes.iter().all(plain)
    }

    fn expand(&mut self, objects: Vec<Arc<Object>>, holds: Predicate<'_>) -> Result<Vec<Item>, Refusal> {
        let mut items = Vec::new();
        let mut by_class: BTreeMap<ClassId, BTreeMap<Key, i64>> = BTreeMap::new();
        for object in objects {
            self.scene.reads_nodes |= object.key.kind.is("Node");
            if let Some(failed) = self.scene.failed(&object.key) {
                let member = Member { object: failed, fate: None };
                items.push(Item { count: Int::constant(1), value: Sym::Member(member) });
                continue;
            }
            match self.class_of(&object)? {
                None if holds(&object) => {
                    let member = Member { object, fate: None };
                    items.push(Item { count: Int::constant(1), value: Sym::Member(member) });
                }
                None => {}
                Some(class) => *by_class.entry(class).or_default().entry(object.key.clone()).or_default() += 1,
            }
        }
        for (id, members) in by_class {
            let Some(class) = self.scene.class(id) else { continue };
            // an object may be in the list several times
            let times = members.values().next().copied().unwrap_or(1);
            if class.entities.len() != members.len() || members.values().any(|t| *t != times) {
                return Err(Refusal::FinerIdentity);
            }
            for (at, (fate, count)) in class.fates.iter().zip(&class.counts).enumerate() {
                let Some(object) = class.object_in(fate).filter(|o| holds(o)) else { continue };
                let member = Member { object, fate: Some((id, at)) };
                items.push(Item { count: count.scale(times)?, value: Sym::Member(member) });
            }
        }
        Ok(items)
    }

    /// The owner references that resolve to nothing in the future state.
    fn unresolved(&mut self, func: Func, values: &[Value], object: &Arc<Object>) -> Answer {
        let Sym::Known(Value::List(dangling)) = self.concretely(func, values)? else {
            return Err(Refusal::NotLinear(func.name().to_owned()));
        };
        let mut items: Vec<Item> =
            dangling.iter().map(|v| Item { count: Int::constant(1), value: Sym::Known(v) }).collect();
        for owner in object.owners() {
            let Some(solid) = model::owner_object(self.scene.state(), object, owner).cloned() else { continue };
            let mut gone = Int::constant(0);
            for (count, member) in self.fates(None, &solid)?.iter() {
                if member.as_ref().is_none_or(|member| member.object.uid != owner.uid) {
                    gone = gone.add(count)?;
                }
            }
            if gone.as_constant() != Some(0) {
                items.push(Item { count: gone, value: Sym::Known(Value::Owner(Arc::new(owner.clone()))) });
            }
        }
        Ok(Sym::Bag(items))
    }
}
