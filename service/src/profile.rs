//! The name of a profile of shipped templates: of the command line and of `serve`.

use clap::ValueEnum;
use suture_specs::spec::Profile;

/// Which of the shipped templates are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// Those whose refusal is nearly always a mistake, under rules that let daily work pass.
    Baseline,
    /// Each with its defaults.
    Strict,
    /// None.
    None,
}

impl ProfileName {
    /// The profile of this name.
    pub fn profile(self) -> Option<Profile> {
        match self {
            Self::Baseline => Some(Profile::Baseline),
            Self::Strict => Some(Profile::Strict),
            Self::None => None,
        }
    }
}
