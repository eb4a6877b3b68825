//! The classes of a group: entities that no question of a decision tells apart, and how many of each met which fate.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::effects::{Memo, calm, when_down};
use suture_model::futures::{Entity, Fate, Group, Remains};
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::value::Str;

use crate::term::Int;

/// Which group: the pods of a workload, or the fate of one object itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupId {
    /// The group of this name.
    Pods(Key),
    /// The object alone, whatever becomes of its pods.
    Own(Key),
}

/// Where an entity is: group and class.
pub type ClassId = (usize, usize);

/// Some entities of a group by their indexes, in their order. Thousands are shared, also by who leaves one of them out.
#[derive(Clone, Debug)]
pub struct Entities {
    shared: Rc<[usize]>,
    without: Option<usize>,
}

impl Entities {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &usize> {
        self.shared.iter().filter(|at| Some(**at) != self.without)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shared.len() - usize::from(self.without.is_some())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<usize>> for Entities {
    fn from(all: Vec<usize>) -> Self {
        Self { shared: all.into(), without: None }
    }
}

/// Entities that no limit and no reading of the invariant tells apart.
#[derive(Clone, Debug)]
pub struct Class {
    /// The entities, as indexes into the group.
    pub entities: Entities,
    /// The fates of any of them.
    pub fates: Rc<Vec<Fate>>,
    /// The first of them as the state shows it.
    pub(crate) object: Option<Arc<Object>>,
    /// How many of them met each fate.
    pub counts: Vec<Int>,
    /// How many there are.
    pub total: u32,
    /// From which fate on its entities are on nodes that fail, where it is open which nodes do.
    pub(crate) failing_from: Option<usize>,
}

impl Class {
    /// What the first of its entities is in one of its fates.
    pub fn object_in(&self, fate: &Fate) -> Option<Arc<Object>> {
        fate.remains.of(self.object.as_ref())
    }
}

/// A group with its classes.
#[derive(Clone, Debug)]
pub struct EncodedGroup {
    /// The group.
    pub group: Rc<Group>,
    /// Its classes.
    pub classes: Vec<Class>,
    pub(crate) prepared: Rc<Prepared>,
}

impl EncodedGroup {
    /// Whether a state has none of the objects of a class: they are pods to be made, by other names.
    pub(crate) fn is_new_to(&self, class: usize, state: &State<'_>) -> bool {
        let is_new = |entity: &Entity| {
            let mut pods = entity.fates.iter().filter_map(|fate| fate.remains.of(None));
            entity.object.is_none() && pods.all(|pod| state.get(&pod.key).is_none())
        };
        let Some(class) = self.classes.get(class) else { return false };
        class.entities.iter().all(|at| self.group.entities.get(*at).is_some_and(is_new))
    }
}

/// A group and its quotient, as far as it does not depend on the instance: shared by the questions of one decision.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub group: Rc<Group>,
    /// Entities by class, in the order of their first one.
    pub classes: Vec<Members>,
    /// The fates of classes whose entities do not have them in the group, since it is open which nodes fail, and
    /// [`Class::failing_from`].
    pub open: BTreeMap<usize, (Rc<Vec<Fate>>, usize)>,
    /// The entity of each existing object, and its class; worked out when it is asked for.
    positions: OnceCell<BTreeMap<Key, (usize, usize)>>,
}

/// The existing objects of a class: no question about one of them is told from that about another.
#[derive(Clone, Debug)]
pub struct Symmetric {
    prepared: Rc<Prepared>,
    class: usize,
}

impl Symmetric {
    /// Those of the class of this object in a prepared group, if it is in one.
    pub(crate) fn of(prepared: &Rc<Prepared>, key: &Key) -> Option<Self> {
        let (_, class) = prepared.entity_of(key)?;
        Some(Self { prepared: prepared.clone(), class })
    }

    /// Whether an object is among them.
    pub fn has(&self, key: &Key) -> bool {
        self.prepared.entity_of(key).is_some_and(|(_, class)| class == self.class)
    }

    /// Their keys.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let members = self.prepared.classes.get(self.class).into_iter().flat_map(|members| members.entities.iter());
        members.filter_map(|at| self.prepared.group.entities.get(*at)?.key())
    }

    /// Whether these are the same of the same group.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.prepared, &other.prepared) && self.class == other.class
    }
}

/// The entities of a class.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub entities: Entities,
    /// How many there are of them all.
    pub total: u32,
}

impl Members {
    pub fn of(group: &Group, entities: Vec<usize>) -> Self {
        let total = entities.iter().filter_map(|at| group.entities.get(*at)).map(|e| e.count).sum();
        Self { entities: entities.into(), total }
    }

    /// This entity taken out of them.
    pub fn take(&mut self, group: &Group, entity: usize) -> Self {
        let taken = Self::of(group, vec![entity]);
        self.entities.without = Some(entity);
        self.total = self.total.saturating_sub(taken.total);
        taken
    }
}

impl Prepared {
    /// A group in these classes.
    pub fn new(group: Group, classes: Vec<Vec<usize>>) -> Self {
        let classes = classes.into_iter().map(|entities| Members::of(&group, entities)).collect();
        Self::with(Rc::new(group), classes)
    }

    fn with(group: Rc<Group>, classes: Vec<Members>) -> Self {
        Self { group, classes, open: BTreeMap::new(), positions: OnceCell::new() }
    }

    /// The entity of an existing object, and its class.
    pub fn entity_of(&self, key: &Key) -> Option<(usize, usize)> {
        let all = self.positions.get_or_init(|| {
            let by_class = self.classes.iter().enumerate();
            let by_class = by_class.flat_map(|(class, members)| members.entities.iter().map(move |at| (*at, class)));
            let named =
                by_class.filter_map(|(at, class)| Some((self.group.entities.get(at)?.key()?.clone(), (at, class))));
            named.collect()
        });
        all.get(key).copied()
    }

    /// The same group where no node fails.
    pub fn calm(&self) -> Self {
        Self::with(Rc::new(calm(&self.group)), self.classes.clone())
    }

    /// The same group where it is open which nodes fail: each pod keeps its fates, or meets one of those on a failing node.
    pub fn whichever_fails(&self, memo: &Memo) -> Self {
        let mut found = Self::with(self.group.clone(), self.classes.clone());
        for (at, members) in self.classes.iter().enumerate() {
            let mut entities = members.entities.iter().filter_map(|at| self.group.entities.get(*at));
            let Some(bound) = entities.find(|e| e.object.as_ref().is_some_and(|o| !o.node.is_empty())) else {
                continue;
            };
            let differs = |(failing, own): &(Fate, &Fate)| failing != *own;
            let failing = when_down(memo, bound).into_iter().zip(bound.fates.iter()).filter(differs);
            let fates: Vec<Fate> = bound.fates.iter().cloned().chain(failing.map(|(fate, _)| fate)).collect();
            found.open.insert(at, (Rc::new(fates), bound.fates.len()));
        }
        found
    }

    /// The same group where these nodes fail.
    pub fn failing(self: &Rc<Self>, memo: &Memo, nodes: &BTreeSet<Str>) -> Rc<Self> {
        let fails = |entity: &Entity| entity.object.as_ref().is_some_and(|o| nodes.contains(&o.node));
        if !self.group.entities.iter().any(fails) {
            return self.clone();
        }
        let mut group = (*self.group).clone();
        for entity in group.entities.iter_mut().filter(|entity| fails(entity)) {
            entity.fates = Rc::new(when_down(memo, entity));
        }
        let is_down = |at: &usize| group.entities.get(*at).is_some_and(fails);
        let (mut classes, mut failed) = (Vec::with_capacity(self.classes.len() + 1), Vec::new());
        for members in &self.classes {
            let (here, others): (Vec<usize>, Vec<usize>) = members.entities.iter().partition(|at| is_down(at));
            if here.is_empty() || others.is_empty() {
                classes.push(members.clone());
            } else {
                classes.push(Members::of(&group, others));
                failed.push(Members::of(&group, here));
            }
        }
        classes.extend(failed);
        Rc::new(Self::with(Rc::new(group), classes))
    }

    /// The same of the instance, which is seldom in a group.
    pub fn position_of(&self, key: &Key) -> Option<(usize, usize)> {
        let entities = &self.group.entities;
        // what exists in a group is of one kind
        entities.iter().find_map(Entity::key).filter(|first| first.kind == key.kind)?;
        if entities.len() > LOOKED_THROUGH_MAX {
            return self.entity_of(key);
        }
        let at = entities.iter().position(|entity| entity.key() == Some(key))?;
        let class = self.classes.iter().position(|members| members.entities.iter().any(|member| *member == at))?;
        Some((at, class))
    }
}

/// So many entities are looked through for the instance; of more, each may be one.
const LOOKED_THROUGH_MAX: usize = 64;

/// Up to so many new pods of a kind are told apart; any two of them are alike, and their order would be guessed over.
const NEW_APART_MAX: u32 = 8;

/// The group with pods that are not made yet one by one, where they are few.
pub(crate) fn one_by_one(mut group: Group) -> Group {
    let several = |e: &Entity| e.object.is_none() && (2..=NEW_APART_MAX).contains(&e.count);
    if group.entities.iter().any(several) {
        let entities = std::mem::take(&mut group.entities).into_iter();
        group.entities = entities
            .flat_map(
                |e| if several(&e) { (1..=e.count).map(|number| numbered(&e, number)).collect() } else { vec![e] },
            )
            .collect();
    }
    group
}

/// One of the new pods that an entity stands for, under a name of its own.
fn numbered(entity: &Entity, number: u32) -> Entity {
    let named = |o: &Arc<Object>| {
        let name = format!("{}-{number}", o.key.name).into();
        Arc::new(Object { key: Key { name, ..o.key.clone() }, ..(**o).clone() })
    };
    let fates = entity.fates.iter().map(|f| match &f.remains {
        Remains::New(object) => Fate { remains: Remains::New(named(object)), ..f.clone() },
        Remains::Nothing | Remains::Itself | Remains::Changed(_) => f.clone(),
    });
    Entity { count: 1, fates: Rc::new(fates.collect()), ..entity.clone() }
}
