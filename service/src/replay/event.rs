//! What a line of a log records: an event of an API server's audit log (`k8s.io/apiserver/pkg/apis/audit/v1/types.go`), or an
//! AdmissionReview. What is read and what is refused is told by the head of the line; bodies are read of writes only.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::de::DeserializeSeed;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use suture_model::change::{Operation, Request, provisional};
use suture_model::ingest::{Passing, manifests};
use suture_model::kinds::Kind;
use suture_model::value::Val;

use super::report::{Gap, Left};
use crate::never_asked::is_housekeeping;
use crate::no_op::WRITING;

/// The code of an answer by which an object was made.
const CREATED: i64 = 201;

/// A write, before the cluster is known that it is made to.
#[derive(Clone, Debug)]
pub struct Write {
    /// The request. Of an audit log, the object before is not in it.
    pub request: Request,
    /// The object as it was stored, where the log says so.
    pub stored: Option<Stored>,
    /// Whether the request was for an object of the cluster, which the log does not show as it was before.
    pub needs_old: bool,
}

/// What the API server answered with.
#[derive(Clone, Debug)]
pub enum Stored {
    /// The object is this now.
    Object(Val),
    /// There is no such object any more; the uid of what was there, where it is told.
    Gone(Option<String>),
}

/// What a line records.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Nothing that is to be judged.
    Left(Left),
    /// A write of which not enough is recorded: why, and in words which.
    Gap(Gap, String),
    /// Writes: one, or one for each object of a deletion of many.
    Writes(Vec<Write>),
}

/// A line, and when it was.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// When the API server took the request, RFC 3339; none where the line does not say.
    pub time: Option<String>,
    /// The id of the event or of the review.
    pub id: String,
    /// What it records.
    pub entry: Entry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'l> {
    #[serde(borrow, default)]
    kind: Cow<'l, str>,
    #[serde(borrow, default)]
    level: Cow<'l, str>,
    #[serde(borrow, default)]
    stage: Cow<'l, str>,
    #[serde(borrow, default, rename = "auditID")]
    audit_id: Cow<'l, str>,
    #[serde(borrow, default)]
    verb: Cow<'l, str>,
    #[serde(borrow, default, rename = "requestURI")]
    request_uri: Cow<'l, str>,
    #[serde(default)]
    user: Option<UserInfo>,
    #[serde(default)]
    impersonated_user: Option<UserInfo>,
    #[serde(default)]
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: Option<ResponseStatus>,
    #[serde(borrow, default)]
    request_received_timestamp: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    request_object: Option<&'l RawValue>,
    #[serde(borrow, default)]
    response_object: Option<&'l RawValue>,
    /// Of an AdmissionReview.
    #[serde(borrow, default)]
    request: Option<&'l RawValue>,
    #[serde(default)]
    response: Option<ReviewResponse>,
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Vec<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: i64,
}

#[derive(Deserialize)]
struct ReviewResponse {
    #[serde(default)]
    allowed: bool,
}

/// Reads a line.
pub fn read(text: &[u8]) -> Recorded {
    let line: Line<'_> = match serde_json::from_slice(text) {
        Ok(line) => line,
        Err(error) => {
            let entry = Entry::Gap(Gap::NotAnEvent, error.to_string());
            return Recorded { time: None, id: String::new(), entry };
        }
    };
    let time = line.request_received_timestamp.as_ref().map(|time| time.to_string());
    match &*line.kind {
        "AdmissionReview" => of_review(&line, text),
        "Event" => Recorded { time, id: line.audit_id.to_string(), entry: of_event(&line) },
        other => {
            let entry = Entry::Gap(Gap::NotAnEvent, format!("its kind is `{other}`"));
            Recorded { time, id: String::new(), entry }
        }
    }
}

/// What a value records that is not of a log: an AdmissionReview of a file.
pub fn of_value(review: &Val) -> Recorded {
    let id = review.str_at(&["request", "uid"]).map_or_else(String::new, |uid| uid.to_string());
    Recorded { time: None, id, entry: reviewed(review) }
}

fn of_review(line: &Line<'_>, text: &[u8]) -> Recorded {
    if line.response.as_ref().is_some_and(|response| !response.allowed) {
        return Recorded { time: None, id: String::new(), entry: Entry::Left(Left::Refused) };
    }
    if line.request.is_none() {
        let entry = Entry::Gap(Gap::NotAnEvent, "an AdmissionReview without a request".to_owned());
        return Recorded { time: None, id: String::new(), entry };
    }
    match serde_json::from_slice::<Val>(text) {
        Ok(review) => of_value(&review),
        Err(error) => {
            let entry = Entry::Gap(Gap::NotAnEvent, error.to_string());
            Recorded { time: None, id: String::new(), entry }
        }
    }
}

fn reviewed(review: &Val) -> Entry {
    match Request::from_review(review) {
        Err(error) => Entry::Gap(Gap::NotAnEvent, error.to_string()),
        Ok(request) if request.operation == Operation::Connect => Entry::Left(Left::NoFact),
        Ok(request) if !WRITING.contains(&&*request.subresource) => Entry::Left(Left::NoFact),
        Ok(request) => Entry::Writes(vec![Write { request, stored: None, needs_old: false }]),
    }
}

fn of_event(line: &Line<'_>) -> Entry {
    if line.stage != "ResponseComplete" {
        return Entry::Left(Left::OtherStage);
    }
    let code = line.response_status.as_ref().map_or(0, |status| status.code);
    let operation = match &*line.verb {
        "create" => Operation::Create,
        // a server-side apply of what is not there yet makes it (`apiserver/pkg/endpoints/handlers/patch.go`)
        "update" | "patch" if code == CREATED => Operation::Create,
        "update" | "patch" => Operation::Update,
        "delete" | "deletecollection" => Operation::Delete,
        _ => return Entry::Left(Left::Read),
    };
    if !(200..300).contains(&code) {
        return Entry::Left(Left::Refused);
    }
    let Some(object) = &line.object_ref else { return Entry::Left(Left::NoFact) };
    if is_housekeeping(&object.api_group, &object.resource, &object.subresource) {
        return Entry::Left(Left::Housekeeping);
    }
    if !WRITING.contains(&&*object.subresource) {
        return Entry::Left(Left::NoFact);
    }
    let written =
        if &*line.verb == "deletecollection" { each_deleted(line, object) } else { one(line, operation, object) };
    match written {
        Ok(writes) => Entry::Writes(writes),
        Err((gap, why)) => {
            let mut what = format!("{} {}", line.verb, object.resource);
            for (before, part) in [("/", &object.subresource), (" ", &object.namespace), ("/", &object.name)] {
                if !part.is_empty() {
                    _ = write!(what, "{before}{part}");
                }
            }
            Entry::Gap(gap, format!("{what}: {why}"))
        }
    }
}

/// What is missing, and in words.
type Missing = (Gap, String);

/// One write.
fn one(line: &Line<'_>, operation: Operation, object: &ObjectRef) -> Result<Vec<Write>, Missing> {
    let kind = provisional(&object.api_group, &object.resource);
    let sent = body(line.request_object, &kind)?;
    let response = body(line.response_object, &kind)?;
    let answered = response.clone().filter(|answer| !is_status(answer));
    let (new, stored) = match (operation, &*object.subresource) {
        (Operation::Delete, _) => {
            let told =
                |answer: &Val| answer.str_at(&["details", "uid"]).or(answer.str_at(&["metadata", "uid"])).cloned();
            let uid = response.as_ref().and_then(told).map(|uid| uid.to_string());
            let still = answered.clone().filter(|answer| answer.at_some(&["metadata", "deletionTimestamp"]).is_some());
            let stored = match (still, line.response_object) {
                (Some(object), _) => Some(after(object)),
                (None, Some(_)) => Some(Stored::Gone(uid)),
                (None, None) => None,
            };
            (None, stored)
        }
        // what is asked for is in the request, and the answer says only that it was done
        (_, "eviction" | "binding") => (Some(sent.clone().ok_or_else(|| no_body(line))?), None),
        (_, "scale") => {
            let scale = answered.clone().or_else(|| whole(line, sent.clone())).ok_or_else(|| no_body(line))?;
            // it is left out when it is 0 (`k8s.io/api/autoscaling/v1/types.go`)
            let replicas = scale.int_at(&["spec", "replicas"]).unwrap_or(0);
            (Some(scale.with_at(&["spec", "replicas"], Val::Int(replicas))), None)
        }
        _ => match answered.clone() {
            Some(answer) => (Some(answer.clone()), Some(after(answer))),
            None => (Some(whole(line, sent.clone()).ok_or_else(|| no_body(line))?), None),
        },
    };
    let options = if operation == Operation::Delete { sent } else { None };
    let review = review(line, operation, object, &kind, new, options);
    let request = Request::from_review(&review).map_err(|error| (Gap::NotAnEvent, error.to_string()))?;
    let needs_old = operation != Operation::Create || object.subresource == "eviction";
    Ok(vec![Write { request, stored, needs_old }])
}

/// The deletion of each object that a deletion of many took: the API server asks about each
/// (`apiserver/pkg/registry/generic/registry/store.go`, `DeleteCollection`), and answers with the list of them.
fn each_deleted(line: &Line<'_>, object: &ObjectRef) -> Result<Vec<Write>, Missing> {
    let kind = provisional(&object.api_group, &object.resource);
    let options = body(line.request_object, &kind)?;
    let list = body(line.response_object, &kind)?.filter(|answer| answer.get("items").is_some());
    let list = list.ok_or_else(|| no_body(line))?;
    let write = |item: Val| {
        let text = |field: &str| item.str_at(&["metadata", field]).map_or_else(String::new, |text| text.to_string());
        let one = ObjectRef { name: text("name"), namespace: text("namespace"), ..object.clone() };
        let review = review(line, Operation::Delete, &one, &kind, None, options.clone());
        let request = Request::from_review(&review).map_err(|error| (Gap::NotAnEvent, error.to_string()))?;
        Ok(Write { request, stored: None, needs_old: true })
    };
    manifests(&list).into_iter().map(write).collect()
}

/// The AdmissionReview that the API server would have sent.
fn review(
    line: &Line<'_>,
    operation: Operation,
    object: &ObjectRef,
    kind: &Kind,
    new: Option<Val>,
    options: Option<Val>,
) -> Val {
    let user = line.impersonated_user.as_ref().or(line.user.as_ref()).cloned().unwrap_or_default();
    let groups = user.groups.iter().map(|group| Val::str(group.as_str())).collect();
    let user = Val::object([
        ("username", Val::str(user.username)),
        ("uid", Val::str(user.uid)),
        ("groups", Val::list(groups)),
    ]);
    // the answer names the kind of a custom resource, which its resource does not
    let whole = new.as_ref().filter(|_| is_of_object(&object.subresource));
    let named = whole.and_then(|new| new.str_at(&["kind"])).unwrap_or(&kind.kind).clone();
    let mut fields = vec![
        ("uid".into(), Val::str(&*line.audit_id)),
        ("operation".into(), Val::str(operation.as_str())),
        ("kind".into(), Val::object([("group", Val::str(object.api_group.as_str())), ("kind", Val::Str(named))])),
        (
            "resource".into(),
            Val::object([
                ("group", Val::str(object.api_group.as_str())),
                ("resource", Val::str(object.resource.as_str())),
            ]),
        ),
        ("subResource".into(), Val::str(object.subresource.as_str())),
        ("name".into(), Val::str(object.name.as_str())),
        ("namespace".into(), Val::str(object.namespace.as_str())),
        ("userInfo".into(), user),
        ("options".into(), asked_by_uri(&line.request_uri, options.unwrap_or_else(|| Val::object([])))),
    ];
    fields.extend(new.map(|new| ("object".into(), new)));
    Val::object([
        ("apiVersion", Val::str("admission.k8s.io/v1")),
        ("kind", Val::str("AdmissionReview")),
        ("request", Val::map(fields)),
    ])
}

/// Whether what a subresource is asked and answers with is the object that it is about.
pub(super) fn is_of_object(subresource: &str) -> bool {
    !matches!(subresource, "scale" | "eviction" | "binding")
}

/// Options with those that the address of the request has.
fn asked_by_uri(uri: &str, options: Val) -> Val {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|pair| pair.split_once('=')).fold(options, |options, (name, value)| match name {
        "dryRun" => options.with(name, Val::list(vec![Val::str(value)])),
        "propagationPolicy" => options.with(name, Val::str(value)),
        _ => options,
    })
}

/// What became of an object that the API server answered with: one that is being deleted and that nothing holds any more is
/// gone (`store.go`, `ShouldDeleteDuringUpdate`).
fn after(object: Val) -> Stored {
    let is_deleted = object.at_some(&["metadata", "deletionTimestamp"]).is_some();
    let is_held = !object.items_at(&["metadata", "finalizers"]).is_empty()
        || object.int_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) > 0;
    if is_deleted && !is_held {
        let uid = object.str_at(&["metadata", "uid"]).map(ToString::to_string);
        return Stored::Gone(uid);
    }
    Stored::Object(object)
}

/// The body of a creation or an update as it was sent; that of a patch says what changes only.
fn whole(line: &Line<'_>, sent: Option<Val>) -> Option<Val> {
    sent.filter(|sent| line.verb != "patch" && sent.name_at(&["metadata", "name"]).is_some())
}

fn is_status(answer: &Val) -> bool {
    let is = |field: &str, value: &str| answer.str_at(&[field]).is_some_and(|text| &**text == value);
    is("kind", "Status") && is("apiVersion", "v1")
}

/// A body as a value, without the values of Secrets and ConfigMaps.
fn body(raw: Option<&RawValue>, kind: &Kind) -> Result<Option<Val>, Missing> {
    let Some(raw) = raw else { return Ok(None) };
    let passing = Passing::of(kind);
    let read = (&passing).deserialize(&mut serde_json::Deserializer::from_str(raw.get()));
    let val = read.map_err(|error| (Gap::NotAnEvent, error.to_string()))?;
    Ok(Some(val).filter(|val| !val.is_null()))
}

fn no_body(line: &Line<'_>) -> Missing {
    let need = "what was stored is told at level RequestResponse only";
    (Gap::NoBody, format!("recorded at level {}, and {need}", if line.level.is_empty() { "?" } else { &*line.level }))
}

#[cfg(test)]
mod tests;
