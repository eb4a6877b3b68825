//! A client that means no harm, beside an attack.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use suture_e2e::{Api, Cluster};

/// What it may wait meanwhile, on a machine that does much else.
pub const WAIT_MAX: Duration = Duration::from_secs(2);
/// What Suture may take under all of it.
pub const MEMORY_MAX_BYTES: u64 = 256 << 20;
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(20);

/// What it waited for each of its requests, the longest last.
#[derive(Default)]
pub struct Waits(Vec<Duration>);

impl Waits {
    /// Takes in others.
    pub fn add(&mut self, others: Self) {
        self.0.extend(others.0);
        self.0.sort();
    }

    /// The longest one.
    pub fn longest(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }

    /// What 99 of 100 take no longer than.
    pub fn p99(&self) -> Duration {
        self.0.get(self.0.len() * 99 / 100).copied().unwrap_or_default()
    }
}

/// What it waits for; each of its requests, at least one, must be admitted.
pub fn honest(cluster: &Cluster, lasts: Duration) -> Waits {
    let api = Api::new(cluster, "admin").expect("api");
    let (began, mut waits) = (Instant::now(), Vec::new());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
    loop {
        let asked = Instant::now();
        let reply = api.call("POST", "/api/v1/namespaces/shop/configmaps?dryRun=All", Some(&object)).expect("answer");
        assert!(reply.done(), "{}", reply.message());
        waits.push(asked.elapsed());
        if began.elapsed() >= lasts {
            waits.sort();
            return Waits(waits);
        }
        thread::sleep(PAUSE);
    }
}
