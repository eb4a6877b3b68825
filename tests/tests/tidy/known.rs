//! What breaks a rule of [`limits`](crate::limits) today. These lists only shrink: who mends an entry strikes it.

/// A circle that is meant.
pub struct Descent {
    pub files: &'static [&'static str],
    pub reason: &'static str,
}

/// Circles that stay.
pub const DESCENTS: &[Descent] = &[Descent {
    files: &["encode/src/term/bool.rs", "encode/src/term/int.rs"],
    reason: "a formula compares numbers, and a number may depend on a formula",
}];

/// Circles that are to be opened.
pub const CIRCLES: &[&[&str]] = &[
    &[
        "checker/src/engine.rs",
        "checker/src/explain.rs",
        "checker/src/inputs.rs",
        "checker/src/decision_cache.rs",
        "checker/src/invariant_run.rs",
    ],
    &["checker/src/minimize.rs", "checker/src/solve.rs", "checker/src/solve/session.rs"],
    &["encode/src/problem.rs", "encode/src/problem/canon.rs", "encode/src/problem/narrow.rs"],
    &["encode/src/relevance.rs", "encode/src/relevance/neighbourhood.rs", "encode/src/relevance/lone.rs"],
    &["encode/src/scene.rs", "encode/src/sym.rs"],
    &[
        "model/src/effects/coarse.rs",
        "model/src/effects/custom.rs",
        "model/src/effects/daemonset.rs",
        "model/src/effects/mod.rs",
        "model/src/effects/foreign_pods.rs",
        "model/src/effects/placement.rs",
        "model/src/effects/replicas.rs",
        "model/src/effects/room.rs",
        "model/src/effects/statefulset.rs",
        "model/src/scenario.rs",
    ],
    &["service/src/arguments.rs", "service/src/serve/options.rs"],
    &[
        "service/src/grants.rs",
        "service/src/grants/budget.rs",
        "service/src/grants/history.rs",
        "service/src/grants/scope.rs",
        "service/src/grants/spent.rs",
    ],
    &[
        "service/src/serve/conditions.rs",
        "service/src/serve/configuration.rs",
        "service/src/serve/configuration/keep.rs",
    ],
    &[
        "service/src/serve/feed.rs",
        "service/src/serve/kinds.rs",
        "service/src/serve/lease.rs",
        "service/src/serve/peers.rs",
        "service/src/serve/policies.rs",
        "service/src/serve/status.rs",
        "service/src/serve/store.rs",
        "service/src/serve/watch.rs",
    ],
    // `calls`, `lower` and `macros` are a descent: they move to `DESCENTS` once `confine` is out
    &["specs/src/cel/calls.rs", "specs/src/cel/confine.rs", "specs/src/cel/lower.rs", "specs/src/cel/macros.rs"],
    &["specs/src/functions.rs", "specs/src/functions/table.rs"],
    &["specs/src/functions/pure.rs", "specs/src/functions/pure/arithmetic.rs", "specs/src/functions/pure/convert.rs"],
    &["tests/e2e/src/authority.rs", "tests/e2e/src/suture.rs"],
    &["tests/tests/brute/enumerate.rs", "tests/tests/brute/mod.rs"],
    &[
        "tests/tests/universe/changes.rs",
        "tests/tests/universe/cluster.rs",
        "tests/tests/universe/mod.rs",
        "tests/tests/universe/workloads.rs",
    ],
];

/// Files that are to be taken apart.
pub const LONG_FILES: &[&str] = &[
    "checker/src/engine.rs",
    "encode/src/impact.rs",
    "encode/src/eval.rs",
    "encode/src/scene.rs",
    "model/src/effects/mod.rs",
    "model/src/effects/placement.rs",
    "model/src/effects/replicas.rs",
    "tests/e2e/tests/replay.rs",
    "tests/e2e/tests/requests.rs",
];

/// Functions that are to be taken apart: their file and their name.
pub const LONG_FUNCTIONS: &[&str] = &[
    "checker/tests/questions.rs: asked",
    "encode/src/impact.rs: reached",
    "encode/src/navigate.rs: navigate",
    "encode/src/outage.rs: node_classes_of_question",
    "model/src/effects/daemonset.rs: daemon_set",
    "model/src/effects/placement.rs: spread",
    "model/src/effects/replicas.rs: deployment",
    "service/src/serve/resources/overlay.rs: status",
    "specs/src/functions/navigate.rs: of_object",
    "specs/tests/cluster.rs: fields_and_navigation",
    "specs/tests/messages.rs: documents",
    "specs/tests/messages.rs: expressions",
    "tests/e2e/tests/requests.rs: a_release_of_fifty_objects_and_the_work_of_controllers_go_through",
    "tests/e2e/tests/requests.rs: objects_and_references",
    "tests/e2e/tests/requests.rs: workloads",
];
