//! What can go wrong around a control plane.

use std::io;

/// A control plane that cannot be built, started, reached or waited for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, with the name of the file or program.
        doing: String,
        /// Its reason.
        source: io::Error,
    },
    /// `tests/controlplane/build` failed; it has told why on standard error.
    #[error("`{script}` failed: {status}")]
    Build {
        /// The script.
        script: String,
        /// How it ended.
        status: String,
    },
    /// A key or certificate could not be made.
    #[error("no key or certificate: {0}")]
    Key(#[from] rcgen::Error),
    /// No port is free.
    #[error("no free port among {0}")]
    Ports(String),
    /// Something did not come about in time.
    #[error("{what}: not within {} s: {last}", limit.as_secs_f64())]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: std::time::Duration,
        /// What was missing when last looked at.
        last: String,
    },
    /// A part ended by itself.
    #[error("{part} ended by itself: {status}; its log ends with:\n{log}")]
    Ended {
        /// Its name.
        part: String,
        /// How it ended.
        status: String,
        /// The last lines of its log.
        log: String,
    },
    /// A part that is down was to be stopped, killed, paused or resumed, or one that is up was to be launched.
    #[error("{part} is {state}")]
    State {
        /// Its name.
        part: String,
        /// Up or down.
        state: &'static str,
    },
    /// kubectl said no.
    #[error("`kubectl {arguments}` failed: {stderr}")]
    Kubectl {
        /// What it was called with.
        arguments: String,
        /// What it said.
        stderr: String,
    },
    /// The cluster has no such user.
    #[error("no user `{0}`: name it in the options that the cluster is started with")]
    NoUser(String),
    /// A request was not answered, or not as it must be.
    #[error("{what}: {reason}")]
    Call {
        /// Method and path.
        what: String,
        /// Why not.
        reason: String,
    },
    /// `suture` said no.
    #[error("`suture {arguments}` failed: {stderr}")]
    Suture {
        /// What it was called with.
        arguments: String,
        /// What it said.
        stderr: String,
    },
    /// Text that should be JSON.
    #[error("{what}: {source}")]
    Json {
        /// Where it came from.
        what: String,
        /// The parser's reason.
        source: serde_json::Error,
    },
}

impl Error {
    /// Makes the error of an operation that the operating system refused; for `map_err`.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}
