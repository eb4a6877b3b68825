//! The forms in which answers are printed.

use clap::ValueEnum;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecisionFormat {
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
    /// Report and ClusterReport of openreports.io, for `kubectl apply`.
    Openreports,
}

impl DecisionFormat {
    /// The form, where it is one of those that other answers have too.
    pub fn of_report(self) -> Option<ReportFormat> {
        match self {
            Self::Text => Some(ReportFormat::Text),
            Self::Json => Some(ReportFormat::Json),
            Self::Yaml => Some(ReportFormat::Yaml),
            Self::Junit => Some(ReportFormat::Junit),
            Self::Github => Some(ReportFormat::Github),
            Self::Sarif => Some(ReportFormat::Sarif),
            Self::Openreports => None,
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
