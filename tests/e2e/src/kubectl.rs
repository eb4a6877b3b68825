//! kubectl as one user.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::error::Error;

/// No single request of a test takes longer; also ends the watch of a `kubectl wait`, which then watches again.
const REQUEST_TIMEOUT: &str = "--request-timeout=60s";

/// Runs kubectl as one user. Cheap to clone, for threads of their own.
#[derive(Debug, Clone)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// Who asks, and whom.
    pub kubeconfig: PathBuf,
    /// Where it keeps what it discovered, instead of the home of whoever runs the test.
    pub cache: PathBuf,
}

/// What a run of kubectl came to.
#[derive(Debug, Clone)]
pub struct Output {
    /// Whether it ended with exit code 0.
    pub success: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Kubectl {
    /// Runs kubectl; being refused is an answer, not an error.
    pub fn run(&self, arguments: &[&str]) -> Result<Output, Error> {
        self.run_with(arguments, "")
    }

    /// Runs kubectl with something to read, for `-f -`.
    pub fn run_with(&self, arguments: &[&str], stdin: &str) -> Result<Output, Error> {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).arg("--cache-dir").arg(&self.cache).arg(REQUEST_TIMEOUT);
        // preferences of whoever runs the test (kubectl's pkg/kuberc)
        command.args(arguments).env("KUBERC", "off").env_remove("KUBECONFIG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Error::io("kubectl"))?;
        let pipe = child.stdin.take();
        let output = thread::scope(|scope| {
            scope.spawn(|| {
                // it may refuse and leave before it has read everything
                pipe.map(|mut pipe| pipe.write_all(stdin.as_bytes()))
            });
            child.wait_with_output()
        });
        let output = output.map_err(Error::io("kubectl"))?;
        Ok(Output {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// What a run prints that must succeed.
    pub fn text(&self, arguments: &[&str]) -> Result<String, Error> {
        succeeded(arguments, self.run(arguments)?)
    }

    /// What a run prints as JSON that must succeed; asks for JSON itself.
    pub fn json(&self, arguments: &[&str]) -> Result<Value, Error> {
        let text = self.text(&[arguments, &["--output=json"]].concat())?;
        serde_json::from_str(&text).map_err(|source| Error::Json { what: arguments.join(" "), source })
    }

    /// Creates the objects of a manifest, YAML or JSON; must succeed.
    pub fn create(&self, manifest: &str) -> Result<(), Error> {
        let arguments = ["create", "--filename=-"];
        succeeded(&arguments, self.run_with(&arguments, manifest)?).map(drop)
    }

    /// Applies a manifest on the server's side; must succeed.
    pub fn apply(&self, manifest: &str) -> Result<(), Error> {
        let arguments = ["apply", "--server-side", "--filename=-"];
        succeeded(&arguments, self.run_with(&arguments, manifest)?).map(drop)
    }
}

fn succeeded(arguments: &[&str], output: Output) -> Result<String, Error> {
    if output.success {
        Ok(output.stdout)
    } else {
        Err(Error::Kubectl { arguments: arguments.join(" "), stderr: output.stderr.trim_end().to_owned() })
    }
}
