//! The generated cluster has the shape and the size that were asked for, and is the same each time.

use std::collections::BTreeMap;

use suture_model::ingest;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use super::*;
use crate::bench::requests::{ALL, draw};

fn made(size: Size) -> (Vec<Val>, Inventory) {
    let mut manifests = Vec::new();
    let inventory = generate(size, &mut |manifest| manifests.push(manifest));
    (manifests, inventory)
}

const SIZE: Size = Size { nodes: 200, pods: 6_000, seed: 7 };

#[test]
fn the_shape_is_that_of_the_load_test() {
    let (manifests, inventory) = made(SIZE);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for manifest in &manifests {
        *counts.entry(manifest.str_at(&["kind"]).unwrap()).or_default() += 1;
    }
    assert_eq!((counts["Node"], counts["Pod"], counts["Namespace"]), (200, 6_000, 2));
    let of_size = |size| inventory.deployments.iter().filter(|workload| workload.replicas == size).count();
    assert_eq!((of_size(250), of_size(30)), (6, 50));
    assert_eq!(counts["StatefulSet"] * MEMBERS, counts["PersistentVolumeClaim"]);
    assert_eq!(counts["Deployment"], counts["ReplicaSet"]);
    let ready = inventory.deployments.iter().filter(|workload| workload.service).count();
    assert_eq!(counts["Service"], ready + counts["StatefulSet"]);
    assert!(2 * ready.abs_diff(counts["Deployment"] / 2) < counts["Deployment"] / 10, "Services over half of them");
}

#[test]
fn the_same_seed_makes_the_same_cluster_and_requests() {
    let requests = |size: Size| {
        let (manifests, inventory) = self::made(size);
        let mut snapshot = Snapshot::default();
        for manifest in &manifests {
            ingest::objects(manifest).unwrap().into_iter().for_each(|object| snapshot.insert(object));
        }
        assert_eq!(snapshot.len(), manifests.len(), "every object has a name of its own");
        let (state, mut prng) = (State::new(&snapshot), Prng::new(size.seed));
        let draws = (0..200).filter_map(|_| draw(ALL, &state, &inventory, &mut prng));
        let drawn: Vec<String> = draws.map(|(_, request)| request.describe()).collect();
        (manifests, drawn)
    };
    let made = requests(SIZE);
    assert_eq!(made, requests(SIZE));
    assert_ne!(made.1, requests(Size { seed: 8, ..SIZE }).1);
}

#[test]
fn every_reference_of_the_cluster_resolves() {
    let (manifests, _) = made(Size { nodes: 100, pods: 1_000, seed: 1 });
    let mut snapshot = Snapshot::default();
    for manifest in &manifests {
        ingest::objects(manifest).unwrap().into_iter().for_each(|object| snapshot.insert(object));
    }
    let before = snapshot.len();
    snapshot.complete();
    assert_eq!(snapshot.len(), before, "no node or volume is only named");
    for object in snapshot.iter() {
        for owner in object.owners() {
            assert!(snapshot.by_uid(&owner.uid).is_some(), "{}", object.key);
        }
    }
}
