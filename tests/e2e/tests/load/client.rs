//! A client: a connection that is kept, and where it is in what it asks. It goes on there in the next measurement, so
//! that clients are at different places and none has to come to an end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use suture_e2e::api::Reply;
use suture_e2e::{Api, Cluster, Error, wait};

use crate::fill::{World, owner};
use crate::step::{Sort, Step};
use crate::{mixed, steady};

/// The first pause of who was refused; each further one is twice as long, as in client-go's
/// `NewTypedItemExponentialFailureRateLimiter`.
const PAUSE: Duration = Duration::from_millis(5);
/// After so many refusals of one request, a client leaves its round and begins the next one.
const TRIES_MAX: u32 = 9;

/// What clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traffic {
    Steady,
    Mixed,
}

impl Traffic {
    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Mixed => "mixed",
        }
    }
}

/// An answer that is not what was asked for.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: u16,
    /// One of a few words, for counting.
    pub why: &'static str,
    pub message: String,
}

/// What one client did in one measurement.
#[derive(Debug, Default)]
pub struct Sent {
    /// Milliseconds of each request that was done.
    pub done: Vec<(Sort, f64)>,
    pub refused: Vec<(Sort, Refusal)>,
    /// Rounds that were left.
    pub left: usize,
    pub seconds: f64,
}

/// One client of all.
pub struct Client<'a> {
    api: Api,
    steady: Cursor<'a>,
    mixed: Cursor<'a>,
}

/// Where a client is in its round.
struct Cursor<'a> {
    world: &'a World,
    client: usize,
    make: fn(&World, usize, usize) -> Vec<Step>,
    round: usize,
    steps: VecDeque<Step>,
    /// References to what was created in this round, by path.
    made: BTreeMap<String, Value>,
    tries: u32,
}

impl<'a> Client<'a> {
    pub fn new(cluster: &Cluster, world: &'a World, number: usize) -> Self {
        let api = Api::new(cluster, "admin").expect("api");
        let cursor = |make| Cursor {
            world,
            client: number,
            make,
            round: 0,
            steps: VecDeque::new(),
            made: BTreeMap::new(),
            tries: 0,
        };
        Self { api, steady: cursor(steady::steps), mixed: cursor(mixed::steps) }
    }

    fn cursor(&mut self, traffic: Traffic) -> &mut Cursor<'a> {
        match traffic {
            Traffic::Steady => &mut self.steady,
            Traffic::Mixed => &mut self.mixed,
        }
    }

    /// Goes on asking for a while.
    fn send(&mut self, traffic: Traffic, length: Duration, all: &Barrier) -> Sent {
        // the connection is made before the time runs; where it cannot be, the requests tell
        _ = self.api.get("/version");
        let mut sent = Sent::default();
        all.wait();
        let start = Instant::now();
        while start.elapsed() < length {
            let pause = self.step(traffic, &mut sent);
            thread::sleep(pause.min(length.saturating_sub(start.elapsed())));
        }
        sent.seconds = start.elapsed().as_secs_f64();
        sent
    }

    /// Asks the next thing; how long to wait then.
    fn step(&mut self, traffic: Traffic, sent: &mut Sent) -> Duration {
        let step = self.cursor(traffic).next();
        let (reply, took) = wait::timed(|| self.api.call(step.method, &step.path, step.body.as_ref()));
        let cursor = self.cursor(traffic);
        match refusal(&step, &reply) {
            None => {
                sent.done.push((step.sort, took.as_secs_f64() * 1e3));
                cursor.done(&step, reply.ok());
                Duration::ZERO
            }
            Some(refusal) => {
                sent.refused.push((step.sort, refusal));
                match cursor.refused() {
                    Some(pause) => pause,
                    None => {
                        sent.left += 1;
                        Duration::ZERO
                    }
                }
            }
        }
    }

    /// Goes to a place in its first round that no other client is at, so that all kinds of requests come at any time.
    fn advance(&mut self, clients: usize) -> Sent {
        let mut sent = Sent::default();
        let first = self.mixed.next();
        let length = self.mixed.steps.len();
        let left = length - self.mixed.client * length / clients;
        while self.mixed.steps.len() > left && sent.refused.is_empty() {
            self.step(Traffic::Mixed, &mut sent);
        }
        assert!(sent.refused.is_empty(), "{first:?} and what follows: {:?}", sent.refused);
        sent
    }
}

impl Cursor<'_> {
    fn next(&mut self) -> Step {
        if self.steps.is_empty() {
            self.steps = (self.make)(self.world, self.client, self.round).into();
            self.round += 1;
            self.made.clear();
        }
        let mut step = self.steps.front().expect("a round has steps").clone();
        if let (Some(path), Some(body)) = (&step.owner, step.body.as_mut()) {
            body["metadata"]["ownerReferences"] = self.made.get(path).cloned().unwrap_or_default();
        }
        if let (Some(path), Some(body)) = (&step.subject, step.body.as_mut()) {
            body["metadata"]["uid"] = self.made.get(path).map(|made| made[0]["uid"].clone()).unwrap_or_default();
        }
        step
    }

    fn done(&mut self, step: &Step, reply: Option<Reply>) {
        self.tries = 0;
        self.steps.pop_front();
        let named = ["Deployment", "ReplicaSet", "StatefulSet", "CronJob", "Pod"];
        if let (true, Some(reply)) = (step.sort.1 == "create" && named.contains(&step.sort.0), reply) {
            let name = reply.body["metadata"]["name"].as_str().unwrap_or_default();
            self.made.insert(format!("{}/{name}", step.path), owner(&reply.body));
        }
    }

    /// How long to wait for the next try, if there is one.
    fn refused(&mut self) -> Option<Duration> {
        self.tries += 1;
        if self.tries < TRIES_MAX {
            return Some(PAUSE * 2_u32.pow(self.tries - 1));
        }
        self.tries = 0;
        self.steps.clear();
        None
    }
}

/// Why a step was not done. To the kubelet a pod that is not there has ended: one that was on no node yet goes with its
/// deletion (`pkg/kubelet/status/status_manager.go`, `syncPod`).
fn refusal(step: &Step, reply: &Result<Reply, Error>) -> Option<Refusal> {
    let reply = match reply {
        Ok(reply) if reply.done() || (step.sort.1 == "end" && reply.code == 404) => return None,
        Ok(reply) => reply,
        Err(error) => return Some(Refusal { code: 0, why: "no answer", message: error.to_string() }),
    };
    let message = reply.message().to_owned();
    let why = if message.contains("no replica is active") {
        "no replica is active"
    } else if message.contains("denied the request") {
        "denied by the webhook"
    } else if message.contains("failed calling webhook") {
        "no answer of the webhook"
    } else {
        "by the API server"
    };
    Some(Refusal { code: reply.code, why, message })
}

/// Has some clients ask at once for a while.
pub fn run(clients: &mut [Client], traffic: Traffic, length: Duration) -> Vec<Sent> {
    let all = Barrier::new(clients.len());
    thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(|| client.send(traffic, length, &all))).collect();
        threads.into_iter().map(|thread| thread.join().expect("thread")).collect()
    })
}

/// Brings clients to different places of their first round.
pub fn advance(clients: &mut [Client]) -> usize {
    let count = clients.len();
    thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(move || client.advance(count).done.len())).collect();
        threads.into_iter().map(|thread| thread.join().expect("thread")).sum()
    })
}
