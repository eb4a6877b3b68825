//! What becomes of a change whose operators no effect describes: of the command line and of `serve`.

use clap::ValueEnum;
use suture_specs::spec::OnUndecided;

/// What becomes of a change that touches a custom resource which no adapter explains: what its operator does is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unmodelled {
    /// It is denied.
    Deny,
    /// It is allowed with a warning.
    Warn,
    /// It is allowed; the answer says what it relies on.
    Allow,
}

impl From<Unmodelled> for OnUndecided {
    fn from(unmodelled: Unmodelled) -> Self {
        match unmodelled {
            Unmodelled::Deny => Self::Deny,
            Unmodelled::Warn => Self::Warn,
            Unmodelled::Allow => Self::Allow,
        }
    }
}
