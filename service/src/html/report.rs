//! The page of one report, as it is put into an incident ticket.

use maud::{Markup, html};
use suture_checker::decision::{Counterexample, Finding, Outcome, Verdict};
use suture_checker::involved::Relation;
use suture_specs::spec::Action;

use super::diagram::{Diagram, Side, relations, tables};
use super::{Doing, Frame, page};
use crate::clock::Clock;
use crate::output::denial::{About, rank};
use crate::output::visible as shown;
use crate::report::{EXEMPTION_LASTS, Report, Requested, exemption};

/// More verdicts are only counted.
const VERDICTS_MAX: usize = 30;
/// More objects of one step are only counted.
const OBJECTS_MAX: usize = 12;

/// The whole page. `now` is when an exemption begins that it proposes; `root` is where the list of reports is, if there is
/// one.
pub fn html(report: &Report, now: Clock, root: Option<&str>) -> String {
    let title = title(report);
    let mut told: Vec<&Verdict> = report.decision.verdicts.iter().collect();
    told.sort_by_key(|verdict| rank(verdict));
    let left_out = told.len().saturating_sub(VERDICTS_MAX);
    let main = html! {
        h1 { (badge(report)) (shown(&title)) }
        (facts(report))
        @for (number, verdict) in (1..).zip(told.iter().take(VERDICTS_MAX)) { (section(report, verdict, number, now)) }
        @if left_out > 0 { p { "And " (left_out) " more instances, which the JSON of the report lists." } }
        (rest(report))
    };
    let title = format!("{}: {title}", report.outcome());
    let (what, skip) = ("report of a decision", "Skip to the report");
    page(Frame { title: &title, what, skip, root, doing: Doing::Nothing }, &main)
}

/// What is asked for, in a line.
fn title(report: &Report) -> String {
    match (report.requests.as_slice(), report.about()) {
        ([], About::Present) => "the cluster as it is".to_owned(),
        ([], About::Change) => format!("request {}", report.decision.uid),
        ([one], _) => one.text.clone(),
        ([first, others @ ..], _) => format!("{}, and {} more judged together", first.text, others.len()),
    }
}

fn badge(report: &Report) -> Markup {
    let class = match (report.about(), report.decision.decision) {
        (About::Present, Outcome::Warned) => "badge bad",
        (_, outcome) => class_of(outcome),
    };
    html! { span class=(class) { (report.outcome()) } " " }
}

/// How the badge of an outcome looks, beside its word.
pub fn class_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Denied => "badge bad",
        Outcome::Warned | Outcome::Undecided => "badge warn",
        Outcome::Allowed => "badge good",
    }
}

/// Who asked for what, when, and what it took.
fn facts(report: &Report) -> Markup {
    let decision = &report.decision;
    let took = decision
        .duration
        .map(|duration| format!("{} µs, of which {} µs in the solver", duration.total_micros, duration.solver_micros));
    html! {
        section aria-labelledby="request" {
            h2 #request { @if report.requests.is_empty() { "What was judged" } @else { "The request" } }
            @for request in &report.requests { (requested(request)) }
            dl.facts {
                @if let Some(id) = &report.id { dt { "Report" } dd { code { (shown(id)) } } }
                @if let Some(time) = &report.time { dt { "Decided" } dd { (shown(time)) } }
                @if !decision.uid.is_empty() { dt { "uid of the review" } dd { code { (shown(&decision.uid)) } } }
                dt { "Instances" }
                dd { (decision.verdicts.len()) " told here, " (decision.proved) " proved, " (decision.not_worse) " not worse than without the change" }
                @if let Some(took) = took { dt { "Took" } dd { (took) } }
                @if !decision.solver.is_empty() { dt { "Solver" } dd { "z3 " (shown(&decision.solver)) } }
            }
        }
    }
}

fn requested(request: &Requested) -> Markup {
    let Requested { user, groups, operation, subresource, object, namespace: _, dry_run, text } = request;
    let subresource = if subresource.is_empty() { String::new() } else { format!(", subresource {subresource}") };
    html! {
        p { (shown(text)) }
        dl.facts {
            dt { "Who" }
            dd { (shown(user)) @if !groups.is_empty() { " (" (shown(&groups.join(", "))) ")" } }
            dt { "Operation" }
            dd { (shown(operation)) (shown(&subresource)) @if *dry_run { ", dry run: nothing would have been stored" } }
            dt { "Object" }
            dd { code { (shown(object)) } }
        }
    }
}

/// One verdict with all that is known of it.
fn section(report: &Report, verdict: &Verdict, number: usize, now: Clock) -> Markup {
    let relation = match (verdict.outcome, report.about()) {
        (Finding::Proved, _) => "holds for",
        (Finding::NotWorse, _) => "is not worse for",
        (Finding::Undecided, _) => "could not be decided for",
        (Finding::Refuted, About::Change) => "would break for",
        (Finding::Refuted, About::Present) => "is broken for",
    };
    let id = format!("verdict-{number}");
    let (class, label) = label(verdict);
    let mut lines = verdict.message.lines();
    let why = match verdict.outcome {
        Finding::Undecided => verdict.reason.as_deref().unwrap_or("no reason is given"),
        _ => lines.next().unwrap_or_default(),
    };
    let is_bad = verdict.outcome == Finding::Refuted && verdict.action == Action::Deny;
    html! {
        section.verdict aria-labelledby=(id) {
            h2 id=(id) {
                span class=(class) { (label) } " "
                (shown(&verdict.invariant)) " " (relation) " " (shown(&verdict.instance))
            }
            @if !why.is_empty() { p class=(if is_bad { "why" } else { "why warn" }) { (shown(why)) } }
            @if let Some(counterexample) = &verdict.counterexample { (future(verdict, counterexample, number, report.about())) }
            (list("What this relies on", &verdict.assumptions))
            (instead(verdict))
            (lifted(report, verdict, now))
            (judged_against(verdict))
        }
    }
}

fn label(verdict: &Verdict) -> (&'static str, &'static str) {
    match (verdict.outcome, verdict.action) {
        (Finding::Refuted, Action::Deny) => ("badge bad", "Breaks"),
        (Finding::Refuted, Action::Warn) => ("badge warn", "Warned"),
        (Finding::Refuted, Action::Audit) => ("badge warn", "Audited"),
        (Finding::Undecided, _) => ("badge warn", "Undecided"),
        (Finding::NotWorse, _) => ("badge warn", "Not worse"),
        (Finding::Proved, _) => ("badge good", "Proved"),
    }
}

/// The way into the violating future, the clause, and the objects before and after.
fn future(verdict: &Verdict, counterexample: &Counterexample, number: usize, about: About) -> Markup {
    let Counterexample { steps, broken, replayed, .. } = counterexample;
    let diagram = Diagram::of(counterexample, &verdict.instance, number);
    html! {
        @if !steps.is_empty() {
            h3 { "What follows, step by step" }
            ol {
                @for step in steps {
                    li {
                        (shown(&step.effect))
                        @if step.objects.len() > 1 || step.objects.first().is_some_and(|object| !step.effect.contains(object.as_str())) {
                            ul {
                                @for object in step.objects.iter().take(OBJECTS_MAX) { li { code { (shown(object)) } } }
                                @if step.objects.len() > OBJECTS_MAX { li { "and " (step.objects.len() - OBJECTS_MAX) " more" } }
                            }
                        }
                    }
                }
            }
        }
        @if !broken.is_empty() {
            h3 { "The clause that breaks, with its values" }
            pre { (shown(broken)) }
            @if *replayed { p { "The concrete interpreter reaches the same violation." } }
        }
        @if let Some(diagram) = diagram {
            h3 { "The objects involved" }
            div.pair {
                (figure(&diagram, Side::Before, if about == About::Change { "Before" } else { "Now" }))
                @if about == About::Change { (figure(&diagram, Side::After, "After: the future that breaks it")) }
            }
            p {
                "The thick frame is what the invariant is about. "
                @if about == About::Change { "✕, a dashed line and a struck-through name mark what is lost; + marks what is new, ! what is there in another state. " }
                "Arrows: " (legend(counterexample)) "."
            }
            @if diagram.left_out() > 0 { p { (diagram.left_out()) " more objects are in the table only." } }
            details {
                summary { "The same as tables" }
                (tables(counterexample))
            }
        }
    }
}

fn figure(diagram: &Diagram<'_>, side: Side, caption: &str) -> Markup {
    html! {
        figure {
            figcaption { (caption) }
            div.scroll tabindex="0" role="group" aria-label=(format!("{caption}: picture, scrolls sideways")) { (diagram.svg(side)) }
        }
    }
}

fn legend(counterexample: &Counterexample) -> String {
    let all = relations(counterexample);
    let words: Vec<&str> = all.into_iter().map(Relation::verb).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn list(title: &str, items: &[String]) -> Markup {
    html! {
        @if !items.is_empty() {
            h3 { (title) }
            ul { @for item in items { li { (shown(item)) } } }
        }
    }
}

/// What would have been allowed; a line for a shell stands by itself.
fn instead(verdict: &Verdict) -> Markup {
    html! {
        @if !verdict.nearest_allowed.is_empty() {
            h3 { "What would be allowed instead" }
            ul {
                @for item in &verdict.nearest_allowed {
                    @match item.split_once(": kubectl ") {
                        Some((when, command)) => li { (shown(when)) ":" pre { "kubectl " (shown(command)) } },
                        None => li { (shown(item)) },
                    }
                }
            }
        }
    }
}

/// The exemption that lets it pass.
fn lifted(report: &Report, verdict: &Verdict, now: Clock) -> Markup {
    let stands = matches!(verdict.outcome, Finding::Refuted | Finding::Undecided) && verdict.action != Action::Audit;
    let manifest = exemption(verdict, &report.requests, now).filter(|_| stands);
    html! {
        @if let Some(manifest) = manifest {
            h3 { "To let it pass all the same" }
            p {
                "Only if the loss is meant: fill in the reason and apply this with " code { "kubectl apply -f -" }
                ". It ends " (EXEMPTION_LASTS) " after this page was made; set what you need. It covers whoever asked, this instance and this invariant, and nothing else."
            }
            pre { (shown(&manifest)) }
        }
    }
}

fn judged_against(verdict: &Verdict) -> Markup {
    html! {
        @if !verdict.proved_against.is_empty() {
            details {
                summary { "Judged against these resourceVersions" }
                table {
                    caption { "What the watch had shown" }
                    thead { tr { th scope="col" { "Object" } th scope="col" { "resourceVersion" } } }
                    tbody {
                        @for (object, version) in verdict.proved_against.iter() {
                            tr { th scope="row" { (shown(object)) } td { (shown(version)) } }
                        }
                    }
                }
            }
            p { "The invariant itself: " code { "kubectl get invariant " (shown(&verdict.invariant)) " -o yaml" } }
        }
    }
}

/// What concerns the whole decision.
fn rest(report: &Report) -> Markup {
    let decision = &report.decision;
    let exempted: Vec<String> = decision
        .exempted
        .iter()
        .map(|used| {
            format!(
                "{} for {}: Exemption {}, until {}: {}",
                used.invariant, used.instance, used.exemption, used.expires, used.reason
            )
        })
        .collect();
    let assumed: Vec<String> = decision.unmodelled_in_words().collect();
    html! {
        (list("Exempted, and therefore not judged", &exempted))
        (list("Assumed by every proof", &assumed))
        (list("Kinds of which the recorded cluster has no object", &decision.taken_as_none))
        @if decision.cut_short { p { "Perhaps more would break: the change was denied, and what else it reaches was not judged." } }
    }
}
