//! A template compiles whatever the values of its parameters.

use super::faults::{under_fields, unsupported_faults};
use super::params;
use super::source::{Source, compile_source};
use crate::cel::{self, Scope};
use crate::ir::Type;
use crate::spec::{InvariantTemplate, SpecError};

/// Checks that a template compiles, whatever the values of its parameters.
///
/// # Errors
/// All that is wrong with it.
pub fn check_template(template: &InvariantTemplate) -> Result<(), Vec<SpecError>> {
    let mut errors = params::check_defaults(template);
    let source = template_source(template);
    if let Err(more) = compile_source(&source) {
        errors.extend(more);
    }
    if let Some(under) = &template.spec.under {
        let scope = Scope::under().with_params(source.params.clone());
        for (field, text) in under_fields(under) {
            if let Err(error) = cel::compile(&text.0, &scope, Some(&Type::Int)) {
                errors.push(SpecError::expression(&template.origin, &format!("spec.under.{field}"), error));
            }
        }
        errors.extend(unsupported_faults(under, &template.origin));
    }
    for stated in template.spec.profiles.baseline.iter().flatten() {
        let given = stated.params.clone().unwrap_or_default();
        errors.extend(params::bind(template, &given, &template.origin).err().into_iter().flatten());
        if let Some(hold) = stated.hold {
            let held = Source { hold: hold.into(), ..template_source(template) };
            errors.extend(compile_source(&held).err().into_iter().flatten());
        }
        errors.extend(stated.under.iter().flat_map(|under| unsupported_faults(under, &template.origin)));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

pub(super) fn template_source(template: &InvariantTemplate) -> Source<'_> {
    let spec = &template.spec;
    Source {
        origin: &template.origin,
        namespace: None,
        for_each: &spec.for_each,
        hold: spec.hold.unwrap_or_default().into(),
        lets: spec.lets.as_ref(),
        require: &spec.require,
        degree: spec.degree.as_ref(),
        params: params::types(template),
    }
}
