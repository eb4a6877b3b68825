//! The constructors against naive trees, and the folds that other parts rely on.

use super::testing::{BoolTree, IntTree, Lcg, assignments, random_vars};
use super::*;

fn counts(ranges: &[(i64, i64)]) -> (Vars, Vec<Int>) {
    let mut vars = Vars::new();
    let ids = ranges.iter().map(|(lo, hi)| Int::var(vars.fresh(*lo, *hi, "").unwrap())).collect();
    (vars, ids)
}

#[test]
fn constructors_keep_the_meaning() {
    for seed in 0..6000 {
        let mut rng = Lcg::new(seed);
        let vars = random_vars(&mut rng);
        let depth = rng.below(5) as u32;
        let (condition, number) = (BoolTree::random(&mut rng, &vars, depth), IntTree::random(&mut rng, &vars, depth));
        let (condition_term, number_term) = (condition.term(&vars).unwrap(), number.term(&vars).unwrap());
        let bounds = number_term.bounds(&vars).unwrap();
        for at in assignments(&vars) {
            assert_eq!(condition_term.eval(&at), Ok(condition.eval(&at)), "seed {seed}: {condition:?} at {at:?}");
            let value = number.eval(&at);
            assert_eq!(number_term.eval(&at), Ok(value), "seed {seed}: {number:?} at {at:?}");
            assert!((bounds.min..=bounds.max).contains(&value.into()), "seed {seed}: {value} outside {bounds:?}");
        }
    }
}

#[test]
fn terms_are_canonical_all_the_way_down() {
    fn check(condition: &Bool) {
        let list = |inner: &[Bool]| {
            assert!(inner.len() > 1 && inner.is_sorted_by(|a, b| a < b));
            inner.iter().for_each(check);
        };
        match condition.kind() {
            Kind::True | Kind::False => {}
            Kind::Not(inner) => assert!(matches!(inner.kind(), Kind::And(_) | Kind::Or(_))),
            Kind::And(inner) => {
                assert!(!inner.iter().any(|c| c.as_constant().is_some() || matches!(c.kind(), Kind::And(_))));
                list(inner);
            }
            Kind::Or(inner) => {
                assert!(!inner.iter().any(|c| c.as_constant().is_some() || matches!(c.kind(), Kind::Or(_))));
                list(inner);
            }
            Kind::Le(term) => {
                assert!(term.as_constant().is_none());
                assert!(term.lin().terms().is_sorted_by(|a, b| a.0 < b.0));
                assert!(term.cases().is_sorted_by(|a, b| a.0 < b.0));
                assert!(term.cases().iter().all(|(g, v)| g.as_constant().is_none() && !v.is_zero()));
                assert_eq!(term.clone().divided(), *term);
            }
        }
        assert_eq!(condition.not().not(), *condition);
    }
    for seed in 0..3000 {
        let mut rng = Lcg::new(seed);
        let vars = random_vars(&mut rng);
        check(&BoolTree::random(&mut rng, &vars, 4).term(&vars).unwrap());
    }
}

#[test]
fn a_long_sum_is_put_in_order_on_the_way() {
    let (_, n) = counts(&[(0, 9); 700]);
    let some = Int::sum(n.iter().take(350)).unwrap();
    let terms = n.iter().map(|n| (n, 2)).chain(n.iter().rev().map(|n| (n, -1)));
    let all = Int::weighted(terms.chain([(&some, 3), (&some, -4)])).unwrap();
    assert_eq!(all, Int::sum(n.iter().skip(350)).unwrap());
}

#[test]
fn equal_terms_hash_equal_and_order_is_total() {
    let mut rng = Lcg::new(1);
    let vars = random_vars(&mut rng);
    let terms: Vec<Bool> = (0..60).map(|_| BoolTree::random(&mut rng, &vars, 2).term(&vars).unwrap()).collect();
    for a in &terms {
        for b in &terms {
            assert_eq!(a == b, a.cmp(b).is_eq());
            assert_eq!(a.cmp(b), b.cmp(a).reverse());
            assert!(terms.iter().all(|c| !(a <= b && b <= c) || a <= c));
        }
    }
}

#[test]
fn comparisons_fold_by_bounds() {
    let (vars, x) = counts(&[(0, 3), (2, 5)]);
    let sum = x[0].add(&x[1]).unwrap();
    assert!(Bool::le(&sum, &8.into(), &vars).unwrap().is_true());
    assert!(Bool::lt(&sum, &2.into(), &vars).unwrap().is_false());
    assert!(Bool::eq(&sum, &9.into(), &vars).unwrap().is_false());
    assert!(Bool::ne(&sum, &1.into(), &vars).unwrap().is_true());
    assert_eq!(Bool::ge(&sum, &8.into(), &vars).unwrap().as_constant(), None);
}

#[test]
fn comparisons_are_divided_and_rounded() {
    let (vars, x) = counts(&[(0, 9)]);
    let twice = x[0].scale(2).unwrap();
    assert_eq!(Bool::le(&twice, &7.into(), &vars), Bool::le(&x[0], &3.into(), &vars));
    assert_eq!(Bool::ge(&twice, &7.into(), &vars), Bool::ge(&x[0], &4.into(), &vars));
    assert!(Bool::eq(&twice, &7.into(), &vars).unwrap().is_false());
}

#[test]
fn a_variable_with_one_value_is_that_value() {
    let (vars, x) = counts(&[(4, 4), (0, 9)]);
    let sum = x[0].add(&x[1]).unwrap();
    assert_eq!(Bool::le(&sum, &7.into(), &vars), Bool::le(&x[1], &3.into(), &vars));
}

#[test]
fn conjunctions_keep_the_tightest_and_see_contradictions() {
    let (vars, x) = counts(&[(0, 9), (0, 9)]);
    let le = |x: &Int, n: i64| Bool::le(x, &n.into(), &vars).unwrap();
    let ge = |x: &Int, n: i64| Bool::ge(x, &n.into(), &vars).unwrap();
    assert_eq!(Bool::and([le(&x[0], 5), le(&x[0], 3)]), le(&x[0], 3));
    assert_eq!(Bool::or([le(&x[0], 5), le(&x[0], 3)]), le(&x[0], 5));
    assert!(Bool::and([le(&x[0], 3), ge(&x[0], 4)]).is_false());
    assert!(Bool::or([le(&x[0], 3), ge(&x[0], 4)]).is_true());
    assert!(Bool::or([le(&x[0], 2), ge(&x[0], 4)]).as_constant().is_none());
    let either = Bool::or([le(&x[0], 3), le(&x[1], 3)]);
    assert!(Bool::and([either.clone(), either.not()]).is_false());
    assert_eq!(Bool::and([either, le(&x[0], 3)]), le(&x[0], 3));
    let both = Bool::and([le(&x[0], 3), Bool::or([le(&x[1], 3), Bool::and([ge(&x[1], 5), ge(&x[0], 1)])])]);
    assert!(Bool::and([both.clone(), both.not()]).is_false());
    assert!(Bool::or([both.not(), both]).is_true());
}

#[test]
fn flags_become_linear() {
    let (vars, x) = counts(&[(0, 1), (0, 9)]);
    let flag = Bool::ge(&x[0], &1.into(), &vars).unwrap();
    assert_eq!(Int::from_bool(&flag, &vars), Ok(x[0].clone()));
    assert_eq!(Int::ite(&flag, &3.into(), &5.into(), &vars), x[0].scale(-2).unwrap().add(&5.into()));
    assert_eq!(Int::from_bool(&flag.not(), &vars), Int::constant(1).sub(&x[0]));
    let counted = Int::from_bool(&Bool::ge(&x[1], &4.into(), &vars).unwrap(), &vars).unwrap();
    assert_eq!(counted.cases().len(), 1);
    assert_eq!(Bool::ge(&counted, &1.into(), &vars), Bool::ge(&x[1], &4.into(), &vars));
    let negated = Int::from_bool(&Bool::lt(&x[1], &4.into(), &vars).unwrap(), &vars).unwrap();
    assert_eq!(counted.add(&negated), Ok(Int::constant(1)));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (vars, x) = counts(&[(0, VAR_ABS_MAX)]);
    let big = x[0].scale(i64::MAX).unwrap();
    assert_eq!(big.add(&x[0]), Err(TermError::Overflow));
    assert_eq!(Int::constant(i64::MIN).sub(&1.into()), Err(TermError::Overflow));
    assert_eq!(big.eval(&vars.all_hi()), Err(TermError::Overflow));
    assert_eq!(Bool::le(&big, &Int::constant(i64::MIN), &vars), Err(TermError::Overflow));
    assert!(Bool::le(&big, &(-1).into(), &vars).unwrap().is_false());
    assert_eq!(Bool::le(&big, &5.into(), &vars), Bool::le(&x[0], &0.into(), &vars));
    // the negation of this comparison has a constant beyond 64 bits
    let least = Bool::le(&x[0].add(&Int::constant(i64::MIN)).unwrap(), &x[0].scale(0).unwrap(), &vars).unwrap();
    assert!(least.is_true());
    let mut table = Vars::new();
    assert_eq!(table.fresh(1, 0, ""), Err(TermError::EmptyRange { lo: 1, hi: 0 }));
    assert_eq!(table.fresh(0, VAR_ABS_MAX + 1, ""), Err(TermError::RangeTooWide { lo: 0, hi: VAR_ABS_MAX + 1 }));
    assert_eq!(Bool::le(&x[0], &3.into(), &table), Err(TermError::UnknownVar(VarId(0))));
}

#[test]
fn written_out_size_counts_what_is_shared() {
    let (vars, x) = counts(&[(0, 9), (0, 9)]);
    let mut condition = Bool::le(&x[0], &x[1], &vars).unwrap();
    for step in 0..90 {
        condition = Bool::iff(&condition, &Bool::le(&x[0], &(step % 9).into(), &vars).unwrap());
    }
    assert!(condition.size() > TERM_NODES_MAX);
}
