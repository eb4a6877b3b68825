//! `suture fmt`: YAML files in one style. What they say stays: a file whose documents would read otherwise is left alone.

use std::fs;
use std::path::{Path, PathBuf};

use pretty_yaml::config::{FormatOptions, LanguageOptions, LayoutOptions};
use pretty_yaml::format_text;
use suture_model::ingest::parse_documents;

use crate::arguments::{self, Common};
use crate::failure::{Exit, Failure, plural};
use crate::input::{self, Source};
use crate::output;
use crate::recorded::ingest_failure;

/// Characters of a line, where it can be broken.
const WIDTH: usize = 120;

/// Formats files in their places, and says which changed.
pub(super) fn run(common: Common, arguments: arguments::Fmt) -> Result<Exit, Failure> {
    let arguments::Fmt { paths, check } = arguments;
    let (mut changed, mut failed) = (Vec::new(), Vec::new());
    for path in &paths {
        if path.as_os_str() == input::STDIN {
            output::print(&formatted(&input::read_one(path)?)?)?;
            continue;
        }
        for file in yaml_files(path)? {
            let source = input::read_one(&file)?;
            match formatted(&source) {
                Ok(text) if text == source.text => {}
                Ok(text) => changed.push((file, text)),
                Err(failure) => failed.push(failure.to_string()),
            }
        }
    }
    if !check {
        for (file, text) in &changed {
            fs::write(file, text).map_err(|error| Failure::write(&file.display().to_string(), error))?;
        }
    }
    if !common.quiet {
        let list: String = changed.iter().map(|(file, _)| format!("{}\n", file.display())).collect();
        output::print(&list)?;
    }
    if !failed.is_empty() {
        return Err(Failure::invalid(failed.join("\n")));
    }
    Ok(if check && !changed.is_empty() { Exit::Bad } else { Exit::Good })
}

/// The files that a path stands for, JSON left out: itself whatever its name, or those of a folder.
fn yaml_files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_yaml = |file: &PathBuf| *file == path || file.extension().is_none_or(|extension| extension != "json");
    Ok(input::files(path)?.into_iter().filter(is_yaml).collect())
}

/// The text in the style of this project.
fn formatted(source: &Source) -> Result<String, Failure> {
    let Source { name, text } = source;
    let failed = |why: String| Failure::invalid(format!("{name}: {why}; it was left as it is"));
    // told with its place by the reader that all commands use
    let before = parse_documents(text, name).map_err(ingest_failure)?;
    let options = FormatOptions {
        layout: LayoutOptions { print_width: WIDTH, ..LayoutOptions::default() },
        language: LanguageOptions {
            brace_spacing: false,
            indent_block_sequence_in_map: false,
            ..LanguageOptions::default()
        },
    };
    let mut after = format_text(text, &options).map_err(|error| failed(error.to_string()))?;
    if !after.ends_with('\n') {
        after.push('\n');
    }
    let reads_alike = parse_documents(&after, name)
        .is_ok_and(|read| read.iter().map(|document| &document.val).eq(before.iter().map(|document| &document.val)));
    if !reads_alike {
        return Err(failed(format!("{} would read otherwise", plural(before.len(), "its document", "its documents"))));
    }
    Ok(after)
}
