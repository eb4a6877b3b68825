//! The change that the flags of `suture check` describe: an AdmissionReview, manifests to apply, deletions, or scalings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use suture_model::apply;
use suture_model::change::{Change, Preconditions, Propagation, Request, User};
use suture_model::ingest::{self, Document};
use suture_model::object::{Key, Object};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use crate::arguments::PropagationPolicy;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::manifest::{self, LastApplied};
use crate::names::Names;
use crate::recorded::ingest_failure;

/// What is asked, before the state is known.
#[derive(Clone, Debug)]
pub enum RequestedChange {
    /// The request of an AdmissionReview.
    Review(Box<Request>),
    /// Manifests, each with the file that holds it.
    Apply(Vec<(Document, String)>),
    /// `KIND/NS/NAME` each.
    Delete(Vec<String>, Option<PropagationPolicy>),
    /// `KIND/NS/NAME=N` each.
    Scale(Vec<String>),
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
    pub fn apply(sources: &[Source]) -> Result<Self, Failure> {
        let mut manifests = Vec::new();
        for Source { name, text } in sources {
            for Document { val, line } in ingest::parse_documents(text, name).map_err(ingest_failure)? {
                let parts = ingest::manifests(&val).into_iter();
                manifests.extend(parts.map(|val| (Document { val, line }, name.clone())));
            }
        }
        if manifests.is_empty() {
            return Err(Failure::invalid("nothing to apply: no manifest in the files given"));
        }
        Ok(Self::Apply(manifests))
    }

    /// The objects of which the manifest that was applied last is wanted.
    pub fn applied_keys(&self) -> BTreeSet<Key> {
        match self {
            Self::Apply(manifests) => manifests
                .iter()
                .filter_map(|(document, _)| Object::from_val(&document.val).ok())
                .map(|o| o.key)
                .collect(),
            _ => BTreeSet::new(),
        }
    }

    /// The change against a state.
    ///
    /// # Errors
    /// When a name is unknown, or an object does not exist.
    pub fn change(&self, snapshot: &Snapshot, user: &User, last: &LastApplied) -> Result<Change, Failure> {
        let state = State::new(snapshot);
        match self {
            Self::Review(request) => Ok(Change::from((**request).clone().resolve(&state))),
            Self::Apply(manifests) => apply_all(manifests, state, user, last),
            Self::Delete(names, policy) => {
                let known = Names::of(snapshot);
                let propagation = policy.map(propagation);
                let delete = |name: &String| {
                    let key = existing(known.key(name).map_err(Failure::invalid)?, snapshot)?;
                    Ok(Request::delete(user.clone(), &state, key, propagation, Preconditions::default()))
                };
                Ok(Change { requests: names.iter().map(delete).collect::<Result<_, Failure>>()? })
            }
            Self::Scale(names) => {
                let known = Names::of(snapshot);
                let scale = |text: &String| {
                    let (name, replicas) = text.rsplit_once('=').unwrap_or((text, ""));
                    let replicas = replicas.parse::<i32>().ok().filter(|replicas| *replicas >= 0);
                    let Some(replicas) = replicas else {
                        return Err(Failure::invalid(format!("`{text}` is not KIND/NAMESPACE/NAME=REPLICAS")));
                    };
                    let key = existing(known.key(name).map_err(Failure::invalid)?, snapshot)?;
                    Ok(Request::scale(user.clone(), &state, key, i64::from(replicas)))
                };
                Ok(Change { requests: names.iter().map(scale).collect::<Result<_, Failure>>()? })
            }
        }
    }
}

/// Each manifest against the state that those before it leave, as a client sends them one after the other.
fn apply_all(
    manifests: &[(Document, String)],
    mut state: State<'_>,
    user: &User,
    last: &LastApplied,
) -> Result<Change, Failure> {
    let mut requests = Vec::new();
    let mut written: BTreeMap<Key, (String, usize)> = BTreeMap::new();
    for (Document { val, line }, file) in manifests {
        let create = Request::create(user.clone(), &state, val).map_err(|error| at(file, *line, error))?;
        if let Some((other, there)) = written.insert(create.target.clone(), (file.clone(), *line)) {
            return Err(at(file, *line, format!("`{}` is applied twice, also at {other}:{there}", create.target)));
        }
        let request = match state.get(&create.target) {
            None => create,
            Some(live) => {
                let manifest = create.object.as_ref().unwrap_or(val);
                let merged = manifest::applied(&live.to_val(), manifest, last.get(&create.target));
                Request::update(user.clone(), &state, &merged, "").map_err(|error| at(file, *line, error))?
            }
        };
        apply::apply(&mut state, &request);
        requests.push(request);
    }
    Ok(Change { requests })
}

/// A mistyped name must not read as "nothing happens, hence allowed".
fn existing(key: Key, snapshot: &Snapshot) -> Result<Key, Failure> {
    if snapshot.get(&key).is_some() || snapshot.unknown().contains(&key.kind.kind) {
        return Ok(key);
    }
    let others = snapshot.list(&key.kind, (!key.ns.is_empty()).then_some(&*key.ns));
    let near = suture_specs::suggest::nearest(&key.name, others.iter().map(|other| &*other.key.name));
    let help = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(Failure::invalid(format!("`{key}` does not exist in the state{help}")))
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
