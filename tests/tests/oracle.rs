//! The checker against brute force: on small random universes, its verdict on every instance is the verdict of
//! enumerating every choice, both ways.
//!
//! `SUTURE_ORACLE_CASES` says how many cases (default 2,000), `SUTURE_ORACLE_SEED` which ones, `SUTURE_ORACLE_CASE` only one of
//! them, `SUTURE_ORACLE_FAMILY` only one template or handwritten invariant. `SUTURE_ORACLE_UNREAD` says in how many cases a
//! kind was not read.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

mod brute;
mod universe;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::time::Instant;

use brute::unread::{self, Unread};
use brute::{Compared, Engines, Unfit, compare, shrink};
use suture_checker::decision::Finding;
use suture_tests::in_parts;
use universe::invariants::Pool;
use universe::random::Random;
use universe::{Case, Size, number};

/// How many cases are compared where nothing else is said.
const CASES: u64 = 2_000;
/// How many worlds of a case are looked at; a larger universe is drawn again, smaller.
const WORLDS_MAX: u64 = if cfg!(debug_assertions) { 300 } else { 6_000 };
/// How often a universe is drawn again before the case is skipped.
const DRAWS_MAX: u64 = 6;
/// How many differences are shrunk and printed.
const SHOWN_MAX: usize = 20;
/// In how many cases a kind was not read where nothing else is said.
const UNREAD_CASES: u64 = 400;
/// What tells their numbers from those of the other cases.
const UNREAD_SEED: u64 = 0x5eed;
/// So many reasons are printed.
const REASONS_MAX: usize = 25;

/// Counts of verdicts.
#[derive(Clone, Debug, Default)]
struct Tally {
    cases: u64,
    proved: u64,
    not_worse: u64,
    refuted: u64,
    undecided: u64,
    unreached: u64,
    differences: u64,
    /// Why the undecided ones are.
    reasons: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Outcome {
    tallies: BTreeMap<String, Tally>,
    unfit: BTreeMap<Unfit, u64>,
    shown: Vec<String>,
}

/// Draws a case that can be enumerated, and compares.
fn one(
    seed: u64,
    at: u64,
    pool: &Pool,
    engines: &mut Engines,
    family: Option<&[usize]>,
) -> (Case, Result<Vec<Compared>, Unfit>) {
    let mut random = Random::new(seed, at);
    let mut size = Size::FULL;
    let invariant = match family {
        Some(entries) => *random.pick(entries),
        None => pool.choose(&mut random),
    };
    let mut draw = 0;
    loop {
        let case = Case::about(&mut random, invariant, pool.focus(invariant), size);
        let compared = compare(&case, pool, engines, WORLDS_MAX);
        draw += 1;
        if compared != Err(Unfit::TooLarge) || draw == DRAWS_MAX {
            return (case, compared);
        }
        if draw % 2 == 0 {
            size = size.smaller();
        }
    }
}

fn run(seed: u64, cases: impl Iterator<Item = u64>, pool: &Pool, family: Option<&[usize]>) -> Outcome {
    let mut engines = Engines::new();
    let mut outcome = Outcome::default();
    let mut kinds: BTreeMap<(String, String), u64> = BTreeMap::new();
    for at in cases {
        let (case, compared) = one(seed, at, pool, &mut engines, family);
        let name = pool.family(case.invariant).to_owned();
        let kind = match &compared {
            Ok(compared) => {
                outcome.tallies.entry(name.clone()).or_default().count(compared);
                match compared.iter().find(|c| c.differs()) {
                    Some(wrong) => (name, format!("{:?}", wrong.truth)),
                    None => continue,
                }
            }
            Err(unfit) => {
                *outcome.unfit.entry(*unfit).or_default() += 1;
                if *unfit == Unfit::TooLarge {
                    continue;
                }
                (String::new(), format!("{unfit:?}"))
            }
        };
        let seen = kinds.entry(kind).or_default();
        *seen += 1;
        if *seen <= 2 && outcome.shown.len() < SHOWN_MAX {
            outcome.shown.push(show(at, case, &compared, pool, &mut engines));
        }
    }
    outcome
}

impl Tally {
    fn count(&mut self, compared: &[Compared]) {
        self.cases += 1;
        for c in compared {
            match c.found {
                None => self.unreached += 1,
                Some(Finding::Proved) => self.proved += 1,
                Some(Finding::NotWorse) => self.not_worse += 1,
                Some(Finding::Refuted) => self.refuted += 1,
                Some(Finding::Undecided) => {
                    self.undecided += 1;
                    *self.reasons.entry(c.reason.clone()).or_default() += 1;
                }
            }
        }
        self.differences += u64::from(compared.iter().any(Compared::differs));
    }
}

/// A difference, or what the model should not do, made small and printed.
fn show(at: u64, case: Case, compared: &Result<Vec<Compared>, Unfit>, pool: &Pool, engines: &mut Engines) -> String {
    let mut text = String::new();
    let wrong = match compared {
        Ok(all) => all.iter().find(|c| c.differs()),
        Err(unfit) => {
            let small = shrink::shrink(case, &mut |case| compare(case, pool, engines, WORLDS_MAX) == Err(*unfit));
            let _ = writeln!(text, "=== case {at}: {unfit:?}: {}", small.describe(pool));
            return text;
        }
    };
    let Some(wrong) = wrong else { return text };
    let same = |c: &Compared| c.differs() && c.truth == wrong.truth && c.instance == wrong.instance;
    let mut still = |case: &Case| compare(case, pool, engines, WORLDS_MAX).is_ok_and(|all| all.iter().any(same));
    let fresh = still(&case);
    let small = shrink::shrink(case, &mut still);
    let all = compare(&small, pool, engines, WORLDS_MAX).unwrap_or_default();
    let last = all.iter().find(|c| same(c)).unwrap_or(wrong);
    let _ = writeln!(text, "=== case {at}: {}", small.describe(pool));
    let _ = writeln!(text, "instance {}: brute force {:?}, checker {:?}", last.instance, last.truth, last.found);
    let _ = writeln!(text, "{}", last.reason);
    if !fresh {
        text.push_str("(only with what the engine had in its cache)\n");
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is printed, nothing depends on it")]
fn the_checker_agrees_with_brute_force() {
    let start = Instant::now();
    let pool = Pool::new();
    let seed = number("SUTURE_ORACLE_SEED", 1);
    let cases = number("SUTURE_ORACLE_CASES", CASES);
    let only = env::var("SUTURE_ORACLE_CASE").ok().and_then(|text| text.parse::<u64>().ok());
    let by_family = pool.by_family();
    let family = env::var("SUTURE_ORACLE_FAMILY").ok();
    let family = family.map(|name| by_family.get(&name).unwrap_or_else(|| panic!("no invariant `{name}`")).as_slice());
    let parts: Vec<Outcome> = in_parts(|part, parts| match only {
        Some(only) => run(seed, (only..=only).filter(|_| part == 0), &pool, family),
        None => run(seed, (0..cases).skip(part).step_by(parts), &pool, family),
    });
    let (text, differences) = table(&pool, &parts);
    println!("{text}seed {seed}, {:.1} s", start.elapsed().as_secs_f64());
    let shown: String = parts.iter().flat_map(|p| p.shown.iter().map(String::as_str)).collect();
    assert_eq!(differences, 0, "the checker and brute force differ\n{shown}");
}

/// Cases in which a kind was not read: how many instances were decided, which were not, and what is wrong.
fn run_unread(
    seed: u64,
    cases: impl Iterator<Item = u64>,
    pool: &Pool,
    family: Option<&[usize]>,
) -> (u64, unread::Outcome, Vec<String>) {
    let mut engines = Engines::new();
    let (mut compared, mut sum, mut shown) = (0, unread::Outcome::default(), Vec::new());
    for at in cases {
        let mut random = Random::new(seed ^ UNREAD_SEED, at);
        let invariant = match family {
            Some(entries) => *random.pick(entries),
            None => pool.choose(&mut random),
        };
        let (focus, size) = (pool.focus(invariant), Size::FULL.smaller());
        let case = Case::about(&mut random, invariant, focus, size);
        let Some(unread) = Unread::of(&mut random, case, focus, size) else { continue };
        let Ok(outcome) = unread.compare(pool, &mut engines, WORLDS_MAX) else { continue };
        compared += 1;
        sum.decided += outcome.decided;
        for (all, more) in [(&mut sum.undecided, outcome.undecided), (&mut sum.needless, outcome.needless)] {
            more.into_iter().for_each(|(reason, times)| {
                *all.entry(format!("{}: {reason}", pool.family(invariant))).or_default() += times
            });
        }
        if outcome.wrong.is_some() {
            let mut wrong = |case: &Case| {
                let smaller = Unread { case: case.clone(), ..unread.clone() };
                smaller.compare(pool, &mut engines, WORLDS_MAX).ok().and_then(|outcome| outcome.wrong)
            };
            let small = if shown.len() < SHOWN_MAX {
                shrink::shrink(unread.case.clone(), &mut |case| wrong(case).is_some())
            } else {
                unread.case.clone()
            };
            shown.push(format!("=== case {at}: {}{}\n", small.describe(pool), wrong(&small).unwrap_or_default()));
        }
    }
    (compared, sum, shown)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it took is printed, nothing depends on it")]
fn what_is_said_is_so_whatever_was_not_read() {
    let start = Instant::now();
    let pool = Pool::new();
    let (seed, cases) = (number("SUTURE_ORACLE_SEED", 1), number("SUTURE_ORACLE_UNREAD", UNREAD_CASES));
    let only = env::var("SUTURE_ORACLE_CASE").ok().and_then(|text| text.parse::<u64>().ok());
    let by_family = pool.by_family();
    let family = env::var("SUTURE_ORACLE_FAMILY").ok();
    let family = family.map(|name| by_family.get(&name).unwrap_or_else(|| panic!("no invariant `{name}`")).as_slice());
    let parts: Vec<(u64, unread::Outcome, Vec<String>)> = in_parts(|part, parts| {
        let cases = only.map_or(0..cases, |only| only..only + 1);
        run_unread(seed, cases.skip(part).step_by(parts), &pool, family)
    });
    let compared: u64 = parts.iter().map(|(compared, ..)| compared).sum();
    let decided: u64 = parts.iter().map(|(_, sum, _)| sum.decided).sum();
    println!(
        "{compared} cases in which a kind was not read, {decided} instances decided; seed {seed}, {:.1} s",
        start.elapsed().as_secs_f64()
    );
    for (title, of) in [
        ("undecided", (|sum| &sum.undecided) as fn(&unread::Outcome) -> &BTreeMap<String, u64>),
        ("of these alike whatever was not read", |sum| &sum.needless),
    ] {
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        parts
            .iter()
            .flat_map(|(_, sum, _)| of(sum))
            .for_each(|(reason, times)| *reasons.entry(reason).or_default() += times);
        let all: u64 = reasons.values().sum();
        #[expect(clippy::cast_precision_loss, reason = "a percentage for a person")]
        let share = 100.0 * all as f64 / (decided + all).max(1) as f64;
        println!("{title} {all}, {share:.2} %");
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        for (reason, times) in reasons.into_iter().take(REASONS_MAX) {
            println!("  {times}: {}", reason.chars().take(150).collect::<String>());
        }
    }
    let shown: Vec<&str> = parts.iter().flat_map(|(.., shown)| shown.iter().map(String::as_str)).collect();
    assert!(shown.is_empty(), "{} wrong where a kind was not read\n{}", shown.len(), shown.concat());
}

/// The counts, by family.
fn table(pool: &Pool, parts: &[Outcome]) -> (String, u64) {
    let mut text = format!(
        "{:26} {:>8} {:>9} {:>9} {:>9} {:>10} {:>11}\n",
        "invariant", "cases", "Proved", "unreached", "Refuted", "Undecided", "differences"
    );
    let mut total = Tally::default();
    let mut reasons: BTreeMap<(String, String), u64> = BTreeMap::new();
    let line = |text: &mut String, name: &str, t: &Tally| {
        let _ = writeln!(
            text,
            "{name:26} {:>8} {:>9} {:>9} {:>9} {:>10} {:>11}",
            t.cases, t.proved, t.unreached, t.refuted, t.undecided, t.differences
        );
    };
    for family in pool.families() {
        let mut sum = Tally::default();
        for tally in parts.iter().filter_map(|p| p.tallies.get(&family)) {
            sum.cases += tally.cases;
            sum.proved += tally.proved;
            sum.not_worse += tally.not_worse;
            sum.refuted += tally.refuted;
            sum.undecided += tally.undecided;
            sum.unreached += tally.unreached;
            sum.differences += tally.differences;
            for (reason, n) in &tally.reasons {
                *reasons.entry((family.clone(), reason.clone())).or_default() += n;
            }
        }
        line(&mut text, &family, &sum);
        total.cases += sum.cases;
        total.proved += sum.proved;
        total.not_worse += sum.not_worse;
        total.refuted += sum.refuted;
        total.undecided += sum.undecided;
        total.unreached += sum.unreached;
        total.differences += sum.differences;
    }
    line(&mut text, "total", &total);
    let unfit = |kind| parts.iter().filter_map(|p| p.unfit.get(&kind)).sum::<u64>();
    let (skipped, overlaps, empty) = (unfit(Unfit::TooLarge), unfit(Unfit::Overlap), unfit(Unfit::NoFuture));
    let verdicts = total.proved + total.not_worse + total.refuted + total.undecided + total.unreached;
    #[expect(clippy::cast_precision_loss, reason = "a percentage for a person")]
    let share = 100.0 * total.undecided as f64 / verdicts.max(1) as f64;
    let _ = writeln!(text, "undecided {share:.2} % of {verdicts} verdicts; {skipped} universes too large");
    let _ = writeln!(text, "{overlaps} with an object in two groups, {empty} without any future");
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    for ((family, reason), n) in reasons.into_iter().take(12) {
        let _ = writeln!(text, "  undecided {n}: {family}: {}", reason.chars().take(110).collect::<String>());
    }
    (text, total.differences + overlaps + empty)
}
