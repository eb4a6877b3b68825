//! "Did you mean": the known name nearest to a mistyped one.

/// The nearest candidate by edit distance (swapped neighbours count once), if it is near enough to be a slip.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name {
            continue;
        }
        let distance = edits(&lower, &candidate.to_lowercase());
        let nearer = best.is_none_or(|(d, c)| (distance, candidate) < (d, c));
        if distance <= limit && nearer {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The optimal string alignment distance.
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (get(&above, j) + usize::from(x != y)).min(get(&above, j + 1) + 1).min(get(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(get(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = above;
        above = row;
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_only() {
        let known = ["replicas", "selector", "template"];
        assert_eq!(nearest("replcias", known), Some("replicas"));
        assert_eq!(nearest("Selector", known), Some("selector"));
        assert_eq!(nearest("selectr", known), Some("selector"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest("x", ["y", "xx"]), Some("xx"), "ties go to the first by distance, then by name");
    }
}
