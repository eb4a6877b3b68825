//! What of a pod's spec can be changed in place and ends the pod or restarts its containers.
//!
//! Source: `pkg/apis/core/validation/validation.go` (`ValidatePodUpdate`): images of containers and init containers,
//! `activeDeadlineSeconds`, more tolerations (`fields/taints.rs`), and a negative `terminationGracePeriodSeconds` to 1, which
//! decides only how long a deletion takes; `ValidatePodResize`: resources.

use crate::object::Object;
use crate::value::Val;

/// Whether the kubelet ends a pod at some moment: when it has run for its `activeDeadlineSeconds` it is Failed
/// (`pkg/kubelet/active_deadline.go`, `ShouldEvict`).
pub fn has_deadline(pod: &Object) -> bool {
    pod.key.kind.is("Pod") && !pod.finished() && pod.val().at_some(&["spec", "activeDeadlineSeconds"]).is_some()
}

/// Whether the kubelet restarts containers of a pod that was written so (`pkg/kubelet/kuberuntime/kuberuntime_manager.go`,
/// `computePodActions`): another image, or other resources that the container's resize policy restarts it for. Which init
/// containers run all the time is not told apart.
pub fn restarts_containers(old: &Object, new: &Object) -> bool {
    let of_pod = ["spec", "resources"];
    let resized = old.val().at_some(&of_pod) != new.val().at_some(&of_pod);
    ["containers", "initContainers"].iter().any(|part| {
        let before = old.val().items_at(&["spec", part]);
        new.val().items_at(&["spec", part]).iter().any(|container| {
            let known = before.iter().find(|known| known.get("name") == container.get("name"));
            known.is_some_and(|known| {
                known.get("image") != container.get("image")
                    || restarting(container)
                        .any(|resource| resized || resource_of(known, resource) != resource_of(container, resource))
            })
        })
    })
}

/// The resources for which a container is restarted when they change.
fn restarting(container: &Val) -> impl Iterator<Item = &str> {
    let policies = container.items_at(&["resizePolicy"]).iter();
    let restarting = policies
        .filter(|policy| policy.str_at(&["restartPolicy"]).is_some_and(|restart| &**restart == "RestartContainer"));
    restarting.filter_map(|policy| policy.str_at(&["resourceName"])).map(|name| &**name)
}

/// What a container requests of a resource, and its limit.
fn resource_of<'v>(container: &'v Val, resource: &str) -> [Option<&'v Val>; 2] {
    ["requests", "limits"].map(|part| container.at_some(&["resources", part, resource]))
}
