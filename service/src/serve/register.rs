//! The webhook's configuration follows the loaded policy and the certificates, once this replica is ready.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::time::sleep;

use super::configuration::{Note, Target, reconcile, webhook};
use super::health::{CERTIFICATES, Readiness};
use super::off::{Cause, Off};
use super::paths::Segments;
use super::store::Store;

/// How often it is looked whether another policy is loaded.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the configuration is made from.
pub struct Registrar {
    /// What is loaded.
    pub store: Arc<Store>,
    /// How the API server reaches Suture; the certificates in it are put in from the bundle.
    pub target: Target,
    /// What the API server is to trust.
    pub bundle: Receiver<String>,
    /// The part of the address that nobody can guess.
    pub segments: Segments,
    /// Told what it was given.
    pub published: Sender<String>,
    /// Told whether the API server asks, or why not.
    pub registered: Sender<Result<(), String>>,
    /// Told what keeps the API server from asking.
    pub off: Off,
    /// Nothing is registered before this replica could judge.
    pub readiness: Readiness,
}

impl Registrar {
    /// Keeps the configuration, for ever.
    pub async fn run(self, client: Client) {
        let (wanted, wants) = channel(None);
        let Self { store, target, bundle, segments, published, registered, off, readiness } = self;
        let given = bundle.clone();
        let keeping = reconcile(client, wants, move |note| {
            let standing = match &note {
                Note::Off(reason) => Some((Cause::Switch, format!("turned off: {reason}"))),
                Note::Unwritten(why) => {
                    Some((Cause::Configuration, format!("the webhook's configuration is not as wanted: {why}")))
                }
                Note::InPlace | Note::Written | Note::Drifted | Note::Deleted => None,
                Note::Failed(_) => return tracing::warn!(note = ?note, "webhook configuration"),
            };
            for cause in [Cause::Switch, Cause::Configuration] {
                let why = standing.as_ref().filter(|(of, _)| *of == cause).map(|(_, why)| why.as_str());
                off.set(cause, why);
            }
            _ = registered.send_replace(standing.map_or(Ok(()), |(_, why)| Err(why)));
            match note {
                Note::InPlace | Note::Written => {
                    published.send_replace(given.borrow().clone());
                    tracing::info!(note = ?note, "webhook configuration");
                }
                Note::Drifted => off.repaired("changed by somebody else"),
                Note::Deleted => off.repaired("deleted by somebody else"),
                Note::Off(_) | Note::Unwritten(_) | Note::Failed(_) => {}
            }
        });
        let wanting = async {
            let mut made: Option<(u64, String, Option<String>)> = None;
            loop {
                let view = store.read();
                let now = (view.loaded.generation, bundle.borrow().clone(), segments.current());
                if made.as_ref() != Some(&now) && could_judge(&readiness) {
                    let (ca_bundle, segment) = (now.1.clone().into_bytes(), now.2.clone());
                    let target = Target { ca_bundle, segment, ..target.clone() };
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
