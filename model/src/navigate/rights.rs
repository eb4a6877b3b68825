//! What service accounts may do, by roles and bindings.
//!
//! Sources: `pkg/registry/rbac/validation/rule.go` (`VisitRulesFor`, `appliesTo`), `plugin/pkg/auth/authorizer/rbac/rbac.go`
//! (`RuleAllows`), `pkg/apis/rbac/v1/evaluation_helpers.go`, `pkg/controller/clusterroleaggregation`: what an aggregated role
//! grants is what the roles that it selects do. Rights by other authorizers are not known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::template::pod_spec;
use crate::fields::Accounts;
use crate::kinds::{Kind, KindTraits, RbacKind};
use crate::object::{Key, Object};
use crate::references::references;
use crate::selector::Selector;
use crate::state::State;
use crate::value::{Str, Val};

const GROUP: &str = "rbac.authorization.k8s.io";
/// The verbs that `*` stands for, of a resource.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Rules of a role, in a namespace or in all of them.
struct Grant<'s> {
    ns: Option<&'s Str>,
    rules: Vec<&'s Val>,
}

/// What an account may be asked to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: Str,
    group: Str,
    resource: Str,
    ns: Option<Str>,
    name: Option<Str>,
}

/// The service account of an object's pods: namespace and name.
fn account_of(state: &State, object: &Object) -> Option<(Str, Str)> {
    let spec = pod_spec(state, object)?;
    let named = spec.name_at(&["serviceAccountName"]).or_else(|| spec.name_at(&["serviceAccount"]));
    Some((object.key.ns.clone(), named.unwrap_or("default").into()))
}

/// What the account of an object's pods could do as `before` shows it and can do no more, of what they need: leases of their
/// namespace, custom resources, and what the object's adapter says that it reads; in order, each once.
pub fn rights_lost(before: &State, now: &State, object: &Object) -> Vec<String> {
    let Some(account) = account_of(now, object) else { return Vec::new() };
    let (had, has) = (grants(before, &account), grants(now, &account));
    // mostly nothing has changed about them
    if had.iter().all(|grant| has.iter().any(|other| grant.is(other))) {
        return Vec::new();
    }
    let needed = needed(before, object, &had);
    let lost = needed.iter().filter(|right| !has.iter().any(|grant| grant.allows(right)));
    let said: BTreeSet<String> = lost.map(Right::text).collect();
    said.into_iter().collect()
}

impl Right {
    fn text(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        let place = self.ns.as_ref().map_or_else(|| "everywhere".to_owned(), |ns| format!("in {ns}"));
        format!("{} {}{group}{name} {place}", self.verb, self.resource)
    }
}

impl Grant<'_> {
    /// Whether another one has the same rules there, which are then the same in memory.
    fn is(&self, other: &Self) -> bool {
        let at = |rule: &&Val| std::ptr::from_ref(*rule);
        self.ns == other.ns && self.rules.iter().map(at).eq(other.rules.iter().map(at))
    }

    fn allows(&self, right: &Right) -> bool {
        let covers = self.ns.is_none() || self.ns == right.ns.as_ref();
        covers && self.rules.iter().any(|rule| allows(rule, right))
    }
}

fn has(rule: &Val, field: &str, value: &str) -> bool {
    rule.items_at(&[field]).iter().filter_map(Val::as_str).any(|item| &**item == "*" || **item == *value)
}

fn allows(rule: &Val, right: &Right) -> bool {
    let names = rule.items_at(&["resourceNames"]);
    let named =
        names.is_empty() || right.name.as_ref().is_some_and(|name| names.iter().any(|n| n.as_str() == Some(name)));
    let sub = right.resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
    let resource = has(rule, "resources", &right.resource) || sub.is_some_and(|sub| has(rule, "resources", &sub));
    named && resource && has(rule, "verbs", &right.verb) && has(rule, "apiGroups", &right.group)
}

/// The grants of an account by live bindings to live roles.
fn grants<'s>(state: &'s State, account: &(Str, Str)) -> Vec<Grant<'s>> {
    let rules = |roles: Roles<'s>| -> Vec<&'s Val> {
        let granting = roles.selected.unwrap_or_else(|| vec![roles.bound]);
        granting.into_iter().flat_map(|role| role.val().items_at(&["rules"])).collect()
    };
    let grant = |binding: &'s Arc<Object>| Grant {
        ns: binding.key.kind.is("RoleBinding").then_some(&binding.key.ns),
        rules: roles_of(state, binding).map(rules).unwrap_or_default(),
    };
    bindings_of(state, account).map(grant).collect()
}

/// The live bindings that mean an account.
fn bindings_of<'s>(state: &'s State, (own, name): &(Str, Str)) -> impl Iterator<Item = &'s Arc<Object>> {
    let means = move |binding: &Object| {
        let subjects = binding.val().items_at(&["subjects"]).iter();
        let mut accounts = subjects.filter_map(|subject| Accounts::of(subject, &binding.key.ns));
        accounts.any(|accounts| accounts.mean(own, name))
    };
    state.binding(own, name).into_iter().filter(move |binding| binding.live() && means(binding))
}

/// Live roles: the one that a binding names and, of an aggregated one, those that it selects, whose rules it has.
struct Roles<'s> {
    bound: &'s Arc<Object>,
    selected: Option<Vec<&'s Arc<Object>>>,
}

/// The roles of a binding.
fn roles_of<'s>(state: &'s State, binding: &Object) -> Option<Roles<'s>> {
    let reference = |field: &str| binding.val().name_at(&["roleRef", field]).unwrap_or("");
    let ns = if reference("kind") == "Role" { &*binding.key.ns } else { "" };
    let key = Key::new(Kind::new(GROUP, reference("kind")), ns, reference("name"));
    let bound = state.get(&key).filter(|role| role.live())?;
    let selectors = bound.val().items_at(&["aggregationRule", "clusterRoleSelectors"]);
    if selectors.is_empty() {
        return Some(Roles { bound, selected: None });
    }
    let selectors: Vec<Selector> = selectors.iter().map(Selector::from_label_selector).collect();
    let all = state.list(&Kind::new(GROUP, "ClusterRole"), None).into_iter();
    let selected = all.filter(|one| one.live() && one.key != key && selectors.iter().any(|s| s.matches(one.labels())));
    Some(Roles { bound, selected: Some(selected.collect()) })
}

/// What pods need of what their account had.
fn needed(before: &State, object: &Object, had: &[Grant<'_>]) -> BTreeSet<Right> {
    let mut resources: Vec<(Str, Str)> = vec![("coordination.k8s.io".into(), "leases".into())];
    for definition in before.list(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None) {
        let text = |path: &[&str]| definition.val().str_at(path).cloned();
        resources.extend(text(&["spec", "group"]).zip(text(&["spec", "names", "plural"])));
    }
    let mut found = BTreeSet::new();
    for grant in had {
        for rule in &grant.rules {
            for (group, resource) in resources.iter().filter(|(group, _)| has(rule, "apiGroups", group)) {
                let own = &**resource == "leases" && &**group == "coordination.k8s.io";
                // a lease is one of the pods' own namespace
                let ns = match grant.ns {
                    Some(ns) if own && *ns != object.key.ns => continue,
                    None if own => Some(object.key.ns.clone()),
                    ns => ns.cloned(),
                };
                let subs = rule.items_at(&["resources"]).iter().filter_map(Val::as_str);
                let subs = subs.filter(|of| of.split_once('/').is_some_and(|(of, _)| *of == **resource));
                let whole = has(rule, "resources", resource).then(|| resource.clone());
                for resource in whole.into_iter().chain(subs.cloned()) {
                    add(
                        &mut found,
                        rule,
                        &Right { verb: "".into(), group: group.clone(), resource, ns: ns.clone(), name: None },
                    );
                }
            }
        }
    }
    let adapted = before.adapter(object).is_some();
    for reference in references(object, before.base().adapters().as_ref()).into_iter().filter(|r| adapted && !r.write) {
        let (kind, Key { ns, name, .. }) = (reference.target.kind.clone(), reference.target);
        let Some(traits) = kind.traits().filter(|_| !ns.is_empty()) else { continue };
        let right = Right {
            verb: "get".into(),
            group: kind.group.clone(),
            resource: traits.resource.into(),
            ns: Some(ns),
            name: Some(name),
        };
        if had.iter().any(|grant| grant.allows(&right)) {
            found.insert(right);
        }
    }
    found
}

/// The rights to a resource that a rule gives, verb by verb and name by name.
fn add(found: &mut BTreeSet<Right>, rule: &Val, of: &Right) {
    let verbs = rule.items_at(&["verbs"]).iter().filter_map(Val::as_str);
    let verbs = verbs.flat_map(|verb| if &**verb == "*" { VERBS.map(Str::from).to_vec() } else { vec![verb.clone()] });
    let names: Vec<Str> = rule.items_at(&["resourceNames"]).iter().filter_map(Val::as_str).cloned().collect();
    for verb in verbs {
        let right = Right { verb, ..of.clone() };
        match names.is_empty() {
            true => drop(found.insert(right)),
            false => found.extend(names.iter().map(|name| Right { name: Some(name.clone()), ..right.clone() })),
        }
    }
}

/// The namespaces of the accounts that an object's bindings mean: itself, those to it, those to a role that is made of it;
/// `None` for all of them. What was not read may bind a role that there was to any.
pub fn entitled(state: &State, changed: &Object) -> Option<BTreeSet<Str>> {
    let unknown = state.base().unknown();
    let unread = || Kind::with(KindTraits::grants_rights).any(|kind| unknown.contains(&*kind.kind));
    let is_role = changed.key.kind.has(|traits| traits.rbac() == Some(RbacKind::Role));
    if is_role && !unknown.is_empty() && unread() && state.base().get(&changed.key).is_some() {
        return None;
    }
    let mut bindings: Vec<&Arc<Object>> = state.referrers(&changed.key);
    if changed.key.kind.is("ClusterRole") {
        let selects = |role: &Object| {
            let selectors = role.val().items_at(&["aggregationRule", "clusterRoleSelectors"]).iter();
            selectors.map(Selector::from_label_selector).any(|selector| selector.matches(changed.labels()))
        };
        let roles = state.list(&Kind::new(GROUP, "ClusterRole"), None).into_iter().filter(|role| selects(role));
        bindings.extend(roles.flat_map(|role| state.referrers(&role.key)));
    }
    let mut found = BTreeSet::new();
    for binding in bindings.into_iter().map(|binding| &**binding).chain([changed]) {
        for subject in binding.val().items_at(&["subjects"]) {
            match Accounts::of(subject, &binding.key.ns) {
                Some(Accounts { ns, .. }) if ns.is_empty() => return None,
                Some(Accounts { ns, .. }) => drop(found.insert(ns)),
                None => {}
            }
        }
    }
    Some(found)
}

/// The live roles and bindings by which the account of an object's pods has its rights: only what becomes of these makes them
/// others.
pub fn granting<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let Some(account) = account_of(state, object) else { return Vec::new() };
    let granting = |binding: &'s Arc<Object>| {
        let roles = roles_of(state, binding).into_iter();
        let roles = roles.flat_map(|roles| roles.selected.into_iter().flatten().chain([roles.bound]));
        roles.chain([binding])
    };
    bindings_of(state, &account).flat_map(granting).collect()
}
