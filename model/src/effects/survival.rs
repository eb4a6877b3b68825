//! The first stratum: what becomes of each existing object whatever its controller does. It reads what was requested, what
//! the deletions take along and which nodes fail, and nothing that a controller or the scheduler does.
//!
//! A pod that a request removes is not counted by its controller's arithmetic: the controller may have used its whole
//! allowance before the request lands.

use super::hazard;
use super::memo::Memo;
use crate::deletion::Expected;
use crate::fields::has_deadline;
use crate::object::Object;
use crate::scenario::Scenario;
use crate::state::State;

/// What becomes of an existing object whatever its controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// It stays unless its controller removes it.
    Stays,
    /// It may go, or go later.
    MayGo,
    /// It goes: a request has removed it, or all has settled.
    Goes,
}

/// What becomes of the objects of one scenario.
pub struct Survivals<'s, 'a> {
    /// The scenario.
    pub scenario: &'s Scenario<'a>,
    /// What was worked out about it.
    pub memo: &'s Memo,
    expected: Expected<'s, 'a>,
}

impl<'s, 'a> Survivals<'s, 'a> {
    /// In this scenario.
    pub fn new(scenario: &'s Scenario<'a>, memo: &'s Memo) -> Self {
        Self { scenario, memo, expected: Expected::new(&scenario.state) }
    }

    /// The concrete cluster.
    pub fn state(&self) -> &'s State<'a> {
        &self.scenario.state
    }

    /// What becomes of an object before all has settled. One that was being deleted already stays until it is gone, whoever
    /// deletes it again (`store.go`, `Delete`), unless that leaves it no time.
    pub fn of(&self, object: &Object) -> Survival {
        let removed = object.in_deletion_closure && self.scenario.removed.contains(&object.key);
        if removed && (!object.terminating() || self.scenario.ended_at_once.contains(&object.key)) {
            return Survival::Goes;
        }
        let at_risk = || self.on_unhealthy_node(object) && hazard::at_risk(self.state(), object);
        let follows = object.in_deletion_closure && !removed;
        if follows || has_deadline(object) || at_risk() || self.is_expected(object) {
            Survival::MayGo
        } else {
            Survival::Stays
        }
    }

    /// What becomes of an object once all has settled, if that is what becomes of it before: only a finalizer of its own
    /// keeps one that goes.
    pub fn once_settled(&self, object: &Object, before: Survival) -> Survival {
        let ends = match before {
            Survival::Stays => object.terminating(),
            Survival::MayGo => {
                object.in_deletion_closure
                    || (object.terminating() && !object.key.kind.is("Pod"))
                    || self.surely_goes(object)
            }
            Survival::Goes => true,
        };
        if ends { Survival::Goes } else { before }
    }

    /// Whether nothing keeps an object from being collected.
    pub fn surely_goes(&self, object: &Object) -> bool {
        self.expected.surely_goes(object)
    }

    /// Whether an object goes with its namespace, its owners or what else is being deleted.
    pub fn is_expected(&self, object: &Object) -> bool {
        let goes = || self.expected.goes(object);
        if object.key.kind.is("Pod") { self.memo.expected_pods.of(object, goes) } else { goes() }
    }

    /// Whether a pod has gone once all has settled, as `find` says: pods of a body differ in that only where a request deletes one,
    /// or where its node is not well.
    pub fn is_gone(&self, pod: &Object, find: impl FnOnce() -> bool) -> bool {
        if pod.in_deletion_closure || self.on_unhealthy_node(pod) { find() } else { self.memo.gone_pods.of(pod, find) }
    }

    /// Whether a pod is on a node that is not plainly well.
    fn on_unhealthy_node(&self, pod: &Object) -> bool {
        self.memo.on_unhealthy_node(self.state(), pod)
    }

    /// Whether a pod stops being ready for good although it stays: its node fails already, or a readiness gate is shut.
    pub fn fails(&self, pod: &Object) -> bool {
        let node_fails = || self.on_unhealthy_node(pod) && hazard::on_failing_node(self.state(), pod);
        pod.ready() && (node_fails() || pod.gate_shut())
    }

    /// Whether a pod is not ready for a while, since its containers restart.
    pub fn restarts(&self, pod: &Object) -> bool {
        pod.ready() && self.scenario.restarts(pod)
    }

    /// Whether a pod is ready, and stays so unless its controller removes it.
    pub fn stays_ready(&self, pod: &Object) -> bool {
        pod.ready() && self.of(pod) == Survival::Stays && !self.fails(pod) && !self.restarts(pod)
    }
}
