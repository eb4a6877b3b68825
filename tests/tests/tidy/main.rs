//! What the compiler and clippy do not hold: the direction of dependencies, circles between files, how long a file or a
//! function is, files that nobody compiles, work left undone. It uses no other crate and compiles alone.
#![expect(clippy::panic, reason = "a file that cannot be read fails the test that wanted it")]

mod figures;
mod imports;
mod known;
mod layers;
mod limits;
mod syntax;
mod tree;

use std::collections::BTreeSet;
use std::path::PathBuf;

use layers::{declared_modules, is_target, module_files};
use tree::{around, expect_none, files, is_word, numbered_code, read, read_bytes, root, sources};

#[test]
fn every_source_file_is_compiled() {
    let sources = sources();
    let mut compiled = BTreeSet::new();
    let mut waiting: Vec<&PathBuf> = sources.keys().filter(|path| is_target(path)).collect();
    while let Some(path) = waiting.pop() {
        if compiled.insert(path)
            && let Some(text) = sources.get(path)
        {
            let candidates = declared_modules(text).into_iter().flat_map(|name| module_files(path, name));
            waiting.extend(candidates.filter_map(|file| sources.get_key_value(&file).map(|(path, _)| path)));
        }
    }
    let forgotten = sources.keys().filter(|path| !compiled.contains(path));
    expect_none(&forgotten.map(|path| format!("{}: no module declares this file", path.display())).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_undone() {
    // written in two halves, so that this file does not find itself
    let unfinished = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
    let mut problems = Vec::new();
    for (path, text) in sources() {
        for (number, line) in numbered_code(&text) {
            for pattern in unfinished.iter().filter(|pattern| line.contains(**pattern)) {
                problems.push(format!("{}:{number}: `{pattern}`", path.display()));
            }
        }
    }
    expect_none(&problems);
}

#[test]
fn every_source_file_says_what_it_is() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(path, _)| path);
    expect_none(&silent.map(|path| format!("{}: no `//!` sentence opens it", path.display())).collect::<Vec<_>>());
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let code: String = sources().into_values().collect();
    let mut problems = Vec::new();
    for page in ["ARCHITECTURE.md", "SECURITY.md"] {
        let text = read(&root().join(page));
        for (number, line) in (1..).zip(text.lines()) {
            let words = line.split('`').skip(1).step_by(2).filter(|word| is_sentence(word));
            let unknown = words.filter(|word| !code.contains(&format!("fn {word}(")));
            problems.extend(unknown.map(|word| format!("{page}:{number}: there is no function `{word}`")));
        }
    }
    expect_none(&problems);
}

/// Whether a word is named as tests are: four words or more. Metrics are not.
fn is_sentence(word: &str) -> bool {
    let is_lower = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    !word.starts_with("suture_") && word.split('_').count() > 3 && word.split('_').all(is_lower)
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let homes = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];
    let mut problems = Vec::new();
    for path in files() {
        // what is not UTF-8 is not text
        let Ok(text) = String::from_utf8(read_bytes(&root().join(&path))) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            for home in homes.iter().filter(|home| names_place(line, home)) {
                problems.push(format!("{}:{number}: `{home}`", path.display()));
            }
        }
    }
    expect_none(&problems);
}

#[test]
fn the_pinned_z3_is_the_version_that_is_compiled_against() {
    let config = read(&root().join(".cargo/config.toml"));
    let wanted = config.lines().find_map(|line| line.strip_prefix("Z3_SYS_Z3_VERSION = "));
    let requirements = read(&root().join(".cargo/z3-requirements.txt"));
    let pinned = requirements.lines().find_map(|line| line.strip_prefix("z3-solver=="));
    let (Some(wanted), Some(pinned)) = (wanted, pinned) else { panic!("wanted {wanted:?}, pinned {pinned:?}") };
    assert!(pinned.starts_with(&format!("{}.", wanted.trim_matches('"'))), "wanted {wanted}, pinned {pinned}");
}

/// Whether a line holds an absolute path that starts with `home`; the same words deep in an address do not count.
fn names_place(line: &str, home: &str) -> bool {
    around(line, home).any(|(before, _)| !before.ends_with(|c| is_word(c) || "-.*".contains(c)))
}
