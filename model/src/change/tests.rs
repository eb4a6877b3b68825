//! Requests from reviews and steps, and what is refused.

use super::*;
use crate::kinds::Kind;
use crate::testing::{cluster, key, val};

#[test]
fn merge_patches_follow_rfc_7386() {
    // the examples of its appendix A
    for (target, patch, result) in [
        ("{a: b}", "{a: c}", "{a: c}"),
        ("{a: b}", "{b: c}", "{a: b, b: c}"),
        ("{a: b}", "{a: null}", "{}"),
        ("{a: b, b: c}", "{a: null}", "{b: c}"),
        ("{a: [b]}", "{a: c}", "{a: c}"),
        ("{a: {b: c}}", "{a: {b: d, c: null}}", "{a: {b: d}}"),
        ("{a: [{b: c}]}", "{a: [1]}", "{a: [1]}"),
        ("{e: null}", "{a: 1}", "{e: null, a: 1}"),
        ("{}", "{a: {bb: {ccc: null}}}", "{a: {bb: {}}}"),
        ("{a: foo}", "{a: {b: {c: null}}}", "{a: {b: {}}}"),
    ] {
        assert_eq!(merge_patch(&val(target), &val(patch)), val(result), "{target} {patch}");
    }
}

const REVIEW: &str = "
apiVersion: admission.k8s.io/v1
kind: AdmissionReview
request:
  uid: u
  kind: {group: apps, version: v1, kind: Deployment}
  resource: {group: apps, version: v1, resource: deployments}
  name: web
  namespace: shop
  operation: UPDATE
  userInfo: {username: ana, groups: [g]}
  object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}
";

fn review(patch: &str) -> Result<Request, ChangeError> {
    Request::from_review(&merge_patch(&val(REVIEW), &val(&format!("{{request: {patch}}}"))))
}

#[test]
fn reviews_of_every_operation_are_read() {
    for (patch, described) in [
        ("{}", "ana updates Deployment/shop/web"),
        ("{operation: DELETE, object: null}", "ana deletes Deployment/shop/web"),
        (
            "{operation: DELETE, object: null, options: {orphanDependents: true}}",
            "ana deletes Deployment/shop/web (Orphan)",
        ),
        ("{subResource: status}", "ana writes the status of Deployment/shop/web"),
        (
            "{subResource: scale, kind: {group: autoscaling, kind: Scale}, object: {spec: {replicas: 3}}}",
            "ana scales Deployment/shop/web to 3",
        ),
        (
            "{operation: CREATE, subResource: eviction, kind: {group: policy, kind: Eviction}, resource: {group: '', resource: pods}}",
            "ana evicts Pod/shop/web",
        ),
        (
            "{operation: CREATE, subResource: binding, kind: {group: '', kind: Binding}, resource: {group: '', resource: pods}, \
             object: {target: {name: n1}}}",
            "ana assigns Pod/shop/web to node n1",
        ),
        (
            "{operation: CREATE, name: null, object: {metadata: {name: null, generateName: web-}}}",
            "ana creates Deployment/shop/web-u",
        ),
        (
            "{operation: DELETE, object: null, namespace: shop, name: shop, kind: {group: '', kind: Namespace}}",
            "ana deletes Namespace/shop",
        ),
    ] {
        assert_eq!(review(patch).map(|r| r.describe()), Ok(described.to_owned()), "{patch}");
    }
    let dry =
        review("{operation: DELETE, dryRun: true, options: {propagationPolicy: Foreground, preconditions: {uid: x}}}")
            .unwrap();
    assert!(dry.dry_run);
    assert_eq!(dry.propagation, Some(Propagation::Foreground));
    assert_eq!(dry.preconditions.uid.as_deref(), Some("x"));
    let bound = review(
        "{operation: CREATE, subResource: binding, kind: {group: '', kind: Binding}, resource: {group: '', resource: pods}, \
         object: {metadata: {uid: p}, target: {name: n1}}}",
    )
    .unwrap();
    assert_eq!(bound.preconditions.uid.as_deref(), Some("p"), "the pod that a scheduler means");
}

#[test]
fn the_options_are_told_alike_whoever_made_the_request() {
    let orphan = Some(Propagation::Orphan);
    let snapshot = cluster("");
    let state = State::new(&snapshot);
    let made = Request::delete(User::admin(), &state, key("Pod/a/b"), orphan, Preconditions::default());
    let delete = |options: &str| review(&format!("{{operation: DELETE, object: null, options: {options}}}")).unwrap();
    for told in [made, delete("{propagationPolicy: Orphan}"), delete("{orphanDependents: true}")] {
        let policy = told.told_options().str_at(&["propagationPolicy"]).cloned();
        assert_eq!(policy.as_deref(), Some("Orphan"));
    }
    assert_eq!(delete("null").told_options(), val("{}"));
    assert_eq!(delete("{gracePeriodSeconds: 0}").told_options(), val("{gracePeriodSeconds: 0}"));
}

#[test]
fn odd_reviews_are_refused() {
    for (patch, error) in [
        ("{uid: null}", "not an AdmissionReview: `request.uid` is missing or not a string"),
        ("{uid: 7}", "not an AdmissionReview: `request.uid` is missing or not a string"),
        ("{operation: PATCH}", "not an AdmissionReview: `PATCH` is no operation"),
        ("{object: null}", "not an AdmissionReview: `request.object` is missing or not a map"),
        ("{object: []}", "not an AdmissionReview: `request.object` is missing or not a map"),
        ("{kind: null}", "not an AdmissionReview: `request.kind.kind` is missing or not a string"),
        ("{userInfo: null}", "not an AdmissionReview: `request.userInfo.username` is missing or not a string"),
        (
            "{userInfo: {groups: [1]}}",
            "not an AdmissionReview: `request.userInfo.groups` is missing or not a list of strings",
        ),
        ("{options: {propagationPolicy: Now}}", "not an AdmissionReview: `Now` is no propagation policy"),
    ] {
        assert_eq!(review(patch).map_err(|e| e.to_string()), Err(error.to_owned()), "{patch}");
    }
    for (yaml, error) in [
        ("{a: 1}", "not an AdmissionReview: `kind` is missing or not a string"),
        ("{kind: AdmissionReview, apiVersion: v1}", "not an AdmissionReview: `v1` is no version of admission.k8s.io"),
        (
            "{kind: AdmissionReview, apiVersion: admission.k8s.io/v1}",
            "not an AdmissionReview: `request` is missing or not a map",
        ),
    ] {
        assert_eq!(Request::from_review(&val(yaml)).map_err(|e| e.to_string()), Err(error.to_owned()), "{yaml}");
    }
}

const DEFINITION: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
    spec: {group: db.example.com, scope: Namespaced, names: {kind: Database, plural: databases}}}";

#[test]
fn kinds_of_custom_resources_are_found() {
    let snapshot = cluster(DEFINITION);
    let state = State::new(&snapshot);
    let scale = review(
        "{subResource: scale, kind: {group: autoscaling, kind: Scale}, resource: {group: db.example.com, resource: databases}}",
    );
    let scale = scale.unwrap().resolve(&state);
    assert_eq!(scale.target.to_string(), "Database/shop/web");
    assert_eq!(kind_named(&state, "Database", None), Ok(Kind::new("db.example.com", "Database")));
    assert!(kind_named(&state, "Databases", None).is_err());
    let created = Request::create(
        User::admin(),
        &state,
        &val("{apiVersion: db.example.com/v1, kind: Database, metadata: {name: d}}"),
    );
    assert_eq!(created.unwrap().target.to_string(), "Database/default/d");
}

#[test]
fn users_have_their_usual_groups() {
    let groups = |name: &str| User::named(name).groups.iter().map(|g| g.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(
        groups("system:serviceaccount:zk:op"),
        "system:serviceaccounts system:serviceaccounts:zk system:authenticated"
    );
    assert_eq!(groups("ana"), "system:authenticated");
    assert_eq!(User::named("system:serviceaccount:zk:op").service_account(), Some(("zk", "op")));
}

#[test]
fn a_patch_of_what_does_not_exist_is_an_error() {
    let snapshot = cluster("");
    let state = State::new(&snapshot);
    let patch = Request::patch(User::admin(), &state, key("Pod/a/b"), &Val::Null, "");
    assert_eq!(patch.map_err(|e| e.to_string()), Err("`Pod/a/b` does not exist".to_owned()));
}

#[test]
fn an_object_tells_two_kinds_of_one_name_apart() {
    let snapshot = cluster(
        "{apiVersion: a.com/v1, kind: Db, metadata: {name: x}}\n---\n{apiVersion: b.com/v1, kind: Db, metadata: {name: y}}",
    );
    let state = State::new(&snapshot);
    let group = |name: &str| {
        key_named(&state, "Db", None, "", name).map(|k| k.kind.group.to_string()).map_err(|e| e.to_string())
    };
    assert_eq!(group("y"), Ok("b.com".to_owned()));
    let error = "ambiguous kind `Db`: it is in the groups `a.com`, `b.com`; write `{group, kind}`";
    assert_eq!(group("z"), Err(error.to_owned()));
}
