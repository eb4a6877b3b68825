//! When a replica is ready.

use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;
use crate::serve::fixtures::workers;

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

#[tokio::test]
async fn what_is_off_says_so_and_is_ready() {
    let metrics = Metrics::default();
    let (off, _told) = Off::new(metrics.clone());
    let readiness = Readiness::expecting(&["policies", CERTIFICATES]).unless_off(off.clone());
    let workers = workers(&Arc::default(), 1, 1, &metrics);
    let router = router(readiness.clone(), metrics, workers);
    let probe = async || {
        let request = axum::http::Request::get("/readyz").body(axum::body::Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    readiness.set("policies", Ok(()));
    assert_eq!(probe().await, (503, "certificates: not yet\n".to_owned()));
    // nobody is given certificates where it is off: a restart ends here
    off.set(Cause::Switch, Some("turned off: incident 4711"));
    assert_eq!(probe().await, (200, "off: turned off: incident 4711\n".to_owned()));
    readiness.set("policies", Err("not read".to_owned()));
    assert_eq!(probe().await, (503, "policies: not read\noff: turned off: incident 4711\n".to_owned()));
    readiness.set("policies", Ok(()));
    readiness.set(CERTIFICATES, Ok(()));
    off.set(Cause::Switch, None);
    assert_eq!(probe().await, (200, "ok\n".to_owned()));
}
