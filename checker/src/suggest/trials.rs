//! What is tried before it is suggested: nearby changes, and the same change in clusters that are a little otherwise.

use std::collections::BTreeSet;

use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;

use crate::causes::{is_refuted, named};
use crate::decision::{Outcome, Verdict};
use crate::judge::{Findings, Scope};
use crate::request::Input;

/// Judges what is tried, as long as there are trials left.
pub(super) struct Trials<'t> {
    pub judge: &'t mut dyn FnMut(&Input<'_>, Scope<'_>) -> Findings,
    pub left: u64,
    /// Whether the refused change is warned about too, for something else.
    pub warned: bool,
    /// The instances that are refuted.
    pub same: BTreeSet<(String, String)>,
}

impl Trials<'_> {
    /// Whether a change is allowed, and breaks none of the instances that are refuted: these are looked at first, since a
    /// variant that breaks the same is soon left.
    pub fn is_allowed(&mut self, input: &Input<'_>) -> bool {
        self.holds(input, Some(&self.same.clone())) && self.holds(input, None)
    }

    /// [`Self::is_allowed`], if the cluster were as this snapshot.
    pub fn is_allowed_in(&mut self, snapshot: &Snapshot, input: &Input<'_>) -> bool {
        self.is_allowed(&Input { snapshot, ..*input })
    }

    /// The refuted verdicts on a change, and whether all else is decided; nothing where no trial is left.
    pub fn breaks(&mut self, input: &Input<'_>) -> Option<Vec<Verdict>> {
        self.left = self.left.checked_sub(1)?;
        let found = (self.judge)(input, Scope::default()).verdicts;
        let refuted = |v: &Verdict| is_refuted(v) && (v.decides() == Outcome::Denied || self.same.contains(&named(v)));
        let is_clear = found.iter().all(|v| v.decides() != Outcome::Undecided);
        is_clear.then(|| found.into_iter().filter(refuted).collect())
    }

    fn holds(&mut self, input: &Input<'_>, only: Option<&BTreeSet<(String, String)>>) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let first = only.is_some() || !self.warned;
        let found = (self.judge)(input, Scope { only, first, ..Scope::default() });
        match only {
            Some(_) => found.all_hold(),
            None => found.verdicts.iter().all(|verdict| verdict.decides() <= Outcome::Warned),
        }
    }
}

/// The key of an instance: of a built-in kind, or of the kind of something that the change is about.
pub(super) fn instance(input: &Input<'_>, name: &str) -> Option<Key> {
    let mut parts = name.splitn(3, '/');
    let (kind, ns, name) = match (parts.next()?, parts.next()?, parts.next()) {
        (kind, ns, Some(name)) => (kind, ns, name),
        (kind, name, None) => (kind, "", name),
    };
    let mut asked = input.change.requests.iter().map(|request| &request.target.kind);
    let kind = Kind::builtin(kind).or_else(|| asked.find(|asked| asked.is(kind)).cloned())?;
    Some(Key::new(kind, ns, name))
}
