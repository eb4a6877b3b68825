//! What Suture costs: latency and requests per second against one API server without a webhook, with one that allows
//! everything, and with Suture and all shipped templates, in one run and interleaved; before, at and after a burst of
//! clients; processor time, memory, and time to ready.
//!
//! `SUTURE_LOAD=short` for mixed traffic only and one round; else `SUTURE_LOAD_OBJECTS` \[10000\], `SUTURE_LOAD_SECONDS`
//! of each measurement \[4\], `SUTURE_LOAD_ROUNDS` \[3\], `SUTURE_LOAD_CLIENTS` at once \[1,8,32\], `SUTURE_LOAD_BURST`
//! clients \[128\].
//!
//! | module | is |
//! |---|---|
//! | [`fill`] | the cluster before any client comes |
//! | [`step`], [`mixed`], [`steady`] | one request, and what clients ask |
//! | [`client`] | who asks it |
//! | [`webhooks`] | who is asked about it |
//! | [`product`], [`figures`] | what is measured |
//! | [`report`], [`verdicts`] | what is printed |
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]
#![expect(clippy::disallowed_methods, reason = "how long things take is the point")]

mod client;
mod figures;
mod fill;
mod manifests;
mod mixed;
mod product;
mod report;
mod steady;
mod step;
mod verdicts;
mod webhooks;

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use suture_e2e::{Cluster, Kubectl, Nodes, Options, Part, Plan, Suture, suture, wait};

use client::{Client, Traffic};
use figures::{Case, Measured, Phase};
use fill::World;
use product::Told;
use verdicts::Verdicts;
use webhooks::{Asked, Webhooks};

/// How much is measured.
struct Settings {
    objects: usize,
    length: Duration,
    rounds: usize,
    clients: Vec<usize>,
    burst: usize,
    traffic: Vec<Traffic>,
}

impl Settings {
    fn read() -> Self {
        let short = env::var("SUTURE_LOAD").is_ok_and(|value| value == "short");
        let text =
            |name: &str, default: &str| env::var(format!("SUTURE_LOAD_{name}")).unwrap_or_else(|_| default.to_owned());
        let number = |name: &str, default: &str| text(name, default).parse::<usize>().expect("a number");
        let clients = text("CLIENTS", if short { "8,32" } else { "1,8,32" });
        Self {
            objects: number("OBJECTS", "10000"),
            length: Duration::from_secs(number("SECONDS", "4") as u64),
            rounds: number("ROUNDS", if short { "1" } else { "3" }),
            clients: clients.split(',').map(|number| number.parse().expect("a number")).collect(),
            burst: number("BURST", "128"),
            traffic: if short { vec![Traffic::Mixed] } else { vec![Traffic::Steady, Traffic::Mixed] },
        }
    }

    /// What is measured while one of them is asked, in this order.
    fn cases(&self) -> Vec<Case> {
        let both = self.traffic.iter().flat_map(|&traffic| {
            self.clients.iter().map(move |&clients| Case { traffic, phase: Phase::Before, clients })
        });
        let mixed = |phase, clients| Case { traffic: Traffic::Mixed, phase, clients };
        // many come first, without a pause
        let after = self.clients.iter().rev().map(|&clients| mixed(Phase::After, clients));
        both.chain([mixed(Phase::Burst, self.burst)]).chain(after).collect()
    }
}

#[test]
fn latency_and_throughput_beside_no_webhook_and_one_that_allows_everything() {
    let settings = Settings::read();
    let most = settings.clients.iter().copied().max().unwrap_or(1).max(settings.burst);
    let world = World::new(settings.objects, most);
    let options = Options { users: vec![suture::user()], nodes: Nodes::new(world.nodes), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    // whatever they do would be measured with it, and is the same in all three
    for part in [Part::Kwok, Part::Scheduler, Part::ControllerManager] {
        cluster.stop(part).expect("stop");
    }
    let admin = cluster.kubectl("admin").expect("admin");
    let (_, took) = wait::timed(|| fill::fill(&cluster, &admin, &world));
    println!("{} objects made in {:.0} s", world.objects(), took.as_secs_f64());
    let (suture, took) = wait::timed(|| Suture::start(&cluster, &Plan::shipped()).expect("suture"));
    println!("first ready after {:.2} s", took.as_secs_f64());
    let webhooks = Webhooks::new(&cluster, suture);
    let mut clients: Vec<Client> = (0..most).map(|number| Client::new(&cluster, &world, number)).collect();
    let (sent, took) = wait::timed(|| client::advance(&mut clients));
    println!("{most} clients at their places after {sent} requests in {:.0} s", took.as_secs_f64());

    let mut measured = measure(&settings, &webhooks, &admin, &mut clients);
    let process = &webhooks.suture.replicas[0].process;
    let resident_max = process.resident_max_bytes().expect("resident");
    print(&settings, &mut measured, &webhooks.suture, resident_max);
    for _ in 0..settings.rounds {
        process.kill().expect("kill");
        let (_, took) = wait::timed(|| {
            process.launch().expect("launch");
            webhooks.suture.wait_ready().expect("ready");
        });
        println!("  ready {:.2} s after a restart", took.as_secs_f64());
    }
    let done = measured.values().map(|figures| figures.all.len()).sum::<usize>();
    let refused = measured.values().map(figures::Figures::refusals).sum::<usize>();
    println!("load: {done} requests answered as without a webhook, {refused} refused");
    assert_eq!(refused, 0, "all that was asked is harmless");
}

/// All cases in turn with each that may be asked, who come in another order each round.
fn measure(settings: &Settings, webhooks: &Webhooks, admin: &Kubectl, clients: &mut [Client]) -> Measured {
    let mut measured: Measured = BTreeMap::new();
    for round in 0..settings.rounds {
        let mut order = Asked::ALL;
        let turn = round % order.len();
        order.rotate_left(turn);
        for asked in order {
            webhooks.switch(admin, asked);
            for case in settings.cases() {
                let before = Told::of(&webhooks.suture);
                let sent = client::run(&mut clients[..case.clients], case.traffic, settings.length);
                let told = Told::of(&webhooks.suture).since(&before);
                let done: usize = sent.iter().map(|sent| sent.done.len()).sum();
                match asked {
                    Asked::Suture => assert!(told.decisions() >= done as f64, "suture judged too few of {done}"),
                    Asked::Nobody | Asked::AllowEverything => {
                        assert!(told.decisions() < 1.0, "nobody asks suture, which judged some");
                    }
                }
                measured.entry((case, asked)).or_default().take(sent, told);
            }
        }
    }
    measured.values_mut().for_each(figures::Figures::sort);
    measured
}

fn print(settings: &Settings, measured: &mut Measured, suture: &Suture, resident_max: u64) {
    report::overview(measured);
    for &traffic in &settings.traffic {
        for &clients in &settings.clients {
            report::sorts(measured, traffic, clients);
        }
    }
    report::sorts(measured, Traffic::Mixed, settings.burst);
    report::product(measured);
    report::slow(measured, product::slow_lines(suture));
    report::refusals(measured);
    let now = suture.replicas[0].process.resident_bytes().expect("resident");
    println!("  resident memory of suture at the end: {:.1} MiB", now as f64 / f64::from(1 << 20));
    Verdicts::print(measured, resident_max, settings.burst);
}
