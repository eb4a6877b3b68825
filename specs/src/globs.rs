//! Globs: names with `*` for any text.

/// Whether a glob (`*` any text, `?` any character) matches a whole text.
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    // where to resume after the last star: one more character is taken by it
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (glob.get(g), text.get(t)) {
            (Some('*'), _) => {
                star = Some((g + 1, t));
                g += 1;
            }
            (Some(a), Some(b)) if a == b || *a == '?' => {
                g += 1;
                t += 1;
            }
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    g = after;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    glob.iter().skip(g).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::glob_matches;

    #[test]
    fn globs() {
        for (glob, text, expected) in [
            ("shop", "shop", true),
            ("shop", "shops", false),
            ("kube-*", "kube-system", true),
            ("kube-*", "kube", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*-prod-*", "a-prod-b-prod-c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbx", false),
        ] {
            assert_eq!(glob_matches(glob, text), expected, "{glob} {text}");
        }
    }
}
