//! String functions: positions count characters, not bytes.

use crate::error::EvalError;

/// A double as CEL writes it: the shortest digits that read back the same, an exponent for the very large and small.
pub(crate) fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "NaN".into();
    }
    if d.is_infinite() {
        return if d > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    if d != 0.0 && (d.abs() >= 1.0e21 || d.abs() < 1.0e-6) {
        // Go writes at least two digits of the exponent, with a sign
        let text = format!("{d:e}");
        let Some((digits, exponent)) = text.split_once('e') else { return text };
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |e| ("-", e));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{d}")
}

fn position(at: i64, len: usize) -> Result<usize, EvalError> {
    usize::try_from(at)
        .ok()
        .filter(|at| *at <= len)
        .ok_or_else(|| EvalError::invalid(format!("position {at} is out of range: the string has {len} characters")))
}

/// The character at a position; empty at the end.
pub(crate) fn char_at(text: &str, at: i64) -> Result<String, EvalError> {
    let at = position(at, text.chars().count())?;
    Ok(text.chars().nth(at).map(String::from).unwrap_or_default())
}

/// The characters from one position to before another.
pub(crate) fn substring(text: &str, start: i64, end: Option<i64>) -> Result<String, EvalError> {
    let len = text.chars().count();
    let start = position(start, len)?;
    let end = end.map_or(Ok(len), |end| position(end, len))?;
    if start > end {
        return Err(EvalError::invalid(format!("substring from {start} to {end} is no range")));
    }
    Ok(text.chars().skip(start).take(end - start).collect())
}

/// Where `part` first occurs at or after `from`.
pub(crate) fn index_of(text: &str, part: &str, from: i64) -> Result<i64, EvalError> {
    let chars: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    let from = position(from, chars.len())?;
    if part.is_empty() {
        return Ok(i64::try_from(from).unwrap_or(i64::MAX));
    }
    let found = chars.windows(part.len()).enumerate().skip(from).find(|(_, w)| *w == part.as_slice());
    Ok(found.map_or(-1, |(at, _)| i64::try_from(at).unwrap_or(i64::MAX)))
}

/// Where `part` last occurs at or before `upto`.
pub(crate) fn last_index_of(text: &str, part: &str, upto: Option<i64>) -> Result<i64, EvalError> {
    let chars: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    let upto = upto.map_or(Ok(chars.len()), |at| position(at, chars.len()))?;
    if part.is_empty() {
        return Ok(i64::try_from(upto).unwrap_or(i64::MAX));
    }
    let mut windows = chars.windows(part.len()).enumerate().take(upto.saturating_add(1));
    let mut last = -1;
    for (at, window) in windows.by_ref() {
        if window == part.as_slice() {
            last = i64::try_from(at).unwrap_or(i64::MAX);
        }
    }
    Ok(last)
}

/// `text` with the first `limit` occurrences replaced (all when negative).
pub(crate) fn replace(text: &str, from: &str, to: &str, limit: i64) -> String {
    match usize::try_from(limit) {
        Ok(limit) => text.replacen(from, to, limit),
        Err(_) => text.replace(from, to),
    }
}

/// The parts between separators, at most `limit` of them (all when negative).
pub(crate) fn split(text: &str, separator: &str, limit: i64) -> Vec<String> {
    let parts: Vec<String> = if separator.is_empty() {
        text.chars().map(String::from).collect()
    } else {
        text.split(separator).map(String::from).collect()
    };
    match usize::try_from(limit) {
        Err(_) => parts,
        Ok(0) => Vec::new(),
        Ok(limit) if parts.len() <= limit => parts,
        Ok(limit) => {
            let mut out: Vec<String> = parts.iter().take(limit - 1).cloned().collect();
            out.push(parts.into_iter().skip(limit - 1).collect::<Vec<_>>().join(separator));
            out
        }
    }
}

/// The largest compiled regular expression, in bytes: what a few dozen alternatives take.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// How many compiled regular expressions a thread keeps.
const REGEX_COUNT_MAX: usize = 64;

thread_local! {
    static COMPILED: std::cell::RefCell<std::collections::BTreeMap<String, regex::Regex>> =
        const { std::cell::RefCell::new(std::collections::BTreeMap::new()) };
}

/// Whether a regular expression matches a part of the text.
pub(crate) fn matches(text: &str, pattern: &str) -> Result<bool, EvalError> {
    if let Some(found) = COMPILED.with_borrow(|known| known.get(pattern).map(|r| r.is_match(text))) {
        return Ok(found);
    }
    let compiled = compile(pattern)?;
    let found = compiled.is_match(text);
    COMPILED.with_borrow_mut(|known| {
        if known.len() >= REGEX_COUNT_MAX {
            known.clear();
        }
        known.insert(pattern.to_owned(), compiled);
    });
    Ok(found)
}

/// Compiles a regular expression.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, EvalError> {
    regex::RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build().map_err(|error| {
        let reason = error.to_string();
        let last = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        EvalError::invalid(format!("`{pattern}` is no regular expression: {last}"))
    })
}
