//! What is violated in the cluster as it is: no future is looked at, and no solver asked.

use suture_encode::analysis::Analysis;
use suture_encode::impact::Impact;
use suture_encode::question::{Judged, replay};
use suture_model::navigate::UnknownKind;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_specs::functions::Worlds;

use crate::decision::Verdict;
use crate::explain;
use crate::instance::{Undecided, judges};
use crate::request::expression_inputs;

/// The verdicts on the instances that do not hold, or of which it cannot be said, and how many hold.
pub(crate) fn audit(analyses: &[Analysis], snapshot: &Snapshot, time: Option<&str>) -> (Vec<Verdict>, u64) {
    let state = State::new(snapshot);
    let inputs = expression_inputs(&[], time);
    let mut verdicts = Vec::new();
    let mut proved = 0;
    for analysis in analyses {
        let compiled = &analysis.compiled;
        let impact = Impact::new(&state, []);
        if let Some(unread) = impact.unread_instances(analysis) {
            let every = Key::of(&unread, "", "*");
            let why = Undecided::Refused(UnknownKind(unread).to_string());
            verdicts.push(explain::undecided(compiled, &every, &why));
        }
        for key in impact.of_kinds(analysis, None) {
            let Some(object) = state.get(&key).filter(|o| judges(compiled, o)) else { continue };
            match replay(compiled, object, &inputs, Worlds { before: &state, now: &state }) {
                Judged::Holds => proved += 1,
                Judged::Violated { clause, message, .. } => {
                    verdicts.push(explain::violated_now(compiled, object, clause, &message));
                }
                Judged::Fails(why) => verdicts.push(explain::undecided(compiled, &key, &Undecided::Fails(why))),
            }
        }
    }
    (verdicts, proved)
}
