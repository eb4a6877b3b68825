//! What rows of the table have to say of each other.

use super::*;

#[test]
fn a_row_is_found_by_its_kind_and_by_its_resource() {
    for traits in table::TABLE {
        let kind = Kind::new(traits.group, traits.kind);
        assert!(std::ptr::eq(kind.traits().unwrap(), traits), "{kind} stands twice");
        assert_eq!(Kind::of_resource(traits.group, traits.resource), Some(kind));
        assert_eq!(crate::change::plural(traits.kind), traits.resource);
        assert_eq!(Kind::new("example.com", traits.kind).traits().map(|t| t.kind), None);
        for (removed, _) in traits.removes {
            assert!(Kind::builtin(removed).is_some(), "{removed}");
        }
    }
}

#[test]
fn controllers_adopt_pods_in_this_order() {
    let adopting: Vec<String> = Kind::with(KindTraits::adopts_pods).map(|kind| kind.kind.to_string()).collect();
    assert_eq!(adopting, ["ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"]);
}

#[test]
fn an_error_names_the_first_of_these_kinds_that_was_not_read() {
    let claiming: Vec<String> = Kind::with(KindTraits::claims_hosts).map(|kind| kind.kind.to_string()).collect();
    assert_eq!(claiming, ["Ingress", "IngressClass", "HTTPRoute", "Gateway"]);
}
