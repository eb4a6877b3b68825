//! What an answer shows to whom: objects in namespaces that the requester may not read have no name in it.
//!
//! A request in one namespace can break what stands in another, and its author would learn names there by a dry run. Whoever
//! may `get` the resource `reports` of `suture.dev` in a namespace may read of it, in answers as in reports
//! ([`super::reports::access`]). The API server is asked once the decision is made, only for answers that name other namespaces,
//! and what it says holds for a minute. Until it has said yes, nothing is shown. Reports and the log have the names.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use serde_json::{Value as Json, json};
use suture_model::value::Val;
use tokio::time::timeout_at;

use super::answer::Answer;
use super::reports::access::{Authority, Readable, Reader};
use super::reports::redact::{namespaces, redacted};
use super::review::text;
use crate::clock::now;

/// How long an answer waits for what its requester may read, at most.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// How long what the API server said of a requester holds.
const HOLDS: Duration = Duration::from_secs(60);
/// Of so many requesters it is known at a time.
const KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();
/// Who asked, and which namespaces the answer names.
type Asked = (Reader, BTreeSet<String>);

/// Leaves out of answers what their requesters may not read; cheap to clone.
#[derive(Clone)]
pub struct Disclosure {
    authority: Arc<dyn Authority>,
    known: Arc<Mutex<LruCache<Asked, (Readable, Instant)>>>,
}

impl Disclosure {
    /// As an authority says.
    pub fn by(authority: Arc<dyn Authority>) -> Self {
        Self { authority, known: Arc::new(Mutex::new(LruCache::new(KNOWN_MAX))) }
    }

    /// The answer to a review as its requester may see it. What is not known by then is left out.
    pub async fn of(&self, answer: Answer, review: &Val, due: Instant) -> Answer {
        if answer.message.is_empty() && answer.warnings.is_empty() {
            return answer;
        }
        let texts = json!([answer.message, answer.warnings]);
        let own = match text(review, &["kind", "kind"]) {
            "Namespace" => text(review, &["name"]),
            _ => text(review, &["namespace"]),
        };
        let others: BTreeSet<String> = namespaces(&texts).into_iter().filter(|named| named != own).collect();
        if others.is_empty() {
            return answer;
        }
        let reader = review.get("request").and_then(|request| request.get("userInfo"));
        let reader = reader.and_then(|user| serde_json::to_value(user).ok());
        let reader: Reader = reader.and_then(|user| serde_json::from_value(user).ok()).unwrap_or_default();
        let readable = self.readable((reader, others), due).await;
        // what is in no namespace is no tenant's
        let may_read = |namespace: &str| namespace.is_empty() || namespace == own || readable.has(namespace);
        let Json::Array(texts) = redacted(texts, &may_read) else { return Answer { message: String::new(), ..answer } };
        let [message, warnings] = texts.try_into().unwrap_or_default();
        Answer {
            message: serde_json::from_value(message).unwrap_or_default(),
            warnings: serde_json::from_value(warnings).unwrap_or_default(),
            ..answer
        }
    }

    async fn readable(&self, asked: Asked, due: Instant) -> Readable {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&asked).cloned();
        if let Some((readable, until)) = known
            && now() < until
        {
            return readable;
        }
        let (reader, others) = &asked;
        let question = Readable::of(&*self.authority, reader, others.clone());
        let found = match timeout_at(due.min(now() + WAIT_MAX).into(), question).await {
            Ok(Ok(readable)) => readable,
            Ok(Err(error)) => {
                tracing::warn!(
                    error,
                    "names are left out of an answer; `suture manifests rbac` grants what asking takes"
                );
                Readable::These(BTreeSet::new())
            }
            // asked again the next time
            Err(_) => return Readable::These(BTreeSet::new()),
        };
        let until = now() + HOLDS;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).put(asked, (found.clone(), until));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::serve::answer::Label;

    /// Users are called like the namespace that they may read; `admin` may read all.
    #[derive(Default)]
    struct Scripted(AtomicUsize);

    #[async_trait::async_trait]
    impl Authority for Scripted {
        async fn known(&self, _token: &str) -> Result<Option<Reader>, String> {
            Ok(None)
        }

        async fn may_read(&self, reader: &Reader, namespace: &str) -> Result<bool, String> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let name = serde_json::to_value(reader).unwrap()["username"].as_str().unwrap().to_owned();
            match name.as_str() {
                "nobody" => Err("subjectaccessreviews is forbidden".to_owned()),
                "slow" => std::future::pending().await,
                _ => Ok(name == "admin" || (!namespace.is_empty() && name == namespace)),
            }
        }
    }

    fn review(user: &str, namespace: &str) -> Val {
        let review = json!({"request": {"kind": {"kind": "Ingress"}, "namespace": namespace, "name": "mine",
            "userInfo": {"username": user, "groups": ["system:authenticated"], "extra": {"scope": ["a"]}}}});
        serde_json::from_value(review).unwrap()
    }

    async fn told(disclosure: &Disclosure, user: &str, message: &str) -> String {
        let answer = Answer::refused(Label::Denied, 403, message);
        disclosure.of(answer, &review(user, "shop"), now() + Duration::from_millis(50)).await.message
    }

    #[tokio::test]
    async fn names_of_other_namespaces_are_for_those_who_may_read_there() {
        let authority = Arc::new(Scripted::default());
        let disclosure = Disclosure::by(authority.clone());
        let message =
            "hosts-are-claimed-once would break for Ingress/shop/mine: Ingress/bank/vault claims it, on Node/n1";
        assert_eq!(told(&disclosure, "admin", message).await, message);
        assert_eq!(told(&disclosure, "bank", message).await, message);
        for user in ["tenant", "nobody", "slow"] {
            let seen = told(&disclosure, user, message).await;
            assert!(!seen.contains("bank") && !seen.contains("vault"), "{user}: {seen}");
            assert!(seen.contains("Ingress/shop/mine: an object in another namespace claims it, on Node/n1"), "{seen}");
        }
    }

    #[tokio::test]
    async fn nobody_is_asked_about_where_the_request_is_nor_twice() {
        let authority = Arc::new(Scripted::default());
        let disclosure = Disclosure::by(authority.clone());
        let own = "would break for Pod/shop/web on Node/n1";
        assert_eq!(told(&disclosure, "tenant", own).await, own);
        assert_eq!(authority.0.load(Ordering::SeqCst), 0);
        for _ in 0..3 {
            told(&disclosure, "tenant", "would break for Pod/bank/web").await;
        }
        assert_eq!(authority.0.load(Ordering::SeqCst), 2, "of all namespaces, and of the one");
    }

    #[tokio::test]
    async fn warnings_are_as_refusals() {
        let disclosure = Disclosure::by(Arc::new(Scripted::default()));
        let answer = Answer { warnings: vec!["Pod/bank/web goes".to_owned()], ..Answer::allowed() };
        let seen = disclosure.of(answer, &review("tenant", "shop"), now() + Duration::from_millis(50)).await;
        assert_eq!(seen.warnings, ["an object in another namespace goes"]);
        assert!(seen.allowed);
    }
}
