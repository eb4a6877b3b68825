//! Shrinks the core of a proof until every label in it is needed.

use suture_encode::problem::Label;

use crate::answer::Check;

/// How often the solver is asked for a smaller core. A core of a few dozen labels is one that nobody reads; each check costs a tenth
/// of a millisecond or so.
const CORE_CHECKS_MAX: u32 = 64;

/// Drops each label in turn, the least first, and keeps it dropped if the rest is still contradictory; what the solver's new core
/// leaves out goes too. Where one of two labels would do, the greater one stays: give the assumptions that make the better
/// explanation the greater labels. Also says whether nothing was left untried.
pub(crate) fn core(mut core: Vec<Label>, mut check: impl FnMut(&[Label]) -> Check) -> (Vec<Label>, bool) {
    let mut needed = 0;
    for _ in 0..CORE_CHECKS_MAX {
        if needed == core.len() {
            return (core, true);
        }
        let mut without = core.clone();
        without.remove(needed);
        match check(&without) {
            // a core is a subset of what was assumed: all needed labels are in it
            Check::Unsat(smaller) => core = smaller,
            Check::Sat => needed += 1,
            Check::Unknown(_) => return (core, false),
        }
    }
    let minimal = needed == core.len();
    (core, minimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contradictory iff some of the sets is assumed in full; answers with a core as large as a solver may.
    fn oracle(sets: &[&[u32]], asked: &mut u32) -> impl FnMut(&[Label]) -> Check {
        move |labels| {
            *asked += 1;
            let holds = |set: &&&[u32]| set.iter().all(|label| labels.contains(&Label(*label)));
            if sets.iter().any(|set| holds(&set)) { Check::Unsat(labels.to_vec()) } else { Check::Sat }
        }
    }

    fn labels(numbers: impl IntoIterator<Item = u32>) -> Vec<Label> {
        numbers.into_iter().map(Label).collect()
    }

    #[test]
    fn every_label_that_stays_is_needed() {
        let mut asked = 0;
        assert_eq!(core(labels(0..9), oracle(&[&[2, 5, 7]], &mut asked)), (labels([2, 5, 7]), true));
        assert_eq!(asked, 9);
        assert_eq!(core(labels(0..9), oracle(&[&[1], &[3, 4]], &mut asked)), (labels([3, 4]), true));
        assert_eq!(core(labels(0..9), oracle(&[&[]], &mut asked)), (labels([]), true));
    }

    #[test]
    fn the_number_of_checks_is_bounded() {
        let mut asked = 0;
        let all: Vec<u32> = (0..200).collect();
        assert_eq!(core(labels(0..200), oracle(&[&all], &mut asked)), (labels(0..200), false));
        assert_eq!(asked, CORE_CHECKS_MAX);
    }

    #[test]
    fn an_unknown_ends_it() {
        let answer = core(labels(0..4), |_| Check::Unknown(crate::answer::Reason::Rlimit));
        assert_eq!(answer, (labels(0..4), false));
    }
}
