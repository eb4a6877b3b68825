//! `suture replay`: recorded requests against invariants.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suture_model::ingest::parse_documents;
use suture_model::value::Val;

use super::inputs::{engine, load_policy, load_state, one_standard_input, taken_as_none};
use crate::arguments::{self, Common, Format, ReplayFormat, State};
use crate::clock::{Clock, now};
use crate::failure::{Exit, Failure};
use crate::input::{self, Source};
use crate::output::progress::Progress;
use crate::output::terminal::Paint;
use crate::output::{self, openreports, replayed};
use crate::policy::{self, Policy};
use crate::recorded::{RecordedCluster, ingest_failure};
use crate::replay::digest::Digest;
use crate::replay::log::{Log, size};
use crate::replay::report::{Inputs, Replayed};
use crate::replay::shard::Shard;
use crate::replay::{Replay, digest_of};

/// How often what was found so far is written.
const SAVED_EVERY: Duration = Duration::from_secs(10);
/// After so many entries it is looked whether that is due, and the progress is shown.
const ENTRIES_BETWEEN: u64 = 256;

/// Replays a log, or puts parts together.
pub(super) fn run(common: Common, arguments: arguments::Replay) -> Result<Exit, Failure> {
    let output = arguments.output;
    let mut replayed = if arguments.merge.is_empty() { replay(common, &arguments)? } else { merge(&arguments.merge)? };
    replayed.millis = replayed.millis.filter(|_| !common.no_timing);
    if !common.quiet {
        let text = |replayed: &Replayed| replayed::text(replayed, Paint::stdout(common.color), common.verbose);
        match output {
            ReplayFormat::Text => output::value(Format::Text, &replayed, text)?,
            ReplayFormat::Json => output::value(Format::Json, &replayed, text)?,
            ReplayFormat::Openreports => output::print(&openreports::of_replay(&replayed)?)?,
        }
    }
    let outcomes = replayed.outcomes;
    Ok(match (outcomes.denied, outcomes.undecided) {
        // a Job would run a shard again that ends otherwise; what was found is said of the whole
        _ if replayed.shard.is_some() => Exit::Good,
        (0, 0) => Exit::Good,
        (0, _) => Exit::Undecided,
        _ => Exit::Bad,
    })
}

fn merge(paths: &[PathBuf]) -> Result<Replayed, Failure> {
    let mut parts = Vec::new();
    for path in paths {
        let part = read_part(path)?.ok_or_else(|| Failure::read(path, io::ErrorKind::NotFound.into()))?;
        parts.push((path.display().to_string(), part));
    }
    Replayed::of_parts(parts).map_err(|why| Failure::invalid(format!("--merge: {why}")))
}

fn replay(common: Common, arguments: &arguments::Replay) -> Result<Replayed, Failure> {
    let arguments::Replay { log, reviews, state, unknown, time, policy: flags, shard, part, .. } = arguments;
    one_standard_input(&[log, reviews, state, &flags.invariants, &flags.adapters])?;
    let mut policy = load_policy(flags)?;
    let (recorded, time) = match state.is_empty() {
        true => (RecordedCluster::new(policy.adapters.clone()), None),
        false => {
            let state = State { state: state.clone(), unknown: unknown.clone(), time: time.clone() };
            load_state(&state, &mut policy, &BTreeSet::new())?
        }
    };
    let policy = Arc::new(policy);
    let inputs = inputs(flags, &recorded)?;
    let known = match part {
        Some(path) => read_part(path)?,
        None => None,
    };
    let known = known.map(|known| same(known, &inputs, *shard, part.as_deref())).transpose()?;
    if let Some(known) = known.as_ref().filter(|known| known.complete) {
        return Ok(known.clone());
    }
    let mut log = Log::open(log, reviewed(reviews)?)?;
    let mut begun = Replayed::begun(inputs, *shard);
    if !state.is_empty() {
        begun.taken_as_none = taken_as_none(&policy, &recorded);
    }
    let mut replay = begin(common, &policy, recorded, time, *shard, known.clone().unwrap_or(begun))?;
    let bar = if common.quiet { Progress::hidden() } else { Progress::of_bytes(size(&arguments.log)) };
    let mut run = Run {
        part: part.as_deref(),
        began: now(),
        saved: now(),
        earlier: known.as_ref().and_then(|known| known.millis).unwrap_or(0),
    };
    while let Some(entry) = log.next_entry()? {
        replay.take(entry);
        let read = replay.progress().read;
        if let Some(known) = known.as_ref().filter(|known| known.read == read)
            && known.inputs.log != log.digest()
        {
            return Err(other_log(part.as_deref()));
        }
        if read % ENTRIES_BETWEEN == 0 {
            let denied = replay.progress().outcomes.denied;
            bar.reach(log.bytes(), &format!("{read} entries, {denied} would have been denied"));
            if known.as_ref().is_none_or(|known| read > known.read) {
                run.save(&mut replay, &log, false)?;
            }
        }
    }
    if known.as_ref().is_some_and(|known| known.read > replay.progress().read) {
        return Err(other_log(part.as_deref()));
    }
    run.save(&mut replay, &log, true)?;
    Ok(std::mem::take(replay.settled()))
}

/// What a policy would have denied of logs that begin with a cluster.
pub(super) fn over(
    common: Common,
    policy: &Policy,
    recorded: RecordedCluster,
    time: Option<Clock>,
    paths: &[PathBuf],
) -> Result<Replayed, Failure> {
    let mut log = Log::open(paths, Vec::new())?;
    let begun = Replayed::begun(Inputs::default(), Shard::WHOLE);
    let mut replay = begin(common, &Arc::new(policy.clone()), recorded, time, Shard::WHOLE, begun)?;
    let bar = if common.quiet { Progress::hidden() } else { Progress::of_bytes(size(paths)) };
    while let Some(entry) = log.next_entry()? {
        replay.take(entry);
        let read = replay.progress().read;
        if read % ENTRIES_BETWEEN == 0 {
            bar.reach(log.bytes(), &format!("{read} entries"));
        }
    }
    Ok(std::mem::take(replay.settled()))
}

fn begin(
    common: Common,
    policy: &Arc<Policy>,
    recorded: RecordedCluster,
    time: Option<Clock>,
    shard: Shard,
    mut report: Replayed,
) -> Result<Replay, Failure> {
    report.resume();
    let engine = engine(Common { verbose: false, ..common }, policy, suture_specs::spec::OnUndecided::Allow)?;
    Ok(Replay::new(policy.clone(), engine, recorded.snapshot, time, shard, report))
}

/// The AdmissionReviews of files, each with its place.
fn reviewed(paths: &[PathBuf]) -> Result<Vec<(String, Val)>, Failure> {
    let mut found = Vec::new();
    for Source { name, text } in input::read(paths)? {
        let documents = parse_documents(&text, &name).map_err(ingest_failure)?;
        found.extend(documents.into_iter().map(|document| (format!("{name}:{}", document.line), document.val)));
    }
    Ok(found)
}

/// A run, which writes what was found so far.
struct Run<'r> {
    part: Option<&'r Path>,
    began: Instant,
    saved: Instant,
    /// What the runs before took, in milliseconds.
    earlier: u64,
}

impl Run<'_> {
    /// Writes what was found so far, if that is due or it is the end. Whoever reads the file finds all of one or of the other.
    fn save(&mut self, replay: &mut Replay, log: &Log, complete: bool) -> Result<(), Failure> {
        if !complete && (self.part.is_none() || now().duration_since(self.saved) < SAVED_EVERY) {
            return Ok(());
        }
        let report = replay.settled();
        let took = now().duration_since(self.began).as_millis();
        report.millis = Some(self.earlier.saturating_add(u64::try_from(took).unwrap_or(u64::MAX)));
        report.complete = complete;
        report.inputs.log = log.digest();
        if let Some(path) = self.part {
            let text = serde_json::to_vec(report).map_err(Failure::invalid)?;
            let unready = path.with_extension("tmp");
            fs::write(&unready, text)
                .and_then(|()| fs::rename(&unready, path))
                .map_err(|e| Failure::write(&path.display().to_string(), e))?;
        }
        self.saved = now();
        Ok(())
    }
}

/// What is replayed, but for the log, which is not read yet.
fn inputs(flags: &arguments::Policy, recorded: &RecordedCluster) -> Result<Inputs, Failure> {
    let mut digest = Digest::default();
    digest.add(format!("{:?}", flags.profile).as_bytes());
    for paths in [&flags.invariants, &flags.adapters] {
        for source in policy::sources(paths)? {
            digest.add(source.text.as_bytes());
        }
    }
    Ok(Inputs {
        suture: env!("CARGO_PKG_VERSION").to_owned(),
        policy: digest.to_string(),
        state: digest_of(&recorded.snapshot).map_err(Failure::invalid)?,
        log: String::new(),
    })
}

/// A part that was written before; none where there is no such file yet.
fn read_part(path: &Path) -> Result<Option<Replayed>, Failure> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::read(path, error)),
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| {
            Failure::invalid(format!(
                "{} is no part of a replay: {error}; `suture replay --part` writes one",
                path.display()
            ))
        }),
    }
}

/// What was found before, if it is of the same inputs.
fn same(known: Replayed, inputs: &Inputs, shard: Shard, part: Option<&Path>) -> Result<Replayed, Failure> {
    let name = part.map_or_else(String::new, |path| path.display().to_string());
    let is_other = |what: &str| {
        Err(Failure::invalid(format!(
            "{name} was begun with another {what}: remove it, or name another file for --part"
        )))
    };
    let Inputs { suture, policy, state, log: _ } = &known.inputs;
    match () {
        () if *suture != inputs.suture => is_other("version of Suture"),
        () if *policy != inputs.policy => is_other("policy"),
        () if *state != inputs.state => is_other("state"),
        () if known.shard.unwrap_or(Shard::WHOLE) != shard => is_other("shard"),
        () => Ok(known),
    }
}

fn other_log(part: Option<&Path>) -> Failure {
    let name = part.map_or_else(String::new, |path| path.display().to_string());
    Failure::invalid(format!("{name} was begun with another log: remove it, or name another file for --part"))
}
