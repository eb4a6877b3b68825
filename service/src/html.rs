//! Pages for people: HTML made here, whole, with one style sheet inside and nothing from elsewhere.
//!
//! Every text on a page comes from objects of the cluster, whose names and labels anybody may choose. maud escapes what is
//! put into a page; [`shown`] also escapes the characters that would hide or turn around what stands beside them. The
//! policy of a page admits its style by a hash, and where it follows what is new, its form, its one script by a hash, and
//! questions to where it came from. It forbids everything else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::output::visible as shown;

pub mod diagram;
#[cfg(feature = "serve")]
pub mod invariants;
#[cfg(feature = "serve")]
pub mod list;
pub mod report;

/// The style sheet of every page.
const STYLE: &str = include_str!("html/style.css");
/// Its hash, by which the policy of a page admits it; `the_style_is_the_one_that_the_policy_admits` holds it.
const STYLE_HASH: &str = "sha256-D/M0LFZU3IT5/5ZPDU7Y/Ogkyc5OwhrW6Yf5u6aqIpg=";

/// The script of pages that follow what is new, and its hash; `the_style_and_the_script_are_those_that_the_policy_admits`.
const SCRIPT: &str = include_str!("html/live.js");
const SCRIPT_HASH: &str = "sha256-HNI6UWS0isEwiFbe/DulIImOdRhmpVb9wtqQwtXn57k=";

/// What a page may do beside being shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing: it loads, sends and runs nothing.
    Nothing,
    /// It has a form, which goes to where the page came from, and nowhere else.
    Sending,
    /// It has a form, and follows what is new: it asks where it came from, and nobody else.
    Following,
}

/// A page that is about something: what stands around that.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    /// The title of the window.
    pub title: &'f str,
    /// What the page is, in a line at its top.
    pub what: &'f str,
    /// What whoever reads with the keyboard may skip to.
    pub skip: &'f str,
    /// Where the list of reports is, as the page links to it; none for a page that stands alone.
    pub root: Option<&'f str>,
    /// What it may do.
    pub doing: Doing,
}

/// What a browser may do with a page: show it with this style, and what the page does.
pub fn policy(doing: Doing) -> String {
    let rest = match doing {
        Doing::Nothing => "form-action 'none'".to_owned(),
        Doing::Sending => "form-action 'self'".to_owned(),
        Doing::Following => format!("script-src '{SCRIPT_HASH}'; connect-src 'self'; form-action 'self'"),
    };
    format!("default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; {rest}")
}

/// A whole page; `main` is what it is about.
pub fn page(frame: Frame<'_>, main: &Markup) -> String {
    let Frame { title, what, skip, root, doing } = frame;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(doing));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (shown(title)) }
                // this and the script are the only texts that are not escaped, and nothing of them comes from elsewhere
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { (skip) }
                header.top {
                    p { strong { "Suture" } " · " (what) }
                    @if let Some(root) = root {
                        nav aria-label="Pages" { a href=(root) { "All reports" } " · " a href=(format!("{root}invariants/page")) { "Invariants" } }
                    }
                }
                main #main tabindex="-1" { (main) }
                footer { p { "Made by suture " (env!("CARGO_PKG_VERSION")) ". Values of Secrets and ConfigMaps are never read." } }
                @if doing == Doing::Following { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    page.into_string()
}

/// A page that says why there is no other one.
pub fn refusal(title: &str, why: &str, root: &str) -> String {
    let frame = Frame {
        title,
        what: "reports of decisions",
        skip: "Skip to the text",
        root: Some(root),
        doing: Doing::Nothing,
    };
    page(frame, &html! { h1 { (title) } p.why { (shown(why)) } })
}

#[cfg(test)]
pub(crate) mod tests;
