//! Reports of a store that is in use: the process that has it answers on a socket in its folder, to whoever may open the
//! folder's files. Who asks writes an id and a line end, and gets the report as JSON, or nothing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::id::ReportId;
use super::store::{ReportStore, StoreError};
use crate::report::Report;

const FILE: &str = "reports.sock";
/// For the owner of the folder alone.
const MODE: u32 = 0o600;
/// A longer question is none.
const ASKED_MAX: u64 = 64;
/// A report is smaller.
const ANSWER_MAX: u64 = 64 << 20;
/// How long either end waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers from now on, on a thread of its own.
///
/// # Errors
/// When the socket cannot be had.
pub fn serve(folder: &Path, store: &ReportStore) -> Result<(), StoreError> {
    let path = folder.join(FILE);
    let failed = |error| StoreError::Folder(path.clone(), error);
    // left by a process that was killed; who has the store's file has the socket
    _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(MODE)).map_err(failed)?;
    let store = store.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // whoever does not listen gets no answer
            _ = answer(&stream, &store);
        }
    });
    Ok(())
}

fn answer(mut stream: &UnixStream, store: &ReportStore) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut asked = String::new();
    BufReader::new(stream.take(ASKED_MAX)).read_line(&mut asked)?;
    let found = asked.trim().parse::<ReportId>().ok().and_then(|id| store.get(id).ok().flatten());
    match found {
        Some(report) => stream.write_all(&serde_json::to_vec(&report)?),
        None => Ok(()),
    }
}

/// Asks the process that has the store of a folder.
///
/// # Errors
/// When nobody answers, or with something else than a report.
pub fn ask(folder: &Path, id: ReportId) -> Result<Option<Report>, StoreError> {
    let path = folder.join(FILE);
    let failed = |error| StoreError::Folder(path.clone(), error);
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    writeln!(stream, "{id}").map_err(failed)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).map_err(failed)?;
    if answer.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&answer)?)) }
}
