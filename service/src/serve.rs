//! `suture serve`: the admission webhook in front of a cluster.

pub mod answer;
pub mod certificates;
pub mod health;
pub mod metrics;
pub mod review;
pub mod router;
pub mod server;
pub mod telemetry;
pub mod tls;
pub mod workers;
