//! What is violated in the cluster as it is: looked at now and then, by the replica that holds the Lease (of replicas that
//! have none, by the first by name), with the time that is left over. It is told by metrics, and by the status of what is in
//! the cluster as a resource.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suture_checker::audit::{Audit, Audits};
use suture_checker::decision::{Finding, Verdict};
use suture_checker::engine::STEPS_WEBHOOK;
use suture_checker::version::VersionError;
use suture_specs::compile::CompiledInvariant;

use super::near_audit::{NearAudit, Nearly};
use super::resources::ResourceName;
use super::status::Audited;
use super::store::Store;
use crate::clock::{Clock, now};

/// How often.
const AUDIT_EVERY: Duration = Duration::from_secs(30);
/// How soon after the last one, where another policy was loaded or something was not read yet.
const AUDIT_AGAIN: Duration = Duration::from_secs(2);
/// It pauses so many times as long as it took: a twentieth of a processor. All shipped invariants take half a minute for
/// 150,000 pods the first time, and seconds after that.
const PAUSE_FACTOR: u32 = 20;

/// The reason where something that an invariant reads is not known.
const NOT_READ: &str = "NotRead";

/// Audits, and remembers what was found.
#[derive(Default)]
pub struct Auditor {
    /// What was found of the invariants of the load that the last one was of.
    audits: Option<Audits>,
    found: BTreeMap<ResourceName, Audited>,
    /// Since when there is something to look at.
    since: Option<Instant>,
    /// When the last one ended, how long it took, and the load that it was of.
    last: Option<(Instant, Duration, u64)>,
    near: NearAudit,
    /// What is one step away from being violated, of each invariant that was looked at.
    nearly: BTreeMap<ResourceName, Nearly>,
}

impl Auditor {
    /// What is known of an invariant; of one that was not looked at yet, what the last replica said that did.
    pub fn says(&self, name: &ResourceName) -> Audited {
        self.found.get(name).cloned().unwrap_or(Audited::Elsewhere)
    }

    /// What was found, by the label of what was looked at: how many instances are violated; none where that is not known.
    pub fn found(&self) -> impl Iterator<Item = (String, Option<usize>)> {
        self.found.iter().filter_map(|(name, audited)| match audited {
            Audited::Found(violations) => Some((name.label(), Some(violations.len()))),
            Audited::Unknown(..) => Some((name.label(), None)),
            Audited::Nothing | Audited::Elsewhere => None,
        })
    }

    /// What was found of each invariant.
    pub fn all(&self) -> impl Iterator<Item = (&ResourceName, &Audited)> {
        self.found.iter()
    }

    /// What is known to be one step away from violating an invariant; nothing of one that was not looked at yet.
    pub fn nearly(&self, name: &ResourceName) -> Option<&Nearly> {
        self.nearly.get(name)
    }

    /// How many instances are one step away, by the label of what was looked at, and how often all objects were looked at.
    pub fn near(&self) -> (impl Iterator<Item = (String, usize)>, u64) {
        let counted = self.nearly.iter().map(|(name, nearly)| (name.label(), nearly.instances.len()));
        (counted, self.near.rounds())
    }

    /// Looks one step ahead for a while, if it is time to, once it is known what is violated; whether it did.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn look_ahead(&mut self, store: &Store) -> Result<bool, VersionError> {
        let Some(audits) = &self.audits else { return Ok(false) };
        let refuted = |audit: &Audit| -> Vec<(String, String)> {
            let refuted = audit.verdicts().filter(|verdict| verdict.outcome == Finding::Refuted);
            refuted.map(|verdict| (verdict.invariant.clone(), verdict.instance.clone())).collect()
        };
        let violated = || -> BTreeSet<(String, String)> { audits.each().flat_map(refuted).collect() };
        let has_looked = self.near.look(store, violated)?;
        if has_looked {
            self.nearly = self.near.all(self.found.keys());
        }
        Ok(has_looked)
    }

    /// Looks, if it is time to; whether it did.
    pub fn audit(&mut self, store: &Store) -> bool {
        let view = store.read();
        let generation = view.loaded.generation;
        if !self.due(generation, view.unread().is_empty()) {
            return false;
        }
        let began = now();
        let known = self.audits.take().filter(|_| self.last.is_some_and(|(.., of)| of == generation));
        let mut audits = known.unwrap_or_else(|| Audits::of(view.loaded.policy.invariants.iter().cloned()));
        let blind = view.blind();
        let why = |compiled: &Arc<CompiledInvariant>| {
            blind.iter().find(|(blind, _)| Arc::ptr_eq(blind, compiled)).map(|(_, why)| why.clone())
        };
        let time = Clock::now().to_string();
        audits.audit(&view.snapshot, Some(&time), STEPS_WEBHOOK, |compiled| why(compiled).is_none());
        let told = |audit: &Audit| match why(&audit.compiled) {
            Some(why) => Audited::Unknown(NOT_READ, why),
            None => told(audit),
        };
        self.found = audits.each().map(|audit| (name_of(&audit.compiled), told(audit))).collect();
        self.audits = Some(audits);
        let took = now().saturating_duration_since(began);
        tracing::debug!(invariants = self.found.len(), micros = took.as_micros(), "audited");
        self.last = Some((now(), took, generation));
        true
    }

    fn due(&mut self, generation: u64, read: bool) -> bool {
        let since = *self.since.get_or_insert_with(now);
        let Some((ended, took, of)) = self.last else {
            // what is still being read is waited for, within reason
            return read || now().saturating_duration_since(since) >= AUDIT_EVERY;
        };
        let blind = self.found.values().any(|audited| matches!(audited, Audited::Unknown(NOT_READ, _)));
        let least = if of != generation || (blind && read) { AUDIT_AGAIN } else { AUDIT_EVERY };
        now().saturating_duration_since(ended) >= least.max(took * PAUSE_FACTOR)
    }
}

/// The resource that an invariant comes from, if it comes from one.
pub fn name_of(invariant: &CompiledInvariant) -> ResourceName {
    ResourceName::of_invariant(&invariant.name)
}

/// What was found of an invariant whose kinds were read.
fn told(audit: &Audit) -> Audited {
    let (refuted, unclear): (Vec<&Verdict>, Vec<&Verdict>) =
        audit.verdicts().partition(|verdict| verdict.outcome == Finding::Refuted);
    match unclear.first() {
        Some(first) if refuted.is_empty() => {
            Audited::Unknown("Undecided", format!("{}: {}", first.instance, first.message))
        }
        _ => Audited::Found(refuted.into_iter().map(|v| (v.instance.clone(), v.message.clone())).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{AUDIT_EVERY, Auditor, NOT_READ, name_of};
    use crate::clock::now;
    use crate::serve::policies::Policies;
    use crate::serve::status::Audited;
    use crate::serve::store::{Change, Store};

    #[test]
    fn what_is_violated_is_found_once_its_kinds_are_read() {
        let mut policies = Policies::default();
        let invariant = r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"named","uid":"u"},
            "spec":{"forEach":{"var":"map","kind":"ConfigMap"},"require":[{"expression":"has(map.at(now).metadata.labels)"}]}}"#;
        policies.put(serde_json::from_str(invariant).unwrap());
        let loaded = policies.load();
        assert_eq!(loaded.problems, []);
        let name = name_of(&loaded.policy.invariants[0]);
        let kinds = loaded.wanted.kinds.clone();
        let store = Store::new(Arc::new(loaded));
        let mut auditor = Auditor::default();
        auditor.audit(&store);
        assert_eq!(auditor.says(&name), Audited::Elsewhere, "what is still being read is waited for");
        auditor.since = now().checked_sub(AUDIT_EVERY);
        auditor.audit(&store);
        assert!(matches!(auditor.says(&name), Audited::Unknown(NOT_READ, _)), "{:?}", auditor.says(&name));
        store.write(kinds.into_iter().map(|kind| Change::Read(kind, crate::serve::store::Reading::Known)).collect());
        auditor.last = None;
        auditor.audit(&store);
        assert_eq!(auditor.says(&name), Audited::Found(Vec::new()));
        assert_eq!(auditor.found().collect::<Vec<_>>(), [("Invariant/named".to_owned(), Some(0))]);
    }
}
