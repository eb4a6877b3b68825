//! The emergency switch: takes all webhooks out of the configuration, and marks it so that no replica puts them back.
//!
//! It needs nothing of Suture but the API server: `kubectl` does the same with the line that it prints.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value as Json, json};

use super::configuration::{NAME, OFF_ANNOTATION};
use crate::failure::Failure;

/// Off, or on again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// No request is judged, for this reason.
    Off(String),
    /// The replicas put the webhooks back.
    On,
}

impl Switch {
    /// The merge patch of the configuration.
    pub fn patch(&self) -> Json {
        match self {
            Self::Off(reason) => json!({"metadata": {"annotations": {OFF_ANNOTATION: reason}}, "webhooks": []}),
            Self::On => json!({"metadata": {"annotations": {OFF_ANNOTATION: null}}}),
        }
    }

    /// The line for kubectl.
    pub fn command(&self) -> String {
        match self {
            // within single quotes of a shell a quote ends them
            Self::Off(_) => {
                let patch = self.patch().to_string().replace('\'', "'\\''");
                format!("kubectl patch validatingwebhookconfiguration {NAME} --type=merge -p '{patch}'")
            }
            Self::On => format!("kubectl annotate validatingwebhookconfiguration {NAME} {OFF_ANNOTATION}-"),
        }
    }

    /// What has become so, for a person.
    pub fn says(&self) -> String {
        match self {
            Self::Off(reason) => format!(
                "off: no request is judged any more ({reason})\nsuture keeps running and leaves the configuration alone; a \
                 static manifest of an API server is not switched by this\non again: suture emergency-off --undo, or\n  {}\n",
                Self::On.command()
            ),
            Self::On => "on: the replicas put the webhooks back within seconds\n".to_owned(),
        }
    }

    /// Throws the switch; a dry run asks the API server whether it could be.
    ///
    /// # Errors
    /// When the API server cannot be reached or refuses. There being nothing to switch off is none.
    pub async fn throw(&self, client: Client, dry_run: bool) -> Result<String, Failure> {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client);
        let parameters =
            PatchParams { dry_run, field_manager: Some("suture-emergency-off".to_owned()), ..Default::default() };
        match api.patch(NAME, &parameters, &Patch::Merge(self.patch())).await {
            Ok(_) if dry_run => Ok(format!("nothing was changed: a dry run\nwith kubectl\n  {}\n", self.command())),
            Ok(_) => Ok(self.says()),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                Ok(format!("nothing to do: there is no validatingwebhookconfiguration `{NAME}`\n"))
            }
            Err(error) => {
                let line = self.command();
                Err(Failure::invalid(format!("cannot patch `{NAME}`: {error}; with kubectl: {line}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Switch;

    #[test]
    fn the_line_is_one_that_a_shell_reads() {
        let line = Switch::Off("it's broken".to_owned()).command();
        assert!(
            line.ends_with(r#"-p '{"metadata":{"annotations":{"suture.dev/off":"it'\''s broken"}},"webhooks":[]}'"#),
            "{line}"
        );
        assert!(Switch::On.command().ends_with("suture suture.dev/off-"));
    }
}
