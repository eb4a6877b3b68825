//! The recorded cluster that `--state` or a suite names: manifests become a snapshot, whatever their order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suture_model::adapter::Adapters;
use suture_model::ingest::{self, Document, IngestError};
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::value::Val;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::manifest::{Owned, Ownership};
use crate::names::{NameError, Names};

/// A cluster as it was recorded.
#[derive(Clone, Debug)]
pub struct RecordedCluster {
    /// Its objects.
    pub snapshot: Snapshot,
    /// The newest timestamp in it.
    pub newest: Option<Clock>,
    /// Who owns which fields, of the objects asked for.
    pub ownership: Ownership,
    /// Where objects were read.
    places: BTreeMap<Key, Place>,
}

/// Where a document was read: its source's name, and its line where that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1; 0 when it is not known.
    pub line: usize,
}

/// `file:line`.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 { f.write_str(&self.file) } else { write!(f, "{}:{}", self.file, self.line) }
    }
}

impl Place {
    /// A failure at this place.
    pub fn failure(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Invalid(format!("{self}: {error}"))
    }
}

/// Reads the state that flags name.
///
/// # Errors
/// When a file cannot be read, or a document is broken: it never reads as an empty cluster.
pub fn load(
    paths: &[PathBuf],
    unknown: &[String],
    wanted: &BTreeSet<Key>,
    adapters: Arc<dyn Adapters>,
) -> Result<RecordedCluster, Failure> {
    if paths.iter().any(|path| path == Path::new("cluster") && !path.exists()) {
        return Err(Failure::invalid("`--state cluster` is not supported yet: this version reads files only"));
    }
    let mut recorded = RecordedCluster::new(adapters);
    for source in input::read(paths)? {
        recorded.read(&source, wanted)?;
    }
    let names = Names::of(&recorded.snapshot);
    for name in unknown {
        recorded.snapshot.mark_unknown(&unread(&names, name)?);
    }
    recorded.snapshot.complete();
    Ok(recorded)
}

impl RecordedCluster {
    /// Nothing yet.
    pub fn new(adapters: Arc<dyn Adapters>) -> Self {
        let (newest, ownership, places) = (None, Ownership::new(), BTreeMap::new());
        Self { snapshot: Snapshot::new(adapters), newest, ownership, places }
    }

    /// Adds the documents of a text; of the objects that are `wanted`, who owns their fields is kept.
    ///
    /// # Errors
    /// When a document is broken.
    pub fn read(&mut self, source: &Source, wanted: &BTreeSet<Key>) -> Result<(), Failure> {
        let Source { name, text } = source;
        let file: Arc<str> = name.as_str().into();
        for Document { val, line } in ingest::parse_documents(text, name).map_err(ingest_failure)? {
            self.add(&val, &Place { file: file.clone(), line }, wanted)?;
        }
        Ok(())
    }

    /// Adds a document: a manifest, a List of them, or the header of a dump.
    ///
    /// # Errors
    /// When it is no object, or contradicts one that is there.
    pub fn add(&mut self, document: &Val, place: &Place, wanted: &BTreeSet<Key>) -> Result<(), Failure> {
        if is_header(document) {
            let header = serde_json::to_string(document).map_err(|error| place.failure(error))?;
            let marked = ingest::ingest(&mut self.snapshot, &header, &place.file);
            return marked.map(|_| ()).map_err(|error| place.failure(error.message));
        }
        for manifest in ingest::manifests(document) {
            let object = Object::from_val(&ingest::project(&manifest)).map_err(|error| place.failure(error))?;
            self.newest = self.newest.max(Clock::newest_in(&manifest));
            if wanted.contains(&object.key)
                && let Some(owned) = Owned::of(&manifest)
            {
                self.ownership.insert(object.key.clone(), owned);
            }
            self.insert(object, place)?;
        }
        Ok(())
    }

    /// Adds a document, or puts it in place of the object that has its name, and says which objects it was.
    ///
    /// # Errors
    /// When it is no object.
    pub fn put(&mut self, document: &Val, place: &Place) -> Result<Vec<Key>, Failure> {
        let mut keys = Vec::new();
        for object in ingest::objects(document).map_err(|error| place.failure(error))? {
            keys.push(object.key.clone());
            self.snapshot.insert(object);
        }
        self.newest = self.newest.max(Clock::newest_in(document));
        Ok(keys)
    }

    /// Adds an object. Dumps that overlap name it twice; the newer one counts, whatever the order of the files.
    fn insert(&mut self, object: Object, place: &Place) -> Result<(), Failure> {
        if let Some(there) = self.snapshot.get(&object.key) {
            let version = |object: &Object| object.resource_version.parse::<u64>().ok();
            match version(there).cmp(&version(&object)) {
                Ordering::Less => {}
                Ordering::Greater => return Ok(()),
                Ordering::Equal if **there == object => return Ok(()),
                Ordering::Equal => {
                    let other = self.places.get(&object.key).cloned().unwrap_or_default();
                    let text = format!("`{}` is there twice, with other contents at {other}", object.key);
                    return Err(place.failure(text));
                }
            }
        }
        self.places.insert(object.key.clone(), place.clone());
        self.snapshot.insert(object);
        Ok(())
    }
}

/// The kind that was not read, by any of its names. One that nothing is known of is taken as it is written, if it is
/// written like a kind: that nothing of it was read is what the flag says.
fn unread(names: &Names, name: &str) -> Result<String, Failure> {
    match names.kind(name) {
        Ok(kind) => Ok(kind.kind.to_string()),
        Err(NameError::Unknown { near: None, .. }) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            Ok(name.to_owned())
        }
        Err(error) => Err(Failure::invalid(format!("--unknown: {error}"))),
    }
}

/// A document that is broken, with its place and what to do about it.
pub fn ingest_failure(error: IngestError) -> Failure {
    let help = error.help.as_ref().map_or_else(String::new, |help| format!("\n  help: {help}"));
    Failure::Invalid(format!("{error}{help}"))
}

/// Whether a document may be the header of a dump, which says what was not read.
fn is_header(document: &Val) -> bool {
    document.str_at(&["kind"]).is_some_and(|kind| &**kind == "SnapshotHeader")
}
