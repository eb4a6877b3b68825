//! Exact Kubernetes quantities: a count of billionths, as `apimachinery/pkg/api/resource/quantity.go` reads them.
//!
//! | written | means |
//! |---|---|
//! | `n` `u` `m` none `k` `M` `G` `T` `P` `E` | powers of 1000, from a billionth |
//! | `Ki` `Mi` `Gi` `Ti` `Pi` `Ei` | powers of 1024 |
//! | `e3`, `E-2` | a power of ten |
//!
//! What is finer than a billionth is rounded away from zero, what is larger than 2⁶³−1 is cut to it, as there.

use crate::value::Val;

/// An amount of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// What a node states that pods can have of it: how many there may be, cpu in milli, memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocatable {
    pub pods: Option<i64>,
    pub cpu: Option<i64>,
    pub memory: Option<i64>,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number, or something after it that is no suffix.
    #[error("`{0}` is not a quantity: expected a number with an optional suffix such as `m`, `k`, `Mi` or `e3`")]
    Malformed(String),
    /// Longer than anything a person would write.
    #[error("not a quantity: longer than {LENGTH_MAX_BYTES} bytes")]
    TooLong,
    /// Not a text or number at all.
    #[error("not a quantity: expected a string or a number")]
    NotText,
}

/// Longer texts are no quantities, so that reading one takes no time.
const LENGTH_MAX_BYTES: usize = 128;
const NANOS: i128 = 1_000_000_000;
/// The largest amount, in billionths.
const NANOS_MAX: i128 = i64::MAX as i128 * NANOS;

impl Quantity {
    /// The amount of so many billionths.
    pub fn from_nanos(nanos: i128) -> Self {
        Self { nanos: nanos.clamp(-NANOS_MAX, NANOS_MAX) }
    }

    /// The quantity that this text means.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.len() > LENGTH_MAX_BYTES {
            return Err(QuantityError::TooLong);
        }
        parse(text).ok_or_else(|| QuantityError::Malformed(text.to_owned()))
    }

    /// The quantity of a field: a string, or a number as YAML reads it.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_val(val: &Val) -> Result<Self, QuantityError> {
        match val {
            Val::Str(text) => Self::parse(text),
            Val::Int(int) => Ok(Self::from_nanos(i128::from(*int) * NANOS)),
            Val::Float(float) => Self::parse(&float.to_string()),
            _ => Err(QuantityError::NotText),
        }
    }

    /// In billionths, exactly.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// In thousandths, rounded away from zero; too large an amount is cut.
    pub fn milli(self) -> i64 {
        self.in_units_of(NANOS / 1000)
    }

    /// In units, rounded away from zero.
    pub fn value(self) -> i64 {
        self.in_units_of(NANOS)
    }

    fn in_units_of(self, unit: i128) -> i64 {
        let whole = self.nanos / unit;
        let rounded = if self.nanos % unit == 0 { whole } else { whole + self.nanos.signum() };
        i64::try_from(rounded).unwrap_or(if rounded > 0 { i64::MAX } else { i64::MIN })
    }
}

impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_add(other.nanos))
    }
}

impl std::iter::Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), std::ops::Add::add)
    }
}

/// A suffix as a power of 1024 and a power of ten.
fn suffix(text: &str) -> Option<(u32, i64)> {
    Some(match text {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (1, 0),
        "Mi" => (2, 0),
        "Gi" => (3, 0),
        "Ti" => (4, 0),
        "Pi" => (5, 0),
        "Ei" => (6, 0),
        exponent => (0, exponent.strip_prefix(['e', 'E']).and_then(power)?),
    })
}

/// The exponent after `e`: an optional sign and digits.
fn power(text: &str) -> Option<i64> {
    let (sign, digits) = signed(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // beyond three digits every amount is cut or rounded alike
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX).min(999);
    Some(if sign { -magnitude } else { magnitude })
}

/// Whether a text is negative, and what follows its sign.
fn signed(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or("")),
        Some(b'+') => (false, text.get(1..).unwrap_or("")),
        _ => (false, text),
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let (negative, unsigned) = signed(text);
    let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, rest) = unsigned.split_at_checked(number_end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (binary, ten) = suffix(rest)?;
    let plain = if fraction.is_empty() { small(whole, binary, ten) } else { None };
    let nanos = plain.map_or_else(|| exact(whole, fraction, binary, ten), Some)?;
    Some(Quantity::from_nanos(if negative { -nanos } else { nanos }))
}

/// The billionths of a whole number with a suffix, where none of it gets large.
fn small(whole: &str, binary: u32, ten: i64) -> Option<i128> {
    let billionths = u32::try_from(ten + 9).ok().filter(|power| *power <= 27)?;
    let number = i128::from(whole.parse::<u64>().ok()?).checked_mul(1024_i128.pow(binary))?;
    Some(number.checked_mul(10_i128.pow(billionths))?.min(NANOS_MAX))
}

/// The billionths of any number.
fn exact(whole: &str, fraction: &str, binary: u32, ten: i64) -> Option<i128> {
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    for _ in 0..binary {
        multiply(&mut digits, 1024);
    }
    let scale = ten + 9 - i64::try_from(fraction.len()).ok()?;
    Some(scaled(&digits, scale))
}

/// Multiplies a decimal number, its highest digit first.
fn multiply(digits: &mut Vec<u8>, by: u32) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * by + carry;
        *digit = u8::try_from(product % 10).unwrap_or(0);
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, u8::try_from(carry % 10).unwrap_or(0));
        carry /= 10;
    }
}

/// The number that these digits and a power of ten make, rounded up, cut to the largest amount.
fn scaled(digits: &[u8], power: i64) -> i128 {
    let start = digits.iter().position(|d| *d != 0).unwrap_or(digits.len());
    let digits = digits.get(start..).unwrap_or(&[]);
    if digits.is_empty() {
        return 0;
    }
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    // the largest amount has 28 digits
    if length.saturating_add(power) > 29 {
        return NANOS_MAX;
    }
    let kept = usize::try_from((length + power.min(0)).max(0)).unwrap_or(0);
    let (whole, lost) = digits.split_at_checked(kept).unwrap_or((digits, &[]));
    let mut value = whole.iter().fold(0i128, |value, digit| value * 10 + i128::from(*digit));
    for _ in 0..power.max(0) {
        value *= 10;
    }
    (value + i128::from(lost.iter().any(|d| *d != 0))).min(NANOS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubernetes_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("1", NANOS),
            ("100m", NANOS / 10),
            ("0.1", NANOS / 10),
            (".5", NANOS / 2),
            ("5.", 5 * NANOS),
            ("-250m", -NANOS / 4),
            ("+1k", 1000 * NANOS),
            ("1Ki", 1024 * NANOS),
            ("1.5Gi", 1_610_612_736 * NANOS),
            ("0.000000001Ei", 1_152_921_504_606_846_976),
            ("1e3", 1000 * NANOS),
            ("1E3", 1000 * NANOS),
            ("1E", 1_000_000_000_000_000_000 * NANOS),
            ("12E-1", 1_200_000_000),
            ("1n", 1),
            ("1u", 1000),
            ("0.1n", 1),
            ("-0.1n", -1),
            ("1e-400", 1),
            ("0e400", 0),
            ("1e400", NANOS_MAX),
            ("9999Ei", NANOS_MAX),
            ("9223372036854775807", NANOS_MAX),
            ("0000000000000000000000000000000000001", NANOS),
        ] {
            assert_eq!(Quantity::parse(text).map(Quantity::nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_small_is_read_as_exactly() {
        let numbers = (0..64).map(|bit| 1_u64 << bit).flat_map(|number| [number, number - 1]);
        for number in numbers.map(|number| number.to_string()) {
            for text in
                ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e5", "e-7"]
            {
                let (binary, ten) = suffix(text).unwrap();
                let found = small(&number, binary, ten);
                assert!(found.is_none_or(|nanos| Some(nanos) == exact(&number, "", binary, ten)), "{number}{text}");
            }
        }
        assert!(small("5", 3, 0).is_some() && small("18446744073709551616", 0, 0).is_none());
    }

    #[test]
    fn refuses_the_rest() {
        let long = "1".repeat(200);
        for text in [
            "", ".", "-", "m", "1 ", " 1", "1.2.3", "1K", "1ki", "1mi", "1e", "1e+", "1e1.5", "0x10", "1,5", "½", &long,
        ] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rounds_up() {
        for (text, milli, value) in [
            ("1n", 1, 1),
            ("1500m", 1500, 2),
            ("1.0001", 1001, 2),
            ("2", 2000, 2),
            ("-1n", -1, -1),
            ("8Ei", i64::MAX, i64::MAX),
        ] {
            let quantity = Quantity::parse(text).unwrap();
            assert_eq!((quantity.milli(), quantity.value()), (milli, value), "{text}");
        }
        assert_eq!(Quantity::from_val(&Val::Float(0.5)).unwrap().milli(), 500);
        assert_eq!(Quantity::from_val(&Val::Int(3)).unwrap().milli(), 3000);
    }
}
