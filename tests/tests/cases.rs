//! The suites of real failures and their benign twins pass, as far as the shipped templates suffice. So do the suites of
//! single effects, in the folders of `tests/effects`.

mod suites;

use std::path::Path;
use std::slice;

use suites::expect_passed;
use suture_service::output::progress::Progress;
use suture_service::suite::documents::{documents, find, missing_templates};
use suture_service::suite::run::run;
use suture_specs::library::LIBRARY;

#[test]
fn every_suite_of_shipped_templates_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    for suite in find(&[folder]).unwrap() {
        let missing = missing_templates(&documents(&suite).unwrap());
        let id = Path::new(&*suite.origin.file).file_stem().unwrap().to_str().unwrap().to_owned();
        if missing.is_empty() {
            ready.push((id, suite))
        } else {
            waiting.push(format!("{id} ({})", missing.join(", ")))
        }
    }
    let (ids, suites): (Vec<_>, Vec<_>) = ready.into_iter().unzip();
    let report = run(&suites, false, &Progress::hidden()).unwrap();
    println!("passed {}, failed {}: {}", report.passed, report.failed, ids.join(" "));
    println!("not shipped yet: {}", waiting.join(", "));
    expect_passed(&report);
    // each shipped template is in a suite that runs, with failures to block and twins to let pass
    let named = |template: &str| suites.iter().any(|suite| suite.spec.invariants.iter().any(|i| names(i, template)));
    let idle: Vec<&str> = LIBRARY.iter().map(|(name, _)| *name).filter(|name| !named(name)).collect();
    assert!(idle.is_empty(), "no suite runs {idle:?}");
    assert_eq!(report.passed, suites.iter().map(|suite| suite.spec.cases.len()).sum::<usize>());
}

#[test]
fn every_suite_of_effects_passes() {
    let suites = find(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("effects")]).unwrap();
    let report = run(&suites, false, &Progress::hidden()).unwrap();
    expect_passed(&report);
    assert_eq!(report.passed, suites.iter().map(|suite| suite.spec.cases.len()).sum::<usize>());
}

#[test]
fn a_suite_of_effects_is_named_after_its_path() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("effects");
    let wrong: Vec<String> = find(slice::from_ref(&folder))
        .unwrap()
        .iter()
        .filter_map(|suite| {
            let path = Path::new(&*suite.origin.file).strip_prefix(&folder).unwrap().with_extension("");
            let name = path.components().map(|part| part.as_os_str().to_str().unwrap()).collect::<Vec<_>>().join("-");
            (*suite.name != *name).then(|| format!("{}: `{}` instead of `{name}`", suite.origin.file, suite.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn names(invariant: &suture_specs::spec::FileOrInline, template: &str) -> bool {
    match invariant {
        suture_specs::spec::FileOrInline::Inline(val) => {
            val.str_at(&["spec", "template"]).is_some_and(|name| **name == *template)
        }
        suture_specs::spec::FileOrInline::File(_) => false,
    }
}
