//! What a scrape shows.

use super::*;
use crate::serve::fixtures::series;

#[test]
fn everything_that_is_measured_is_in_the_text() {
    let metrics = Metrics::default();
    let effort = Effort {
        instances: 5,
        folded: 3,
        solved: 1,
        cached: 1,
        rlimit: 900,
        steps: 7_000,
        solver_micros: 1_500,
        known: false,
    };
    metrics.decided(Label::Denied, Duration::from_millis(3), &effort);
    metrics.decided(Label::Allowed, Duration::from_micros(200), &Effort::default());
    metrics.decided(Label::Denied, Duration::from_micros(10), &Effort { known: true, ..Effort::default() });
    metrics.undecided("budget");
    metrics.objects("Pod", 10_000);
    metrics.lag("Pod", Duration::from_millis(250));
    metrics.ledger(4);
    metrics.ready(true);
    metrics.audited([("Invariant/a".to_owned(), Some(3)), ("Invariant/b".to_owned(), None)].into_iter());
    for (name, value) in [
        ("suture_decisions_total{outcome=\"denied\"}", 2.0),
        ("suture_decision_duration_seconds_count", 3.0),
        ("suture_decision_duration_seconds_bucket{le=\"0.00025\"}", 2.0),
        ("suture_solver_duration_seconds_sum", 0.0015),
        ("suture_instances_total", 5.0),
        ("suture_known_total", 1.0),
        ("suture_questions_total{by=\"folding\"}", 3.0),
        ("suture_questions_total{by=\"solver\"}", 1.0),
        ("suture_undecided_total{reason=\"budget\"}", 1.0),
        ("suture_objects{kind=\"Pod\"}", 10_000.0),
        ("suture_watch_lag_seconds{kind=\"Pod\"}", 0.25),
        ("suture_ledger_entries", 4.0),
        ("suture_ready", 1.0),
        ("suture_violations{invariant=\"Invariant/a\"}", 3.0),
        ("suture_not_audited{invariant=\"Invariant/b\"}", 1.0),
    ] {
        assert!((series(&metrics, name) - value).abs() < 1e-9, "{name}\n{}", metrics.text().unwrap());
    }
    assert!(series(&metrics, "suture_resident_memory_bytes") > 0.0);
    metrics.forget("Pod");
    metrics.audited([].into_iter());
    assert!(!metrics.text().unwrap().contains("Invariant/"), "another replica audits");
    assert!(!metrics.text().unwrap().contains("Pod"));
    assert!(metrics.text().unwrap().ends_with("# EOF\n"));
}
