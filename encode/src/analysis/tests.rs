//! What templates and expressions read, told before any object is looked at.

use suture_model::ingest::{objects, parse_documents};
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::adapters::AdapterSet;
use suture_specs::compile::compile_invariant;
use suture_specs::library::Library;
use suture_specs::spec::{Invariant, InvariantSpec, Origin, Spec, parse_specs};
use suture_specs::value::MapKey;

use super::annotations::Annotations;
use super::instances::{InstanceKind, instance_kind, reads_nodes_only};
use super::uses::Uses;
use super::*;

fn shipped(name: &str) -> CompiledInvariant {
    let library = Library::shipped().expect("the shipped library compiles");
    let invariant = Invariant {
        name: name.into(),
        namespace: None,
        labels: Val::Null,
        spec: InvariantSpec { template: Some(name.to_owned()), ..InvariantSpec::default() },
        status: Val::Null,
        origin: Origin::named("the shipped library"),
    };
    compile_invariant(&invariant, &library).unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

fn object(text: &str) -> Arc<Object> {
    let document = parse_documents(text, "a test").expect("it parses").remove(0);
    Arc::new(objects(&document.val).expect("an object").remove(0))
}

/// An invariant about pods.
fn of_pods(expression: &str) -> CompiledInvariant {
    of(&format!("{{forEach: {{var: o, kind: Pod}}, require: [{{expression: \"{expression}\"}}]}}"))
}

fn of(spec: &str) -> CompiledInvariant {
    compiled(&format!("kind: Invariant\nmetadata: {{name: x}}\nspec: {spec}\n"))
}

fn compiled(text: &str) -> CompiledInvariant {
    let specs = parse_specs(text, "a test").expect("it parses");
    let [Spec::Invariant(invariant)] = specs.as_slice() else { panic!("{text}") };
    let library = Library::shipped().expect("the shipped library compiles");
    compile_invariant(invariant, &library).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

fn kind(name: &str) -> Kind {
    Kind::builtin(name).expect("a built-in kind")
}

#[test]
fn a_kind_that_where_leaves_out_has_no_instances() {
    let child = shipped("live-child-kept");
    assert_eq!(instance_kind(&child, &kind("Pod")), InstanceKind::Never, "`except` lists it");
    assert_eq!(instance_kind(&child, &kind("ReplicaSet")), InstanceKind::Always);
    let service = shipped("serving-service-kept");
    assert_eq!(instance_kind(&service, &kind("Service")), InstanceKind::Always);
    assert_eq!(instance_kind(&service, &kind("Pod")), InstanceKind::Never);
    for quorum in ["quorum-kept", "quorum-survives-fault"].map(shipped) {
        assert_eq!(instance_kind(&quorum, &kind("StatefulSet")), InstanceKind::Always);
        assert_eq!(instance_kind(&quorum, &kind("Namespace")), InstanceKind::Never, "without `members`");
    }
}

#[test]
fn what_reads_names_is_not_blind_to_them() {
    assert!(Footprint::of(&shipped("references-resolve")).blind_to_identity);
    assert!(Footprint::of(&shipped("references-resolve")).blind_message);
    assert!(Footprint::of(&shipped("owner-references-resolve")).blind_to_identity);
    for names in ["unique-host", "data-recoverable", "quorum-survives-fault", "live-child-kept"] {
        assert!(!Footprint::of(&shipped(names)).blind_to_identity, "{names}");
    }
}

#[test]
fn who_owns_an_instance_tells_it_from_no_equal() {
    assert!(Footprint::of(&shipped("controller-kept")).blind_to_identity);
    let is_blind = |expression| Footprint::of(&of_pods(expression)).blind_to_identity;
    assert!(is_blind("o.at(now).ownersIn(now).all(w, w.?metadata.?uid.orValue('') != 'u')"));
    assert!(is_blind("(o.liveIn(now) ? o.at(now).ownersIn(now) : []).all(w, w.?metadata.?uid.orValue('') != 'u')"));
    for (names, expression) in [
        ("itself", "o.at(now).?metadata.?uid.orValue('') != 'u'"),
        (
            "the owners of another",
            "now.inNamespace('a', 'Pod').all(p, p.ownersIn(now).all(w, w.?metadata.?uid.orValue('') != 'u'))",
        ),
        ("others", "now.inNamespace('a', 'Pod').all(p, p.?metadata.?uid.orValue('') != 'u')"),
    ] {
        assert!(!is_blind(expression), "{names}");
    }
}

#[test]
fn what_the_kind_decides_is_not_read() {
    let matches = shipped("selector-keeps-matches");
    assert!(reads_nodes_only(&matches, &kind("Deployment")));
    assert!(!reads_nodes_only(&matches, &kind("Service")), "a Service selects pods");
    assert!(!reads_nodes_only(&matches, &kind("DaemonSet")));
    assert!(!reads_nodes_only(&shipped("references-resolve"), &kind("Deployment")));
}

#[test]
fn what_reads_who_is_there_reads_no_more() {
    for standing in ["references-resolve", "owner-references-resolve"] {
        assert!(Footprint::of(&shipped(standing)).reads_presence_only, "{standing}");
    }
    for more in ["quorum-kept", "volume-in-use-kept", "selector-keeps-matches", "unique-host", "live-child-kept"] {
        assert!(!Footprint::of(&shipped(more)).reads_presence_only, "{more}");
    }
    for (more, expression) in [
        ("its readiness", "o.at(now).ready()"),
        ("its status", "o.at(now).?status.?phase.orValue('') == 'Running'"),
        ("itself as one of several", "[o].all(x, x.at(now).?status.?phase.orValue('') == 'Running')"),
        ("what its owners refer to", "o.ownersIn(now).all(w, w.references().all(r, r.resolvesIn(now)))"),
        ("the owners of its owners", "o.ownersIn(now).all(w, w.ownersIn(now).size() > 0)"),
        ("other pods", "now.inNamespace('a', 'Pod').size() > 0"),
    ] {
        assert!(!Footprint::of(&of_pods(expression)).reads_presence_only, "{more}");
    }
    let fine = "!o.liveIn(now) || o.at(now).ownersIn(now).all(w, w.live() && w.?spec.?paused.orValue(false) == false)";
    assert!(Footprint::of(&of_pods(fine)).reads_presence_only);
}

fn requiring(expression: &str) -> Annotations {
    let spec = format!("{{forEach: {{var: s, kind: Service}}, require: [{{expression: \"{expression}\"}}]}}");
    Footprint::of(&of(&spec)).annotations
}

fn named<const N: usize>(keys: [&str; N]) -> Annotations {
    Annotations::Named(keys.map(Str::from).into())
}

#[test]
fn shipped_templates_name_those_they_read() {
    let library = Library::shipped().expect("the shipped library compiles");
    for name in library.names() {
        let read = Footprint::of(&shipped(name)).annotations;
        // what `meant` reads is read of whatever may confirm it, and modelled as such (`model/src/annotations.rs`)
        assert_eq!(read, named([]), "{name}");
    }
}

#[test]
fn what_may_be_read_is_counted_in() {
    let unread = [
        "s.metadata.name == 'x'",
        "s.endpoints(now).size() > 0",
        "has(s.metadata.labels)",
        "s.?metadata.?labels.?a == optional.none()",
    ];
    for expression in unread {
        assert_eq!(requiring(expression), named([]), "{expression}");
    }
    assert_eq!(requiring("s.annotation('a') == s.at(now).annotation('b')"), named(["a", "b"]));
    let all = [
        "s.metadata.annotations['a'] == 'b'",
        "has(s.metadata.annotations)",
        "s.?metadata.?annotations.?a.orValue('') == 'b'",
        "s.metadata == s.at(now).metadata",
        "s == s.at(now)",
        "s in now.objects('Service')",
        "s.annotation(s.metadata.name) == 'b'",
    ];
    for expression in all {
        assert_eq!(requiring(expression), Annotations::All, "{expression}");
    }
}

#[test]
fn all_of_a_node_matters_only_where_nodes_are_looked_at() {
    let listed = |expression: &str| Footprint::of(&of_pods(expression)).uses.lists.contains(&kind("Node"));
    for counted in [
        "o.admittedNodes(now).size() >= 1",
        "o.at(now).admittedNodes(now).size() == o.admittedNodes(before).size()",
        "o.admittedNodes(before).exists(n, n.metadata.name == 'x')",
    ] {
        assert!(!listed(counted), "{counted}");
    }
    for looked_at in [
        "o.admittedNodes(now).exists(n, n.metadata.name == 'x')",
        "o.admittedNodes(now)[0].metadata.name == 'x'",
        "o.admittedNodes(now) == []",
        "[o.admittedNodes(now)].all(l, l.size() > 0)",
        "cel.bind(n, o.admittedNodes(now), n.filter(m, m.label('a') == 'b').size() > 0)",
    ] {
        assert!(listed(looked_at), "{looked_at}");
    }
    for template in ["critical-workload-kept", "selector-keeps-matches", "bound-volume-kept", "volume-in-use-kept"] {
        assert!(!Footprint::of(&shipped(template)).uses.lists.contains(&kind("Node")), "{template}");
    }
}

#[test]
fn a_namespace_is_known_by_whatever_name_it_has() {
    let own = |kind: &str| (Str::from(kind), Place::Own);
    let quorum = Footprint::of(&shipped("quorum-has-pdb")).uses;
    let budgets: BTreeSet<(Str, Place)> =
        [own("PodDisruptionBudget"), ("PodDisruptionBudget".into(), Place::Named)].into();
    assert_eq!(quorum.within, budgets, "by a `let`, one of two");
    let counted = budgets.into_iter().map(|(kind, place)| (Some(kind), place)).collect();
    assert_eq!(quorum.counted, counted);
    assert!(quorum.named.is_empty());
    let uses = |kind: &str, ns: &str| {
        let text = format!("now.inNamespace({ns}, 'Pod').size() > 0");
        Footprint::of(&of(&format!("{{forEach: {{var: o, kind: {kind}}}, require: [{{expression: \"{text}\"}}]}}")))
            .uses
    };
    assert_eq!(uses("Service", "o.metadata.namespace").within, [own("Pod")].into());
    assert_eq!(uses("Namespace", "o.metadata.name").within, [("Pod".into(), Place::Named)].into());
    let anywhere = [
        ("Service", "o.metadata.name"),
        ("Service", "o.kind == 'Namespace' ? 'a' : o.metadata.namespace"),
        ("Service", "o.kind != 'Namespace' ? o.metadata.name : o.metadata.namespace"),
        ("Service", "o.kind == 'Service' ? o.metadata.name : o.metadata.namespace"),
        ("Service", "'a'"),
    ];
    for (kind, ns) in anywhere {
        let uses = uses(kind, ns);
        assert_eq!((uses.within, uses.named), ([].into(), ["Pod".into()].into()), "{ns}");
    }
    let text = "kind: NamespacedInvariant\nmetadata: {name: x, namespace: a}\nspec: {forEach: {var: o, kind: Service}, \
                require: [{expression: \"now.inNamespace('a', 'Pod').size() > 0\"}]}\n";
    let uses = Footprint::of(&compiled(text)).uses;
    assert_eq!((uses.within, uses.named), ([own("Pod")].into(), [].into()), "it may name no other one");
}

#[test]
fn what_is_in_the_namespaces_of_a_list_matters_to_who_lists_them() {
    let uses = |list: &str, named: &str| {
        let lets = format!("{{tenant: \"o.at(now).label('t')\", pods: 'now.pods', some: \"{list}\"}}");
        let text = format!("some.all(n, now.workloads({named}).all(w, w.mostWanted(now) > 0))");
        let text =
            format!("{{forEach: {{var: o, kind: Namespace}}, let: {lets}, require: [{{expression: \"{text}\"}}]}}");
        Footprint::of(&of(&text)).uses
    };
    let of_tenant = "tenant == '' ? [] : now.namespaces.filter(n, n.live() && n.label('t') == tenant)";
    let listed = uses(of_tenant, "n.metadata.name");
    let is_listed = |uses: &Uses| uses.within.iter().any(|(_, place)| matches!(place, Place::Listed(_)));
    assert!(is_listed(&listed) && !listed.everything && !listed.named.contains("Workload"), "{listed:?}");
    let others = [
        ("now.namespaces.filter(n, pods.size() > 3)", "n.metadata.name", "pods decide which these are"),
        ("now.namespaces.filter(n, n.ownersIn(now).size() > 0)", "n.metadata.name", "their owners do"),
        (of_tenant, "n.metadata.labels.t", "it is another name"),
        ("now.services", "n.metadata.name", "it is the name of something else"),
    ];
    for (list, named, why) in others {
        let uses = uses(list, named);
        assert!(!is_listed(&uses) && (uses.everything || uses.named.contains("Workload")), "{why}: {uses:?}");
    }
}

#[test]
fn how_many_a_listed_workload_wants_matters_in_its_namespace_only() {
    let uses = Footprint::of(&shipped("quota-fits")).uses;
    assert!(!uses.everything);
    assert!(uses.within.contains(&("Workload".into(), Place::Named)));
    let uses = |expression: &str| {
        let text = format!("{{forEach: {{var: o, kind: Service}}, require: [{{expression: \"{expression}\"}}]}}");
        Footprint::of(&of(&text)).uses
    };
    let own = uses("now.workloads(o.metadata.namespace).all(w, w.wantedReplicas(now) > 0)");
    assert_eq!((own.everything, own.within), (false, [("Workload".into(), Place::Own)].into()));
    let selected = uses("now.workloads(o.metadata.namespace).all(w, w.at(now).selects(now).size() > 0)");
    assert!(selected.everything, "what else is asked of one may depend on anything");
}

#[test]
fn pods_that_a_budget_of_its_namespace_selects_are_not_all_of_the_namespace() {
    let uses = |list: &str, asked: &str| {
        let budgets = format!("now.inNamespace({list}, 'PodDisruptionBudget').all(b, {asked} > 0)");
        let text = format!("{{forEach: {{var: o, kind: StatefulSet}}, require: [{{expression: \"{budgets}\"}}]}}");
        Footprint::of(&of(&text)).uses
    };
    let matching = "now.podsMatching(o.metadata.namespace, b.spec.selector).size()";
    let wanted = "now.podsWanted(o.metadata.namespace, b.spec.selector)";
    let (own, budget) = ("o.metadata.namespace", Str::from("PodDisruptionBudget"));
    let matched = uses(own, matching);
    assert_eq!((matched.selected, matched.counted), ([(budget.clone(), Place::Own)].into(), [].into()));
    assert!(!matched.within.contains(&("Pod".into(), Place::Own)));
    let counted = uses(own, wanted);
    assert_eq!((counted.selected, counted.counted), ([].into(), [(Some(budget), Place::Own)].into()));
    assert!(!counted.within.contains(&("Workload".into(), Place::Own)));
    let of_others = uses("'b'", matching);
    assert!(of_others.selected.is_empty(), "its budgets select pods of another namespace");
    assert!(of_others.within.contains(&("Pod".into(), Place::Own)));
    assert_eq!(uses("'b'", wanted).counted, [(None, Place::Own)].into());
    let quorum = Footprint::of(&shipped("quorum-has-pdb")).uses;
    assert!(quorum.counted.len() == 2 && !quorum.within.iter().any(|(kind, _)| &**kind == "Workload"));
}

#[test]
fn pods_that_the_labels_mean_which_stand_are_not_all_of_the_namespace() {
    for template in ["selector-keeps-matches", "service-keeps-endpoints"] {
        let uses = Footprint::of(&of(&format!("{{template: {template}, params: {{roles: false}}}}"))).uses;
        assert!(uses.standing && !uses.everything, "{template}");
        assert!(!uses.within.contains(&("Pod".into(), Place::Own)), "{template}");
        assert!(uses.pods(), "{template}");
    }
    let uses = |selector: &str, ns: &str| {
        let asked = format!("now.podsMatching({ns}, {selector}).size() > 0");
        Footprint::of(&of(&format!("{{forEach: {{var: o, kind: Service}}, require: [{{expression: \"{asked}\"}}]}}")))
            .uses
    };
    assert!(uses("o.at(now).standingSelector(before)", "o.metadata.namespace").standing);
    let elsewhere = uses("o.standingSelector(before)", "'b'");
    assert!(!elsewhere.standing && elsewhere.named.contains("Pod"), "the pods of another namespace");
    assert!(uses("o.standingSelector(now)", "o.metadata.namespace").everything, "what stands changes with templates");
    let another = uses(
        "now.inNamespace(o.metadata.namespace, 'Service').map(s, s.standingSelector(before))[0]",
        "o.metadata.namespace",
    );
    assert!(!another.standing, "what another one means");
}

#[test]
fn what_listed_services_select_is_reached_by_pods_that_a_service_selects() {
    let uses = Footprint::of(&shipped("webhook-backend-kept")).uses;
    assert!(!uses.everything && uses.selecting == [Str::from("Service")].into() && uses.named.contains("Service"));
    let of_makers = "{forEach: {var: o, kind: Namespace}, require: [{expression: \"now.deployments.all(d, d.selects(now).size() > 0)\"}]}";
    assert!(Footprint::of(&of(of_makers)).uses.everything, "what makes pods is not found by what it selects alone");
}

#[test]
fn what_only_the_requests_tell_switches_an_invariant_off() {
    let text = "{forEach: {var: o, kind: Pod, where: \"!requests.exists(r, r.subresource == 'binding')\"},
        require: [{expression: 'false'}]}";
    let analysis = Analysis::of(of(text).into());
    assert!(!analysis.never_applies);
    let inputs = |subresource: &str| {
        let field = MapKey::from_value(&Value::str("subresource")).expect("a text is a key");
        let request = Value::map([(field, Value::str(subresource))].into());
        let requests = Value::list(vec![request.clone()]);
        Inputs { request, requests, time: Err(suture_specs::error::EvalError::invalid("no clock")) }
    };
    assert!(analysis.never_applies_to(&inputs("binding")));
    assert!(!analysis.never_applies_to(&inputs("status")));
}

#[test]
fn what_the_parameters_leave_nothing_of_applies_to_nothing() {
    assert!(Analysis::of(shipped("data-stays-resident").into()).never_applies, "without `zones`");
    let applies = |condition: &str| {
        let text =
            format!("{{forEach: {{var: o, kind: Pod, where: \"{condition}\"}}, require: [{{expression: 'false'}}]}}");
        !Analysis::of(of(&text).into()).never_applies
    };
    assert!(!applies("1 > 2"));
    assert!(applies("o.metadata.name == 'a'"), "it depends on the object");
    assert!(applies("1 < 2"));
}

/// Whether a Deployment of two replicas holds by itself, where it and its pods have this label.
fn holds_alone(spec: &str, label: &str) -> bool {
    let labels = || Val::object([("labels", Val::object([(label, Val::str("eu"))]))]);
    let template = Val::object([("metadata", labels()), ("spec", Val::object([]))]);
    let fields = [
        ("apiVersion", Val::str("apps/v1")),
        ("kind", Val::str("Deployment")),
        ("metadata", labels().with("name", Val::str("d")).with("namespace", Val::str("a"))),
        ("spec", Val::object([("replicas", Val::Int(2)), ("template", template)])),
    ];
    let object = Arc::new(Object::from_val(&Val::object(fields)).expect("an object"));
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    Analysis::of(of(spec).into()).holds_by_itself(&object, Worlds { before: &state, now: &state })
}

#[test]
fn what_its_labels_and_spec_decide_an_instance_decides_by_itself() {
    let resident = "{template: data-stays-resident, params: {zones: {eu: [eu-]}}}";
    assert!(holds_alone(resident, "app"));
    assert!(!holds_alone(resident, "suture.dev/residency"), "nodes decide");
    let about = |expression: &str| {
        format!("{{forEach: {{var: o, kind: Deployment}}, require: [{{expression: \"{expression}\"}}]}}")
    };
    for (expression, holds) in [
        ("o.spec.replicas == 2", true),
        ("!o.liveIn(now) || o.at(now).spec.replicas > 1", true),
        ("o.at(now).spec.replicas > 1", false),
        ("o.liveIn(now) || o.spec.replicas == 2", true),
        ("o.liveIn(now)", false),
        ("now.pods.size() > 0 || o.label('app') == 'eu'", true),
        ("now.pods.size() > 0", false),
        ("!has(o.status) && o.spec.replicas == 2", false),
        ("o.metadata.name == 'd'", false),
        ("request.name == '' || o.spec.replicas == 2", true),
        ("request.name == ''", false),
        ("[o].exists(p, p.spec.replicas == 2)", false),
        ("o.owners().size() == 0", true),
        ("!o.liveIn(now) || !o.at(now).owners().exists(w, w.controller)", true),
        ("o.at(now).owners().size() == 0", false),
        ("!o.liveIn(now) || !o.at(now).isQuorumGroup(now)", true),
        ("!o.at(now).isQuorumGroup(now)", false),
        ("!o.liveIn(now) || o.at(now).isQuorumGroup(now)", false),
        ("!o.liveIn(now) || !o.at(now).restrictsNodes()", true),
        ("o.restrictsNodes()", false),
        ("!o.at(now).restrictsNodes()", false),
    ] {
        assert_eq!(holds_alone(&about(expression), "app"), holds, "{expression}");
    }
}

#[test]
fn what_it_applies_to_an_instance_decides_by_itself() {
    let about = |condition: &str, require: &str| {
        format!(
            "{{forEach: {{var: o, kind: Deployment, where: \"{condition}\"}}, require: [{{expression: \"{require}\"}}]}}"
        )
    };
    assert!(holds_alone(&about("o.owners().size() > 0", "!o.liveIn(now)"), "app"));
    assert!(!holds_alone(&about("o.owners().size() == 0", "!o.liveIn(now)"), "app"));
    assert!(!holds_alone(&about("now.pods.size() > 0", "!o.liveIn(now)"), "app"), "pods decide");
}

#[test]
fn what_changes_holds_by_itself_with_each_version() {
    let pod = |phase: &str, owner: &str| {
        let owner = format!("[{{apiVersion: apps/v1, kind: {owner}, name: r, uid: r, controller: true}}]");
        let meta = format!("{{name: p, namespace: a, ownerReferences: {owner}}}");
        object(&format!("{{apiVersion: v1, kind: Pod, metadata: {meta}, status: {{phase: {phase}}}}}"))
    };
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    let controlled = "!o.liveIn(now) || o.at(now).owners().exists(w, w.kind == 'ReplicaSet')";
    let analysis = Analysis::of(of_pods(controlled).into());
    let holds = |before: &str, now: &str| {
        let worlds = Worlds { before: &state, now: &state };
        analysis.holds_by_itself_as(&pod("Pending", before), &pod("Running", now), worlds)
    };
    assert!(holds("ReplicaSet", "ReplicaSet"));
    assert!(holds("DaemonSet", "ReplicaSet"), "the future decides");
    assert!(!holds("ReplicaSet", "DaemonSet"));
    assert!(!holds("ReplicaSet", "StatefulSet"), "another one of its name may follow");
}

#[test]
fn whose_pods_vote_does_not_hold_by_itself() {
    let votes = "{forEach: {var: o, kind: Deployment}, require: [{expression: \"!o.liveIn(now) || !o.at(now).isQuorumGroup(now)\"}]}";
    assert!(!holds_alone(votes, "suture.dev/quorum"));
}

#[test]
fn what_one_instance_decides_by_itself_is_said_of_those_only_that_read_the_same() {
    let claim = |name: &str, label: &str| {
        let labels = Val::object([(label, Val::str("eu"))]);
        let meta = Val::object([("name", Val::str(name)), ("namespace", Val::str("a")), ("labels", labels)]);
        let fields = [("apiVersion", Val::str("v1")), ("kind", Val::str("PersistentVolumeClaim")), ("metadata", meta)];
        Arc::new(Object::from_val(&Val::object(fields)).expect("a claim"))
    };
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    let resident = Analysis::of(of("{template: data-stays-resident, params: {zones: {eu: [eu-]}}}").into());
    let holds = |claim: Arc<Object>| resident.holds_by_itself(&claim, Worlds { before: &state, now: &state });
    for _ in 0..2 {
        assert!(holds(claim("c1", "app")) && holds(claim("c2", "tier")));
        assert!(!holds(claim("c3", "suture.dev/residency")), "nodes decide");
    }
    let by_name = "{forEach: {var: o, kind: PersistentVolumeClaim}, require: [{expression: \"o.label('app') == 'eu' || o.metadata.labels.size() > 1\"}]}";
    let by_name = Analysis::of(of(by_name).into());
    let holds = |claim: Arc<Object>| by_name.holds_by_itself(&claim, Worlds { before: &state, now: &state });
    assert!(holds(claim("c1", "app")) && !holds(claim("c2", "tier")), "other labels are read as well");
}

#[test]
fn a_pod_does_not_hold_by_itself_for_where_it_is() {
    let pod = |owners: &str| {
        let meta = format!("{{name: p, namespace: a, ownerReferences: [{owners}]}}");
        object(&format!("{{apiVersion: v1, kind: Pod, metadata: {meta}, spec: {{nodeName: n1, hostNetwork: true}}}}"))
    };
    let (owned, bare) = (pod("{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}"), pod(""));
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    let of = |pod: &Arc<Object>, expression: &str| {
        let analysis = Analysis::of(of_pods(expression).into());
        analysis.holds_by_itself(pod, Worlds { before: &state, now: &state })
    };
    let holds = |expression: &str| of(&owned, expression);
    assert!(holds("o.label('app') == ''"));
    assert!(!of(&bare, "o.label('app') == ''"), "who adopts it may make another one of its name");
    assert!(!holds("o.spec.nodeName == 'n1'"), "another one of its body is elsewhere");
    assert!(!holds("!o.liveIn(now) || o.at(now).spec.nodeName == 'n1'"));
    assert!(!holds("!o.liveIn(now) || !o.at(now).restrictsNodes()"));
    assert!(holds("o.label('app') == '' || o.spec.nodeName == 'n1'"), "what else it reads decides");
}

/// What an invariant about Deployments reads of the nodes that they admit: whether no more than if there are any, and whether
/// only where they restrict them.
fn of_nodes(expression: &str) -> (bool, bool) {
    let read = Footprint::of(&of(&format!(
        "{{forEach: {{var: o, kind: Deployment}}, require: [{{expression: \"{expression}\"}}]}}"
    )));
    (read.asks_for_any_node, read.asks_if_restricted)
}

#[test]
fn how_many_nodes_there_are_matters_only_to_who_counts_them() {
    let (admitted, restricts) = ("o.admittedNodes(now).size()", "o.at(now).restrictsNodes()");
    assert_eq!(of_nodes(&format!("{admitted} == 0 || {admitted} > 0")), (true, false));
    assert_eq!(of_nodes(&format!("{admitted} >= 2 || {admitted} != 0")), (false, false));
    assert_eq!(of_nodes("o.admittedNodes(now).exists(n, n.live())"), (false, false));
    assert_eq!(of_nodes(&format!("!o.liveIn(now) || !{restricts} || {admitted} >= 2")), (false, true));
    assert_eq!(of_nodes(&format!("!({restricts} && {admitted} < 2)")), (false, true));
    assert_eq!(of_nodes(&format!("{admitted} >= 2 || !{restricts}")), (false, false), "it is told after that");
    assert_eq!(of_nodes(&format!("{restricts} || {admitted} >= 2")), (false, false));
    assert_eq!(of_nodes(&format!("!o.restrictsNodes() || {admitted} >= 2")), (false, false), "it did before");
    assert_eq!(of_nodes(&format!("(!{restricts} || {admitted} >= 2) && {admitted} >= 1")), (false, false));
    let pods = Footprint::of(&of_pods(&format!("!{restricts} || {admitted} > 0")));
    assert!(!pods.asks_for_any_node && !pods.asks_if_restricted, "another pod of its name may ask for others");
    assert!(Footprint::of(&shipped("critical-workload-kept")).asks_for_any_node);
    assert!(Footprint::of(&shipped("bound-volume-kept")).asks_for_any_node);
    assert!(Footprint::of(&shipped("selector-keeps-matches")).asks_if_restricted);
}

#[test]
fn of_a_list_those_matter_that_are_looked_at() {
    let plain = object("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 7}");
    let default = object(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: b}, value: 7, globalDefault: true}",
    );
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    let looks_at = |expression: &str, object| {
        let compiled = of_pods(expression);
        Footprint::of(&compiled).looks_at(object, &Value::from(&compiled.params), &[&state])
    };
    let defaults =
        "!now.priorityclasses.exists(c, c.?globalDefault.orValue(false) && c.value > o.at(now).spec.priority)";
    assert!(!looks_at(defaults, &plain) && looks_at(defaults, &default));
    for all in [
        "now.priorityclasses.size() > 0",
        "now.priorityclasses.all(c, c.?globalDefault.orValue(false))",
        "!now.priorityclasses.exists(c, c.value > o.at(now).spec.priority)",
        "!now.priorityclasses.exists(c, c.?globalDefault.orValue(false)) || now.priorityclasses.size() > 1",
    ] {
        assert!(looks_at(all, &plain), "{all}");
    }
    assert!(!looks_at("o.at(now).priority(now) > 0", &plain), "no pod is of that class");
    assert!(looks_at("o.at(now).priority(now) > 0", &default));
}

#[test]
fn a_predicate_with_a_value_for_each_object_asks_for_nothing_that_one_may_lack() {
    let never_fails = |text: &str| {
        let compiled = of_pods(text);
        crate::reading::never_fails(&compiled.require.first().expect("a clause").expression)
    };
    let claims = "o.?spec.?volumes.orValue([]).exists(v, has(v.persistentVolumeClaim))";
    for holds in ["o.ready()", "!o.existsIn(before)", &format!("o.ready() || (!o.existsIn(before) && {claims})")] {
        assert!(never_fails(holds), "{holds}");
    }
    let may_fail = [
        "o.spec.nodeName == ''",
        "o.spec.volumes.exists(v, has(v.persistentVolumeClaim))",
        "o.?spec.?volumes.orValue([]).exists(v, v.name == '')",
        "o.ready() && int(o.metadata.name) > 0",
    ];
    for text in may_fail {
        assert!(!never_fails(text), "{text}");
    }
}

#[test]
fn a_custom_resource_holds_by_itself_unless_its_adapter_says_otherwise() {
    let text = "apiVersion: suture.dev/v1alpha1\nkind: ResourceAdapter\nmetadata: {name: apps}\nspec:\n  \
         group: example.com\n  kind: App\n  quorum: self.spec.votes\n";
    let specs = parse_specs(text, "test").expect("it parses");
    let [Spec::ResourceAdapter(adapter)] = specs.as_slice() else { panic!("an adapter") };
    let adapters = AdapterSet::compile([&**adapter]).expect("it compiles");
    let snapshot = Snapshot::new(Arc::new(adapters));
    let state = State::new(&snapshot);
    let votes = "{forEach: {var: o, kind: Adapted}, require: [{expression: \"!o.liveIn(now) || !o.at(now).isQuorumGroup(now)\"}]}";
    let analysis = Analysis::of(of(votes).into());
    let holds = |kind: &str, spec: Val| {
        let meta = Val::object([("name", Val::str("x")), ("namespace", Val::str("a"))]);
        let fields =
            [("apiVersion", Val::str("example.com/v1")), ("kind", Val::str(kind)), ("metadata", meta), ("spec", spec)];
        let object = Arc::new(Object::from_val(&Val::object(fields)).expect("an object"));
        analysis.holds_by_itself(&object, Worlds { before: &state, now: &state })
    };
    for _ in 0..2 {
        assert!(holds("App", Val::object([("votes", Val::Bool(false))])));
        assert!(!holds("App", Val::object([("votes", Val::Bool(true))])), "the adapter says that its pods vote");
        assert!(!holds("App", Val::object([("votes", Val::str("yes"))])), "the adapter fails");
        assert!(!holds("Other", Val::object([])), "no adapter explains it");
    }
}
