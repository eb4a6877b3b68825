//! The tables that are printed.

use std::collections::{BTreeMap, BTreeSet};

use suture_e2e::table::Table;

use crate::client::Traffic;
use crate::figures::{Case, Figures, Measured, Millis, Phase};
use crate::product::SLOW_SECS;
use crate::webhooks::Asked;

/// So many decisions are listed, the slowest first.
const LISTED_MAX: usize = 20;
/// A message is cut after so many characters.
const MESSAGE_MAX_CHARS: usize = 300;

fn millis(value: f64) -> String {
    format!("{value:.2}")
}

/// All cases beside each other.
pub fn overview(measured: &Measured) {
    println!("\nall requests; refused ones are not among the latencies and the requests/s");
    let mut table = Table::new(&[
        "traffic",
        "burst",
        "clients",
        "webhook",
        "requests/s",
        "p50 ms",
        "p99 ms",
        ">50 ms",
        "done",
        "refused",
    ]);
    for ((case, asked), figures) in measured {
        table.row([
            case.traffic.name().to_owned(),
            case.phase.name().to_owned(),
            case.clients.to_string(),
            asked.name().to_owned(),
            format!("{:.0}", figures.rate()),
            millis(figures.all.percentile(0.5)),
            millis(figures.all.percentile(0.99)),
            figures.all.above(SLOW_SECS * 1e3).to_string(),
            figures.all.len().to_string(),
            figures.refusals().to_string(),
        ]);
    }
    table.print();
}

/// Latencies by kind and operation, before and after the burst.
pub fn sorts(measured: &Measured, traffic: Traffic, clients: usize) {
    let figures = |phase, asked| measured.get(&(Case { traffic, phase, clients }, asked));
    let phases = if figures(Phase::Before, Asked::Suture).is_some() {
        [Phase::Before, Phase::After]
    } else {
        [Phase::Burst, Phase::Burst]
    };
    let columns: Vec<(Phase, Asked)> = phases
        .into_iter()
        .flat_map(|phase| Asked::ALL.map(|asked| (phase, asked)))
        .filter(|(phase, asked)| figures(*phase, *asked).is_some())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let all: BTreeSet<_> =
        columns.iter().filter_map(|(phase, asked)| figures(*phase, *asked)).flat_map(|f| f.by.keys()).collect();
    println!("\n{} traffic, {clients} clients: p50/p99 ms by kind and operation", traffic.name());
    let head = |column: Option<&(Phase, Asked)>| {
        column.map_or_else(String::new, |(phase, asked)| format!("{} burst: {}", phase.name(), asked.name()))
    };
    let cell = |sort, column: Option<&(Phase, Asked)>| {
        let found: Option<&Millis> = column.and_then(|(phase, asked)| figures(*phase, *asked)?.by.get(sort));
        found.map_or_else(String::new, |found| format!("{:.2}/{:.2}", found.percentile(0.5), found.percentile(0.99)))
    };
    let heads: Vec<String> = (0..6).map(|at| head(columns.get(at)).replace("burst burst", "burst")).collect();
    let mut names = vec!["kind", "operation", "requests"];
    names.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(&names);
    for sort in all {
        let count = columns
            .iter()
            .filter_map(|(phase, asked)| figures(*phase, *asked)?.by.get(sort))
            .map(Millis::len)
            .sum::<usize>();
        let cells: Vec<String> = (0..6).map(|at| cell(sort, columns.get(at))).collect();
        let [a, b, c, d, e, f] = cells.try_into().unwrap_or_default();
        table.row([sort.0.to_owned(), sort.1.to_owned(), count.to_string(), a, b, c, d, e, f]);
    }
    table.print();
}

/// What Suture says of itself.
pub fn product(measured: &Measured) {
    println!("\nby suture's own count; user and kernel time are of its whole process, its watches among them");
    let mut table = Table::new(&[
        "traffic",
        "burst",
        "clients",
        "decisions",
        "mean ms",
        "queue ms",
        "user ms/decision",
        "kernel ms/decision",
        ">50 ms",
        "queue >50 ms",
        "solver >50 ms",
        "instances",
        "folded",
        "cached",
        "solved",
        "known",
        "shed",
        "overrun",
    ]);
    for ((case, _), Figures { told, .. }) in measured.iter().filter(|((_, asked), _)| *asked == Asked::Suture) {
        let mean = |name: &str| millis(told.per_decision(told.get(&format!("{name}_seconds_sum")) * 1e3));
        let per = |name: &str| millis(told.per_decision(told.get(name)));
        let count = |value: f64| format!("{value:.0}");
        table.row([
            case.traffic.name().to_owned(),
            case.phase.name().to_owned(),
            case.clients.to_string(),
            count(told.decisions()),
            mean("decision_duration"),
            mean("queue_wait"),
            format!("{:.3}", told.per_decision(told.user_secs * 1e3)),
            format!("{:.3}", told.per_decision(told.system_secs * 1e3)),
            count(told.slow("decision_duration")),
            count(told.slow("queue_wait")),
            count(told.slow("solver_duration")),
            per("instances_total"),
            per("questions_total{by=\"folding\"}"),
            per("questions_total{by=\"cache\"}"),
            per("questions_total{by=\"solver\"}"),
            per("known_total"),
            count(told.get("shed_total")),
            count(told.get("overruns_total")),
        ]);
    }
    table.print();
    // what it costs to follow the watches, with nobody asking
    let idle = measured.iter().filter(|((_, asked), _)| *asked == Asked::Nobody).map(|(_, figures)| figures);
    let (user, done) = idle.fold((0.0, 0), |(user, done), f| (user + f.told.user_secs, done + f.all.len()));
    println!(
        "  while nobody is asked, {:.3} ms of user time for each request, spent on its watches",
        user * 1e3 / (done as f64).max(1.0)
    );
    steps(measured);
}

/// Which invariants decisions took their steps for, the dearest first.
fn steps(measured: &Measured) {
    let of_suture = || measured.iter().filter(|((_, asked), _)| *asked == Asked::Suture).map(|(_, figures)| figures);
    let decisions: f64 = of_suture().map(|figures| figures.told.decisions()).sum();
    let mut by_invariant: BTreeMap<&str, f64> = BTreeMap::new();
    for (invariant, steps) in of_suture().flat_map(|f| f.told.by_label("invariant_steps_total", "invariant")) {
        *by_invariant.entry(invariant).or_default() += steps;
    }
    let all: f64 = by_invariant.values().sum();
    let mut dearest: Vec<(&str, f64)> = by_invariant.into_iter().collect();
    dearest.sort_by(|a, b| b.1.total_cmp(&a.1));
    println!("\nsteps by invariant");
    let mut table = Table::new(&["invariant", "steps/decision", "% of all"]);
    for (invariant, steps) in dearest.into_iter().take(LISTED_MAX) {
        let (each, share) = (steps / decisions.max(1.0), steps * 100.0 / all.max(1.0));
        table.row([invariant.to_owned(), format!("{each:.0}"), format!("{share:.1}")]);
    }
    table.print();
}

/// Decisions that took long, with what the product says about them.
pub fn slow(measured: &Measured, mut lines: Vec<(f64, String)>) {
    let of_suture = measured.iter().filter(|((_, asked), _)| *asked == Asked::Suture);
    let all: f64 = of_suture.map(|(_, figures)| figures.told.slow("decision_duration")).sum();
    println!(
        "\ndecisions over {:.0} ms: {all:.0}, of which {} have a line in suture's log",
        SLOW_SECS * 1e3,
        lines.len()
    );
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (millis, text) in lines.iter().take(LISTED_MAX) {
        println!("  {millis:.0} ms  {}", cut(text));
    }
}

/// Answers that are not what was asked for.
pub fn refusals(measured: &Measured) {
    println!("\nanswers that are not what was asked for");
    let mut table = Table::new(&["traffic", "burst", "clients", "webhook", "code", "answers", "reason"]);
    let mut samples = Vec::new();
    for ((case, asked), figures) in measured {
        for ((code, why), (count, sort, message)) in &figures.refused {
            table.row([
                case.traffic.name().to_owned(),
                case.phase.name().to_owned(),
                case.clients.to_string(),
                asked.name().to_owned(),
                code.to_string(),
                count.to_string(),
                (*why).to_owned(),
            ]);
            samples.push(format!("{code} at {} {}: {}", sort.0, sort.1, cut(message)));
        }
    }
    table.print();
    samples.iter().for_each(|sample| println!("  such as {sample}"));
    let left: usize = measured.values().map(|figures| figures.left).sum();
    println!("  rounds that clients left after refusals: {left}");
}

fn cut(text: &str) -> String {
    text.replace('\n', " ").chars().take(MESSAGE_MAX_CHARS).collect()
}
