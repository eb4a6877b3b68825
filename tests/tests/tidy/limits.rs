//! How long files and functions may be, and that files do not need each other in a circle. What breaks a rule today is
//! listed in [`known`](crate::known); what is not listed there breaks the test, and so does what is listed and breaks no
//! rule any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::imports::{Needs, circles, needs};
use crate::known::{CIRCLES, DESCENTS, LONG_FILES, LONG_FUNCTIONS};
use crate::syntax::{functions, tokens};
use crate::tree::{expect_none, sources};

/// A person reads a file in one go or not at all.
pub const FILE_LINES_MAX: usize = 600;

/// A function that fits two screens is understood without scrolling back.
pub const FUNCTION_LINES_MAX: usize = 80;

#[test]
fn every_source_file_can_be_read_in_one_go() {
    expect_known(&long_files(&sources()), LONG_FILES, "LONG_FILES");
}

#[test]
fn every_function_can_be_read_in_one_go() {
    expect_known(&long_functions(&sources()), LONG_FUNCTIONS, "LONG_FUNCTIONS");
}

#[test]
fn files_do_not_need_each_other_in_a_circle() {
    let needs = needs(&sources());
    let descents: Vec<BTreeSet<&Path>> = DESCENTS.iter().map(|descent| paths(descent.files)).collect();
    let known: Vec<BTreeSet<&Path>> = CIRCLES.iter().map(|files| paths(files)).collect();
    let circles = circles(&needs);
    let found: Vec<BTreeSet<&Path>> =
        circles.iter().map(|circle| circle.iter().map(PathBuf::as_path).collect()).collect();
    // a known circle that falls apart may leave smaller ones
    let is_fine =
        |circle: &&BTreeSet<&Path>| descents.contains(circle) || known.iter().any(|files| circle.is_subset(files));
    let new = found.iter().filter(|circle| !is_fine(circle));
    let mut problems: Vec<String> = new.map(|circle| format!("a new circle:\n{}", ties(&needs, circle))).collect();
    for (descent, files) in DESCENTS.iter().zip(&descents).filter(|(_, files)| !found.contains(files)) {
        problems.push(format!("DESCENTS: {files:?} are no circle any more ({}): strike them", descent.reason));
    }
    for files in &known {
        let left: BTreeSet<&Path> = found.iter().filter(|circle| circle.is_subset(files)).flatten().copied().collect();
        let stale = files.difference(&left).map(|file| file.display());
        problems.extend(stale.map(|file| format!("CIRCLES: {file} is in none of these circles any more: strike it")));
    }
    expect_none(&problems);
}

/// Files that are too long, with their lines.
pub fn long_files(sources: &BTreeMap<PathBuf, String>) -> BTreeMap<String, usize> {
    let counted = sources.iter().map(|(path, text)| (path.display().to_string(), text.lines().count()));
    counted.filter(|(_, lines)| *lines > FILE_LINES_MAX).collect()
}

/// Functions that are too long, by file and name, with their lines.
pub fn long_functions(sources: &BTreeMap<PathBuf, String>) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (path, text) in sources {
        let long = functions(&tokens(text)).into_iter().filter(|function| function.lines() > FUNCTION_LINES_MAX);
        found.extend(long.map(|function| (format!("{}: {}", path.display(), function.name), function.lines())));
    }
    found
}

/// Fails unless exactly what is listed under the name `list` is too long.
#[track_caller]
fn expect_known(found: &BTreeMap<String, usize>, known: &[&str], list: &str) {
    let new = found.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    let mut problems: Vec<String> = new.map(|(name, lines)| format!("{name}: {lines} lines")).collect();
    let stale = known.iter().filter(|name| !found.contains_key(**name));
    problems.extend(stale.map(|name| format!("{list}: {name} is short enough, or gone: strike it")));
    expect_none(&problems);
}

/// What ties the files of a circle, one line for each file and each other one that it needs.
pub fn ties(needs: &Needs, circle: &BTreeSet<&Path>) -> String {
    let mut lines = Vec::new();
    for (from, targets) in needs.iter().filter(|(from, _)| circle.contains(from.as_path())) {
        for (to, names) in targets.iter().filter(|(to, _)| circle.contains(to.as_path())) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            lines.push(format!("  {} -> {}: {}", from.display(), to.display(), names.join(", ")));
        }
    }
    lines.join("\n")
}

/// The files of a list.
fn paths<'a>(files: &'a [&str]) -> BTreeSet<&'a Path> {
    files.iter().map(Path::new).collect()
}
