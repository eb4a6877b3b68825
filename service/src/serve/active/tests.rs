//! When a replica decides.

use super::*;

const LANDING: Duration = Duration::from_secs(60);

#[test]
fn a_replica_decides_only_while_it_holds_the_lease_and_has_read_everything_since() {
    let (active, later) = (Active::default(), now() + Duration::from_secs(3_600));
    assert!(active.check().is_err());
    active.hold(later, Some(Predecessor::Gone), LANDING);
    assert!(active.check().is_err_and(|why| why.contains("just become active")));
    let earlier = now().checked_sub(Duration::from_secs(1)).unwrap();
    active.settle(earlier);
    assert!(active.check().is_err(), "what was read is too old");
    active.settle(now());
    assert_eq!(active.check(), Ok(1));
    active.hold(earlier, None, LANDING);
    assert!(active.check().is_err(), "its time is up");
    active.hold(later, None, LANDING);
    assert_eq!(active.still(1), Ok(()), "renewed late, and nobody else held it");
    active.lose("other");
    assert!(active.check().is_err_and(|why| why.contains("`other` is active")));
    active.hold(later, Some(Predecessor::Copied), LANDING);
    assert_eq!(active.check(), Ok(2), "it knows what is in flight");
    assert!(active.still(1).is_err(), "another one decided meanwhile");
    active.hold(later, Some(Predecessor::Lost), LANDING);
    active.settle(now());
    assert!(active.check().is_err_and(|why| why.contains("may still land")));
    assert!(active.unsettled().is_some_and(|after| after > now() + LANDING / 2));
    active.leave();
    assert!(active.check().is_err_and(|why| why.contains("leaves")));
}

#[test]
fn what_a_copy_waits_for_is_not_what_deciding_waits_for() {
    let (active, later) = (Active::default(), now() + Duration::from_secs(3_600));
    active.hold(later, Some(Predecessor::Lost), LANDING);
    let since = now();
    active.read_after(since);
    active.settle(now());
    assert!(active.has_read_after(since));
    assert!(active.check().is_err_and(|why| why.contains("may still land")));
}
