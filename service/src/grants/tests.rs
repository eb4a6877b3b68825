//! Grants as suites: what each case expects is what FORMATS says of scopes and budgets.

use suture_model::object::Key;

use super::*;
use crate::input::Source;
use crate::policy::{Documents, Policy};
use crate::suite::run::run_suite;

/// Runs a suite of cases over a cluster of ten pods of a StatefulSet of a custom resource, and two of nobody.
fn passes(grant: &str, cases: &str) {
    passes_as_it_stands(&format!("{grant}}}"), cases);
}

/// The same, of a grant whose text goes on behind its spec.
fn passes_as_it_stands(grant: &str, cases: &str) {
    let pod = |name: &str, owner: &str| {
        format!(
            "  - {{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: db, uid: u-{name}, labels: {{app: db}}{owner}}}, \
             spec: {{containers: [{{name: c, image: i}}]}}, status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
        )
    };
    let owner = ", ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u-sts, controller: true}]";
    let pods: String = (0..10).map(|i| pod(&format!("db-{i}"), owner)).collect();
    let text = format!(
        "apiVersion: suture.dev/v1alpha1
kind: Suite
metadata: {{name: grants}}
spec:
  time: '2026-11-01T12:00:00Z'
  policies:
  - apiVersion: suture.dev/v1alpha1
    kind: OperatorGrant
    metadata: {{name: op}}
    spec: {{subjects: [{{kind: User, name: op}}], {grant}
  state:
  - {{apiVersion: v1, kind: Namespace, metadata: {{name: db, uid: u-ns}}}}
  - {{apiVersion: v1, kind: Namespace, metadata: {{name: other, uid: u-other}}}}
  - {{apiVersion: example.com/v1, kind: Database, metadata: {{name: db, namespace: db, uid: u-db}}, spec: {{}}}}
  - {{apiVersion: example.com/v1, kind: Database, metadata: {{name: db, namespace: other, uid: u-odb}}, spec: {{}}}}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata:
      {{name: db, namespace: db, uid: u-sts, ownerReferences: [{{apiVersion: example.com/v1, kind: Database, name: db, uid: u-db, controller: true}}]}}
    spec: {{replicas: 10, serviceName: db, selector: {{matchLabels: {{app: db}}}}, template: {{metadata: {{labels: {{app: db}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}}}
    status: {{replicas: 10, readyReplicas: 10}}
  - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: free, namespace: db, uid: u-free}}}}
  - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: going, namespace: db, uid: u-going, deletionTimestamp: '2026-11-01T11:59:00Z', finalizers: [a/b]}}}}
  - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made, namespace: db, uid: u-made, ownerReferences: [{{apiVersion: example.com/v1, kind: Database, name: db, uid: u-db, controller: true}}]}}}}
  - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: foreign, namespace: db, uid: u-foreign, ownerReferences: [{{apiVersion: example.com/v1, kind: Database, name: db, uid: u-old, controller: true}}]}}}}
{pods}{}  cases:
{cases}",
        pod("alone", "")
    );
    let source = Source { name: "grants.yaml".to_owned(), text };
    let documents = Documents::read(&[source]).map_err(|e| format!("{e:#?}")).unwrap();
    let report = run_suite(&documents.suites[0]).unwrap();
    let failures: Vec<_> = report.cases.iter().filter(|case| case.failure.is_some()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(!report.cases.is_empty());
}

#[test]
fn a_scope_of_owners_is_what_they_control_directly_or_through_others() {
    passes(
        "scope: {owners: [{group: example.com, kind: Database}]}",
        "  - {name: its own, steps: [{as: op, delete: {kind: ConfigMap, namespace: db, name: made}, expect: Allowed}]}
  - {name: through a StatefulSet, steps: [{as: op, evict: {namespace: db, name: db-0}, expect: Allowed}]}
  - name: scaling what it controls
    steps:
    - review:
        apiVersion: admission.k8s.io/v1
        kind: AdmissionReview
        request:
          uid: scaling
          kind: {group: autoscaling, version: v1, kind: Scale}
          resource: {group: apps, version: v1, resource: statefulsets}
          subResource: scale
          namespace: db
          name: db
          operation: UPDATE
          userInfo: {username: op}
          object: {apiVersion: autoscaling/v1, kind: Scale, metadata: {name: db, namespace: db, uid: u-sts}, spec: {replicas: 11}}
          oldObject: {apiVersion: autoscaling/v1, kind: Scale, metadata: {name: db, namespace: db, uid: u-sts}, spec: {replicas: 10}}
      expect: Allowed
  - {name: nobody's, steps: [{as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Denied, by: [operator-in-scope], instances: [OperatorGrant/op]}]}
  - {name: of an owner that is another one now, steps: [{as: op, patch: {kind: ConfigMap, namespace: db, name: foreign}, with: {data: {a: b}}, expect: Denied, by: [operator-in-scope]}]}
  - {name: taking a foreign object over, steps: [{as: op, patch: {kind: ConfigMap, namespace: db, name: free}, with: {metadata: {ownerReferences: [{apiVersion: example.com/v1, kind: Database, name: db, uid: u-db, controller: true}]}}, expect: Denied}]}
  - {name: making something, steps: [{as: op, create: {apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: db}}, expect: Allowed}]}
  - {name: status of the custom resource, steps: [{as: op, patch: {kind: Database, namespace: db, name: db}, subresource: status, with: {status: {a: 1}}, expect: Allowed}]}
  - {name: deleting the custom resource, steps: [{as: op, delete: {kind: Database, namespace: db, name: db}, expect: Denied, by: [operator-in-scope]}]}
  - {name: somebody else, steps: [{as: ana, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}]}
",
    );
}

#[test]
fn a_namespace_lies_in_itself_and_leases_in_no_scope() {
    passes(
        "scope: {namespaces: [db]}",
        "  - {name: its own, steps: [{as: op, patch: {kind: Namespace, name: db}, with: {metadata: {labels: {a: b}}}, expect: Allowed}]}
  - {name: another, steps: [{as: op, delete: {kind: Namespace, name: other}, expect: Denied, by: [operator-in-scope]}]}
  - {name: no namespace at all, steps: [{as: op, create: {apiVersion: v1, kind: Node, metadata: {name: n}}, expect: Denied}]}
  - {name: a lease, steps: [{as: op, create: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: other}}, expect: Allowed}]}
  - name: a deletion that has no effect
    steps: [{as: op, delete: {kind: Database, namespace: other, name: db}, preconditions: {uid: u-older}, expect: Allowed}]
  - name: within a batch
    steps:
    - batch:
      - {as: op, delete: {kind: ConfigMap, namespace: db, name: free}}
      - {as: op, delete: {kind: Database, namespace: other, name: db}}
      expect: Denied
      contains: [Database/other/db]
",
    );
}

#[test]
fn a_budget_counts_what_goes_along_and_not_what_goes_anyway() {
    passes(
        "budgets: [{verb: delete, kind: ConfigMap, max: 1, window: 1h}]",
        "  - {name: one, steps: [{as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}]}
  - {name: a whole namespace, steps: [{as: op, delete: {kind: Namespace, name: db}, expect: Denied, by: [deletion-budget], instances: [OperatorGrant/op], contains: [ConfigMap]}]}
  - {name: with its owner, steps: [{as: op, delete: {kind: Database, namespace: db, name: db}, expect: Allowed}, {as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Denied, contains: [after 1]}]}
  - {name: terminating, steps: [{as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}, {as: op, delete: {kind: ConfigMap, namespace: db, name: going}, expect: Allowed}]}
  - {name: the same again, steps: [{as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}, {as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}]}
  - name: what another one is deleting already
    steps:
    - {as: ana, delete: {kind: Namespace, name: db}, expect: Allowed}
    - {observe: {set: [{apiVersion: v1, kind: Namespace, metadata: {name: db, uid: u-ns, deletionTimestamp: '2026-11-01T12:00:00Z'}, spec: {finalizers: [kubernetes]}}]}}
    - {as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}
    - {as: op, delete: {kind: ConfigMap, namespace: db, name: made}, expect: Allowed}
",
    );
}

#[test]
fn a_part_of_a_workload_may_be_disrupted() {
    passes(
        "budgets: [{disrupt: Pod, percent: 25, window: 10m}]",
        "  - name: two of ten, not three
    steps:
    - {as: op, evict: {namespace: db, name: db-0}, expect: Allowed}
    - {as: op, delete: {kind: Pod, namespace: db, name: db-1}, expect: Allowed}
    - {as: op, delete: {kind: Pod, namespace: db, name: db-2}, expect: Denied, by: [deletion-budget], contains: [disrupts 1 of 10, after 2]}
    - {observe: {unset: [{kind: Pod, namespace: db, name: db-0}, {kind: Pod, namespace: db, name: db-1}], after: 9m}}
    - {as: op, delete: {kind: Pod, namespace: db, name: db-2}, expect: Denied}
    - {observe: {after: 2m}}
    - {as: op, delete: {kind: Pod, namespace: db, name: db-2}, expect: Allowed}
  - {name: with the workload, steps: [{as: op, delete: {kind: StatefulSet, namespace: db, name: db}, expect: Denied, contains: [10 of 10]}]}
  - {name: orphaned, steps: [{as: op, delete: {kind: StatefulSet, namespace: db, name: db}, propagationPolicy: Orphan, expect: Allowed}]}
  - {name: fewer replicas, steps: [{as: op, scale: {kind: StatefulSet, namespace: db, name: db}, replicas: 7, expect: Denied}]}
  - {name: some fewer replicas, steps: [{as: op, scale: {kind: StatefulSet, namespace: db, name: db}, replicas: 8, expect: Allowed}, {as: op, evict: {namespace: db, name: db-0}, expect: Denied}]}
  - {name: more replicas, steps: [{as: op, scale: {kind: StatefulSet, namespace: db, name: db}, replicas: 20, expect: Allowed}]}
  - {name: a pod of no workload, steps: [{as: op, delete: {kind: Pod, namespace: db, name: alone}, expect: Allowed}]}
",
    );
}

#[test]
fn what_the_status_says_was_spent_counts_as_long_as_a_window_reaches_it() {
    let status = "budgets: [{verb: delete, kind: ConfigMap, max: 2, window: 1h}]}
    status: {spent: [{at: '2026-11-01T11:30:00Z', requests: [r1],
      taken: [{object: {kind: ConfigMap, namespace: db, name: gone}, uid: u-gone}]}]}";
    // the text goes on where the spec of the grant ends
    passes_as_it_stands(
        status,
        "  - name: one more, not two
    steps:
    - {as: op, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}
    - {as: op, delete: {kind: ConfigMap, namespace: db, name: made}, expect: Denied, by: [deletion-budget], contains: [after 2 within the last 1h]}
    - {observe: {unset: [{kind: ConfigMap, namespace: db, name: free}], after: 31m}}
    - {as: op, delete: {kind: ConfigMap, namespace: db, name: made}, expect: Allowed}
  - name: the others do not know of it
    steps: [{as: ana, delete: {kind: ConfigMap, namespace: db, name: free}, expect: Allowed}]
",
    );
}

/// A grant whose text goes on behind its subjects.
fn compiled(rest: &str) -> Result<Policy, Vec<SpecError>> {
    let text = format!(
        "apiVersion: suture.dev/v1alpha1\nkind: OperatorGrant\nmetadata: {{name: op}}\n\
         spec: {{subjects: [{{kind: User, name: op}}]{rest}\n"
    );
    Documents::read(&[Source { name: "grant.yaml".to_owned(), text }]).unwrap().compile()
}

#[test]
fn a_status_that_cannot_be_read_is_told() {
    for (spent, wrong) in [
        ("[{at: soon}]", "status.spent[0].at"),
        ("[{at: '2026-11-01T11:30:00Z', took: 1}]", "took"),
        ("all", "status.spent"),
    ] {
        let errors = compiled(&format!(
            "}}
status: {{spent: {spent}}}"
        ))
        .unwrap_err();
        assert!(errors.iter().any(|error| error.to_string().contains(wrong)), "{spent}: {errors:?}");
    }
}

#[test]
fn a_status_holds_so_much_of_what_is_spent_and_no_more() {
    let grants = |action: &str| {
        let budgets = "[{verb: delete, kind: ConfigMap, max: 9000, window: 1h}]";
        compiled(&format!(", action: {action}, budgets: {budgets}}}")).unwrap().grants
    };
    let mut history = History::default();
    let mut spend = |number: usize| {
        let key = Key::new(Kind::new("", "ConfigMap"), "db", &number.to_string());
        let taken = Taken { key, uid: number.to_string().as_str().into(), group: None };
        let spent = Spent {
            grant: "op".into(),
            requests: vec![number.to_string().as_str().into()],
            taken: BTreeSet::from([taken]),
            scaled: BTreeMap::new(),
            dry_run: false,
        };
        history.record(&spent, Some(number as i128));
        history.clone()
    };
    // a request and an object each
    let full = (0..RECORDED_MAX / 2).map(&mut spend).last().unwrap();
    assert_eq!(grants("Deny").kept("op", &full, 2_000).unwrap().len(), RECORDED_MAX / 2);
    let more = spend(RECORDED_MAX / 2);
    assert_eq!(grants("Deny").kept("op", &more, 2_000), Err(TooMuchSpent));
    let kept = grants("Warn").kept("op", &more, 2_000).unwrap();
    assert_eq!((kept.len(), kept[0].requests[0].as_str()), (RECORDED_MAX / 2, "1"), "the oldest is left out");
    // as it leaves its window there is room again
    let hour = 3_600_000_000_000;
    assert_eq!(grants("Deny").kept("op", &more, hour).unwrap().len(), RECORDED_MAX / 2);
    assert_eq!(grants("Deny").kept("other", &more, hour), Ok(Vec::new()));
}

#[test]
fn a_grant_may_only_warn() {
    passes(
        "scope: {namespaces: [db]}, action: Warn",
        "  - {name: warned, steps: [{as: op, delete: {kind: Database, namespace: other, name: db}, expect: Warned, by: [operator-in-scope]}]}
",
    );
}

#[test]
fn odd_budgets_do_not_compile() {
    for (budget, wrong) in [
        ("{verb: delete, kind: Pod, max: 1, window: soon}", "soon"),
        ("{verb: delete, kind: Pod, max: 1, window: 0s}", "no time"),
        ("{verb: create, kind: Pod, max: 1, window: 1h}", "`create` cannot be counted"),
        ("{verb: delete, kind: Pod, percent: 1, window: 1h}", "a budget has"),
        ("{disrupt: Pod, percent: 101, window: 1h}", "more than a hundred"),
        ("{disrupt: Secret, percent: 1, window: 1h}", "cannot be disrupted"),
    ] {
        let errors = compiled(&format!(", budgets: [{budget}]}}")).unwrap_err();
        assert!(errors.iter().any(|error| error.to_string().contains(wrong)), "{budget}: {errors:?}");
    }
}

#[test]
fn a_grant_says_which_invariants_bind() {
    let text = "apiVersion: suture.dev/v1alpha1
kind: Suite
metadata: {name: bound}
spec:
  invariants:
  - {apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: kept, labels: {for: operators}}, spec: {forEach: {var: c, kind: ConfigMap}, require: [{expression: c.liveIn(now)}]}}
  # a namespace's, of the same name and without the label, does not loosen the cluster's
  - {apiVersion: suture.dev/v1alpha1, kind: NamespacedInvariant, metadata: {name: kept, namespace: b}, spec: {forEach: {var: c, kind: ConfigMap}, require: [{expression: c.liveIn(now)}]}}
  - {apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: people}, spec: {forEach: {var: s, kind: Service}, require: [{expression: s.liveIn(now)}]}}
  policies:
  - apiVersion: suture.dev/v1alpha1
    kind: OperatorGrant
    metadata: {name: op}
    spec: {subjects: [{kind: User, name: op}], invariants: {selector: {matchLabels: {for: operators}}}}
  state:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a, uid: c}}
  - {apiVersion: v1, kind: Service, metadata: {name: s, namespace: a, uid: s}}
  cases:
  - {name: bound, steps: [{as: op, delete: {kind: ConfigMap, namespace: a, name: c}, expect: Denied, by: [kept]}]}
  - {name: not bound, steps: [{as: op, delete: {kind: Service, namespace: a, name: s}, expect: Allowed}]}
  - {name: without a grant, steps: [{as: ana, delete: {kind: Service, namespace: a, name: s}, expect: Denied, by: [people]}]}
";
    let source = Source { name: "bound.yaml".to_owned(), text: text.to_owned() };
    let report = run_suite(&Documents::read(&[source]).unwrap().suites[0]).unwrap();
    let failures: Vec<_> = report.cases.iter().filter(|case| case.failure.is_some()).collect();
    assert!(failures.is_empty() && report.cases.len() == 3, "{failures:#?}");
}
