//! `suture explain` of a report: what `check -o json` prints, for people and as a page.
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use std::fs;

use run::{CLUSTER, DEMO, INVARIANT, folder, suture, write};
use serde_json::Value as Json;

/// The report of a scale to zero, which takes all endpoints of a Service.
fn refused(name: &str) -> (std::path::PathBuf, Vec<String>, String) {
    let folder = folder(name);
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let check = [
        "check",
        "--no-timing",
        "--state",
        &state,
        "--profile",
        "none",
        "--as",
        "ana",
        "--scale",
        "Deployment/shop/web=0",
        "--invariants",
        &invariants,
    ];
    let check: Vec<String> = check.into_iter().map(str::to_owned).collect();
    let flags: Vec<&str> = check.iter().map(String::as_str).chain(["-o", "json"]).collect();
    let denied = suture(&flags);
    assert_eq!(denied.code, 1, "{}{}", denied.out, denied.err);
    let path = write(&folder, "report.json", &denied.out);
    (folder, check, path)
}

#[test]
fn a_report_has_the_request_and_the_objects_involved() {
    let (_, _, path) = refused("explain-objects");
    let report: Json = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let request = &report["requests"][0];
    assert_eq!((request["user"].as_str(), request["operation"].as_str()), (Some("ana"), Some("UPDATE")));
    assert_eq!(request["object"], "Deployment/shop/web");
    assert_eq!(request["text"], "ana scales Deployment/shop/web from 2 to 0");
    let counterexample = &report["verdicts"][0]["counterexample"];
    let object = |name: &str| {
        counterexample["objects"]
            .as_array()
            .unwrap()
            .iter()
            .find(|object| object["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    let service = object("Service/shop/web");
    assert_eq!(
        (service["before"].as_str(), service["after"].as_str()),
        (Some("2 ready endpoints"), Some("0 ready endpoints")),
        "{counterexample}"
    );
    assert_eq!(object("Deployment/shop/web")["after"], "wants 0 pods");
    let edge = |from: &str, to: &str| {
        let edges = counterexample["edges"].as_array().unwrap();
        let found = edges.iter().find(|edge| edge["from"] == from && edge["to"] == to);
        found.map(|edge| {
            (
                edge["relation"].as_str().unwrap().to_owned(),
                edge["before"].as_bool().unwrap(),
                edge["after"].as_bool().unwrap(),
            )
        })
    };
    for pod in ["web-1-a", "web-1-b"] {
        let pod = format!("Pod/shop/{pod}");
        assert_eq!(object(&pod)["before"], "ready");
        let lost = object(&pod)["after"].is_null() || object(&pod)["goes"] == true || object(&pod)["after"] != "ready";
        assert!(lost, "{counterexample}");
        assert_eq!(
            edge("Service/shop/web", &pod).map(|edge| (edge.0, edge.1)),
            Some(("Selector".to_owned(), true)),
            "{counterexample}"
        );
        assert_eq!(
            edge("ReplicaSet/shop/web-1", &pod).map(|edge| (edge.0, edge.1)),
            Some(("Owner".to_owned(), true)),
            "{counterexample}"
        );
    }
    assert_eq!(edge("Pod/shop/web-1-a", "Node/n1").map(|edge| edge.0), Some("Node".to_owned()), "{counterexample}");
    assert_eq!(edge("Deployment/shop/web", "ReplicaSet/shop/web-1"), Some(("Owner".to_owned(), true, true)));
}

/// What a deletion takes along is lost, with what it was to others, although it is still there for a while.
#[test]
fn what_a_deletion_takes_along_is_lost() {
    let demo = |file: &str| format!("{DEMO}/{file}");
    let (state, invariants, adapters) = (demo("cluster"), demo("invariants.yaml"), demo("adapters.yaml"));
    let review = demo("delete-claim.json");
    let policy = ["--profile", "none", "--invariants", &invariants, "--adapters", &adapters];
    let asked = ["check", "--state", &state, "--review", &review, "-o", "json"];
    let report: Json = serde_json::from_str(&suture(&[&asked[..], &policy].concat()).out).unwrap();
    let counterexample = &report["verdicts"][0]["counterexample"];
    let names = |list: &str, field: &str, is: &dyn Fn(&Json) -> bool| {
        let found = counterexample[list].as_array().unwrap().iter().filter(|item| is(item));
        found.map(|item| item[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (claim, volume) = ("PersistentVolumeClaim/zk/data-zookeeper-cluster-0", "PersistentVolume/pvc-f403959f");
    assert_eq!(names("objects", "name", &|object| object["goes"] == true), [claim, volume], "{counterexample}");
    let mut lost = names("edges", "to", &|edge| edge["before"] == true && edge["after"] == false);
    lost.sort();
    assert_eq!(lost, [volume, claim], "{counterexample}");
    let kept = names("edges", "to", &|edge| edge["after"] == true);
    assert!(kept.contains(&"Pod/zk/zookeeper-cluster-0".to_owned()), "{counterexample}");
}

#[test]
fn a_report_is_explained_as_text() {
    let (_, check, path) = refused("explain-text");
    let flags: Vec<&str> = check.iter().map(String::as_str).collect();
    let verbose = suture(&[&flags[..], &["--verbose"]].concat());
    let ran = suture(&["explain", &path]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let (request, rest) = ran.out.split_once("\n\n").unwrap();
    assert_eq!(request, "request: ana scales Deployment/shop/web from 2 to 0 (of system:authenticated)");
    // all that was said at the time, except of what is proved, which the report only counts
    let same = |text: &str| {
        text.lines()
            .filter(|line| line.contains("web-serves") || line.starts_with("    "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(same(rest), same(&verbose.out), "{rest}");
    assert!(rest.contains("1. ana scales Deployment/shop/web from 2 to 0"), "{rest}");

    let folder = folder("explain-invalid");
    let other = write(&folder, "other.json", "{\"kind\": \"Pod\"}");
    let ran = suture(&["explain", &other]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is no report") && ran.err.contains("suture check -o json"), "{}", ran.err);
    assert_eq!(suture(&["explain", folder.join("none.json").to_str().unwrap()]).code, 4);

    let mut hostile: Json = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    hostile["requests"][0]["text"] = "\u{1b}[2J\u{202e}".into();
    let hostile = write(&folder, "hostile.json", &hostile.to_string());
    let ran = suture(&["explain", &hostile]);
    assert!(!ran.out.contains(['\u{1b}', '\u{202e}']) && ran.out.contains("\\u{1b}[2J"), "{}", ran.out);
}

/// The page shows what is lost, and the exemption on it lets the same request pass.
#[test]
fn a_report_is_a_page_whose_exemption_lets_the_request_pass() {
    let (folder, check, path) = refused("explain-page");
    let page_path = folder.join("page.html");
    let ran = suture(&["explain", &path, "--html", page_path.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let page = fs::read_to_string(&page_path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{page}");
    for said in [
        "ana scales Deployment/shop/web from 2 to 0",
        "web-serves would break for Service/shop/web",
        "2 ready endpoints",
        "! 0 ready endpoints",
        "✕ ",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert_eq!(suture(&["explain", &path, "--html", "-"]).out.len(), page.len());

    let (_, rest) = page.split_once("<pre>apiVersion: suture.dev/v1alpha1").unwrap();
    let manifest = rest
        .split("</pre>")
        .next()
        .unwrap()
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let exemption = write(&folder, "exemption.yaml", &format!("apiVersion: suture.dev/v1alpha1{manifest}"));
    // from the page's making on for a while, and no longer
    let at = |time: &'static str| {
        let more = [exemption.as_str(), "--time", time];
        suture(&check.iter().map(String::as_str).chain(more).collect::<Vec<_>>())
    };
    let ran = at("2020-01-01T00:00:00Z");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("exempted: web-serves for Service/shop/web"), "{}", ran.out);
    assert_eq!(at("2100-01-01T00:00:00Z").code, 1);
}

/// The reports of a folder are shown on this machine, at the address that is printed and at no other.
#[cfg(feature = "serve")]
#[test]
fn the_reports_of_a_folder_are_shown_at_the_address_that_is_printed() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::{Command, Stdio};

    use suture_service::clock::Clock;
    use suture_service::report::Report;
    use suture_service::serve::reports::id::Ids;
    use suture_service::serve::reports::store::{Bounds, ReportStore};

    let (folder, _, path) = refused("reports");
    let kept = folder.join("kept");
    assert_eq!(suture(&["reports", "--reports", kept.to_str().unwrap()]).code, 4, "there is no store");
    let report: Report = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let now = Clock::now();
    let id = Ids::after(None, "a").next(now);
    let report = Report { id: Some(id.to_string()), time: Some(now.to_string()), ..report };
    let bounds = Bounds { bytes_max: 1 << 20, age_max: std::time::Duration::from_secs(60) };
    ReportStore::open(&kept).unwrap().put(&[(id, report)], bounds, now).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_suture"));
    let mut shown = command.args(["reports", "--reports"]).arg(&kept).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shown.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (host, key) = line.trim().split_once("http://").unwrap().1.split_once('/').unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let list = get(key);
    assert!(list.starts_with("HTTP/1.1 200") && list.contains("ana scales Deployment/shop/web"), "{list}");
    assert!(get(&format!("{key}reports/{id}/page")).contains("web-serves would break for Service/shop/web"));
    assert!(get(&format!("{key}invariants/page?span=7d")).contains("Not loaded</span> web-serves"));
    let elsewhere = get(&format!("{}x/", key.trim_end_matches('/')));
    assert!(elsewhere.starts_with("HTTP/1.1 404") && !elsewhere.contains("ana"), "{elsewhere}");
    shown.kill().unwrap();
    shown.wait().unwrap();
}

/// A report that `serve` keeps is opened by its id, whether its process still has the folder or not.
#[cfg(feature = "serve")]
#[test]
fn a_kept_report_is_opened_by_its_id() {
    use suture_service::clock::Clock;
    use suture_service::report::Report;
    use suture_service::serve::reports::id::Ids;
    use suture_service::serve::reports::socket;
    use suture_service::serve::reports::store::{Bounds, ReportStore};

    let (folder, _, path) = refused("explain-id");
    let kept = folder.join("kept");
    let report: Report = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let (ids, now) = (Ids::after(None, "a"), Clock::now());
    let (id, other) = (ids.next(now), ids.next(now).to_string());
    let report = Report { id: Some(id.to_string()), ..report };
    let bounds = Bounds { bytes_max: 1 << 20, age_max: std::time::Duration::from_secs(60) };
    let open = |id: &str, more: &[&str]| {
        suture(&[&["explain", "--id", id, "--reports", kept.to_str().unwrap()], more].concat())
    };
    assert_eq!(open(&other, &[]).code, 4, "there is no store");
    let store = ReportStore::open(&kept).unwrap();
    store.put(&[(id, report)], bounds, now).unwrap();
    let is_opened = || {
        let ran = open(&id.to_string(), &[]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.starts_with(&format!("report {id}\n")), "{}", ran.out);
        assert!(ran.out.contains("request: ana scales Deployment/shop/web from 2 to 0"), "{}", ran.out);
        let json: Json = serde_json::from_str(&open(&id.to_string(), &["-o", "json"]).out).unwrap();
        assert_eq!((json["id"].as_str(), json["decision"].as_str()), (Some(id.to_string().as_str()), Some("Denied")));
        let page = open(&id.to_string(), &["--html", "-"]).out;
        assert!(page.contains("web-serves would break for Service/shop/web"), "{page}");
        let ran = open(&other, &[]);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("no report") && ran.err.contains("killed before it was kept"), "{}", ran.err);
        assert_eq!(open("nonsense", &[]).code, 2);
    };
    assert_eq!(open(&id.to_string(), &[]).code, 4, "it is in use, and nobody answers");
    socket::serve(&kept, &store).unwrap();
    is_opened();
    // what its process leaves when it ends: the socket's thread holds on to the store until then
    let copy = folder.join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(kept.join("reports.redb"), copy.join("reports.redb")).unwrap();
    let ran = suture(&["explain", "--id", &id.to_string(), "--reports", copy.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}
