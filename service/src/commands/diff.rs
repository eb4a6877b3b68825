//! `suture diff`: what a change of invariants newly denies or allows.

use std::collections::BTreeSet;
use std::path::PathBuf;

use suture_model::change::User;

use super::inputs::{load_state, one_standard_input, taken_as_none};
use super::replay::over;
use crate::arguments::{self, Common};
use crate::diff::{Differences, over_log, over_steps};
use crate::failure::{Exit, Failure};
use crate::one_step::side::Side;
use crate::output::progress::Progress;
use crate::output::terminal::Paint;
use crate::output::{self, differences};
use crate::policy::{self, Policy};
use crate::rules::watched;

/// Compares two policies.
pub(super) fn run(common: Common, arguments: arguments::Diff) -> Result<Exit, Failure> {
    let arguments::Diff { old, new, state, profile, adapters, user, log, output } = arguments;
    one_standard_input(&[&state.state, &adapters, &log])?;
    let load = |path: &PathBuf| policy::load(profile.profile(), std::slice::from_ref(path), &adapters);
    let (old, mut new) = (load(&old)?, load(&new)?);
    let (recorded, time) = load_state(&state, &mut new, &BTreeSet::new())?;
    if recorded.is_live
        && let Some(kind) = watched(&old).difference(&watched(&new)).next()
    {
        let how = "`suture snapshot --invariants OLD`, and the same for NEW, give files for --state";
        return Err(Failure::invalid(format!("OLD reads {kind}, which NEW does not, hence it was not read: {how}")));
    }
    let user = user.as_deref().map_or_else(User::admin, User::named);
    let snapshot = &recorded.snapshot;
    let bar = if common.quiet { Progress::hidden() } else { Progress::of(snapshot.len()) };
    let (mut before, mut after) =
        (Side::new(&old).map_err(Failure::invalid)?, Side::new(&new).map_err(Failure::invalid)?);
    let mut found = over_steps(&mut before, &mut after, snapshot, &user, time, |what| bar.say(what));
    drop(bar);
    found.taken_as_none = taken_as_none(&old, &recorded);
    found.taken_as_none.extend(taken_as_none(&new, &recorded));
    found.taken_as_none.sort();
    found.taken_as_none.dedup();
    if !log.is_empty() {
        let replayed = |policy: &Policy| over(common, policy, recorded.clone(), time, &log);
        found.log = Some(over_log(&replayed(&old)?, &replayed(&new)?));
    }
    if !common.quiet {
        let text = |found: &Differences| differences::text(found, Paint::stdout(common.color), common.verbose);
        output::value(output.into(), &found, text)?;
    }
    Ok(if found.is_empty() { Exit::Good } else { Exit::Bad })
}
