//! How much of the ledger one author, and one namespace, may take.
//!
//! What is admitted and then refused by the API server (by a quota, by validation, by another webhook) is in flight for as
//! long as the API server may take. Who sends such requests again and again fills no more than this, and makes decisions
//! slower for its own namespace at most.

use std::collections::BTreeMap;

use suture_model::change::{Operation, Request};
use suture_model::value::{Str, Val};

/// So many requests of one author, or about one namespace, may be in flight.
const ENTRIES_MAX: usize = 2_048;

/// So many of these may make a pod that is on one node from the start. It concerns whoever has something on that node, and each of
/// them that may have landed or not doubles what decisions about the node tell apart.
const PLACED_MAX: usize = 3;

/// So many bytes, about, may their objects have.
const BYTES_MAX: usize = 8 << 20;

/// What a request takes, found once.
#[derive(Clone, Debug)]
pub struct Load {
    author: Str,
    /// Empty outside of namespaces.
    namespace: Str,
    /// The node on which it makes a pod; empty where it makes none, or leaves that to a scheduler.
    node: Str,
    bytes: usize,
}

impl Load {
    /// Of a request: about the bytes of its objects.
    pub fn of(request: &Request) -> Self {
        let objects = [&request.object, &request.old].into_iter().flatten();
        let bytes = objects.map(Val::weight).fold(0, usize::saturating_add);
        let makes_pod =
            request.operation == Operation::Create && request.subresource.is_empty() && request.target.kind.is("Pod");
        let object = request.object.as_ref().filter(|_| makes_pod);
        let node = object.and_then(|pod| pod.str_at(&["spec", "nodeName"])).cloned().unwrap_or_default();
        Self { author: request.user.username.clone(), namespace: request.target.ns.clone(), node, bytes }
    }

    /// Whose share it takes, and of how many.
    fn holders(&self) -> Vec<(Holder, usize)> {
        let mut whose = vec![Whose::Author(self.author.clone())];
        if !self.namespace.is_empty() {
            whose.push(Whose::Namespace(self.namespace.clone()));
        }
        let placed = whose.iter().filter(|_| !self.node.is_empty());
        let placed = placed.map(|whose| ((whose.clone(), self.node.clone()), PLACED_MAX)).collect::<Vec<_>>();
        whose.into_iter().map(|whose| ((whose, Str::default()), ENTRIES_MAX)).chain(placed).collect()
    }
}

/// Whose requests they are, or in which namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Author(Str),
    Namespace(Str),
}

/// Whose requests they are, and on which node they make a pod; all of them where it is empty.
type Holder = (Whose, Str);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    entries: usize,
    bytes: usize,
}

/// What authors and namespaces take of the ledger.
#[derive(Clone, Debug, Default)]
pub struct Room(BTreeMap<Holder, Held>);

impl Room {
    /// Whether there is room for a request.
    pub fn has(&self, load: &Load) -> bool {
        load.holders().into_iter().all(|(holder, entries_max)| {
            let held = self.0.get(&holder).copied().unwrap_or_default();
            // one that is large comes through by itself
            held.entries == 0 || (held.entries < entries_max && held.bytes.saturating_add(load.bytes) <= BYTES_MAX)
        })
    }

    /// Counts a request that is entered.
    pub fn take(&mut self, load: &Load) {
        for (holder, _) in load.holders() {
            let held = self.0.entry(holder).or_default();
            held.entries += 1;
            held.bytes += load.bytes;
        }
    }

    /// Counts a request that was entered no more.
    pub fn give_back(&mut self, load: &Load) {
        for (holder, _) in load.holders() {
            let Some(held) = self.0.get_mut(&holder) else { continue };
            held.entries = held.entries.saturating_sub(1);
            held.bytes = held.bytes.saturating_sub(load.bytes);
            if held.entries == 0 {
                self.0.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use suture_model::change::User;
    use suture_model::snapshot::Snapshot;
    use suture_model::state::State;

    use super::*;

    fn creation(author: &str, ns: &str, bytes: usize) -> Load {
        let data = "x".repeat(bytes);
        let manifest = serde_json::json!({"apiVersion": "x.io/v1", "kind": "Foo", "spec": {"data": data}, "metadata":
            {"name": "foo", "namespace": ns}});
        let user = User { username: author.into(), ..User::admin() };
        Load::of(&Request::create(user, &State::new(&Snapshot::default()), &Val::from(&manifest)).unwrap())
    }

    #[test]
    fn an_author_fills_no_more_than_its_share() {
        let mut room = Room::default();
        let large = creation("ana", "a", BYTES_MAX / 3);
        room.take(&large);
        assert!(room.has(&large));
        room.take(&large);
        assert!(!room.has(&large), "the bytes are taken");
        assert!(!room.has(&creation("bob", "a", BYTES_MAX / 3)), "of the namespace as well");
        assert!(room.has(&creation("bob", "b", BYTES_MAX / 3)));
        room.give_back(&large);
        assert!(room.has(&large));
        room.give_back(&large);
        assert!(room.0.is_empty());
        assert!(room.has(&creation("ana", "a", 2 * BYTES_MAX)), "a large one comes through by itself");
    }

    #[test]
    fn pods_on_one_node_are_few() {
        let placed = |ns: &str, node: &str| Load { node: node.into(), ..creation("ana", ns, 1) };
        let mut room = Room::default();
        (0..PLACED_MAX).for_each(|_| room.take(&placed("a", "n1")));
        assert!(!room.has(&placed("a", "n1")));
        assert!(!room.has(&placed("b", "n1")), "it is the same author");
        assert!(room.has(&placed("a", "n2")));
        assert!(room.has(&creation("ana", "a", 1)));
        (0..PLACED_MAX).for_each(|_| room.give_back(&placed("a", "n1")));
        assert!(room.0.is_empty());
    }

    #[test]
    fn many_small_ones_are_too_many() {
        let (mut room, small) = (Room::default(), creation("ana", "a", 1));
        (0..ENTRIES_MAX).for_each(|_| room.take(&small));
        assert!(!room.has(&small));
        assert!(room.has(&creation("bob", "b", 1)));
    }
}
