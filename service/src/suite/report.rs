//! What came of a suite: a result for each case, with the first step that was not as expected.

use std::collections::BTreeMap;

use serde::Serialize;

/// The results of all suites that were run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// The suites, in the order in which they were run.
    pub suites: Vec<SuiteReport>,
    /// The clauses of their invariants, each with whether a step found it broken; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<BTreeMap<String, bool>>,
}

/// The result of one suite.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteReport {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Its cases, in order.
    pub cases: Vec<CaseReport>,
}

/// The result of one case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// How long it took, in microseconds; none where that is not to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<CaseFailure>,
}

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseFailure {
    /// The step, from 1; none when the case could not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The line of the suite's file on which the step, or the case, stands; none where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What was expected and what came, in one line.
    pub reason: String,
    /// The decision's messages, or more about the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl CaseFailure {
    /// A failure of a step, or of the case itself.
    pub fn new(step: Option<usize>, reason: impl ToString) -> Self {
        Self { step, line: None, reason: reason.to_string(), details: Vec::new() }
    }
}

impl Report {
    /// Adds a suite's result.
    pub fn add(&mut self, suite: SuiteReport) {
        let failed = suite.cases.iter().filter(|case| case.failure.is_some()).count();
        self.failed += failed;
        self.passed += suite.cases.len() - failed;
        self.suites.push(suite);
    }

    /// Leaves out how long its cases took.
    pub fn forget_times(&mut self) {
        self.suites.iter_mut().flat_map(|suite| &mut suite.cases).for_each(|case| case.micros = None);
    }

    /// The failed cases, each with its suite.
    pub fn failures(&self) -> impl Iterator<Item = (&SuiteReport, &CaseReport, &CaseFailure)> {
        self.suites.iter().flat_map(|suite| {
            suite.cases.iter().filter_map(move |case| case.failure.as_ref().map(|failure| (suite, case, failure)))
        })
    }
}
