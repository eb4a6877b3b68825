//! The recorded cluster that `--state` or a suite names: manifests become a snapshot, whatever their order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suture_model::adapter::Adapters;
use suture_model::ingest::{self, Document, IngestError};
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::value::{Str, Val};

use crate::clock::Clock;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::manifest::{Owned, Ownership};
use crate::names::{NameError, Names};
use crate::policy::Policy;

/// A cluster as it was recorded.
#[derive(Clone, Debug)]
pub struct RecordedCluster {
    /// Its objects.
    pub snapshot: Snapshot,
    /// The newest timestamp in it.
    pub newest: Option<Clock>,
    /// Who owns which fields, of the objects asked for.
    pub ownership: Ownership,
    /// Whether a live cluster was read: what that showed none of is not there.
    pub is_live: bool,
    /// The kinds that the headers of dumps say were read: of what is not in the dump, none was there.
    pub read: BTreeSet<Str>,
    /// Where objects were read.
    places: BTreeMap<Key, Place>,
}

/// What a live cluster showed.
#[derive(Clone, Debug, Default)]
pub struct LiveCluster {
    /// Its objects, whole: what must not be kept of them goes when they are added to a snapshot.
    pub objects: Vec<Val>,
    /// The kinds that were read, those that are not served among them.
    pub read: BTreeSet<Str>,
    /// What could not be read, and why: kinds, or `*.GROUP` for an API that does not answer.
    pub unread: BTreeMap<String, String>,
}

impl LiveCluster {
    /// The kinds that could not be read.
    pub fn unknown(&self) -> impl Iterator<Item = &String> {
        self.unread.keys().filter(|name| !name.starts_with('*'))
    }

    /// The header of a dump.
    fn header(&self) -> Val {
        let unread = self.unread.iter().map(|(name, why)| (name.as_str().into(), Val::str(why.as_str())));
        Val::object([
            ("apiVersion", Val::str("suture.dev/v1alpha1")),
            ("kind", Val::str("SnapshotHeader")),
            ("read", Val::list(self.read.iter().cloned().map(Val::Str).collect())),
            ("unknown", Val::list(self.unknown().map(|kind| Val::str(kind.as_str())).collect())),
            ("unread", Val::map(unread.collect())),
        ])
    }

    /// The cluster as `--state` reads it: a header, then a document for each object, by kind, namespace and name. Values of
    /// Secrets and ConfigMaps are left out.
    ///
    /// # Errors
    /// When an object is none.
    pub fn dump(&self) -> Result<String, Failure> {
        let mut documents = BTreeMap::new();
        for object in &self.objects {
            let key = Object::from_val(object).map_err(Failure::invalid)?.key;
            let kept = ingest::project(object);
            // who owns the fields of a pod is asked of nobody, and is half of it
            let kept = if key.kind.is("Pod") { kept.without_at(&["metadata", "managedFields"]) } else { kept };
            documents.insert(key, yaml(&kept)?);
        }
        let mut text = yaml(&self.header())?;
        for document in documents.values() {
            text.push_str("---\n");
            text.push_str(document);
        }
        Ok(text)
    }
}

/// A document as YAML, or as JSON, which is YAML too, where the text would be read as something else: other programs read
/// more words as Booleans.
fn yaml(document: &Val) -> Result<String, Failure> {
    let text = serde_saphyr::to_string(document).map_err(Failure::invalid)?;
    let read = ingest::parse_documents(&text, "").ok();
    if read.is_some_and(|read| matches!(read.as_slice(), [only] if only.val == *document)) {
        return Ok(text);
    }
    serde_json::to_string(document).map(|json| json + "\n").map_err(Failure::invalid)
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

/// Reads the state that flags name. The policy takes in what its definitions say.
///
/// # Errors
/// When a file cannot be read, or a document is broken: it never reads as an empty cluster.
pub fn load(
    paths: &[PathBuf],
    unknown: &[String],
    wanted: &BTreeSet<Key>,
    policy: &mut Policy,
    live: impl Fn(&Policy) -> Result<LiveCluster, Failure>,
) -> Result<RecordedCluster, Failure> {
    let mut recorded = RecordedCluster::new(policy.adapters.clone());
    for path in paths {
        if is_live(path) {
            recorded.add_live(&live(policy)?, wanted)?;
            continue;
        }
        for source in input::read(std::slice::from_ref(path))? {
            recorded.read(&source, wanted)?;
        }
    }
    if recorded.snapshot.is_empty() {
        return Err(Failure::invalid("the state holds no object: nothing can be said of an empty cluster"));
    }
    let names = Names::of(&recorded.snapshot);
    for name in unknown {
        recorded.snapshot.mark_unknown(&unread(&names, name)?);
    }
    policy.read_definitions(&mut recorded.snapshot);
    recorded.snapshot.complete();
    Ok(recorded)
}

/// Whether `--state` names the cluster of the current kubeconfig context; a file of that name comes first.
fn is_live(path: &Path) -> bool {
    path == Path::new("cluster") && !path.exists()
}

impl RecordedCluster {
    /// Adds what a live cluster showed.
    fn add_live(&mut self, live: &LiveCluster, wanted: &BTreeSet<Key>) -> Result<(), Failure> {
        let place = Place { file: "cluster".into(), line: 0 };
        for object in &live.objects {
            self.add(object, &place, wanted)?;
        }
        self.is_live = true;
        live.unknown().for_each(|kind| self.snapshot.mark_unknown(kind));
        Ok(())
    }

    /// Nothing yet.
    pub fn new(adapters: Arc<dyn Adapters>) -> Self {
        let (newest, ownership, places) = (None, Ownership::new(), BTreeMap::new());
        let (is_live, read) = (false, BTreeSet::new());
        Self { snapshot: Snapshot::new(adapters), newest, ownership, is_live, read, places }
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
            self.read.extend(document.items_at(&["read"]).iter().filter_map(Val::as_str).cloned());
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
