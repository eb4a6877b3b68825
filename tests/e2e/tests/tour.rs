//! The commands of `docs/tour.md`, typed one block after the other on a real control plane: each ends with the exit code that
//! its block names, and prints the lines that stand below it.
#![expect(clippy::expect_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use suture_e2e::suture::program;
use suture_e2e::{Cluster, Nodes, Options};

/// The tour.
const TOUR: &str = include_str!("../../../docs/tour.md");

/// A block of commands.
struct Block<'t> {
    /// What is typed.
    commands: String,
    /// The exit code, from `exit=CODE` after the language.
    code: i32,
    /// What is printed, among other things; `…` stands for anything.
    shown: Vec<&'t str>,
}

/// The blocks, in order.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => {
                fence = Some(language);
                if let Some(rest) = language.strip_prefix("sh") {
                    let code = rest.trim().strip_prefix("exit=").map_or(0, |code| code.parse().expect("a number"));
                    found.push(Block { commands: String::new(), code, shown: Vec::new() });
                }
            }
            (Some(_), Some(_)) => fence = None,
            (Some("text"), None) => found.last_mut().expect("commands before it").shown.push(line),
            (Some(language), None) if language.starts_with("sh") => {
                let commands = &mut found.last_mut().expect("a block").commands;
                commands.push_str(line);
                commands.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// Whether a line is as the tour shows it.
fn is_shown(line: &str, shown: &str) -> bool {
    let mut rest = line;
    for (at, part) in shown.split('…').enumerate() {
        match rest.find(part) {
            Some(place) if at > 0 || place == 0 => rest = rest.get(place + part.len()..).unwrap_or_default(),
            _ => return false,
        }
    }
    rest.is_empty() || shown.ends_with('…')
}

#[test]
fn whoever_types_the_tour_sees_what_it_says() {
    let cluster = Cluster::start(&Options { nodes: Nodes::new(3), ..Options::default() }).expect("cluster");
    let folder = cluster.folder().join("tour");
    fs::create_dir(&folder).expect("a folder");
    let kubectl = cluster.kubectl("admin").expect("kubectl");
    let parent = |path: &Path| path.parent().expect("a folder").to_owned();
    let suture = fs::canonicalize(program()).expect("suture is built");
    let known = env::var_os("PATH").unwrap_or_default();
    let path = [parent(&suture), parent(&kubectl.program)].into_iter().chain(env::split_paths(&known));
    let path = env::join_paths(path).expect("a path");
    let all = blocks(TOUR);
    assert!(all.len() > 8, "the tour has {} blocks", all.len());
    for Block { commands, code, shown } in all {
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &commands]).current_dir(&folder).env("PATH", &path);
        bash.env("KUBECONFIG", &kubectl.kubeconfig).env("KUBECACHEDIR", &kubectl.cache).env("KUBERC", "off");
        let output = bash.output().expect("bash");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{commands}{printed}{said}");
        assert_eq!(output.status.code(), Some(code), "{commands}{printed}{said}");
        let missing = shown.iter().find(|shown| !printed.lines().chain(said.lines()).any(|line| is_shown(line, shown)));
        assert_eq!(missing, None, "{commands}{printed}{said}");
    }
}
