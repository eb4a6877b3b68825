//! Finding suites, and the documents that they name or hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use suture_specs::library::LIBRARY;
use suture_specs::spec::{FileOrInline, Origin, SpecError, Suite, parse_spec};
use suture_specs::suggest::nearest;

use crate::failure::Failure;
use crate::grants;
use crate::input;
use crate::policy::{self, Documents, diagnosed};
use crate::recorded::{Place, RecordedCluster};

/// Finds the suites of files and folders. A file that is named must hold one; in a folder others are passed over.
///
/// # Errors
/// When a file cannot be read, a suite is malformed, or there is none.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Suite>, Failure> {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        let before = found.len() + errors.len();
        for file in input::files(path)? {
            let source = input::read_one(&file)?;
            if file == *path || policy::names_kind(&source.text, &["Suite"]) {
                match Documents::read(&[source]) {
                    Ok(documents) => found.extend(documents.suites),
                    Err(more) => errors.extend(more),
                }
            }
        }
        if found.len() + errors.len() == before {
            return Err(Failure::invalid(format!("no suite in `{}`", path.display())));
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(diagnosed(errors)) }
}

/// The folder that a suite's references start from. Never the empty path: a reference `-` is a file, not standard input.
pub fn folder(suite: &Suite) -> PathBuf {
    let folder = Path::new(&*suite.origin.file).parent().unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() }
}

/// The files that a suite is made of, and folders of them: its own, and those that it names.
pub fn files(suite: &Suite) -> Vec<PathBuf> {
    let spec = &suite.spec;
    let references = [&spec.invariants, &spec.adapters, &spec.policies, &spec.state].into_iter().flatten();
    let named = references.filter_map(|reference| match reference {
        FileOrInline::File(file) => Some(folder(suite).join(file)),
        FileOrInline::Inline(_) => None,
    });
    [PathBuf::from(&*suite.origin.file)].into_iter().chain(named).collect()
}

/// The documents that a suite names or holds.
///
/// # Errors
/// When one cannot be read or is wrong.
pub fn documents(suite: &Suite) -> Result<Documents, Failure> {
    let (mut documents, mut errors) = (Documents::default(), Vec::new());
    let spec = &suite.spec;
    let fields = [("invariants", &spec.invariants), ("adapters", &spec.adapters), ("policies", &spec.policies)];
    for (field, references) in fields {
        for (index, reference) in references.iter().enumerate() {
            let read = match reference {
                FileOrInline::File(file) => Documents::read(&[input::read_one(&folder(suite).join(file))?]),
                FileOrInline::Inline(val) => {
                    let at = place(suite, &format!("spec.{field}[{index}]"));
                    let origin = Origin { line: Some(at.line), ..suite.origin.clone() };
                    parse_spec(val, origin).map(Documents::from)
                }
            };
            match read {
                Ok(read) => documents.extend(read),
                Err(more) => errors.extend(more),
            }
        }
    }
    errors.extend(documents.add_profile(spec.profile).err().into_iter().flatten());
    if errors.is_empty() { Ok(documents) } else { Err(diagnosed(errors)) }
}

/// The templates that invariants name and that neither the library nor the documents have.
pub fn missing_templates(documents: &Documents) -> Vec<String> {
    let known = |name: &str| {
        LIBRARY.iter().any(|(shipped, _)| *shipped == name)
            || grants::TEMPLATES.contains(&name)
            || documents.templates.iter().any(|t| *t.name == *name)
    };
    let mut named: Vec<String> = documents.invariants.iter().filter_map(|i| i.spec.template.clone()).collect();
    named.retain(|name| !known(name));
    named.sort();
    named.dedup();
    named
}

/// What a suite asks for and this version does not have.
pub fn unsupported(documents: &Documents) -> Option<String> {
    let missing = missing_templates(documents);
    let name = missing.first()?;
    let near = nearest(name, LIBRARY.iter().map(|(shipped, _)| *shipped));
    let help = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Some(format!("template `{name}` is not shipped yet{help}"))
}

/// All that is wrong with the documents that a suite names or holds, and with its state.
///
/// # Errors
/// When a file cannot be read, or its text is wrong.
pub fn check(suite: &Suite) -> Result<Vec<SpecError>, Failure> {
    let checked = documents(suite).and_then(|documents| {
        if let Some(reason) = unsupported(&documents) {
            return Err(diagnosed(vec![SpecError::new(&suite.origin, "spec.invariants", reason)]));
        }
        let policy = documents.compile().map_err(diagnosed)?;
        state(RecordedCluster::new(policy.adapters), suite)
    });
    match checked {
        Ok(_) => Ok(Vec::new()),
        Err(Failure::Diagnosed(errors)) => Ok(errors),
        Err(other) => Err(other),
    }
}

/// Reads the state of a suite.
///
/// # Errors
/// When a file cannot be read, or a document is broken.
pub fn state(mut recorded: RecordedCluster, suite: &Suite) -> Result<RecordedCluster, Failure> {
    for kind in &suite.spec.unknown {
        recorded.snapshot.mark_unknown(kind);
    }
    for (index, reference) in suite.spec.state.iter().enumerate() {
        match reference {
            FileOrInline::File(file) => {
                for source in input::read(&[folder(suite).join(file)])? {
                    recorded.read(&source, &BTreeSet::new())?;
                }
            }
            FileOrInline::Inline(val) => {
                recorded.add(val, &place(suite, &format!("spec.state[{index}]")), &BTreeSet::new())?;
            }
        }
    }
    Ok(recorded)
}

/// Where a part of a suite stands.
pub fn place(suite: &Suite, path: &str) -> Place {
    let line = SpecError::new(&suite.origin, path, "").line.or(suite.origin.line);
    Place { file: suite.origin.file.clone(), line: line.unwrap_or(0) }
}
