//! What the configuration covers, and what it can never cover.

use suture_specs::spec::Profile;

use super::{FailurePolicy, Target, static_webhook, webhook};
use crate::policy::{Documents, Policy};

fn shipped() -> Policy {
    let mut documents = Documents::default();
    documents.add_profile(Some(Profile::Strict)).unwrap();
    documents.compile().unwrap()
}

#[test]
fn without_a_policy_only_own_resources_come() {
    let configuration = webhook(&Documents::default().compile().unwrap(), &Target::default());
    let hooks = configuration.webhooks.unwrap();
    assert_eq!(hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(), ["resources.suture.dev"]);
    // what does not compile must stay repairable when Suture is away
    assert_eq!(hooks[0].failure_policy.as_deref(), Some("Ignore"));
}

#[test]
fn the_shipped_library_is_judged_outside_of_our_own_namespace() {
    let target = Target { failure_policy: FailurePolicy::Fail, ..Target::default() };
    let configuration = webhook(&shipped(), &target);
    let hooks = configuration.webhooks.unwrap();
    let decide = hooks.iter().find(|hook| hook.name == "decide.suture.dev").unwrap();
    assert_eq!(decide.failure_policy.as_deref(), Some("Fail"));
    assert_eq!(decide.timeout_seconds, Some(2));
    let selector = decide.namespace_selector.as_ref().unwrap().match_expressions.as_ref().unwrap();
    assert_eq!(
        (selector[0].operator.as_str(), selector[0].values.as_ref().unwrap()[0].as_str()),
        ("NotIn", "suture-system")
    );
    // the API server allows 64 (`pkg/apis/admissionregistration/validation`)
    assert!(decide.match_conditions.as_ref().unwrap().len() < 64);
}

#[test]
fn a_static_manifest_has_a_reserved_name_and_a_url() {
    let configuration = static_webhook(&shipped(), "https://127.0.0.1:8443/", &Target::default());
    assert!(configuration.metadata.name.unwrap().ends_with(".static.k8s.io"));
    for hook in configuration.webhooks.unwrap() {
        let path = match hook.name.as_str() {
            "decide-essential.suture.dev" => "/validate/essential",
            "resources.suture.dev" => "/validate/resources",
            _ => "/validate",
        };
        assert_eq!(hook.client_config.url, Some(format!("https://127.0.0.1:8443{path}")));
        assert!(hook.client_config.service.is_none());
    }
}
