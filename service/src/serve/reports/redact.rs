//! What of a report a reader may not see: objects in namespaces that he may not read are left out of it by name, wherever
//! they stand.
//!
//! Names stand in texts that invariants make, so no list of fields would do. What looks like an object's name
//! (`Kind/namespace/name`) or like a service account is found in every text; then what was found is taken out of all texts,
//! also where its name or its namespace stands alone. A word that happens to be such a name goes, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value as Json;
use suture_model::kinds::KindTraits;

/// What is said in place of an object.
const ELSEWHERE: &str = "an object in another namespace";
/// The same for one that is in none.
const OUTSIDE: &str = "an object of the cluster";
/// In place of a name that stands alone.
const HIDDEN: &str = "(hidden)";

/// The pattern is one of this file: it compiles (`patterns_compile`), else nothing would match and all texts be hidden.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static NAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r#"\b([A-Za-z][A-Za-z0-9]*)/([^\s/,;:()'"\[\]{}]+)(?:/([^\s,;()'"\[\]{}]+))?"#));
static ACCOUNT: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r#"system:serviceaccounts?:([^\s:,;()'"]+)(?::([^\s,;()'"]+))?"#));
static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*"));

/// The namespaces that the texts of a report name.
pub fn namespaces(json: &Json) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(json, &mut |text| {
        each(&NAMED, text, |part| match (part.get(1), part.get(2), part.get(3)) {
            (_, Some(namespace), Some(_)) => _ = found.insert(namespace.as_str().to_owned()),
            (Some(kind), Some(name), None) if kind.as_str() == "Namespace" => {
                _ = found.insert(name.as_str().to_owned())
            }
            _ => {}
        });
        each(&ACCOUNT, text, |part| found.extend(part.get(1).map(|namespace| namespace.as_str().to_owned())));
    });
    found
}

/// A report, or a list, as somebody may see it who may read the namespaces that `may_read` says.
pub fn redacted(json: Json, may_read: &dyn Fn(&str) -> bool) -> Json {
    if NAMED.is_none() || ACCOUNT.is_none() || WORD.is_none() {
        return Json::Null;
    }
    let mut hidden = Hidden::default();
    visit(&json, &mut |text| hidden.look(text, may_read));
    hidden.numbered();
    map(json, &|text| hidden.without(text))
}

/// Whether objects of a kind in no namespace are shown: pods and claims name them themselves, or they say what is allowed.
fn is_shown(kind: &str) -> bool {
    let is_place = |traits: &KindTraits| !traits.namespaced && traits.decides_places();
    kind == "OperatorGrant" || kind == "Exemption" || KindTraits::named(kind).is_some_and(is_place)
}

/// What may not be seen.
#[derive(Debug, Default)]
struct Hidden {
    /// Whole names, and what is said in their place.
    objects: BTreeMap<String, String>,
    /// Words: names and namespaces.
    words: BTreeSet<String>,
    /// Names of what may be seen.
    seen: BTreeSet<String>,
}

impl Hidden {
    fn look(&mut self, text: &str, may_read: &dyn Fn(&str) -> bool) {
        each(&NAMED, text, |part| {
            let word = |at: usize| part.get(at).map(|word| trimmed(word.as_str()).to_owned());
            let whole = part.get(0).map(|whole| trimmed(whole.as_str()).to_owned()).unwrap_or_default();
            let (Some(kind), Some(second)) = (word(1).filter(|kind| is_kind(kind)), word(2)) else { return };
            let name = word(3);
            let (is_hidden, said) = match &name {
                Some(_) => (!may_read(&second), ELSEWHERE),
                None if kind == "Namespace" => (!may_read(&second), "another namespace"),
                None => (!may_read("") && !is_shown(&kind), OUTSIDE),
            };
            match (is_hidden, name) {
                (true, name) => {
                    self.words.extend(name.into_iter().chain([second]));
                    self.objects.insert(whole, said.to_owned());
                }
                (false, name) => _ = self.seen.insert(name.unwrap_or(second)),
            }
        });
        each(&ACCOUNT, text, |part| {
            let Some(namespace) = part.get(1).map(|namespace| trimmed(namespace.as_str())) else { return };
            if !may_read(namespace) {
                let whole = part.get(0).map(|whole| trimmed(whole.as_str()).to_owned()).unwrap_or_default();
                self.words.insert(namespace.to_owned());
                self.words.extend(part.get(2).map(|name| trimmed(name.as_str()).to_owned()));
                self.objects.insert(whole, "a service account of another namespace".to_owned());
            }
        });
    }

    /// Tells objects apart that are said in the same words.
    fn numbered(&mut self) {
        let mut count = BTreeMap::<String, usize>::new();
        for said in self.objects.values_mut() {
            let number = count.entry(said.clone()).or_default();
            *number += 1;
            if *number > 1 {
                *said = format!("{said} ({number})");
            }
        }
        self.words.retain(|word| !self.seen.contains(word));
    }

    fn without(&self, text: &str) -> String {
        let whole = |part: &Captures<'_>| {
            let found = part.get(0).map_or("", |found| found.as_str());
            let name = trimmed(found);
            let rest = found.get(name.len()..).unwrap_or_default();
            self.objects.get(name).map_or_else(|| found.to_owned(), |said| format!("{said}{rest}"))
        };
        let word = |part: &Captures<'_>| {
            let found = part.get(0).map_or("", |found| found.as_str());
            let name = trimmed(found);
            let rest = found.get(name.len()..).unwrap_or_default();
            if self.words.contains(name) { format!("{HIDDEN}{rest}") } else { found.to_owned() }
        };
        let mut text = text.to_owned();
        for (pattern, replace) in
            [(&ACCOUNT, &whole as &dyn Fn(&Captures<'_>) -> String), (&NAMED, &whole), (&WORD, &word)]
        {
            if let Some(pattern) = pattern.as_ref() {
                text = pattern.replace_all(&text, replace).into_owned();
            }
        }
        text
    }
}

/// Whether a word may be a kind; paths and groups are not written like one.
fn is_kind(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_uppercase())
}

/// A name without the full stop of its sentence.
fn trimmed(name: &str) -> &str {
    name.trim_end_matches(['.', '-', '_', ':'])
}

fn each(pattern: &LazyLock<Option<Regex>>, text: &str, mut look: impl FnMut(&Captures<'_>)) {
    pattern.as_ref().iter().for_each(|pattern| pattern.captures_iter(text).for_each(|part| look(&part)));
}

/// All texts, names of fields among them.
fn visit(json: &Json, look: &mut dyn FnMut(&str)) {
    match json {
        Json::String(text) => look(text),
        Json::Array(items) => items.iter().for_each(|item| visit(item, look)),
        Json::Object(fields) => fields.iter().for_each(|(name, value)| {
            look(name);
            visit(value, look);
        }),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn map(json: Json, change: &dyn Fn(&str) -> String) -> Json {
    match json {
        Json::String(text) => Json::String(change(&text)),
        Json::Array(items) => items.into_iter().map(|item| map(item, change)).collect(),
        // names of fields that are no names of objects have no slash, and stay
        Json::Object(fields) => {
            let renamed = |name: String| if name.contains('/') { change(&name) } else { name };
            fields.into_iter().map(|(name, value)| (renamed(name), map(value, change))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_compile() {
        assert!(NAMED.is_some() && ACCOUNT.is_some() && WORD.is_some());
    }

    #[test]
    fn what_is_in_another_namespace_is_nowhere_in_what_a_reader_gets() {
        let report = json!({
            "requests": [{"user": "system:serviceaccount:vault-ns:operator-x", "groups": ["system:serviceaccounts:vault-ns"],
                "namespace": "vault-ns", "object": "Secret/vault-ns/root-token", "text": "system:serviceaccount:vault-ns:operator-x deletes Secret/vault-ns/root-token."}],
            "verdicts": [{"instance": "Pod/shop/web", "message": "web needs root-token of vault-ns; see vault-ns/root-token",
                "provedAgainst": {"Secret/vault-ns/root-token": "7", "Pod/shop/web": "8"},
                "counterexample": {"steps": [{"effect": "it goes", "objects": ["Secret/vault-ns/root-token", "Pod/shop/web", "Pod/vault-ns/web"]}],
                    "objects": [{"name": "ClusterRole/secret-role"}, {"name": "Node/n1"}, {"name": "Namespace/vault-ns"},
                        {"name": "PersistentVolumeClaim/payroll"}]}}],
        });
        let mine = redacted(report.clone(), &|namespace| namespace == "shop");
        let text = mine.to_string();
        for secret in ["vault-ns", "root-token", "operator-x", "secret-role", "payroll"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        for told in ["Pod/shop/web", "Node/n1", "an object in another namespace", "web needs (hidden) of (hidden)"] {
            assert!(text.contains(told), "{told}: {text}");
        }
        let steps = &mine["verdicts"][0]["counterexample"]["steps"][0]["objects"];
        assert_ne!(steps[0], steps[2], "two objects stay two: {steps}");
        assert_eq!(mine["verdicts"][0]["provedAgainst"][steps[2].as_str().unwrap()], json!(null), "{text}");
        assert_eq!(mine["verdicts"][0]["provedAgainst"]["Pod/shop/web"], "8");
        assert_eq!(redacted(report.clone(), &|_| true), report, "who may read all gets all");
        let nothing = redacted(report, &|_| false).to_string();
        assert!(!nothing.contains("shop"), "{nothing}");
    }

    #[test]
    fn all_namespaces_of_a_report_are_found() {
        let report = json!({"a": "Pod/shop/web and Namespace/kv", "b": {"Secret/vault/x": ["system:serviceaccount:op:me", "Node/n1"]}});
        assert_eq!(namespaces(&report).into_iter().collect::<Vec<_>>(), ["kv", "op", "shop", "vault"]);
    }
}
