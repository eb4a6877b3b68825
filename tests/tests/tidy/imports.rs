//! Which file of a crate needs which: by its imports and paths, `#[cfg(test)]` left out, followed through re-exports to
//! the file that defines what they name. `mod x;` and `pub use` need nothing: they hand on. Methods are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::layers::{is_target, module_files};
use crate::syntax::{Token, group, skip, starts, tokens, without_tests};

/// Re-exports that are followed one after another, at most: circles of them end here.
const HOPS_MAX: usize = 16;

/// Files that need other files of their crate: from, to, and the names that are needed.
pub type Needs = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

/// The place of a module in its crate; the root has the empty one.
type Place = Vec<String>;

/// A crate: what cargo compiles of its own accord, and the modules that it declares.
pub struct Crate {
    modules: BTreeMap<Place, Module>,
}

/// A module, in a file of its own or inside another one.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// What it defines.
    names: BTreeSet<String>,
    imports: Vec<Import>,
    /// The paths in its code, names of one word too.
    paths: BTreeSet<Place>,
}

/// One name of a `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Import {
    /// What it names; of a glob, what is before the star.
    path: Place,
    /// Under which name; a star for all names.
    name: String,
    /// Whether others may take it from here.
    exported: bool,
}

#[test]
fn an_import_is_read_whatever_its_form() {
    let read = |source: &str| {
        let found = imports(skip(&tokens(source), 1), false).into_iter();
        found.map(|import| format!("{} as {}", import.path.join("::"), import.name)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(read("use a::b;"), "a::b as b");
    assert_eq!(
        read("use a::{self, b as c, d::{e, f::*},\n g};"),
        "a as a, a::b as c, a::d::e as e, a::d::f as *, a::g as g"
    );
    assert_eq!(read("use {a, crate::b as _};"), "a as a, crate::b as _");
    assert_eq!(read("use ::a::b;"), "a::b as b");
}

#[test]
fn a_name_is_taken_from_the_file_that_defines_it() {
    let files = [
        ("model/src/lib.rs", "mod a; mod b; mod c; #[cfg(test)] mod tests;"),
        ("model/src/a/mod.rs", "mod x; mod y; pub use x::X; pub use y::{self, Y as Z}; pub struct Own;"),
        ("model/src/a/x.rs", "use super::Own; pub struct X;"),
        ("model/src/a/y.rs", "pub struct Y; pub fn f() { super::super::b::g() }"),
        ("model/src/b.rs", "use std::{fmt}; use crate::a::X; pub fn g() { fmt(X::new()) }"),
        (
            "model/src/c.rs",
            "use crate::a::*; use p::*; use q::*; use r::*; use crate::b; fn h(b: u8) { y::f(); Z::new() } #[cfg(test)] use b::g;",
        ),
        ("model/src/tests.rs", "use crate::c::h;"),
    ];
    let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
    let needs = needs(&files.into());
    let short = |path: &Path| path.strip_prefix("model/src").unwrap_or(path).display().to_string();
    let pairs = needs.iter().flat_map(|(from, targets)| targets.keys().map(|to| (short(from), short(to))));
    let found: Vec<String> = pairs.map(|(from, to)| format!("{from} -> {to}")).collect();
    assert_eq!(found, ["a/x.rs -> a/mod.rs", "a/y.rs -> b.rs", "b.rs -> a/x.rs", "c.rs -> a/y.rs"]);
}

#[test]
fn files_that_need_each_other_are_a_circle() {
    let pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")];
    let mut needs = Needs::new();
    for (from, to) in pairs {
        needs.entry(from.into()).or_default().entry(to.into()).or_default().insert("x".to_owned());
    }
    let wanted = [vec!["a", "b", "c"], vec!["d", "e"]].map(|files| files.into_iter().map(Path::new).collect());
    assert_eq!(circles(&needs), BTreeSet::from(wanted));
}

/// Which file of the tree needs which of its own crate, and for what.
pub fn needs(sources: &BTreeMap<PathBuf, String>) -> Needs {
    let mut needs = Needs::new();
    for found in crates(sources) {
        found.note_needs(&mut needs);
    }
    needs
}

/// The crates of the tree, one for each target of cargo's.
pub fn crates(sources: &BTreeMap<PathBuf, String>) -> Vec<Crate> {
    let roots = sources.keys().filter(|path| is_target(path));
    roots.map(|root| Crate::read(root, sources)).collect()
}

/// The circles between files: each the files of which any one needs, in the end, any other.
pub fn circles(needs: &Needs) -> BTreeSet<BTreeSet<&Path>> {
    let reach: BTreeMap<&Path, BTreeSet<&Path>> =
        needs.keys().map(|file| (file.as_path(), reached(needs, file))).collect();
    let reaches = |from: &Path, to: &Path| reach.get(from).is_some_and(|reached| reached.contains(to));
    let circles =
        reach.iter().map(|(file, reached)| reached.iter().copied().filter(|other| reaches(other, file)).collect());
    circles.filter(|files: &BTreeSet<_>| files.len() > 1).collect()
}

/// What a file needs, in the end.
fn reached<'a>(needs: &'a Needs, file: &'a Path) -> BTreeSet<&'a Path> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![file]);
    while let Some(file) = waiting.pop() {
        let targets = needs.get(file).into_iter().flat_map(BTreeMap::keys).map(PathBuf::as_path);
        waiting.extend(targets.filter(|target| found.insert(*target)));
    }
    found
}

impl Crate {
    /// Reads a crate from its root on.
    fn read(root: &Path, sources: &BTreeMap<PathBuf, String>) -> Self {
        let (mut modules, mut waiting) = (BTreeMap::new(), vec![(Place::new(), root.to_path_buf())]);
        while let Some((place, file)) = waiting.pop() {
            let Some(text) = sources.get(&file) else { continue };
            for name in scan(&without_tests(&tokens(text)), &place, &file, &mut modules) {
                let found = module_files(&file, &name).into_iter().find(|file| sources.contains_key(file));
                waiting.extend(found.map(|file| (below(&place, &name), file)));
            }
        }
        Self { modules }
    }

    /// The files that it is compiled from.
    pub fn files(&self) -> BTreeSet<&Path> {
        self.modules.values().map(|module| module.file.as_path()).collect()
    }

    /// Notes which of its files needs which, and for what.
    fn note_needs(&self, needs: &mut Needs) {
        for (place, module) in &self.modules {
            let imported = module.imports.iter().filter(|import| !import.exported).map(|import| &import.path);
            for path in imported.chain(&module.paths) {
                if let Some((file, name)) = self.scoped(place, path, HOPS_MAX).filter(|(file, _)| *file != module.file)
                {
                    let targets = needs.entry(module.file.clone()).or_default();
                    targets.entry(file.to_path_buf()).or_default().insert(name.to_owned());
                }
            }
        }
    }

    /// The file that defines what a path in the code of the module at `place` names, and its name there. A module by
    /// itself is nothing that is needed: what is taken from it is.
    fn scoped(&self, place: &[String], path: &[String], hops: usize) -> Option<(&Path, &str)> {
        match path.split_first() {
            Some((head, rest)) if head == "crate" => self.named(&[], rest, hops),
            _ => self.named(place, path, hops),
        }
    }

    /// The same, of a path that does not start at the root.
    fn named(&self, place: &[String], path: &[String], hops: usize) -> Option<(&Path, &str)> {
        let (head, rest) = path.split_first()?;
        let (module, hops) = (self.modules.get(place)?, hops.checked_sub(1)?);
        let child = below(place, head);
        match head.as_str() {
            "self" => self.named(place, rest, hops),
            "super" => self.named(place.split_last()?.1, rest, hops),
            _ if !rest.is_empty() && self.modules.contains_key(&child) => self.named(&child, rest, hops),
            _ => module.names.get(head).map(|name| (module.file.as_path(), name.as_str())).or_else(|| {
                let imports =
                    module.imports.iter().filter(|import| import.name != "*" || self.is_inside(place, import));
                imports.map(|import| import.followed(head, path)).find_map(|path| self.scoped(place, &path?, hops))
            }),
        }
    }

    /// Whether an import of the module at `place` is one from its own crate.
    fn is_inside(&self, place: &[String], import: &Import) -> bool {
        import.path.first().is_some_and(|head| {
            ["crate", "self", "super"].contains(&head.as_str()) || self.modules.contains_key(&below(place, head))
        })
    }
}

impl Import {
    /// What a path that starts with `head` names, if this brings in its head.
    fn followed(&self, head: &str, path: &[String]) -> Option<Place> {
        let rest = if self.name == "*" { path } else { path.get(1..)? };
        (self.name == "*" || self.name == head).then(|| [self.path.as_slice(), rest].concat())
    }
}

/// The place of a module inside another one.
fn below(place: &[String], name: &str) -> Place {
    [place, &[name.to_owned()]].concat()
}

/// Reads a module from its tokens, and those inside it; returns the modules that it declares and whose text is elsewhere.
fn scan(tokens: &[Token], place: &Place, file: &Path, modules: &mut BTreeMap<Place, Module>) -> Vec<String> {
    let mut module = Module { file: file.to_path_buf(), ..Module::default() };
    let (mut declared, mut rest, mut depth, mut exported) = (Vec::new(), tokens, 0_i32, false);
    while let Some((first, after)) = rest.split_first() {
        let name = after.first().and_then(Token::word);
        let (mut length, mut exports) = (1, false);
        if first.is("use") && !starts(after, &["<"]) {
            module.imports.extend(imports(after, exported));
            length = statement(rest);
        } else if let Some(name) = name.filter(|_| first.is("mod")) {
            if starts(skip(after, 1), &["{"]) {
                length = 2 + group(skip(after, 1));
                scan(rest.get(3..length - 1).unwrap_or_default(), &below(place, name), file, modules);
            } else {
                declared.push(name.to_owned());
            }
        } else if first.is("pub") {
            exports = true;
            length = if starts(after, &["("]) { 1 + group(after) } else { 1 };
        } else if let Some(head) = first.word() {
            module.names.extend(name.filter(|_| depth == 0 && DEFINES.contains(&head)).map(str::to_owned));
            length = path_length(rest);
            let words = rest.iter().take(length).filter_map(Token::word);
            module.paths.insert(words.map(str::to_owned).collect());
        } else {
            if first.is("!") && depth == 0 {
                // the name of a macro
                module.names.extend(name.map(str::to_owned));
            }
            // a method, a field or what a type brings along is no name of the module's
            length += usize::from((first.is(".") || first.is("::")) && name.is_some());
            depth += i32::from(first.is("{")) - i32::from(first.is("}"));
        }
        exported = exports;
        rest = skip(rest, length);
    }
    modules.insert(place.clone(), module);
    declared
}

/// The keywords that a definition's name follows.
const DEFINES: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "const", "static"];

/// How many tokens the path spans that tokens start with.
fn path_length(tokens: &[Token]) -> usize {
    let mut length = 1;
    while starts(skip(tokens, length), &["::"])
        && skip(tokens, length + 1).first().is_some_and(|next| next.word().is_some())
    {
        length += 2;
    }
    length
}

/// How many tokens there are up to the next semicolon, it included.
fn statement(tokens: &[Token]) -> usize {
    tokens.iter().position(|token| token.is(";")).map_or(tokens.len(), |at| at + 1)
}

/// The names that a `use` brings in, from what is after the keyword.
fn imports(tokens: &[Token], exported: bool) -> Vec<Import> {
    let (mut found, mut rest, mut path, mut outer) = (Vec::new(), tokens, Place::new(), Vec::new());
    let mut name: Option<String> = None;
    while let Some((first, after)) = rest.split_first() {
        if let Some(alias) = after.first().and_then(Token::word).filter(|_| first.is("as")) {
            name = Some(alias.to_owned());
            rest = skip(after, 1);
            continue;
        } else if first.is("*") {
            name = Some("*".to_owned());
        } else if first.is("self") && !path.is_empty() {
            name = path.last().cloned();
        } else if let Some(word) = first.word() {
            path.push(word.to_owned());
            name = Some(word.to_owned());
        } else if first.is("{") {
            outer.push(path.clone());
            name = None;
        } else if !first.is("::") {
            // a comma, a brace or the semicolon ends a name
            found.extend(name.take().map(|name| Import { path: path.clone(), name, exported }));
            path = outer.last().cloned().unwrap_or_default();
            if first.is("}") {
                outer.pop();
            } else if first.is(";") {
                break;
            }
        }
        rest = after;
    }
    found
}
