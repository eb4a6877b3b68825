//! What breaks a rule of [`limits`](crate::limits) today. These lists only shrink: who mends an entry strikes it.

/// A circle that is meant.
pub struct Descent {
    pub files: &'static [&'static str],
    pub reason: &'static str,
}

/// Circles that stay.
pub const DESCENTS: &[Descent] = &[
    Descent {
        files: &["encode/src/term/bool.rs", "encode/src/term/int.rs"],
        reason: "a formula compares numbers, and a number may depend on a formula",
    },
    Descent {
        files: &["specs/src/cel/calls.rs", "specs/src/cel/lower.rs", "specs/src/cel/macros.rs"],
        reason: "an argument of a call or a macro is an expression, and an expression may be a call or a macro",
    },
];

/// A file that tells functions of the language apart outside their tables.
pub struct Telling {
    pub file: &'static str,
    pub reason: &'static str,
}

/// Files that are meant to.
pub const TELLING: &[Telling] = &[
    Telling { file: "encode/src/calls.rs", reason: "what functions compute, of terms: `functions/pure.rs` of values" },
    Telling { file: "encode/src/reading.rs", reason: "`o.?a.orValue([])` is one expression, though written as a call" },
    Telling { file: "specs/src/cel/calls.rs", reason: "what constants say of the types of a call" },
];

/// Circles that are to be opened.
pub const CIRCLES: &[&[&str]] = &[];

/// Files that are to be taken apart.
pub const LONG_FILES: &[&str] = &[];

/// Functions that are to be taken apart: their file and their name.
pub const LONG_FUNCTIONS: &[&str] = &[];
