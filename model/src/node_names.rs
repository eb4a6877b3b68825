//! Names of nodes as one of the lists that a snapshot keeps, but for a few: most nodes are what they were, in every
//! future, and there are thousands of them.

use std::iter::Peekable;
use std::sync::Arc;

use crate::value::Str;

/// Names of nodes, in order, each once.
#[derive(Clone, Debug, Default)]
pub struct NodeNames {
    all: Arc<[Str]>,
    /// Those of `all` that are not meant, in order.
    without: Vec<Str>,
    /// Those that are not in `all`, or not meant there, in order.
    with: Vec<Str>,
}

impl NodeNames {
    /// These names, which are in order.
    pub fn of(all: Arc<[Str]>) -> Self {
        Self { all, without: Vec::new(), with: Vec::new() }
    }

    /// A single name.
    pub fn one(name: Str) -> Self {
        Self::of(Arc::from([name]))
    }

    /// Without some names, and with others; both are in order, and none of the others is meant already.
    #[must_use]
    pub fn but<'n>(&self, without: impl IntoIterator<Item = &'n Str>, with: Vec<Str>) -> Self {
        let mut names = self.clone();
        for name in without {
            if let Ok(at) = names.with.binary_search(name) {
                names.with.remove(at);
            } else if let (Ok(_), Err(at)) = (names.all.binary_search(name), names.without.binary_search(name)) {
                names.without.insert(at, name.clone());
            }
        }
        names.with.extend(with);
        names.with.sort();
        names
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        (self.all.len() + self.with.len()).saturating_sub(self.without.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first.
    pub fn first(&self) -> Option<&Str> {
        self.iter().next()
    }

    /// Whether a name is among them.
    pub fn contains(&self, name: &Str) -> bool {
        let among = |names: &[Str]| names.binary_search(name).is_ok();
        among(&self.with) || (among(&self.all) && !among(&self.without))
    }

    /// The names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Str> {
        let mut without = self.without.iter().peekable();
        let kept = self.all.iter().filter(move |name| without.next_if_eq(name).is_none());
        Merged { left: kept.peekable(), right: self.with.iter().peekable() }
    }
}

impl PartialEq for NodeNames {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for NodeNames {}

/// Two lists in order as one.
struct Merged<L: Iterator, R: Iterator> {
    left: Peekable<L>,
    right: Peekable<R>,
}

impl<T: Ord, L: Iterator<Item = T>, R: Iterator<Item = T>> Iterator for Merged<L, R> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) if left > right => self.right.next(),
            (None, _) => self.right.next(),
            _ => self.left.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u8 = 3;

    /// The names of the set bits.
    fn names(bits: u8) -> Vec<Str> {
        (0..MOST).filter(|bit| bits & (1 << bit) != 0).map(|bit| format!("node-{bit}").into()).collect()
    }

    fn agrees(short: &NodeNames, bits: u8) {
        let long = names(bits);
        assert_eq!(short.iter().cloned().collect::<Vec<_>>(), long);
        assert_eq!((short.len(), short.is_empty(), short.first()), (long.len(), long.is_empty(), long.first()));
        for name in names(u8::MAX) {
            assert_eq!(short.contains(&name), long.contains(&name), "{name} in {long:?}");
        }
        assert_eq!(*short, NodeNames::of(long.into()));
    }

    #[test]
    fn it_is_the_list_that_it_stands_for() {
        let sets = 1_u8 << MOST;
        for all in 0..sets {
            let list = NodeNames::of(names(all).into());
            agrees(&list, all);
            for (less, more) in (0..sets).flat_map(|less| (0..sets).map(move |more| (less, more))) {
                let here = all & !less;
                let list = list.but(&names(less), names(more & !here));
                agrees(&list, here | more);
                for (less, again) in (0..sets).flat_map(|less| (0..sets).map(move |again| (less, again))) {
                    let then = (here | more) & !less;
                    agrees(&list.but(&names(less), names(again & !then)), then | again);
                }
            }
        }
    }
}
