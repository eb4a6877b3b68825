//! What a Deployment that is scaled in the middle of a rollout leaves of its ready pods: its ReplicaSets are scaled in
//! proportion, without a look at readiness or at maxUnavailable.
//!
//! Source: `pkg/controller/deployment/deployment_controller.go` (`syncDeployment`: scaling comes before the rollout),
//! `.../sync.go` (`scale`), `.../util/deployment_util.go` (`GetReplicaSetProportion`, `FindActiveOrLatest`). Each ReplicaSet
//! removes its own pods that are not ready first. Over-approximation: of other than two ReplicaSets, any of the pods that
//! are to go may be a ready one.

/// More pods than these are not told apart by how far the rollout has come.
const PODS_MAX: i64 = 150;

/// A Deployment in the middle of a rollout.
#[derive(Clone, Copy)]
pub struct Rollout {
    /// The pods of its old ReplicaSet and of the newest one by their numbers, if there are no others.
    pub numbers: Option<(i64, i64)>,
    /// How many are ready, at least, whatever the rollout does before it is scaled.
    pub ready: i64,
    /// How many pods there may be at most before: what it wanted, and its surge.
    pub most: i64,
}

impl Rollout {
    /// How many of the ready ones are left at least by a scaling to so many pods, with so many beyond as its surge.
    pub fn left(self, wanted: i64, surge: i64) -> i64 {
        let most = if wanted > 0 { wanted.saturating_add(surge) } else { 0 };
        let Some((old, newest)) = self.numbers.filter(|_| self.most <= PODS_MAX) else {
            return (self.ready - (self.most - most).max(0)).max(0);
        };
        // so far the rollout scales the old one down and the newest one up
        let reached = (0..=old).flat_map(|old| (newest..=self.most - old).map(move |newest| (old, newest)));
        let possible = reached.filter(|(old, newest)| old + newest >= self.ready);
        possible.map(|(old, newest)| self.kept(old, newest, wanted, most)).min().unwrap_or(0)
    }

    /// How many of the ready ones are left where the ReplicaSets have these numbers.
    fn kept(self, old: i64, newest: i64, wanted: i64, most: i64) -> i64 {
        let (old_left, newest_left) = match (old, newest) {
            (_, 0) => (wanted, 0),
            (0, _) => (0, wanted),
            _ => self.shares(old, newest, wanted, most),
        };
        // fewest are left if as many as can be are of the one or of the other
        let with = |of_old: i64| of_old.min(old_left) + (self.ready - of_old).min(newest_left);
        with(self.ready.min(old)).min(with((self.ready - newest).max(0)))
    }

    /// What two ReplicaSets are scaled to, in proportion.
    fn shares(self, old: i64, newest: i64, wanted: i64, most: i64) -> (i64, i64) {
        let to_add = most - old - newest;
        if to_add >= 0 {
            return (old, newest);
        }
        let fraction = |size: i64| match wanted {
            0 => -size,
            // rounded half up: the numbers are not negative
            _ => (2 * size * most + self.most).div_euclid(2 * self.most.max(1)) - size,
        };
        // the larger one first, the older one of equals, which gets what is over as well
        let (first, second) = if newest > old { (newest, old) } else { (old, newest) };
        let of_first = fraction(first).max(to_add);
        let of_second = if of_first == to_add { 0 } else { fraction(second).max(to_add - of_first) };
        let over = to_add - of_first - of_second;
        let (first, second) = ((first + of_first + over).max(0), (second + of_second).max(0));
        if newest > old { (second, first) } else { (first, second) }
    }
}

#[cfg(test)]
mod tests {
    use super::Rollout;

    #[test]
    fn a_rollout_that_hangs_is_scaled_in_proportion() {
        let hung = |old, newest, most| Rollout { numbers: Some((old, newest)), ready: old, most };
        // 4 and one in surge, of which the old one has 3: round(3 * 4 / 5) and round(3 * 2 / 5)
        assert_eq!(hung(3, 2, 5).left(3, 1), 2);
        assert_eq!(hung(3, 2, 5).left(1, 1), 1);
        assert_eq!(hung(3, 12, 15).left(1, 1), 0);
        assert!(hung(3, 12, 15).left(5, 3) >= 1);
        assert_eq!(hung(3, 2, 5).left(0, 0), 0);
        assert_eq!(hung(3, 2, 5).left(6, 2), 3);
        // of more ReplicaSets any pods may go
        assert_eq!(Rollout { numbers: None, ..hung(3, 2, 5) }.left(3, 1), 2);
    }
}
