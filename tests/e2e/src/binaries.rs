//! The programs of the control plane, built by `tests/controlplane/build` and cached outside the checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../controlplane/build");

/// The folder of the programs, all of one version.
#[derive(Debug, Clone)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds the programs of the version that `SUTURE_KUBERNETES` names, else of the default one; builds them if this is the
    /// first time, which takes minutes.
    pub fn find() -> Result<Self, Error> {
        let mut build = Command::new(BUILD);
        build.stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = build.output().map_err(Error::io(BUILD))?;
        if !output.status.success() {
            return Err(Error::Build { script: BUILD.to_owned(), status: output.status.to_string() });
        }
        Ok(Self { folder: PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()) })
    }

    /// The path of a program, or of a file that came with one.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The version of Kubernetes, such as `v1.35.4`.
    pub fn version(&self) -> &str {
        let named = self.folder.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        named.split_once('-').map_or(named, |(version, _)| version)
    }
}
