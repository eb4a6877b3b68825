//! What the maintenance says.

use suture_model::object::{Key, Object};
use suture_model::value::Val;
use tokio::sync::watch;

use super::*;
use crate::serve::active::Active;
use crate::serve::fixtures::series;
use crate::serve::in_flight_log::InFlightLog;
use crate::serve::policies::Policies;
use crate::serve::store::Change;

fn pod(name: &str) -> Change {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"n","uid":"{name}",
            "ownerReferences":[{{"apiVersion":"x.io/v1","kind":"X","name":"x","uid":"x"}}]}}}}"#
    );
    let val: Val = serde_json::from_str(&text).unwrap();
    Change::Put(Arc::new(Object::from_val(&val).unwrap()))
}

#[test]
fn objects_are_counted_kinds_wanted_and_readiness_said() {
    let store = Arc::new(Store::new(Arc::new(Policies::default().load().wanting_nothing())));
    let replicas = Replicas::Single(Active::held());
    let in_flight_log = Arc::new(InFlightLog::lasting(60));
    let shared = Arc::new(SharedState::new(store.clone(), in_flight_log, replicas));
    let (sender, wanted) = watch::channel(Wanted::default());
    let (readiness, metrics) = (Readiness::expecting(&["kinds"]), Metrics::default());
    let mut maintenance = Maintenance::new(shared, sender, readiness.clone(), metrics.clone());
    let (pods, owner) = (Kind::new("", "Pod"), Kind::new("x.io", "X"));
    let objects = |kind: &str| series(&metrics, &format!("suture_objects{{kind=\"{kind}\"}}"));

    store.write(vec![Change::Read(pods.clone(), Reading::Known), pod("a"), pod("b"), pod("b")]);
    maintenance.tick(&store, &BTreeMap::new());
    assert_eq!((objects("Pod"), objects("X")), (2.0, 0.0));
    assert!(wanted.borrow().kinds.contains(&owner), "somebody names an owner of it");
    assert!(readiness.ready().is_err_and(|why| why.iter().any(|why| why.contains("X"))));

    store.write(vec![Change::Read(owner.clone(), Reading::Known), Change::Remove(Key::of("Pod", "n", "a"))]);
    maintenance.tick(&store, &BTreeMap::new());
    assert_eq!(objects("Pod"), 1.0);
    assert_eq!(readiness.ready(), Ok(()));

    store.write(vec![Change::Forget(pods)]);
    maintenance.tick(&store, &BTreeMap::new());
    assert!(!metrics.text().unwrap().contains("kind=\"Pod\""), "it is watched no more");
    assert!(!wanted.borrow().kinds.contains(&owner), "nothing names an owner of it any more");
}

#[test]
fn everything_was_read_when_the_kind_that_lags_most_was() {
    let store = Arc::new(Store::new(Arc::new(Policies::default().load().wanting_nothing())));
    let active = Active::held();
    let in_flight_log = Arc::new(InFlightLog::lasting(60));
    let shared = Arc::new(SharedState::new(store.clone(), in_flight_log, Replicas::Single(active.clone())));
    let pauses = shared.pauses.clone();
    let mut maintenance =
        Maintenance::new(shared, watch::channel(Wanted::default()).0, Readiness::default(), Metrics::default());
    let since = now();
    active.read_after(since);
    maintenance.tick(&store, &BTreeMap::new());
    assert!(active.is_to_read(), "no kind is known yet");
    let kinds = ["Pod", "Service", "Ghost"].map(|kind| Kind::new("", kind));
    let [pods, services, absent] = kinds.clone();
    let reads = [Reading::Known, Reading::Known, Reading::Absent];
    store.write(kinds.into_iter().zip(reads).map(|(kind, reading)| Change::Read(kind, reading)).collect());
    let lags = |lag: Duration| BTreeMap::from([(pods.clone(), Duration::ZERO), (services.clone(), lag)]);
    maintenance.tick(&store, &BTreeMap::from([(pods.clone(), Duration::ZERO)]));
    assert!(active.is_to_read(), "one was never read");
    pauses.pause();
    maintenance.tick(&store, &lags(Duration::from_secs(60)));
    assert!(active.is_to_read(), "one was read before");
    assert!(pauses.since().is_some(), "one was read before the pause");
    maintenance.tick(&store, &lags(Duration::ZERO));
    assert!(pauses.since().is_none());
    assert!(active.has_read_after(since), "{absent:?} is nowhere");
}
