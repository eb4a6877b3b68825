//! What suites of cases say in tests.

use suture_service::suite::report::Report;

/// Stops where a case failed, with all that did.
#[track_caller]
pub fn expect_passed(report: &Report) {
    let failures: Vec<String> = report
        .failures()
        .map(|(suite, case, failure)| format!("{}: {}: {failure:#?}", suite.file, case.name))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
