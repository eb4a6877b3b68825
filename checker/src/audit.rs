//! What is violated in the cluster as it is: no future is looked at, and no solver asked.
//!
//! What was found is kept with the snapshot that it was found in. The next time only those instances are looked at that what
//! changed since can reach ([`Impact`]), with the snapshot before as that to which it could change. What an invariant reads of the
//! cluster before a request is then read of each of both ([`CompiledInvariant::of_one_state`]).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_encode::impact::{Impact, PodClass, pod_class};
use suture_encode::question::{Inputs, Judged, replay};
use suture_model::annotations::CONFIRM_DELETE;
use suture_model::navigate::UnknownKind;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::steps;
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Worlds;

use crate::decision::Verdict;
use crate::explain;
use crate::instance::{LastByItself, Undecided, judges};
use crate::request::expression_inputs;
use crate::shares::SHARES;
use crate::suppose::judge_present;
use crate::symmetry_memo::may_have_equals;

/// What an invariant may take for each of its instances, beside its share: an evaluation that looks at some hundred objects.
const STEPS_PER_INSTANCE: u64 = 20_000;
/// Where more objects than that changed since the last time, all instances are looked at: what they reach is little less.
const CHANGED_MAX: usize = 4_096;

/// What was found of some invariants, in one snapshot after the other.
pub struct Audits {
    audits: Vec<Audit>,
    last: Option<Snapshot>,
}

/// What was found of an invariant.
pub struct Audit {
    /// The invariant.
    pub compiled: Arc<CompiledInvariant>,
    /// The same, as one state is asked about it.
    of_one_state: Analysis,
    found: BTreeMap<Key, Verdict>,
    proved: u64,
    /// That it is undecided, whatever its instances are.
    undecided: Option<Verdict>,
    /// Whether all of its instances were looked at, in the snapshot of the last time.
    is_whole: bool,
}

impl Audit {
    /// The verdicts on the instances that do not hold, or of which it cannot be said.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.undecided.iter().chain(self.found.values())
    }

    /// How many instances hold.
    pub fn proved(&self) -> u64 {
        self.proved
    }
}

impl Audits {
    /// Of these invariants; nothing was looked at yet.
    pub fn of(invariants: impl IntoIterator<Item = Arc<CompiledInvariant>>) -> Self {
        let audit = |compiled: Arc<CompiledInvariant>| Audit {
            of_one_state: Analysis::of(Arc::new(compiled.of_one_state())),
            compiled,
            found: BTreeMap::new(),
            proved: 0,
            undecided: None,
            is_whole: false,
        };
        Self { audits: invariants.into_iter().map(audit).collect(), last: None }
    }

    /// What was found the last time, in the order of the invariants.
    pub fn each(&self) -> impl Iterator<Item = &Audit> {
        self.audits.iter()
    }

    /// Looks at a snapshot: at all instances of those invariants that `asked` is true of, or at those that what changed since the
    /// last time can reach. Each invariant takes a share of so many steps, and what its instances may: one that takes more is
    /// undecided, and its other instances are left out.
    pub fn audit(
        &mut self,
        snapshot: &Snapshot,
        time: Option<&str>,
        steps: u64,
        asked: impl Fn(&Arc<CompiledInvariant>) -> bool,
    ) {
        let (state, inputs) = (State::new(snapshot), expression_inputs(&[], time));
        let old = self.last.take();
        let since = old.as_ref().and_then(|old| back(snapshot, old));
        let mut impact = Impact::new(&state, since.as_slice(), &[]);
        let look = Look { state: &state, old: old.as_ref().filter(|_| since.is_some()), inputs: &inputs };
        for audit in &mut self.audits {
            if asked(&audit.compiled) {
                audit.look(look, &mut impact, steps / SHARES);
            } else {
                audit.is_whole = false;
            }
        }
        drop(impact);
        self.last = Some(snapshot.clone());
    }
}

/// The scenario in which all objects are as they were; `None` where that does not lead to all that may be otherwise, or to
/// little less than everything.
fn back<'a>(snapshot: &'a Snapshot, old: &Snapshot) -> Option<Scenario<'a>> {
    let changed = snapshot.objects_changed_since(old)?;
    // what is supposed of kinds that were not read is no object
    if changed.len() > CHANGED_MAX || !snapshot.unknown().is_empty() {
        return None;
    }
    // what is meant to go is so for the sake of what lies above it, to which no inverse leads: by no request it is so only then
    let confirmed = |of: &Snapshot, key| of.get(key).and_then(|object| object.annotation(CONFIRM_DELETE).cloned());
    if changed.iter().any(|key| confirmed(old, key) != confirmed(snapshot, key)) {
        return None;
    }
    let mut back = Scenario::observed(snapshot);
    for key in &changed {
        match old.get(key) {
            Some(object) => back.state.put_shared(object.clone()),
            None => back.state.take(key),
        }
    }
    Some(back)
}

/// Where one looks.
#[derive(Clone, Copy)]
struct Look<'l, 'a> {
    state: &'l State<'a>,
    /// The snapshot of the last time, where what changed since is known.
    old: Option<&'l Snapshot>,
    inputs: &'l Inputs,
}

impl Audit {
    fn look(&mut self, look: Look<'_, '_>, impact: &mut Impact<'_, '_>, share: u64) {
        let footprint = &self.of_one_state.footprint;
        let again = look.old.filter(|_| self.is_whole && !footprint.reads_request && !footprint.reads_room());
        let keys = match again {
            Some(_) => steps::within(share, || impact.instances(&self.of_one_state)),
            None => impact.of_kinds(&self.of_one_state, None),
        };
        match again {
            Some(old) => keys.iter().for_each(|key| self.forget(old, key)),
            None => (self.found, self.proved) = (BTreeMap::new(), 0),
        }
        self.undecided = impact.unread_instances(&self.of_one_state).map(|unread| {
            let every = Key::of(&unread, "", "*");
            explain::undecided(&self.compiled, &every, &Undecided::Refused(UnknownKind(unread).to_string()))
        });
        let for_all = STEPS_PER_INSTANCE.saturating_mul(u64::try_from(keys.len()).unwrap_or(u64::MAX));
        self.is_whole = steps::within(share.saturating_add(for_all), || self.judge_all(look, &keys));
    }

    /// Takes out what was found of an instance.
    fn forget(&mut self, old: &Snapshot, key: &Key) {
        let known = self.found.remove(key).is_some();
        if !known && old.get(key).is_some_and(|object| self.judges(old, object)) {
            self.proved = self.proved.saturating_sub(1);
        }
    }

    fn judges(&self, snapshot: &Snapshot, object: &Arc<Object>) -> bool {
        self.compiled.for_each.matches(object, snapshot.adapters().as_ref()) && judges(&self.compiled, object)
    }

    /// What a pod has in common with those that are told from it by nothing that is read: they differ in their headers, and
    /// nothing belongs to one of them.
    fn class_of(&self, state: &State<'_>, object: &Object) -> Option<PodClass> {
        let told = self.of_one_state.footprint.tells_equals_apart();
        let is_bare = || state.owned_by(&object.uid).is_empty() && state.referrers(&object.key).is_empty();
        (!told && may_have_equals(object) && is_bare()).then(|| pod_class(object))
    }

    /// Judges these instances; whether it came to the end.
    fn judge_all(&mut self, look: Look<'_, '_>, keys: &BTreeSet<Key>) -> bool {
        let (state, kept) = (look.state, RefCell::default());
        let compiled = self.compiled.clone();
        let mut by_itself = LastByItself::default();
        let mut held: BTreeSet<PodClass> = BTreeSet::new();
        for key in keys {
            let Some(object) = state.get(key).filter(|object| self.judges(state.base(), object)) else { continue };
            let here = Worlds { before: state, now: state };
            if by_itself.holds(object, || self.of_one_state.holds_by_itself(object, here)) {
                self.proved += 1;
                continue;
            }
            let class = self.class_of(state, object);
            if class.as_ref().is_some_and(|class| held.contains(class)) {
                self.proved += 1;
                continue;
            }
            let judged_in = |here: &State<'_>| {
                // others are nowhere else in memory than where the next one will be; what is kept does not tell again what
                // was supposed for it
                let is_this = std::ptr::eq(&raw const *state, here) && state.base().unknown().is_empty();
                let kept = is_this.then_some(&kept);
                replay(&compiled, object, look.inputs, Worlds { before: here, now: here }, kept)
            };
            let judged = judge_present(state, judged_in);
            if steps::check().is_err() {
                self.found.insert(key.clone(), explain::undecided(&compiled, key, &Undecided::AuditOverran));
                return false;
            }
            let verdict = match judged {
                Ok(Judged::Holds) => {
                    self.proved += 1;
                    held.extend(class);
                    continue;
                }
                Ok(Judged::Violated { clause, message, .. }) => {
                    explain::violated_now(&compiled, object, clause, &message)
                }
                Ok(Judged::Fails(why)) => explain::undecided(&compiled, key, &Undecided::Fails(why)),
                Err(why) => explain::undecided(&compiled, key, &why),
            };
            self.found.insert(key.clone(), verdict);
        }
        true
    }
}
