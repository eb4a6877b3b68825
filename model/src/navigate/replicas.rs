//! How many pods an object wants.

use super::placement::daemon_nodes;
use crate::controllers::replicas::stated_replicas;
use crate::fields::finished;
use crate::kinds::KindTraits;
use crate::object::Object;
use crate::state::State;

/// How many pods an object wants at a time; `None` when it makes none, or only through Jobs (CronJob).
///
/// Defaults are those of `pkg/apis/apps/v1/defaults.go` and `pkg/apis/batch/v1/defaults.go`; a Job wants no more pods
/// than completions are left (`pkg/controller/job/job_controller.go`, `manageJob`).
pub fn wanted_replicas(state: &State, object: &Object) -> Option<i64> {
    let val = object.val();
    match (&*object.key.kind.group, &*object.key.kind.kind) {
        ("", "Pod") => Some(i64::from(!finished(object))),
        ("apps", "DaemonSet") => i64::try_from(daemon_nodes(state, object).len()).ok(),
        ("batch", "Job") if finished(object) || val.bool_at(&["spec", "suspend"]) == Some(true) => Some(0),
        ("batch", "Job") => {
            let parallel = val.int_at(&["spec", "parallelism"]).unwrap_or(1);
            let done = val.int_at(&["status", "succeeded"]).unwrap_or(0);
            let left = val.int_at(&["spec", "completions"]).map_or(parallel, |all| all.saturating_sub(done).max(0));
            Some(parallel.min(left))
        }
        _ if object.key.kind.has(KindTraits::has_scale) => Some(stated_replicas(object)),
        _ => state.adapter(object)?.replicas,
    }
}
