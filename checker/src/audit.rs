//! What is violated in the cluster as it is: no future is looked at, and no solver asked.

use std::cell::RefCell;

use suture_encode::analysis::Analysis;
use suture_encode::impact::Impact;
use suture_encode::question::{Judged, replay};
use suture_model::navigate::UnknownKind;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::steps;
use suture_specs::functions::Worlds;

use crate::decision::Verdict;
use crate::explain;
use crate::instance::{Undecided, judges};
use crate::request::expression_inputs;
use crate::suppose::judge_present;

/// What an invariant may take for each of its instances, beside its share: an evaluation that looks at some hundred objects.
const STEPS_PER_INSTANCE: u64 = 20_000;

/// The verdicts on the instances that do not hold, or of which it cannot be said, and how many hold. Each invariant takes a
/// share of so many steps, and what its instances may: one that takes more is undecided, and its other instances are left
/// out.
pub(crate) fn audit(analyses: &[Analysis], snapshot: &Snapshot, time: Option<&str>, share: u64) -> (Vec<Verdict>, u64) {
    let state = State::new(snapshot);
    let inputs = expression_inputs(&[], time);
    let (mut verdicts, mut proved) = (Vec::new(), 0);
    for analysis in analyses {
        let compiled = &analysis.compiled;
        let impact = Impact::new(&state, &[], &[]);
        if let Some(unread) = impact.unread_instances(analysis) {
            let every = Key::of(&unread, "", "*");
            let why = Undecided::Refused(UnknownKind(unread).to_string());
            verdicts.push(explain::undecided(compiled, &every, &why));
        }
        let keys = impact.of_kinds(analysis, None);
        let kept = RefCell::default();
        let for_all = STEPS_PER_INSTANCE.saturating_mul(u64::try_from(keys.len()).unwrap_or(u64::MAX));
        steps::within(share.saturating_add(for_all), || {
            for key in &keys {
                let Some(object) = state.get(key).filter(|o| judges(compiled, o)) else { continue };
                let judged_in = |here: &State<'_>| {
                    // others are nowhere else in memory than where the next one will be; what is kept does not tell again what
                    // was supposed for it
                    let is_this = std::ptr::eq(&raw const state, here) && snapshot.unknown().is_empty();
                    let kept = is_this.then_some(&kept);
                    replay(compiled, object, &inputs, Worlds { before: here, now: here }, kept)
                };
                let judged = judge_present(&state, judged_in);
                if steps::check().is_err() {
                    verdicts.push(explain::undecided(compiled, key, &Undecided::AuditOverran));
                    return;
                }
                match judged {
                    Ok(Judged::Holds) => proved += 1,
                    Ok(Judged::Violated { clause, message, .. }) => {
                        verdicts.push(explain::violated_now(compiled, object, clause, &message));
                    }
                    Ok(Judged::Fails(why)) => verdicts.push(explain::undecided(compiled, key, &Undecided::Fails(why))),
                    Err(why) => verdicts.push(explain::undecided(compiled, key, &why)),
                }
            }
        });
    }
    (verdicts, proved)
}
