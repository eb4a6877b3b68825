//! What grants' subjects take of their budgets, in the statuses of the grants: a "yes" that takes some goes out only once it
//! stands there. So a replica that is started again, or takes over, knows of all that was admitted.
//!
//! | step | so that |
//! |---|---|
//! | what waits while a status is written is written together, by the next write | any number of requests takes two calls at a time |
//! | a status is written only as long as nobody else wrote it since it was read | nothing that another replica recorded is lost |
//! | what others record is taken over as the watch shows it | replicas that decide at the same time, and one that starts, know it |
//! | what stands there and was not known here is taken over, and those who wait are told to try again | each is decided with all that was recorded |
//!
//! What of a grant a window no longer reaches is left out. A grant that comes from a file has no status: what it counts is
//! forgotten when the process ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use kube::Client;
use kube::core::DynamicObject;
use serde_json::json;
use suture_model::value::{Str, Val};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::in_flight_log::{InFlightLog, Spending};
use super::resources::ResourceName;
use super::status::{api_of, is_conflict, merge};
use super::store::Store;
use crate::clock::Clock;
use crate::failure::in_one_line;
use crate::grants::spent_in_status;

/// How often a write that lost against another one is tried again at once.
const CONFLICTS_MAX: usize = 5;

/// Who is asked to record; cheap to clone.
#[derive(Clone, Debug)]
pub struct Spendings {
    asked: UnboundedSender<Asked>,
}

/// Somebody waits until this is recorded.
#[derive(Debug)]
struct Asked {
    spending: Spending,
    done: oneshot::Sender<Result<(), String>>,
}

impl Spendings {
    /// Records from now on what the log says that is spent.
    pub fn start(client: &Client, log: Arc<InFlightLog>, store: Arc<Store>) -> Self {
        let recorder = Recorder { client: client.clone(), log, store };
        let (asked, waiting) = unbounded_channel();
        tokio::spawn(recorder.run(waiting));
        Self { asked }
    }

    /// Waits until these are recorded. What is not is taken back: the request is to be refused.
    ///
    /// # Errors
    /// When one is not, or more was spent than was known here: then another decision may follow.
    pub async fn record(&self, spendings: Vec<Spending>) -> Result<(), String> {
        let each = spendings.into_iter().map(|spending| async {
            let (done, told) = oneshot::channel();
            _ = self.asked.send(Asked { spending, done });
            told.await.unwrap_or_else(|_| Err("nobody records it".to_owned()))
        });
        join_all(each).await.into_iter().collect()
    }
}

struct Recorder {
    client: Client,
    log: Arc<InFlightLog>,
    store: Arc<Store>,
}

impl Recorder {
    async fn run(self, mut waiting: UnboundedReceiver<Asked>) {
        while let Some(first) = waiting.recv().await {
            let mut together: BTreeMap<Str, Vec<Asked>> = BTreeMap::new();
            let others = std::iter::from_fn(|| waiting.try_recv().ok());
            for asked in std::iter::once(first).chain(others) {
                together.entry(asked.spending.spent.grant.clone()).or_default().push(asked);
            }
            join_all(together.into_iter().map(|(grant, all)| self.record_all(grant, all))).await;
        }
    }

    /// Records what is spent of a grant, or takes it back, before anybody asks for more of it to be recorded.
    async fn record_all(&self, grant: Str, mut all: Vec<Asked>) {
        let result = self.record(&grant, &mut all).await;
        if let Err(why) = &result {
            tracing::warn!(grant = &*grant, why, "what is taken of its budgets is not recorded");
        }
        self.answer(all, &result);
    }

    /// Tells these, and takes back what is not recorded.
    fn answer(&self, asked: impl IntoIterator<Item = Asked>, result: &Result<(), String>) {
        for Asked { spending, done } in asked {
            if result.is_err() {
                self.log.take_back(&spending);
            }
            // some do not wait any longer
            _ = done.send(result.clone());
        }
    }

    /// Brings the log up to date with the status of a grant, and the status with the log, without those that were decided
    /// without something that stands there.
    async fn record(&self, grant: &Str, all: &mut Vec<Asked>) -> Result<(), String> {
        let Some(api) = api_of(&self.client, &ResourceName::of_grant(grant)) else { return Ok(()) };
        for _ in 0..=CONFLICTS_MAX {
            let live = api.get_opt(grant).await.map_err(|error| error.to_string())?;
            // whom it bound is free
            let Some(live) = live else { return Ok(()) };
            let (entries, status) = stored(&live)?;
            self.log.take_over(spent_in_status(grant, &status).map_err(|errors| in_one_line(&errors))?);
            let adopted = self.log.history().adopted();
            let behind = all.extract_if(.., |asked| asked.spending.adopted != adopted);
            self.answer(behind, &Err("more was taken away than this replica knew of".to_owned()));
            let (view, history, now) = (self.store.read(), self.log.history(), Clock::now());
            let kept = view.loaded.policy.grants.kept(grant, &history, now.nanos());
            let kept = kept.map_err(|error| error.to_string())?;
            if all.is_empty() || serde_json::to_value(&kept).ok() == entries {
                return Ok(());
            }
            match merge(&api, &live, json!({"spent": kept})).await {
                Err(error) if is_conflict(&error) => {}
                written => return written.map_err(|error| error.to_string()),
            }
        }
        Err("others write it again and again".to_owned())
    }
}

/// Takes over what the status of a grant says that was spent: as replicas record it, and when this one starts.
pub fn take_over(log: &InFlightLog, grant: &Val) {
    let Some(name) = grant.str_at(&["metadata", "name"]) else { return };
    let status = grant.get("status").cloned().unwrap_or_default();
    match spent_in_status(name, &status) {
        Ok(entries) => log.take_over(entries),
        Err(errors) => {
            tracing::warn!(grant = &**name, why = in_one_line(&errors), "what it spent before cannot be read")
        }
    }
}

/// What the status of a grant has, as it stands there, and the whole status.
fn stored(grant: &DynamicObject) -> Result<(Option<serde_json::Value>, Val), String> {
    let status = grant.data.get("status").cloned().unwrap_or_default();
    let entries = status.get("spent").cloned();
    Ok((entries, serde_json::from_value(status).map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests;
