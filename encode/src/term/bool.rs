//! A condition over counts: comparisons `sum ≤ 0` joined by and, or, not.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use suture_model::hash::hash;
use suture_model::steps;

use super::{Assignment, Int, Lin, TermError, VarId, Vars};

/// A Boolean term. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bool(Arc<Node>);

#[derive(Debug)]
struct Node {
    kind: Kind,
    /// Only tells unequal terms apart quickly; no order and no answer depends on it.
    hash: u64,
    size: u64,
}

/// What a Boolean term is, to be read; only the constructors of [`Bool`] make one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Always holds.
    True,
    /// Never holds.
    False,
    /// The sum is at most zero. Neither always nor never true by the bounds of its variables.
    Le(Int),
    /// The negation of a conjunction or disjunction. Negated comparisons are comparisons.
    Not(Bool),
    /// Two or more conditions, sorted, none of them a constant or a conjunction.
    And(Vec<Bool>),
    /// Two or more conditions, sorted, none of them a constant or a disjunction.
    Or(Vec<Bool>),
}

/// The two ways to join conditions; each is the other one's dual.
#[derive(Clone, Copy, PartialEq)]
enum Join {
    And,
    Or,
}

impl Bool {
    /// A constant.
    pub fn truth(value: bool) -> Bool {
        // made to the end, whoever asks first
        static CONSTANTS: LazyLock<[Bool; 2]> =
            LazyLock::new(|| steps::aside(|| [Kind::False, Kind::True].map(Bool::new)));
        let [no, yes] = &*CONSTANTS;
        if value { yes.clone() } else { no.clone() }
    }

    /// What the term is.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Whether this is the constant true.
    pub fn is_true(&self) -> bool {
        matches!(self.kind(), Kind::True)
    }

    /// Whether this is the constant false.
    pub fn is_false(&self) -> bool {
        matches!(self.kind(), Kind::False)
    }

    /// The value, if it is a constant.
    pub fn as_constant(&self) -> Option<bool> {
        (self.is_true() || self.is_false()).then(|| self.is_true())
    }

    /// Nodes of the written-out form, at most `u64::MAX`. Sharing does not lessen it, so that whoever builds terms from untrusted
    /// expressions compares it with [`TERM_NODES_MAX`](super::TERM_NODES_MAX) as it goes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// `a ≤ b`
    pub fn le(a: &Int, b: &Int, vars: &Vars) -> Result<Bool, TermError> {
        if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant()) {
            return Ok(Bool::truth(a <= b));
        }
        Bool::at_most_zero(a.sub(b)?, vars)
    }

    /// `a < b`
    pub fn lt(a: &Int, b: &Int, vars: &Vars) -> Result<Bool, TermError> {
        if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant()) {
            return Ok(Bool::truth(a < b));
        }
        Bool::at_most_zero(Int::weighted([(a, 1), (b, -1), (&Int::constant(1), 1)])?, vars)
    }

    /// `a ≥ b`
    pub fn ge(a: &Int, b: &Int, vars: &Vars) -> Result<Bool, TermError> {
        Bool::le(b, a, vars)
    }

    /// `a > b`
    pub fn gt(a: &Int, b: &Int, vars: &Vars) -> Result<Bool, TermError> {
        Bool::lt(b, a, vars)
    }

    /// `a = b`
    pub fn eq(a: &Int, b: &Int, vars: &Vars) -> Result<Bool, TermError> {
        // halves that rounding has moved past each other contradict, and `and` sees it
        Ok(Bool::and([Bool::le(a, b, vars)?, Bool::le(b, a, vars)?]))
    }

    /// `a ≠ b`
    pub fn ne(a: &Int, b: &Int, vars: &Vars) -> Result<Bool, TermError> {
        Ok(Bool::eq(a, b, vars)?.not())
    }

    /// All of them; true of none.
    pub fn and(conditions: impl IntoIterator<Item = Bool>) -> Bool {
        join(Join::And, conditions)
    }

    /// Some of them; false of none.
    pub fn or(conditions: impl IntoIterator<Item = Bool>) -> Bool {
        join(Join::Or, conditions)
    }

    /// The negation.
    pub fn not(&self) -> Bool {
        match self.kind() {
            Kind::True => Bool::truth(false),
            Kind::False => Bool::truth(true),
            Kind::Le(term) => {
                complement(term).map_or_else(|| Bool::new(Kind::Not(self.clone())), |t| Bool::new(Kind::Le(t)))
            }
            Kind::Not(inner) => inner.clone(),
            Kind::And(inner) if inner.iter().all(is_atom) => Bool::or(inner.iter().map(Bool::not)),
            Kind::Or(inner) if inner.iter().all(is_atom) => Bool::and(inner.iter().map(Bool::not)),
            Kind::And(_) | Kind::Or(_) => Bool::new(Kind::Not(self.clone())),
        }
    }

    /// `a → b`
    pub fn implies(a: &Bool, b: &Bool) -> Bool {
        Bool::or([a.not(), b.clone()])
    }

    /// Both or neither. The result is written out twice as large as its parts together.
    pub fn iff(a: &Bool, b: &Bool) -> Bool {
        if a == b { Bool::truth(true) } else { Bool::and([Bool::implies(a, b), Bool::implies(b, a)]) }
    }

    /// `then` where the condition holds, `otherwise` elsewhere. The condition is written out twice.
    pub fn ite(condition: &Bool, then: &Bool, otherwise: &Bool) -> Bool {
        if then == otherwise {
            return then.clone();
        }
        Bool::and([Bool::implies(condition, then), Bool::or([condition.clone(), otherwise.clone()])])
    }

    /// Whether it holds under an assignment.
    pub fn eval(&self, assignment: &Assignment) -> Result<bool, TermError> {
        match self.kind() {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            Kind::Le(term) => Ok(term.eval(assignment)? <= 0),
            Kind::Not(inner) => Ok(!inner.eval(assignment)?),
            Kind::And(inner) => all(inner, assignment, true),
            Kind::Or(inner) => Ok(!all(inner, assignment, false)?),
        }
    }

    /// Adds the variables that occur.
    pub fn collect_vars(&self, into: &mut BTreeSet<VarId>) {
        let mut collect = |lin: &Lin| into.extend(lin.terms().iter().map(|(var, _)| *var));
        match self.kind() {
            Kind::True | Kind::False => {}
            Kind::Le(term) => {
                collect(term.lin());
                term.cases().iter().for_each(|(_, value)| collect(value));
                term.cases().iter().for_each(|(guard, _)| guard.collect_vars(into));
            }
            Kind::Not(inner) => inner.collect_vars(into),
            Kind::And(inner) | Kind::Or(inner) => inner.iter().for_each(|condition| condition.collect_vars(into)),
        }
    }

    /// A linear sum that is one where this holds and zero elsewhere: exists for a constant, and for a comparison that separates the
    /// two values of one variable.
    pub(super) fn indicator(&self, vars: &Vars) -> Result<Option<Lin>, TermError> {
        let lin = match self.kind() {
            Kind::True => return Ok(Some(Lin::constant(1))),
            Kind::False => return Ok(Some(Lin::constant(0))),
            Kind::Le(term) => term.as_lin(),
            _ => None,
        };
        let Some([(var, coefficient)]) = lin.map(Lin::terms) else { return Ok(None) };
        let info = vars.info(*var)?;
        if info.hi - info.lo != 1 {
            return Ok(None);
        }
        // undecided by the bounds, hence true at exactly one of the two values: the lower one if the sum rises
        if *coefficient > 0 { Lin::sum([(*var, -1)], info.hi) } else { Lin::sum([(*var, 1)], -info.lo) }.map(Some)
    }

    /// Replaces each variable; the replacement must be injective and keep the ranges.
    pub(crate) fn rename(&self, rename: &impl Fn(VarId) -> VarId) -> Bool {
        let renamed = |inner: &[Bool]| {
            let mut inner: Vec<Bool> = inner.iter().map(|condition| condition.rename(rename)).collect();
            inner.sort_unstable();
            inner
        };
        match self.kind() {
            Kind::True | Kind::False => self.clone(),
            Kind::Le(term) => Bool::new(Kind::Le(term.rename(rename))),
            Kind::Not(inner) => Bool::new(Kind::Not(inner.rename(rename))),
            Kind::And(inner) => Bool::new(Kind::And(renamed(inner))),
            Kind::Or(inner) => Bool::new(Kind::Or(renamed(inner))),
        }
    }

    /// `term ≤ 0`
    fn at_most_zero(term: Int, vars: &Vars) -> Result<Bool, TermError> {
        let term = term.without_fixed(vars)?;
        let bounds = term.bounds(vars)?;
        if bounds.max <= 0 || bounds.min > 0 {
            return Ok(Bool::truth(bounds.max <= 0));
        }
        if let Some(guard) = term.only_guard() {
            let then = Bool::at_most_zero(term.assuming(guard, true)?, vars)?;
            let otherwise = Bool::at_most_zero(term.assuming(guard, false)?, vars)?;
            if then.as_constant().is_some() || otherwise.as_constant().is_some() {
                return Ok(Bool::ite(guard, &then, &otherwise));
            }
        }
        Ok(Bool::new(Kind::Le(term.divided())))
    }

    fn new(kind: Kind) -> Bool {
        steps::count_items(1 + parts(&kind));
        let hash = hash(&kind);
        let size = match &kind {
            Kind::True | Kind::False => 1,
            Kind::Le(term) => term.size().saturating_add(1),
            Kind::Not(inner) => inner.size().saturating_add(1),
            Kind::And(inner) | Kind::Or(inner) => inner.iter().map(Bool::size).fold(1, u64::saturating_add),
        };
        Bool(Arc::new(Node { kind, hash, size }))
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.kind == other.0.kind)
    }
}

impl Eq for Bool {}

impl Ord for Bool {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.kind.cmp(&other.0.kind) }
    }
}

impl PartialOrd for Bool {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Bool {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// Of how many parts a term is made.
fn parts(kind: &Kind) -> usize {
    match kind {
        Kind::True | Kind::False | Kind::Not(_) => 1,
        Kind::Le(term) => term.cases().len() + term.lin().terms().len(),
        Kind::And(inner) | Kind::Or(inner) => inner.len(),
    }
}

fn all(conditions: &[Bool], assignment: &Assignment, wanted: bool) -> Result<bool, TermError> {
    for condition in conditions {
        if condition.eval(assignment)? != wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_atom(condition: &Bool) -> bool {
    matches!(condition.kind(), Kind::Le(_))
}

/// The `u` of `u ≤ 0` that holds iff `term ≤ 0` does not, `1 - term`, unless it overflows. What the bounds leave undecided and the
/// greatest divisor stay as they are.
fn complement(term: &Int) -> Option<Int> {
    Int::constant(1).sub(term).ok()
}

impl Join {
    /// The constant that changes nothing.
    fn unit(self) -> bool {
        self == Join::And
    }

    /// The conditions to join instead of this one, if it is joined the same way or is the negation of the dual.
    fn opened(self, condition: &Bool) -> Option<Vec<Bool>> {
        match (self, condition.kind()) {
            (Join::And, Kind::And(inner)) | (Join::Or, Kind::Or(inner)) => Some(inner.clone()),
            (_, Kind::Not(negated)) => match (self, negated.kind()) {
                (Join::And, Kind::Or(inner)) | (Join::Or, Kind::And(inner)) => {
                    Some(inner.iter().map(Bool::not).collect())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The members of a condition that is joined the other way.
    fn dual_members(self, condition: &Bool) -> &[Bool] {
        match (self, condition.kind()) {
            (Join::And, Kind::Or(inner)) | (Join::Or, Kind::And(inner)) => inner,
            _ => &[],
        }
    }
}

fn join(by: Join, conditions: impl IntoIterator<Item = Bool>) -> Bool {
    let mut waiting: Vec<Bool> = Vec::new();
    for condition in conditions {
        match condition.as_constant() {
            Some(value) if value == by.unit() => {}
            Some(_) => return condition,
            None => waiting.push(condition),
        }
    }
    // what stands alone is written as it is, but for a negation that turns into the negations of its members
    if waiting.len() <= 1 && !waiting.iter().any(|only| matches!(only.kind(), Kind::Not(_))) {
        return waiting.pop().unwrap_or_else(|| Bool::truth(by.unit()));
    }
    let mut flat = Vec::new();
    // no member of a condition is a constant
    while let Some(condition) = waiting.pop() {
        match by.opened(&condition) {
            Some(inner) => waiting.extend(inner),
            None => flat.push(condition),
        }
    }
    steps::count_items(flat.len());
    flat.sort_unstable();
    flat.dedup();
    keep_tightest(by, &mut flat);
    // a comparison clashes with another one only
    let compares_once = flat.iter().filter(|condition| is_atom(condition)).count() < 2;
    if flat.iter().any(|c| !(compares_once && is_atom(c)) && clashes(by, c, &flat)) {
        return Bool::truth(!by.unit());
    }
    if flat.iter().any(|condition| !by.dual_members(condition).is_empty()) {
        let absorbed = |c: &Bool| by.dual_members(c).iter().any(|member| flat.binary_search(member).is_ok());
        let kept: Vec<Bool> = flat.iter().filter(|condition| !absorbed(condition)).cloned().collect();
        if let Some(propagated) = propagate(by, &kept) {
            return join(by, propagated);
        }
        flat = kept;
    }
    match (flat.len(), by) {
        (0, _) => Bool::truth(by.unit()),
        (1, _) => flat.remove(0),
        (_, Join::And) => Bool::new(Kind::And(flat)),
        (_, Join::Or) => Bool::new(Kind::Or(flat)),
    }
}

/// Drops from each disjunction of a conjunction (and dually) the members whose negation is among the conditions. None if there are
/// none to drop.
fn propagate(by: Join, conditions: &[Bool]) -> Option<Vec<Bool>> {
    let refuted: BTreeSet<Bool> = conditions.iter().map(Bool::not).collect();
    let hit = |condition: &Bool| by.dual_members(condition).iter().any(|member| refuted.contains(member));
    conditions.iter().any(hit).then(|| {
        let shrunk = conditions.iter().map(|condition| match by.dual_members(condition) {
            [] => condition.clone(),
            members => {
                let left = members.iter().filter(|member| !refuted.contains(member)).cloned();
                if by == Join::And { Bool::or(left) } else { Bool::and(left) }
            }
        });
        shrunk.collect()
    })
}

/// Of comparisons that differ only in their constant (sorted, hence neighbours, the hardest to satisfy last), the conjunction needs
/// only the hardest and the disjunction only the easiest.
fn keep_tightest(by: Join, sorted: &mut Vec<Bool>) {
    let same_body = |a: &Bool, b: &Bool| match (a.kind(), b.kind()) {
        (Kind::Le(a), Kind::Le(b)) => a.cmp_body(b) == Ordering::Equal,
        _ => false,
    };
    sorted.dedup_by(|later, earlier| {
        let same = same_body(earlier, later);
        if same && by == Join::And {
            std::mem::swap(earlier, later);
        }
        same
    });
}

/// Whether the list holds a condition that cannot hold together with this one (in a conjunction), or that holds wherever this one
/// does not (in a disjunction).
fn clashes(by: Join, condition: &Bool, sorted: &[Bool]) -> bool {
    let held = |other: &Bool| sorted.binary_search(other).is_ok();
    let term = match condition.kind() {
        Kind::Le(term) => term,
        Kind::Not(inner) => match (by, inner.kind()) {
            (Join::And, Kind::And(members)) | (Join::Or, Kind::Or(members)) => return members.iter().all(held),
            _ => return held(inner),
        },
        _ => return false,
    };
    // term is B + c, the other one -B + d:  -d ≥ -B ≥ c, impossible iff c + d > 0;  B ≤ -c or B ≥ d, certain iff c + d ≤ 1
    let Some(opposite) = complement(term) else { return false };
    let found = sorted.binary_search_by(|other| match other.kind() {
        Kind::Le(other) => other.cmp_body(&opposite),
        Kind::True | Kind::False => Ordering::Less,
        _ => Ordering::Greater,
    });
    let Some(Kind::Le(other)) = found.ok().and_then(|place| sorted.get(place)).map(Bool::kind) else { return false };
    let sum = i128::from(term.lin().offset()) + i128::from(other.lin().offset());
    if by == Join::And { sum > 0 } else { sum <= 1 }
}
