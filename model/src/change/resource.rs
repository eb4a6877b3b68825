//! From what people and requests write to kinds and keys: short kinds, and resources such as `statefulsets`.

use super::request::ChangeError;
use crate::fields::defined_kind;
use crate::kinds::Kind;
use crate::navigate::definition_of;
use crate::object::Key;
use crate::state::State;

/// The kind of this name: in `group` if one is given, else the only one of that name among the built-in kinds, the
/// definitions, the adapters' kinds and the objects of the state.
///
/// # Errors
/// When there is none, or more than one.
pub fn kind_named(state: &State, kind: &str, group: Option<&str>) -> Result<Kind, ChangeError> {
    match kinds_named(state, kind, group).as_slice() {
        [only] => Ok(only.clone()),
        found => Err(not_one(kind, found)),
    }
}

/// The key of the object that is meant: as [`kind_named`], and where several kinds bear the name, of the one that has
/// such an object. A namespaced kind's default namespace is `default`; that of a cluster-scoped one is left out.
///
/// # Errors
/// When no kind bears the name, or several do and not just one of them has such an object.
pub fn key_named(state: &State, kind: &str, group: Option<&str>, ns: &str, name: &str) -> Result<Key, ChangeError> {
    let kinds = kinds_named(state, kind, group);
    let keys = kinds.iter().map(|kind| {
        let ns = match kind.builtin_namespaced() {
            Some(false) => "",
            Some(true) if ns.is_empty() => "default",
            _ => ns,
        };
        placed(state, Key::new(kind.clone(), ns, name))
    });
    let mut keys: Vec<Key> = keys.collect();
    if keys.len() > 1 {
        keys.retain(|key| state.get(key).is_some());
    }
    match keys.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(not_one(kind, &kinds)),
    }
}

/// The key with the namespace `default` where a namespaced custom resource names none; built-in kinds have it already.
pub(super) fn placed(state: &State, key: Key) -> Key {
    let definition = definition_of(state, &key.kind);
    let namespaced =
        definition.is_some_and(|d| d.val().str_at(&["spec", "scope"]).is_some_and(|s| &**s == "Namespaced"));
    if namespaced && key.ns.is_empty() { Key { ns: "default".into(), ..key } } else { key }
}

fn kinds_named(state: &State, kind: &str, group: Option<&str>) -> Vec<Kind> {
    if let Some(group) = group {
        return vec![Kind::new(group, kind)];
    }
    let definitions = state.list(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None);
    let defined = definitions.into_iter().filter_map(|d| defined_kind(d));
    let mut found: Vec<Kind> = defined.chain(state.base().adapters().stated_kinds()).chain(state.kinds()).collect();
    found.extend(Kind::builtin(kind));
    found.retain(|k| &*k.kind == kind);
    found.sort();
    found.dedup();
    found
}

fn not_one(kind: &str, found: &[Kind]) -> ChangeError {
    if found.is_empty() {
        return ChangeError::UnknownKind(kind.to_owned());
    }
    let groups: Vec<String> = found.iter().map(|k| format!("`{}`", k.group)).collect();
    ChangeError::AmbiguousKind { kind: kind.to_owned(), groups: groups.join(", ") }
}

/// The built-in kind of a resource in a group; for any other, a kind that bears the resource's name until
/// [`super::Request::resolve`] finds its own.
pub fn provisional(group: &str, resource: &str) -> Kind {
    Kind::of_resource(group, resource).unwrap_or_else(|| Kind::new(group, resource))
}

/// The kind of a provisional one: by the definition that has this resource, else by a kind of that group whose plural
/// it is.
pub(super) fn kind_of(state: &State, provisional: &Kind) -> Option<Kind> {
    if provisional.kind.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let definitions = state.list(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition"), None);
    let of_group =
        definitions.iter().filter(|d| d.val().str_at(&["spec", "group"]).is_some_and(|g| *g == provisional.group));
    let mut defined =
        of_group.filter(|d| d.val().str_at(&["spec", "names", "plural"]).is_some_and(|p| *p == provisional.kind));
    if let Some(kind) = defined.find_map(|d| defined_kind(d)) {
        return Some(kind);
    }
    let mut others = state.base().adapters().kinds();
    others.extend(state.kinds());
    others.into_iter().find(|k| k.group == provisional.group && plural(&k.kind) == *provisional.kind)
}

/// The usual plural of a kind, in lower case (`apimachinery/pkg/api/meta/restmapper.go`, `UnsafeGuessKindToResource`).
pub fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower == "endpoints" {
        return lower;
    }
    if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") || lower.ends_with("sh") {
        return format!("{lower}es");
    }
    let before_y = lower.chars().rev().nth(1).unwrap_or('a');
    match lower.strip_suffix('y') {
        Some(stem) if !"aeiou".contains(before_y) => format!("{stem}ies"),
        _ => format!("{lower}s"),
    }
}
