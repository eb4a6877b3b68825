//! Schedules of cron: how often at most one is due within a time.
//!
//! As `robfig/cron` v3 reads them for CronJobs (`ParseStandard` in `parser.go`, `dayMatches` in `spec.go`): five fields of
//! numbers, names, ranges, steps and lists, or a descriptor such as `@daily` or `@every 90m`. Where neither the day of the
//! month nor the day of the week is `*`, one of both suffices. Clocks are taken to run on: an hour that is repeated when they
//! are set back is left aside. Days are those of the years 2001 to 2028, after which the calendar repeats until 2099.

use std::collections::BTreeSet;

use crate::error::EvalError;

const MINUTES_A_DAY: u64 = 1440;
/// From 2001-01-01, a Monday, to 2028-12-31.
const YEARS: std::ops::Range<u32> = 2001..2029;

/// How often at most a schedule is due within so many nanoseconds, the end of them not counted.
///
/// # Errors
/// When it is no schedule.
pub fn due_within(schedule: &str, nanos: i128) -> Result<i64, EvalError> {
    let text = schedule.trim();
    let text = match text.split_once(char::is_whitespace) {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => rest.trim(),
        _ => text,
    };
    let invalid = || EvalError::invalid(format!("`{schedule}` is no schedule of cron"));
    let nanos = u128::try_from(nanos).unwrap_or(0);
    if let Some(every) = text.strip_prefix("@every ") {
        // whole seconds, at least one (`constantdelay.go`)
        const SECOND: i128 = 1_000_000_000;
        let every = crate::time::parse_duration(every.trim()).map_err(|_| invalid())?;
        let every = u128::try_from((every / SECOND * SECOND).max(SECOND)).unwrap_or(1);
        return Ok(i64::try_from(nanos.div_ceil(every)).unwrap_or(i64::MAX));
    }
    let minutes = u64::try_from(nanos.div_ceil(60_000_000_000)).unwrap_or(u64::MAX);
    Ok(Schedule::parse(text).ok_or_else(invalid)?.due_within(minutes))
}

/// The values of each field.
struct Schedule {
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    days: Field,
    months: BTreeSet<u32>,
    weekdays: Field,
}

/// The values of a field, and whether it is `*`.
struct Field {
    values: BTreeSet<u32>,
    any: bool,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    fn parse(text: &str) -> Option<Self> {
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts.as_slice() else { return None };
        Some(Self {
            minutes: field(minutes, (0, 59), &[])?.values,
            hours: field(hours, (0, 23), &[])?.values,
            days: field(days, (1, 31), &[])?,
            months: field(months, (1, 12), &MONTHS)?.values,
            weekdays: field(weekdays, (0, 6), &WEEKDAYS)?,
        })
    }

    fn is_on(&self, month: u32, day: u32, weekday: u32) -> bool {
        let (by_day, by_weekday) = (self.days.values.contains(&day), self.weekdays.values.contains(&weekday));
        let any = self.days.any || self.weekdays.any;
        self.months.contains(&month) && if any { by_day && by_weekday } else { by_day || by_weekday }
    }

    /// For each day how many days before it are on.
    fn days_on(&self) -> Vec<u64> {
        let (mut counts, mut count, mut weekday) = (vec![0], 0, 1);
        for year in YEARS {
            for month in 1..=12 {
                for day in 1..=month_length(year, month) {
                    count += u64::from(self.is_on(month, day, weekday));
                    counts.push(count);
                    weekday = (weekday + 1) % 7;
                }
            }
        }
        counts
    }

    /// How often at most within so many minutes: those that begin when it is due suffice.
    fn due_within(&self, minutes: u64) -> i64 {
        let times: Vec<u64> =
            self.hours.iter().flat_map(|h| self.minutes.iter().map(move |m| u64::from(h * 60 + m))).collect();
        let a_day = times.len() as u64;
        let before = |minute: u64| times.partition_point(|time| *time < minute) as u64;
        let counts = self.days_on();
        let last = counts.len().saturating_sub(1) as u64;
        // the calendar begins anew after its last day
        let total = counts.last().copied().unwrap_or(0);
        let until = |day: u64| {
            let at = usize::try_from(day % last).ok().and_then(|at| counts.get(at)).copied().unwrap_or(0);
            (day / last).saturating_mul(total).saturating_add(at)
        };
        let is_on = |day: u64| until(day + 1) > until(day);
        let full = minutes / MINUTES_A_DAY;
        // days that look alike from here on count once
        let mut patterns: BTreeSet<(u64, bool, u64, bool)> = BTreeSet::new();
        for day in (0..last).filter(|day| is_on(*day)) {
            let (end, next) = (day.saturating_add(full), day.saturating_add(full).saturating_add(1));
            let whole = |to: u64| until(to).saturating_sub(until(day));
            patterns.insert((whole(end), is_on(end), whole(next), is_on(next)));
        }
        let mut most = 0;
        for (to_end, end_on, to_next, next_on) in patterns {
            for start in &times {
                let end = start + minutes % MINUTES_A_DAY;
                let (days, on, minute) =
                    if end < MINUTES_A_DAY { (to_end, end_on, end) } else { (to_next, next_on, end - MINUTES_A_DAY) };
                let rest = if on { before(minute) } else { 0 };
                most = most.max(days.saturating_mul(a_day).saturating_add(rest).saturating_sub(before(*start)));
            }
        }
        i64::try_from(most).unwrap_or(i64::MAX)
    }
}

fn month_length(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A list of ranges with steps; names count from the least value.
fn field(text: &str, (least, most): (u32, u32), names: &[&str]) -> Option<Field> {
    let mut found = Field { values: BTreeSet::new(), any: false };
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        named.and_then(|at| u32::try_from(at).ok()).map_or_else(|| text.parse().ok(), |at| Some(at + least))
    };
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step: u32 = step.map_or(Some(1), |step| step.parse().ok()).filter(|step| *step > 0)?;
        let (low, high) = match range {
            "*" | "?" => {
                found.any |= step == 1;
                (least, most)
            }
            _ => match range.split_once('-') {
                Some((low, high)) => (number(low)?, number(high)?),
                // `5/10` is `5-59/10`
                None if part.contains('/') => (number(range)?, most),
                None => (number(range)?, number(range)?),
            },
        };
        if low < least || high > most || low > high {
            return None;
        }
        found.values.extend((low..=high).step_by(usize::try_from(step).ok()?));
    }
    (!found.values.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i128 = 60_000_000_000;
    const HOUR: i128 = 60 * MINUTE;
    const DAY: i128 = 24 * HOUR;

    #[test]
    fn a_schedule_is_due_so_often_at_most() {
        let examples = [
            ("*/5 * * * *", 10 * MINUTE, 2),
            ("*/5 * * * *", 10 * MINUTE + 1, 3),
            ("*/5 * * * *", 6 * HOUR, 72),
            ("*/7 * * * *", 7 * MINUTE, 2),
            ("30 2 * * *", 6 * HOUR, 1),
            ("30 2 * * *", DAY, 1),
            ("30 2 * * *", DAY + 1, 2),
            ("0,10 * * * *", 11 * MINUTE, 2),
            ("50 23,0 * * *", HOUR + MINUTE, 2),
            ("55 23 31 dec *", 400 * DAY, 2),
            ("0 0 29 feb *", 4 * 365 * DAY, 1),
            ("0 0 29 2 ?", (4 * 365 + 2) * DAY, 2),
            ("0 0 * * mon-fri", 7 * DAY, 5),
            ("0 0 * * Sat,Sun", 2 * DAY, 2),
            // either of both days; with a `*` or a step over it both
            ("0 0 1 * 1", 2 * DAY, 2),
            ("0 0 13 * 5", 31 * DAY, 7),
            ("0 0 */2 * 0", 7 * DAY, 5),
            ("0 0 1 * *", 28 * DAY, 1),
            ("0 0 1 * *", 28 * DAY + 1, 2),
            ("10/20 * * * *", HOUR, 3),
            ("* * * * *", 0, 0),
            ("* * * * *", 10 * 366 * DAY, 10 * 366 * 1440),
            ("@hourly", 3 * HOUR, 3),
            ("@daily", 3 * HOUR, 1),
            ("@weekly", 8 * DAY, 2),
            ("@monthly", 30 * DAY, 2),
            ("@yearly", DAY, 1),
            ("@every 90m", 3 * HOUR, 2),
            ("@every 10ms", 5_000_000_000, 5),
            ("TZ=UTC 0 * * * *", 2 * HOUR, 2),
            ("CRON_TZ=Europe/Paris 0 * * * *", 2 * HOUR, 2),
        ];
        for (schedule, nanos, expected) in examples {
            assert_eq!(due_within(schedule, nanos).unwrap(), expected, "{schedule} within {nanos} ns");
        }
    }

    #[test]
    fn what_is_no_schedule_is_an_error() {
        for wrong in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* * 0 * *",
            "* * * * 7",
            "5-3 * * * *",
            "*/0 * * * *",
            "@often",
            "a * * * *",
            "@every x",
            "1-2-3 * * * *",
        ] {
            assert!(due_within(wrong, HOUR).is_err(), "{wrong}");
        }
    }

    /// Day after day, minute after minute.
    #[test]
    fn it_is_what_counting_finds() {
        for schedule in ["7,50 3,22 * * *", "0 0 1,15 * 3", "*/25 * 30 * *", "5 4 * 2 1-5"] {
            let parsed = Schedule::parse(schedule).unwrap();
            let counts = parsed.days_on();
            let mut due: Vec<u64> = Vec::new();
            for (day, pair) in counts.windows(2).enumerate().take(800) {
                let on = matches!(pair, [before, after] if after > before);
                let minutes = parsed.hours.iter().flat_map(|h| parsed.minutes.iter().map(move |m| h * 60 + m));
                due.extend(minutes.filter(|_| on).map(|minute| day as u64 * MINUTES_A_DAY + u64::from(minute)));
            }
            for minutes in [1, 20, 60, 300, 1439, 1440, 1441, 3000, 20_000] {
                let counted =
                    due.iter().map(|start| due.iter().filter(|at| *at >= start && **at < start + minutes).count());
                let counted = i64::try_from(counted.max().unwrap()).unwrap();
                let said = due_within(schedule, i128::from(minutes) * MINUTE).unwrap();
                assert!(said >= counted, "{schedule} within {minutes}: {said} < {counted}");
                let whole_years = minutes < 3000;
                assert!(!whole_years || said == counted, "{schedule} within {minutes}: {said} > {counted}");
            }
        }
    }
}
