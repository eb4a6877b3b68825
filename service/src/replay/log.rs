//! The entries of logs, in the order of time: lines of files, and AdmissionReviews of other files.
//!
//! Each API server has a log of its own, and a log is cut into files (`--audit-log-maxsize`). Of several files that line
//! comes next whose request ended first. Within a file the order of the lines stays.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use suture_model::value::Val;

use super::digest::Digest;
use crate::failure::Failure;
use crate::input::STDIN;

/// What a compressed file begins with (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What tells when a request ended, in an event of an audit log.
const ENDED: &[u8] = b"\"stageTimestamp\":\"";
/// How many bytes are read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// The entries of some files.
pub struct Log {
    files: Vec<Lines>,
    reviews: VecDeque<(String, Val)>,
    digest: Digest,
    bytes: u64,
}

/// An entry, and where it is.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// `FILE:LINE`.
    pub place: String,
    /// What stands there.
    pub text: Text,
}

/// What an entry is.
#[derive(Clone, Debug)]
pub enum Text {
    /// A line of a log.
    Line(Vec<u8>),
    /// A document of a file.
    Value(Val),
}

/// The lines of one file.
struct Lines {
    name: String,
    reader: Box<dyn BufRead>,
    /// The next line; none at the end.
    next: Option<Vec<u8>>,
    number: u64,
    /// When the request of the next line ended; a line that does not say so comes with the one before it.
    ended: Vec<u8>,
}

impl Log {
    /// The entries of these files, then these reviews.
    ///
    /// # Errors
    /// When a file cannot be read, or is compressed.
    pub fn open(paths: &[PathBuf], reviews: Vec<(String, Val)>) -> Result<Self, Failure> {
        let files = paths.iter().map(|path| Lines::open(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { files, reviews: reviews.into(), digest: Digest::default(), bytes: 0 })
    }

    /// The next entry; none at the end.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>, Failure> {
        let several = self.files.len() > 1;
        let open = self.files.iter_mut().filter(|file| file.next.is_some());
        let first = if several { open.min_by(|a, b| a.ended.cmp(&b.ended)) } else { { open }.next() };
        if let Some(file) = first {
            let (place, line) = (format!("{}:{}", file.name, file.number), file.take()?);
            self.bytes += line.len() as u64 + 1;
            self.digest.add(&line);
            return Ok(Some(LogEntry { place, text: Text::Line(line) }));
        }
        let Some((place, review)) = self.reviews.pop_front() else { return Ok(None) };
        self.digest.add(&serde_json::to_vec(&review).map_err(Failure::invalid)?);
        Ok(Some(LogEntry { place, text: Text::Value(review) }))
    }

    /// A digest of what was read.
    pub fn digest(&self) -> String {
        self.digest.to_string()
    }

    /// How many bytes were read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// How many bytes files have together; none where one of them is standard input.
pub fn size(paths: &[PathBuf]) -> Option<u64> {
    paths.iter().map(|path| path.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len())).sum()
}

impl Lines {
    fn open(path: &Path) -> Result<Self, Failure> {
        let (name, reader): (String, Box<dyn BufRead>) = if path.as_os_str() == STDIN {
            ("<stdin>".to_owned(), Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin())))
        } else {
            let file = File::open(path).map_err(|error| Failure::read(path, error))?;
            (path.display().to_string(), Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
        };
        let mut lines = Self { name, reader, next: Some(Vec::new()), number: 0, ended: Vec::new() };
        lines.take()?;
        if lines.next.as_ref().is_some_and(|line| line.starts_with(&GZIP)) {
            let way = "zcat FILE | suture replay --log - …";
            return Err(Failure::invalid(format!("{} is compressed: `{way}`", lines.name)));
        }
        Ok(lines)
    }

    /// The next line, after which comes another one. Empty lines are passed over.
    fn take(&mut self) -> Result<Vec<u8>, Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.reader.read_until(b'\n', &mut line);
            let bytes = read.map_err(|error| Failure::read(Path::new(&self.name), error))?;
            if bytes == 0 {
                return Ok(self.next.take().unwrap_or_default());
            }
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                break;
            }
        }
        if let Some(time) = ended(&line) {
            self.ended = time.to_vec();
        }
        Ok(self.next.replace(line.trim_ascii().to_vec()).unwrap_or_default())
    }
}

/// When the request of a line ended. API servers write it in UTC with a fixed number of digits (`metav1.MicroTime`), so that
/// texts compare like times.
fn ended(line: &[u8]) -> Option<&[u8]> {
    let at = line.windows(ENDED.len()).rposition(|part| part == ENDED)?;
    let rest = line.get(at + ENDED.len()..)?;
    rest.split(|byte| *byte == b'"').next()
}

#[cfg(test)]
mod tests;
