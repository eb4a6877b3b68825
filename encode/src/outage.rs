//! Which outages need to be looked at: every choice of failing nodes and zones, up to nodes that are alike.
//!
//! Few fault scenarios are enumerated outside the solver: that folds more and tells better what failed. Two nodes are
//! alike when they hold the same numbers of the same classes of the entities that the question reads and admit new pods
//! alike; failing one or the other is the same question.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::effects::{new_templates, node_signatures};
use suture_model::futures::{Faults, Outage};
use suture_model::kinds::Kind;
use suture_model::navigate::node_zone;
use suture_model::value::Str;

use crate::scene::Scene;

/// How many outages one question looks at; more is refused.
pub const OUTAGES_MAX: usize = 4096;

/// More outages than are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {OUTAGES_MAX} different ways to lose so many nodes and zones")]
pub struct TooManyOutages;

/// The outages to look at, none first. `scene` is the question's scene without an outage.
///
/// # Errors
/// When there are more than [`OUTAGES_MAX`].
pub fn outages(scene: &Scene<'_, '_>, faults: Faults) -> Result<Vec<Outage>, TooManyOutages> {
    if faults == Faults::default() {
        return Ok(vec![Outage::default()]);
    }
    let mut zones: BTreeMap<Str, BTreeSet<Str>> = BTreeMap::new();
    let mut live: BTreeSet<Str> = BTreeSet::new();
    for node in scene.state().list(&Kind::new("", "Node"), None) {
        if node.live() {
            live.insert(node.key.name.clone());
            if let Some(zone) = node_zone(node) {
                zones.entry(zone).or_default().insert(node.key.name.clone());
            }
        }
    }
    let by_zone = choices(&zones.keys().cloned().map(|z| vec![z]).collect::<Vec<_>>(), faults.zones)?;
    let classes: Vec<Vec<Str>> = if faults.nodes == 0 { Vec::new() } else { alike(scene, &live) };
    let by_node = choices(&classes, faults.nodes)?;
    let mut found: Vec<Outage> = Vec::new();
    for lost_zones in &by_zone {
        for lost_nodes in &by_node {
            let mut nodes: BTreeSet<Str> = lost_nodes.iter().cloned().collect();
            nodes.extend(lost_zones.iter().filter_map(|z| zones.get(z)).flatten().cloned());
            let outage = Outage { nodes, zones: lost_zones.iter().cloned().collect() };
            if !found.contains(&outage) {
                found.push(outage);
            }
            if found.len() > OUTAGES_MAX {
                return Err(TooManyOutages);
            }
        }
    }
    Ok(found)
}

/// Nodes by what they hold and admit; nodes that nothing tells apart stand together.
fn alike(scene: &Scene<'_, '_>, live: &BTreeSet<Str>) -> Vec<Vec<Str>> {
    if scene.grain.nodes || scene.grain.identity {
        return live.iter().map(|n| vec![n.clone()]).collect();
    }
    let mut held: BTreeMap<Str, Vec<(usize, usize)>> = BTreeMap::new();
    let mut templates = Vec::new();
    for (at, coded) in scene.coded().iter().enumerate() {
        for template in new_templates(&coded.group) {
            if !templates.contains(&template) {
                templates.push(template);
            }
        }
        for (class_at, class) in coded.classes.iter().enumerate() {
            for entity in &class.entities {
                let key = coded.group.entities.get(*entity).and_then(|e| e.key.as_ref());
                let Some(pod) = key.and_then(|k| scene.state().get(k)) else { continue };
                if !pod.node.is_empty() {
                    held.entry(pod.node.clone()).or_default().push((at, class_at));
                }
            }
        }
    }
    let admission = if templates.is_empty() { BTreeMap::new() } else { node_signatures(scene.scenario, &templates) };
    let mut classes: BTreeMap<(Vec<(usize, usize)>, Option<_>), Vec<Str>> = BTreeMap::new();
    for node in live {
        let mut holds = held.get(node).cloned().unwrap_or_default();
        holds.sort_unstable();
        let admits = admission.get(node).cloned();
        if holds.is_empty() && admits.is_none() {
            continue;
        }
        classes.entry((holds, admits)).or_default().push(node.clone());
    }
    classes.into_values().collect()
}

/// Every way to take up to `most` from classes of interchangeable things, taking the first of a class first.
fn choices(classes: &[Vec<Str>], most: u32) -> Result<Vec<Vec<Str>>, TooManyOutages> {
    let mut found: Vec<Vec<Str>> = vec![Vec::new()];
    for class in classes {
        let mut longer = Vec::new();
        for taken in &found {
            let free = (most as usize).saturating_sub(taken.len()).min(class.len());
            for number in 1..=free {
                let mut more = taken.clone();
                more.extend(class.iter().take(number).cloned());
                longer.push(more);
            }
        }
        found.extend(longer);
        if found.len() > OUTAGES_MAX {
            return Err(TooManyOutages);
        }
    }
    Ok(found)
}
