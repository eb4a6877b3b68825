//! The parameters of a template: their types, their defaults, and the values that an invariant gives.

use std::collections::BTreeMap;

use suture_model::value::{Str, Val};

use crate::ir::Type;
use crate::spec::{InvariantTemplate, Origin, ParamType, Parameter, SpecError};

/// The types of the parameters in expressions; one that may be null is `any`.
pub(super) fn types(template: &InvariantTemplate) -> BTreeMap<Str, Type> {
    let ty = |p: &Parameter| match p.ty {
        _ if p.default.as_ref().is_some_and(Val::is_null) => Type::Any,
        ParamType::Int => Type::Int,
        ParamType::Double => Type::Double,
        ParamType::Bool => Type::Bool,
        ParamType::String => Type::String,
        ParamType::List => Type::list(Type::Any),
        ParamType::Map => Type::map(Type::String, Type::Any),
        ParamType::IntOrPercent | ParamType::LabelSelector | ParamType::Any => Type::Any,
    };
    template.spec.parameters.iter().map(|(name, p)| (Str::from(name.as_str()), ty(p))).collect()
}

/// The values of all parameters: those given, else the defaults.
pub(super) fn bind(template: &InvariantTemplate, given: &Val, origin: &Origin) -> Result<Val, Vec<SpecError>> {
    let parameters = &template.spec.parameters;
    let mut errors = Vec::new();
    for (name, _) in given.entries() {
        if !parameters.contains_key(&**name) {
            let message = format!("template `{}` has no parameter `{name}`", template.name);
            let error = SpecError::new(origin, &format!("spec.params.{name}"), message);
            let mut error = error.suggesting(name, parameters.keys().map(String::as_str));
            if error.help.is_none() {
                let names: Vec<String> = parameters.keys().map(|k| format!("`{k}`")).collect();
                error.help =
                    Some(if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) });
            }
            errors.push(error);
        }
    }
    let mut values = Vec::new();
    for (name, parameter) in parameters {
        let path = format!("spec.params.{name}");
        match given.get(name).or(parameter.default.as_ref()) {
            Some(value) => {
                if let Some(message) = mismatch(parameter, value) {
                    errors.push(SpecError::new(origin, &path, message));
                }
                values.push((Str::from(name.as_str()), value.clone()));
            }
            None => {
                let message = format!("template `{}` needs the parameter `{name}`", template.name);
                errors.push(SpecError::new(origin, "spec.params", message));
            }
        }
    }
    if errors.is_empty() { Ok(Val::map(values)) } else { Err(errors) }
}

/// The defaults that do not fit their types, and the names that are none.
pub(super) fn check_defaults(template: &InvariantTemplate) -> Vec<SpecError> {
    let mut errors = Vec::new();
    for (name, parameter) in &template.spec.parameters {
        let path = format!("spec.parameters.{name}");
        if !super::lets::is_name(name) {
            let message = format!("`{name}` is no name: letters, digits and `_`");
            errors.push(SpecError::new(&template.origin, &path, message));
        }
        if let Some(message) = parameter.default.as_ref().and_then(|default| mismatch(parameter, default)) {
            errors.push(SpecError::new(&template.origin, &format!("{path}.default"), message));
        }
    }
    errors
}

fn mismatch(parameter: &Parameter, value: &Val) -> Option<String> {
    let expected = match (parameter.ty, value) {
        (_, Val::Null) if parameter.default.as_ref().is_some_and(Val::is_null) => return None,
        (ParamType::Any, _) => return None,
        (ParamType::Int, _) if value.as_int().is_some() => return None,
        (ParamType::Double, Val::Int(_) | Val::Float(_)) => return None,
        (ParamType::Bool, Val::Bool(_)) => return None,
        (ParamType::String, Val::Str(_)) => return None,
        (ParamType::List, Val::List(_)) => return None,
        (ParamType::Map, Val::Map(_)) => return None,
        (ParamType::IntOrPercent, Val::Int(i)) if *i >= 0 => return None,
        (ParamType::IntOrPercent, Val::Str(s)) if is_percentage(s) => return None,
        (ParamType::LabelSelector, Val::Map(_)) => return selector_mismatch(value),
        (ParamType::Int, _) => "an integer",
        (ParamType::Double, _) => "a number",
        (ParamType::Bool, _) => "true or false",
        (ParamType::String, _) => "a string",
        (ParamType::List, _) => "a list",
        (ParamType::Map, _) => "a map",
        (ParamType::IntOrPercent, _) => "a number from 0, or a percentage from `0%` to `100%`",
        (ParamType::LabelSelector, _) => "a label selector",
    };
    let found = serde_json::to_string(value).unwrap_or_default();
    Some(format!("expected {expected}, found `{found}`"))
}

fn is_percentage(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|n| n.parse::<u16>().is_ok_and(|percent| percent <= 100))
}

fn selector_mismatch(value: &Val) -> Option<String> {
    let unknown = value.entries().map(|(k, _)| k).find(|k| !matches!(&***k, "matchLabels" | "matchExpressions"))?;
    Some(format!("a label selector has `matchLabels` and `matchExpressions`, not `{unknown}`"))
}
