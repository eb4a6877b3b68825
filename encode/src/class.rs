//! The classes of a group: entities that no question of a decision tells apart, and how many of each met which fate.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use suture_model::effects::{Memo, calm, when_down};
use suture_model::futures::{Entity, Fate, Group, Remains};
use suture_model::object::{Key, Object};
use suture_model::value::Str;

use crate::term::Int;

/// Where an entity is: group and class.
pub type ClassId = (usize, usize);

/// Entities that no limit and no reading of the invariant tells apart.
#[derive(Clone, Debug)]
pub struct Class {
    /// The entities, as indexes into the group.
    pub entities: Rc<[usize]>,
    /// The fates of any of them.
    pub fates: Rc<Vec<Fate>>,
    /// The first of them as the state shows it.
    pub(crate) object: Option<Arc<Object>>,
    /// How many of them met each fate.
    pub counts: Vec<Int>,
    /// How many there are.
    pub total: u32,
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

/// A group and its quotient, as far as it does not depend on the instance: shared by the questions of one decision.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub group: Rc<Group>,
    /// Entities by class, in the order of their first one.
    pub classes: Vec<Members>,
    /// The fates of classes whose entities do not have them in the group: their nodes fail.
    pub down: BTreeMap<usize, Rc<Vec<Fate>>>,
    /// The entity of each existing object, and its class; worked out when it is asked for.
    positions: OnceCell<BTreeMap<Key, (usize, usize)>>,
}

/// The entities of a class.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub entities: Rc<[usize]>,
    /// How many there are of them all.
    pub total: u32,
}

impl Members {
    pub fn of(group: &Group, entities: Vec<usize>) -> Self {
        let total = entities.iter().filter_map(|at| group.entities.get(*at)).map(|e| e.count).sum();
        Self { entities: entities.into(), total }
    }
}

impl Prepared {
    /// A group in these classes.
    pub fn new(group: Group, classes: Vec<Vec<usize>>) -> Self {
        let classes = classes.into_iter().map(|entities| Members::of(&group, entities)).collect();
        Self { group: Rc::new(group), classes, down: BTreeMap::new(), positions: OnceCell::new() }
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
        let group = Rc::new(calm(&self.group));
        Self { group, classes: self.classes.clone(), down: BTreeMap::new(), positions: OnceCell::new() }
    }

    /// The same group where these nodes fail.
    pub fn failing(&self, memo: &Memo, nodes: &BTreeSet<Str>) -> Self {
        let mut classes = Vec::with_capacity(self.classes.len() + 1);
        let (mut failed, mut down) = (Vec::new(), BTreeMap::new());
        for members in &self.classes {
            let entity = |at: &usize| self.group.entities.get(*at);
            let fails =
                |at: &usize| entity(at).and_then(|e| e.object.as_ref()).is_some_and(|o| nodes.contains(&o.node));
            let (here, others): (Vec<usize>, Vec<usize>) = members.entities.iter().partition(|at| fails(at));
            let fates = here.first().and_then(entity).map(|first| Rc::new(when_down(memo, first)));
            match fates {
                Some(fates) if others.is_empty() => {
                    down.insert(classes.len(), fates);
                    classes.push(members.clone());
                }
                Some(fates) => {
                    classes.push(Members::of(&self.group, others));
                    failed.push((here, fates));
                }
                None => classes.push(members.clone()),
            }
        }
        for (members, fates) in failed {
            down.insert(classes.len(), fates);
            classes.push(Members::of(&self.group, members));
        }
        Self { group: self.group.clone(), classes, down, positions: OnceCell::new() }
    }

    /// The same of the instance, which is seldom in a group.
    pub fn position_of(&self, key: &Key) -> Option<(usize, usize)> {
        // what exists in a group is of one kind
        self.group.entities.iter().find_map(Entity::key).filter(|first| first.kind == key.kind)?;
        let at = self.group.entities.iter().position(|entity| entity.key() == Some(key))?;
        let class = self.classes.iter().position(|members| members.entities.contains(&at))?;
        Some((at, class))
    }
}

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
