//! The webhook's configuration follows the loaded policy and the certificates, once this replica is ready.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::time::sleep;

use super::configuration::{Note, Target, reconcile, webhook};
use super::health::Readiness;
use super::store::Store;

/// How often it is looked whether another policy is loaded.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The part of the readiness that waits for this one, and must not be waited for.
const CERTIFICATES: &str = "certificates";

/// What the configuration is made from.
pub struct Registrar {
    /// What is loaded.
    pub store: Arc<Store>,
    /// How the API server reaches Suture; the certificates in it are put in from the bundle.
    pub target: Target,
    /// What the API server is to trust.
    pub bundle: Receiver<String>,
    /// Told what it was given.
    pub published: Sender<String>,
    /// Told whether the API server asks, or why not.
    pub registered: Sender<Result<(), String>>,
    /// Nothing is registered before this replica could judge.
    pub readiness: Readiness,
}

impl Registrar {
    /// Keeps the configuration, for ever.
    pub async fn run(self, client: Client) {
        let (wanted, wants) = channel(None);
        let Self { store, target, bundle, published, registered, readiness } = self;
        let given = bundle.clone();
        let keeping = reconcile(client, wants, move |note| {
            match &note {
                Note::Off(reason) => drop(registered.send_replace(Err(format!("turned off: {reason}")))),
                Note::InPlace | Note::Written | Note::Drifted | Note::Deleted => drop(registered.send_replace(Ok(()))),
                Note::Failed(_) => {}
            }
            match note {
                Note::InPlace | Note::Written => {
                    published.send_replace(given.borrow().clone());
                    tracing::info!(note = ?note, "webhook configuration");
                }
                other => tracing::warn!(note = ?other, "webhook configuration"),
            }
        });
        let wanting = async {
            let mut made: Option<(u64, String)> = None;
            loop {
                let view = store.read();
                let now = (view.loaded.generation, bundle.borrow().clone());
                if made.as_ref() != Some(&now) && could_judge(&readiness) {
                    let target = Target { ca_bundle: now.1.clone().into_bytes(), ..target.clone() };
                    wanted.send_replace(Some(webhook(&view.loaded.policy, &target)));
                    made = Some(now);
                }
                drop(view);
                sleep(LOOK_EVERY).await;
            }
        };
        tokio::join!(keeping, wanting);
    }
}

fn could_judge(readiness: &Readiness) -> bool {
    readiness.ready().err().is_none_or(|missing| missing.iter().all(|line| line.starts_with(CERTIFICATES)))
}
