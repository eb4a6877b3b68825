//! The last stratum: where the new pods of a group go, once all its entities are known.
//!
//! Over-approximations: what other workloads' pods keep free or apart is not relied on when a pod is placed (once all has
//! settled, see `foreign_pods`), but may keep it pending. Once all has settled, pods of other workloads are taken to keep the
//! resources that they request; before that, they may have gone.

use std::collections::BTreeMap;

use super::constraint::Placing;
use super::foreign_pods::Staying;
use super::pending::limit_pending;
use super::plugins::PLUGINS;
use super::topology::Topology;
use crate::effects::builder::Described;
use crate::effects::linear::{at_most, placed};
use crate::futures::{Group, LimitLabel};

/// Writes down the limits on where the new pods go that `Builder::schedule` asked for, beside pods of other workloads that
/// stay.
pub fn scheduled(mut group: Described<'_, '_>, staying: &Staying<'_>) -> Group {
    if !group.wants_places() || group.placed.is_empty() {
        return group.group();
    }
    let builder = &mut group;
    let asked = std::mem::take(&mut builder.placed);
    let topology = Topology::new(builder);
    for (maker, set, template) in &asked {
        let Some(own) = builder.templates.get(*template).cloned() else { continue };
        if !own.admits_any() {
            let none = at_most(vec![placed(*set)], 0);
            builder.limit(LimitLabel::NoNodeAdmits { workload: maker.clone() }, vec![none]);
        }
        let looks = builder.after() && builder.caused_by_request;
        let mut placing = Placing {
            builder,
            topology: &topology,
            staying,
            asked: &asked,
            maker,
            set: *set,
            own: &own,
            blocked: BTreeMap::new(),
        };
        for plugin in PLUGINS {
            plugin.limits(&mut placing);
        }
        if looks {
            limit_pending(placing);
        }
    }
    group.group()
}
