//! A real control plane for tests: etcd, the API server, the controllers, the scheduler and kwok's nodes as processes on
//! loopback, thrown away at the end.
//!
//! | module | is |
//! |---|---|
//! | [`cluster`] | the whole: starts it, and stops, kills, pauses, resumes or launches each part |
//! | [`parts`] | what it consists of, and the flags of each |
//! | [`kubeconfig`] | users, their tokens and kubeconfigs |
//! | [`kubectl`] | one user's kubectl |
//! | [`nodes`] | nodes that kwok keeps alive |
//! | [`binaries`] | what `tests/controlplane/build` built |
//! | [`process`], [`watchdog`] | a child process, and who ends it when the test dies |
//! | [`suture`] | `suture serve` beside it, one replica or several |
//! | [`installed`] | the same as somebody installs it: its own rights, certificates and registration |
//! | [`authority`], [`balancer`] | the certificate of a webhook, and what spreads connections over replicas |
//! | [`reports_page`], [`browser`] | the reports as a user opens them, and a browser to look at them |
//! | [`api`] | a client of the API server for requests in number |
//! | [`objects`] | what the suites are made of |
//! | [`table`] | what a suite prints |
//! | [`ports`], [`wait`], [`error`] | ports that nobody else takes, waiting within a limit, what went wrong |
#![expect(clippy::indexing_slicing, reason = "JSON of the suites' own making; a suite may stop where it fails")]

pub mod api;
pub mod authority;
pub mod balancer;
pub mod binaries;
pub mod browser;
pub mod cluster;
pub mod error;
pub mod installed;
pub mod kubeconfig;
pub mod kubectl;
pub mod nodes;
pub mod objects;
pub mod parts;
pub mod ports;
pub mod process;
pub mod reports_page;
pub mod suture;
pub mod table;
pub mod wait;
pub mod watchdog;

pub use api::Api;
pub use cluster::{Cluster, Options};
pub use error::Error;
pub use installed::Installed;
pub use kubeconfig::User;
pub use kubectl::Kubectl;
pub use nodes::Nodes;
pub use parts::Part;
pub use suture::{Plan, Suture};
