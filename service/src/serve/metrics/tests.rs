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

/// The names of series that a text mentions, as they are in a scrape.
fn named(text: &str) -> std::collections::BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("suture_")).map(str::to_owned).collect()
}

#[test]
fn alerts_and_dashboard_name_series_that_a_scrape_shows() {
    let metrics = Metrics::default();
    metrics.decided(Label::Denied, Duration::from_millis(3), &Effort { instances: 1, solved: 1, ..Effort::default() });
    let series = metrics.series();
    // each label once: a family without any shows nothing
    series.undecided.get_or_create(&ByReason { reason: "budget" }).inc();
    series.off.get_or_create(&ByReason { reason: "switch" }).set(1);
    series.reports_lost.get_or_create(&ByReason { reason: "queue" }).inc();
    series.forbidden.get_or_create(&ByResource { resource: "secrets".to_owned() }).set(1);
    metrics.invariant_overran("Invariant/a".to_owned());
    metrics.objects("Pod", 1);
    metrics.lag("Pod", Duration::from_millis(1));
    let shown = named(&metrics.text().unwrap());
    assert!(shown.contains("suture_decision_duration_seconds_bucket") && shown.contains("suture_off"), "{shown:?}");
    for (file, text) in [
        ("alerts.yaml", include_str!("../../../deploy/chart/files/alerts.yaml")),
        ("dashboard.json", include_str!("../../../deploy/chart/files/dashboard.json")),
    ] {
        let wrong: Vec<String> = named(text).difference(&shown).cloned().collect();
        assert!(wrong.is_empty(), "{file} names {wrong:?}");
        assert!(!named(text).is_empty(), "{file} names nothing");
    }
}
