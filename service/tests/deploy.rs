//! What `service/deploy` says agrees with the program: the chart's rights and definitions are those that `suture manifests` prints,
//! its flags exist, and images are named by version. `SUTURE_ACCEPT=1` writes what is printed.
#![cfg(feature = "serve")]
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use run::{ROOT, folder, run, suture};

fn deploy(name: &str) -> std::path::PathBuf {
    Path::new(ROOT).join("service/deploy").join(name)
}

/// Compares a file with what the program prints.
fn agrees(name: &str, arguments: &[&str]) {
    let printed = suture(arguments);
    assert_eq!(printed.code, 0, "{}", printed.err);
    if std::env::var_os("SUTURE_ACCEPT").is_some() {
        fs::write(deploy(name), &printed.out).unwrap();
    }
    let kept = fs::read_to_string(deploy(name)).unwrap();
    assert!(kept == printed.out, "{name} is not what `suture {}` prints: SUTURE_ACCEPT=1", arguments.join(" "));
}

#[test]
fn the_chart_grants_what_the_program_says_that_it_needs() {
    for profile in ["baseline", "strict"] {
        agrees("chart/files/rbac.yaml", &["manifests", "rbac", "--profile", profile]);
    }
    agrees("chart/crds/suture.yaml", &["manifests", "crds"]);
}

#[test]
fn the_chart_names_flags_that_exist() {
    let help = suture(&["serve", "--help"]).out;
    let text = fs::read_to_string(deploy("chart/templates/deployment.yaml")).unwrap();
    let flags: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix("- --")?.split(['=', ' ']).next()).collect();
    assert!(flags.len() > 8, "{flags:?}");
    for flag in flags {
        // a switch ends its line
        let is_told = [' ', '\n'].iter().any(|end| help.contains(&format!("--{flag}{end}")));
        assert!(is_told, "--{flag}");
    }
}

#[test]
fn images_are_named_by_version() {
    let text = fs::read_to_string(deploy("Containerfile")).unwrap();
    let bases: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(bases.len(), 2, "one that builds and one that runs");
    for base in bases {
        let tag = base.split_whitespace().next().unwrap().rsplit_once(':').map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag != "latest"), "{base}");
    }
    let minimum = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let minimum = minimum.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().replace('"', "");
    assert!(text.contains(&format!("rust:{minimum}-")), "the image builds with Rust {minimum}");
}

#[test]
fn a_link_named_like_a_plugin_says_what_kubectl_users_type() {
    let folder = folder("plugin");
    let link = folder.join("kubectl-suture");
    symlink(env!("CARGO_BIN_EXE_suture"), &link).unwrap();
    let help = run(Command::new(&link).args(["check", "--help"]));
    assert_eq!(help.code, 0, "{}", help.err);
    assert!(help.out.contains("Usage: kubectl suture check"), "{}", help.out);
    let wrong = run(Command::new(&link).arg("chek"));
    assert!(wrong.code == 2 && wrong.err.contains("kubectl suture"), "{}", wrong.err);
    assert!(suture(&["check", "--help"]).out.contains("Usage: suture check"));
}
