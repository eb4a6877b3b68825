//! Where objects are: numbered places, so that indexes name an object by four bytes. Copies share what has not changed.

use std::hash::Hash;
use std::sync::Arc;

use super::hashes::Names;
use crate::object::{Key, Object};

/// The number of a place.
pub type Slot = u32;

/// Places that are copied together.
const BLOCK: usize = 64;

type Block = Arc<Vec<Option<Arc<Object>>>>;

/// The places; those of objects that are gone are taken again.
#[derive(Clone, Debug, Default)]
pub struct Places {
    blocks: Arc<Vec<Block>>,
    free: Arc<Vec<Slot>>,
    len: usize,
}

impl Places {
    /// The object at a place.
    pub fn get(&self, slot: Slot) -> Option<&Arc<Object>> {
        let at = slot as usize;
        self.blocks.get(at / BLOCK)?.get(at % BLOCK)?.as_ref()
    }

    /// The objects of each of two versions that the other does not have at their place.
    pub fn differing<'p>(&'p self, other: &'p Self) -> impl Iterator<Item = &'p Arc<Object>> {
        let count = self.blocks.len().max(other.blocks.len());
        let pairs = (0..count).map(|at| (self.blocks.get(at), other.blocks.get(at)));
        let differ =
            pairs.filter(|(here, there)| !here.zip(*there).is_some_and(|(here, there)| Arc::ptr_eq(here, there)));
        differ.flat_map(|(here, there)| {
            let at =
                |block: Option<&'p Block>, at: usize| block.and_then(|block| block.get(at)).and_then(Option::as_ref);
            (0..BLOCK).map(move |place| (at(here, place), at(there, place))).flat_map(|(here, there)| {
                let same = here.zip(there).is_some_and(|(here, there)| Arc::ptr_eq(here, there));
                [here, there].into_iter().flatten().filter(move |_| !same)
            })
        })
    }

    /// A place for an object, empty until it is [`Self::put`] there.
    pub fn take(&mut self) -> Slot {
        if let Some(slot) = Arc::make_mut(&mut self.free).pop() {
            return slot;
        }
        let blocks = Arc::make_mut(&mut self.blocks);
        match blocks.last_mut().filter(|block| block.len() < BLOCK) {
            Some(block) => Arc::make_mut(block).push(None),
            None => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(None);
                blocks.push(Arc::new(block));
            }
        }
        self.len += 1;
        Slot::try_from(self.len - 1).unwrap_or(Slot::MAX)
    }

    /// Puts an object into a place that was taken for it.
    pub fn put(&mut self, slot: Slot, object: Arc<Object>) {
        if let Some(place) = self.place(slot) {
            *place = Some(object);
        }
    }

    /// Empties a place, and lets it be taken again.
    pub fn empty(&mut self, slot: Slot) -> Option<Arc<Object>> {
        let object = self.place(slot)?.take()?;
        Arc::make_mut(&mut self.free).push(slot);
        Some(object)
    }

    fn place(&mut self, slot: Slot) -> Option<&mut Option<Arc<Object>>> {
        let at = slot as usize;
        let block = Arc::make_mut(&mut self.blocks).get_mut(at / BLOCK)?;
        Arc::make_mut(block).get_mut(at % BLOCK)
    }
}

/// The places of the objects that an index finds together, mostly one.
#[derive(Clone, Debug)]
pub enum Found {
    /// One.
    One(Slot),
    /// Several, or one that is left of them; never none.
    Many(Arc<Vec<Slot>>),
}

impl Found {
    /// The places.
    pub fn slots(&self) -> &[Slot] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Many(slots) => slots,
        }
    }

    /// Adds a place where `place` says that it belongs.
    pub fn add(&mut self, slot: Slot, place: impl FnOnce(&[Slot]) -> usize) {
        let at = place(self.slots());
        match self {
            Self::One(only) => {
                let both = if at == 0 { vec![slot, *only] } else { vec![*only, slot] };
                *self = Self::Many(Arc::new(both));
            }
            Self::Many(slots) => Arc::make_mut(slots).insert(at, slot),
        }
    }

    /// Takes a place out, wherever it is; whether any is left.
    pub fn drop(&mut self, slot: Slot) -> bool {
        match self {
            Self::One(only) => *only != slot,
            Self::Many(slots) => {
                if slots.contains(&slot) {
                    Arc::make_mut(slots).retain(|other| *other != slot);
                }
                !slots.is_empty()
            }
        }
    }
}

/// An object on its way into the indexes.
pub struct Place<'p> {
    pub places: &'p Places,
    pub key: &'p Key,
    pub slot: Slot,
}

impl Place<'_> {
    /// Enters it into a list in the order of keys. Lists that come from an API server are in that order already.
    pub fn enter<K: Hash + Eq + Clone>(&self, index: &mut Names<K, Found>, key: K) {
        // the object itself, where it is in the list before, has no place yet
        let is_before = |slot: &Slot| self.places.get(*slot).is_none_or(|object| object.key <= *self.key);
        self.put(index, key, |slots| match slots.last() {
            Some(last) if !is_before(last) => slots.partition_point(is_before),
            _ => slots.len(),
        });
    }

    /// Enters it at the end of a list.
    pub fn append<K: Hash + Eq + Clone>(&self, index: &mut Names<K, Found>, key: K) {
        self.put(index, key, <[Slot]>::len);
    }

    fn put<K: Hash + Eq + Clone>(&self, index: &mut Names<K, Found>, key: K, place: impl FnOnce(&[Slot]) -> usize) {
        match index.get_mut(&key) {
            Some(found) => found.add(self.slot, place),
            None => index.insert(key, Found::One(self.slot)),
        }
    }
}

/// Takes an object out of a list, and the list out of its index where nothing is left of it.
pub fn drop_slot<K: Hash + Eq + Clone>(index: &mut Names<K, Found>, key: &K, slot: Slot) {
    if index.get_mut(key).is_some_and(|found| !found.drop(slot)) {
        index.remove(key);
    }
}
