//! When a replica is ready.

use super::*;

#[test]
fn nothing_is_ready_before_all_parts_said_so() {
    assert_eq!(Readiness::default().ready(), Err(vec!["nothing is set up yet".to_owned()]));
    let readiness = Readiness::expecting(&["policies", "watches"]);
    assert_eq!(readiness.ready(), Err(vec!["policies: not yet".to_owned(), "watches: not yet".to_owned()]));
    readiness.set("policies", Ok(()));
    let same = readiness.clone();
    same.set("watches", Err("`Pod` is not listed".to_owned()));
    assert_eq!(readiness.ready(), Err(vec!["watches: `Pod` is not listed".to_owned()]));
    same.set("watches", Ok(()));
    assert_eq!(readiness.ready(), Ok(()));
    readiness.set("serving", Err("leaving".to_owned()));
    assert_eq!(same.ready(), Err(vec!["serving: leaving".to_owned()]));
}
