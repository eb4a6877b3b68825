//! What is counted, to compare the tree with an older one, whose root `SUTURE_TIDY_ROOT` names:
//! `cargo test -p suture-tests --test tidy figures -- --nocapture`. Lists of kinds and matches over functions, which are
//! recognized by their words, are told with their places, and held here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::imports::{Needs, circles, crates, needs};
use crate::known::{TELLING, Telling};
use crate::limits::{FILE_LINES_MAX, FUNCTION_LINES_MAX, long_files, long_functions};
use crate::syntax::{Token, closes, group, opens, skip, starts, tokens, without_tests};
use crate::tree::{expect_none, sources};

/// The crates that are the product.
const PRODUCT: [&str; 5] = ["model/src", "specs/src", "encode/src", "checker/src", "service/src"];

/// Where kinds are declared: a list of them anywhere else repeats a part of it.
const KINDS: &str = "model/src/kinds";

/// Where functions of the language are told apart: what each computes, and what each reads.
const TABLES: [&str; 2] = ["specs/src/functions", "encode/src/relations"];

/// So many kinds in one expression are a list of kinds.
const LIST_KINDS_MIN: usize = 3;

/// The product's code by file, without what only tests compile.
type Code<'a> = BTreeMap<&'a Path, Vec<Token<'a>>>;

#[test]
fn figures() {
    let sources = sources();
    let code = product(&sources);
    let (lists, matches) = (kind_lists(&code), function_matches(&code));
    lists.iter().for_each(|place| println!("a list of kinds: {place}"));
    matches.iter().for_each(|place| println!("a match over functions: {place}"));
    let needs = needs(&sources);
    let is_ours = |name: &str| PRODUCT.iter().any(|folder| name.starts_with(folder));
    count("circles between files", circle_names(&needs), is_ours);
    count("circles without what submodules take from their parent", circle_names(&without_parents(&needs)), is_ours);
    count(&format!("functions over {FUNCTION_LINES_MAX} lines"), long_functions(&sources).into_keys(), is_ours);
    count(&format!("files over {FILE_LINES_MAX} lines"), long_files(&sources).into_keys(), is_ours);
    let files: BTreeSet<_> = matches.iter().map(|place| place.split(':').next()).collect();
    println!("lists of {LIST_KINDS_MIN} or more kinds outside {KINDS}: {}", lists.len());
    println!("matches over functions outside {}: {} in {} files", TABLES.join(" and "), matches.len(), files.len());
    println!("lines of product code: {}", code.values().map(|tokens| lines(tokens)).sum::<usize>());
}

#[test]
fn a_list_of_kinds_stands_in_the_table_of_kinds() {
    expect_none(&kind_lists(&product(&sources())));
}

#[test]
fn functions_are_told_apart_in_their_tables() {
    let sources = sources();
    let matches = function_matches(&product(&sources));
    let is_at = |telling: &Telling, place: &String| place.split(':').next() == Some(telling.file);
    let unknown = matches.iter().filter(|place| !TELLING.iter().any(|telling| is_at(telling, place)));
    let settled = TELLING.iter().filter(|telling| !matches.iter().any(|place| is_at(telling, place)));
    let settled = settled.map(|Telling { file, reason }| format!("{file} tells none apart: strike it ({reason})"));
    expect_none(&unknown.cloned().chain(settled).collect::<Vec<_>>());
}

#[test]
fn a_list_of_kinds_is_found_whatever_its_form() {
    let kinds = BTreeSet::from(["Pod", "Job", "Node"]);
    let found = |source: &str| first_lines_of_lists(&tokens(source), &kinds);
    assert_eq!(found("const A: [&str; 3] = [\n\"Pod\", \"Job\",\n\"Node\"];"), [2]);
    assert_eq!(found("matches!(k, \"Pod\" | \"Job\" | \"Node\") || k == \"Pod\""), [1]);
    assert_eq!(found("k.is(\"Pod\") ||\n k.is(\"Job\") || k.is(\"Node\")"), [1]);
    assert_eq!(
        found("match k { \"Pod\" | \"Job\" => 1, \"Node\" => 2 } [\"Pod\", \"Job\", \"Other\", \"Job\"]"),
        [0; 0]
    );
}

#[test]
fn a_match_over_functions_is_one_whose_patterns_name_them() {
    let found = |source: &str| lines_of_matches(&tokens(source), "Func");
    assert_eq!(found("match f(a, |x| x) { Func::A | Func::B if c => {}, _ => g }"), [1]);
    assert_eq!(found("match a {\n (1, _) => Func::A,\n _ if x == Func::C => match b { Func::B => {} }\n}"), [3]);
    assert_eq!(found("matches!(f, Func::A) && matches!(g(Func::A), Some(1))"), [1]);
    assert_eq!(found("if let Some(Func::A) = f {}\n let Some(a) = Func::A else { b };"), [1]);
}

/// Tells how many there are, and how many of these are the product's.
fn count(what: &str, names: impl IntoIterator<Item = String>, is_ours: impl Fn(&str) -> bool) {
    let (ours, others): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| is_ours(name));
    println!("{what}: {} in the product, {} in tests", ours.len(), others.len());
}

/// The first file of each circle.
fn circle_names(needs: &Needs) -> Vec<String> {
    circles(needs).iter().filter_map(|files| files.first()).map(|file| file.display().to_string()).collect()
}

/// Without what a submodule takes from the file that declares it: a face and its parts are often meant as one.
fn without_parents(needs: &Needs) -> Needs {
    let mut needs = needs.clone();
    for (file, targets) in &mut needs {
        let folder = file.parent().unwrap_or(file);
        targets.retain(|target, _| *target != folder.with_extension("rs") && *target != folder.join("mod.rs"));
    }
    needs
}

/// The code of the product.
fn product(sources: &BTreeMap<PathBuf, String>) -> Code<'_> {
    let crates = crates(sources);
    let files = crates
        .iter()
        .flat_map(|found| found.files())
        .filter(|file| PRODUCT.iter().any(|folder| file.starts_with(folder)));
    let files = files.filter_map(|file| sources.get_key_value(file));
    files.map(|(file, text)| (file.as_path(), without_tests(&tokens(text)))).collect()
}

/// How many lines have code on them.
fn lines(tokens: &[Token]) -> usize {
    tokens.iter().flat_map(Token::lines).collect::<BTreeSet<_>>().len()
}

/// Where three or more kinds are named in one expression, by file and line.
fn kind_lists(code: &Code) -> Vec<String> {
    let (declaring, others): (Vec<_>, Vec<_>) = code.iter().partition(|(file, _)| is_at(file, KINDS));
    let names = declaring.iter().flat_map(|(_, tokens)| tokens.iter().filter_map(Token::literal));
    let kinds: BTreeSet<&str> = names.filter(|name| name.starts_with(char::is_uppercase)).collect();
    places(others.into_iter().map(|(file, tokens)| (*file, first_lines_of_lists(tokens, &kinds))))
}

/// Where functions of the language are told apart outside the tables, by file and line.
fn function_matches(code: &Code) -> Vec<String> {
    let others = code.iter().filter(|(file, _)| !TABLES.iter().any(|table| is_at(file, table)));
    places(others.map(|(file, tokens)| (*file, lines_of_matches(tokens, "Func"))))
}

/// Whether a file is at a path, or in the folder of this name.
fn is_at(file: &Path, path: &str) -> bool {
    file.starts_with(path) || file.with_extension("") == Path::new(path)
}

/// Files and lines as text.
fn places<'a>(found: impl Iterator<Item = (&'a Path, Vec<usize>)>) -> Vec<String> {
    let places =
        found.flat_map(|(file, lines)| lines.into_iter().map(move |line| format!("{}:{line}", file.display())));
    places.collect()
}

/// Where lists of kinds start: what three or more kinds are named in, between two ends of statements, blocks or patterns.
fn first_lines_of_lists(tokens: &[Token], kinds: &BTreeSet<&str>) -> Vec<usize> {
    let is_end = |token: &Token| [";", "{", "}", "=>"].iter().any(|mark| token.is(mark));
    let mut found = Vec::new();
    for expression in tokens.split(is_end) {
        let named = || expression.iter().filter(|token| token.literal().is_some_and(|name| kinds.contains(name)));
        let different: BTreeSet<&str> = named().map(|token| token.text).collect();
        if different.len() >= LIST_KINDS_MIN {
            found.extend(named().next().map(|token| token.line));
        }
    }
    found
}

/// Where a `match`, a `matches!` or a `let` has a pattern that names a variant of an enum.
fn lines_of_matches(tokens: &[Token], name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let rest = skip(tokens, at + 1);
        let patterns = match token.text {
            "match" => patterns(rest),
            "matches" if starts(rest, &["!"]) => pattern_of_matches(skip(rest, 1)),
            "let" => rest.iter().take_while(|token| !token.is("=") && !token.is(";")).copied().collect(),
            _ => continue,
        };
        let names_variant = |pair: &[Token]| starts(pair, &[name, "::"]);
        found.extend(patterns.windows(2).any(names_variant).then_some(token.line));
    }
    found
}

/// The patterns of a `match`, from what is after the keyword; without what is after their `if`.
fn patterns<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut start = 0;
    while skip(tokens, start).first().is_some_and(|token| !token.is("{")) {
        start += group(skip(tokens, start));
    }
    let length = group(skip(tokens, start));
    let mut rest = tokens.get(start + 1..start + length - 1).unwrap_or_default();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = top_level(rest, "=>");
        let guard = top_level(rest, "if").min(end);
        found.extend(rest.iter().take(guard));
        rest = skip(rest, end + 1);
        let body = if starts(rest, &["{"]) { group(rest) } else { top_level(rest, ",") };
        rest = skip(rest, body);
        rest = skip(rest, usize::from(starts(rest, &[","])));
    }
    found
}

/// The pattern of a `matches!`, from its bracket on.
fn pattern_of_matches<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let inside = tokens.get(1..group(tokens).saturating_sub(1)).unwrap_or_default();
    skip(inside, top_level(inside, ",")).to_vec()
}

/// How many tokens come before a mark that is in no bracket.
fn top_level(tokens: &[Token], mark: &str) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate() {
        if depth == 0 && token.is(mark) {
            return at;
        }
        depth += i32::from(opens(token)) - i32::from(closes(token));
    }
    tokens.len()
}
