//! What becomes of a request when Suture does not answer: a flag, and a field of the webhook's configuration.

use clap::ValueEnum;

/// What becomes of a request when Suture does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It is admitted.
    Ignore,
}

impl FailurePolicy {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}
