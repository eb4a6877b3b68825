//! The state of a case in the cluster: made before it, and taken away after it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use suture_e2e::api::Reply;
use suture_e2e::wait;

use super::objects::{key, names, renewed};
use super::player::{Place, Player, SETTLED_MAX};

impl Player {
    /// Loads the state of a case; new uids by old ones.
    pub(super) fn load(&mut self, spec: &Value, case: &Value) -> Result<BTreeMap<String, Value>, String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut state: Vec<Value> = Vec::new();
        for object in list(&spec["state"]).into_iter().chain(list(&case["set"])) {
            if object.is_string() {
                return Err("state in a file of its own".to_owned());
            }
            let items = if object["kind"] == "List" { list(&object["items"]) } else { vec![object] };
            for item in items {
                state.retain(|known| key(known) != key(&item));
                state.push(item);
            }
        }
        for gone in list(&case["unset"]) {
            state.retain(|known| !names(&gone, known));
        }
        self.define(&state)?;
        // owners before what they own, namespaces before what is in them
        state.sort_by_key(|object| match object["kind"].as_str().unwrap_or_default() {
            "CustomResourceDefinition" => 0,
            "Namespace" => 1,
            _ => 2,
        });
        let mut uids = BTreeMap::new();
        let known: BTreeSet<String> =
            state.iter().filter_map(|object| object.pointer("/metadata/uid")?.as_str().map(str::to_owned)).collect();
        let mut waiting = state.clone();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for object in waiting {
                let owners = object.pointer("/metadata/ownerReferences").map(&list).unwrap_or_default();
                let open = |owner: &Value| {
                    owner["uid"].as_str().is_some_and(|uid| known.contains(uid) && !uids.contains_key(uid))
                };
                if owners.iter().any(open) {
                    later.push(object);
                    continue;
                }
                let made = self.make(&object, &uids)?;
                if let Some(uid) = object.pointer("/metadata/uid").and_then(Value::as_str) {
                    uids.insert(uid.to_owned(), made["metadata"]["uid"].clone());
                }
            }
            if later.len() == before {
                return Err("owners that own each other".to_owned());
            }
            waiting = later;
        }
        state.iter().try_for_each(|object| self.annotate(object, &uids))?;
        Ok(uids)
    }

    /// Writes the annotations of an object that name uids anew: those that the API server gave.
    pub(super) fn annotate(&self, object: &Value, uids: &BTreeMap<String, Value>) -> Result<(), String> {
        let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
        let naming = annotations.filter_map(|(key, value)| Some((key.clone(), uids.get(value.as_str()?)?.clone())));
        let naming: Map<String, Value> = naming.collect();
        if naming.is_empty() {
            return Ok(());
        }
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("default").to_owned();
        let collection = self.place(object)?.collection(&text("/metadata/namespace"));
        let path = format!("{collection}/{}", text("/metadata/name"));
        let patch = json!({"metadata": {"annotations": naming}});
        let reply = self.own.call("PATCH", &path, Some(&patch)).map_err(|error| error.to_string())?;
        if reply.done() { Ok(()) } else { Err(reply.message().to_owned()) }
    }

    /// Makes one object as it is written, with its status, on its way out if it is.
    pub(super) fn make(&self, object: &Value, uids: &BTreeMap<String, Value>) -> Result<Value, String> {
        let place = self.place(object)?.clone();
        let title = key(object).join("/");
        let collection =
            place.collection(object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default"));
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let path = format!("{collection}/{name}");
        let mut body = renewed(object, uids);
        let status = if place.status { body.as_object_mut().and_then(|map| map.remove("status")) } else { None };
        let leaving = object.pointer("/metadata/deletionTimestamp").is_some();
        let answer = |reply: Result<Reply, suture_e2e::Error>| -> Result<Reply, String> {
            reply.map_err(|error| error.to_string())
        };
        let mut made = answer(self.own.call("POST", &collection, Some(&body)))?;
        if made.code == 409 {
            // put in its place: a merge leaves the owners that it does not name
            if let Some(metadata) = body["metadata"].as_object_mut() {
                metadata.entry("ownerReferences").or_insert(Value::Null);
            }
            made = answer(self.own.call("PATCH", &path, Some(&body)))?;
        }
        if !made.done() {
            return Err(format!("{title}: {}", made.message()));
        }
        if let Some(status) = status {
            let written = answer(self.own.call("PATCH", &format!("{path}/status"), Some(&json!({"status": status}))))?;
            if !written.done() {
                return Err(format!("status of {title}: {}", written.message()));
            }
        }
        if leaving {
            answer(self.own.call("DELETE", &path, None))?;
            let shown = answer(self.own.call("GET", &path, None))?;
            if shown.body.pointer("/metadata/deletionTimestamp").is_none() {
                return Err(format!("{title}: nothing keeps it while it is being deleted"));
            }
        }
        Ok(made.body)
    }

    /// All objects, by path, but those that the API server keeps for itself.
    pub(super) fn everything(&self) -> Vec<(String, Value)> {
        let kept = [
            "events",
            "leases",
            "endpointslices",
            "componentstatuses",
            "flowschemas",
            "prioritylevelconfigurations",
            "clusterroles",
            "clusterrolebindings",
            "apiservices",
            "ipaddresses",
            "servicecidrs",
            "validatingwebhookconfigurations",
        ];
        let mut all = Vec::new();
        let places: BTreeMap<String, &Place> = self
            .places
            .values()
            .filter(|place| !kept.contains(&place.plural.as_str()))
            .map(|place| (format!("{}/{}", place.root, place.plural), place))
            .collect();
        for (path, place) in places {
            let Ok(list) = self.own.get(&path) else { continue };
            for item in list["items"].as_array().into_iter().flatten() {
                let namespace = item.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                all.push((format!("{}/{name}", place.collection(namespace)), item.clone()));
            }
        }
        all
    }

    /// Takes away what a case has left; namespaces and definitions last.
    pub(super) fn clean(&mut self) {
        let last = |path: &str| {
            path.starts_with("/api/v1/namespaces/") && path.matches('/').count() == 4
                || path.contains("/customresourcedefinitions/")
                || (path.starts_with("/api/v1/namespaces") && path.matches('/').count() == 4)
        };
        let left: Vec<String> =
            self.everything().into_iter().map(|(path, _)| path).filter(|path| !self.baseline.contains(path)).collect();
        left.iter().filter(|path| !last(path)).for_each(|path| self.remove(path));
        let definitions = left.iter().any(|path| path.contains("/customresourcedefinitions/"));
        left.iter().filter(|path| last(path)).for_each(|path| self.remove(path));
        if definitions {
            self.discover();
        }
    }

    /// Removes an object at once, whatever keeps it.
    pub(super) fn remove(&self, path: &str) {
        let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let gone = wait::until("removal", SETTLED_MAX, || {
            let reply = self.own.call("DELETE", path, Some(&now)).map_err(|error| error.to_string())?;
            if reply.code == 404 {
                return Ok(());
            }
            _ = self.own.call("PATCH", path, Some(&json!({"metadata": {"finalizers": null}})));
            if path.starts_with("/api/v1/namespaces/")
                && path.matches('/').count() == 4
                && let Ok(mut stored) = self.own.get(path)
            {
                // what its controller does, which is down
                stored["spec"]["finalizers"] = json!([]);
                _ = self.own.call("PUT", &format!("{path}/finalize"), Some(&stored));
            }
            let shown = self.own.call("GET", path, None).map_err(|error| error.to_string())?;
            if shown.code == 404 { Ok(()) } else { Err(reply.message().to_owned()) }
        });
        gone.expect("removed");
    }
}
