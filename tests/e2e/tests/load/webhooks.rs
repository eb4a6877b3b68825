//! Who is asked by the API server, and how somebody else comes to be asked.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use suture_e2e::authority::{Authority, HOST};
use suture_e2e::objects::ingress;
use suture_e2e::ports::Port;
use suture_e2e::process::Process;
use suture_e2e::{Cluster, Kubectl, Suture, suture, wait};

use crate::fill::SUFFIX;

/// Until the API server has heard of another configuration from its watch.
const SWITCHED: Duration = Duration::from_millis(1_500);
/// Far more than it takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(120);

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    Nobody,
    AllowEverything,
    Suture,
}

impl Asked {
    pub const ALL: [Self; 3] = [Self::Nobody, Self::AllowEverything, Self::Suture];

    pub fn name(self) -> &'static str {
        match self {
            Self::Nobody => "none",
            Self::AllowEverything => "allow-everything",
            Self::Suture => "suture",
        }
    }
}

/// All that may be asked.
pub struct Webhooks {
    pub suture: Suture,
    _allow: Process,
    _port: Port,
    url: String,
    bundle: String,
}

impl Webhooks {
    /// Starts the one that allows everything beside Suture.
    pub fn new(cluster: &Cluster, suture: Suture) -> Self {
        let authority = Authority::new().expect("authority");
        let identity = authority.identity().expect("identity");
        let file = |name: &str, text: &str| {
            let path = cluster.folder().join(name);
            fs::write(&path, text).expect("file");
            path.display().to_string()
        };
        let bundle = file("allow-authority.pem", authority.certificate());
        let port = Port::reserve().expect("port");
        let arguments =
            vec![port.number().to_string(), file("allow.crt", &identity.certificate), file("allow.key", &identity.key)];
        let allow = cluster.attach("allow", Path::new(env!("CARGO_BIN_EXE_allow")), arguments);
        allow.launch().expect("launch");
        let url = format!("https://{HOST}:{}", port.number());
        Self { suture, _allow: allow, _port: port, url, bundle }
    }

    /// Has the API server ask somebody else.
    pub fn switch(&self, admin: &Kubectl, asked: Asked) {
        match asked {
            Asked::Nobody => self.suture.unregister(admin).expect("unregister"),
            Asked::Suture => self.suture.register(admin).expect("register"),
            Asked::AllowEverything => {
                // the same rules and conditions
                let manifest = suture::run(&["manifests", "webhook", "--url", &self.url, "--ca-bundle", &self.bundle]);
                admin.apply(&manifest.expect("manifest")).expect("register");
            }
        }
        thread::sleep(SWITCHED);
        // an Ingress that takes a host: only Suture says no
        let probe = ingress("default", "probe", &format!("web-0{SUFFIX}")).to_string();
        let reached = wait::until("the switch", SETTLED_MAX, || {
            let output = admin
                .run_with(&["create", "--dry-run=server", "--filename=-"], &probe)
                .map_err(|error| error.to_string())?;
            if output.success == (asked != Asked::Suture) { Ok(()) } else { Err(output.stderr) }
        });
        reached.expect("switched");
    }
}
