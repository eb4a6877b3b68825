//! Maps without order whose copies share all that has not changed since: entries lie where the hash of their name says,
//! so that one is found with two or three looks into memory, however many there are. To search an ordered map takes ten
//! times as many, each of which waits for memory in a large cluster.
//!
//! A copy costs nothing. The first change after it copies the list of pages and one page, those after that mostly neither.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use crate::hash::hash;

/// Entries of a page when the number of pages is doubled, on average.
const PAGE_MAX: usize = 48;

/// The entries of a page with their hashes, in the order of these.
type Page<E> = Arc<Vec<(u64, E)>>;

/// Entries by the hash of what names them. Different names may have the same hash: whoever asks looks which it is.
#[derive(Clone, Debug)]
pub struct Hashes<E> {
    /// As many as a power of two: the first bits of a hash say where it is.
    pages: Arc<Vec<Page<E>>>,
    len: usize,
}

impl<E> Default for Hashes<E> {
    fn default() -> Self {
        Self { pages: Arc::new(vec![Arc::default()]), len: 0 }
    }
}

impl<E> Hashes<E> {
    /// The entries of what may have this name.
    pub fn find(&self, name: &(impl Hash + ?Sized)) -> impl Iterator<Item = &E> {
        let hash = hash(name);
        let page = self.pages.get(self.page_of(hash)).map_or(&[][..], |page| page.as_slice());
        let from = self.place(page, hash);
        page.get(from..).unwrap_or_default().iter().take_while(move |(known, _)| *known == hash).map(|(_, entry)| entry)
    }

    /// All entries, in no order that says anything.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.pages.iter().flat_map(|page| page.iter()).map(|(_, entry)| entry)
    }

    /// How many of a hash's first bits name its page.
    fn bits(&self) -> u32 {
        self.pages.len().trailing_zeros()
    }

    fn page_of(&self, hash: u64) -> usize {
        hash.checked_shr(u64::BITS - self.bits()).map_or(0, |page| usize::try_from(page).unwrap_or(0))
    }

    /// Where in its page the first entry of a hash is or belongs: near where it would be if hashes were evenly spread.
    fn place(&self, page: &[(u64, E)], hash: u64) -> usize {
        let part = (u128::from(hash << self.bits()) * page.len() as u128) >> u64::BITS;
        let mut at = usize::try_from(part).unwrap_or(0);
        while at > 0 && page.get(at - 1).is_some_and(|(known, _)| *known >= hash) {
            at -= 1;
        }
        while page.get(at).is_some_and(|(known, _)| *known < hash) {
            at += 1;
        }
        at
    }
}

impl<E: Clone> Hashes<E> {
    /// Enters something under a name, whatever else is there.
    pub fn insert(&mut self, name: &(impl Hash + ?Sized), entry: E) {
        self.enter(hash(name), entry);
    }

    fn enter(&mut self, hash: u64, entry: E) {
        if self.len >= PAGE_MAX * self.pages.len() {
            self.double();
        }
        self.len += 1;
        let (number, at) = self.locate(hash);
        if let Some(page) = Arc::make_mut(&mut self.pages).get_mut(number) {
            Arc::make_mut(page).insert(at, (hash, entry));
        }
    }

    /// The entry of this name that is meant, to be changed.
    pub fn find_mut(&mut self, name: &(impl Hash + ?Sized), is_meant: impl Fn(&E) -> bool) -> Option<&mut E> {
        let (number, at) = self.search(name, is_meant)?;
        let page = Arc::make_mut(Arc::make_mut(&mut self.pages).get_mut(number)?);
        page.get_mut(at).map(|(_, entry)| entry)
    }

    /// Takes out the entry of this name that is meant.
    pub fn remove(&mut self, name: &(impl Hash + ?Sized), is_meant: impl Fn(&E) -> bool) -> Option<E> {
        let (number, at) = self.search(name, is_meant)?;
        let page = Arc::make_mut(Arc::make_mut(&mut self.pages).get_mut(number)?);
        self.len -= 1;
        Some(page.remove(at).1)
    }

    fn search(&self, name: &(impl Hash + ?Sized), is_meant: impl Fn(&E) -> bool) -> Option<(usize, usize)> {
        let hash = hash(name);
        let (number, from) = self.locate(hash);
        let same = self.pages.get(number)?.get(from..)?.iter().take_while(|(known, _)| *known == hash);
        let at = same.map(|(_, entry)| entry).position(is_meant)?;
        Some((number, from + at))
    }

    fn locate(&self, hash: u64) -> (usize, usize) {
        let number = self.page_of(hash);
        (number, self.pages.get(number).map_or(0, |page| self.place(page, hash)))
    }

    /// Makes two pages of each, of which the first has the lower hashes.
    fn double(&mut self) {
        let bit = 1_u64.rotate_right(self.bits() + 1);
        let halves = |page: &Page<E>| {
            let (low, high) = page.split_at(page.partition_point(|(hash, _)| hash & bit == 0));
            [Arc::new(low.to_vec()), Arc::new(high.to_vec())]
        };
        self.pages = Arc::new(self.pages.iter().flat_map(halves).collect());
    }
}

/// A map by names.
#[derive(Clone, Debug)]
pub struct Names<K, V>(Hashes<(K, V)>);

impl<K, V> Default for Names<K, V> {
    fn default() -> Self {
        Self(Hashes::default())
    }
}

impl<K: Eq, V> Names<K, V> {
    /// The value of a name.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.find(name).find(|(known, _)| known.borrow() == name).map(|(_, value)| value)
    }

    /// The names, in no order that says anything.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(name, _)| name)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Names<K, V> {
    /// The value of a name, to be changed.
    pub fn get_mut(&mut self, name: &K) -> Option<&mut V> {
        self.0.find_mut(name, |(known, _)| known == name).map(|(_, value)| value)
    }

    /// Enters a value that the name has instead of any other.
    pub fn insert(&mut self, name: K, value: V) {
        match self.get_mut(&name) {
            Some(known) => *known = value,
            None => self.0.enter(hash(&name), (name, value)),
        }
    }

    /// Takes a name out.
    pub fn remove(&mut self, name: &K) {
        self.0.remove(name, |(known, _)| known == name);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::hash::Hasher;

    use super::*;
    use crate::testing::numbers;

    #[test]
    fn it_is_a_map_and_its_copies_stay_as_they_were() {
        for seed in 0..10 {
            let mut next = numbers(seed);
            let (mut map, mut model) = (Names::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for step in 0..6_000 {
                let name = format!("name-{}", next(1_500));
                match next(4) {
                    0 => {
                        map.remove(&name);
                        model.remove(&name);
                    }
                    1 => {
                        if let Some(value) = map.get_mut(&name) {
                            *value += 1;
                        }
                        model.entry(name.clone()).and_modify(|value| *value += 1);
                    }
                    _ => {
                        map.insert(name.clone(), step);
                        model.insert(name.clone(), step);
                    }
                }
                assert_eq!(map.get(name.as_str()), model.get(&name));
                if next(500) == 0 {
                    copies.push((map.clone(), model.clone()));
                }
            }
            assert!(map.0.pages.len() > 8);
            copies.push((map, model));
            for (map, model) in copies {
                assert_eq!(map.0.len, model.len());
                let mut names: Vec<&String> = map.keys().collect();
                names.sort();
                assert!(names.into_iter().eq(model.keys()));
                assert!(model.iter().all(|(name, value)| map.get(name) == Some(value)), "seed {seed}");
                assert_eq!(map.get("name-1500"), None);
            }
        }
    }

    /// A name whose hash is that of others.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Same(u32);

    impl Hash for Same {
        fn hash<H: Hasher>(&self, state: &mut H) {
            (self.0 % 3).hash(state);
        }
    }

    #[test]
    fn names_of_one_hash_are_told_apart() {
        let mut map = Names::default();
        (0..300).for_each(|name| map.insert(Same(name), name));
        (0..300).filter(|name| name % 7 == 0).for_each(|name| map.remove(&Same(name)));
        for name in 0..303 {
            let left = name < 300 && name % 7 != 0;
            assert_eq!(map.get(&Same(name)), left.then_some(&name));
        }
    }

    #[test]
    fn a_change_copies_one_page() {
        let mut hashes = Hashes::default();
        (0..1_000_u32).for_each(|number| hashes.insert(&number, number));
        let before = hashes.clone();
        hashes.remove(&500_u32, |_| true);
        let shared = hashes.pages.iter().zip(before.pages.iter()).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!(shared, hashes.pages.len() - 1);
    }
}
