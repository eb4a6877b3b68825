//! Which Z3 is linked: it is part of every verdict, and an old one is refused at start.

use std::sync::OnceLock;

/// The oldest Z3 that Suture accepts: the resource counts that budgets are stated in, and the C interface, changed in 5.x.
pub const Z3_MIN: (u32, u32) = (5, 3);

/// The linked Z3 cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The library that the loader found is too old, usually a distribution's.
    #[error(
        "the linked z3 is `{found}`, suture needs {}.{} or later: run `make .z3/lib/libz3.so` and build again",
        Z3_MIN.0, Z3_MIN.1
    )]
    TooOld {
        /// What the library calls itself.
        found: &'static str,
    },
}

/// The full version of the linked Z3, for verdicts; an error if it is older than [`Z3_MIN`].
pub fn z3_version() -> Result<&'static str, VersionError> {
    static FOUND: OnceLock<&str> = OnceLock::new();
    accept(FOUND.get_or_init(z3::full_version))
}

fn accept(found: &'static str) -> Result<&'static str, VersionError> {
    if parsed(found).is_some_and(|version| version >= Z3_MIN) { Ok(found) } else { Err(VersionError::TooOld { found }) }
}

/// Major and minor of `5.3.2.0`.
fn parsed(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linked_z3_is_new_enough() {
        assert!(z3_version().unwrap().starts_with(|c: char| c.is_ascii_digit()));
    }

    #[test]
    fn an_old_z3_is_refused_with_what_to_do() {
        let error = accept("4.8.12.0").unwrap_err().to_string();
        let expected =
            "the linked z3 is `4.8.12.0`, suture needs 5.3 or later: run `make .z3/lib/libz3.so` and build again";
        assert_eq!(error, expected);
        assert!(accept("5.2.9").is_err() && accept("").is_err() && accept("nightly").is_err());
        assert!(accept("5.3.0").is_ok() && accept("5.10.1.0").is_ok() && accept("6.0").is_ok());
    }
}
