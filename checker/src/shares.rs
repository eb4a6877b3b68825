//! What each invariant may take of the steps of a decision: one that overruns leaves enough for the others.
//!
//! | who | may take |
//! |---|---|
//! | an invariant | half of the decision; once another one has overrun, half of what is left |
//! | the NamespacedInvariants of one namespace together | a quarter, after all others were asked; each of them half of what is left of that |
//! | an invariant that has overrun of late | a small part, in which everyday changes are decided as ever |

use std::collections::{BTreeMap, BTreeSet};

use suture_model::steps;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;

/// The part of a decision that an invariant may take.
pub(crate) const SHARES: u64 = 2;
/// The part that those of one namespace may take together.
const NAMESPACE_SHARES: u64 = 4;
/// The part of one that has overrun of late: about ten times what everyday changes take.
const HURRIED_SHARES: u64 = 64;

/// What is left for whom.
pub(crate) struct Shares<'e> {
    steps: u64,
    hurried: &'e BTreeSet<Str>,
    /// What is left for the invariants of a namespace that was asked already.
    namespaces: BTreeMap<Str, u64>,
    /// Whether one took all that it may.
    overrun: bool,
}

impl<'e> Shares<'e> {
    /// The shares of a decision that may take so many steps, before anybody took any.
    pub fn new(steps: u64, hurried: &'e BTreeSet<Str>) -> Self {
        Self { steps, hurried, namespaces: BTreeMap::new(), overrun: false }
    }

    /// The most that one takes which is hurried.
    pub fn hurried(&self) -> u64 {
        self.steps / HURRIED_SHARES
    }

    /// Runs what one invariant takes steps for.
    pub fn within<R>(&mut self, compiled: &CompiledInvariant, run: impl FnOnce() -> R) -> R {
        let share = self.of(compiled);
        let left = steps::left();
        let result = steps::within(share, run);
        let taken = left.saturating_sub(steps::left());
        self.overrun |= taken >= share;
        if let Some(ns) = &compiled.namespaced {
            let own = self.namespaces.entry(ns.clone()).or_insert(self.steps / NAMESPACE_SHARES);
            *own = own.saturating_sub(taken);
        }
        result
    }

    fn of(&self, compiled: &CompiledInvariant) -> u64 {
        let shared = match &compiled.namespaced {
            Some(ns) => self.namespaces.get(ns).copied().unwrap_or(self.steps / NAMESPACE_SHARES) / SHARES,
            None => self.steps / SHARES,
        };
        let hurried = if self.hurried.contains(&compiled.name) { self.hurried() } else { u64::MAX };
        let fair = if self.overrun { steps::left() / SHARES } else { u64::MAX };
        shared.min(hurried).min(fair)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::time::Duration;

    use suture_specs::compile::compile_invariant;
    use suture_specs::library::Library;
    use suture_specs::spec::{Spec, parse_specs};

    use suture_model::change::{Change, Request, User};
    use suture_model::object::{Key, Object};
    use suture_model::snapshot::Snapshot;
    use suture_model::state::State;
    use suture_model::value::Val;

    use super::*;
    use crate::decision::Decision;
    use crate::engine::{Engine, Input, Settings, Undecided};

    const STEPS: u64 = 6_400;

    fn invariant(name: &str, namespace: Option<&str>) -> Arc<CompiledInvariant> {
        requiring(name, namespace, "m.metadata.name != ''")
    }

    fn requiring(name: &str, namespace: Option<&str>, expression: &str) -> Arc<CompiledInvariant> {
        let (kind, place) = match namespace {
            Some(ns) => ("NamespacedInvariant", format!(", namespace: {ns}")),
            None => ("Invariant", String::new()),
        };
        let text = format!(
            "apiVersion: suture.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}{place}}}\nspec:\n  \
             forEach: {{var: m, kind: ConfigMap}}\n  require: [{{expression: \"{expression}\"}}]\n"
        );
        let specs = parse_specs(&text, name).unwrap();
        let [Spec::Invariant(invariant)] = specs.as_slice() else { unreachable!("{text}") };
        Arc::new(compile_invariant(invariant, &Library::shipped().unwrap()).unwrap())
    }

    /// What each of these may take in a row, where each takes all of it.
    fn taken(invariants: &[Arc<CompiledInvariant>], hurried: &[&str]) -> Vec<u64> {
        let hurried = hurried.iter().map(|name| Str::from(*name)).collect();
        let mut shares = Shares::new(STEPS, &hurried);
        steps::within(STEPS, || {
            let all = |compiled: &Arc<CompiledInvariant>| {
                shares.within(compiled, || {
                    let left = steps::left();
                    steps::count(left);
                    left
                })
            };
            invariants.iter().map(all).collect()
        })
    }

    #[test]
    fn what_is_ended_early_is_undecided_for_none_that_judges_nothing_of_it() {
        let place = Val::object([("name", Val::str("m")), ("namespace", Val::str("y"))]);
        let map = Val::object([("apiVersion", Val::str("v1")), ("kind", Val::str("ConfigMap")), ("metadata", place)]);
        let (snapshot, end) = (Snapshot::default(), steps::End::default());
        let request = Request::create(User::admin(), &State::new(&snapshot), &map);
        let change = Change::from(request.unwrap());
        let input = Input { snapshot: &snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] };
        let invariants = vec![invariant("wide", None), invariant("own", Some("x")), invariant("own", Some("y"))];
        let mut engine = Engine::new(invariants, Settings::default()).unwrap();
        let names = |decision: &Decision| -> Vec<String> {
            decision.verdicts.iter().map(|verdict| format!("{} {:?}", verdict.invariant, verdict.reason)).collect()
        };
        end.end();
        let ended = names(&steps::until(&end, || engine.decide(&input)));
        let late = Undecided::Late.to_string();
        assert_eq!(ended.len(), 2, "{ended:?}");
        for (told, invariant) in ended.iter().zip(["wide", "y/own"]) {
            assert!(told.starts_with(invariant) && told.contains(&late), "{told}");
        }
        assert_eq!(names(&engine.decide(&input)), Vec::<String>::new(), "and it is not kept");
    }

    #[test]
    fn of_a_decision_that_is_abandoned_it_is_known_who_took_the_time() {
        let place = |name: &str| Val::object([("name", Val::str(name)), ("namespace", Val::str("y"))]);
        let map = |name: &str| {
            Val::object([("apiVersion", Val::str("v1")), ("kind", Val::str("ConfigMap")), ("metadata", place(name))])
        };
        let mut snapshot = Snapshot::default();
        for at in 0..2_000 {
            snapshot.insert(Object::bare(Key::of("Namespace", "", &at.to_string())));
        }
        let request = Request::create(User::admin(), &State::new(&snapshot), &map("m"));
        let change = Change::from(request.unwrap());
        let input = Input { snapshot: &snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] };
        let triples = "now.namespaces.all(a, now.namespaces.all(b, now.namespaces.all(c, \
             a.metadata.name + b.metadata.name != c.metadata.name + m.metadata.name)))";
        // each takes as many steps as an evaluation may, so that all together last long beyond the end
        let slow = [triples; 8].join(" && ");
        let invariants = vec![invariant("quick", None), requiring("slow", None, &slow)];
        let mut engine = Engine::new(invariants, Settings { steps: u64::MAX, ..Settings::default() }).unwrap();
        let end = steps::End::default();
        let asker = end.clone();
        let (begun, begins) = std::sync::mpsc::channel();
        let waits = std::thread::spawn(move || {
            begins.recv().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            asker.abandon();
        });
        let decide = || {
            begun.send(()).unwrap();
            drop(engine.decide(&input));
        };
        let decided = steps::until(&end, || catch_unwind(AssertUnwindSafe(decide)));
        waits.join().unwrap();
        assert!(decided.is_err_and(|with| with.is::<steps::Abandoned>()));
        assert_eq!(engine.left_in().as_deref(), Some("slow"));
        assert_eq!(engine.left_in(), None);
    }

    #[test]
    fn whoever_overruns_leaves_enough_for_the_others() {
        let wide: Vec<_> = ["a", "b", "c"].map(|name| invariant(name, None)).into();
        assert_eq!(taken(&wide, &[]), [3_200, 1_600, 800]);
        assert_eq!(taken(&wide, &["a", "b"]), [100, 100, 3_100], "those that overran of late take little");
        let own: Vec<_> = [("a", "x"), ("b", "x"), ("c", "x"), ("a", "y")].map(|(n, ns)| invariant(n, Some(ns))).into();
        assert_eq!(taken(&own, &[]), [800, 400, 200, 800], "those of one namespace share what it may take");
    }
}
