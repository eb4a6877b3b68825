//! Pages for people: HTML made here, whole, with one style sheet inside and nothing from elsewhere.
//!
//! Every text on a page comes from objects of the cluster, whose names and labels anybody may choose. maud escapes what is
//! put into a page; [`shown`] also escapes the characters that would hide or turn around what stands beside them. The
//! policy of the page forbids scripts, forms, frames and everything that would be loaded.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::output::visible as shown;

pub mod diagram;
pub mod report;

/// The style sheet of every page.
const STYLE: &str = include_str!("html/style.css");
/// Its hash, by which the policy of a page admits it; `the_style_is_the_one_that_the_policy_admits` holds it.
const STYLE_HASH: &str = "sha256-3yb+OYFFDfPlbzVqfhQFGIRJpHF66R8xBIA6klMQVyY=";

/// What a browser may do with a page: show it, with this style.
pub fn policy() -> String {
    format!("default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'")
}

/// A whole page; `main` is what it is about.
pub fn page(title: &str, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (shown(title)) }
                // the only text that is not escaped, and none of it comes from elsewhere
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the report" }
                header.top { p { strong { "Suture" } " · report of a decision" } }
                main #main tabindex="-1" { (main) }
                footer { p { "Made by suture " (env!("CARGO_PKG_VERSION")) ". Values of Secrets and ConfigMaps are never read." } }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests;
