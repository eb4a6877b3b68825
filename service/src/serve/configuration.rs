//! The ValidatingWebhookConfiguration: which requests come to Suture, generated from the loaded policy.
//!
//! | webhook | requests | when Suture is away |
//! |---|---|---|
//! | `decide.suture.dev` | the break surface of the invariants, by anybody without a grant | refused, if so configured |
//! | `grants.suture.dev` | all writes of the subjects of grants | the same |
//! | `decide-essential`, `grants-essential` | those of the two that a cluster needs to come up ([`essential`]) | admitted |
//! | `resources.suture.dev` | Suture's own resources: what does not compile is refused | admitted: it must stay repairable |
//!
//! The first four are disjoint, so that no request comes twice. None covers Suture's own namespace.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use suture_model::change::Operation;

use super::paths::{Door, path};
use crate::failure_policy::FailurePolicy;
use crate::never_asked::own_group;
use crate::policy::Policy;
use crate::rules::{self, Judged, Rule};

mod conditions;
pub mod essential;
mod reconcile;
mod target;

pub use reconcile::{Note, reconcile};
pub use target::{Installation, NAME, OFF_ANNOTATION, Reach, SERVICE_PORT, TIMEOUT_SECONDS, Target};

/// How every name in a static manifest must end (KEP-5793).
const STATIC_SUFFIX: &str = ".static.k8s.io";
/// The seconds that the API server waits where a request is essential: no start of a cluster is held up for long by a
/// Suture whose machine is gone.
const ESSENTIAL_TIMEOUT_SECONDS: i32 = 1;
/// The label that every namespace bears its name in (`pkg/registry/core/namespace/strategy.go`).
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The configuration for a policy.
pub fn webhook(policy: &Policy, target: &Target) -> ValidatingWebhookConfiguration {
    let labels = [("app.kubernetes.io/name", "suture"), ("app.kubernetes.io/managed-by", "suture")];
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            labels: Some(labels.collect::<BTreeMap<_, _>>()),
            ..ObjectMeta::default()
        },
        webhooks: Some(webhooks(policy, target)),
    }
}

/// The configuration as a file for `staticManifestsDir` of an API server (KEP-5793): it knows no Services, nobody can
/// delete it by the API, and it sees webhook configurations too.
pub fn static_webhook(policy: &Policy, url: &str, target: &Target) -> ValidatingWebhookConfiguration {
    let mut configuration = webhook(policy, &Target { reach: Reach::Url(url.to_owned()), ..target.clone() });
    configuration.metadata.name = Some(format!("{NAME}{STATIC_SUFFIX}"));
    for hook in configuration.webhooks.iter_mut().flatten().filter(|hook| hook.name == "decide.suture.dev") {
        hook.rules.get_or_insert_default().push(registrations());
    }
    configuration
}

/// Registrations of webhooks, which only a static webhook sees.
fn registrations() -> RuleWithOperations {
    let resources = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    rule_of(Rule {
        groups: vec!["admissionregistration.k8s.io".to_owned()],
        resources: resources.iter().map(ToString::to_string).collect(),
        operations: vec![Operation::Create, Operation::Update, Operation::Delete],
    })
}

fn webhooks(policy: &Policy, target: &Target) -> Vec<ValidatingWebhook> {
    let mut hooks = Vec::new();
    let rules = rules::rules(policy);
    let granted = || policy.grants.subjects();
    if !rules.is_empty() {
        let mut conditions = conditions::common(&target.installation);
        if granted().next().is_some() {
            conditions.push(conditions::subjects(granted(), false));
        }
        conditions.push(conditions::judged(&Judged::of(policy)));
        hooks.extend(pair("decide", rules, conditions, target));
    }
    if granted().next().is_some() {
        let mut conditions = conditions::common(&target.installation);
        conditions.push(conditions::subjects(granted(), true));
        hooks.extend(pair("grants", rules::grant_rules(), conditions, target));
    }
    let own = [
        "exemptions",
        "invariants",
        "invarianttemplates",
        "namespacedinvariants",
        "operatorgrants",
        "resourceadapters",
    ];
    let own = Rule {
        groups: vec![own_group().to_owned()],
        resources: own.iter().map(ToString::to_string).collect(),
        operations: vec![Operation::Create, Operation::Update, Operation::Delete],
    };
    let mut resources = hook("resources", Door::Resources, vec![own], Vec::new(), target);
    resources.failure_policy = Some(FailurePolicy::Ignore.as_str().to_owned());
    resources.namespace_selector = Some(LabelSelector::default());
    hooks.push(resources);
    hooks
}

/// Two webhooks that share these requests: what is essential, and all else.
fn pair(name: &str, rules: Vec<Rule>, conditions: Vec<MatchCondition>, target: &Target) -> [ValidatingWebhook; 2] {
    let essential = essential::expression(&target.system_namespaces);
    let mut others = conditions.clone();
    others.push(conditions::condition("not-essential", format!("!({essential})")));
    let mut own = conditions;
    own.push(conditions::condition("essential", essential));
    let others = hook(name, Door::Decide, rules.clone(), others, target);
    let mut own = hook(&format!("{name}-essential"), Door::Essential, rules, own, target);
    own.failure_policy = Some(FailurePolicy::Ignore.as_str().to_owned());
    own.timeout_seconds = Some(target.timeout_seconds.min(ESSENTIAL_TIMEOUT_SECONDS));
    [others, own]
}

fn hook(
    name: &str,
    door: Door,
    rules: Vec<Rule>,
    conditions: Vec<MatchCondition>,
    target: &Target,
) -> ValidatingWebhook {
    let elsewhere = LabelSelectorRequirement {
        key: NAMESPACE_NAME.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec![target.installation.namespace.clone()]),
    };
    ValidatingWebhook {
        name: format!("{name}.suture.dev"),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client_config(&path(target.segment.as_deref(), door), target),
        failure_policy: Some(target.failure_policy.as_str().to_owned()),
        match_conditions: (!conditions.is_empty()).then_some(conditions),
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(LabelSelector { match_expressions: Some(vec![elsewhere]), match_labels: None }),
        object_selector: Some(LabelSelector::default()),
        rules: Some(rules.into_iter().map(rule_of).collect()),
        // an admitted request is noted, here and by the other replicas; a dry run is not
        side_effects: "NoneOnDryRun".to_owned(),
        timeout_seconds: Some(target.timeout_seconds),
    }
}

fn client_config(path: &str, target: &Target) -> WebhookClientConfig {
    let ca_bundle = (!target.ca_bundle.is_empty()).then(|| ByteString(target.ca_bundle.clone()));
    match &target.reach {
        Reach::Url(url) => {
            let url = format!("{}{path}", url.trim_end_matches('/'));
            WebhookClientConfig { ca_bundle, service: None, url: Some(url) }
        }
        Reach::Service { name, port } => {
            let service = ServiceReference {
                name: name.clone(),
                namespace: target.installation.namespace.clone(),
                path: Some(path.to_owned()),
                port: Some(*port),
            };
            WebhookClientConfig { ca_bundle, service: Some(service), url: None }
        }
    }
}

fn rule_of(rule: Rule) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(rule.groups),
        // whatever version is asked for: matchPolicy Equivalent converts between those of one resource
        api_versions: Some(vec!["*".to_owned()]),
        operations: Some(rule.operations.iter().map(|operation| operation.as_str().to_owned()).collect()),
        resources: Some(rule.resources),
        scope: Some("*".to_owned()),
    }
}

#[cfg(test)]
mod tests;
