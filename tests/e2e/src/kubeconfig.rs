//! Users of the API server: their tokens, the file that tells it about them, and a kubeconfig for each.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::error::Error;

/// As long as nobody guesses.
const TOKEN_BYTES: usize = 16;

/// Somebody who sends requests. The API server adds the group `system:authenticated`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name that RBAC and webhooks see.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl User {
    /// A user with these groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self { name: name.to_owned(), groups: groups.iter().map(|&group| group.to_owned()).collect() }
    }

    /// Whom RBAC never refuses.
    pub fn admin() -> Self {
        Self::new("admin", &["system:masters"])
    }

    /// What a pod that runs under a service account is to the API server (`MakeUsername` and `MakeGroupNames` in apiserver's
    /// `pkg/authentication/serviceaccount/util.go`).
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        Self::new(&format!("system:serviceaccount:{namespace}:{name}"), &groups)
    }
}

/// The users of one cluster with their tokens.
#[derive(Debug)]
pub struct Users {
    folder: PathBuf,
    tokens: BTreeMap<String, String>,
}

impl Users {
    /// Writes the token file of the API server and a kubeconfig for each user into `folder`.
    pub fn write(folder: &Path, server: &str, certificate: &Path, users: &[User]) -> Result<Self, Error> {
        let mut tokens = BTreeMap::new();
        let mut lines = String::new();
        for User { name, groups } in users {
            let token = token()?;
            // token, user, uid, groups: `NewCSV` in apiserver's pkg/authentication/token/tokenfile/tokenfile.go
            lines += &format!("{token},\"{name}\",\"{name}\",\"{}\"\n", groups.join(","));
            tokens.insert(name.clone(), token);
        }
        let written = Self { folder: folder.to_owned(), tokens };
        write(&written.token_file(), &lines)?;
        for (name, token) in &written.tokens {
            let config = json!({
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "suture",
                "clusters": [{"name": "suture", "cluster": {"server": server, "certificate-authority": certificate}}],
                "users": [{"name": name, "user": {"token": token}}],
                "contexts": [{"name": "suture", "context": {"cluster": "suture", "user": name}}],
            });
            // JSON is YAML
            write(&written.file(name), &format!("{config:#}\n"))?;
        }
        Ok(written)
    }

    /// The file for `--token-auth-file`.
    pub fn token_file(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    /// The kubeconfig of a user.
    pub fn kubeconfig(&self, name: &str) -> Result<PathBuf, Error> {
        self.token(name).map(|_| self.file(name))
    }

    /// The bearer token of a user.
    pub fn token(&self, name: &str) -> Result<&str, Error> {
        self.tokens.get(name).map(String::as_str).ok_or_else(|| Error::NoUser(name.to_owned()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.kubeconfig", name.replace([':', '/'], "_")))
    }
}

fn token() -> Result<String, Error> {
    let mut bytes = [0; TOKEN_BYTES];
    let source = "/dev/urandom";
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).map_err(Error::io(source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io(path.display().to_string()))
}
