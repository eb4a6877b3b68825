//! Which resources there are, and where their objects lie.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::objects::definition;
use suture_e2e::wait;

use super::player::{Place, Player, SETTLED_MAX};

impl Player {
    /// Learns which resources there are.
    pub(super) fn discover(&mut self) {
        let groups = self.own.get("/apis").expect("groups");
        let mut roots = vec![("v1".to_owned(), "/api/v1".to_owned())];
        for version in groups["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|group| group["versions"].as_array().into_iter().flatten())
        {
            let version = version["groupVersion"].as_str().expect("version");
            roots.push((version.to_owned(), format!("/apis/{version}")));
        }
        self.places.clear();
        for (version, root) in roots {
            let Ok(found) = self.own.get(&root) else { continue };
            let resources = found["resources"].as_array().cloned().unwrap_or_default();
            let names: BTreeSet<&str> = resources.iter().filter_map(|one| one["name"].as_str()).collect();
            for one in resources.iter().filter(|one| !one["name"].as_str().is_some_and(|name| name.contains('/'))) {
                let plural = one["name"].as_str().expect("name").to_owned();
                let verbs = one["verbs"].as_array().cloned().unwrap_or_default();
                if !verbs.contains(&json!("list")) || !verbs.contains(&json!("create")) {
                    continue;
                }
                let status = names.contains(format!("{plural}/status").as_str());
                let namespaced = one["namespaced"] == true;
                let kind = one["kind"].as_str().expect("kind").to_owned();
                self.places.insert((version.clone(), kind), Place { root: root.clone(), plural, namespaced, status });
            }
        }
    }

    pub(super) fn place(&self, object: &Value) -> Result<&Place, String> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let found = self.places.get(&(text("apiVersion"), text("kind")));
        found.ok_or_else(|| format!("{} {} is not served", text("apiVersion"), text("kind")))
    }

    /// The place of a kind that a step names without its version.
    pub(super) fn place_of(&self, named: &Value) -> Result<&Place, String> {
        let (group, kind) = match &named["kind"] {
            Value::Object(both) => (both["group"].as_str(), both["kind"].as_str().unwrap_or_default()),
            kind => (named["group"].as_str(), kind.as_str().unwrap_or_default()),
        };
        let fits =
            |version: &str| group.is_none_or(|group| version.rsplit_once('/').map_or("", |(found, _)| found) == group);
        let found = self
            .places
            .iter()
            .find(|((version, found), _)| found == kind && fits(version) && version != "extensions/v1beta1");
        found.map(|(_, place)| place).ok_or_else(|| format!("{kind} is not served"))
    }

    /// Defines the custom resources that nobody defines.
    pub(super) fn define(&mut self, state: &[Value]) -> Result<(), String> {
        let mut made = false;
        for object in state {
            let version = object["apiVersion"].as_str().unwrap_or_default();
            let kind = object["kind"].as_str().unwrap_or_default();
            let Some((group, version)) = version.split_once('/') else { continue };
            if self.place(object).is_ok() {
                continue;
            }
            let of_state = state.iter().find(|o| {
                o["kind"] == "CustomResourceDefinition"
                    && o["spec"]["group"] == group
                    && o["spec"]["names"]["kind"] == kind
            });
            if of_state.is_none() {
                let mut definition = definition(group, kind);
                definition["spec"]["versions"][0]["name"] = json!(version);
                if object.pointer("/metadata/namespace").is_none() {
                    definition["spec"]["scope"] = json!("Cluster");
                }
                let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
                let reply = self.own.call("POST", path, Some(&definition)).map_err(|error| error.to_string())?;
                if !reply.done() && reply.code != 409 {
                    return Err(format!("no definition of {kind}: {}", reply.message()));
                }
                // it is not part of what the suite is about
                self.baseline.insert(format!("{path}/{}", definition["metadata"]["name"].as_str().unwrap_or_default()));
            } else if let Some(definition) = of_state {
                self.make(definition, &BTreeMap::new())?;
            }
            let until = wait::until("definition", SETTLED_MAX, || {
                self.own.get(&format!("/apis/{group}/{version}")).map(drop).map_err(|error| error.to_string())
            });
            until.map_err(|error| error.to_string())?;
            made = true;
            self.discover();
        }
        if made {
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}
