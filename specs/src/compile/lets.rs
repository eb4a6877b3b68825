//! The names of `let`: each compiled after those that it uses, whatever their order in the document.

use std::collections::{BTreeMap, BTreeSet};

use suture_model::value::Str;

use crate::cel::{RESERVED, Scope, free_names};
use crate::ir::Expr;
use crate::spec::{Cel, Origin, SpecError};

type Lets = Vec<(Str, Expr)>;

/// The named values in an order in which each comes after those that it uses, and the scope with all of them.
pub(super) fn compile(
    lets: Option<&BTreeMap<String, Cel>>,
    mut scope: Scope,
    var: &str,
    origin: &Origin,
) -> Result<(Lets, Scope), Vec<SpecError>> {
    let Some(lets) = lets else { return Ok((Vec::new(), scope)) };
    let mut errors = Vec::new();
    for name in lets.keys() {
        if let Some(error) = wrong_name(name, var, origin) {
            errors.push(error);
        }
    }
    let mut uses: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, text) in lets {
        match free_names(&text.0) {
            Ok(names) => {
                uses.insert(name, names.into_iter().filter(|n| lets.contains_key(n)).collect());
            }
            Err(error) => errors.push(SpecError::expression(origin, &format!("spec.let.{name}"), error)),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut done = Vec::new();
    while !uses.is_empty() {
        let ready = uses.iter().find(|(_, needs)| needs.is_empty()).map(|(name, _)| *name);
        let Some(name) = ready else {
            let names: Vec<String> = uses.keys().map(|n| format!("`{n}`")).collect();
            let first = uses.keys().next().copied().unwrap_or_default();
            let message = format!("{} use one another", names.join(", "));
            return Err(vec![SpecError::new(origin, &format!("spec.let.{first}"), message)]);
        };
        uses.remove(name);
        for needs in uses.values_mut() {
            needs.remove(name);
        }
        let Some(text) = lets.get(name) else { continue };
        match crate::cel::compile(&text.0, &scope, None) {
            Ok(expr) => {
                scope = scope.with(name, expr.ty.clone());
                done.push((Str::from(name), expr));
            }
            Err(error) => return Err(vec![SpecError::expression(origin, &format!("spec.let.{name}"), error)]),
        }
    }
    Ok((done, scope))
}

fn wrong_name(name: &str, var: &str, origin: &Origin) -> Option<SpecError> {
    let message = if RESERVED.contains(&name) {
        format!("`{name}` has a meaning already")
    } else if name == var {
        format!("`{name}` is the variable of `forEach`")
    } else if !is_name(name) {
        format!("`{name}` is no name: letters, digits and `_`")
    } else {
        return None;
    };
    Some(SpecError::new(origin, &format!("spec.let.{name}"), message))
}

/// Whether a text can be a variable.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
