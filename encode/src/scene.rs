//! One future set, prepared for counting: the groups it touches, split into classes of interchangeable entities, with a
//! bounded variable for how many of a class met each fate.
//!
//! | model | here |
//! |---|---|
//! | an entity | one of a [`Class`]: same sets, same fates, same body (and node, and name, where the [`Grain`] asks) |
//! | which fate it met | how many of its class met that fate |
//! | a limit | an assertion over those counts, labelled |
//!
//! Groups are added when something first asks about one of their entities: what nothing reads is not encoded.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::deletion::Expected;
use suture_model::effects::{Memo, View, group, group_name, own};
use suture_model::futures::{Entity, Fate, Faults, Group, LimitLabel, Outage};
use suture_model::interpret::{Choice, failed_node};
use suture_model::object::{Body, Key, Object};
use suture_model::scenario::Scenario;
use suture_model::selector::Selector;
use suture_model::state::State;
use suture_model::value::Str;

pub use crate::class::GroupId;
use crate::class::{Class, ClassId, EncodedGroup, Members, Prepared, Symmetric, one_by_one};
use crate::preparations::Preparation;
pub use crate::preparations::Preparations;
use crate::problem::Label;
use crate::term::{Assignment, Bool, Int, TermError, Vars};
use counting::Counting;

mod counting;
mod kept;

/// So many groups that a selector means are encoded where the rest is left open: with fewer, pods that go or are lost with
/// a node would be most of them.
const GROUPS_ENCODED_FIRST: usize = 8;
/// With more classes in its group, an object is encoded by itself there.
const CLASSES_ENCODED_WHOLE: usize = 16;
/// No list of the future is longer.
const OPEN_MAX: i64 = 1 << 32;

/// How finely entities are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grain {
    /// Every entity by itself: the invariant reads names.
    pub identity: bool,
    /// Entities on different nodes: the invariant reads nodes, or nodes fail.
    pub nodes: bool,
    /// This one by itself: the instance.
    pub instance_key: Option<Key>,
}

/// A scenario under a view, with what has been encoded of it so far.
pub struct Scene<'s, 'a> {
    /// What the watch shows.
    pub before: &'s State<'a>,
    /// The concrete cluster from which effects start.
    pub scenario: &'s Scenario<'a>,
    /// Moment and outage.
    pub view: View,
    /// How finely entities are told apart.
    pub grain: Grain,
    /// The variables.
    pub vars: Vars,
    /// What limits the counts.
    pub assertions: Vec<(Label, Bool)>,
    /// Whether the invariant looks at nodes, not only at pods on them.
    pub reads_nodes: bool,
    encoded_groups: Vec<EncodedGroup>,
    by_name: BTreeMap<GroupId, usize>,
    /// Objects that are encoded by themselves, out of their groups.
    alone: BTreeMap<Key, usize>,
    preparations: &'s Preparations,
    /// What effects worked out about the scenario.
    pub memo: Rc<Memo>,
    controller_group: BTreeMap<Str, Key>,
    expected: Expected<'s, 'a>,
    labels: Vec<LimitLabel>,
    /// Whether nodes or zones fail in some question about the instance.
    may_fail: bool,
    /// Whether somebody may evict pods in some question about the instance.
    may_evict: bool,
    /// The objects that were read, are no pods and stay as they are unless a pod above them is evicted.
    pub(crate) owned_read: BTreeSet<Key>,
    /// Whether it is open which nodes fail: the outage says how many, under names that no node has.
    pub(crate) whichever_fails: bool,
    /// Whether only the first of many groups that a selector means are encoded.
    rest_open: bool,
    /// Whether some were left open.
    pub left_open: bool,
}

/// The label of what holds by construction: the fates of a class add up.
pub const STRUCTURE: Label = Label(0);

impl<'s, 'a> Scene<'s, 'a> {
    /// A scene in which nothing is encoded yet.
    pub fn new(
        before: &'s State<'a>,
        scenario: &'s Scenario<'a>,
        view: View,
        faults: Faults,
        grain: Grain,
        preparations: &'s Preparations,
    ) -> Self {
        Self {
            before,
            scenario,
            view,
            grain,
            vars: Vars::new(),
            assertions: Vec::new(),
            reads_nodes: false,
            encoded_groups: Vec::new(),
            by_name: BTreeMap::new(),
            alone: BTreeMap::new(),
            preparations,
            memo: preparations.memo(scenario),
            controller_group: BTreeMap::new(),
            expected: Expected::new(&scenario.state),
            labels: Vec::new(),
            may_fail: faults.lose_nodes(),
            may_evict: faults.evictions > 0,
            owned_read: BTreeSet::new(),
            whichever_fails: false,
            rest_open: false,
            left_open: false,
        }
    }

    /// The same scene where it is open which nodes fail, at most so many: any pods may be on them. More futures than there
    /// are with any choice of nodes, cheaper than all choices one by one. A proof over them counts once
    /// [`Self::bound_failing`] has bounded how many pods are on what fails.
    pub fn whichever_fails(mut self, nodes: usize) -> Self {
        self.view = View { outage: somewhere(nodes), coarse: true, places: false, ..self.view };
        self.whichever_fails = true;
        self
    }

    /// The same scene where of many groups that a selector means only the first are encoded: there may be any number of the
    /// other pods. More futures than there are; a few pods are enough for most proofs that some are left.
    pub fn leaving_rest_open(self) -> Self {
        Self { rest_open: true, ..self }
    }

    /// Those of the groups that a selector means which are encoded, and how many other pods there may be.
    pub(crate) fn encoded_first(&mut self, groups: &BTreeSet<Key>) -> Result<(BTreeSet<Key>, Option<Int>), TermError> {
        if !self.rest_open || groups.len() <= GROUPS_ENCODED_FIRST {
            return Ok((groups.clone(), None));
        }
        self.left_open = true;
        let others = self.open_count()?;
        Ok((groups.iter().take(GROUPS_ENCODED_FIRST).cloned().collect(), Some(others)))
    }

    /// A number of which nothing is known.
    pub(crate) fn open_count(&mut self) -> Result<Int, TermError> {
        Ok(Int::var(self.vars.fresh(0, OPEN_MAX, "left open")?))
    }

    /// Bounds how many of the pods that were read are on the nodes that fail; `most` is given how many there are on each
    /// node. Returns whether the scene is one of more futures than there are: it is none where nodes are told apart, or
    /// where pods of DaemonSets, which are made for their nodes, were read.
    pub fn bound_failing(&mut self, most: impl FnOnce(&BTreeMap<&Str, i64>) -> i64) -> Result<bool, TermError> {
        let by_node = |id: &GroupId| matches!(id, GroupId::Pods(name) if name.kind.is("DaemonSet"));
        if !self.view.coarse || self.reads_nodes || self.by_name.keys().any(by_node) {
            return Ok(false);
        }
        let mut on_node: BTreeMap<&Str, i64> = BTreeMap::new();
        let mut failing = Vec::new();
        for encoded in &self.encoded_groups {
            for (class, from) in encoded.classes.iter().filter_map(|c| Some((c, c.failing_from?))) {
                failing.extend(class.counts.iter().skip(from).map(|count| (count, 1)));
                let entities = class.entities.iter().filter_map(|at| encoded.group.entities.get(*at));
                for pod in entities.filter_map(|entity| entity.object.as_ref()) {
                    *on_node.entry(&pod.node).or_default() += 1;
                }
            }
        }
        let most = Int::constant(most(&on_node));
        self.assertions.push((STRUCTURE, Bool::le(&Int::weighted(failing)?, &most, &self.vars)?));
        Ok(true)
    }

    /// The concrete cluster.
    pub fn state(&self) -> &'s State<'a> {
        &self.scenario.state
    }

    /// Whether an object is on its way out, or may go with what owns or holds it.
    pub fn may_go(&self, object: &Object) -> bool {
        !object.live() || self.expected.goes(object) || object.has_pod_as_owner()
    }

    /// The groups encoded so far.
    pub fn encoded_groups(&self) -> &[EncodedGroup] {
        &self.encoded_groups
    }

    /// One class.
    pub fn class(&self, id: ClassId) -> Option<&Class> {
        self.encoded_groups.get(id.0)?.classes.get(id.1)
    }

    /// What a label of an assertion means; `None` for what holds by construction.
    pub fn meaning(&self, label: Label) -> Option<&LimitLabel> {
        self.labels.get((label.0 as usize).checked_sub(1)?)
    }

    /// The node as it is when it has failed in this outage.
    pub fn failed(&self, key: &Key) -> Option<Arc<Object>> {
        let fails = key.kind.is("Node") && self.view.outage.nodes.contains(&key.name);
        fails.then(|| self.state().get(key).map(|node| Arc::new(failed_node(node)))).flatten()
    }

    /// The class of an object that exists in the scenario; `None` when it simply stays as it is.
    pub fn class_of(&mut self, object: &Object) -> Result<Option<ClassId>, TermError> {
        let id = if object.key.kind.is("Pod") {
            GroupId::Pods(self.group_of(object))
        } else if self.may_go(object) {
            GroupId::Own(object.key.clone())
        } else {
            if self.may_evict && !object.owners().is_empty() {
                self.owned_read.insert(object.key.clone());
            }
            return Ok(None);
        };
        if let Some(at) = self.add_alone(&id, &object.key)? {
            return Ok(Some((at, 0)));
        }
        let at = self.add(id)?;
        let Some(encoded) = self.encoded_groups.get(at) else { return Ok(None) };
        let Some((_, class)) = encoded.prepared.entity_of(&object.key) else { return Ok(None) };
        // the instance has a class of its own, the last
        let alone = self.grain.instance_key.as_ref() == Some(&object.key)
            && encoded.classes.len() > encoded.prepared.classes.len();
        Ok(Some((at, if alone { encoded.classes.len() - 1 } else { class })))
    }

    /// The objects that nothing in the scene tells from this one, itself included, beside its being the instance; `None`
    /// when nothing read what may become of it.
    pub fn symmetric_entities(&self, key: &Key) -> Option<Symmetric> {
        self.encoded_groups.iter().find_map(|encoded| Symmetric::of(&encoded.prepared, key))
    }

    /// The name of a pod's group.
    pub fn group_of(&mut self, pod: &Object) -> Key {
        let Some(controller) = pod.controller().map(|c| c.uid.clone()) else {
            return group_name(self.state(), pod);
        };
        if let Some(known) = self.controller_group.get(&controller)
            && *known != pod.key
        {
            return known.clone();
        }
        let name = group_name(self.state(), pod);
        // a custom resource may decide about some pods of a controller only
        if name != pod.key && name.kind.builtin_namespaced().is_some() {
            self.controller_group.insert(controller, name.clone());
        }
        name
    }

    /// The names of the groups of the pods that a selector means in a namespace: worked out once.
    pub fn selected(
        &mut self,
        ns: &Str,
        selector: &Selector,
        find: impl FnOnce(&mut Self) -> BTreeSet<Key>,
    ) -> Rc<BTreeSet<Key>> {
        let key = (std::ptr::from_ref(self.scenario) as usize, ns.clone(), selector.clone());
        let known = self.preparations.selected.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = Rc::new(find(self));
            self.preparations.selected.borrow_mut().insert(key, found.clone());
            found
        })
    }

    /// The names of the groups of these pods.
    pub fn groups_of<'o>(&mut self, pods: impl IntoIterator<Item = &'o Arc<Object>>) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        // pods of one body have one controller, and with it one group; those that no controller has are told by their names
        let mut shared: Option<&Arc<Body>> = None;
        for pod in pods {
            if shared.is_some_and(|body| Arc::ptr_eq(body, &pod.body)) {
                continue;
            }
            let name = self.group_of(pod);
            shared = (pod.controller().is_some() && name != pod.key).then_some(&pod.body);
            found.insert(name);
        }
        found
    }

    /// Encodes the group of this name, if it is not yet, and returns its index.
    pub fn add_group(&mut self, name: &Key) -> Result<usize, TermError> {
        self.add(GroupId::Pods(name.clone()))
    }

    fn add(&mut self, id: GroupId) -> Result<usize, TermError> {
        if let Some(known) = self.by_name.get(&id) {
            return Ok(*known);
        }
        let prepared = self.prepare(&id);
        let at = self.encoded_groups.len();
        let (GroupId::Pods(name) | GroupId::Own(name)) = &id;
        let classes = self.classes(&prepared, name)?;
        self.by_name.insert(id, at);
        self.add_limits(&prepared.group, &classes)?;
        self.encoded_groups.push(EncodedGroup { group: prepared.group.clone(), classes, prepared });
        Ok(at)
    }

    /// Encodes an object of a group of very many classes by itself, if the rest may be left open: it meets any of its fates,
    /// whatever the others of its group do.
    fn add_alone(&mut self, id: &GroupId, key: &Key) -> Result<Option<usize>, TermError> {
        // which pods fail with their nodes is bounded over all of a group
        if !self.rest_open || self.may_fail || self.by_name.contains_key(id) {
            return Ok(None);
        }
        if let Some(known) = self.alone.get(key) {
            return Ok(Some(*known));
        }
        let prepared = self.prepare(id);
        if prepared.classes.len() <= CLASSES_ENCODED_WHOLE {
            return Ok(None);
        }
        let entity = prepared.entity_of(key).and_then(|(at, _)| Some((at, prepared.group.entities.get(at)?)));
        let Some((entity, Entity { fates, object, count, .. })) = entity else { return Ok(None) };
        let at = self.encoded_groups.len();
        let (entities, counts) = (vec![entity].into(), self.counts(fates, *count, key, 0)?);
        let (fates, object) = (fates.clone(), object.clone());
        let class = Class { entities, fates, object, counts, total: *count, failing_from: None };
        self.encoded_groups.push(EncodedGroup { group: prepared.group.clone(), classes: vec![class], prepared });
        self.alone.insert(key.clone(), at);
        self.left_open = true;
        Ok(Some(at))
    }

    /// A group and its quotient.
    fn prepare(&self, id: &GroupId) -> Rc<Prepared> {
        let outage = &self.view.outage;
        let of_pods = matches!(id, GroupId::Pods(name) if !name.kind.is("DaemonSet"));
        if of_pods && self.view.coarse && self.may_fail {
            // it does not matter to the others which nodes fail, but to the pods of DaemonSets
            let view = View { outage: somewhere(outage.nodes.len().max(1)), ..self.view.clone() };
            let somewhere = self.prepare_in(id, &view, true);
            if self.whichever_fails {
                return Rc::new(somewhere.whichever_fails(&self.memo));
            }
            if !outage.nodes.is_empty() {
                return somewhere.failing(&self.memo, &outage.nodes);
            }
            let key = self.preparation(id, &self.view);
            let mut groups = self.preparations.groups.borrow_mut();
            return groups.entry(key).or_insert_with(|| Rc::new(somewhere.calm())).clone();
        }
        // every outage is looked at once
        self.prepare_in(id, &self.view, outage.nodes.is_empty())
    }

    fn preparation(&self, id: &GroupId, view: &View) -> Preparation {
        let scenario = std::ptr::from_ref(self.scenario) as usize;
        (scenario, id.clone(), view.clone(), self.grain.identity, self.grain.nodes)
    }

    /// [`Self::prepare`] under a view; `keeps` whether it will be asked for again.
    fn prepare_in(&self, id: &GroupId, view: &View, keeps: bool) -> Rc<Prepared> {
        let key = self.preparation(id, view);
        if let Some(known) = self.preparations.groups.borrow().get(&key) {
            return known.clone();
        }
        let group = match id {
            GroupId::Pods(name) => group(self.scenario, &self.memo, name, view),
            GroupId::Own(key) => own(self.scenario, &self.memo, key, view),
        };
        let group = if self.grain.identity { one_by_one(group) } else { group };
        let mut classes: Vec<Vec<usize>> = Vec::new();
        let mut index: BTreeMap<Signature, usize> = BTreeMap::new();
        let mut last: Option<(&Entity, usize)> = None;
        for (at, entity) in group.entities.iter().enumerate() {
            let next = classes.len();
            let class = match last.filter(|(like, _)| self.plainly_alike(like, entity, view)) {
                Some((_, class)) => class,
                None => *index.entry(self.signature(entity, at, view)).or_insert(next),
            };
            last = Some((entity, class));
            match classes.get_mut(class) {
                Some(members) => members.push(at),
                None => classes.push(vec![at]),
            }
        }
        let prepared = Rc::new(Prepared::new(group, classes));
        if keeps {
            self.preparations.groups.borrow_mut().insert(key, prepared.clone());
        }
        prepared
    }

    /// The classes with their variables; the instance, if it is among others, in one of its own.
    fn classes(&mut self, prepared: &Prepared, name: &Key) -> Result<Vec<Class>, TermError> {
        let group = &prepared.group;
        let mut all = prepared.classes.clone();
        let mut alone = None;
        if let Some((entity, class)) = self.grain.instance_key.as_ref().and_then(|key| prepared.position_of(key)) {
            let others = all.get_mut(class).filter(|members| members.entities.len() > 1);
            if let Some(others) = others {
                let taken = others.take(group, entity);
                all.push(taken);
                alone = Some((all.len() - 1, class));
            }
        }
        let mut classes = Vec::new();
        for (number, Members { entities, total }) in all.into_iter().enumerate() {
            let first = entities.iter().next().and_then(|at| group.entities.get(*at));
            let class = alone.filter(|(at, _)| *at == number).map_or(number, |(_, class)| class);
            let (open, failing_from) = prepared.open.get(&class).cloned().unzip();
            let fates = open.or_else(|| first.map(|e| e.fates.clone())).unwrap_or_default();
            let object = first.and_then(|e| e.object.clone());
            let counts = self.counts(&fates, total, name, number)?;
            classes.push(Class { entities, fates, object, counts, total, failing_from });
        }
        Ok(classes)
    }

    /// Whether two entities have the same signature, for those where that is seen at once: equals that nothing changed.
    fn plainly_alike(&self, a: &Entity, b: &Entity, view: &View) -> bool {
        let (Some(x), Some(y)) = (&a.object, &b.object) else { return false };
        let unchanged = |o: &Arc<Object>| !self.state().may_differ(o) && self.before.delta().is_empty();
        let same_fates = || {
            let same = |(f, g): (&Fate, &Fate)| f.kind == g.kind && f.place == g.place;
            a.fates.len() == b.fates.len() && a.fates.iter().zip(b.fates.iter()).all(same)
        };
        let down = |o: &Object| view.outage.nodes.contains(&o.node);
        Arc::ptr_eq(&x.body, &y.body)
            && !(self.grain.identity || self.grain.nodes)
            && (Rc::ptr_eq(&a.sets, &b.sets) || a.sets == b.sets)
            && (Rc::ptr_eq(&a.fates, &b.fates) || same_fates())
            && x.in_deletion_closure == y.in_deletion_closure
            && down(x) == down(y)
            && unchanged(x)
            && unchanged(y)
    }

    fn signature(&self, entity: &Entity, at: usize, view: &View) -> Signature {
        let object = entity.object.as_ref();
        // what the scenario does not change is as it was before
        let differs = |key: &&Key| self.state().delta().contains_key(*key) || self.before.delta().contains_key(*key);
        let changed = entity.key().filter(differs);
        let before = changed.and_then(|key| self.before.get(key));
        let alone = self.grain.identity || entity.object.is_none();
        let mut sets = entity.sets.to_vec();
        sets.sort();
        let down = object.is_some_and(|o| view.outage.nodes.contains(&o.node));
        Signature {
            alone: alone.then_some(at),
            sets: sets.iter().map(|s| s.0).collect(),
            fates: entity.fates.iter().map(|f| (f.kind, f.place)).collect(),
            body: object.map(|o| o.body.clone()),
            // a body that the change replaced tells entities apart even when the new ones are alike
            before: before.filter(|b| object.is_none_or(|o| !Arc::ptr_eq(&o.body, &b.body))).map(|b| b.body.clone()),
            node: object.filter(|_| self.grain.nodes).map(|o| o.node.clone()),
            down,
            in_deletion_closure: object.is_some_and(|o| o.in_deletion_closure),
        }
    }

    /// A variable per fate of a group's class; the last one is what is left.
    fn counts(&mut self, fates: &[Fate], total: u32, group: &Key, class: usize) -> Result<Vec<Int>, TermError> {
        let total = i64::from(total);
        let Some((_, first)) = fates.split_last() else { return Ok(Vec::new()) };
        let fresh =
            |fate: &Fate| Ok(Int::var(self.vars.fresh(0, total, format!("{group}#{class} {:?}", fate.kind))?));
        let mut counts = first.iter().map(fresh).collect::<Result<Vec<Int>, TermError>>()?;
        let all = Int::constant(total);
        let rest = Int::weighted(counts.iter().map(|count| (count, -1)).chain([(&all, 1)]))?;
        counts.push(rest.clone());
        if fates.len() > 2 {
            let adds_up = Bool::ge(&rest, &Int::constant(0), &self.vars)?;
            self.assertions.push((STRUCTURE, adds_up));
        }
        Ok(counts)
    }

    fn add_limits(&mut self, group: &Group, classes: &[Class]) -> Result<(), TermError> {
        let counting = Counting::of(group, classes);
        for limit in &group.limits {
            let mut alternatives = Vec::new();
            for linear in &limit.any_of {
                let mut terms: Vec<(Int, i64)> = Vec::new();
                for (coefficient, counted) in &linear.terms {
                    terms.extend(counting.counts(counted).into_iter().map(|count| (count.clone(), *coefficient)));
                }
                let sum = Int::weighted(terms.iter().map(|(int, factor)| (int, *factor)))?;
                alternatives.push(Bool::le(&sum, &Int::constant(linear.at_most), &self.vars)?);
            }
            let holds = Bool::or(alternatives);
            if holds.is_true() {
                continue;
            }
            self.labels.push(limit.label.clone());
            let label = Label(u32::try_from(self.labels.len()).unwrap_or(u32::MAX));
            self.assertions.push((label, holds));
        }
        Ok(())
    }

    /// The choice of fates that an assignment of the variables is: entities of a class in their order take the fates in
    /// theirs.
    pub fn decode(&self, assignment: &Assignment) -> Result<Vec<Choice>, TermError> {
        let mut choices = Vec::new();
        for encoded in &self.encoded_groups {
            let mut choice: Choice = encoded.group.entities.iter().map(|e| vec![0; e.fates.len()]).collect();
            for class in &encoded.classes {
                let mut left = Vec::new();
                for count in &class.counts {
                    left.push(u32::try_from(count.eval(assignment)?.max(0)).unwrap_or(u32::MAX));
                }
                for entity in class.entities.iter() {
                    let mut open = encoded.group.entities.get(*entity).map_or(0, |e| e.count);
                    let Some(numbers) = choice.get_mut(*entity) else { continue };
                    for (number, left) in numbers.iter_mut().zip(&mut left) {
                        let taken = open.min(*left);
                        *number = taken;
                        *left -= taken;
                        open -= taken;
                    }
                }
            }
            choices.push(choice);
        }
        Ok(choices)
    }
}

/// An outage of so many nodes, under names that no node has.
pub(crate) fn somewhere(nodes: usize) -> Outage {
    Outage { nodes: (0..nodes).map(|at| format!("\u{1}{at}").into()).collect(), zones: BTreeSet::new() }
}

/// What makes two entities interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Signature {
    alone: Option<usize>,
    sets: Vec<u32>,
    fates: Vec<(suture_model::futures::FateKind, Option<usize>)>,
    body: Option<Arc<suture_model::object::Body>>,
    before: Option<Arc<suture_model::object::Body>>,
    node: Option<Str>,
    down: bool,
    in_deletion_closure: bool,
}
