//! Whether the change is to blame: what breaks when certain changes in flight have landed is compared with what would
//! break then without the change.

use suture_model::land::describe;
use suture_model::scenario::Scenario;
use suture_specs::spec::Violations;

use crate::instance::{InvariantRun, Undecided, Violation};
use crate::prove::{Examined, Proof};

/// What the change has to do with an instance.
pub(crate) enum Blame<'s, 'a> {
    /// Nothing: it holds in every future.
    Holds,
    /// It can break like this, which it can without the change too, and no less badly.
    NotWorse(Box<Violation<'s, 'a>>),
    /// The change is to blame for this violation.
    Change(Box<Violation<'s, 'a>>),
}

/// Whether the change is to blame for a violation.
pub(crate) fn blame<'s, 'a>(proof: &mut Proof<'_, 's, 'a>) -> Result<Blame<'s, 'a>, Undecided> {
    let InvariantRun { with, baseline, .. } = proof.instance.run;
    let (key, compiled) = (&proof.instance.object.key, proof.instance.run.compiled());
    let (mut unclear, mut excused) = (None, None);
    for scenario in with.iter().filter(|scenario| scenario.ever_existed(key)) {
        let violation = match proof.examine(scenario, None) {
            Examined::Holds => continue,
            Examined::Breaks(violation) => violation,
            Examined::Unclear(why) => {
                unclear = unclear.or(Some(why));
                continue;
            }
        };
        if compiled.violations == Violations::Strict {
            return Ok(to_blame(proof, scenario, violation));
        }
        let Some(without) = scenario.counterpart(baseline).filter(|without| without.ever_existed(key)) else {
            return Ok(to_blame(proof, scenario, violation));
        };
        let before = match proof.examine(without, None) {
            Examined::Holds => return Ok(to_blame(proof, scenario, violation)),
            Examined::Unclear(why) => return Err(why),
            Examined::Breaks(_) if compiled.degree.is_none() => {
                excused = excused.or(Some(violation));
                continue;
            }
            Examined::Breaks(before) => before,
        };
        // broken before: the change is to blame only if it can make it worse than it could become without
        let worst = worst_degree(proof, without, &before)?;
        match proof.examine(scenario, Some(worst)) {
            Examined::Holds => excused = excused.or(Some(violation)),
            Examined::Breaks(violation) => return Ok(to_blame(proof, scenario, violation)),
            Examined::Unclear(why) => unclear = unclear.or(Some(why)),
        }
    }
    match (unclear, excused) {
        (Some(why), _) => Err(why),
        (None, Some(violation)) => Ok(Blame::NotWorse(violation)),
        (None, None) => Ok(Blame::Holds),
    }
}

/// The change is to blame for a violation in a scenario, unless changes in flight land first.
fn to_blame<'s, 'a>(
    proof: &mut Proof<'_, 's, 'a>,
    scenario: &Scenario<'a>,
    mut violation: Box<Violation<'s, 'a>>,
) -> Blame<'s, 'a> {
    violation.open = not_landed(proof, scenario);
    Blame::Change(violation)
}

/// The greatest degree over the violating futures of a scenario, of which one is known. Never more than that: one that
/// has no value counts least, so that it excuses nothing.
fn worst_degree<'s, 'a>(
    proof: &mut Proof<'_, 's, 'a>,
    scenario: &'s Scenario<'a>,
    known: &Violation<'_, '_>,
) -> Result<i64, Undecided> {
    let Some(mut worst) = known.degree(&proof.instance) else { return Ok(i64::MIN) };
    loop {
        match proof.examine(scenario, Some(worst)) {
            Examined::Holds => return Ok(worst),
            Examined::Unclear(why) => return Err(why),
            Examined::Breaks(violation) => match violation.degree(&proof.instance) {
                Some(degree) if degree > worst => worst = degree,
                Some(_) | None => return Ok(worst),
            },
        }
    }
}

/// The changes in flight that have not landed in a scenario, if the instance holds where all have.
fn not_landed<'s, 'a>(proof: &mut Proof<'_, 's, 'a>, broken: &Scenario<'a>) -> Vec<String> {
    let InvariantRun { context, with, .. } = proof.instance.run;
    let most = with.iter().max_by_key(|scenario| scenario.landed.count_ones()).map_or(0, |most| most.landed);
    let missing = most & !broken.landed;
    let at = with.iter().filter(|s| s.landed == broken.landed).position(|s| std::ptr::eq(s, broken));
    let landed = at.and_then(|at| with.iter().filter(|s| s.landed == most).nth(at)).filter(|_| missing != 0);
    let Some(landed) = landed else { return Vec::new() };
    if landed.ever_existed(&proof.instance.object.key) && !matches!(proof.examine(landed, None), Examined::Holds) {
        return Vec::new();
    }
    let in_flight = context.in_flight.iter().enumerate();
    in_flight.filter(|(at, _)| missing & (1 << at) != 0).map(|(_, request)| describe(request)).collect()
}
