//! Steady traffic: notes, ConfigMaps that come and go, and scalings of apps that are there from the start.

use serde_json::{Value, json};

use crate::fill::{PODS, World, app, place};
use crate::step::{Step, create, delete, scale, update};

/// What people and controllers ask all day, none of it harmful: half of it about ConfigMaps, the rest about workloads.
pub fn steps(world: &World, client: usize, round: usize) -> Vec<Step> {
    let number = (client + round * world.places) % world.apps;
    let (place, app) = (place(world, number), app(number));
    let (place, app) = (place.as_str(), app.as_str());
    let note = || json!({"metadata": {"annotations": {"round": format!("{client}-{round}")}}});
    let name = |turn: usize| format!("made-{client}-{round}-{turn}");
    let config =
        |turn: usize| -> Value { json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(turn)}}) };
    vec![
        create("ConfigMap", place, config(0)),
        delete("ConfigMap", place, &name(0)),
        create("ConfigMap", place, config(1)),
        delete("ConfigMap", place, &name(1)),
        update("Deployment", place, app, note()),
        update("Pod", place, &format!("{app}-0"), note()),
        update("Service", place, app, note()),
        scale("Deployment", place, app, PODS + 1),
        scale("Deployment", place, app, PODS),
        update("ConfigMap", place, app, note()),
    ]
}
