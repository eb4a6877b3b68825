//! The suites of `tests/cases`, which pass offline, on a real API server: the same requests get the same answers.
//!
//! State is loaded as it is written, with its status; controllers, scheduler and nodes are down, so that it stays so. What
//! the API server does not take, or cannot be asked, is listed with the reason. `SUTURE_REPLAY` names the suites, by the
//! beginning of their files' names; default all.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};
use suture_e2e::api::Reply;
use suture_e2e::objects::definition;
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Options, Part, Plan, Suture, suture, wait};

/// Method, path and body.
type Call = (&'static str, String, Option<Value>);

/// Admission that adds to what a suite says, or takes away from it.
const PLUGINS: &str = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,StorageObjectInUseProtection,\
                       TaintNodesByCondition,DefaultStorageClass,RuntimeClass,CertificateApproval,CertificateSigning,\
                       CertificateSubjectRestriction,DefaultIngressClass,ResourceQuota,LimitRanger";
/// Far more than it takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(60);

/// What a replica says that does not judge.
const IDLE: [&str; 2] = ["no replica is active yet", "this replica has just become active"];

/// Times that come long before and after this is run.
const PAST: &str = "2000-01-01T00:00:00Z";
const FUTURE: &str = "2999-01-01T00:00:00Z";

/// A resource of the API server.
#[derive(Clone, Debug)]
struct Place {
    root: String,
    plural: String,
    namespaced: bool,
    status: bool,
}

impl Place {
    fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
        } else {
            format!("{}/{}", self.root, self.plural)
        }
    }
}

/// What came of one case.
enum Outcome {
    Same(usize),
    /// Why it cannot be loaded or sent.
    Skipped(String),
    Differs(String),
}

struct Player {
    cluster: Cluster,
    /// An administrator, who asks for others.
    admin: Api,
    /// Suture's own user, whom nobody judges.
    own: Api,
    places: BTreeMap<(String, String), Place>,
    /// What was there before any suite, by collection and name.
    baseline: BTreeSet<String>,
}

#[test]
fn suites_that_pass_offline_get_the_same_verdicts() {
    let chosen = env::var("SUTURE_REPLAY").unwrap_or_default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("cases").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    let mut player = Player::start();
    let (mut steps, mut same, mut skipped, mut differing) = (0, 0, Vec::new(), Vec::new());
    for file in files {
        let name = file.file_stem().expect("name").to_string_lossy().into_owned();
        if !chosen.is_empty() && !chosen.split(',').any(|start| name.starts_with(start)) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("suite");
        let suite: Value = serde_saphyr::from_str(&text).expect("YAML");
        if let Err(error) = suture::run(&["test", &file.display().to_string()]) {
            println!("{name}: does not pass offline");
            skipped.push([name, error.to_string().replace('\n', " ")]);
            continue;
        }
        let cases = suite["spec"]["cases"].as_array().expect("cases").clone();
        let judge = Suture::start(&player.cluster, &player.plan(&suite["spec"])).expect("suture");
        let kubectl = player.cluster.kubectl("admin").expect("admin");
        judge.register(&kubectl).expect("register");
        let (mut of_suite, count) = (0, cases.len());
        for case in cases {
            let title = format!("{name}: {}", case["name"].as_str().unwrap_or_default());
            match player.play(&judge, &suite["spec"], &case) {
                Outcome::Same(sent) => {
                    of_suite += 1;
                    steps += sent;
                }
                Outcome::Skipped(why) => skipped.push([title, why]),
                Outcome::Differs(how) => differing.push(format!("{title}: {how}")),
            }
        }
        judge.unregister(&kubectl).expect("unregister");
        println!("{name}: {of_suite} of {count} cases with the same verdicts");
        same += of_suite;
    }
    let mut table = Table::new(&["case that cannot be replayed", "why"]);
    let count = skipped.len();
    skipped.into_iter().for_each(|row| table.row(row.map(|cell| cell.chars().take(150).collect())));
    table.print();
    for how in &differing {
        println!("  differs: {how}");
    }
    println!(
        "replayed: {same} cases with {steps} requests, same verdicts; {count} that cannot be; {} that differ",
        differing.len()
    );
    assert_eq!(differing, Vec::<String>::new());
}

impl Player {
    fn start() -> Self {
        let flags = [(Part::ApiServer, vec![PLUGINS.to_owned()])].into();
        let options = Options { users: vec![suture::user()], flags, ..Options::default() };
        let cluster = Cluster::start(&options).expect("cluster");
        for part in [Part::Kwok, Part::Scheduler, Part::ControllerManager] {
            cluster.stop(part).expect("stop");
        }
        let everybody = [
            "create",
            "clusterrolebinding",
            "everybody",
            "--clusterrole=cluster-admin",
            "--group=system:authenticated",
        ];
        cluster.kubectl("admin").and_then(|admin| admin.text(&everybody)).expect("rights");
        let admin = Api::new(&cluster, "admin").expect("api");
        let own = Api::new(&cluster, &suture::user().name).expect("api");
        let mut player = Self { cluster, admin, own, places: BTreeMap::new(), baseline: BTreeSet::new() };
        // its own namespace is of the baseline, too
        drop(Suture::start(&player.cluster, &Plan::shipped()).expect("suture"));
        player.discover();
        player.baseline = player.everything().into_iter().map(|(path, _)| path).collect();
        player
    }

    /// What the suite is judged by.
    fn plan(&self, spec: &Value) -> Plan {
        let documents = |field: &str| spec[field].as_array().cloned().unwrap_or_default();
        let policies = [documents("invariants"), documents("policies")].concat();
        let adapters = |kind: &Value| kind["kind"] == "ResourceAdapter";
        let (mut adapting, mut policy): (Vec<Value>, Vec<Value>) = policies.into_iter().partition(adapters);
        // in force now if it is at the time of the suite; both are RFC 3339 in UTC, which is ordered like the text
        for exemption in policy.iter_mut().filter(|document| document["kind"] == "Exemption") {
            let (time, expires) = (spec["time"].as_str(), exemption.pointer("/spec/expires").and_then(Value::as_str));
            let in_force = time.zip(expires).is_some_and(|(time, expires)| time < expires);
            exemption["spec"]["expires"] = json!(if in_force { FUTURE } else { PAST });
        }
        adapting.extend(documents("adapters"));
        Plan { adapters: adapting, ..Plan::of(policy) }
    }

    /// Learns which resources there are.
    fn discover(&mut self) {
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

    fn place(&self, object: &Value) -> Result<&Place, String> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let found = self.places.get(&(text("apiVersion"), text("kind")));
        found.ok_or_else(|| format!("{} {} is not served", text("apiVersion"), text("kind")))
    }

    /// The place of a kind that a step names without its version.
    fn place_of(&self, named: &Value) -> Result<&Place, String> {
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

    fn play(&mut self, judge: &Suture, spec: &Value, case: &Value) -> Outcome {
        if spec["unknown"].is_array() {
            return Outcome::Skipped("kinds that were not read: a watch reads all".to_owned());
        }
        let result = self.load(spec, case).and_then(|uids| {
            // what it reads now is all of it
            let process = &judge.replicas[0].process;
            process
                .kill()
                .and_then(|()| process.launch())
                .and_then(|()| judge.wait_ready())
                .map_err(|error| error.to_string())?;
            self.awake()?;
            self.steps(case, uids)
        });
        self.clean();
        match result {
            Ok(Ok(sent)) => Outcome::Same(sent),
            Ok(Err(how)) => Outcome::Differs(how),
            Err(why) => Outcome::Skipped(why),
        }
    }

    /// What comes of a request, asked again while nobody judges: on a busy machine a Lease runs out before it is renewed.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply, String> {
        let judged = wait::until("a judge", SETTLED_MAX, || {
            let reply = self.admin.call(method, path, body).map_err(|error| error.to_string())?;
            let nobody = IDLE.iter().any(|why| reply.message().contains(why));
            if nobody { Err(reply.message().to_owned()) } else { Ok(reply) }
        });
        judged.map_err(|error| error.to_string())
    }

    /// Waits until the API server reaches Suture: it may still wait before it dials again.
    fn awake(&self) -> Result<(), String> {
        let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}});
        let awake = wait::until("suture", SETTLED_MAX, || {
            let reply = self
                .admin
                .call("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", Some(&probe))
                .map_err(|error| error.to_string())?;
            if reply.message().contains("failed calling") { Err(reply.message().to_owned()) } else { Ok(()) }
        });
        awake.map_err(|error| error.to_string())
    }

    /// Loads the state of a case; new uids by old ones.
    fn load(&mut self, spec: &Value, case: &Value) -> Result<BTreeMap<String, Value>, String> {
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
    fn annotate(&self, object: &Value, uids: &BTreeMap<String, Value>) -> Result<(), String> {
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

    /// Defines the custom resources that nobody defines.
    fn define(&mut self, state: &[Value]) -> Result<(), String> {
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

    /// Makes one object as it is written, with its status, on its way out if it is.
    fn make(&self, object: &Value, uids: &BTreeMap<String, Value>) -> Result<Value, String> {
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

    /// Sends the requests of a case; how many, or what differs.
    fn steps(&mut self, case: &Value, mut uids: BTreeMap<String, Value>) -> Result<Result<usize, String>, String> {
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

    /// All objects, by path, but those that the API server keeps for itself.
    fn everything(&self) -> Vec<(String, Value)> {
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
    fn clean(&mut self) {
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
    fn remove(&self, path: &str) {
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

/// Kind, namespace and name.
fn key(object: &Value) -> [String; 4] {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = text("/apiVersion").rsplit_once('/').map_or_else(String::new, |(group, _)| group.to_owned());
    [group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")]
}

/// Whether a reference in a suite names an object.
fn names(reference: &Value, object: &Value) -> bool {
    let [group, kind, namespace, name] = key(object);
    let (of_group, of_kind) = match &reference["kind"] {
        Value::Object(both) => (both["group"].as_str(), both["kind"].as_str()),
        kind => (reference["group"].as_str(), kind.as_str()),
    };
    of_kind == Some(&kind)
        && of_group.is_none_or(|of| of == group)
        && reference["namespace"].as_str().unwrap_or_default() == namespace
        && reference["name"] == name.as_str()
}

/// An object without what the API server gives itself, its owners by their new uids.
fn renewed(object: &Value, uids: &BTreeMap<String, Value>) -> Value {
    let mut body = mapped(object, uids);
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            metadata.remove(field);
        }
    }
    body
}

/// A value with new uids for old ones, wherever they are.
fn mapped(value: &Value, uids: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => uids.get(text).cloned().unwrap_or_else(|| value.clone()),
        Value::Array(items) => items.iter().map(|item| mapped(item, uids)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, item)| (name.clone(), mapped(item, uids))).collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}
