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
        let nodes = self.by_node.keys().filter_map(|name| self.missing_node(name));
        let claims = self.list(&Kind::new("", "PersistentVolumeClaim"), None).into_iter();
        let missing: Vec<Val> = nodes.chain(claims.filter_map(|claim| self.missing_volume(claim))).collect();
        self.add(missing);
    }

    /// [`Self::complete`] where nothing but this object was added since.
    pub fn complete_for(&mut self, key: &Key) {
        let Some(object) = self.get(key).cloned() else { return };
        let missing = self.missing_node(&object.node).into_iter().chain(self.missing_volume(&object)).collect();
        self.add(missing);
    }

    fn add(&mut self, missing: Vec<Val>) {
        for val in missing {
            if let Ok(object) = Object::from_val(&val) {
                self.insert(object);
            }
        }
    }

    fn missing_node(&self, name: &Str) -> Option<Val> {
        let is_read = !self.unknown.contains("Node");
        let is_missing = !name.is_empty() && is_read && self.get(&Key::of("Node", "", name)).is_none();
        is_missing.then(|| implicit_node(name))
    }

    fn missing_volume(&self, claim: &Object) -> Option<Val> {
        let is_claim = claim.key.kind.is("PersistentVolumeClaim") && !self.unknown.contains("PersistentVolume");
        let name = claim.val().str_at(&["spec", "volumeName"]).filter(|_| is_claim)?;
        self.get(&Key::of("PersistentVolume", "", name)).is_none().then(|| implicit_volume(name, claim))
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
