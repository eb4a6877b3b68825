//! Who replays the suites: on which cluster, with which resources, and how the API server is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use suture_e2e::api::Reply;
use suture_e2e::{Api, Cluster, wait};

/// Far more than it takes, so that only what never comes about fails.
pub(super) const SETTLED_MAX: Duration = Duration::from_secs(60);

/// What a replica says that does not judge.
const IDLE: [&str; 2] = ["no replica is active yet", "this replica has just become active"];

/// A resource of the API server.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) root: String,
    pub(super) plural: String,
    pub(super) namespaced: bool,
    pub(super) status: bool,
}

impl Place {
    pub(super) fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
        } else {
            format!("{}/{}", self.root, self.plural)
        }
    }
}

/// Who loads the cases into a cluster and sends their requests.
pub(super) struct Player {
    pub(super) cluster: Cluster,
    /// An administrator, who asks for others.
    pub(super) admin: Api,
    /// Suture's own user, whom nobody judges.
    pub(super) own: Api,
    pub(super) places: BTreeMap<(String, String), Place>,
    /// What was there before any suite, by collection and name.
    pub(super) baseline: BTreeSet<String>,
}

impl Player {
    /// What comes of a request, asked again while nobody judges: on a busy machine a Lease runs out before it is renewed.
    pub(super) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply, String> {
        let judged = wait::until("a judge", SETTLED_MAX, || {
            let reply = self.admin.call(method, path, body).map_err(|error| error.to_string())?;
            let nobody = IDLE.iter().any(|why| reply.message().contains(why));
            if nobody { Err(reply.message().to_owned()) } else { Ok(reply) }
        });
        judged.map_err(|error| error.to_string())
    }
}
