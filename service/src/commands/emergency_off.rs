//! `suture emergency-off`: the switch for the worst day.

use kube::Client;

use crate::arguments::EmergencyOff;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::serve::emergency_switch::Switch;

pub(super) fn run(arguments: EmergencyOff) -> Result<Exit, Failure> {
    let EmergencyOff { reason, dry_run, undo, print } = arguments;
    let switch = if undo { Switch::On } else { Switch::Off(reason) };
    if print {
        output::print(&format!("{}\n", switch.command()))?;
        return Ok(Exit::Good);
    }
    // one that is installed already serves as well
    _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::invalid(format!("cannot start: {error}")))?;
    let thrown = runtime.block_on(async {
        let client = Client::try_default().await;
        let client = client.map_err(|error| {
            Failure::invalid(format!("cannot reach the cluster: {error}; with kubectl: {}", switch.command()))
        })?;
        switch.throw(client, dry_run).await
    });
    output::print(&thrown?)?;
    Ok(Exit::Good)
}
