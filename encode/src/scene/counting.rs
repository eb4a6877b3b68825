//! What the limits of a group mean in terms of its classes.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use suture_model::futures::{Count, Group};

use crate::class::Class;
use crate::term::Int;

/// The classes of a group, as limits count them.
pub(super) struct Counting<'g> {
    group: &'g Group,
    classes: &'g [Class],
    /// The fates at each place, by class and number: there may be a limit for each of thousands of nodes.
    by_place: OnceCell<BTreeMap<usize, Vec<(usize, usize)>>>,
}

impl<'g> Counting<'g> {
    /// Of these classes of a group.
    pub fn of(group: &'g Group, classes: &'g [Class]) -> Self {
        Self { group, classes, by_place: OnceCell::new() }
    }

    fn by_place(&self) -> &BTreeMap<usize, Vec<(usize, usize)>> {
        self.by_place.get_or_init(|| {
            let mut found: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
            for (class, Class { fates, .. }) in self.classes.iter().enumerate() {
                for (number, place) in fates.iter().enumerate().filter_map(|(at, fate)| Some((at, fate.place?))) {
                    found.entry(place).or_default().push((class, number));
                }
            }
            found
        })
    }

    /// What a count means in terms of the classes.
    pub fn counts(&self, counted: &Count) -> Vec<&'g Int> {
        let is_of_set = |class: &Class| {
            let first = class.entities.iter().next().and_then(|at| self.group.entities.get(*at));
            first.is_some_and(|entity| entity.sets.contains(&counted.set))
        };
        let at = |class: &'g Class, number: usize| {
            let is_counted = class.fates.get(number).is_some_and(|fate| counted.fates.contains(&fate.kind));
            class.counts.get(number).filter(|_| is_counted)
        };
        let Some(places) = &counted.places else {
            let classes = self.classes.iter().filter(|class| is_of_set(class));
            return classes
                .flat_map(|class| (0..class.fates.len()).filter_map(move |number| at(class, number)))
                .collect();
        };
        let mut found: Vec<(usize, usize)> =
            places.iter().filter_map(|place| self.by_place().get(place)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        let classes = found.into_iter().filter_map(|(class, number)| Some((self.classes.get(class)?, number)));
        classes.filter(|(class, _)| is_of_set(class)).filter_map(|(class, number)| at(class, number)).collect()
    }
}
