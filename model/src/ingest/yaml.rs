//! YAML texts: documents between `---`, each parsed by itself, so that one cannot spend what the others may use.
//!
//! Read as Kubernetes' tools read it: merge keys, anchors and aliases, the Booleans `yes`, `no`, `on` and `off` of
//! YAML 1.1. Timestamps, numbers with a leading zero and numbers with underscores stay strings.

use serde::de::DeserializeSeed;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::fault::Fault;
use super::tree::{Allowance, NESTING_MAX, Tree, short};
use crate::value::{Str, Val};

const TOO_MUCH: &str = "anchors and aliases expand to too much";
/// Events that aliases may replay within a document, at least; it may replay ten for each of its bytes,
/// and keep four.
const REPLAYS_MIN: usize = 5_000;

/// The values of a text, each with the line it starts on.
pub(super) fn parse(text: &str, allowance: &Allowance) -> Result<Vec<(Val, usize)>, Fault> {
    let mut values = Vec::new();
    for part in parts(text) {
        values.push((parse_one(&part, allowance)?, part.content));
    }
    Ok(values)
}

/// The text of one document.
struct Part<'t> {
    text: &'t str,
    /// The line on which the part starts.
    line: usize,
    /// The first line with content.
    content: usize,
}

/// Cuts a text at the lines that start a document (`---`) or end one (`...`), which YAML allows nowhere within one
/// (production `c-forbidden`). Parts without content, and directives, are left out.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let (mut start, mut start_line, mut content) = (0, 1, None);
    let (mut at, mut line) = (0, 1);
    for raw in text.split_inclusive('\n') {
        let bare = raw.trim_end();
        if is_marker(bare, "---") || is_marker(bare, "...") {
            found.extend(part(text.get(start..at), start_line, content));
            // the marker belongs to the document that it starts; one that ends a document belongs to none
            start = if bare.starts_with("---") { at } else { at + raw.len() };
            start_line = if bare.starts_with("---") { line } else { line + 1 };
            content = has_content(bare.get(3..).unwrap_or("")).filter(|()| bare.starts_with("---")).map(|()| line);
        } else if content.is_none() && has_content(bare).is_some() && !bare.starts_with('%') {
            content = Some(line);
        }
        at += raw.len();
        line += 1;
    }
    found.extend(part(text.get(start..), start_line, content));
    found
}

fn part(text: Option<&str>, line: usize, content: Option<usize>) -> Option<Part<'_>> {
    Some(Part { text: text?, line, content: content? })
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn has_content(line: &str) -> Option<()> {
    let line = line.trim_start();
    (!line.is_empty() && !line.starts_with('#')).then_some(())
}

fn parse_one(part: &Part<'_>, allowance: &Allowance) -> Result<Val, Fault> {
    let read = |allowance: &Allowance, strict_booleans: bool| {
        let tree = |source: serde_saphyr::Deserializer<'_, '_>| Tree::new(allowance).deserialize(source);
        let options = options(part.text.len(), strict_booleans);
        serde_saphyr::with_deserializer_from_str_with_options(part.text, options, tree).map_err(|e| fault(&e, part))
    };
    let plain = read(allowance, true)?;
    if !has_old_boolean(part.text) {
        return Ok(plain);
    }
    Ok(with_old_booleans(&plain, &read(&Allowance::of(part.text), false)?))
}

/// Booleans of YAML 1.1 that Kubernetes' tools take for such. They take `y` and `n` for Booleans too, as few others do:
/// here those stay strings, since names of one letter are commoner than such Booleans.
const OLD_BOOLEANS: [&str; 12] = ["yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"];

/// Whether one of these words may stand as a scalar of its own somewhere.
fn has_old_boolean(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}'));
    words.into_iter().any(|word| OLD_BOOLEANS.contains(&word))
}

/// The value read with the Booleans of YAML 1.2, with those in their places that only YAML 1.1 reads as such: where the
/// one has a string and the other a Boolean, the scalar was written without quotes.
fn with_old_booleans(new: &Val, old: &Val) -> Val {
    match (new, old) {
        (Val::Str(text), Val::Bool(_)) if OLD_BOOLEANS.contains(&&**text) => old.clone(),
        (Val::List(new), Val::List(old)) => {
            Val::list(new.iter().zip(old.iter()).map(|(new, old)| with_old_booleans(new, old)).collect())
        }
        (Val::Map(new), Val::Map(old)) => {
            let entry = |(key, value): (&Str, &Val)| {
                (key.clone(), old.get(key).map_or_else(|| value.clone(), |old| with_old_booleans(value, old)))
            };
            Val::map(new.iter().map(entry).collect())
        }
        _ => new.clone(),
    }
}

fn options(length: usize, strict_booleans: bool) -> serde_saphyr::Options {
    let replays = length.saturating_mul(10).saturating_add(REPLAYS_MIN);
    serde_saphyr::options! {
        // every event takes a byte of text, so the text's length bounds what has no limit of its own here
        budget: serde_saphyr::budget! {
            max_depth: NESTING_MAX,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_aliases: usize::MAX,
            max_anchors: usize::MAX,
            max_merge_keys: usize::MAX,
            max_recorded_anchor_events: length.saturating_mul(4).saturating_add(REPLAYS_MIN),
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: replays },
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: strict_booleans,
        with_snippet: false,
    }
}

fn fault(error: &Error, part: &Part<'_>) -> Fault {
    let (line, column) = error.location().map_or((part.content, 1), |location| {
        let line = usize::try_from(location.line()).unwrap_or(1);
        (part.line + line.saturating_sub(1), usize::try_from(location.column()).unwrap_or(1).max(1))
    });
    Fault { line, column, message: message(error), help: help(error).map(str::to_owned) }
}

/// The message without its place, which is told apart, and in our words where it speaks of the parser's.
fn message(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } => message(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key `{}`", short(key)),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => format!("nested deeper than {NESTING_MAX} levels"),
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => TOO_MUCH.to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("`{}` is no number", short(value)),
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias stands within what it means".to_owned(),
        other => {
            let whole = other.to_string();
            let place = whole.find(" at line ").into_iter().chain(whole.find(" (defined at ")).min();
            short(whole.get(..place.unwrap_or(whole.len())).unwrap_or(&whole))
        }
    }
}

fn help(error: &Error) -> Option<&'static str> {
    match error {
        Error::AliasError { error, .. } => help(error),
        Error::UnknownAnchor { .. } => {
            Some("an anchor holds within its own document only, after the place where it stands")
        }
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => Some("write the values out"),
        Error::NonFiniteFloat { .. } => Some("put it in quotes"),
        _ => None,
    }
}
