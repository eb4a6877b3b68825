//! Nodes and volumes that are only named: they are there, and unremarkable.

use super::Snapshot;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::value::{Str, Val};

impl Snapshot {
    /// Adds the Nodes that pods name and the PersistentVolumes that claims name, where the state does not hold them
    /// (FORMATS: state). A Node so added is Ready; a volume so added is bound to its claim, and its reclaim policy is
    /// the default of a StorageClass, Delete.
    pub fn complete(&mut self) {
        let mut missing = Vec::new();
        for node in self.by_node.keys().filter(|n| !n.is_empty()) {
            if self.get(&Key::of("Node", "", node)).is_none() && !self.unknown.contains("Node") {
                missing.push(implicit_node(node));
            }
        }
        for claim in self.list(&Kind::new("", "PersistentVolumeClaim"), None) {
            let Some(volume) = claim.val().str_at(&["spec", "volumeName"]) else { continue };
            let known = self.get(&Key::of("PersistentVolume", "", volume)).is_some();
            if !known && !self.unknown.contains("PersistentVolume") {
                missing.push(implicit_volume(volume, claim));
            }
        }
        for val in missing {
            if let Ok(object) = Object::from_val(&val) {
                self.insert(object);
            }
        }
    }
}

fn implicit_node(name: &Str) -> Val {
    let ready = Val::object([("type", Val::str("Ready")), ("status", Val::str("True"))]);
    Val::object([
        ("apiVersion", Val::str("v1")),
        ("kind", Val::str("Node")),
        (
            "metadata",
            Val::object([
                ("name", Val::Str(name.clone())),
                ("labels", Val::object([("kubernetes.io/hostname", Val::Str(name.clone()))])),
            ]),
        ),
        ("status", Val::object([("conditions", Val::list(vec![ready]))])),
    ])
}

fn implicit_volume(name: &Str, claim: &Object) -> Val {
    let claim_ref = Val::object([
        ("kind", Val::str("PersistentVolumeClaim")),
        ("namespace", Val::Str(claim.key.ns.clone())),
        ("name", Val::Str(claim.key.name.clone())),
        ("uid", Val::Str(claim.uid.clone())),
    ]);
    Val::object([
        ("apiVersion", Val::str("v1")),
        ("kind", Val::str("PersistentVolume")),
        ("metadata", Val::object([("name", Val::Str(name.clone()))])),
        ("spec", Val::object([("claimRef", claim_ref), ("persistentVolumeReclaimPolicy", Val::str("Delete"))])),
        ("status", Val::object([("phase", Val::str("Bound"))])),
    ])
}
