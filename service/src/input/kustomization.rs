//! The resources that a folder's kustomization lists. One that also changes them is refused: what it makes of them is
//! kustomize's to say.

use std::fs;
use std::path::{Path, PathBuf};

use suture_model::ingest::parse_documents;

use crate::failure::Failure;

/// The names of the file (`sigs.k8s.io/kustomize/api/konfig/general.go`).
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// Fields that leave the resources as they are.
const PLAIN: [&str; 4] = ["apiVersion", "kind", "metadata", "resources"];

/// The files and folders that the kustomization of a folder lists; none where it has no kustomization.
pub(super) fn resources(folder: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let Some(file) = NAMES.iter().map(|name| folder.join(name)).find(|file| file.is_file()) else { return Ok(None) };
    let shown = file.display();
    let text = fs::read_to_string(&file).map_err(|error| Failure::read(&file, error))?;
    let documents = parse_documents(&text, &shown.to_string()).map_err(Failure::invalid)?;
    let instead = format!("give what `kubectl kustomize {}` prints instead", folder.display());
    let [document] = documents.as_slice() else {
        return Err(Failure::invalid(format!("{shown}: expected one Kustomization; {instead}")));
    };
    let others = document.val.entries().filter(|(field, value)| !PLAIN.contains(&&***field) && !value.is_null());
    let others: Vec<String> = others.map(|(field, _)| format!("`{field}`")).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        return Err(Failure::invalid(format!(
            "{shown}: the kustomization changes its resources ({others}); {instead}"
        )));
    }
    let listed = document.val.items_at(&["resources"]).iter().map(|resource| {
        let path = resource.as_str().map_or("", |path| path);
        match folder.join(path) {
            there if !path.is_empty() && there.exists() => Ok(there),
            _ => Err(Failure::invalid(format!("{shown}: the resource `{path}` is no file or folder here; {instead}"))),
        }
    });
    listed.collect::<Result<Vec<_>, _>>().map(Some)
}
