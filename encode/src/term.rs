//! The term language that every question is written in: bounded integer counts, linear sums of them, and Booleans.
//!
//! | meaning | type | canonical form |
//! |---|---|---|
//! | how many entities of a class met a fate | [`VarId`], ranged over `lo..=hi` in [`Vars`] | |
//! | a linear sum | [`Lin`] | sorted by variable, no zero coefficient, one constant |
//! | a sum with cases | [`Int`] | a [`Lin`] plus one [`Lin`] per guard, sorted by guard |
//! | a condition | [`Bool`] | sorted, deduplicated, folded; comparisons are `sum ≤ 0` divided by their greatest divisor |
//!
//! Terms are made by smart constructors only. Two equal terms mean the same; two terms that mean the same are often, not always,
//! equal. A constructor that can leave the range of `i64` says so instead of wrapping around.

mod bool;
mod int;
mod lin;

pub use self::bool::{Bool, Kind};
pub use self::int::Int;
pub use self::lin::Lin;

use std::fmt;

use suture_model::steps::Spent;
use suture_model::value::Str;

/// How far from zero a variable may range. Counts of entities and bounded numbers fit with room to spare, and a sum of 2^23
/// products of any coefficient with such a variable still fits `i128`, in which bounds and values are computed.
pub const VAR_ABS_MAX: i64 = 1 << 40;

/// How many variables one table holds. The solver names them by 30-bit numbers, shared with the labels.
pub const VARS_LEN_MAX: usize = 1 << 20;

/// How large a term may be before it is refused, counted in nodes of its written-out form. What is shared counts each time, because
/// printing, evaluating, canonicalising and lowering walk the written-out form, at up to a microsecond per node.
pub const TERM_NODES_MAX: u64 = 1 << 18;

/// A bounded integer count, named by its place in [`Vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

impl VarId {
    /// The place in [`Vars`] and in an [`Assignment`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarInfo {
    /// The least value.
    pub lo: i64,
    /// The greatest value.
    pub hi: i64,
    /// Only for printing; nothing is decided by it.
    pub name: Str,
}

/// The table of variables that a set of terms is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    infos: Vec<VarInfo>,
}

impl Vars {
    /// A table without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable that takes a value of `lo..=hi`. The name is only printed.
    pub fn fresh(&mut self, lo: i64, hi: i64, name: impl Into<Str>) -> Result<VarId, TermError> {
        if lo > hi {
            return Err(TermError::EmptyRange { lo, hi });
        }
        if lo < -VAR_ABS_MAX || hi > VAR_ABS_MAX {
            return Err(TermError::RangeTooWide { lo, hi });
        }
        let id = u32::try_from(self.infos.len()).ok().filter(|_| self.infos.len() < VARS_LEN_MAX);
        let id = id.ok_or(TermError::TooManyVars)?;
        self.infos.push(VarInfo { lo, hi, name: name.into() });
        Ok(VarId(id))
    }

    /// The range and name of a variable.
    pub fn info(&self, var: VarId) -> Result<&VarInfo, TermError> {
        self.infos.get(var.index()).ok_or(TermError::UnknownVar(var))
    }

    /// How many variables there are.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    /// All variables, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = (VarId, &VarInfo)> {
        (0..).map(VarId).zip(&self.infos)
    }

    /// The corner in which every variable has its least value.
    pub fn all_lo(&self) -> Assignment {
        Assignment(self.infos.iter().map(|info| info.lo).collect())
    }

    /// The corner in which every variable has its greatest value.
    pub fn all_hi(&self) -> Assignment {
        Assignment(self.infos.iter().map(|info| info.hi).collect())
    }

    /// Whether the assignment gives every variable, and nothing else, a value of its range.
    pub fn admit(&self, assignment: &Assignment) -> bool {
        let mut pairs = self.infos.iter().zip(&assignment.0);
        self.infos.len() == assignment.0.len() && pairs.all(|(info, value)| (info.lo..=info.hi).contains(value))
    }
}

/// One value for each variable of a table, in the table's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Assignment(pub Vec<i64>);

impl Assignment {
    /// The value of a variable.
    pub fn get(&self, var: VarId) -> Result<i64, TermError> {
        self.0.get(var.index()).copied().ok_or(TermError::UnknownVar(var))
    }

    /// Gives a variable another value.
    pub fn set(&mut self, var: VarId, value: i64) -> Result<(), TermError> {
        *self.0.get_mut(var.index()).ok_or(TermError::UnknownVar(var))? = value;
        Ok(())
    }
}

/// The least and the greatest value that a sum can take; wider than `i64`, so that no sum of coefficients overflows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No value is less.
    pub min: i128,
    /// No value is greater.
    pub max: i128,
}

impl Bounds {
    pub(crate) fn plus(self, other: Bounds) -> Result<Bounds, TermError> {
        let min = self.min.checked_add(other.min).ok_or(TermError::Overflow)?;
        let max = self.max.checked_add(other.max).ok_or(TermError::Overflow)?;
        Ok(Bounds { min, max })
    }

    pub(crate) fn or(self, other: Bounds) -> Bounds {
        Bounds { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(crate) const ZERO: Bounds = Bounds { min: 0, max: 0 };
}

/// Why a term could not be made or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// A coefficient, constant or value left the range of `i64`.
    #[error("a number does not fit 64 bits")]
    Overflow,
    /// No value is in the range.
    #[error("the range {lo}..={hi} of a variable is empty")]
    EmptyRange {
        /// The least value asked for.
        lo: i64,
        /// The greatest value asked for.
        hi: i64,
    },
    /// The range is wider than [`VAR_ABS_MAX`] allows.
    #[error("the range {lo}..={hi} of a variable exceeds {VAR_ABS_MAX} in magnitude")]
    RangeTooWide {
        /// The least value asked for.
        lo: i64,
        /// The greatest value asked for.
        hi: i64,
    },
    /// More than [`VARS_LEN_MAX`] variables.
    #[error("more than {VARS_LEN_MAX} variables")]
    TooManyVars,
    /// A term is over another table of variables.
    #[error("the variable {0} is not in the table")]
    UnknownVar(VarId),
    /// What the decision may cost is spent.
    #[error(transparent)]
    Spent(#[from] Spent),
    /// A term is larger than [`TERM_NODES_MAX`].
    #[error("a condition of {nodes} nodes exceeds {TERM_NODES_MAX}")]
    TooLarge {
        /// Nodes of the written-out form.
        nodes: u64,
    },
}

impl fmt::Display for VarId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
