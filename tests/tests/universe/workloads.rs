//! Random workloads with their pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, custom resources, bare pods.

use serde_json::{Value, json};

use super::draft::{Draft, reference};
use super::focus::Focus;

/// Adds the workload of this number, with its pods as far as any are left.
pub fn workload(draft: &mut Draft<'_>, at: usize) {
    match draft.random.below(20) {
        0..=5 => deployment(draft, at, None),
        6..=7 => replica_set(draft, at),
        8..=13 => stateful_set(draft, at, None),
        14..=15 => daemon_set(draft, at),
        _ => custom_resource(draft, at),
    }
}

/// Adds pods of one application that nothing controls.
pub fn bare_pods(draft: &mut Draft<'_>, number: usize) {
    let ns = draft.ns();
    let app = draft.app();
    for at in 0..number {
        let template = template(draft, app);
        pod(draft, &ns, &format!("bare{at}"), &template, None, &[]);
    }
}

/// The template of a workload's pods.
pub fn template(draft: &mut Draft<'_>, app: &str) -> Value {
    let mut labels = json!({"app": app});
    if draft.random.chance(35) {
        labels["ver"] = json!("v1");
    }
    let mut container = json!({"name": "c", "image": "i:1"});
    if draft.random.chance(if draft.tight { 70 } else { 12 }) {
        container["resources"] = json!({"requests": {"cpu": *draft.random.pick(&["500m", "1", "1500m"])}});
    }
    let referring = if draft.focus == Focus::References { 40 } else { 5 };
    if draft.random.chance(referring) {
        container["envFrom"] = json!([{"secretRef": {"name": "s1"}}]);
    }
    if draft.random.chance(referring / 2) {
        let optional = draft.random.chance(20);
        container["env"] =
            json!([{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "c1", "key": "k", "optional": optional}}}]);
    }
    let mut spec = json!({"containers": [container]});
    if draft.random.chance(referring / 3) {
        spec["serviceAccountName"] = json!("sa");
    }
    if draft.random.chance(if draft.focus == Focus::Room { 40 } else { referring / 4 }) {
        spec["priorityClassName"] = json!("high");
    }
    if draft.random.chance(if draft.focus == Focus::Claims { 20 } else { 3 }) {
        spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "loose"}}]);
    }
    let constrained = match draft.focus {
        _ if draft.tight => 30,
        Focus::Faults | Focus::Selectors => 14,
        _ => 6,
    };
    if draft.random.chance(constrained) {
        spec["nodeSelector"] = json!({"disk": "ssd"});
    }
    if draft.random.chance(constrained) {
        let topology = *draft.random.pick(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
        let kind = if draft.random.chance(85) { "podAntiAffinity" } else { "podAffinity" };
        spec["affinity"] = json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}]}});
    }
    if draft.random.chance(constrained / 2) {
        let topology = *draft.random.pick(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
        spec["topologySpreadConstraints"] = json!([{"topologyKey": topology, "maxSkew": 1,
            "whenUnsatisfiable": *draft.random.pick(&["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {"matchLabels": {"app": app}}}]);
        if draft.random.chance(20) {
            spec["topologySpreadConstraints"][0]["minDomains"] = json!(2);
        }
        if draft.random.chance(10) {
            spec["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = json!("Ignore");
        }
    }
    if draft.random.chance(constrained / 2) {
        spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": *draft.random.pick(&[80, 80, 81])}]);
    }
    if draft.random.chance(constrained / 2) {
        spec["tolerations"] = json!([{"key": "t1", "operator": "Exists"}]);
    }
    json!({"metadata": {"labels": labels}, "spec": spec})
}

/// Adds a pod of a template, unless there are enough; some are pending, not ready, terminating or finished.
fn pod(draft: &mut Draft<'_>, ns: &str, name: &str, template: &Value, owner: Option<&Value>, extra: &[(&str, &str)]) {
    if draft.pods_left == 0 {
        return;
    }
    draft.pods_left -= 1;
    let mut meta = draft.meta(ns, name);
    meta["labels"] = template["metadata"]["labels"].clone();
    for (key, value) in extra {
        meta["labels"][*key] = json!(value);
    }
    if draft.random.chance(8) {
        // as an operator labels the leader
        meta["labels"]["role"] = json!("x");
    }
    if let Some(owner) = owner {
        meta["ownerReferences"] = json!([reference(owner, true)]);
    }
    if draft.random.chance(4) {
        meta["annotations"] = json!({"controller.kubernetes.io/pod-deletion-cost": "-5"});
    }
    let mut spec = template["spec"].clone();
    let placed = !draft.nodes.is_empty() && (draft.calm || draft.random.chance(92));
    if placed {
        // apart from one another most often, as the scheduler would have them
        let spread = draft.random.chance(60);
        let at = if spread { draft.pods_left % draft.nodes.len() } else { draft.random.below(draft.nodes.len()) };
        spec["nodeName"] = json!(draft.nodes[at]);
    }
    let ready = placed && draft.random.chance(if draft.calm { 97 } else { 75 });
    let phase = match (placed, draft.random.below(30)) {
        (false, _) | (true, 0) => "Pending",
        (true, 1) if !ready => "Succeeded",
        _ => "Running",
    };
    let status = if ready && phase == "Running" { "True" } else { "False" };
    draft.objects.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec,
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": status}]}}));
}

/// The metadata of a workload: now and then a group that votes, now and then owned.
fn head(draft: &mut Draft<'_>, ns: &str, name: &str, owner: Option<&Value>) -> Value {
    let mut meta = draft.meta(ns, name);
    if draft.wants(&[Focus::Quorum, Focus::Faults], 10) {
        meta["labels"] = json!({"suture.dev/quorum": "true"});
    }
    if let Some(owner) = owner {
        meta["ownerReferences"] = json!([reference(owner, draft.random.chance(85))]);
    }
    meta
}

/// What a workload wants, and how many of its pods there are: mostly as many.
fn numbers(draft: &mut Draft<'_>) -> (i64, i64) {
    let many = matches!(draft.focus, Focus::Faults | Focus::Quorum) && draft.random.chance(60);
    let wanted = if many { 3 } else { [1, 1, 2, 2, 2, 3, 3, 0][draft.random.below(8)] };
    let present =
        if draft.calm || draft.random.chance(75) { wanted } else { (wanted + draft.random.range(-1, 1)).max(0) };
    (wanted, present)
}

fn selector(template: &Value) -> Value {
    json!({"matchLabels": {"app": template["metadata"]["labels"]["app"]}})
}

fn deployment(draft: &mut Draft<'_>, at: usize, owner: Option<&Value>) {
    let ns = owner.and_then(|o| o["metadata"]["namespace"].as_str()).map_or_else(|| draft.ns(), str::to_owned);
    let app = draft.app();
    let template = template(draft, app);
    let (wanted, present) = numbers(draft);
    let name = format!("web{at}");
    let mut strategy = json!({"type": "RollingUpdate", "rollingUpdate": {}});
    if draft.random.chance(60) {
        strategy["rollingUpdate"]["maxUnavailable"] =
            draft.random.pick(&[json!(0), json!(1), json!(2), json!("50%")]).clone();
    }
    if draft.random.chance(60) {
        strategy["rollingUpdate"]["maxSurge"] = draft.random.pick(&[json!(0), json!(1), json!("50%")]).clone();
    }
    if draft.random.chance(12) {
        strategy = json!({"type": "Recreate"});
    }
    let mut spec =
        json!({"replicas": wanted, "selector": selector(&template), "strategy": strategy, "template": template});
    if draft.random.chance(4) {
        spec["paused"] = json!(true);
    }
    let meta = head(draft, &ns, &name, owner);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec});
    draft.objects.push(deployment.clone());
    if draft.random.chance(5) {
        return;
    }
    let midway = !draft.calm && draft.random.chance(25);
    let old_left = if midway { draft.random.range(0, 2) } else { 0 };
    revision(draft, &deployment, &format!("{name}-r2"), &template, "r2", (wanted, present));
    if midway || draft.random.chance(15) {
        let mut old = template.clone();
        old["spec"]["containers"][0]["image"] = json!("i:0");
        revision(draft, &deployment, &format!("{name}-r1"), &old, "r1", (old_left, old_left));
    }
}

/// One ReplicaSet of a Deployment.
fn revision(draft: &mut Draft<'_>, deployment: &Value, name: &str, template: &Value, hash: &str, numbers: (i64, i64)) {
    let ns = deployment["metadata"]["namespace"].as_str().unwrap_or("a").to_owned();
    let mut template = template.clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    let mut meta = draft.meta(&ns, name);
    meta["ownerReferences"] = json!([reference(deployment, true)]);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"]["pod-template-hash"] = json!(hash);
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta,
        "spec": {"replicas": numbers.0, "selector": selector, "template": template}});
    draft.objects.push(set.clone());
    for number in 0..numbers.1 {
        pod(draft, &ns, &format!("{name}-{number}"), &template, Some(&set), &[]);
    }
}

fn replica_set(draft: &mut Draft<'_>, at: usize) {
    let ns = draft.ns();
    let app = draft.app();
    let template = template(draft, app);
    let (wanted, present) = numbers(draft);
    let name = format!("rs{at}");
    let meta = head(draft, &ns, &name, None);
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta,
        "spec": {"replicas": wanted, "selector": selector(&template), "template": template}});
    draft.objects.push(set.clone());
    for number in 0..present {
        pod(draft, &ns, &format!("{name}-{number}"), &template, Some(&set), &[]);
    }
}

fn stateful_set(draft: &mut Draft<'_>, at: usize, owner: Option<&Value>) {
    let ns = owner.and_then(|o| o["metadata"]["namespace"].as_str()).map_or_else(|| draft.ns(), str::to_owned);
    let app = draft.app();
    let template = template(draft, app);
    let (wanted, present) = numbers(draft);
    let name = format!("db{at}");
    let first = if draft.random.chance(6) { 1 } else { 0 };
    let mut spec =
        json!({"replicas": wanted, "serviceName": "svc0", "selector": selector(&template), "template": template});
    if first > 0 {
        spec["ordinals"] = json!({"start": first});
    }
    if draft.random.chance(40) {
        spec["podManagementPolicy"] = json!("Parallel");
    }
    if draft.random.chance(30) {
        let mut rolling = json!({});
        if draft.random.chance(70) {
            rolling["partition"] = json!(draft.random.range(0, 3));
        }
        if draft.random.chance(30) {
            rolling["maxUnavailable"] = draft.random.pick(&[json!(1), json!(2), json!("50%")]).clone();
        }
        spec["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    } else if draft.random.chance(10) {
        spec["updateStrategy"] = json!({"type": "OnDelete"});
    }
    let claims = draft.wants(&[Focus::Claims], 20);
    if claims {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {}}]);
        if draft.random.chance(40) {
            let policy = |draft: &mut Draft<'_>| if draft.random.chance(60) { "Delete" } else { "Retain" };
            spec["persistentVolumeClaimRetentionPolicy"] =
                json!({"whenDeleted": policy(draft), "whenScaled": policy(draft)});
        }
    }
    let mut set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": head(draft, &ns, &name, owner), "spec": spec});
    let rolling = !draft.calm && draft.random.chance(25);
    if draft.random.chance(70) {
        let ready = if draft.calm { present } else { draft.random.range(0, present) };
        set["status"] = json!({"replicas": present, "readyReplicas": ready, "updateRevision": "r2"});
    }
    draft.objects.push(set.clone());
    for number in first..first + present {
        let revision = if rolling && draft.random.chance(50) { "r1" } else { "r2" };
        let own = format!("{name}-{number}");
        let labels = [("controller-revision-hash", revision), ("statefulset.kubernetes.io/pod-name", &own)];
        let known = if draft.random.chance(60) { labels.as_slice() } else { &labels[..1] };
        pod(draft, &ns, &own, &template, Some(&set), known);
    }
    if claims {
        for number in first..first + wanted.max(present) + draft.random.range(0, 1) {
            if draft.random.chance(85) {
                draft.claim(&ns, &format!("data-{name}-{number}"), json!({"app": app}));
            }
        }
    }
}

fn daemon_set(draft: &mut Draft<'_>, at: usize) {
    let ns = draft.ns();
    let app = draft.app();
    let template = template(draft, app);
    let name = format!("ds{at}");
    let mut spec = json!({"selector": selector(&template), "template": template});
    if draft.random.chance(30) {
        spec["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": *draft.random.pick(&["1", "50%"])}});
    } else if draft.random.chance(15) {
        spec["updateStrategy"] = json!({"type": "OnDelete"});
    }
    let mut set =
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": head(draft, &ns, &name, None), "spec": spec});
    if !draft.calm && draft.random.chance(25) {
        set["status"] = json!({"updatedNumberScheduled": 0, "desiredNumberScheduled": 1});
    }
    draft.objects.push(set.clone());
    for node in draft.nodes.clone() {
        if (draft.calm || draft.random.chance(80)) && draft.pods_left > 0 {
            let name = format!("{name}-{node}");
            pod(draft, &ns, &name, &template, Some(&set), &[]);
            if let Some(pod) = draft.objects.last_mut().filter(|_| draft.random.chance(92)) {
                pod["spec"]["nodeName"] = json!(node);
            }
        }
    }
}

fn custom_resource(draft: &mut Draft<'_>, at: usize) {
    let ns = draft.ns();
    let name = format!("cr{at}");
    let app = draft.app();
    let (wanted, present) = numbers(draft);
    let mut spec = json!({"app": app});
    if draft.random.chance(80) {
        spec["replicas"] = json!(wanted);
    }
    if draft.wants(&[Focus::Quorum, Focus::Faults], 15) {
        spec["quorum"] = json!(true);
    }
    for (flag, percent) in [("claims", 35), ("cascades", 40), ("deletesVolumes", 30), ("writes", 5), ("optional", 5)] {
        if draft.random.chance(percent) {
            spec[flag] = json!(true);
        }
    }
    if draft.wants(&[Focus::References], 15) {
        spec["secret"] = json!("s1");
    }
    if draft.random.chance(10) {
        spec["scales"] = json!("web0");
        spec["least"] = json!(draft.random.range(0, 1));
        spec["most"] = json!(2);
    }
    let owned = draft.random.below(4);
    if draft.random.chance(30) {
        let child = if owned == 0 {
            json!({"kind": "StatefulSet", "name": format!("db{at}")})
        } else {
            json!({"kind": "Secret", "name": "s1"})
        };
        spec["children"] = if draft.random.chance(80) { json!([child]) } else { json!([]) };
    }
    let template = template(draft, app);
    if draft.random.chance(30) {
        spec["template"] = template.clone();
    }
    let meta = draft.meta(&ns, &name);
    let custom = json!({"apiVersion": "example.com/v1", "kind": "Db", "metadata": meta, "spec": spec});
    draft.objects.push(custom.clone());
    let owner = Some(&custom).filter(|_| draft.random.chance(85));
    match owned {
        0 | 1 => stateful_set(draft, at, owner),
        2 => deployment(draft, at, owner),
        _ => {
            // some operators set no owner
            let owner = Some(&custom).filter(|_| draft.random.chance(60));
            for number in 0..present {
                pod(draft, &ns, &format!("{name}-{number}"), &template, owner, &[]);
            }
        }
    }
    if draft.random.chance(20) {
        draft.claim(&ns, &format!("keep-{name}"), json!({"app": app}));
    }
}
