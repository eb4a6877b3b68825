//! Points and spans of time in nanoseconds: RFC 3339 and CEL's duration syntax, and the fields of a date (UTC or a
//! fixed offset; named time zones need a database and are refused).

use crate::error::EvalError;

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400;
/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds since 1970: what CEL admits.
const TIMESTAMP_SECONDS: (i128, i128) = (-62_135_596_800, 253_402_300_799);
/// 10,000 years in seconds: what CEL admits.
const DURATION_SECONDS_MAX: i128 = 315_576_000_000;

/// A checked timestamp.
///
/// # Errors
/// When the year is not between 1 and 9999.
pub fn timestamp(nanos: i128) -> Result<i128, EvalError> {
    let seconds = nanos.div_euclid(SECOND);
    if seconds < TIMESTAMP_SECONDS.0 || seconds > TIMESTAMP_SECONDS.1 {
        return Err(EvalError::invalid("timestamp out of range: years 1 to 9999"));
    }
    Ok(nanos)
}

/// A checked duration.
///
/// # Errors
/// When it is longer than 10,000 years.
pub fn duration(nanos: i128) -> Result<i128, EvalError> {
    if nanos.abs() > DURATION_SECONDS_MAX * SECOND {
        return Err(EvalError::invalid("duration out of range: at most 10,000 years"));
    }
    Ok(nanos)
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days_from_civil(year: i128, month: i128, day: i128) -> i128 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

/// Year, month and day of days since 1970.
fn civil_from_days(days: i128) -> (i128, i128, i128) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z - era * 146_097;
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i128::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// The timestamp of RFC 3339 text.
///
/// # Errors
/// When the text is not RFC 3339.
pub fn parse_timestamp(text: &str) -> Result<i128, EvalError> {
    let bad = || EvalError::invalid(format!("`{text}` is not a timestamp such as `2026-01-31T12:00:00Z`"));
    parse_rfc3339(text).ok_or_else(bad).and_then(timestamp)
}

fn parse_rfc3339(text: &str) -> Option<i128> {
    let number = |range: std::ops::Range<usize>| -> Option<i128> {
        let digits = text.get(range)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let mark = |at: usize, allowed: &str| text.get(at..=at).is_some_and(|c| allowed.contains(c));
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(mark(4, "-") && mark(7, "-") && mark(10, "Tt") && mark(13, ":") && mark(16, ":")) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    if !(1..=12).contains(&month)
        || civil_from_days(days) != (year, month, day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(after) => {
            let end = after.find(|c: char| !c.is_ascii_digit())?;
            let digits = after.get(..end)?;
            if digits.is_empty() || digits.len() > 9 {
                return None;
            }
            (format!("{digits:0<9}").parse::<i128>().ok()?, after.get(end..)?)
        }
        None => (0, rest),
    };
    let offset = if matches!(zone, "Z" | "z") { 0 } else { fixed_offset(zone)? };
    Some(((days * DAY + hour * 3600 + minute * 60 + second) - offset) * SECOND + fraction)
}

/// Seconds east of Greenwich of `+hh:mm`, `-hh:mm` or `hh:mm`.
fn fixed_offset(zone: &str) -> Option<i128> {
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    (hours < 24 && minutes < 60).then(|| sign * (i128::from(hours) * 3600 + i128::from(minutes) * 60))
}

/// RFC 3339 in UTC, with as many digits of the fraction as it takes.
pub fn format_timestamp(nanos: i128) -> String {
    let seconds = nanos.div_euclid(SECOND);
    let fraction = nanos.rem_euclid(SECOND);
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let clock = format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{clock}{}Z", fraction_text(fraction))
}

/// Seconds with a fraction, as CEL writes durations: `5400s`, `0.5s`.
pub fn format_duration(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}{}s", nanos.abs() / SECOND, fraction_text(nanos.abs() % SECOND))
}

fn fraction_text(fraction: i128) -> String {
    if fraction == 0 {
        return String::new();
    }
    let digits = format!("{fraction:09}");
    format!(".{}", digits.trim_end_matches('0'))
}

/// The duration of text such as `1h30m`, `-1.5s` or `250ms`.
///
/// # Errors
/// When the text is no duration.
pub fn parse_duration(text: &str) -> Result<i128, EvalError> {
    let bad = || EvalError::invalid(format!("`{text}` is not a duration such as `1h30m` or `1.5s`"));
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let scale: i128 = match unit {
            "h" => 3600 * SECOND,
            "m" => 60 * SECOND,
            "s" => SECOND,
            "ms" => 1_000_000,
            "us" | "µs" | "μs" => 1_000,
            "ns" => 1,
            _ => return Err(bad()),
        };
        total = scaled(number, scale).and_then(|part| total.checked_add(part)).ok_or_else(bad)?;
        rest = after;
    }
    duration(if negative { -total } else { total })
}

/// A decimal number times a scale, cut off at whole nanoseconds.
fn scaled(number: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 18 || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let kept = fraction.get(..fraction.len().min(18))?;
    let part: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let divisor = 10_i128.checked_pow(u32::try_from(kept.len()).ok()?)?;
    Some(whole.checked_mul(scale)? + part.checked_mul(scale)? / divisor)
}

/// A field of a date or a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The year.
    Year,
    /// The month, from 0.
    Month,
    /// The day of the month, from 1.
    Date,
    /// The day of the month, from 0.
    DayOfMonth,
    /// The day of the week, Sunday is 0.
    DayOfWeek,
    /// The day of the year, from 0.
    DayOfYear,
    /// The hour.
    Hours,
    /// The minute.
    Minutes,
    /// The second.
    Seconds,
    /// The millisecond within the second.
    Milliseconds,
}

/// A field of a timestamp, in UTC or at a fixed offset.
///
/// # Errors
/// When the zone is a name other than `UTC`, or no offset.
pub fn timestamp_field(nanos: i128, field: Field, zone: Option<&str>) -> Result<i64, EvalError> {
    let offset = match zone {
        None | Some("UTC" | "Z" | "") => 0,
        Some(zone) => fixed_offset(zone).ok_or_else(|| {
            EvalError::invalid(format!("time zone `{zone}`: only `UTC` and offsets such as `+02:00` are supported"))
        })?,
    };
    let local = nanos + offset * SECOND;
    let seconds = local.div_euclid(SECOND);
    let days = seconds.div_euclid(DAY);
    let of_day = seconds.rem_euclid(DAY);
    let (year, month, day) = civil_from_days(days);
    let value = match field {
        Field::Year => year,
        Field::Month => month - 1,
        Field::Date => day,
        Field::DayOfMonth => day - 1,
        Field::DayOfWeek => (days + 4).rem_euclid(7),
        Field::DayOfYear => days - days_from_civil(year, 1, 1),
        Field::Hours => of_day / 3600,
        Field::Minutes => of_day / 60 % 60,
        Field::Seconds => of_day % 60,
        Field::Milliseconds => local.rem_euclid(SECOND) / 1_000_000,
    };
    narrow(value)
}

/// A duration in whole hours, minutes or seconds; of milliseconds those within the second.
///
/// # Errors
/// When the field is one of a date.
pub fn duration_field(nanos: i128, field: Field) -> Result<i64, EvalError> {
    match field {
        Field::Hours => narrow(nanos / (3600 * SECOND)),
        Field::Minutes => narrow(nanos / (60 * SECOND)),
        Field::Seconds => narrow(nanos / SECOND),
        Field::Milliseconds => narrow(nanos % SECOND / 1_000_000),
        _ => Err(EvalError::invalid("a duration has no date")),
    }
}

fn narrow(value: i128) -> Result<i64, EvalError> {
    i64::try_from(value).map_err(|_| EvalError::invalid("time out of range"))
}

/// Whole seconds since 1970.
///
/// # Errors
/// Never for a checked timestamp.
pub fn unix_seconds(nanos: i128) -> Result<i64, EvalError> {
    narrow(nanos.div_euclid(SECOND))
}

/// The timestamp of seconds since 1970.
///
/// # Errors
/// When the year is not between 1 and 9999.
pub fn from_unix_seconds(seconds: i64) -> Result<i128, EvalError> {
    timestamp(i128::from(seconds) * SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2009-02-13T23:31:30Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "2024-02-29T12:00:00.5Z",
        ] {
            assert_eq!(format_timestamp(parse_timestamp(text).unwrap()), text);
        }
        assert_eq!(unix_seconds(parse_timestamp("2009-02-13T23:31:30Z").unwrap()), Ok(1_234_567_890));
        assert_eq!(parse_timestamp("2009-02-13T23:31:30+01:00").unwrap(), 1_234_564_290 * SECOND);
    }

    #[test]
    fn wrong_timestamps_are_refused() {
        for text in ["", "2023-02-29T00:00:00Z", "2023-01-01", "2023-01-01T24:00:00Z", "2023-01-01T00:00:00", "x"] {
            assert!(parse_timestamp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("1h30m", "5400s"),
            ("-1.5s", "-1.5s"),
            ("250ms", "0.25s"),
            ("0", "0s"),
            ("1h0.5s", "3600.5s"),
            (".5s", "0.5s"),
        ] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), expected);
        }
        for text in ["", "1", "s", "1x", "--1s", "320000000000s", "1.1.1s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields() {
        let t = parse_timestamp("2009-02-13T23:31:30.123Z").unwrap();
        let of = |field, zone| timestamp_field(t, field, zone).unwrap();
        assert_eq!(of(Field::DayOfWeek, None), 5);
        assert_eq!(of(Field::DayOfYear, None), 43);
        assert_eq!(of(Field::Date, Some("+02:00")), 14);
        assert_eq!(of(Field::Hours, Some("-02:30")), 21);
        assert_eq!(of(Field::Milliseconds, None), 123);
        assert!(timestamp_field(t, Field::Hours, Some("Europe/Berlin")).is_err());
        assert_eq!(duration_field(parse_duration("90m").unwrap(), Field::Hours), Ok(1));
    }
}
