//! Policies of other projects, retold as invariants in `tests/samples`: their published cases come out as those projects expect,
//! but for the rows of the table in `tests/samples/README.md`.
#![expect(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod suites;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use suites::expect_passed;
use suture_service::output::progress::Progress;
use suture_service::suite::documents::find;
use suture_service::suite::run::run;
use suture_specs::spec::Suite;

/// How the names of cases begin that no project publishes.
const OURS: &str = "beyond";

/// The projects.
const PROJECTS: [&str; 2] = ["gatekeeper-library", "kyverno-policies"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

fn suites(project: &str) -> Vec<Suite> {
    find(&[folder().join(project)]).unwrap()
}

/// The folder of a suite, which bears the name of the policy.
fn policy(suite: &Suite) -> String {
    let file = Path::new(&*suite.origin.file);
    file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

/// The rows of the table of disagreements: by policy and case, what the project expects and what Suture says.
fn disagreements() -> BTreeMap<(String, String), (String, String)> {
    let text = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let row = |line: &str| -> Option<((String, String), (String, String))> {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        let [_, policy, case, theirs, ours, why, _] = cells.try_into().ok()?;
        let outcomes = ["Allowed", "Denied"];
        let told = outcomes.contains(&&*theirs) && outcomes.contains(&&*ours) && !why.is_empty();
        told.then_some(((policy, case), (theirs, ours)))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn samples_of_other_projects_come_out_as_they_expect_or_as_the_table_says() {
    let mut table = disagreements();
    assert!(!table.is_empty(), "no table in {}", folder().display());
    for project in PROJECTS {
        let suites = suites(project);
        let report = run(&suites, false, &Progress::hidden()).unwrap();
        expect_passed(&report);
        let (mut published, mut apart, mut ours) = (0, 0, 0);
        for (suite, case) in suites.iter().flat_map(|suite| suite.spec.cases.iter().map(move |case| (suite, case))) {
            if case.name.starts_with(OURS) {
                ours += 1;
                continue;
            }
            published += 1;
            let said = case.steps.iter().filter_map(|step| step.expect).next_back().unwrap();
            if let Some((theirs, told)) = table.remove(&(policy(suite), case.name.clone())) {
                assert_eq!(format!("{said:?}"), told, "{}: {}", suite.name, case.name);
                assert_ne!(theirs, told, "{}: {}", suite.name, case.name);
                apart += 1;
            }
        }
        let policies = suites.iter().map(policy).collect::<BTreeSet<_>>().len();
        println!(
            "{project}: {policies} policies, {published} published cases, {} agree, {ours} more",
            published - apart
        );
        assert!(policies > 4 && published > 20, "{project}: are the suites there?");
    }
    assert!(table.is_empty(), "no case for {:?}", table.keys());
}

#[test]
fn a_suite_of_samples_is_named_after_its_path_and_says_its_source() {
    for project in PROJECTS {
        for suite in suites(project) {
            let file = Path::new(&*suite.origin.file).file_stem().unwrap().to_str().unwrap();
            let part = file.strip_suffix("suite").unwrap().trim_end_matches('-');
            let name = format!("{project}-{}-{part}", policy(&suite));
            assert_eq!(*suite.name, *name.trim_end_matches('-'), "{}", suite.origin.file);
            let source = suite.spec.source.clone().unwrap_or_default();
            assert!(source.starts_with("https://github.com/"), "{}: {source}", suite.origin.file);
        }
    }
}
