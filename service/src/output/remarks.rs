//! Remarks with their places, in the forms that tools read: annotations of GitHub's workflows, and SARIF 2.1.0
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>).

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value, json};
use suture_checker::decision::{Decision, Finding};
use suture_specs::spec::{Action, SpecError, find_code};

use super::denial::{About, by_cause};
use super::terminal::Paint;
use crate::suite::report::Report;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It must be mended.
    Error,
    /// It may be meant.
    Warning,
}

/// Something that is remarked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Its class: the code of an error, or the name of an invariant.
    pub rule: String,
    /// How bad it is.
    pub level: Level,
    /// The file, if it stands in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The field of the document, or the object of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// What is said.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl From<&SpecError> for Remark {
    fn from(error: &SpecError) -> Self {
        Self {
            rule: error.code.to_owned(),
            level: if error.is_warning() { Level::Warning } else { Level::Error },
            file: Some(error.file.to_string()),
            line: error.line,
            column: error.column,
            subject: error.path.clone(),
            message: error.message.clone(),
            help: error.help.clone(),
        }
    }
}

/// The causes for which a change is not simply allowed, or what is violated now.
pub fn of_decision(decision: &Decision, about: About) -> Vec<Remark> {
    let told = decision.verdicts.iter().filter(|verdict| !verdict.outcome.is_passed());
    let remark = |cause: super::denial::Denial<'_>| {
        let denies = cause.first.action == Action::Deny || cause.first.outcome == Finding::Undecided;
        Remark {
            rule: cause.first.invariant.clone(),
            level: if denies { Level::Error } else { Level::Warning },
            file: None,
            line: None,
            column: None,
            subject: cause.first.instance.clone(),
            message: cause.lines(about, Paint::PLAIN).join("\n"),
            help: None,
        }
    };
    by_cause(told, about).into_iter().map(remark).collect()
}

/// The failed cases.
pub fn of_report(report: &Report) -> Vec<Remark> {
    let failed = report.failures();
    let remarks = failed.map(|(suite, case, failure)| Remark {
        rule: suite.name.clone(),
        level: Level::Error,
        file: Some(suite.file.clone()),
        line: failure.line,
        column: None,
        subject: case.name.clone(),
        message: format!("{}: {}", case.name, failure.reason),
        help: None,
    });
    remarks.collect()
}

/// Workflow commands of GitHub, which shows them beside the lines
/// (<https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands>).
pub fn github(remarks: &[Remark]) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::new();
    for Remark { rule, level, file, line, column, subject: _, message, help } in remarks {
        let level = if *level == Level::Error { "error" } else { "warning" };
        let mut properties = Vec::new();
        properties.extend(file.as_ref().map(|file| format!("file={}", property(file))));
        properties.extend(line.map(|line| format!("line={line}")));
        properties.extend(column.map(|column| format!("col={column}")));
        properties.push(format!("title={}", property(rule)));
        let help = help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
        _ = writeln!(out, "::{level} {}::{}", properties.join(","), data(&format!("{message}{help}")));
    }
    out
}

/// A log of one run. Codes of errors are rules with their pages, invariants are rules by their names.
pub fn sarif(remarks: &[Remark]) -> Value {
    let rules: BTreeMap<&str, Value> =
        remarks.iter().map(|remark| (remark.rule.as_str(), rule(&remark.rule))).collect();
    let results: Vec<Value> = remarks.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "suture",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    })
}

fn rule(id: &str) -> Value {
    match find_code(id) {
        Some(code) => json!({
            "id": id,
            "shortDescription": {"text": code.title},
            "fullDescription": {"text": code.page},
        }),
        None => json!({"id": id}),
    }
}

fn result(remark: &Remark) -> Value {
    let Remark { rule, level, file, line, column, subject, message, help } = remark;
    let help = help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    let mut location = Map::new();
    if !subject.is_empty() {
        location.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": subject}]));
    }
    if let Some(file) = file {
        let mut place = Map::from_iter([("artifactLocation".to_owned(), json!({"uri": file}))]);
        let region = match (line, column) {
            (Some(line), Some(column)) => Some(json!({"startLine": line, "startColumn": column})),
            (Some(line), None) => Some(json!({"startLine": line})),
            (None, _) => None,
        };
        place.extend(region.map(|region| ("region".to_owned(), region)));
        location.insert("physicalLocation".to_owned(), Value::Object(place));
    }
    json!({"ruleId": rule, "level": level, "message": {"text": format!("{message}{help}")}, "locations": [location]})
}
