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

use serde_json::{Value, json};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Options, Part, Plan, Suture, suture, wait};

mod objects;
mod player;
mod resources;
mod state;
mod steps;

use player::{Player, SETTLED_MAX};

/// Admission that adds to what a suite says, or takes away from it.
const PLUGINS: &str = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,StorageObjectInUseProtection,\
                       TaintNodesByCondition,DefaultStorageClass,RuntimeClass,CertificateApproval,CertificateSigning,\
                       CertificateSubjectRestriction,DefaultIngressClass,ResourceQuota,LimitRanger";

/// Times that come long before and after this is run.
const PAST: &str = "2000-01-01T00:00:00Z";
const FUTURE: &str = "2999-01-01T00:00:00Z";

/// What came of one case.
enum Outcome {
    Same(usize),
    /// Why it cannot be loaded or sent.
    Skipped(String),
    Differs(String),
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
}
