//! Sets of fields, as `metadata.managedFields` holds them, and what goes when a manager leaves fields out
//! (`sigs.k8s.io/structured-merge-diff/fieldpath`, `merge/update.go`, `prune`).

use std::collections::BTreeMap;

use suture_model::value::{Str, Val};

use super::structure::{Lists, Structure, key_of, keys_of};

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields {
    /// Whether the part itself is in the set, and not only parts of it.
    itself: bool,
    parts: BTreeMap<Part, Fields>,
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Field(Str),
    /// The item of a list with these keys.
    Item(Vec<(Str, Val)>),
    /// The item of a set.
    Value(Val),
}

impl Fields {
    const LEAF: Self = Self { itself: true, parts: BTreeMap::new() };

    /// The set that `fieldsV1` holds.
    pub fn of_entry(entry: &Val) -> Self {
        let mut fields = Self::default();
        for (key, inner) in entry.entries() {
            if &**key == "." {
                fields.itself = true;
            } else if let Some(part) = part_of(key) {
                fields.parts.insert(part, Self::of_entry(inner));
            }
        }
        fields.itself |= fields.parts.is_empty();
        fields
    }

    /// The fields that a manifest sets.
    pub fn of_manifest(manifest: &Val, structure: &Structure<'_>) -> Self {
        let mut fields = Self::default();
        match manifest {
            Val::Map(map) if !map.is_empty() && !structure.is_atomic() => {
                let set = map.iter().filter(|(_, value)| !value.is_null());
                let part = |(key, value): (&Str, &Val)| {
                    (Part::Field(key.clone()), Self::of_manifest(value, &structure.field(key)))
                };
                fields.parts.extend(set.map(part));
            }
            Val::List(items) => match structure.lists(&items.iter().collect::<Vec<_>>()) {
                Lists::Atomic => fields.itself = true,
                Lists::Set => fields.parts.extend(items.iter().map(|item| (Part::Value(item.clone()), Self::LEAF))),
                Lists::Keyed(keys) => fields.parts.extend(items.iter().map(|item| {
                    let inner = Self { itself: true, ..Self::of_manifest(item, &structure.item()) };
                    (Part::Item(keys_of(item, &keys)), inner)
                })),
            },
            _ => fields.itself = true,
        }
        fields
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Self) {
        self.itself |= other.itself;
        for (part, inner) in &other.parts {
            self.parts.entry(part.clone()).or_default().add(inner);
        }
    }
}

/// A key of `fieldsV1`; those of positions and of unknown forms name nothing that is merged.
fn part_of(key: &str) -> Option<Part> {
    let (form, rest) = key.split_once(':')?;
    match form {
        "f" => Some(Part::Field(rest.into())),
        "k" => {
            let keys: Val = serde_json::from_str(rest).ok()?;
            Some(Part::Item(keys.entries().map(|(key, value)| (key.clone(), value.clone())).collect()))
        }
        "v" => serde_json::from_str(rest).ok().map(Part::Value),
        _ => None,
    }
}

impl Part {
    fn is(&self, item: &Val) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Item(keys) => keys.iter().all(|(key, value)| key_of(item, key) == *value),
            Self::Value(value) => item == value,
        }
    }

    fn find<'v>(&self, val: &'v Val) -> Option<&'v Val> {
        match self {
            Self::Field(name) => val.get(name),
            _ => val.items().iter().find(|item| self.is(item)),
        }
    }

    /// The value with this part as it is now; without it if there is none.
    fn put(&self, val: &Val, part: Option<Val>) -> Val {
        match (self, part) {
            (Self::Field(name), Some(part)) => val.with(name, part),
            (Self::Field(name), None) => val.without_at(&[name]),
            (_, part) => {
                let items = val.items().iter();
                Val::list(
                    items.filter_map(|item| if self.is(item) { part.clone() } else { Some(item.clone()) }).collect(),
                )
            }
        }
    }
}

/// The value without the parts that are in `own`, and in neither of the others: what a manager owned, leaves out now, and
/// shares with nobody.
pub(super) fn without_left_out(val: &Val, own: &Fields, now: &Fields, others: &Fields) -> Val {
    let nothing = Fields::default();
    own.parts.iter().fold(val.clone(), |val, (part, fields)| {
        let Some(child) = part.find(&val) else { return val };
        let (now, others) = (now.parts.get(part), others.parts.get(part));
        let is_shared = now.is_some() || others.is_some();
        if fields.parts.is_empty() || now.is_some_and(|now| now.parts.is_empty()) {
            return if is_shared { val } else { part.put(&val, None) };
        }
        if fields.itself && !is_shared {
            return part.put(&val, None);
        }
        let left = without_left_out(child, fields, now.unwrap_or(&nothing), others.unwrap_or(&nothing));
        // what tells an item from the others stays as long as the item does
        let keys = if let Part::Item(keys) = part { keys.as_slice() } else { &[] };
        let kept = keys.iter().filter_map(|(key, _)| Some((key, child.get(key)?)));
        let left = kept.fold(left, |left, (key, value)| left.with(key, value.clone()));
        let is_empty = left.entries().len() == 0 && left.items().is_empty();
        let goes = is_empty && !is_shared && matches!(left, Val::Map(_) | Val::List(_));
        part.put(&val, (!goes).then_some(left))
    })
}
