//! Admission of Suture's own resources: what does not compile is refused with the compiler's message, and a template that
//! is in use stays.
//!
//! Only what a request makes wrong refuses it: a cluster whose policy is broken already stays repairable.

use std::collections::BTreeSet;

use miette::{GraphicalReportHandler, GraphicalTheme};
use suture_model::value::{Str, Val};
use suture_specs::spec::{Invariant, Origin, Spec, SpecError, is_ours, parse_spec};

use crate::grants::TEMPLATES;
use crate::policy::Documents;

/// How many errors a refusal tells.
const ERRORS_MAX: usize = 5;
/// How many users of a template a refusal names.
const USERS_MAX: usize = 5;
/// What errors are said to be in.
const PLACE: &str = "the request";

/// Why a request about one of Suture's own resources is refused; `None` when it is not, or is about something else.
/// `review` is an AdmissionReview, or its `request`.
pub fn admit(review: &Val, loaded: &Documents) -> Option<String> {
    let request = review.at_some(&["request"]).unwrap_or(review);
    let group = request.str_at(&["resource", "group"]);
    let subresource = request.str_at(&["subResource"]).is_some_and(|s| !s.is_empty());
    if group.is_none_or(|group| &**group != super::GROUP) || subresource {
        return None;
    }
    match request.str_at(&["operation"])?.as_ref() {
        "CREATE" | "UPDATE" => written(request.at_some(&["object"])?, loaded),
        "DELETE" => deleted(request, loaded),
        _ => None,
    }
}

/// Why an object cannot be stored.
fn written(object: &Val, loaded: &Documents) -> Option<String> {
    // taking finalizers off what is being deleted changes no policy
    if !is_ours(object) || object.at_some(&["metadata", "deletionTimestamp"]).is_some() {
        return None;
    }
    let text = serde_saphyr::to_string(object).unwrap_or_default();
    let origin = Origin { line: Some(1), text: text.into(), ..Origin::named(PLACE) };
    let spec = match parse_spec(object, origin) {
        Ok(spec) => spec,
        Err(errors) => return Some(refusal(&errors)),
    };
    let others = without(loaded, &spec);
    let mut with = others.clone();
    with.extend(Documents::from(spec));
    let errors = with.compile().err()?;
    let known: BTreeSet<String> = loaded.compile().err().into_iter().flatten().map(|e| e.to_string()).collect();
    let new: Vec<SpecError> = errors.into_iter().filter(|error| !known.contains(&error.to_string())).collect();
    (!new.is_empty()).then(|| refusal(&new))
}

/// Why an object cannot be deleted: it is a template, and invariants name it.
fn deleted(request: &Val, loaded: &Documents) -> Option<String> {
    if &**request.str_at(&["resource", "resource"])? != "invarianttemplates" {
        return None;
    }
    let name = request.str_at(&["name"]).or_else(|| request.str_at(&["oldObject", "metadata", "name"]))?;
    let users: Vec<String> = loaded.invariants.iter().filter(|i| uses(i, name)).map(title).collect();
    let more = users.len().saturating_sub(USERS_MAX);
    let shown = users.iter().take(USERS_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!users.is_empty()).then(|| format!("template `{name}` is in use by {shown}{more}; delete these first"))
}

fn uses(invariant: &Invariant, template: &str) -> bool {
    !TEMPLATES.contains(&template) && invariant.spec.template.as_deref() == Some(template)
}

fn title(invariant: &Invariant) -> String {
    let kind = if invariant.namespace.is_some() { "NamespacedInvariant" } else { "Invariant" };
    format!("{kind} {}", invariant.qualified_name())
}

/// The documents without the one that a new version takes the place of.
fn without(loaded: &Documents, new: &Spec) -> Documents {
    let mut others = loaded.clone();
    let is = |name: &Str, namespace: &Option<Str>, of: &Str, in_: &Option<Str>| name == of && namespace == in_;
    match new {
        Spec::Invariant(i) => others.invariants.retain(|o| !is(&o.name, &o.namespace, &i.name, &i.namespace)),
        Spec::InvariantTemplate(t) => others.templates.retain(|o| o.name != t.name),
        Spec::ResourceAdapter(a) => others.adapters.retain(|o| o.name != a.name),
        Spec::OperatorGrant(g) => others.grants.retain(|o| o.name != g.name),
        Spec::Exemption(e) => others.exemptions.retain(|o| o.name != e.name),
        Spec::Suite(_) => {}
    }
    others
}

/// The errors as the compiler tells them.
fn refusal(errors: &[SpecError]) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    let mut text = String::from("it does not compile:");
    for error in errors.iter().take(ERRORS_MAX) {
        let mut drawn = String::new();
        // a formatter into a text does not fail
        _ = handler.render_report(&mut drawn, error);
        text.push('\n');
        text.push_str(drawn.trim_end());
    }
    if errors.len() > ERRORS_MAX {
        text.push_str(&format!("\nand {} more", errors.len() - ERRORS_MAX));
    }
    text
}
