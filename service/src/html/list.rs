//! The page of the list of reports: a form by which it is narrowed, and a table, page by page. It works without a script; with
//! one it follows what is new.

use maud::{Markup, html};
use suture_checker::decision::Outcome;

use super::report::class_of;
use super::{Doing, Frame, page};
use crate::output::visible as shown;
use crate::serve::reports::head::{Filter, Head, Page, unasked};

/// How far the links above the table go back, as a filter says it.
const BACK: [(&str, &str); 3] = [("1h", "the last hour"), ("24h", "24 hours"), ("7d", "7 days")];
/// The outcomes that are kept, and their words.
const OUTCOMES: [(Outcome, &str); 3] =
    [(Outcome::Denied, "Denied"), (Outcome::Warned, "Warned"), (Outcome::Undecided, "Undecided")];

/// What the page does: one of older reports never changes, but by what is dropped.
pub fn doing(filter: &Filter) -> Doing {
    if filter.before.is_none() { Doing::Following } else { Doing::Sending }
}

/// The whole page.
pub fn html(listed: &Page, filter: &Filter) -> String {
    let doing = doing(filter);
    let main = html! {
        h1 { "Reports of decisions" }
        (form(listed, filter))
        @if doing == Doing::Following {
            p.live hidden { input #live type="checkbox" checked; " " label for="live" { "Show what is new as it comes" } }
        }
        p #news .news role="status" aria-live="polite" {}
        (table(listed, filter))
    };
    let title = "Reports of decisions";
    let (what, skip) = ("what was refused, undecided or warned about", "Skip to the list");
    page(Frame { title, what, skip, root: Some("./"), doing }, &main)
}

/// What the list is narrowed by.
fn form(listed: &Page, filter: &Filter) -> Markup {
    let text = |value: &Option<String>| value.as_deref().map(shown).unwrap_or_default();
    let invariants = listed.reports.iter().flat_map(|head| &head.invariants);
    let namespaces = listed.reports.iter().flat_map(|head| &head.namespaces).filter(|namespace| !namespace.is_empty());
    html! {
        form.filter method="get" action="." role="search" aria-label="Which reports" {
            (field("user", "Who asked", &text(&filter.user), None))
            (field("invariant", "Invariant", &text(&filter.invariant), Some(&mut invariants.map(String::as_str))))
            (field("namespace", "Namespace", &text(&filter.namespace), Some(&mut namespaces.map(String::as_str))))
            div {
                label for="decision" { "Outcome" }
                select #decision name="decision" {
                    option value="" selected[filter.decision.is_none()] { "any" }
                    @for (outcome, word) in OUTCOMES {
                        option value=(format!("{outcome:?}")) selected[filter.decision == Some(outcome)] { (word) }
                    }
                }
            }
            (field("since", "Since", &text(&filter.since), None))
            (field("until", "Until", &text(&filter.until), None))
            @if let Some(limit) = filter.limit { input type="hidden" name="limit" value=(limit); }
            div { button type="submit" { "Show" } " " a href="." { "Show all" } }
            p #times .hint { "Times are UTC, such as 2026-11-25 18:00, or say how long ago: 30m, 2h, 7d. Namespace - is what is in none." }
        }
        p {
            "Since "
            @for (number, (back, words)) in BACK.iter().enumerate() {
                @if number > 0 { " · " }
                a href=(filter.starting(back).query(None)) { (words) }
            }
        }
    }
}

/// A field of the form, with what may be chosen.
fn field(name: &str, label: &str, value: &str, known: Option<&mut dyn Iterator<Item = &str>>) -> Markup {
    let known: Option<std::collections::BTreeSet<&str>> = known.map(Iterator::collect);
    let list = known.as_ref().map(|_| format!("known-{name}"));
    let hint = matches!(name, "since" | "until" | "namespace").then_some("times");
    html! {
        div {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(value) list=[list.as_deref()] aria-describedby=[hint]
                autocomplete="off" autocapitalize="none" spellcheck="false";
            @if let (Some(known), Some(list)) = (known, &list) {
                datalist id=(list) { @for value in known { option value=(shown(value)) {} } }
            }
        }
    }
}

/// The table, which the script puts in the place of the one before. Roles are said, since a narrow page shows rows as cards.
fn table(listed: &Page, filter: &Filter) -> Markup {
    let Page { count, reports, next, silent } = listed;
    let newest = reports.first().map(|head| head.id.as_str()).unwrap_or_default();
    let all = if *count == 1 { "1 report".to_owned() } else { format!("{count} reports") };
    html! {
        div #list data-count=(count) data-newest=(newest) {
            @if !silent.is_empty() { p.why.warn { (shown(&unasked(silent))) "." } }
            @if reports.is_empty() {
                p.none { @if *count == 0 { "There is no such report, or none that you may see." } @else { "There is none that is older." } }
            } @else {
                table.list role="table" {
                    caption { (all) ", the newest first" @if reports.len() < *count { "; " (reports.len()) " are shown" } }
                    thead role="rowgroup" {
                        tr role="row" { @for name in COLUMNS { th scope="col" role="columnheader" { (name) } } }
                    }
                    tbody role="rowgroup" { @for head in reports { (row(head)) } }
                }
            }
            @if filter.before.is_some() || next.is_some() {
                nav.pages aria-label="Pages of the list" {
                    @if filter.before.is_some() { a href=(filter.query(None)) { "Newest" } " " }
                    @if let Some(next) = next { a rel="next" href=(filter.query(Some(next))) { "Older" } }
                }
            }
        }
    }
}

/// What the table says of each report.
const COLUMNS: [&str; 5] = ["Decided", "Outcome", "Who", "What was asked for", "In the way"];

fn row(head: &Head) -> Markup {
    let Head { id, time, decision, user, text, object, invariants, .. } = head;
    let word = OUTCOMES.iter().find(|(outcome, _)| outcome == decision).map_or("Allowed", |(_, word)| *word);
    let [decided, outcome, who, asked, broken] = COLUMNS;
    html! {
        tr role="row" {
            td role="cell" data-of=(decided) { time datetime=(time) { (shown(&short(time))) } }
            td role="cell" data-of=(outcome) { span class=(class_of(*decision)) { (word) } }
            td role="cell" data-of=(who) { (shown(user)) }
            td role="cell" data-of=(asked) {
                a href=(format!("reports/{id}/page")) { (shown(if text.is_empty() { object } else { text })) }
            }
            td role="cell" data-of=(broken) {
                ul.plain { @for invariant in invariants { li { code { (shown(invariant)) } } } }
            }
        }
    }
}

/// A time to the second, as people read it.
fn short(time: &str) -> String {
    match (time.split_once('T'), time.ends_with('Z')) {
        (Some((day, rest)), true) => format!("{day} {} UTC", rest.split(['.', 'Z']).next().unwrap_or_default()),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests;
