//! Whether this replica is the one that decides, and may: what the Lease, its maintenance and its judges tell each other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::now;

/// Who held the Lease before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predecessor {
    /// Nobody, or one that gave it back: nothing was in flight then.
    Gone,
    /// One of whose log this process has a copy.
    Copied,
    /// One that may have admitted what this process knows nothing of.
    Lost,
}

/// Whether this replica may decide; cheap to clone.
#[derive(Clone, Default)]
pub struct Active {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Until when the Lease is held for sure.
    until: Option<Instant>,
    /// How often it was taken: within a term nobody else has decided.
    term: u64,
    /// Whether this replica hands over to another one.
    leaving: bool,
    /// Who holds it otherwise.
    holder: String,
    /// What has to be read before this replica decides.
    deciding: Reading,
    /// What has to be read before its copy of what is in flight counts as one.
    copying: Reading,
}

/// Everything is to be read after an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    after: Option<Instant>,
    /// Whether it was.
    done: bool,
}

impl Active {
    /// The term in which this replica may decide now. What is decided counts only as long as the term is [the same](Self::still).
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(&self) -> Result<u64, String> {
        let time = now();
        let state = self.state();
        if state.leaving {
            return Err("this replica leaves".to_owned());
        }
        if state.until.is_none_or(|until| time >= until) {
            return Err(if state.holder.is_empty() {
                "no replica is active yet".to_owned()
            } else {
                format!("replica `{}` is active, this one stands by", state.holder)
            });
        }
        match state.deciding.missing() {
            None => Ok(state.term),
            Some(after) if after > time => {
                let left = (after - time).as_secs() + 1;
                Err(format!("what was admitted before may still land, for {left} s: this replica waits that long"))
            }
            Some(_) => Err("this replica has just become active and reads the cluster first".to_owned()),
        }
    }

    /// Whether this replica may decide, and nobody else could since it was [asked](Self::check).
    ///
    /// # Errors
    /// Why not.
    pub fn still(&self, term: u64) -> Result<(), String> {
        if self.check()? == term { Ok(()) } else { Err("another replica was active meanwhile".to_owned()) }
    }

    /// How often this replica took the Lease.
    pub fn term(&self) -> u64 {
        self.state().term
    }

    /// What everything has to be read after before this replica decides; none when it was.
    pub fn unsettled(&self) -> Option<Instant> {
        self.state().deciding.missing()
    }

    /// Everything that is watched was read after this.
    pub fn settle(&self, at: Instant) {
        let mut state = self.state();
        state.deciding.settle(at);
        state.copying.settle(at);
    }

    /// Everything has to be read after this, where this replica stands by.
    pub fn read_after(&self, after: Instant) {
        self.state().copying = Reading { after: Some(after), done: false };
    }

    /// Whether everything was.
    pub fn has_read_after(&self, after: Instant) -> bool {
        self.state().copying == Reading { after: Some(after), done: true }
    }

    /// Decides nothing from now on.
    pub fn leave(&self) {
        self.state().leaving = true;
    }

    /// Holds the Lease for sure until then, and who held it before, if that was another one. What that one admitted may
    /// land for `landing`.
    pub fn hold(&self, until: Instant, before: Option<Predecessor>, landing: Duration) {
        let mut state = self.state();
        state.until = Some(until);
        if let Some(before) = before {
            state.term += 1;
            state.deciding = match before {
                Predecessor::Copied => Reading::default(),
                Predecessor::Gone => Reading { after: Some(now()), done: false },
                Predecessor::Lost => Reading { after: Some(now() + landing), done: false },
            };
        }
    }

    /// Does not hold the Lease; this replica does.
    pub fn lose(&self, holder: &str) {
        let mut state = self.state();
        state.until = None;
        holder.clone_into(&mut state.holder);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    fn missing(self) -> Option<Instant> {
        self.after.filter(|_| !self.done)
    }

    fn settle(&mut self, at: Instant) {
        self.done |= self.after.is_some_and(|after| after <= at);
    }
}

#[cfg(test)]
impl Active {
    /// One that holds the Lease for as long as a test takes.
    pub fn held() -> Self {
        let active = Self::default();
        active.state().until = Some(far());
        active
    }

    /// Whether something is to be read before its copy counts.
    pub fn is_to_read(&self) -> bool {
        self.state().copying.missing().is_some()
    }

    /// As if no time passed any more, where it holds the Lease.
    pub fn stretch(&self) {
        let mut state = self.state();
        state.until = state.until.map(|_| far());
    }
}

#[cfg(test)]
fn far() -> Instant {
    now() + Duration::from_secs(3_600)
}

#[cfg(test)]
mod tests;
