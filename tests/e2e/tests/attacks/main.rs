//! The worst day: what tenants, strangers and outages may do to a cluster with Suture in front, and what others see of it.
//!
//! | module | attacks |
//! |---|---|
//! | `cold_start` | the whole cluster is down and comes up, Suture last, under `failurePolicy: Fail` |
//! | `expensive` | objects that are expensive to decide |
//! | `policies` | an invariant of a tenant that takes all the time that it gets |
//! | `rights` | an owner of a kind that Suture may not read, and an invariant about one with the name of another |
//! | `silence` | Suture is switched off, emptied, tampered with, stopped for a while |
//! | `strangers` | whoever reaches the webhook's port asks nothing, or too much |
//! | `tenants` | objects that cannot be read, and writes that the API server refuses after Suture admitted them |
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop where it fails"
)]
#![expect(clippy::disallowed_methods, reason = "how long things take is the point")]

mod attackers;
mod cold_start;
mod expensive;
mod honest;
mod policies;
mod rights;
mod silence;
mod strangers;
mod tenants;

use std::time::Duration;

use suture_e2e::installed::{Installed, install};
use suture_e2e::suture::user;
use suture_e2e::table::Table;
use suture_e2e::{Cluster, Kubectl, Nodes, Options, wait};

/// Far more than any recovery takes, so that only what never comes about fails.
const RECOVERED_MAX: Duration = Duration::from_secs(90);

/// A cluster of so many nodes, with what Suture under the strict profile needs in it.
fn prepared(nodes: usize) -> (Cluster, Kubectl) {
    let options = Options { users: vec![user()], nodes: Nodes::new(nodes), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    install(&admin, &["--profile", "strict"]).expect("install");
    (cluster, admin)
}

/// Suture with these flags, once it is ready.
fn launched(cluster: &Cluster, flags: &[&str]) -> Installed {
    let suture = Installed::new(cluster, "suture-0", None, flags).expect("suture");
    suture.process.launch().expect("launch");
    suture.wait_ready().expect("ready");
    // what is about objects of every kind is undecided as long as one that is built in may not be read
    let metrics = suture.metrics().expect("metrics");
    assert!(!metrics.contains("suture_forbidden{"), "not all that is built in may be read: {metrics}");
    suture
}

/// What each attack's table has.
fn table() -> Table {
    Table::new(&["attack", "the attacker may", "others saw", "recovery s"])
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

/// Waits until something holds; says how long that took.
#[track_caller]
fn until(what: &str, attempt: impl FnMut() -> Result<(), String>) -> Duration {
    let (reached, took) = wait::timed(|| wait::until(what, RECOVERED_MAX, attempt));
    reached.expect("reached");
    took
}
