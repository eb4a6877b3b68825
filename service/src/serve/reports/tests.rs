//! What is handed over is kept, or counted.

use std::sync::mpsc::sync_channel;

use suture_model::change::{Request, User};
use suture_model::object::Key;
use suture_model::state::State;

use super::*;
use crate::serve::fixtures::series;
use crate::serve::policies::Policies;
use crate::serve::store::Store;

fn told() -> Told {
    let view = Store::new(Arc::new(Policies::default().load())).read();
    let state = State::new(&view.snapshot);
    let target = Key::of("Pod", "shop", "web");
    let request = Request::delete(User::named("ana"), &state, target, None, Default::default());
    let mut decision = Decision::of("u", []);
    decision.decision = Outcome::Denied;
    Told { decision, change: Change::from(request), view: view.clone(), message: "no".to_owned() }
}

#[test]
fn a_full_queue_loses_a_report_and_counts_it() {
    let (queue, handed) = sync_channel(1);
    let (metrics, counts) = (Metrics::default(), Arc::new(Counts::default()));
    let ids = Arc::new(Ids::after(None, "a"));
    let reports = Reports { queue, ids, counts, metrics: metrics.clone(), opens: "open ID".into() };
    let first = reports.hand_over(told()).expect("there is room for one");
    assert_eq!(reports.opening(first), format!("open {first}"));
    assert_eq!(reports.hand_over(told()), None);
    assert_eq!(series(&metrics, "suture_reports_lost_total{reason=\"queue-full\"}"), 1.0);
    drop(handed);
    assert_eq!(reports.hand_over(told()), None);
    assert_eq!(series(&metrics, "suture_reports_lost_total{reason=\"queue-full\"}"), 2.0);
}

#[test]
fn what_was_handed_over_is_there_for_whoever_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = Bounds { bytes_max: 1 << 20, age_max: Duration::from_secs(60) };
    let metrics = Metrics::default();
    let (reports, store) = Reports::start(folder.path(), bounds, "a", metrics.clone(), "open ID").unwrap();
    let id = reports.hand_over(told()).unwrap();
    reports.settle(Duration::from_secs(20));
    let report = store.get(id).unwrap().expect("it is kept");
    assert_eq!((report.id.as_deref(), report.message.as_deref()), (Some(id.to_string().as_str()), Some("no")));
    assert_eq!(report.requests[0].text, "ana deletes Pod/shop/web");
    assert_eq!(series(&metrics, "suture_reports_total"), 1.0);
    assert_eq!(series(&metrics, "suture_reports_present"), 1.0);
    // another process cannot open the file, and asks this one
    assert!(matches!(ReportStore::open_existing(folder.path()), Err(StoreError::InUse(_))));
    let asked = socket::ask(folder.path(), id).unwrap().expect("it is told");
    assert_eq!(asked.requests, report.requests);
    assert!(socket::ask(folder.path(), Ids::after(Some(id), "a").next(Clock::now())).unwrap().is_none());
}

/// What a killed process leaves: the file with the numbers says how many it did not keep.
#[test]
fn what_a_killed_process_did_not_keep_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(TALLY), format!("{:>20} {:>20}\n", 1_007, 1_000)).unwrap();
    let bounds = Bounds { bytes_max: 1 << 20, age_max: Duration::from_secs(60) };
    let metrics = Metrics::default();
    let (_reports, _) = Reports::start(folder.path(), bounds, "a", metrics.clone(), "").unwrap();
    assert_eq!(series(&metrics, "suture_reports_lost_total{reason=\"killed\"}"), 7.0);
}
