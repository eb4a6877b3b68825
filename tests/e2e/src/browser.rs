//! A headless Chromium by its WebDriver (<https://www.w3.org/TR/webdriver2/>).

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::error::Error;
use crate::ports::Port;
use crate::wait;

/// Prints where the programs are.
const FIND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../browser/find");
/// How long the driver may take to listen.
const LISTENS: Duration = Duration::from_secs(20);
/// How long the answer of a page may take.
const ANSWERS: Duration = Duration::from_secs(20);
/// What axe says of a page that a reader with a screen reader or a keyboard cannot use.
const SERIOUS: [&str; 2] = ["serious", "critical"];

/// How a reader likes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark letters on light ground.
    Light,
    /// The other way round.
    Dark,
}

/// Under this name an element is in what a driver says (section 12, "Elements").
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Driver,
    /// The path of its session.
    session: String,
    axe: String,
}

/// The process that drives browsers, and a client of it.
#[derive(Debug)]
struct Driver {
    process: Child,
    runtime: Runtime,
    client: Client<HttpConnector, Full<Bytes>>,
    address: String,
}

impl Driver {
    /// What it answers.
    fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, Error> {
        let body = if method == Method::POST { body.to_string() } else { String::new() };
        let request = Request::builder().method(method).uri(format!("{}{path}", self.address));
        let request = request.header("content-type", "application/json").body(Full::from(body));
        let request = request.map_err(|error| failed(&error))?;
        let answer = self.runtime.block_on(async {
            let response = self.client.request(request).await.map_err(|error| failed(&error))?;
            let is_good = response.status().is_success();
            let body = response.into_body().collect().await.map_err(|error| failed(&error))?.to_bytes();
            Ok::<_, Error>((is_good, body))
        });
        let (is_good, body) = answer?;
        let mut answer: Value = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
        if is_good { Ok(answer["value"].take()) } else { Err(failed(&answer)) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Browser {
    /// Starts one whose profile is in a folder. Installs Chromium where it is missing.
    pub fn start(folder: &Path, scheme: Scheme) -> Result<Self, Error> {
        let found = Command::new(FIND).stderr(Stdio::inherit()).output().map_err(Error::io("finding a browser"))?;
        let found: Value = serde_json::from_slice(&found.stdout).map_err(|error| failed(&error))?;
        let place = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        let axe = fs::read_to_string(place("axe")).map_err(Error::io("reading axe-core"))?;
        let port = Port::reserve()?.number();
        let mut command = Command::new(place("driver"));
        command.arg(format!("--port={port}")).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(Error::io("starting chromedriver"))?;
        let runtime = Runtime::new().map_err(Error::io("starting a runtime"))?;
        let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        let driver = Driver { process, runtime, client, address: format!("http://127.0.0.1:{port}") };
        // 0 is dark, 1 is light (`third_party/blink/public/mojom/css/preferred_color_scheme.mojom`)
        let preferred = i32::from(scheme == Scheme::Light);
        let arguments = [
            "--headless=new".to_owned(),
            // in a container there is no other
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!("--user-data-dir={}", folder.display()),
            // what the browser itself asks of its makers does not leave this machine
            "--proxy-server=127.0.0.1:1".to_owned(),
            format!("--blink-settings=preferredColorScheme={preferred}"),
        ];
        let options = json!({"binary": place("chromium"), "args": arguments});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let started = wait::until("chromedriver", LISTENS, || {
            driver.call(Method::POST, "/session", &wanted).map_err(|error| error.to_string())
        })?;
        let session = format!("/session/{}", started["sessionId"].as_str().unwrap_or_default());
        Ok(Self { driver, session, axe })
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.driver.call(Method::POST, &format!("{}{path}", self.session), body)
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&self, url: &str) -> Result<(), Error> {
        self.post("/url", &json!({"url": url})).map(drop)
    }

    /// Makes the window so large, in pixels, and waits until the page is laid out anew.
    pub fn resize(&self, width: u32, height: u32) -> Result<(), Error> {
        self.post("/window/rect", &json!({"width": width, "height": height}))?;
        let painted = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(null)))";
        self.post("/execute/async", &json!({"script": painted, "args": []})).map(drop)
    }

    /// Clicks what a CSS selector finds, once it is there; where that is a link, it is followed.
    pub fn click(&self, selector: &str) -> Result<(), Error> {
        let clicked = wait::until(selector, ANSWERS, || {
            let text = |error: Error| error.to_string();
            let found = self.post("/element", &json!({"using": "css selector", "value": selector})).map_err(text)?;
            let element = found[ELEMENT].as_str().ok_or_else(|| found.to_string())?;
            self.post(&format!("/element/{element}/click"), &json!({})).map_err(text)
        });
        clicked.map(drop)
    }

    /// The texts of what a CSS selector finds.
    pub fn texts(&self, selector: &str) -> Result<Vec<String>, Error> {
        let script = "return [...document.querySelectorAll(arguments[0])].map(found => found.textContent.trim())";
        let texts = self.run(script, &json!([selector]))?;
        Ok(texts.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// What a script returns.
    pub fn run(&self, script: &str, arguments: &Value) -> Result<Value, Error> {
        self.post("/execute/sync", &json!({"script": script, "args": arguments}))
    }

    /// A picture of the window, as PNG.
    pub fn picture(&self, path: &Path) -> Result<(), Error> {
        let picture = self.driver.call(Method::GET, &format!("{}/screenshot", self.session), &Value::Null)?;
        let png = BASE64.decode(picture.as_str().unwrap_or_default()).map_err(|error| failed(&error))?;
        fs::write(path, png).map_err(Error::io("writing a picture"))
    }

    /// What axe-core finds that is serious, a line each.
    pub fn barriers(&self) -> Result<Vec<String>, Error> {
        let done = "const done = arguments[arguments.length - 1]";
        let script = format!("{}; {done}; axe.run().then(done, error => done({{error: `${{error}}`}}))", self.axe);
        let found = self.post("/execute/async", &json!({"script": script, "args": []}))?;
        let Some(violations) = found["violations"].as_array() else { return Err(failed(&found)) };
        let is_serious = |found: &&Value| found["impact"].as_str().is_some_and(|impact| SERIOUS.contains(&impact));
        let told = |found: &Value| format!("{} {}: {}", found["impact"], found["id"], found["nodes"]);
        Ok(violations.iter().filter(is_serious).map(told).collect())
    }

    /// What the page asked of others than who served it, whether it got an answer or not.
    pub fn asked_of_others(&self) -> Result<Value, Error> {
        let script = "return performance.getEntries().map(entry => entry.name).filter(name => name.includes(':'))
            .filter(name => new URL(name).origin !== location.origin)";
        self.run(script, &json!([]))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // ends the browser
        _ = self.driver.call(Method::DELETE, &self.session, &Value::Null);
    }
}

fn failed(error: &impl ToString) -> Error {
    Error::io("driving a browser")(std::io::Error::other(error.to_string()))
}
