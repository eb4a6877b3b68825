//! What was spent, as the status of a grant keeps it: so that it survives a restart, and is known to all replicas.

use suture_model::kinds::Kind;
use suture_model::object::Key;
use suture_model::value::Str;
use suture_specs::spec::{ObjectName, ScaledWorkload, SpentEntry, TakenObject};
use suture_specs::time::{format_timestamp, parse_timestamp};

use super::history::{Spent, Taken};

/// An entry as the history has it, with its time.
///
/// # Errors
/// When its time is none.
pub(super) fn read(grant: &Str, entry: &SpentEntry) -> Result<(i128, Spent), String> {
    let at = parse_timestamp(&entry.at).map_err(|error| error.to_string())?;
    let taken = entry.taken.iter().map(|taken| Taken {
        key: key(&taken.object),
        uid: taken.uid.as_str().into(),
        group: taken.workload.as_ref().map(key),
    });
    let spent = Spent {
        grant: grant.clone(),
        requests: entry.requests.iter().map(|uid| uid.as_str().into()).collect(),
        taken: taken.collect(),
        scaled: entry.scaled.iter().map(|scaled| (key(&scaled.workload), scaled.pods)).collect(),
        dry_run: false,
    };
    Ok((at, spent))
}

/// An entry as the status has it.
pub(super) fn written(at: i128, spent: &Spent) -> SpentEntry {
    let taken = |taken: &Taken| TakenObject {
        object: name(&taken.key),
        uid: taken.uid.to_string(),
        workload: taken.group.as_ref().map(name),
    };
    SpentEntry {
        at: format_timestamp(at),
        requests: spent.requests.iter().map(ToString::to_string).collect(),
        taken: spent.taken.iter().map(taken).collect(),
        scaled: spent.scaled.iter().map(|(of, pods)| ScaledWorkload { workload: name(of), pods: *pods }).collect(),
    }
}

/// How much of a status an entry takes: in objects, each of which has about the same length.
pub(super) fn size(spent: &Spent) -> usize {
    spent.requests.len() + spent.taken.len() + spent.scaled.len()
}

fn key(name: &ObjectName) -> Key {
    Key::new(Kind::new(&name.group, &name.kind), &name.namespace, &name.name)
}

fn name(key: &Key) -> ObjectName {
    let text = |text: &Str| text.to_string();
    ObjectName {
        group: text(&key.kind.group),
        kind: text(&key.kind.kind),
        namespace: text(&key.ns),
        name: text(&key.name),
    }
}
