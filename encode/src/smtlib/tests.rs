//! The printed form, in full.

use super::*;
use crate::problem::Label;

#[test]
fn a_problem_is_printed_in_full() {
    let mut vars = Vars::new();
    let up = Int::var(vars.fresh(0, 1, "node a|up").unwrap());
    let gone = Int::var(vars.fresh(0, 7, "web: gone").unwrap());
    let bare = Int::var(vars.fresh(-2, 5, "").unwrap());
    let few = Bool::le(&gone, &3.into(), &vars).unwrap();
    let cost = Int::ite(&few, &bare, &gone.scale(2).unwrap(), &vars).unwrap();
    let cheap = Bool::le(&cost.add(&up).unwrap(), &4.into(), &vars).unwrap();
    let lost = Bool::le(&gone, &up.scale(4).unwrap(), &vars).unwrap();
    let assertions = vec![(Label(5), lost), (Label(2), cheap), (Label(5), few.clone())];
    let goal = Bool::or([few.not(), Bool::eq(&bare, &0.into(), &vars).unwrap()]);
    let problem = Problem { vars, assertions, goal };
    let expected = "\
(set-option :produce-unsat-cores true)
(set-logic QF_LIA)
(declare-const x0_node_a_up Int)
(assert (<= 0 x0_node_a_up 1))
(declare-const x1_web__gone Int)
(assert (<= 0 x1_web__gone 7))
(declare-const x2 Int)
(assert (<= (- 2) x2 5))
(assert (! (<= (+ x0_node_a_up (- 4) (ite (<= (+ (* (- 1) x1_web__gone) 4) 0) (* 2 x1_web__gone) 0) \
(ite (<= (+ x1_web__gone (- 3)) 0) x2 0)) 0) :named L2))
(assert (! (and (<= (+ (* (- 4) x0_node_a_up) x1_web__gone) 0) (<= (+ x1_web__gone (- 3)) 0)) :named L5))
(assert (! (or (<= (+ (* (- 1) x1_web__gone) 4) 0) (and (<= (* (- 1) x2) 0) (<= x2 0))) :named goal))
(check-sat)
";
    assert_eq!(print(&problem).unwrap(), expected);
}
