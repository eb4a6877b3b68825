//! How long files and functions may be, and that files do not need each other in a circle. What breaks a rule today is
//! listed in [`known`](crate::known); what is not listed there breaks the test, and so does what is listed and breaks no
//! rule any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::imports::{Needs, circles, needs};
use crate::known::{CIRCLES, DESCENTS, Descent, LONG_FILES, LONG_FUNCTIONS};
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
    let (descents, known) = (lists(DESCENTS.iter().map(|descent| descent.files)), lists(CIRCLES.iter().copied()));
    let (meant, others): (Vec<_>, Vec<_>) = circles(&needs).into_iter().partition(|circle| descents.contains(circle));
    // a known circle that falls apart may leave smaller ones
    let new = others.iter().filter(|circle| !known.iter().any(|files| circle.is_subset(files)));
    let mut problems: Vec<String> = new.map(|circle| unknown_circle(&needs, circle, &known)).collect();
    let stale = known.iter().flatten().filter(|file| !others.iter().any(|circle| circle.contains(*file)));
    problems.extend(stale.map(|file| format!("CIRCLES: {} is in no circle any more: strike it", file.display())));
    let stale = DESCENTS.iter().zip(&descents).filter(|(_, files)| !meant.contains(files));
    let mend = |descent: &Descent| format!("DESCENTS: no circle is all of these files ({}): mend it", descent.reason);
    problems.extend(stale.map(|(descent, _)| mend(descent)));
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

/// What is wrong with a circle that is not known: the files that came to it, and what ties it, one line for each file and
/// each other one that it needs.
fn unknown_circle(needs: &Needs, circle: &BTreeSet<&Path>, known: &[BTreeSet<&Path>]) -> String {
    let new = circle.iter().filter(|file| !known.iter().any(|files| files.contains(*file)));
    let new: Vec<String> = new.map(|file| format!("`{}`", file.display())).collect();
    let mut lines = vec![format!("a circle that is not known; what was in none is {}:", new.join(", "))];
    for (from, targets) in needs.iter().filter(|(from, _)| circle.contains(from.as_path())) {
        for (to, names) in targets.iter().filter(|(to, _)| circle.contains(to.as_path())) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            lines.push(format!("  {} -> {}: {}", from.display(), to.display(), names.join(", ")));
        }
    }
    lines.join("\n")
}

/// The files of each list.
fn lists<'a>(lists: impl Iterator<Item = &'a [&'a str]>) -> Vec<BTreeSet<&'a Path>> {
    lists.map(|files| files.iter().map(Path::new).collect()).collect()
}
