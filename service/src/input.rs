//! The files that a flag names: a file, a folder with all manifests in it, or standard input, read as texts. A folder with
//! a kustomization is what that lists.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

mod kustomization;

/// One file's text, with the name that errors use for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was reached from the flag; `<stdin>` for standard input.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A file larger than this is no manifest that anybody meant (150,000 pods as YAML are below 1 GiB).
const FILE_BYTES_MAX: u64 = 2 << 30;
/// Deeper folders are a loop of links.
const FOLDER_DEPTH_MAX: usize = 64;
/// Ends of the names that are read in a folder.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];
/// What stands for standard input.
pub const STDIN: &str = "-";

/// Reads what the paths name, in their order; a folder's files in the order of their names.
///
/// # Errors
/// When one cannot be read, is not UTF-8, or is a folder without a manifest: it must not pass for an empty cluster.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == STDIN {
            sources.push(read_one(path)?);
            continue;
        }
        for file in files(path)? {
            sources.push(read_one(&file)?);
        }
    }
    Ok(sources)
}

/// The files that a path stands for: itself, or the manifests of a folder.
///
/// # Errors
/// When it cannot be read, or is a folder without a manifest.
pub fn files(path: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut found = BTreeSet::new();
    if !fs::metadata(path).map_err(|error| Failure::read(path, error))?.is_dir() {
        found.insert(path.to_path_buf());
        return Ok(found);
    }
    collect(path, 0, &mut found)?;
    if found.is_empty() {
        return Err(Failure::invalid(format!("no *.yaml, *.yml or *.json file in `{}`", path.display())));
    }
    Ok(found)
}

/// Reads one file, or standard input.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub fn read_one(path: &Path) -> Result<Source, Failure> {
    if path.as_os_str() == STDIN {
        return read_stdin();
    }
    let size = fs::metadata(path).map_err(|error| Failure::read(path, error))?.len();
    if size > FILE_BYTES_MAX {
        return Err(Failure::invalid(format!("`{}` is larger than {FILE_BYTES_MAX} bytes", path.display())));
    }
    let bytes = fs::read(path).map_err(|error| Failure::read(path, error))?;
    text(path.display().to_string(), bytes)
}

/// The manifests in what Helm prints, line by line where they were: the report of a dry run names the release before them,
/// and the notes of the chart, which are prose, come last.
pub fn without_notes(text: &str) -> String {
    let is = |line: &str, heading: &str| line.trim_end() == heading;
    let reported = text.lines().any(|line| is(line, "MANIFEST:")) && text.trim_start().starts_with("NAME:");
    let (mut out, mut skipping) = (String::with_capacity(text.len()), reported);
    for line in text.split_inclusive('\n') {
        let heading = ["MANIFEST:", "HOOKS:"].iter().any(|heading| reported && is(line, heading));
        skipping = !heading && (skipping || is(line, "NOTES:"));
        match heading || skipping {
            true => out.push('\n'),
            false => out.push_str(line),
        }
    }
    out
}

fn read_stdin() -> Result<Source, Failure> {
    let mut bytes = Vec::new();
    let mut limited = io::stdin().lock().take(FILE_BYTES_MAX);
    limited.read_to_end(&mut bytes).map_err(|error| Failure::read(Path::new(STDIN), error))?;
    text("<stdin>".to_owned(), bytes)
}

fn text(name: String, bytes: Vec<u8>) -> Result<Source, Failure> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
            Err(Failure::invalid(format!("{name}:{line}: the text is not UTF-8")))
        }
    }
}

/// The manifests below a folder, hidden files and folders left out.
fn collect(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) -> Result<(), Failure> {
    if depth > FOLDER_DEPTH_MAX {
        return Err(Failure::invalid(format!("`{}` is nested too deeply", folder.display())));
    }
    if let Some(resources) = kustomization::resources(folder)? {
        for path in resources {
            if fs::metadata(&path).map_err(|error| Failure::read(&path, error))?.is_dir() {
                collect(&path, depth + 1, found)?;
            } else {
                found.insert(path);
            }
        }
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|error| Failure::read(folder, error))? {
        let path = entry.map_err(|error| Failure::read(folder, error))?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        if fs::metadata(&path).map_err(|error| Failure::read(&path, error))?.is_dir() {
            collect(&path, depth + 1, found)?;
        } else if path.extension().is_some_and(|end| MANIFESTS.iter().any(|known| end == *known)) {
            found.insert(path);
        }
    }
    Ok(())
}
