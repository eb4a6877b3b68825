//! What is found by a label: one that objects bear, or one that says what else is looked for.

use std::sync::Arc;

use super::Snapshot;
use super::facts::{Fact, note};
use super::labels::{
    APART, BINDING, CLAIM, ENDING, FAILING, FLEETING, FOLLOWING, HOST, LEAVING, LOW, LabelKey, RANKED, SPREAD, WAITING,
    asking_beside, related_to,
};
use crate::object::Object;
use crate::value::{Str, Val};

impl Snapshot {
    /// The objects in a namespace that bear this label: pods, claims, and workloads and custom resources whose template bears it.
    pub fn labelled(&self, ns: &str, key: &Str, value: &Str) -> Vec<&Arc<Object>> {
        self.under((Str::from(ns), key.clone(), value.clone()))
    }

    /// The Ingresses and routes that name this host and path.
    pub fn claiming(&self, host: &str, path: &str) -> Vec<&Arc<Object>> {
        self.under((Str::from(path), HOST.into(), host.into()))
    }

    /// The pods whose required anti-affinity may be about pods of a namespace.
    pub fn keeping_apart(&self, ns: &str) -> Vec<&Arc<Object>> {
        let of = |ns: &str| self.under((Str::from(ns), APART.into(), "".into()));
        let mut found = of(ns);
        found.extend(of(""));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// The PersistentVolumes whose claimRef is of this namespace and name.
    pub fn claimed_by(&self, ns: &str, name: &str) -> Vec<&Arc<Object>> {
        self.under((Str::from(ns), CLAIM.into(), name.into()))
    }

    /// The bindings that mean a ServiceAccount. One may be there several times.
    pub fn binding(&self, ns: &str, account: &str) -> Vec<&Arc<Object>> {
        let meaning = [(ns, account), (ns, ""), ("", "")].into_iter();
        meaning.flat_map(|(ns, name)| self.under((ns.into(), BINDING.into(), name.into()))).collect()
    }

    /// The custom resources, definitions and StatefulSets that are being deleted.
    pub fn ending(&self) -> Vec<&Arc<Object>> {
        self.marked(ENDING)
    }

    /// The workloads whose pods a hard spread constraint keeps alike in number over domains.
    pub fn spreading(&self) -> Vec<&Arc<Object>> {
        self.marked(SPREAD)
    }

    /// What makes pods, and pods that wait for a node, that a required pod affinity places.
    pub fn following(&self) -> Vec<&Arc<Object>> {
        self.marked(FOLLOWING)
    }

    /// The pods that wait for a node.
    pub fn waiting(&self) -> Vec<&Arc<Object>> {
        self.marked(WAITING)
    }

    /// The pods on nodes whose priority is that of this class or, without one, stated and below 0.
    pub fn low(&self, class: &str) -> Vec<&Arc<Object>> {
        self.under(("".into(), LOW.into(), class.into()))
    }

    /// The custom resources of which an expression of their adapter failed.
    pub fn failing(&self) -> Vec<&Arc<Object>> {
        self.marked(FAILING)
    }

    /// What makes pods of a stated priority or class, and pods of such that wait for a node.
    pub fn ranked(&self) -> Vec<&Arc<Object>> {
        self.marked(RANKED)
    }

    /// What makes pods, and pods that wait for a node, that may ask for something of a pod with these labels in a namespace, by
    /// affinity, anti-affinity or spreading. One may be there several times.
    pub fn related_to(&self, ns: &str, labels: &Val) -> Vec<&Arc<Object>> {
        related_to(ns, labels).into_iter().flat_map(|label| self.under(label)).collect()
    }

    /// The objects in a namespace whose selector is written with one of these labels, or with none, as far as [`Self::selecting`]
    /// does not find them by that. One may be there several times.
    pub fn asking_beside(&self, ns: &Str, labels: &Val) -> Vec<&Arc<Object>> {
        asking_beside(ns, labels).into_iter().flat_map(|label| self.under(label)).collect()
    }

    /// The pods on nodes that end by themselves: they are being deleted, or have a deadline.
    pub fn fleeting(&self) -> Vec<&Arc<Object>> {
        self.marked(FLEETING)
    }

    /// All else that is being deleted.
    pub fn leaving(&self) -> Vec<&Arc<Object>> {
        self.marked(LEAVING)
    }

    /// The objects of all namespaces under a label that has no value.
    fn marked(&self, label: &str) -> Vec<&Arc<Object>> {
        self.under(("".into(), label.into(), "".into()))
    }

    /// The objects under a label.
    fn under(&self, label: LabelKey) -> Vec<&Arc<Object>> {
        note(Fact::Label(&label));
        self.slots_of(self.by_label.get(&label))
    }
}

#[cfg(test)]
mod tests;
