//! What is claimed of Suture under many clients, beside what was measured. Printed, never asserted: machines differ.

use suture_e2e::table::Table;

use crate::client::Traffic;
use crate::figures::{Case, Figures, Measured, Phase};
use crate::webhooks::Asked;

/// Of the requests/s with the webhook that allows everything.
const RATE_MIN: f64 = 0.9;
/// What Suture adds to the median.
const P50_MAX_MILLIS: f64 = 1.0;
/// What Suture adds to the 99th percentile at few clients, and at many.
const P99_MAX_MILLIS: [f64; 2] = [5.0, 15.0];
/// So many are few.
const FEW: usize = 8;
/// User time of its process for each decision.
const USER_MAX_MILLIS: f64 = 0.3;
/// What the user time may grow by from few clients to those of the burst.
const USER_GROWTH_MAX: f64 = 1.3;
/// Resident memory at its highest.
const RESIDENT_MAX_MIB: f64 = 64.0;

/// The table of claims.
pub struct Verdicts {
    table: Table,
}

impl Verdicts {
    fn row(&mut self, what: String, measured: String, claim: String, holds: bool) {
        let verdict = if holds { "holds" } else { "does not hold" };
        self.table.row([what, measured, claim, verdict.to_owned()]);
    }

    fn at_most(&mut self, what: String, value: f64, max: f64, unit: &str) {
        self.row(what, format!("{value:.2}{unit}"), format!("at most {max}{unit}"), value <= max);
    }

    /// Prints them all.
    pub fn print(measured: &Measured, resident_max_bytes: u64, burst: usize) {
        println!("\nwhat is to be shown, mixed traffic");
        let mut all = Self { table: Table::new(&["what", "measured", "claim", "verdict"]) };
        for ((case, _), figures) in measured.iter().filter(|((case, asked), _)| {
            *asked == Asked::Suture
                && case.traffic == Traffic::Mixed
                && case.phase != Phase::Burst
                && case.clients >= FEW
        }) {
            all.beside(measured, *case, figures);
        }
        let of_suture: Vec<&Figures> =
            measured.iter().filter(|((_, asked), _)| *asked == Asked::Suture).map(|(_, figures)| figures).collect();
        let coded = |code: u16| {
            let refused = of_suture.iter().flat_map(|figures| &figures.refused);
            refused.filter(|((own, _), _)| *own == code).map(|(_, (count, ..))| count).sum::<usize>()
        };
        let unavailable = coded(503);
        all.row("answers 503".to_owned(), unavailable.to_string(), "none".to_owned(), unavailable == 0);
        let refused = of_suture.iter().map(|figures| figures.refusals()).sum::<usize>() - unavailable;
        all.row("other refusals".to_owned(), refused.to_string(), "none".to_owned(), refused == 0);
        let mib = resident_max_bytes as f64 / f64::from(1 << 20);
        all.at_most("resident memory at its highest".to_owned(), mib, RESIDENT_MAX_MIB, " MiB");
        all.processor(measured, burst);
        all.table.print();
    }

    fn beside(&mut self, measured: &Measured, case: Case, suture: &Figures) {
        let Some(allow) = measured.get(&(case, Asked::AllowEverything)) else { return };
        let at = format!("{} clients, {} the burst", case.clients, case.phase.name());
        let rate = suture.rate() / allow.rate();
        let mut rates: Vec<f64> = suture.rates.iter().zip(&allow.rates).map(|(suture, allow)| suture / allow).collect();
        rates.sort_by(f64::total_cmp);
        let spread = format!(
            "{rate:.2} ({:.2} to {:.2})",
            rates.first().copied().unwrap_or_default(),
            rates.last().copied().unwrap_or_default()
        );
        let claim = format!("at least {RATE_MIN} of allow-everything");
        self.row(format!("{at}: requests/s"), spread, claim, rate >= RATE_MIN);
        let added = |part| suture.all.percentile(part) - allow.all.percentile(part);
        self.at_most(format!("{at}: added p50"), added(0.5), P50_MAX_MILLIS, " ms");
        let max = P99_MAX_MILLIS[usize::from(case.clients > FEW)];
        self.at_most(format!("{at}: added p99"), added(0.99), max, " ms");
    }

    fn processor(&mut self, measured: &Measured, burst: usize) {
        let user = |phase, clients| {
            let case = Case { traffic: Traffic::Mixed, phase, clients };
            let told = &measured.get(&(case, Asked::Suture))?.told;
            Some(told.per_decision(told.user_secs * 1e3))
        };
        for ((case, _), _) in measured.iter().filter(|((case, asked), _)| {
            *asked == Asked::Suture && case.traffic == Traffic::Mixed && case.clients >= FEW
        }) {
            let what = format!("{} clients, {} the burst: user time of a decision", case.clients, case.phase.name());
            let value = user(case.phase, case.clients).unwrap_or_default();
            self.at_most(what.replace("burst the burst", "at the burst"), value, USER_MAX_MILLIS, " ms");
        }
        if let (Some(few), Some(many)) = (user(Phase::Before, FEW), user(Phase::Burst, burst)) {
            let growth = many / few;
            let what = format!("user time of a decision, {burst} clients over {FEW}");
            self.row(what, format!("{growth:.2}"), format!("less than {USER_GROWTH_MAX}"), growth < USER_GROWTH_MAX);
        }
    }
}
