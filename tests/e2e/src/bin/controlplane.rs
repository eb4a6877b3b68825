//! A control plane to try things on: starts one, says how to reach it, and holds it until Ctrl-C.

use std::env;
use std::thread;

use suture_e2e::{Cluster, Error, Kubectl, Nodes, Options, Part, User, wait};

/// Without an argument.
const NODES_DEFAULT: usize = 5;

fn main() {
    let count = match env::args().nth(1).map(|text| text.parse()) {
        None => NODES_DEFAULT,
        Some(Ok(count)) => count,
        Some(Err(_)) => {
            eprintln!("usage: controlplane [NODES]");
            std::process::exit(2);
        }
    };
    if let Err(error) = run(count) {
        eprintln!("controlplane: {error}");
        std::process::exit(1);
    }
}

fn run(count: usize) -> Result<(), Error> {
    let users = vec![User::new("alice", &[]), User::service_account("default", "operator")];
    let options = Options { users: users.clone(), nodes: Nodes::new(count), ..Options::default() };
    let (cluster, took) = wait::timed(|| Cluster::start(&options));
    let cluster = cluster?;
    print!("{}", describe(&cluster, &users)?);
    println!("ready in {:.1} s; Ctrl-C ends it", took.as_secs_f64());
    // the watchdog cleans up after the signal that ends this process
    loop {
        thread::park();
    }
}

fn describe(cluster: &Cluster, users: &[User]) -> Result<String, Error> {
    let mut lines = vec![
        format!("Kubernetes {} at {}", cluster.version(), cluster.server()),
        format!("folder {}", cluster.folder().display()),
    ];
    for part in Part::ALL {
        let process = cluster.process(part)?;
        lines.extend(process.pid().map(|pid| format!("part {part} pid {pid} log {}", process.log().display())));
    }
    for user in [&[User::admin()], users].concat() {
        let Kubectl { program, kubeconfig, .. } = cluster.kubectl(&user.name)?;
        lines.push(format!("user {}: {} --kubeconfig {}", user.name, program.display(), kubeconfig.display()));
    }
    Ok(lines.join("\n") + "\n")
}
