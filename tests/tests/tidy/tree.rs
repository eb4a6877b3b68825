//! The files of the tree, as paths from its root and as text.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are not part of the tree, whatever is in them.
const NOT_OURS: [&str; 3] = [".git", ".z3", "target"];

/// The text of every Rust file.
pub fn sources() -> BTreeMap<PathBuf, String> {
    let rust = files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.map(|path| (path.clone(), read(&root().join(path)))).collect()
}

/// Every file of the tree, relative to its root, in order.
pub fn files() -> BTreeSet<PathBuf> {
    let (root, mut found, mut waiting) = (root(), BTreeSet::new(), vec![root()]);
    while let Some(folder) = waiting.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map_while(Result::ok).map(|entry| entry.path()) {
            if NOT_OURS.iter().any(|name| path.ends_with(name)) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.extend(path.strip_prefix(&root).map(Path::to_path_buf));
            }
        }
    }
    found
}

/// The root of the tree that is looked at: `SUTURE_TIDY_ROOT` names another one than this.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    env::var_os("SUTURE_TIDY_ROOT").map_or_else(|| here.parent().unwrap_or(here).to_path_buf(), PathBuf::from)
}

/// The text of a file.
pub fn read(path: &Path) -> String {
    String::from_utf8(read_bytes(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The bytes of a file.
pub fn read_bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands before and after each occurrence of `needle`.
pub fn around<'a>(line: &'a str, needle: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let splits = line.match_indices(needle).map(|(start, found)| (line.split_at(start), found.len()));
    splits.map(|((before, rest), length)| (before, rest.split_at(length).1))
}

/// The lines of a source file without their comments, numbered from one.
pub fn numbered_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)))
}

/// Whether a character may be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Fails with one problem a line, if there are any.
#[track_caller]
pub fn expect_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
