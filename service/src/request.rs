//! The change that the flags of `suture check` describe: an AdmissionReview, manifests, or what kubectl's commands send.
//!
//! What the API server would refuse, or what kubectl would not even send, is an error here: it must not read as "nothing
//! happens, hence allowed". An AdmissionReview was let through by its API server already, and is taken as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use suture_model::apply;
use suture_model::change::{Change, Preconditions, Propagation, Request, User};
use suture_model::ingest::{self, Document};
use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;

use crate::arguments::PropagationPolicy;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::manifest::{self, Ownership};
use crate::names::Names;
use crate::recorded::ingest_failure;

mod drain;
mod existing;
mod fields;
mod flags;

use existing::{existing, in_existing_namespace};
use fields::{valid, with_structure};

/// What is asked, before the state is known.
#[derive(Clone, Debug)]
pub enum RequestedChange {
    /// Nothing.
    Nothing,
    /// The request of an AdmissionReview.
    Review(Box<Request>),
    /// Manifests, each with the file that holds it, and how they are written.
    Manifests(Vec<(Document, String)>, Write),
    /// `KIND/NS/NAME` each.
    Delete(Vec<String>, Option<PropagationPolicy>),
    /// `KIND/NS/NAME=N` each.
    Scale(Vec<String>),
    /// `NS/POD` each.
    Evict(Vec<String>),
    /// The nodes to drain, and whether pods go that nothing makes anew.
    Drain(Vec<String>, bool),
    /// The nodes to cordon.
    Cordon(Vec<String>),
    /// `KIND/NS/NAME=JSON` each.
    Patch(Vec<String>),
    /// `KIND/NS/NAME=key=value` or `KIND/NS/NAME=key-` each.
    Label(Vec<String>),
}

/// How a manifest is written over the object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Applied by this field manager: what it leaves out stays, unless only this manager owns it.
    Apply {
        /// The name of the manager.
        manager: String,
    },
    /// Put in its place.
    Replace,
}

/// What a change is made against.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// The recorded cluster.
    pub snapshot: &'a Snapshot,
    /// Who asks.
    pub user: &'a User,
    /// Who owns the fields of what is applied.
    pub ownership: &'a Ownership,
    /// Where objects are that name no namespace.
    pub namespace: Option<&'a str>,
}

/// The request of the one AdmissionReview that a file holds.
///
/// # Errors
/// When the file cannot be read, or does not hold exactly one.
pub fn review_of(path: &Path) -> Result<Request, Failure> {
    let Source { name, text } = input::read_one(path)?;
    let mut documents = ingest::parse_documents(&text, &name).map_err(ingest_failure)?;
    match (documents.pop(), documents.len()) {
        (Some(Document { val, line }), 0) => Request::from_review(&val).map_err(|error| at(&name, line, error)),
        (found, others) => {
            let count = others + usize::from(found.is_some());
            Err(Failure::invalid(format!("{name}: expected one AdmissionReview, found {count} documents")))
        }
    }
}

impl RequestedChange {
    /// The manifests of files and folders; Lists are taken apart.
    ///
    /// # Errors
    /// When one cannot be read or parsed.
    pub fn manifests(sources: &[Source], write: Write) -> Result<Self, Failure> {
        let mut manifests = Vec::new();
        for Source { name, text } in sources {
            let text = input::without_notes(text);
            for Document { val, line } in ingest::parse_documents(&text, name).map_err(ingest_failure)? {
                let parts = ingest::manifests(&val).into_iter();
                manifests.extend(parts.map(|val| (Document { val, line }, name.clone())));
            }
        }
        if manifests.is_empty() {
            return Err(Failure::invalid("nothing to apply: no manifest in the files given"));
        }
        Ok(Self::Manifests(manifests, write))
    }

    /// The objects of which it matters who owns their fields.
    pub fn applied_keys(&self, namespace: Option<&str>) -> BTreeSet<Key> {
        let Self::Manifests(manifests, Write::Apply { .. }) = self else { return BTreeSet::new() };
        let keys = manifests.iter().filter_map(|(document, _)| {
            let named = document.val.at_some(&["metadata", "namespace"]).is_some();
            let key = Object::from_val(&document.val).ok()?.key;
            let is_elsewhere = !named && key.kind.builtin_namespaced() != Some(false);
            // a custom resource may be in no namespace
            let placed = Key { ns: namespace.unwrap_or("default").into(), ..key.clone() };
            Some([Some(key), is_elsewhere.then_some(placed)])
        });
        keys.flatten().flatten().collect()
    }

    /// The change against a state.
    ///
    /// # Errors
    /// When a name is unknown, an object or a namespace does not exist, or the API server would refuse a request.
    pub fn change(&self, against: &Against<'_>) -> Result<Change, Failure> {
        let Against { snapshot, user, namespace, .. } = *against;
        let state = State::new(snapshot);
        let names = Names::of(snapshot).within(namespace);
        if let Some(namespace) = namespace {
            existing::namespace(&state, namespace).map_err(|why| Failure::invalid(format!("--namespace: {why}")))?;
        }
        match self {
            Self::Nothing => Ok(Change::default()),
            Self::Review(request) => Ok(Change::from((**request).clone().resolve(&state))),
            Self::Manifests(manifests, write) => write_all(manifests, write, against, &names),
            Self::Delete(texts, policy) => one_by_one(texts, state, |state, text| {
                let key = existing(names.key(text).map_err(Failure::invalid)?, state)?;
                let policy = policy.map(propagation);
                Ok(vec![Request::delete(user.clone(), state, key, policy, Preconditions::default())])
            }),
            Self::Scale(texts) => {
                one_by_one(texts, state, |state, text| Ok(vec![flags::scale(text, state, &names, user)?]))
            }
            Self::Evict(texts) => {
                one_by_one(texts, state, |state, text| Ok(vec![flags::evict(text, state, namespace, user)?]))
            }
            Self::Cordon(texts) => one_by_one(texts, state, |state, text| Ok(vec![drain::cordon(text, state, user)?])),
            Self::Drain(texts, force) => {
                one_by_one(texts, state, |state, text| drain::drain(text, *force, state, user))
            }
            Self::Patch(texts) => {
                one_by_one(texts, state, |state, text| Ok(vec![flags::patch(text, state, &names, user)?]))
            }
            Self::Label(texts) => {
                one_by_one(texts, state, |state, text| Ok(vec![flags::label(text, state, &names, user)?]))
            }
        }
    }
}

/// The requests of each text, against the state that those before it leave.
fn one_by_one(
    texts: &[String],
    mut state: State<'_>,
    make: impl Fn(&State<'_>, &str) -> Result<Vec<Request>, Failure>,
) -> Result<Change, Failure> {
    let mut requests = Vec::new();
    for text in texts {
        for request in make(&state, text)? {
            apply::apply(&mut state, &request);
            requests.push(request);
        }
    }
    Ok(Change { requests })
}

/// Each manifest against the state that those before it leave, as a client sends them one after the other.
fn write_all(
    manifests: &[(Document, String)],
    write: &Write,
    against: &Against<'_>,
    names: &Names,
) -> Result<Change, Failure> {
    let mut state = State::new(against.snapshot);
    let mut requests = Vec::new();
    let mut written: BTreeMap<Key, (String, usize)> = BTreeMap::new();
    for (Document { val, line }, file) in manifests {
        let val = &placed(val, names, against.namespace).map_err(|why| at(file, *line, why))?;
        let user = || against.user.clone();
        let create = Request::create(user(), &state, val).map_err(|error| at(file, *line, error))?;
        if let Some((other, there)) = written.insert(create.target.clone(), (file.clone(), *line)) {
            return Err(at(file, *line, format!("`{}` is applied twice, also at {other}:{there}", create.target)));
        }
        let version = val.str_at(&["apiVersion"]).map_or("", |version| version.rsplit('/').next().unwrap_or(version));
        valid(&create.target.kind, version, val).map_err(|why| at(file, *line, why))?;
        let request = match state.get(&create.target) {
            None => {
                in_existing_namespace(&create.target, &state).map_err(|why| at(file, *line, why))?;
                create
            }
            Some(live) => {
                let manifest = create.object.as_ref().unwrap_or(val);
                let whole = written_over(live, manifest, write, against.ownership, &state);
                Request::update(user(), &state, &whole, "").map_err(|error| at(file, *line, error))?
            }
        };
        apply::apply(&mut state, &request);
        requests.push(request);
    }
    Ok(Change { requests })
}

fn written_over(live: &Object, manifest: &Val, write: &Write, ownership: &Ownership, state: &State<'_>) -> Val {
    let Write::Apply { manager } = write else { return manifest::replaced(&live.to_val(), manifest) };
    with_structure(live, state, |structure| {
        manifest::applied(&live.to_val(), manifest, ownership.get(&live.key), manager, &structure)
    })
}

/// A manifest with its namespace, as kubectl puts it in; one that it contradicts is refused.
fn placed(manifest: &Val, names: &Names, namespace: Option<&str>) -> Result<Val, String> {
    let Some(namespace) = namespace else { return Ok(manifest.clone()) };
    let path = ["metadata", "namespace"];
    let kind = manifest.str_at(&["kind"]).map_or("", |kind| kind);
    let group = manifest.str_at(&["apiVersion"]).and_then(|version| version.split_once('/')).map_or("", |(g, _)| g);
    match manifest.str_at(&path) {
        Some(own) if **own != *namespace && names.is_namespaced(&Kind::new(group, kind)) != Some(false) => {
            Err(format!("the manifest is in namespace `{own}`, and --namespace says `{namespace}`"))
        }
        None if names.is_namespaced(&Kind::new(group, kind)) == Some(true) => {
            Ok(manifest.with_at(&path, Val::str(namespace)))
        }
        _ => Ok(manifest.clone()),
    }
}

fn propagation(policy: PropagationPolicy) -> Propagation {
    match policy {
        PropagationPolicy::Background => Propagation::Background,
        PropagationPolicy::Foreground => Propagation::Foreground,
        PropagationPolicy::Orphan => Propagation::Orphan,
    }
}

fn at(file: &str, line: usize, error: impl std::fmt::Display) -> Failure {
    Failure::invalid(format!("{file}:{line}: {error}"))
}
