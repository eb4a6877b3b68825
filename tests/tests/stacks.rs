//! Four whole stacks under the profile `baseline`: what people, operators and controllers do with them every day is let
//! through, mistakes are denied, and applications whose end is confirmed are retired. The requests in `tests/stacks` are those
//! that a real API server sent.
#![expect(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod suites;

use std::collections::BTreeMap;
use std::path::Path;

use suites::expect_passed;
use suture_service::output::progress::Progress;
use suture_service::suite::documents::find;
use suture_service::suite::run::run;
use suture_specs::spec::{Case, Expect, Step, Suite};

/// The stacks.
const STACKS: [&str; 4] = ["database", "platform", "queue", "storefront"];

/// The suites in the folders of the stacks that have this name, by stack.
fn suites(name: &str) -> Vec<Suite> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("stacks");
    STACKS.iter().flat_map(|stack| find(&[folder.join(stack).join(name)]).unwrap()).collect()
}

/// Runs them; says how many cases passed in each stack.
fn passed(suites: &[Suite]) -> BTreeMap<String, usize> {
    let report = run(suites, false, &Progress::hidden()).unwrap();
    expect_passed(&report);
    report.suites.iter().map(|suite| (suite.name.clone(), suite.cases.len())).collect()
}

/// The requests of a case.
fn requests(case: &Case) -> impl Iterator<Item = &Step> {
    case.steps.iter().filter(|step| step.observe.is_none())
}

/// The cases of these suites, of which every request is to go through.
fn all_go_through(suites: &[Suite]) -> usize {
    let cases: Vec<&Case> = suites.iter().flat_map(|suite| &suite.spec.cases).collect();
    for case in &cases {
        let through = |step: &Step| matches!(step.expect, Some(Expect::Allowed | Expect::Warned));
        assert!(requests(case).count() > 0 && requests(case).all(through), "{}", case.name);
    }
    cases.len()
}

#[test]
fn a_hundred_routine_operations_are_let_through() {
    let suites = suites("routine.yaml");
    assert!(all_go_through(&suites) >= 100);
    println!("let through: {:?}", passed(&suites));
}

#[test]
fn thirty_mistakes_are_denied_by_the_template_that_is_about_them() {
    let suites = suites("harmful.yaml");
    let cases: Vec<&Case> = suites.iter().flat_map(|suite| &suite.spec.cases).collect();
    for case in &cases {
        let last = requests(case).last().unwrap();
        assert!(last.expect == Some(Expect::Denied) && !last.by.is_empty(), "{}", case.name);
    }
    assert!(cases.len() >= 30);
    println!("denied: {:?}", passed(&suites));
}

#[test]
fn ten_retirements_are_let_through() {
    let suites = suites("retirements.yaml");
    assert!(all_go_through(&suites) >= 10);
    println!("retired: {:?}", passed(&suites));
}
