//! An ordered map whose copies share all that has not changed since: a list of leaves, each a short sorted list.
//!
//! A copy costs nothing. The first change after it copies the list of leaves and one leaf, those after that mostly
//! neither: so a snapshot is published without a second one being kept.

use std::borrow::Borrow;
use std::mem;
use std::sync::Arc;

/// Entries of a leaf: a change copies so many at most, and one in so many leaves' addresses.
const LEAF_MAX: usize = 64;
/// What two neighbours have together when they become one.
const JOINED_MAX: usize = LEAF_MAX / 2;

type Leaf<K, V> = Arc<Vec<(K, V)>>;

/// The map. No leaf is empty, and each comes with a key that lies between those before it and its own, so that to find
/// one takes no look into others.
#[derive(Debug)]
pub struct PersistentMap<K, V> {
    persistent_map: Arc<Vec<(K, Leaf<K, V>)>>,
    len: usize,
}

impl<K, V> Clone for PersistentMap<K, V> {
    fn clone(&self) -> Self {
        Self { persistent_map: self.persistent_map.clone(), len: self.len }
    }
}

impl<K, V> Default for PersistentMap<K, V> {
    fn default() -> Self {
        Self { persistent_map: Arc::default(), len: 0 }
    }
}

impl<K: Ord, V> PersistentMap<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (leaf, at) = self.find(key)?;
        self.leaf(leaf)?.get(at).map(|(_, value)| value)
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.persistent_map.iter().flat_map(|(_, leaf)| leaf.iter()).map(|(key, value)| (key, value))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The entries from this key on, in order.
    pub fn from<'s>(&'s self, low: &K) -> impl Iterator<Item = (&'s K, &'s V)> + use<'s, K, V> {
        let at = self.leaf_of(low);
        let first = self.leaf(at).map_or(&[][..], |leaf| leaf.as_slice());
        let below = first.partition_point(|(key, _)| key < low);
        let rest = self.persistent_map.get(at + 1..).unwrap_or_default().iter().flat_map(|(_, leaf)| leaf.iter());
        let first = first.get(below..).unwrap_or_default().iter();
        first.chain(rest).map(|(key, value)| (key, value))
    }

    /// The entries from one key on and below another one, in order; none is compared with either but where they begin and
    /// end.
    pub fn range<'s>(&'s self, low: &K, high: &K) -> impl Iterator<Item = (&'s K, &'s V)> + use<'s, K, V> {
        let (first, last) = (self.leaf_of(low), self.leaf_of(high));
        let below = |at: usize, key: &K| self.leaf(at).map_or(0, |leaf| leaf.partition_point(|(known, _)| known < key));
        let (begin, end) = (below(first, low), below(last, high));
        let persistent_map = self.persistent_map.get(first..=last).unwrap_or_default().iter().zip(first..);
        let entries = persistent_map.flat_map(move |((_, leaf), at)| {
            let upto = if at == last { end } else { leaf.len() };
            leaf.get(if at == first { begin } else { 0 }..upto).unwrap_or_default()
        });
        entries.map(|(key, value)| (key, value))
    }

    fn leaf(&self, at: usize) -> Option<&Leaf<K, V>> {
        self.persistent_map.get(at).map(|(_, leaf)| leaf)
    }

    /// The leaf where a key is, if it is anywhere.
    fn leaf_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.persistent_map.partition_point(|(low, _)| low.borrow() <= key).saturating_sub(1)
    }

    /// Its leaf, and where it is there.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(usize, usize)>
    where
        K: Borrow<Q>,
    {
        let leaf = self.leaf_of(key);
        let at = self.leaf(leaf)?.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        Some((leaf, at))
    }
}

impl<K: Ord + Clone, V: Clone> PersistentMap<K, V> {
    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (leaf, at) = self.find(key)?;
        let (_, leaf) = Arc::make_mut(&mut self.persistent_map).get_mut(leaf)?;
        Arc::make_mut(leaf).get_mut(at).map(|(_, value)| value)
    }

    /// Enters a value; gives back the one that the key had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.leaf_of(&key);
        let persistent_map = Arc::make_mut(&mut self.persistent_map);
        let Some(leaf) = persistent_map.get_mut(at).map(|(_, leaf)| Arc::make_mut(leaf)) else {
            persistent_map.push((key.clone(), Arc::new(vec![(key, value)])));
            self.len += 1;
            return None;
        };
        let place = match leaf.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(found) => return leaf.get_mut(found).map(|(_, old)| mem::replace(old, value)),
            Err(place) => place,
        };
        self.len += 1;
        if leaf.len() < LEAF_MAX {
            leaf.insert(place, (key, value));
            return None;
        }
        // what comes in order leaves full leaves behind
        let half = if place == leaf.len() { place } else { LEAF_MAX / 2 };
        let low = leaf.get(half).map_or(&key, |(key, _)| key).clone();
        let mut upper = leaf.split_off(half);
        match place.checked_sub(half) {
            // not before what is first there
            Some(0) if !upper.is_empty() => leaf.push((key, value)),
            Some(place) => upper.insert(place, (key, value)),
            None => leaf.insert(place, (key, value)),
        }
        persistent_map.insert(at + 1, (low, Arc::new(upper)));
        None
    }

    /// Takes an entry out; gives back its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (at, place) = self.find(key)?;
        let persistent_map = Arc::make_mut(&mut self.persistent_map);
        let leaf = Arc::make_mut(&mut persistent_map.get_mut(at)?.1);
        let (_, value) = leaf.remove(place);
        self.len -= 1;
        if leaf.is_empty() {
            persistent_map.remove(at);
        } else if !join(persistent_map, at)
            && let Some(before) = at.checked_sub(1)
        {
            join(persistent_map, before);
        }
        Some(value)
    }
}

/// Joins a leaf with the next one if both are short; whether it did.
fn join<K: Clone, V: Clone>(persistent_map: &mut Vec<(K, Leaf<K, V>)>, at: usize) -> bool {
    let is_short = |[(_, one), (_, next)]: &[(K, Leaf<K, V>); 2]| one.len() + next.len() <= JOINED_MAX;
    if !persistent_map.get(at..).and_then(<[_]>::first_chunk).is_some_and(is_short) {
        return false;
    }
    let (_, next) = persistent_map.remove(at + 1);
    if let Some((_, leaf)) = persistent_map.get_mut(at) {
        Arc::make_mut(leaf).extend(next.iter().cloned());
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::numbers;

    fn all(map: &PersistentMap<usize, usize>) -> Vec<(usize, usize)> {
        map.iter().map(|(key, value)| (*key, *value)).collect()
    }

    #[test]
    fn it_is_a_map_and_its_copies_stay_as_they_were() {
        for seed in 0..20 {
            let mut next = numbers(seed);
            let (mut map, mut model) = (PersistentMap::default(), BTreeMap::new());
            let mut copies = Vec::new();
            // grows first, then shrinks
            for step in 0..4_000 {
                let key = next(1_500);
                match next(10) {
                    0..3 => assert_eq!(map.remove(&key), model.remove(&key)),
                    3 | 4 if step > 2_000 => assert_eq!(map.remove(&key), model.remove(&key)),
                    5 | 6 if step > 2_000 => {
                        let first = *model.keys().next().unwrap_or(&0);
                        assert_eq!(map.remove(&first), model.remove(&first));
                    }
                    7 => {
                        if let Some(value) = map.get_mut(&key) {
                            *value += 1;
                        }
                        model.entry(key).and_modify(|value| *value += 1);
                    }
                    _ => assert_eq!(map.insert(key, step), model.insert(key, step)),
                }
                assert_eq!((map.len(), map.get(&key)), (model.len(), model.get(&key)));
                let (from, upward) = (map.from(&key).next(), model.range(key..).next());
                assert_eq!(from, upward);
                if next(100) == 0 {
                    assert_eq!(map.from(&key).collect::<Vec<_>>(), model.range(key..).collect::<Vec<_>>());
                    let above = key + next(700);
                    let range: Vec<_> = map.range(&key, &above).collect();
                    assert_eq!(range, model.range(key..above).collect::<Vec<_>>());
                    copies.push((map.clone(), model.clone()));
                }
            }
            copies.push((map, model));
            for (map, model) in copies {
                assert_eq!(all(&map), model.into_iter().collect::<Vec<_>>(), "seed {seed}");
                assert!(map.persistent_map.iter().all(|(_, leaf)| (1..=LEAF_MAX).contains(&leaf.len())));
                let low = |[(_, leaf), (low, next)]: &[(usize, Leaf<usize, usize>); 2]| {
                    leaf.last().is_some_and(|(key, _)| key < low) && next.first().is_some_and(|(key, _)| low <= key)
                };
                assert!(map.persistent_map.array_windows().all(low));
            }
        }
    }

    #[test]
    fn what_comes_in_order_fills_its_leaves_and_what_goes_lets_them_go() {
        let mut map = PersistentMap::default();
        for key in 0..64_000_usize {
            map.insert(key, key);
        }
        assert_eq!(map.persistent_map.len(), 1_000);
        for key in (0..64_000_usize).filter(|key| key % 64 != 0) {
            map.remove(&key);
        }
        assert_eq!(map.len(), 1_000);
        assert!(map.persistent_map.len() < 100, "{} leaves", map.persistent_map.len());
    }

    #[test]
    fn a_change_copies_one_leaf() {
        let mut map = PersistentMap::default();
        for key in 0..1_000_usize {
            map.insert(key, key);
        }
        let before = map.clone();
        map.insert(500, 0);
        let shared = map
            .persistent_map
            .iter()
            .zip(before.persistent_map.iter())
            .filter(|(a, b)| Arc::ptr_eq(&a.1, &b.1))
            .count();
        assert_eq!(shared, map.persistent_map.len() - 1);
    }
}
