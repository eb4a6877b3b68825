//! `suture manifests`: what is to be installed in a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::arguments::{Manifests, Part};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::policy;
use crate::serve::configuration::{Installation, Reach, SERVICE_PORT, Target, static_webhook, webhook};
use crate::serve::{paths, rbac, resources};

pub(super) fn print(arguments: Manifests) -> Result<Exit, Failure> {
    let Manifests { part, policy, namespace, service_account, service, url, ca_bundle, failure_policy, .. } = arguments;
    let Manifests { system_namespaces, path_token, to, telling, .. } = arguments;
    if part == Part::Schemas {
        return schemas(to.as_deref());
    }
    let policy = policy::load(policy.profile.profile(), &policy.invariants, &policy.adapters)?;
    let ca_bundle = ca_bundle.map(|path| fs::read(&path).map_err(|error| Failure::read(&path, error))).transpose()?;
    let token = |path: PathBuf| fs::read_to_string(&path).map_err(|error| Failure::read(&path, error));
    let token = path_token.map(token).transpose()?;
    let segment = token.map(|text| paths::chosen(&text)).transpose().map_err(Failure::invalid)?;
    let reach = url.clone().map_or(Reach::Service { name: service, port: SERVICE_PORT }, Reach::Url);
    let target = Target {
        reach,
        ca_bundle: ca_bundle.unwrap_or_default(),
        failure_policy,
        installation: Installation { namespace, service_account },
        system_namespaces,
        segment,
        ..Target::default()
    };
    let value = |configuration| serde_json::to_value(configuration).map_err(Failure::invalid);
    let mut documents: Vec<Json> = Vec::new();
    if matches!(part, Part::Crds | Part::All) {
        documents.extend(resources::definitions());
    }
    if matches!(part, Part::Rbac | Part::All) {
        documents.extend(rbac::manifests(&policy, &target.installation, telling));
    }
    if matches!(part, Part::Webhook | Part::All) {
        documents.push(value(webhook(&policy, &target))?);
    }
    if let (Part::Static, Some(url)) = (part, &url) {
        documents.push(value(static_webhook(&policy, url, &target))?);
    }
    let texts: Result<Vec<String>, Failure> =
        documents.iter().map(|document| serde_saphyr::to_string(document).map_err(Failure::invalid)).collect();
    output::print(&texts?.join("---\n"))?;
    Ok(Exit::Good)
}

fn schemas(to: Option<&Path>) -> Result<Exit, Failure> {
    let schemas = resources::editor_schemas();
    let Some(folder) = to else {
        let text = serde_json::to_string_pretty(&json!(schemas)).map_err(Failure::invalid)?;
        output::print(&format!("{text}\n"))?;
        return Ok(Exit::Good);
    };
    let failed = |error| Failure::write(&folder.display().to_string(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    for (name, schema) in schemas {
        let text = serde_json::to_string_pretty(&schema).map_err(Failure::invalid)?;
        fs::write(folder.join(name), format!("{text}\n")).map_err(failed)?;
    }
    Ok(Exit::Good)
}
