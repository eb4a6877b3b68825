//! The crates from the bottom up: what each may know of the others, and which files cargo compiles for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tree::{around, expect_none, files, is_word, numbered_code, read, root, sources};

/// What a crate may know of the workspace, and the foreign vocabularies that it must not name.
struct Layer {
    folder: &'static str,
    may_use: &'static [&'static str],
    must_not_use: &'static [&'static str],
}

/// The crates from the bottom up; `ARCHITECTURE.md` gives the reasons.
const LAYERS: [Layer; 7] = [
    Layer { folder: "model", may_use: &[], must_not_use: &["kube", "z3", "z3-sys", "cel", "cel-core", "tokio"] },
    Layer { folder: "specs", may_use: &["suture-model"], must_not_use: &["kube", "z3", "z3-sys", "tokio"] },
    Layer {
        folder: "encode",
        may_use: &["suture-model", "suture-specs"],
        must_not_use: &["kube", "k8s-openapi", "z3", "z3-sys", "cel", "cel-core", "tokio"],
    },
    Layer {
        folder: "checker",
        may_use: &["suture-model", "suture-specs", "suture-encode"],
        must_not_use: &["axum", "hyper", "kube", "k8s-openapi", "cel", "cel-core", "tokio"],
    },
    Layer {
        folder: "service",
        may_use: &["suture-model", "suture-specs", "suture-encode", "suture-checker"],
        must_not_use: &["z3", "z3-sys", "cel", "cel-core"],
    },
    Layer {
        folder: "tests",
        may_use: &["suture-model", "suture-specs", "suture-encode", "suture-checker", "suture-service"],
        must_not_use: &["z3", "z3-sys", "cel-core"],
    },
    Layer {
        folder: "tests/e2e",
        may_use: &["suture-model", "suture-specs", "suture-encode", "suture-checker", "suture-service"],
        must_not_use: &["z3", "z3-sys", "cel", "cel-core"],
    },
];

#[test]
fn dependencies_point_one_way() {
    let mut problems = Vec::new();
    for Layer { folder, may_use, must_not_use } in LAYERS {
        for name in dependencies(&read(&root().join(folder).join("Cargo.toml"))) {
            let upward = name.starts_with("suture-") && !may_use.contains(&name.as_str());
            if upward || must_not_use.contains(&name.as_str()) {
                problems.push(format!("{folder}/Cargo.toml: `{folder}` must not depend on `{name}`"));
            }
        }
    }
    expect_none(&problems);
}

#[test]
fn every_crate_has_a_layer() {
    let listed: BTreeSet<PathBuf> = LAYERS.iter().map(|layer| PathBuf::from(layer.folder).join("Cargo.toml")).collect();
    let found = files().into_iter().filter(|path| path.ends_with("Cargo.toml") && path != Path::new("Cargo.toml"));
    assert_eq!(found.collect::<BTreeSet<_>>(), listed);
}

#[test]
fn foreign_paths_stay_in_their_folder() {
    let mut problems = Vec::new();
    for (path, text) in sources() {
        for (name, home) in [("z3", "checker"), ("cel_core", "specs/src/cel")] {
            if path.starts_with(home) {
                continue;
            }
            for (number, _) in numbered_code(&text).filter(|(_, line)| names_crate(line, name)) {
                problems.push(format!("{}:{number}: `{name}` is named outside {home}", path.display()));
            }
        }
    }
    expect_none(&problems);
}

#[test]
fn a_manifest_is_read_whatever_the_form_of_a_dependency() {
    let manifest = "[package]\nname = \"p\"\n[dependencies]\na.workspace = true\nb = \"1\"\n# c = \"1\"\n\
                    d = { version = \"1\", package = \"e\" }\n[dev-dependencies.f]\nversion = \"1\"\n\
                    [target.'cfg(unix)'.build-dependencies]\ng = \"1\"\n[features]\nh = []\n";
    assert_eq!(dependencies(manifest).into_iter().collect::<Vec<_>>(), ["a", "b", "e", "f", "g"]);
}

#[test]
fn a_crate_is_named_by_a_path_or_an_import() {
    for line in ["use abc;", "extern crate abc;", "use {abc::ast}", "abc::Solver::new()", "<abc::Config>::new()"] {
        assert!(names_crate(line, "abc"), "{line}");
    }
    for line in ["let abc = 1;", "xabc::f()", "abc_sys::f()", "crate_abc::f()", "\"abc\""] {
        assert!(!names_crate(line, "abc"), "{line}");
    }
}

#[test]
fn a_module_is_declared_with_any_visibility() {
    let text = "mod a;\n  pub mod b;\npub(crate) mod c; // why\n// mod d;\nmod e {\n#[cfg(test)]\nmod f;\n";
    assert_eq!(declared_modules(text), ["a", "b", "c", "f"]);
    assert_eq!(module_files(Path::new("model/src/lib.rs"), "a")[0], Path::new("model/src/a.rs"));
    assert_eq!(module_files(Path::new("tests/e2e/src/lib.rs"), "a")[0], Path::new("tests/e2e/src/a.rs"));
    assert_eq!(module_files(Path::new("x/src/a/mod.rs"), "b")[0], Path::new("x/src/a/b.rs"));
    assert_eq!(module_files(Path::new("x/src/a.rs"), "b")[1], Path::new("x/src/a/b/mod.rs"));
}

/// The names of the packages that a manifest depends on, for building, running or testing. Reads lines, not TOML: one
/// dependency a line or a table.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            let name = table.rsplit_once("dependencies.").map(|(_, name)| name);
            names.extend(name.map(str::to_owned));
            inside = table.ends_with("dependencies");
        } else if inside && !line.starts_with('#') {
            let key = line.split(['.', '=', ' ']).next().unwrap_or_default();
            let renamed = line.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
            names.insert(renamed.unwrap_or(key).to_owned());
        }
    }
    names.remove("");
    names
}

/// Whether a line of code names a crate: at the head of a path, or right after `use` or `extern crate`.
fn names_crate(line: &str, name: &str) -> bool {
    around(line, name).any(|(before, after)| {
        let imported = before.ends_with("use ") || before.ends_with("extern crate ");
        !before.ends_with(is_word) && !after.starts_with(is_word) && (imported || after.starts_with("::"))
    })
}

/// The modules that a file declares and whose text is elsewhere. Declarations inside inline modules, and `#[path]`, are not
/// understood: their files count as forgotten.
pub fn declared_modules(text: &str) -> Vec<&str> {
    let lines = numbered_code(text).map(|(_, line)| line.trim());
    let outside = lines.filter_map(|line| line.strip_suffix(';')?.split_once("mod "));
    let plain = outside.filter(|(visibility, _)| visibility.is_empty() || visibility.starts_with("pub"));
    plain.map(|(_, name)| name).filter(|name| name.chars().all(is_word)).collect()
}

/// Where the text of a module that `path` declares may be.
pub fn module_files(path: &Path, name: &str) -> [PathBuf; 2] {
    let folder = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let folder = if is_target(path) || stem == "mod" { folder.to_path_buf() } else { folder.join(stem) };
    [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]
}

/// Whether cargo compiles a file of its own accord.
pub fn is_target(path: &Path) -> bool {
    let inside = LAYERS.iter().filter_map(|layer| path.strip_prefix(layer.folder).ok());
    // a crate may be inside another one's folder: the innermost is the one that compiles it
    let Some(inside) = inside.min_by_key(|rest| rest.components().count()) else { return false };
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}
