//! The forms in which answers are printed.

use clap::ValueEnum;
use clap::builder::PossibleValue;

/// The forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// The forms of an answer that has places or findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// JUnit's XML, for CI.
    Junit,
    /// Annotations of GitHub's workflows.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

/// The forms of a decision and of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionFormat {
    /// One of those that other answers have too.
    Report(ReportFormat),
    /// Report and ClusterReport of openreports.io, for `kubectl apply`.
    Openreports,
}

impl ValueEnum for DecisionFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Report(ReportFormat::Text),
            Self::Report(ReportFormat::Json),
            Self::Report(ReportFormat::Yaml),
            Self::Report(ReportFormat::Junit),
            Self::Report(ReportFormat::Github),
            Self::Report(ReportFormat::Sarif),
            Self::Openreports,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Report(format) => format.to_possible_value(),
            Self::Openreports => ReplayFormat::Openreports.to_possible_value(),
        }
    }
}

/// The forms of a replay's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayFormat {
    /// For people.
    Text,
    /// JSON.
    Json,
    /// Report and ClusterReport of openreports.io, for `kubectl apply`.
    Openreports,
}

/// The forms of an answer that is a text or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For people.
    Text,
    /// JSON.
    Json,
}

impl From<PlainFormat> for Format {
    fn from(plain: PlainFormat) -> Self {
        match plain {
            PlainFormat::Text => Self::Text,
            PlainFormat::Json => Self::Json,
        }
    }
}
