//! The page of invariants: how each stands, what is violated now, and what it stood in the way of over time, as a plot that is
//! drawn here and as its numbers.

use maud::{Markup, html};
use suture_specs::spec::Action;

use super::{Doing, Frame, page};
use crate::clock::Clock;
use crate::failure::plural;
use crate::output::visible as shown;
use crate::serve::costs::Cost;
use crate::serve::reports::board::{Board, Counts, Line, Standing, spans};
use crate::serve::reports::head::unasked;

/// More violations of an invariant are only counted.
const INSTANCES_MAX: usize = 50;
const PLOT_WIDTH: u64 = 240;
const PLOT_HEIGHT: u64 = 48;
/// Below the bars, for the line that they stand on.
const PLOT_FOOT: u64 = 2;
/// A part of a bar: its class, its word, and its number.
type Part = (&'static str, &'static str, fn(&Counts) -> u64);
/// The parts, from the bottom of a bar to its top.
const PARTS: [Part; 3] = [
    ("denied", "denied", |c| c.denied),
    ("undecided", "undecided", |c| c.undecided),
    ("warned", "warned", |c| c.warned),
];

/// The whole page; `root` is where the list of reports is.
pub fn html(board: &Board, root: &str) -> String {
    let mut lines: Vec<&Line> = board.invariants.iter().collect();
    lines.sort_by_key(|line| (rank(line), &line.standing.name));
    let main = html! {
        h1 { "Invariants" }
        p { "What they stood in the way of in " @for (number, span) in spans().enumerate() {
            @if number > 0 { " · " }
            @if span == board.span { strong aria-current="true" { (span) } } @else { a href=(format!("?span={span}")) { (span) } }
        } ", since " (shown(&board.since)) ". What is violated is looked for now and then by one replica; you see what is in namespaces that you may read." }
        @if !board.silent.is_empty() { p.why.warn { (shown(&unasked(&board.silent))) "." } }
        @if lines.is_empty() { p.none { "No invariant is loaded, and no report names one." } }
        @for (number, line) in (1..).zip(&lines).filter(|(_, line)| rank(line) != CALM) { (section(board, line, number)) }
        (calm(board, &lines))
    };
    let (title, what, skip) = ("Invariants", "how invariants stand", "Skip to the invariants");
    page(Frame { title, what, skip, root: Some(root), doing: Doing::Nothing }, &main)
}

/// The rank of one of which there is nothing to tell.
const CALM: u8 = 5;

/// What needs somebody comes first.
fn rank(line: &Line) -> u8 {
    let Standing { loaded, problem, unread, violations, .. } = &line.standing;
    match (problem, unread, violations) {
        (Some(_), ..) => 0,
        (None, Some(_), _) => 1,
        (_, _, Some(violations)) if !violations.is_empty() => 2,
        _ if line.decisions.iter().any(|counts| counts.total() > 0) => 3,
        _ if !loaded => 4,
        _ => CALM,
    }
}

/// Those that are not violated where the reader looks, as far as that is known, and stood in nobody's way.
fn calm(board: &Board, lines: &[&Line]) -> Markup {
    let calm: Vec<&Standing> = lines.iter().filter(|line| rank(line) == CALM).map(|line| &line.standing).collect();
    html! {
        @if !calm.is_empty() {
            section aria-labelledby="calm" {
                h2 #calm { "Stood in nobody's way" }
                div.scroll tabindex="0" role="group" aria-label="invariants: table, scrolls sideways" {
                    table {
                        caption { (plural(calm.len(), "invariant", "invariants")) }
                        thead { tr { th scope="col" { "Invariant" } th scope="col" { "State" } th scope="col" { "Violated now" } th scope="col" { "One step away" } th scope="col" { "Cost" } } }
                        tbody {
                            @for standing in calm {
                                @let (class, word, why) = state(standing);
                                tr {
                                    th scope="row" { (shown(&standing.name)) }
                                    td { span class=(class) { (word) } @if let Some(why) = why { " " (shown(why)) } }
                                    td { (violated(standing)) }
                                    td { (nearly(standing)) }
                                    td { (cost(board, standing)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn section(board: &Board, line: &Line, number: usize) -> Markup {
    let Line { standing, decisions } = line;
    let id = format!("invariant-{number}");
    let (class, word, why) = state(standing);
    html! {
        section.verdict aria-labelledby=(id) {
            h2 id=(id) { span class=(class) { (word) } " " (shown(&standing.name)) }
            @if let Some(why) = why { p { (shown(why)) } }
            div.pair {
                div { h3 { "Violated now" } (violated(standing)) h3 { "One step away" } (nearly(standing)) h3 { "Cost" } (cost(board, standing)) }
                div { h3 { "Stood in the way" } (over_time(board, decisions, number)) }
            }
        }
    }
}

/// How it stands, in a word and in more words.
fn state(standing: &Standing) -> (&'static str, &'static str, Option<&str>) {
    let Standing { loaded, action, problem, unread, idle, .. } = standing;
    match (problem, unread, idle, action) {
        _ if !loaded => ("badge warn", "Not loaded", Some("Reports name it; it is not loaded now.")),
        (Some(why), ..) => ("badge bad", "Does not compile", Some(why)),
        (None, Some(why), ..) => ("badge warn", "Not ready", Some(why)),
        (None, None, Some(why), _) => ("badge warn", "Not enforced", Some(why)),
        (None, None, None, Some(Action::Warn)) => ("badge good", "Warns", None),
        (None, None, None, Some(Action::Audit)) => ("badge good", "Audits", None),
        (None, None, None, Some(Action::Deny) | None) => ("badge good", "Denies", None),
    }
}

fn violated(standing: &Standing) -> Markup {
    html! {
        @match (&standing.violations, &standing.unclear) {
            (Some(violations), _) if violations.is_empty() => p { "none" },
            (Some(violations), _) => (instances(violations)),
            (None, Some(why)) => p { "Not known: " (shown(why)) },
            (None, None) => p { "Not known here." },
        }
    }
}

/// What one fault or one request would violate.
fn nearly(standing: &Standing) -> Markup {
    html! {
        @match &standing.nearly {
            Some(nearly) if nearly.instances.is_empty() => p { @if nearly.complete { "none" } @else { "none so far" } },
            Some(nearly) => {
                (instances(&nearly.instances))
                @if !nearly.complete { p { "Not all objects were looked at yet." } }
            }
            None => p { "Not known here." },
        }
    }
}

/// What it took of decisions since the replicas began.
fn cost(board: &Board, standing: &Standing) -> Markup {
    let all: u64 = board.invariants.iter().map(|line| line.standing.cost.steps).sum();
    let Cost { decisions, steps } = standing.cost;
    html! {
        @match (steps.checked_div(decisions), steps.saturating_mul(100).checked_div(all)) {
            (Some(each), Some(share)) => p {
                (each) " steps a decision (" (decisions) @if decisions == 1 { " decision); " } @else { " decisions); " }
                @if share == 0 { "less than 1" } @else { (share) } " % of all steps"
            },
            _ => p { "none yet" },
        }
    }
}

/// Instances, each with what is to be said of it.
fn instances(all: &[(String, String)]) -> Markup {
    html! {
        details {
            summary { (plural(all.len(), "instance", "instances")) }
            ul {
                @for (instance, told) in all.iter().take(INSTANCES_MAX) {
                    li { code { (shown(instance)) } @if !told.is_empty() { ": " (shown(told.lines().next().unwrap_or_default())) } }
                }
                @if all.len() > INSTANCES_MAX { li { "and " (all.len() - INSTANCES_MAX) " more" } }
            }
        }
    }
}

/// The plot, with its numbers as a table.
fn over_time(board: &Board, decisions: &[Counts], number: usize) -> Markup {
    let all = decisions.iter().fold(Counts::default(), |sum, counts| sum.and(*counts));
    if all.total() == 0 {
        return html! { p { "No request in " (shown(&board.span)) "." } };
    }
    let words: Vec<String> = PARTS.iter().map(|(_, word, of)| format!("{} {word}", of(&all))).collect();
    let id = format!("plot-{number}");
    let steps: Vec<(String, Counts)> =
        (0..).zip(decisions).map(|(step, counts)| (time(board, step), *counts)).collect();
    html! {
        p { (words.join(", ")) }
        svg.plot viewBox=(format!("0 0 {PLOT_WIDTH} {PLOT_HEIGHT}")) role="img" aria-labelledby=(id) {
            title id=(id) { (words.join(", ")) " in " (shown(&board.span)) "; the table below has the numbers" }
            (bars(&steps))
            path.foot d=(format!("M0,{} h{PLOT_WIDTH}", PLOT_HEIGHT - 1)) {}
        }
        details {
            summary { "The numbers" }
            table {
                caption { "Requests that it stood in the way of, from each time on" }
                thead { tr { th scope="col" { "From" } @for (_, word, _) in PARTS { th scope="col" { (word) } } } }
                tbody {
                    @for (from, counts) in steps.iter().rev().filter(|(_, counts)| counts.total() > 0) {
                        tr { th scope="row" { (shown(from)) } @for (_, _, of) in PARTS { td { (of(counts)) } } }
                    }
                }
            }
        }
    }
}

/// A bar for each step, in parts that differ in pattern and not in colour alone.
fn bars(steps: &[(String, Counts)]) -> Markup {
    let most = steps.iter().map(|(_, counts)| counts.total()).max().unwrap_or(0).max(1);
    let width = PLOT_WIDTH / u64::try_from(steps.len().max(1)).unwrap_or(1);
    let room = PLOT_HEIGHT - PLOT_FOOT;
    html! {
        @for (place, (from, counts)) in (0_u64..).zip(steps) {
            @if counts.total() > 0 {
                g {
                    title { (shown(from)) ": " (counts.denied) " denied, " (counts.undecided) " undecided, " (counts.warned) " warned" }
                    @for (class, from, to) in stacked(counts) {
                        rect class=(class) x=(place * width + 1) width=(width.saturating_sub(2).max(1))
                            y=(room - to * room / most) height=((to * room / most - from * room / most).max(1)) {}
                    }
                }
            }
        }
    }
}

/// The parts of a bar that there are: from where to where.
fn stacked(counts: &Counts) -> Vec<(&'static str, u64, u64)> {
    let mut top = 0;
    let part = |(class, _, of): &Part| {
        let from = top;
        top += of(counts);
        (*class, from, top)
    };
    let all: Vec<_> = PARTS.iter().map(part).collect();
    all.into_iter().filter(|(_, from, to)| from < to).collect()
}

/// When a step begins.
fn time(board: &Board, step: i64) -> String {
    let since =
        Clock::parse(&board.since).and_then(|since| since.later(&format!("{}s", board.step_secs.max(0) * step)));
    since.map_or_else(|_| board.since.clone(), |time| time.to_string().replace('T', " ").replace(":00Z", " UTC"))
}

#[cfg(test)]
mod tests;
