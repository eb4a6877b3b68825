//! The result of a benchmark as a table.

use std::fmt::Write;

use super::measure::{Audit, Bench, Row, Spread};

/// The table, and what took longest when asked for. Times are in microseconds.
pub fn text(bench: &Bench, verbose: bool) -> String {
    let Bench { nodes, pods, objects, seed, load_millis, resident_kib, resident_end_kib, templates, audit } = bench;
    let mebi = |kib: &Option<u64>| kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib / 1024));
    let mut out = String::new();
    _ = writeln!(out, "cluster   {nodes} nodes, {pods} pods, {objects} objects, seed {seed}");
    _ = writeln!(out, "load      {load_millis} ms");
    _ = writeln!(out, "resident  {} after loading, {} at the end", mebi(resident_kib), mebi(resident_end_kib));
    if let Some(Audit { millis, again_millis, holding, others }) = audit {
        _ = writeln!(out, "audit     {millis} ms, {again_millis} ms again; {holding} instances hold, {others} do not");
    }
    let together = templates.iter().filter(|row| row.invariants > 1);
    together.for_each(|row| _ = writeln!(out, "{}", summary(row)));
    _ = writeln!(out);
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(templates.iter().map(cells));
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|at| lines.iter().filter_map(|line| line.get(at)).map(String::len).max().unwrap_or(0))
        .collect();
    _ = writeln!(out, "{}", groups(&widths));
    for line in &lines {
        let padded = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            // the name is on the left, figures are on the right
            if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        _ = writeln!(out, "{}", padded.collect::<Vec<_>>().join("  "));
    }
    if verbose {
        _ = writeln!(out, "\nslowest");
        for Row { template, slowest, by_request, .. } in templates {
            _ = writeln!(out, "  {template}: {slowest}");
            for (request, Spread { count, p50_micros, p99_micros, max_micros }) in by_request {
                _ = writeln!(out, "    {request:<20} {count:>5} {p50_micros:>9} {p99_micros:>9} {max_micros:>9}");
            }
        }
    }
    out
}

/// What matters of a row of several invariants.
fn summary(row: &Row) -> String {
    let Row { template, requests, every, with_solver, share_without_solver, .. } = row;
    let ms = |micros: u64| format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100);
    let (asked, share, solving) = (with_solver.count, 100.0 - share_without_solver, ms(with_solver.p99_micros));
    let (p50, p99, most) = (ms(every.p50_micros), ms(every.p99_micros), ms(every.max_micros));
    format!(
        "{template:<14}  {requests} requests: p50 {p50}, p99 {p99}, slowest {most}; {asked} of them ({share:.1} %) asked Z3, p99 {solving}"
    )
}

const HEAD: [&str; 19] = [
    "template",
    "requests",
    "per s",
    "n",
    "p50",
    "p99",
    "max",
    "n",
    "p50",
    "p99",
    "max",
    "known",
    "p50",
    "p99",
    "no solver",
    "cached",
    "instances",
    "denied",
    "undecided",
];

/// A line above the head: which columns are of decisions without the solver, which of those with it, and which of the
/// same requests asked again.
fn groups(widths: &[usize]) -> String {
    let span = |from: usize, to: usize| -> usize {
        widths.iter().skip(from).take(to - from).sum::<usize>() + 2 * (to - from - 1)
    };
    let cell = |label: &str, width: usize| format!("{label:-^width$}");
    let before = span(0, 3);
    let again = cell(" again, µs ", span(11, 14));
    let (without, with) = (cell(" without solver, µs ", span(3, 7)), cell(" with solver, µs ", span(7, 11)));
    format!("{:before$}  {without}  {with}  {again}", "")
}

fn cells(row: &Row) -> [String; 19] {
    let Row {
        template,
        invariants: _,
        requests,
        per_second,
        without_solver,
        with_solver,
        every: _,
        share_without_solver,
        cache_hits,
        again,
        known_again,
        instances,
        outcomes,
        slowest: _,
        by_request: _,
    } = row;
    let of = |spread: &Spread| {
        let Spread { count, p50_micros, p99_micros, max_micros } = *spread;
        // no decision, no time
        let time = |micros: u64| if count == 0 { "-".to_owned() } else { micros.to_string() };
        [count.to_string(), time(p50_micros), time(p99_micros), time(max_micros)]
    };
    let ([an, a50, a99, amax], [bn, b50, b99, bmax]) = (of(without_solver), of(with_solver));
    let [_, c50, c99, _] = of(again);
    [
        template.clone(),
        requests.to_string(),
        per_second.to_string(),
        an,
        a50,
        a99,
        amax,
        bn,
        b50,
        b99,
        bmax,
        known_again.to_string(),
        c50,
        c99,
        format!("{share_without_solver:.1}%"),
        cache_hits.to_string(),
        instances.to_string(),
        outcomes.denied.to_string(),
        outcomes.undecided.to_string(),
    ]
}
