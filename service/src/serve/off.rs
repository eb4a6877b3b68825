//! Why no request is judged though Suture runs: said by readiness, a metric, an event and the log, as long as it lasts.
//!
//! | cause | ends |
//! |---|---|
//! | the switch: `suture emergency-off`, the annotation `suture.dev/off` | when the annotation is taken away |
//! | the webhook's configuration is not as wanted, and cannot be put right | when it can |
//! | the definitions of Suture's own kinds are not there | when they are |
//! | no invariant and no grant is loaded | when one is |
//!
//! A replica that is off is ready: it does what it was told, and a restart does not turn it on. The conditions of Suture's
//! own resources say the same (`super::reporter`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::events::Event;
use super::metrics::Metrics;
use crate::clock::now;

/// Between two events of one cause: who meddles again and again fills no cluster with events.
const EVENT_PERIOD: Duration = Duration::from_secs(10);

/// What turns it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Somebody threw the switch.
    Switch,
    /// The webhook's configuration is not as wanted.
    Configuration,
    /// The definitions of Suture's own kinds are gone.
    Definitions,
    /// Nothing is loaded that could be judged.
    Policy,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Switch, Self::Configuration, Self::Definitions, Self::Policy];

    /// In one word, as a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Configuration => "configuration",
            Self::Definitions => "definitions",
            Self::Policy => "policy",
        }
    }
}

/// What is to be told by an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub cause: Cause,
    /// The event's reason, in one word of Kubernetes' style.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Whether it is off; cheap to clone.
#[derive(Clone)]
pub struct Off {
    causes: Arc<Mutex<BTreeMap<Cause, String>>>,
    metrics: Metrics,
    notices: UnboundedSender<Notice>,
}

impl Off {
    /// On, with what is to be told by events.
    pub fn new(metrics: Metrics) -> (Self, UnboundedReceiver<Notice>) {
        let (notices, told) = unbounded_channel();
        Cause::ALL.iter().for_each(|cause| metrics.off(cause.as_str(), false));
        (Self { causes: Arc::default(), metrics, notices }, told)
    }

    /// Says whether a cause holds, and why. Only changes are told.
    pub fn set(&self, cause: Cause, why: Option<&str>) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        if causes.get(&cause).map(String::as_str) == why {
            return;
        }
        self.metrics.off(cause.as_str(), why.is_some());
        match why {
            Some(why) => {
                causes.insert(cause, why.to_owned());
                tracing::warn!(cause = cause.as_str(), why, "off: no request is judged");
                self.notice(cause, "Off", format!("no request is judged: {why}"));
            }
            None => {
                causes.remove(&cause);
                tracing::warn!(
                    cause = cause.as_str(),
                    "on again: this does not keep requests from being judged any more"
                );
                self.notice(cause, "On", format!("what kept requests from being judged is over ({})", cause.as_str()));
            }
        }
    }

    /// Somebody else changed the webhook's configuration, and it was put right.
    pub fn repaired(&self, what: &str) {
        self.metrics.repaired();
        tracing::warn!(what, "the webhook's configuration was put right");
        self.notice(Cause::Configuration, "Repaired", format!("the webhook's configuration was {what}, and put right"));
    }

    /// Whether this cause holds.
    pub fn is(&self, cause: Cause) -> bool {
        self.causes.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&cause)
    }

    /// Why it is off, a line each; empty when it is on.
    pub fn lines(&self) -> Vec<String> {
        let causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        causes.values().map(|why| format!("off: {why}")).collect()
    }

    fn notice(&self, cause: Cause, reason: &'static str, message: String) {
        // nobody listens when the process ends
        _ = self.notices.send(Notice { cause, reason, message });
    }
}

/// Writes an Event about this replica's pod for each notice, for ever; of one cause and reason at most one each ten seconds.
pub async fn write_events(client: Client, namespace: String, pod: String, mut told: UnboundedReceiver<Notice>) {
    let mut last: BTreeMap<(Cause, &'static str), Instant> = BTreeMap::new();
    while let Some(notice) = told.recv().await {
        let time = now();
        let key = (notice.cause, notice.reason);
        if last.get(&key).is_some_and(|last| time.saturating_duration_since(*last) < EVENT_PERIOD) {
            continue;
        }
        last.insert(key, time);
        let regarding = json!({"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod});
        let Notice { reason, message, .. } = notice;
        Event { regarding, warns: reason != "On", reason, message }.write(&client).await;
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Off};
    use crate::serve::fixtures::series;
    use crate::serve::metrics::Metrics;

    #[test]
    fn what_turns_it_off_is_told_once_by_all_means() {
        let metrics = Metrics::default();
        let (off, mut told) = Off::new(metrics.clone());
        assert_eq!((off.lines().len(), series(&metrics, "suture_off{reason=\"switch\"}")), (0, 0.0));
        off.set(Cause::Switch, Some("turned off: incident 4711"));
        off.set(Cause::Switch, Some("turned off: incident 4711"));
        off.set(Cause::Policy, Some("nothing is loaded"));
        assert_eq!(off.lines(), ["off: turned off: incident 4711", "off: nothing is loaded"]);
        assert_eq!(series(&metrics, "suture_off{reason=\"switch\"}"), 1.0);
        off.set(Cause::Switch, None);
        off.set(Cause::Switch, None);
        assert_eq!(series(&metrics, "suture_off{reason=\"switch\"}"), 0.0);
        off.repaired("deleted");
        assert_eq!(series(&metrics, "suture_configuration_repairs_total"), 1.0);
        let reasons: Vec<&str> = std::iter::from_fn(|| told.try_recv().ok()).map(|notice| notice.reason).collect();
        assert_eq!(reasons, ["Off", "Off", "On", "Repaired"]);
    }
}
