//! Keeping the configuration in the cluster as the policy wants it, and noticing when somebody else changes it.
//!
//! Whoever annotates it with `suture.dev/off` has turned Suture off on purpose: it is left alone until the annotation is
//! taken away. Anything else is put right, and noted, since it is either a mistake or an attack.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use super::target::{NAME, OFF_ANNOTATION};

/// Between two writes: two replicas that are not yet of the same policy must not chase each other.
const WRITE_PERIOD: Duration = Duration::from_secs(1);

/// What was noticed about the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It is in the cluster as wanted.
    InPlace,
    /// It was made or brought up to date with the policy.
    Written,
    /// Somebody else changed it; it was put right.
    Drifted,
    /// Somebody else deleted it; it was made again.
    Deleted,
    /// It was turned off on purpose, with this reason.
    Off(String),
    /// It is not as wanted and could not be written; this is tried again.
    Unwritten(String),
    /// It could not be read; this is tried again.
    Failed(String),
}

/// What is to be done about the configuration.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Create,
    Replace,
    LeaveOff(String),
}

/// Keeps the configuration as `wanted`, for ever; while nothing is wanted (`None`: not ready yet), it is left alone.
/// Every change of its standing is told to `note`.
pub async fn reconcile(
    client: Client,
    mut wanted: Receiver<Option<ValidatingWebhookConfiguration>>,
    mut note: impl FnMut(Note) + Send,
) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
    let only = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let mut events = watcher(api.clone(), only).default_backoff().boxed();
    let mut live: Option<ValidatingWebhookConfiguration> = None;
    // before the first list nothing is known, and nothing is made
    let (mut listed, mut listing) = (false, None);
    let (mut ours, mut last): (Option<ValidatingWebhookConfiguration>, Option<Note>) = (None, None);
    let mut next_write = Instant::now();
    loop {
        let mut pending = listed && wanted.borrow().as_ref().is_some_and(|w| step(live.as_ref(), w) != Step::Nothing);
        pending &= !live.as_ref().is_some_and(is_off);
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(watcher::Event::Init)) => listing = None,
                Some(Ok(watcher::Event::InitApply(object))) => listing = Some(object),
                Some(Ok(watcher::Event::InitDone)) => (live, listed) = (listing.take(), true),
                Some(Ok(watcher::Event::Apply(object))) => live = Some(object),
                Some(Ok(watcher::Event::Delete(_))) => live = None,
                Some(Err(error)) => tell(&mut last, &mut note, Note::Failed(error.to_string())),
                None => return,
            },
            changed = wanted.changed() => if changed.is_err() { return },
            () = sleep_until(next_write), if pending => {}
        }
        if let Some(reason) = live.as_ref().filter(|live| listed && is_off(live)).and_then(off_reason) {
            // also before this replica could judge: nobody waits for that
            tell(&mut last, &mut note, Note::Off(reason));
            continue;
        }
        let Some(now_wanted) = wanted.borrow().clone().filter(|_| listed) else { continue };
        let found = step(live.as_ref(), &now_wanted);
        match &found {
            Step::Nothing => {
                tell(&mut last, &mut note, Note::InPlace);
                continue;
            }
            Step::Create | Step::Replace | Step::LeaveOff(_) => {}
        }
        let now = Instant::now();
        if now < next_write {
            continue;
        }
        next_write = now + WRITE_PERIOD;
        // what was off is put back by whoever turned it on again
        let resumed = matches!(last, Some(Note::Off(_))) && found == Step::Replace;
        let meddled = !resumed && ours.as_ref().is_some_and(|ours| ours.webhooks == now_wanted.webhooks);
        match write(&api, live.as_ref(), &now_wanted).await {
            Ok(written) => {
                ours = Some(written.clone());
                live = Some(written);
                let told = match (meddled, found) {
                    (true, Step::Create) => Note::Deleted,
                    (true, _) => Note::Drifted,
                    (false, _) => Note::Written,
                };
                tell(&mut last, &mut note, told);
            }
            // somebody else wrote in between: that comes by the watch
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => tell(&mut last, &mut note, Note::Unwritten(error.to_string())),
        }
    }
}

fn tell(last: &mut Option<Note>, note: &mut impl FnMut(Note), now: Note) {
    // meddling is told every time
    let again = matches!(now, Note::Drifted | Note::Deleted | Note::Written);
    if again || last.as_ref() != Some(&now) {
        note(now.clone());
        *last = Some(now);
    }
}

fn off_reason(live: &ValidatingWebhookConfiguration) -> Option<String> {
    live.annotations().get(OFF_ANNOTATION).cloned()
}

fn is_off(live: &ValidatingWebhookConfiguration) -> bool {
    live.annotations().contains_key(OFF_ANNOTATION)
}

fn step(live: Option<&ValidatingWebhookConfiguration>, wanted: &ValidatingWebhookConfiguration) -> Step {
    match live {
        None => Step::Create,
        Some(live) => match live.annotations().get(OFF_ANNOTATION) {
            Some(reason) => Step::LeaveOff(reason.clone()),
            None if live.webhooks == wanted.webhooks => Step::Nothing,
            None => Step::Replace,
        },
    }
}

async fn write(
    api: &Api<ValidatingWebhookConfiguration>,
    live: Option<&ValidatingWebhookConfiguration>,
    wanted: &ValidatingWebhookConfiguration,
) -> Result<ValidatingWebhookConfiguration, kube::Error> {
    let parameters = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
    match live {
        None => api.create(&parameters, wanted).await,
        // with the resourceVersion that was seen: whoever wrote in between, such as by turning it off, wins
        Some(live) => {
            let mut next = live.clone();
            next.webhooks.clone_from(&wanted.webhooks);
            next.metadata.labels.get_or_insert_default().extend(wanted.metadata.labels.clone().unwrap_or_default());
            api.replace(NAME, &parameters, &next).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OFF_ANNOTATION, Step, step};
    use crate::policy::Documents;
    use crate::serve::configuration::{Target, webhook};

    #[test]
    fn only_what_was_turned_off_on_purpose_is_left_alone() {
        let Ok(policy) = Documents::default().compile() else { unreachable!("nothing compiles to nothing") };
        let wanted = webhook(&policy, &Target::default());
        assert_eq!(step(None, &wanted), Step::Create);
        assert_eq!(step(Some(&wanted), &wanted), Step::Nothing);
        let mut live = wanted.clone();
        live.webhooks = Some(Vec::new());
        assert_eq!(step(Some(&live), &wanted), Step::Replace);
        let annotations = live.metadata.annotations.get_or_insert_default();
        annotations.insert(OFF_ANNOTATION.to_owned(), "incident 4711".to_owned());
        assert_eq!(step(Some(&live), &wanted), Step::LeaveOff("incident 4711".to_owned()));
    }
}
