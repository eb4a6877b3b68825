//! The page of a denial in a browser: who was denied finds it by its id, sees what would have been lost, and does what it says
//! would be allowed. What is denied meanwhile comes to the list by itself. The page needs nothing from elsewhere, and axe-core
//! finds no serious fault in it.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says where pictures are"
)]

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use suture_e2e::browser::{Browser, Scheme};
use suture_e2e::objects::{invariant, list, namespace, pod_spec, serves, service, workload};
use suture_e2e::ports::Port;
use suture_e2e::reports_page::{ReportsPage, keeping_reports, report_id, stand_in};
use suture_e2e::{Cluster, Nodes, Options, suture, wait};

/// How long it may take until pods serve, the API server knows where a Service leads, and a report is listed.
const KNOWN: Duration = Duration::from_secs(30);
/// Where pictures are left to be looked at.
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/page");
/// The windows: a desk and a phone, in pixels.
const WINDOWS: [(&str, u32, u32); 2] = [("wide", 1280, 1600), ("narrow", 390, 1600)];

/// What is wider than the window, where the page can be moved sideways.
const OVERFLOWING: &str = "
    const root = document.documentElement;
    const beyond = found => found.getBoundingClientRect().right > root.clientWidth + 1 && !found.closest('.scroll, pre');
    const all = root.scrollWidth > root.clientWidth ? [...document.querySelectorAll('main *')].filter(beyond) : [];
    return all.map(found => `${found.tagName} ${found.className} ${found.textContent.trim().slice(0, 60)}`)";

#[test]
fn a_denial_leads_to_its_page_which_says_what_to_do_instead() {
    let options = Options { users: vec![suture::user()], nodes: Nodes::new(2), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    let port = Port::reserve().expect("a port");
    let invariants = vec![invariant("service-keeps-endpoints")];
    let suture = keeping_reports(&cluster, &port, invariants).expect("suture");
    let web = workload("Deployment", "shop", "web", 2, &pod_spec());
    admin.create(&list(vec![namespace("shop"), service("shop", "web"), web])).expect("objects");
    stand_in(&admin, port.number()).expect("the Service of reports");
    suture.register(&admin).expect("registered");
    let serving = || {
        let pods = admin.json(&["get", "pods", "--namespace=shop"]).map_err(|error| error.to_string())?;
        let ready = pods["items"].as_array().into_iter().flatten().filter(|pod| serves(pod)).count();
        if ready == 2 { Ok(()) } else { Err(format!("{ready} pods serve")) }
    };
    wait::until("pods that serve", KNOWN, serving).expect("they serve");
    let scaled = |replicas: &str| {
        let scale = ["scale", "deployment/web", "--namespace=shop", &format!("--replicas={replicas}")];
        admin.run(&scale).expect("kubectl")
    };
    let denied = wait::until("a denial", KNOWN, || {
        let asked = scaled("0");
        assert!(!asked.success, "the Service would have nobody left");
        if asked.stderr.contains("--id ") { Ok(asked.stderr) } else { Err(asked.stderr) }
    });
    let denied = denied.expect("denied");
    let id = report_id(&denied).expect("an id");
    let page = wait::until("the reports", KNOWN, || ReportsPage::open(&cluster, "admin")).expect("a page");
    let link = format!("a[href=\"reports/{id}/page\"]");
    wait::until("the report", KNOWN, || {
        let (status, text) = page.get("").map_err(|error| error.to_string())?;
        if text.contains(&id) { Ok(()) } else { Err(format!("{status} {text}")) }
    })
    .expect("it is listed");

    let mut instead = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        let browser = Browser::start(&cluster.folder().join(format!("{scheme:?}")), scheme).expect("a browser");
        browser.open(&page.url()).expect("the list");
        seen(&browser, &format!("list-{scheme:?}"));
        comes_to_the_list(&browser, &scaled("0").stderr);
        browser.click(&link).expect("the link of its id");
        let told = browser.texts("h1").expect("a heading").concat();
        assert!(told.contains("Denied") && told.contains("from 2 to 0"), "{told}");
        let lost = browser.texts("figure:last-of-type svg g.lost").expect("what is lost");
        assert!(lost.iter().any(|object| object.contains("Pod")), "{lost:?}");
        assert!(browser.texts("figure:first-of-type svg g.lost").expect("nothing").is_empty());
        instead = browser.texts("section.verdict li").expect("what is allowed");
        seen(&browser, &format!("report-{scheme:?}"));
        let grounds = "return getComputedStyle(document.body).backgroundColor";
        let ground = browser.run(grounds, &json!([])).expect("a colour").to_string();
        let light: u32 =
            ground.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse::<u32>().ok()).take(3).sum();
        assert_eq!(light > 384, scheme == Scheme::Light, "{scheme:?}: {ground}");
        browser.open(&format!("{}invariants/page", page.url())).expect("the invariants");
        assert!(browser.texts("main").expect("its text").concat().contains("service-keeps-endpoints"));
        seen(&browser, &format!("invariants-{scheme:?}"));
    }
    println!("  pictures are in {PICTURES}");

    let number = instead.iter().find_map(|text| text.strip_prefix("scale it to "));
    let number = number.unwrap_or_else(|| unreachable!("no other number in {instead:?}"));
    assert!(scaled(number).success, "it is allowed to scale it to {number}");
}

/// What is denied while the list is open comes to it, and it is told.
fn comes_to_the_list(browser: &Browser, denied: &str) {
    let id = report_id(denied).expect("an id");
    let list = "return document.getElementById('list').innerHTML";
    wait::until("what is new in the list", KNOWN, || {
        let list = browser.run(list, &json!([])).map_err(|error| error.to_string())?.to_string();
        if list.contains(&id) { Ok(()) } else { Err(list) }
    })
    .expect("it comes");
    assert_eq!(browser.texts("#news").expect("what is told"), ["1 new report."]);
}

/// Looks at a page at each width: whether anybody can use it, and whether it fits.
fn seen(browser: &Browser, name: &str) {
    std::fs::create_dir_all(PICTURES).expect("a folder");
    for (width_name, width, height) in WINDOWS {
        browser.resize(width, height).expect("a window");
        browser.picture(&Path::new(PICTURES).join(format!("{name}-{width_name}.png"))).expect("a picture");
        assert_eq!(browser.barriers().expect("axe"), [""; 0], "{name}, {width_name}");
        assert_eq!(browser.asked_of_others().expect("what it asked"), json!([]), "{name}, {width_name}");
        assert_eq!(browser.run(OVERFLOWING, &json!([])).expect("whether it fits"), json!([]), "{name}, {width_name}");
    }
}
