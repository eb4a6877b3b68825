//! `suture explain`: what the code of an error means, and a report for people, as text or as a page.

#[cfg(feature = "serve")]
use std::io;
use std::path::Path;

use serde_json::Value as Json;
use suture_specs::spec::{CODES, find_code};
use suture_specs::suggest::nearest;

use crate::arguments::{self, Common};
use crate::failure::{Exit, Failure};
use crate::input::{self, Source};
use crate::output::terminal::Paint;
use crate::output::{self, explained};
use crate::report::Report;
#[cfg(feature = "serve")]
use crate::serve::reports::{
    id::ReportId,
    socket,
    store::{ReportStore, StoreError},
};

/// Says what a code means, or which there are, or shows a report.
pub(super) fn run(common: Common, arguments: arguments::Explain) -> Result<Exit, Failure> {
    #[cfg(feature = "serve")]
    if let (Some(id), Some(folder)) = (&arguments.id, &arguments.reports) {
        return show(common, &stored(id, folder)?, &arguments);
    }
    match &arguments.what {
        None if arguments.html.is_some() => Err(Failure::invalid("--html needs a report")),
        None => codes(),
        Some(what) if is_code(what) && arguments.html.is_none() => code(what),
        Some(what) => show(common, &read(Path::new(what))?, &arguments),
    }
}

/// Whether a text can be a code only; a file of such a name is `./E0103`.
fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix(['E', 'e', 'W', 'w']);
    !text.contains(['/', '.'])
        && text != "-"
        && (digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit())) || !Path::new(text).exists())
}

fn codes() -> Result<Exit, Failure> {
    let list: String = CODES.iter().map(|code| format!("{}  {}\n", code.code, code.title)).collect();
    output::print(&list)?;
    Ok(Exit::Good)
}

fn code(code: &str) -> Result<Exit, Failure> {
    let Some(found) = find_code(code) else {
        let near = nearest(code, CODES.iter().map(|code| code.code));
        let near = near.map_or_else(|| ", and no such file".to_owned(), |near| format!("; did you mean `{near}`?"));
        return Err(Failure::invalid(format!("there is no code `{code}`{near}")));
    };
    output::print(&format!("{}: {}\n\n{}\n", found.code, found.title, found.page))?;
    Ok(Exit::Good)
}

/// The report of a file. What it says comes from objects that anybody may have written.
fn read(path: &Path) -> Result<Report, Failure> {
    let Source { name, text } = input::read_one(path)?;
    let no_report = |error: serde_json::Error| {
        Failure::invalid(format!("{name} is no report: {error}; `suture check -o json` prints one"))
    };
    let json = serde_json::from_str(&text).map_err(no_report)?;
    serde_json::from_value(escaped(json)).map_err(no_report)
}

/// A report whose texts do nothing to a terminal.
fn escaped(json: Json) -> Json {
    match json {
        Json::String(text) => Json::String(output::visible(&text)),
        Json::Array(items) => items.into_iter().map(escaped).collect(),
        Json::Object(fields) => {
            fields.into_iter().map(|(name, value)| (output::visible(&name), escaped(value))).collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => json,
    }
}

/// The report of an id, from the store of a folder or from the process that has it.
#[cfg(feature = "serve")]
fn stored(id: &str, folder: &Path) -> Result<Report, Failure> {
    let id: ReportId = id.parse().map_err(Failure::invalid)?;
    let found = match ReportStore::open_existing(folder) {
        Err(StoreError::InUse(_)) => socket::ask(folder, id),
        opened => opened.and_then(|store| store.get(id)),
    };
    let found = found.map_err(|error| Failure::read(folder, io::Error::other(error)))?;
    let missing = "it was dropped for its age or to make room, or its process was killed before it was kept";
    found.ok_or_else(|| Failure::invalid(format!("no report `{id}` is kept in {}: {missing}", folder.display())))
}

/// Prints a report, or writes its page.
fn show(common: Common, report: &Report, arguments: &arguments::Explain) -> Result<Exit, Failure> {
    match &arguments.html {
        Some(path) => write_page(report, path)?,
        None if common.quiet => {}
        None => {
            let text = |report: &Report| explained::text(report, Paint::stdout(common.color));
            output::value(arguments.output, report, text)?;
        }
    }
    Ok(Exit::Good)
}

#[cfg(feature = "page")]
fn write_page(report: &Report, path: &Path) -> Result<(), Failure> {
    let page = crate::html::report::html(report, crate::clock::Clock::now(), None);
    match path.as_os_str() == "-" {
        true => output::print(&page),
        false => std::fs::write(path, page).map_err(|error| Failure::write(&path.display().to_string(), error)),
    }
}

#[cfg(not(feature = "page"))]
fn write_page(_: &Report, path: &Path) -> Result<(), Failure> {
    let needs = format!("{}: built without pages: `make build`", path.display());
    Err(Failure::invalid(needs))
}
