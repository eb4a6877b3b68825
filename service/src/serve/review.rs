//! From the bytes of a webhook call to what is asked: the review as a value, its uid, and when an answer is due.

use std::fmt;
use std::time::{Duration, Instant};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use suture_model::ingest::{Passed, Passing};
use suture_model::kinds::Kind;
use suture_model::object::UNREAD;
use suture_model::value::{Str, Val};

/// The versions of `AdmissionReview` that are understood; the answer has the version of the question.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
/// A uid is a UUID of 36 characters; what is much longer is none.
const UID_MAX_BYTES: usize = 128;
/// Where the uid of a broken body is looked for.
const HEAD_BYTES: usize = 4_096;

/// One question of the API server.
#[derive(Clone, Debug)]
pub struct AdmissionCall {
    /// The `AdmissionReview`, as `Request::from_review` takes it; what is kept of no object is left out of its objects.
    pub review: Val,
    /// The uid of its request: the answer repeats it, and the API server may ask twice.
    pub uid: String,
    /// The version of the review.
    pub api_version: &'static str,
    /// When it came.
    pub arrived: Instant,
    /// When the answer must be out.
    pub deadline: Instant,
    /// How long the review is, in bytes.
    pub bytes: usize,
    /// Whether a cluster needs it to come up ([`super::configuration::essential`]): it is refused only for what was shown
    /// to break.
    pub essential: bool,
}

impl AdmissionCall {
    /// A text of the request; empty where there is none.
    pub fn text(&self, path: &[&str]) -> &str {
        text(&self.review, path)
    }
}

/// Whose a request is where shares are counted: its namespace's, outside of namespaces its author's.
pub fn whose(namespace: &str, author: &str) -> String {
    if namespace.is_empty() { format!("(user) {author}") } else { namespace.to_owned() }
}

/// A text of a review's request; empty where there is none.
pub fn text<'r>(review: &'r Val, path: &[&str]) -> &'r str {
    review.get("request").and_then(|request| request.str_at(path)).map_or("", |text| text)
}

/// A body that cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unreadable {
    /// The uid to answer to, if it could be found.
    pub uid: String,
    /// The version to answer in.
    pub api_version: &'static str,
    /// The status of the HTTP answer: 200 where the review is one that the API server understands an answer to.
    pub http: u16,
    /// What is wrong.
    pub message: String,
}

impl Unreadable {
    /// A body of which only a part was read, or that is no JSON.
    pub fn scanned(body: &[u8], http: u16, message: String) -> Self {
        let uid = uid_in(body).unwrap_or_default();
        Self { uid, api_version: "admission.k8s.io/v1", http, message }
    }
}

/// Reads a body.
///
/// # Errors
/// When it is no review with a uid. What the request says beyond that is for the decider to read.
pub fn read(body: &[u8], arrived: Instant, deadline: Instant) -> Result<AdmissionCall, Unreadable> {
    let review =
        value(body).map_err(|error| Unreadable::scanned(body, 400, format!("the body is no JSON: {error}")))?;
    let version = review.str_at(&["apiVersion"]).and_then(|said| VERSIONS.into_iter().find(|known| **known == **said));
    let api_version = version.unwrap_or("admission.k8s.io/v1");
    let found = review.str_at(&["request", "uid"]).filter(|uid| !uid.is_empty() && uid.len() <= UID_MAX_BYTES);
    let uid = found.map_or_else(String::new, |uid| uid.to_string());
    let http = if uid.is_empty() { 400 } else { 200 };
    let odd = |message: &str| Err(Unreadable { uid: uid.clone(), api_version, http, message: message.to_owned() });
    if review.str_at(&["kind"]).is_none_or(|kind| &**kind != "AdmissionReview") {
        return odd("the body is no AdmissionReview");
    }
    if version.is_none() {
        return odd("the AdmissionReview is of an unknown version, `admission.k8s.io/v1` is known");
    }
    if uid.is_empty() {
        return odd("the AdmissionReview has no request with a uid");
    }
    Ok(AdmissionCall { review, uid, api_version, arrived, deadline, bytes: body.len(), essential: false })
}

/// A body as a value. Nobody reads who set which field of an object, which is often the half of it; nor the values of Secrets
/// and ConfigMaps, which are passed over where their kind is named before them, as the API server does.
fn value(body: &[u8]) -> Result<Val, serde_json::Error> {
    let mut source = serde_json::Deserializer::from_slice(body);
    let review = Part { of: Whole::Review }.deserialize(&mut source);
    match review.and_then(|review| source.end().map(|()| review)) {
        Ok(review) => Ok(review),
        // what has another form is read as it is, to say what is wrong with it
        Err(error) => match serde_json::from_slice(body)? {
            // of a part of it nothing is decided
            Passed(body) if body.get(UNREAD).is_some() => Err(error),
            Passed(body) => Ok(body),
        },
    }
}

/// Reads a map around the objects of a review.
struct Part {
    of: Whole,
}

/// What it is.
#[derive(Clone, Copy)]
enum Whole {
    Review,
    Request,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Val, A::Error> {
        let (mut entries, mut passing) = (Vec::new(), Passing::default());
        while let Some(field) = map.next_key::<Str>()? {
            let value: Val = match (self.of, &*field) {
                (Whole::Review, "request") => map.next_value_seed(Part { of: Whole::Request })?,
                (Whole::Request, "object" | "oldObject") => map.next_value_seed(&passing)?,
                _ => map.next_value()?,
            };
            if let (Whole::Request, "kind") = (self.of, &*field) {
                let text = |part: &str| value.str_at(&[part]).cloned().unwrap_or_else(|| "".into());
                passing = Passing::of(&Kind::new(&text("group"), &text("kind")));
            }
            entries.push((field, value));
        }
        Ok(Val::map(entries))
    }
}

/// The uid of a review of which only a part can be read: the first `uid` after `request`, which the API server writes first.
fn uid_in(body: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(body.get(..body.len().min(HEAD_BYTES))?);
    let request = head.split_once("\"request\"")?.1;
    let value = request.split_once("\"uid\"")?.1;
    let quoted = value.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let uid = quoted.split_once('"')?.0;
    let plain = uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (plain && !uid.is_empty() && uid.len() <= UID_MAX_BYTES).then(|| uid.to_owned())
}

/// What the API server allows for the call: it tells by `?timeout=`, a Go duration, rounded up to whole seconds
/// (`apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go`, `callHook`).
pub fn timeout_in(query: Option<&str>) -> Option<Duration> {
    query?.split('&').find_map(|pair| go_duration(pair.strip_prefix("timeout=")?))
}

/// A Go duration, `1m30s` or `1.5s` (`time.ParseDuration`); none if it is malformed, negative or zero.
fn go_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut secs) = (text, 0.0_f64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let unit_secs = match unit {
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "%C2%B5s" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        secs += number.parse::<f64>().ok()? * unit_secs;
        rest = tail;
    }
    Duration::try_from_secs_f64(secs).ok().filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests;
