//! What is told becomes what is known.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::*;
use crate::serve::policies::Policies;

struct Nothing;

impl StoreObserver for Nothing {
    fn changed(&mut self, _: &Store) {}
    fn tick(&mut self, _: &Store, _: &BTreeMap<Kind, Duration>) {}
}

/// Notes how many kinds were unknown at each change, and at each tick.
#[derive(Default, Clone)]
struct Notes(Arc<Mutex<Vec<(&'static str, usize)>>>);

impl Notes {
    fn add(&self, what: &'static str, store: &Store) {
        self.0.lock().unwrap().push((what, store.read().unread().len()));
    }
}

impl StoreObserver for Notes {
    fn changed(&mut self, store: &Store) {
        self.add("changed", store);
    }

    fn tick(&mut self, store: &Store, _: &BTreeMap<Kind, Duration>) {
        self.add("tick", store);
    }
}

struct Fed {
    store: Arc<Store>,
    probes: Probes,
    events: Sender<(Kind, KindEvent)>,
    thread: JoinHandle<()>,
}

fn feed(lag_max: Duration) -> Fed {
    feed_with(lag_max, Nothing)
}

fn feed_with(lag_max: Duration, observer: impl StoreObserver + 'static) -> Fed {
    let store = Arc::new(Store::new(Arc::new(Policies::default().load().wanting_nothing())));
    let probes = Probes::default();
    let (events, told) = channel();
    let feed = Feed::new(store.clone(), probes.clone(), lag_max, Arc::default(), observer);
    let thread = std::thread::spawn(move || feed.run(&told));
    Fed { store, probes, events, thread }
}

impl Fed {
    fn tell(&self, kind: &Kind, told: KindEvent) {
        self.events.send((kind.clone(), told)).unwrap();
    }

    fn list(&self, kind: &Kind, objects: Vec<Val>, version: u64) {
        let names = objects.iter().filter_map(name_of).collect();
        let (taken, _wait) = oneshot::channel();
        self.tell(kind, KindEvent::Page(objects, taken));
        self.tell(kind, KindEvent::Listed(List { names, version: Some(version), began: now() }));
    }

    /// Waits for what must come.
    fn until(&self, what: impl Fn(&Cluster, &BTreeMap<Kind, Reading>) -> bool) {
        for _ in 0..500 {
            let view = self.store.read();
            if what(&view.snapshot, &view.readings) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not come: {:?}", self.store.read().readings);
    }
}

type Cluster = suture_model::snapshot::Snapshot;

fn object(text: &str) -> Val {
    serde_json::from_str(text).unwrap()
}

fn secret(name: &str) -> Val {
    object(&format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}","namespace":"n"}},"data":{{"k":"djE="}}}}"#
    ))
}

fn definition() -> Val {
    object(
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"xs.x.io"},
            "spec":{"group":"x.io","names":{"kind":"X","plural":"xs"},"scope":"Namespaced"}}"#,
    )
}

#[test]
fn a_list_is_what_there_is_and_values_of_secrets_are_not_kept() {
    let fed = feed(Duration::from_secs(60));
    let kind = Kind::new("", "Secret");
    fed.tell(&kind, KindEvent::Wanted);
    fed.until(|_, readings| readings.get(&kind).is_some_and(|r| matches!(r, Reading::Unknown(_))));
    fed.list(&kind, vec![secret("a"), secret("b")], 5);
    fed.until(|snapshot, readings| snapshot.len() == 2 && readings.get(&kind) == Some(&Reading::Known));
    assert_eq!(fed.store.read().positions.get(&kind), Some(&5));
    let kept = fed.store.read().snapshot.get(&Key::of("Secret", "n", "a")).unwrap().to_val();
    assert_eq!(kept.str_at(&["data", "k"]).map(|v| &**v), Some(suture_model::object::HIDDEN));
    fed.tell(&kind, KindEvent::Gone(secret("a")));
    fed.tell(&kind, KindEvent::Progress(9));
    fed.until(|snapshot, _| snapshot.len() == 1);
    // a list after a gap: what it lacks is gone
    fed.list(&kind, vec![secret("c")], 20);
    fed.until(|snapshot, _| snapshot.len() == 1 && snapshot.get(&Key::of("Secret", "n", "c")).is_some());
    fed.tell(&kind, KindEvent::Unwanted);
    fed.until(|snapshot, readings| snapshot.is_empty() && readings.is_empty());
    drop(fed.events);
    fed.thread.join().unwrap();
}

#[test]
fn what_may_be_read_no_more_is_not_kept() {
    let fed = feed(Duration::from_secs(60));
    let kind = Kind::new("", "Secret");
    fed.tell(&kind, KindEvent::Wanted);
    fed.list(&kind, vec![secret("a")], 5);
    fed.until(|snapshot, _| snapshot.len() == 1);
    fed.tell(&kind, KindEvent::Forbidden("secrets".to_owned()));
    let forbidden = |reading: &Reading| *reading == Reading::Forbidden("secrets".to_owned());
    fed.until(|snapshot, readings| snapshot.is_empty() && readings.get(&kind).is_some_and(forbidden));
    assert!(fed.store.read().snapshot.unknown().contains("Secret"));
    // and is there again once it is granted
    fed.list(&kind, vec![secret("a")], 9);
    fed.until(|snapshot, readings| snapshot.len() == 1 && readings.get(&kind) == Some(&Reading::Known));
}

#[test]
fn a_kind_without_definition_is_absent_and_unknown_as_soon_as_it_is_defined() {
    let fed = feed(Duration::from_secs(60));
    let (custom, definitions) = (Kind::new("x.io", "X"), Kind::builtin("CustomResourceDefinition").unwrap());
    fed.tell(&custom, KindEvent::Wanted);
    fed.tell(&definitions, KindEvent::Wanted);
    fed.tell(&custom, KindEvent::Absent);
    fed.until(|_, readings| readings.get(&custom) == Some(&Reading::Absent));
    fed.tell(&definitions, KindEvent::Put(definition()));
    fed.until(|snapshot, readings| {
        snapshot.unknown().contains("X") && readings.get(&custom).is_some_and(|r| matches!(r, Reading::Unknown(_)))
    });
    // discovery may lag behind the definition
    fed.tell(&custom, KindEvent::Absent);
    fed.tell(&custom, KindEvent::Progress(1));
    fed.tell(&definitions, KindEvent::Progress(1));
    fed.until(|_, _| fed.store.read().positions.len() == 2);
    assert!(matches!(fed.store.read().readings.get(&custom), Some(Reading::Unknown(_))));
    fed.list(&custom, Vec::new(), 3);
    fed.until(|_, readings| readings.get(&custom) == Some(&Reading::Known));
}

#[test]
fn a_watch_that_lags_makes_its_kind_unknown_until_it_has_caught_up() {
    let fed = feed(Duration::from_millis(900));
    let kind = Kind::new("", "Secret");
    fed.tell(&kind, KindEvent::Wanted);
    fed.probes.add(now(), 5);
    fed.list(&kind, Vec::new(), 5);
    fed.until(|_, readings| readings.get(&kind) == Some(&Reading::Known));
    fed.probes.add(now(), 6);
    fed.until(|_, readings| {
        readings.get(&kind).is_some_and(|r| matches!(r, Reading::Unknown(why) if why.contains("behind")))
    });
    fed.probes.add(now(), 6);
    fed.tell(&kind, KindEvent::Progress(6));
    fed.until(|_, readings| readings.get(&kind) == Some(&Reading::Known));
}

#[test]
fn a_watch_that_broke_makes_its_kind_unknown_until_it_is_listed_again() {
    let fed = feed(Duration::from_secs(60));
    let (kind, other) = (Kind::new("", "Secret"), Kind::new("", "ConfigMap"));
    let broken = |readings: &BTreeMap<Kind, Reading>| {
        readings.get(&kind).is_some_and(|r| matches!(r, Reading::Unknown(why) if why.contains("connection reset")))
    };
    for kind in [&kind, &other] {
        fed.tell(kind, KindEvent::Wanted);
        fed.list(kind, Vec::new(), 5);
    }
    fed.until(|_, readings| readings.get(&kind) == Some(&Reading::Known));
    fed.tell(&kind, KindEvent::Failed("connection reset".to_owned()));
    fed.until(|_, readings| broken(readings) && readings.get(&other) == Some(&Reading::Known));
    // what has come to it all the same
    fed.tell(&kind, KindEvent::Put(secret("late")));
    fed.tell(&kind, KindEvent::Progress(9));
    fed.until(|_, _| fed.store.read().positions.get(&kind) == Some(&9));
    assert!(broken(&fed.store.read().readings));
    fed.list(&kind, vec![secret("late")], 10);
    fed.until(|_, readings| readings.get(&kind) == Some(&Reading::Known));
}

#[test]
fn readiness_is_judged_as_soon_as_something_becomes_known() {
    let notes = Notes::default();
    let fed = feed_with(Duration::from_secs(60), notes.clone());
    for name in ["Secret", "ConfigMap", "Pod", "Node"] {
        let kind = Kind::new("", name);
        fed.tell(&kind, KindEvent::Wanted);
        fed.until(|_, readings| readings.contains_key(&kind));
        fed.list(&kind, Vec::new(), 5);
        fed.until(|_, readings| readings.get(&kind) == Some(&Reading::Known));
    }
    drop(fed.events);
    fed.thread.join().unwrap();
    let notes = notes.0.lock().unwrap();
    let mut before = 0;
    for (at, (_, unread)) in notes.iter().enumerate().filter(|(_, (what, _))| *what == "changed") {
        assert!(*unread == before || notes.get(at + 1) == Some(&("tick", *unread)), "{notes:?}");
        before = *unread;
    }
    assert!(notes.len() >= 16, "{notes:?}");
}
