//! Random terms beside a naive tree that means the same, for the tests of this crate.

use crate::term::{Assignment, Bool, Int, TermError, VarId, Vars};

/// A linear congruential generator: the same sequence on every machine.
pub(crate) struct Lcg(u64);

impl Lcg {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo + 1).cast_unsigned()).cast_signed()
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.below(place as u64 + 1) as usize);
        }
    }
}

/// An integer term as it was asked for.
#[derive(Clone, Debug)]
pub(crate) enum IntTree {
    Const(i64),
    Var(VarId),
    Add(Box<IntTree>, Box<IntTree>),
    Sub(Box<IntTree>, Box<IntTree>),
    Scale(i64, Box<IntTree>),
    Ite(Box<BoolTree>, Box<IntTree>, Box<IntTree>),
}

/// A condition as it was asked for.
#[derive(Clone, Debug)]
pub(crate) enum BoolTree {
    Const(bool),
    Cmp(&'static str, Box<IntTree>, Box<IntTree>),
    Not(Box<BoolTree>),
    And(Vec<BoolTree>),
    Or(Vec<BoolTree>),
    Implies(Box<BoolTree>, Box<BoolTree>),
    Iff(Box<BoolTree>, Box<BoolTree>),
    Ite(Box<BoolTree>, Box<BoolTree>, Box<BoolTree>),
}

impl IntTree {
    pub(crate) fn random(rng: &mut Lcg, vars: &Vars, depth: u32) -> IntTree {
        let sub = |rng: &mut Lcg| Box::new(IntTree::random(rng, vars, depth - 1));
        match rng.below(if depth == 0 { 3 } else { 8 }) {
            0 => IntTree::Const(rng.range(-4, 4)),
            1 | 2 => IntTree::Var(VarId(rng.below(vars.len() as u64) as u32)),
            3 | 4 => IntTree::Add(sub(rng), sub(rng)),
            5 => IntTree::Sub(sub(rng), sub(rng)),
            6 => IntTree::Scale(rng.range(-3, 3), sub(rng)),
            _ => IntTree::Ite(Box::new(BoolTree::random(rng, vars, depth - 1)), sub(rng), sub(rng)),
        }
    }

    pub(crate) fn term(&self, vars: &Vars) -> Result<Int, TermError> {
        match self {
            IntTree::Const(value) => Ok(Int::constant(*value)),
            IntTree::Var(var) => Ok(Int::var(*var)),
            IntTree::Add(a, b) => a.term(vars)?.add(&b.term(vars)?),
            IntTree::Sub(a, b) => a.term(vars)?.sub(&b.term(vars)?),
            IntTree::Scale(factor, a) => a.term(vars)?.scale(*factor),
            IntTree::Ite(c, a, b) => Int::ite(&c.term(vars)?, &a.term(vars)?, &b.term(vars)?, vars),
        }
    }

    pub(crate) fn eval(&self, at: &Assignment) -> i64 {
        match self {
            IntTree::Const(value) => *value,
            IntTree::Var(var) => at.0[var.index()],
            IntTree::Add(a, b) => a.eval(at) + b.eval(at),
            IntTree::Sub(a, b) => a.eval(at) - b.eval(at),
            IntTree::Scale(factor, a) => factor * a.eval(at),
            IntTree::Ite(c, a, b) => {
                if c.eval(at) {
                    a.eval(at)
                } else {
                    b.eval(at)
                }
            }
        }
    }
}

impl BoolTree {
    pub(crate) fn random(rng: &mut Lcg, vars: &Vars, depth: u32) -> BoolTree {
        let sub = |rng: &mut Lcg| Box::new(BoolTree::random(rng, vars, depth - 1));
        let many = |rng: &mut Lcg| (0..rng.below(4)).map(|_| BoolTree::random(rng, vars, depth - 1)).collect();
        match rng.below(if depth == 0 { 6 } else { 14 }) {
            0 => BoolTree::Const(rng.below(2) == 0),
            1..=5 => {
                let operators = ["<=", "<", "==", "!=", ">=", ">"];
                let inner = depth.min(2);
                let [a, b] = [0; 2].map(|_| Box::new(IntTree::random(rng, vars, inner)));
                BoolTree::Cmp(operators[rng.below(6) as usize], a, b)
            }
            6 | 7 => BoolTree::Not(sub(rng)),
            8 | 9 => BoolTree::And(many(rng)),
            10 | 11 => BoolTree::Or(many(rng)),
            12 => BoolTree::Implies(sub(rng), sub(rng)),
            _ if rng.below(2) == 0 => BoolTree::Iff(sub(rng), sub(rng)),
            _ => BoolTree::Ite(sub(rng), sub(rng), sub(rng)),
        }
    }

    pub(crate) fn term(&self, vars: &Vars) -> Result<Bool, TermError> {
        let many = |inner: &[BoolTree]| inner.iter().map(|c| c.term(vars)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            BoolTree::Const(value) => Bool::truth(*value),
            BoolTree::Cmp(operator, a, b) => {
                let compare = match *operator {
                    "<=" => Bool::le,
                    "<" => Bool::lt,
                    "==" => Bool::eq,
                    "!=" => Bool::ne,
                    ">=" => Bool::ge,
                    _ => Bool::gt,
                };
                compare(&a.term(vars)?, &b.term(vars)?, vars)?
            }
            BoolTree::Not(a) => a.term(vars)?.not(),
            BoolTree::And(inner) => Bool::and(many(inner)?),
            BoolTree::Or(inner) => Bool::or(many(inner)?),
            BoolTree::Implies(a, b) => Bool::implies(&a.term(vars)?, &b.term(vars)?),
            BoolTree::Iff(a, b) => Bool::iff(&a.term(vars)?, &b.term(vars)?),
            BoolTree::Ite(c, a, b) => Bool::ite(&c.term(vars)?, &a.term(vars)?, &b.term(vars)?),
        })
    }

    pub(crate) fn eval(&self, at: &Assignment) -> bool {
        match self {
            BoolTree::Const(value) => *value,
            BoolTree::Cmp(operator, a, b) => {
                let (a, b) = (a.eval(at), b.eval(at));
                match *operator {
                    "<=" => a <= b,
                    "<" => a < b,
                    "==" => a == b,
                    "!=" => a != b,
                    ">=" => a >= b,
                    _ => a > b,
                }
            }
            BoolTree::Not(a) => !a.eval(at),
            BoolTree::And(inner) => inner.iter().all(|c| c.eval(at)),
            BoolTree::Or(inner) => inner.iter().any(|c| c.eval(at)),
            BoolTree::Implies(a, b) => !a.eval(at) || b.eval(at),
            BoolTree::Iff(a, b) => a.eval(at) == b.eval(at),
            BoolTree::Ite(c, a, b) => {
                if c.eval(at) {
                    a.eval(at)
                } else {
                    b.eval(at)
                }
            }
        }
    }
}

/// Up to four variables of up to four values, some of them with two or one.
pub(crate) fn random_vars(rng: &mut Lcg) -> Vars {
    let mut vars = Vars::new();
    for place in 0..=rng.below(4) {
        let lo = rng.range(-2, 2);
        let hi = lo + [0, 1, 1, 2, 3][rng.below(5) as usize];
        vars.fresh(lo, hi, format!("v{place}")).unwrap();
    }
    vars
}

/// Every assignment of the table.
pub(crate) fn assignments(vars: &Vars) -> Vec<Assignment> {
    let start = vec![Assignment::default()];
    vars.iter().fold(start, |partial, (_, info)| {
        let longer = partial.iter().flat_map(|assignment| {
            (info.lo..=info.hi).map(|value| Assignment(assignment.0.iter().copied().chain([value]).collect()))
        });
        longer.collect()
    })
}
