//! Copies over a connection in memory.

use suture_model::change::Request;
use suture_model::value::Val;
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::serve::active::Predecessor;
use crate::serve::fixtures::{review, until};
use crate::serve::policies::Policies;

const HOUR: Duration = Duration::from_secs(3_600);

struct Replica {
    log: Arc<InFlightLog>,
    active: Active,
    store: Arc<Store>,
    followers: Followers,
}

fn replica(name: &str) -> Replica {
    let log = Arc::new(InFlightLog::lasting(60));
    let active = Active::held();
    let store = Arc::new(Store::new(Arc::new(Policies::default().load().wanting_nothing())));
    let followers = Followers::of(log.clone(), active.clone(), name);
    Replica { log, active, store, followers }
}

impl Replica {
    fn admit(&self, uid: &str) {
        let review: Val = serde_json::from_str(&review(uid, uid).to_string()).unwrap();
        self.log.adopt(&Request::from_review(&review).unwrap(), &self.store);
    }

    fn admitted(&self) -> Vec<String> {
        self.log.since(0).0.iter().map(|request| request.uid.to_string()).collect()
    }

    async fn confirm(&self) -> Result<(), String> {
        self.followers.confirm(self.active.term()).await
    }

    /// Answers do not go out, for as long as a test likes to wait.
    async fn waits(&self) -> bool {
        timeout(BEAT * 2, self.confirm()).await.is_err()
    }

    /// It is told that answers wait for it, and has read everything that is watched after that.
    async fn reads(&self) {
        until("answers wait for it", || self.active.is_to_read()).await;
        self.active.settle(now());
    }
}

/// Lets one follow the other; both ends of what passes between them.
fn connect(leader: &Replica, standby: &Replica, connection: u64) -> (JoinHandle<()>, JoinHandle<()>) {
    let (here, there): (DuplexStream, DuplexStream) = duplex(1 << 16);
    let (own, copy, store) = (leader.followers.clone(), standby.followers.clone(), standby.store.clone());
    let sending = tokio::spawn(async move {
        own.send(here, connection).await.unwrap_err();
        own.left(connection);
    });
    let copying = tokio::spawn(async move { copy.copy(there, &store).await.unwrap_or_default() });
    (sending, copying)
}

async fn named(leader: &Replica, standby: &Replica) -> BTreeSet<String> {
    let named = BTreeSet::from([standby.followers.process().to_owned()]);
    until("it is to be named", || leader.followers.names() == named).await;
    named
}

#[tokio::test]
async fn a_copy_has_what_was_in_flight_and_what_is_entered_before_the_answer_goes_out() {
    let (leader, standby) = (replica("a"), replica("b"));
    leader.admit("before");
    assert_eq!(leader.confirm().await, Ok(()), "nobody has a copy");
    let before = now();
    let _ends = connect(&leader, &standby, 0);
    until("it is sent", || standby.admitted() == ["before"]).await;
    until("answers wait for it", || standby.active.is_to_read()).await;
    standby.active.settle(before);
    for uid in ["one", "two", "three"] {
        leader.admit(uid);
        assert_eq!(leader.confirm().await, Ok(()));
        assert_eq!(standby.admitted().last().map(String::as_str), Some(uid));
    }
    assert!(leader.followers.names().is_empty(), "something may have ended before it was sent");
    standby.reads().await;
    named(&leader, &standby).await;
}

#[tokio::test]
async fn no_answer_goes_out_without_a_copy_that_the_lease_may_still_name() {
    let (leader, standby) = (replica("a"), replica("b"));
    let (_, copying) = connect(&leader, &standby, 0);
    standby.reads().await;
    let names = named(&leader, &standby).await;
    leader.followers.named(&names);
    copying.abort();
    leader.admit("one");
    assert!(leader.waits().await, "the Lease names it");
    until("it is to be named no more", || leader.followers.names().is_empty()).await;
    // a renewal that began before
    leader.followers.named(&names);
    assert!(leader.waits().await);
    leader.followers.named(&BTreeSet::new());
    assert_eq!(leader.confirm().await, Ok(()));
}

#[tokio::test]
async fn one_that_connects_again_is_sent_everything_and_the_connection_before_does_not_count() {
    let (leader, standby) = (replica("a"), replica("b"));
    leader.admit("one");
    let (_, copying) = connect(&leader, &standby, 0);
    standby.reads().await;
    named(&leader, &standby).await;
    copying.abort();
    until("it is gone", || leader.followers.names().is_empty()).await;
    leader.admit("two");
    assert!(leader.waits().await, "the Lease may name it");
    let _ends = connect(&leader, &standby, 1);
    until("it is sent", || standby.admitted() == ["one", "two"]).await;
    assert_eq!(leader.confirm().await, Ok(()));
    standby.reads().await;
    named(&leader, &standby).await;
    leader.followers.left(0);
    named(&leader, &standby).await;
}

#[tokio::test]
async fn a_replica_that_waits_for_what_may_land_is_not_followed_before_it_may_decide() {
    let (leader, standby) = (replica("a"), replica("b"));
    leader.active.hold(now() + HOUR, Some(Predecessor::Lost), HOUR / 2);
    leader.admit("one");
    let _ends = connect(&leader, &standby, 0);
    until("it is sent", || standby.admitted() == ["one"]).await;
    tokio::time::sleep(BEAT * 2).await;
    assert!(!standby.active.is_to_read());
    leader.active.settle(now() + HOUR);
    standby.reads().await;
    named(&leader, &standby).await;
}

#[tokio::test]
async fn copies_and_answers_are_of_one_term() {
    let (leader, standby) = (replica("a"), replica("b"));
    let (sending, _) = connect(&leader, &standby, 0);
    standby.reads().await;
    named(&leader, &standby).await;
    let term = leader.active.term();
    leader.active.hold(now() + HOUR, Some(Predecessor::Copied), HOUR);
    assert!(leader.followers.names().is_empty(), "another replica may have decided meanwhile");
    assert!(leader.followers.confirm(term).await.is_err_and(|why| why.contains("meanwhile")));
    leader.followers.named(&BTreeSet::new());
    assert_eq!(leader.confirm().await, Ok(()));
    sending.await.unwrap();
}

#[tokio::test]
async fn one_that_is_not_active_any_more_answers_nothing() {
    let leader = replica("a");
    assert_eq!(leader.confirm().await, Ok(()));
    leader.active.leave();
    assert!(leader.confirm().await.is_err());
}
