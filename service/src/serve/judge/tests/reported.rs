//! Reports of refusals survive the death of the process that made them.

use std::env;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use suture_model::steps::{self, Abandoned, End};

use super::*;
use crate::serve::fixtures::series;
use crate::serve::metrics::Metrics;
use crate::serve::reports::head::Filter;
use crate::serve::reports::id::ReportId;
use crate::serve::reports::store::{Bounds, ReportStore};

/// Names the folder to the process that is to be killed.
const FOLDER: &str = "SUTURE_TEST_REPORTS";
const KILLED_AFTER: usize = 700;
/// What no machine takes for so many.
const LASTS_MAX: Duration = Duration::from_secs(300);
const BOUNDS: Bounds = Bounds { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) };

/// A judge that keeps reports, of a cluster where one pod of each service was deleted.
fn judge(folder: &Path, metrics: &Metrics) -> (Judge, Reports) {
    let mut state = shared(8, Replicas::Single(Active::held()));
    let (reports, _) = Reports::start(folder, BOUNDS, "a", metrics.clone(), "suture explain --id ID").unwrap();
    Arc::get_mut(&mut state).unwrap().reports = Some(reports.clone());
    let mut judge = Judge::new(state);
    for set in 0..8 {
        assert!(judge.decide(&asked(&format!("first-{set}"), &pod(set, "a"))).allowed);
    }
    (judge, reports)
}

/// Refuses until it is killed, and says what the reports are called, a few milliseconds apart. It ends as well when nobody
/// hears what it says, or nobody kills it.
fn refuse(folder: &Path) {
    let (mut judge, _) = judge(folder, &Metrics::default());
    let until = now() + LASTS_MAX;
    for number in (0..).take_while(|_| now() < until) {
        let answer = judge.decide(&asked(&format!("u-{number}"), &pod(number % 8, "b")));
        assert!(!answer.allowed, "{}", answer.message);
        // on a busy machine the queue may be full: the counter tells of that one
        if let Some(id) = answer.annotations.get("report") {
            println!("\nreport {id}");
        }
        thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn every_report_is_there_a_second_after_its_answer_whatever_ends_the_process() {
    if let Some(folder) = env::var_os(FOLDER) {
        return refuse(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "serve::judge::tests::reported::every_report_is_there_a_second_after_its_answer_whatever_ends_the_process",
        ])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answered: Vec<(ReportId, Instant)> = Vec::new();
    let mut killed = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some(id) = line.strip_prefix("report ") else { continue };
        answered.push((id.parse().unwrap(), now()));
        if answered.len() == KILLED_AFTER {
            // SIGKILL
            child.kill().unwrap();
            killed = Some(now());
        }
    }
    let ended = child.wait().unwrap();
    let killed = killed.unwrap_or_else(|| panic!("{ended} after {} reports", answered.len()));
    assert!(!ended.success());
    let store = ReportStore::open_existing(folder.path()).unwrap();
    let is_kept = |id: &ReportId| store.get(*id).unwrap().is_some();
    let age = |at: &Instant| killed.saturating_duration_since(*at);
    let old: Vec<_> = answered.iter().filter(|(_, at)| age(at) > Duration::from_secs(1)).collect();
    assert!(old.len() > 100, "{} of {} were answered more than a second before", old.len(), answered.len());
    let lost: Vec<_> = old.iter().filter(|(id, _)| !is_kept(id)).collect();
    assert_eq!(lost.len(), 0, "{lost:?}");
    let kept = answered.iter().filter(|(id, _)| is_kept(id)).count();
    let all = store.list(&Filter::default(), &|_| true).unwrap().count;
    drop(store);

    // the counter of the next process tells the rest, but for what was handed over since the numbers were written last
    let metrics = Metrics::default();
    let (_reports, _) = Reports::start(folder.path(), BOUNDS, "a", metrics.clone(), "").unwrap();
    let counted = series(&metrics, "suture_reports_lost_total{reason=\"killed\"}") as usize;
    let missing = answered.len() - kept;
    let fresh = answered.iter().filter(|(_, at)| age(at) < Duration::from_millis(200)).count();
    assert!(
        counted + all + fresh >= answered.len(),
        "{counted} lost, {all} kept of {} ({fresh} fresh)",
        answered.len()
    );
    assert!(counted <= missing + fresh, "{counted} counted, {missing} missing");
    println!("{} answered, {all} kept, {counted} counted as lost", answered.len());
}

#[test]
fn a_refusal_ends_with_the_line_that_opens_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Metrics::default();
    let (mut judge, reports) = judge(folder.path(), &metrics);
    let answer = judge.decide(&asked("u", &pod(0, "b")));
    let id: ReportId = answer.annotations["report"].parse().unwrap();
    let review: serde_json::Value = serde_json::from_slice(&answer.into_review("u", "admission.k8s.io/v1")).unwrap();
    let message = review["response"]["status"]["message"].as_str().unwrap();
    assert_eq!(message.lines().last(), Some(format!("report {id}: suture explain --id {id}").as_str()), "{message}");
    assert!(message.lines().count() > 1 && message.lines().count() <= 10, "{message}");
    reports.settle(Duration::from_secs(20));
    // of what was admitted, no report is kept
    assert_eq!(series(&metrics, "suture_reports_total"), 1.0);
    drop((judge, reports));
}

#[test]
fn of_a_decision_that_is_abandoned_a_report_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Metrics::default();
    let (mut judge, reports) = judge(folder.path(), &metrics);
    let end = End::default();
    end.abandon();
    let unwound =
        steps::until(&end, || catch_unwind(AssertUnwindSafe(|| judge.decide(&asked("u", &pod(0, "b"))).allowed)));
    assert!(unwound.is_err_and(|with| with.is::<Abandoned>()));
    reports.settle(Duration::from_secs(20));
    assert_eq!(series(&metrics, "suture_reports_total"), 1.0);
}
