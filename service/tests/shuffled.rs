//! `suture check -o json` on copies of the states of `tests/cases`, shuffled in themselves and over files: the same bytes,
//! durations aside.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what the test itself gets wrong may end it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use suture_model::value::Val;
use suture_service::suite::documents::{documents, find, missing_templates};
use suture_specs::spec::{FileOrInline, ObjectRef, Step, Suite, Verb};

/// How often a state is shuffled.
const SHUFFLES: usize = 3;
/// Fewer suites than these would say little.
const SUITES_MIN: usize = 15;

/// A linear congruential generator: the same order on every machine.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|at| items.swap(at, self.below(at + 1)));
    }
}

/// The inline objects of a suite, each a document; `None` where some are in files.
fn inline(references: &[FileOrInline]) -> Option<Vec<String>> {
    let text = |reference: &FileOrInline| match reference {
        FileOrInline::Inline(val) => Some(serde_json::to_string(val).unwrap()),
        FileOrInline::File(_) => None,
    };
    references.iter().map(text).collect()
}

/// The same as one text of YAML documents.
fn joined(references: &[FileOrInline]) -> Option<String> {
    Some(format!("---\n{}", inline(references)?.join("\n---\n")))
}

/// The arguments that ask for a step, where the command line has some for it.
fn arguments(step: &Step, folder: &Path) -> Option<Vec<String>> {
    let named = |o: &ObjectRef| {
        let parts = [Some(&*o.kind.kind), o.namespace.as_deref(), Some(&*o.name)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    };
    let plain = step.propagation_policy.is_none() && step.preconditions.is_none() && step.subresource.is_none();
    match step.verb().ok().filter(|_| plain)? {
        Verb::Delete(object) => Some(vec!["--delete".to_owned(), named(object)]),
        Verb::Scale(object, replicas) => Some(vec!["--scale".to_owned(), format!("{}={replicas}", named(object))]),
        Verb::Create(manifest) | Verb::Update(manifest) => {
            Some(vec!["--apply".to_owned(), write(folder, "manifest.yaml", &serde_json::to_string(manifest).unwrap())])
        }
        _ => None,
    }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A fresh folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("orders").join(name);
    _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A state in a folder of its own: the documents dealt over files, some of them as Lists.
fn lay_out(name: &str, documents: &[String], random: &mut Lcg) -> String {
    let folder = folder(name);
    let mut files: Vec<Vec<&str>> = vec![Vec::new(); 1 + random.below(4)];
    for document in documents {
        let at = random.below(files.len());
        files[at].push(document);
    }
    for (at, file) in files.iter().enumerate().filter(|(_, file)| !file.is_empty()) {
        let text = match random.below(2) {
            0 => format!("---\n{}", file.join("\n---\n")),
            _ => format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{}]}}"#, file.join(",")),
        };
        // the order of the names is not the one in which they were filled
        write(&folder, &format!("{}{at}.yaml", random.below(9)), &text);
    }
    folder.to_str().unwrap().to_owned()
}

/// What `check` prints for the first step of the suite's first case that the command line can ask for, durations aside.
fn verdicts(suite: &Suite, random: &mut Lcg) -> Option<Vec<String>> {
    let id = Path::new(&*suite.origin.file).file_stem()?.to_str()?.to_owned();
    let spec = &suite.spec;
    if !missing_templates(&documents(suite).ok()?).is_empty() {
        return None;
    }
    let (objects, policy) = (inline(&spec.state)?, folder(&format!("{id}-policy")));
    let asked = spec.cases.iter().find_map(|case| match case.steps.as_slice() {
        [step, ..] if case.set.is_empty() && case.unset.is_empty() => arguments(step, &policy),
        _ => None,
    })?;
    let invariants = write(&policy, "invariants.yaml", &joined(&spec.invariants)?);
    let mut flags = vec!["check".to_owned(), "-o".to_owned(), "json".to_owned(), "--verbose".to_owned()];
    flags.extend(["--profile".to_owned(), "none".to_owned(), "--invariants".to_owned(), invariants]);
    if !spec.adapters.is_empty() {
        let adapters = write(&policy, "adapters.yaml", &joined(&spec.adapters)?);
        flags.extend(["--adapters".to_owned(), adapters]);
    }
    let mut printed = Vec::new();
    for copy in 0..=SHUFFLES {
        let mut objects = objects.clone();
        if copy > 0 {
            random.shuffle(&mut objects);
        }
        let state = lay_out(&format!("{id}-{copy}"), &objects, random);
        let mut command = Command::new(env!("CARGO_BIN_EXE_suture"));
        let ran = command.args(&flags).args(&asked).args(["--state", &state]).stdin(Stdio::null()).output().unwrap();
        let code = ran.status.code().unwrap();
        assert!([0, 1, 3].contains(&code), "{id}: {asked:?} gives {code}: {}", String::from_utf8_lossy(&ran.stderr));
        let text = String::from_utf8(ran.stdout).unwrap();
        let json: Val = serde_json::from_str(&text).unwrap();
        assert!(json.str_at(&["decision"]).is_some(), "{id}: {text}");
        printed.push(text.lines().filter(|line| !line.contains("Micros\"")).collect::<Vec<_>>().join("\n"));
    }
    Some(printed)
}

#[test]
fn shuffled_copies_of_a_state_get_the_same_bytes() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    let mut random = Lcg(7);
    let mut compared = 0;
    for suite in find(&[cases]).unwrap() {
        let Some(printed) = verdicts(&suite, &mut random) else { continue };
        compared += 1;
        for copy in &printed[1..] {
            assert_eq!(*copy, printed[0], "{}", suite.origin.file);
        }
    }
    println!("{compared} suites, {SHUFFLES} copies each");
    assert!(compared >= SUITES_MIN, "only {compared} suites could be asked about");
}
