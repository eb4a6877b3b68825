//! The steps of a case: requests that are sent, and what is observed between them.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::objects::{mapped, renewed};
use super::player::{Place, Player};

/// Method, path and body.
type Call = (&'static str, String, Option<Value>);

impl Player {
    /// Sends the requests of a case; how many, or what differs.
    pub(super) fn steps(
        &mut self,
        case: &Value,
        mut uids: BTreeMap<String, Value>,
    ) -> Result<Result<usize, String>, String> {
        let mut sent = 0;
        // whether something was admitted that the case does not let anybody see yet
        let mut unseen = false;
        for (number, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            if step["observe"].is_object() {
                if step["observe"]["after"].is_string() {
                    return Err("time passes".to_owned());
                }
                self.observe(&step["observe"], &mut uids)?;
                unseen = false;
                continue;
            }
            let Some((method, path, body)) = self.request(step, &uids)? else { continue };
            self.speak_for(&step["as"]);
            let reply = self.ask(method, &path, body.as_ref());
            self.admin.impersonate("admin", &["system:masters"]);
            let reply = reply?;
            let refused = reply.message().contains("denied the request");
            let verdict = match (reply.done(), refused) {
                (true, _) => "Allowed",
                (_, true) if reply.message().contains("could not be decided") => "Undecided",
                (_, true) => "Denied",
                // what it refuses itself never comes before a webhook
                _ => return Err(format!("step {number}: the API server refuses it itself: {}", reply.message())),
            };
            sent += 1;
            let expected = step["expect"].as_str().unwrap_or("Allowed");
            let by = step["by"].as_array().cloned().unwrap_or_default();
            let unnamed =
                by.iter().filter_map(Value::as_str).find(|name| verdict == "Denied" && !reply.message().contains(name));
            if verdict != expected && !(expected == "Warned" && verdict == "Allowed") {
                if unseen && verdict == "Allowed" {
                    return Err(format!("step {number}: the watch has shown what was admitted before it by now"));
                }
                return Ok(Err(format!(
                    "step {number}: {method} {path}: {verdict} instead of {expected}: {}",
                    reply.message().replace('\n', " | ")
                )));
            }
            if let Some(name) = unnamed {
                return Ok(Err(format!("step {number}: not by {name}: {}", reply.message().replace('\n', " | "))));
            }
            unseen |= verdict == "Allowed";
        }
        Ok(Ok(sent))
    }

    fn speak_for(&mut self, author: &Value) {
        let (user, groups) = match author {
            Value::String(user) => (user.clone(), Vec::new()),
            Value::Object(given) => (
                given["username"].as_str().unwrap_or_default().to_owned(),
                given
                    .get("groups")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            ),
            _ => ("kubernetes-admin".to_owned(), vec!["system:masters".to_owned()]),
        };
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        self.admin.impersonate(&user, &groups);
    }

    /// The request of a step.
    fn request(&self, step: &Value, uids: &BTreeMap<String, Value>) -> Result<Option<Call>, String> {
        let verb = ["create", "update", "patch", "delete", "scale", "evict", "bind", "review", "batch"]
            .into_iter()
            .find(|verb| step.get(verb).is_some());
        let verb = verb.ok_or("a step of another kind")?;
        let what = &step[verb];
        let path_of = |place: &Place| -> String {
            let namespace = what["namespace"].as_str().unwrap_or("default");
            format!("{}/{}", place.collection(namespace), what["name"].as_str().unwrap_or_default())
        };
        let pod = || {
            format!(
                "/api/v1/namespaces/{}/pods/{}",
                what["namespace"].as_str().unwrap_or("default"),
                what["name"].as_str().unwrap_or_default()
            )
        };
        let subresource = step["subresource"].as_str().map_or_else(String::new, |name| format!("/{name}"));
        Ok(Some(match verb {
            "create" | "update" => {
                let place = self.place(what)?;
                let collection =
                    place.collection(what.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default"));
                let name = what.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                let path = format!("{collection}/{name}");
                let mut body = renewed(what, uids);
                if verb == "create" {
                    ("POST", collection, Some(body))
                } else {
                    let stored = self.own.get(&path).map_err(|error| error.to_string())?;
                    // some kinds are only updated from a version that is known
                    body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
                    ("PUT", format!("{path}{subresource}"), Some(body))
                }
            }
            "patch" => {
                let with = mapped(&step["with"], uids);
                ("PATCH", format!("{}{subresource}", path_of(self.place_of(what)?)), Some(with))
            }
            "delete" => {
                let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
                if step["propagationPolicy"].is_string() {
                    options["propagationPolicy"] = step["propagationPolicy"].clone();
                }
                if let Some(given) = step["preconditions"].as_object() {
                    if given.contains_key("resourceVersion") {
                        return Err("a resourceVersion that only the recorded cluster has".to_owned());
                    }
                    let uid = given.get("uid").and_then(Value::as_str).unwrap_or_default();
                    options["preconditions"] = json!({"uid": uids.get(uid).cloned().unwrap_or_else(|| json!(uid))});
                }
                ("DELETE", path_of(self.place_of(what)?), Some(options))
            }
            "scale" => {
                let path = path_of(self.place_of(what)?);
                if !path.starts_with("/apis/apps/") {
                    return Err("a custom resource without a scale subresource".to_owned());
                }
                ("PATCH", format!("{path}/scale"), Some(json!({"spec": {"replicas": step["replicas"]}})))
            }
            "evict" => {
                let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": what["name"], "namespace": what["namespace"]}});
                ("POST", format!("{}/eviction", pod()), Some(body))
            }
            "bind" => {
                let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": what["name"], "namespace": what["namespace"]},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": step["node"]}});
                ("POST", format!("{}/binding", pod()), Some(body))
            }
            "batch" => return Err("a batch: the API server has one request at a time".to_owned()),
            _ => return Err("a recorded review".to_owned()),
        }))
    }

    /// The cluster is so now, and nobody was asked.
    fn observe(&self, observed: &Value, uids: &mut BTreeMap<String, Value>) -> Result<(), String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for object in list(&observed["set"]) {
            let made = self.make(&object, uids)?;
            if let Some(uid) = object.pointer("/metadata/uid").and_then(Value::as_str) {
                uids.insert(uid.to_owned(), made["metadata"]["uid"].clone());
            }
        }
        for gone in list(&observed["unset"]) {
            let place = self.place_of(&gone)?;
            let namespace = gone["namespace"].as_str().unwrap_or("default");
            self.remove(&format!("{}/{}", place.collection(namespace), gone["name"].as_str().unwrap_or_default()));
        }
        // watches show it within milliseconds, on a busy machine within some more
        thread::sleep(Duration::from_millis(500));
        Ok(())
    }
}
