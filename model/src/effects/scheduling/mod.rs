//! Where the scheduler puts new pods: one file for each of its plugins, each the one place of its rule.
//!
//! | file | what |
//! |---|---|
//! | `template`, `term`, `host_port`, `room` | what a template asks for |
//! | `node_classes`, `topology`, `usage`, `foreign_pods` | what is there: nodes, their pods, what these take and keep off |
//! | `constraint` | a plugin: what it rejects, how it tells nodes apart, what it limits, what it keeps waiting |
//! | `node_affinity`, `taints`, `resources`, `affinity`, `spread`, `ports`, `volumes`, `gates` | the plugins |
//! | `classifier`, `places` | nodes that are alike, and the places that they make |
//! | `limits`, `pending` | the limits on where new pods go, and when they stay pending |

pub mod affinity;
pub mod classifier;
pub mod constraint;
pub mod foreign_pods;
pub mod gates;
pub mod host_port;
pub mod limits;
pub mod new_templates;
pub mod node_affinity;
pub mod node_classes;
pub mod pending;
pub mod places;
pub mod plugins;
pub mod ports;
pub mod resources;
pub mod room;
pub mod spread;
pub mod taints;
pub mod template;
pub mod term;
pub mod topology;
pub mod usage;
pub mod volumes;
