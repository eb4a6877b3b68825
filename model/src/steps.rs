//! What a decision may cost, in steps: the same on every machine, whatever it was asked before.
//!
//! A step is about the work of one node of an expression: some tens of nanoseconds. Whoever walks what a client can make
//! long counts a step for each item; whoever can fail looks whether any are left, and gives up if not.
//!
//! On a machine that is slower than that, or does much else, the steps may last longer than anybody waits. Who waits may
//! end them from outside ([`until`]): then none is left, as if they had been taken. Who waits no longer abandons them: the
//! thread unwinds from wherever it is, at the next step or fact that it reads.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

thread_local! {
    /// The steps that this thread may still take; all the time in the world where nothing is being decided.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// With so many left it is looked whether somebody ended them.
    static LOOK: Cell<u64> = const { Cell::new(0) };
    /// By what somebody may end them.
    static END: RefCell<Option<End>> = const { RefCell::new(None) };
    /// How many were taken since it was looked whether somebody abandoned them, facts that were read among them.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// After so many steps it is looked whether somebody ended them: about a millisecond.
const LOOK_EVERY: u64 = 32_768;
/// After so many it is looked whether somebody abandoned them: who counts one for an item may take a microsecond for it.
const LEAVE_EVERY: u64 = 1_024;
/// A fact that is read takes less time than so many steps.
const READ_STEPS: u64 = 32;

/// Ends steps from another thread; clones end the same.
#[derive(Clone, Debug, Default)]
pub struct End(Arc<AtomicU8>);

const ENDED: u8 = 1;
const ABANDONED: u8 = 2;

impl End {
    /// From now on no step is left.
    pub fn end(&self) {
        self.0.fetch_max(ENDED, Ordering::AcqRel);
    }

    /// Nobody waits any longer: the thread unwinds with [`Abandoned`].
    pub fn abandon(&self) {
        self.0.fetch_max(ABANDONED, Ordering::AcqRel);
    }

    fn is(&self, at_least: u8) -> bool {
        self.0.load(Ordering::Acquire) >= at_least
    }
}

/// With what a thread unwinds whose steps were [abandoned](End::abandon): no panic, and told to nobody.
#[derive(Clone, Copy, Debug)]
pub struct Abandoned;

/// No step is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the steps that this may take are spent")]
pub struct Spent;

/// Takes so many steps.
pub fn count(steps: u64) {
    LEFT.set(LEFT.get().saturating_sub(steps));
    leave_if_abandoned(steps);
}

/// A fact is read: that counts for nothing, and many of them take time all the same.
pub(crate) fn read() {
    leave_if_abandoned(READ_STEPS);
}

/// An item is walked that counts for nothing.
pub fn walk() {
    leave_if_abandoned(1);
}

/// Looks, after so many more steps, whether somebody abandoned them.
fn leave_if_abandoned(steps: u64) {
    let taken = TAKEN.get().saturating_add(steps);
    if taken < LEAVE_EVERY {
        TAKEN.set(taken);
        return;
    }
    TAKEN.set(0);
    let is_abandoned = END.with_borrow(|end| end.as_ref().is_some_and(|end| end.is(ABANDONED)));
    if is_abandoned && !std::thread::panicking() {
        resume_unwind(Box::new(Abandoned));
    }
}

/// Takes as many steps as there are items.
pub fn count_items(items: usize) {
    count(u64::try_from(items).unwrap_or(u64::MAX));
}

/// Whether any is left.
///
/// # Errors
/// When none is.
pub fn check() -> Result<(), Spent> {
    let left = LEFT.get();
    if left > LOOK.get() {
        return Ok(());
    }
    if left == 0 || ended() {
        return Err(Spent);
    }
    LOOK.set(left.saturating_sub(LOOK_EVERY));
    Ok(())
}

/// Whether somebody ended the steps that are taken here.
pub fn ended() -> bool {
    END.with_borrow(|end| end.as_ref().is_some_and(|end| end.is(ENDED)))
}

/// Runs something whose steps `end` ends.
pub fn until<R>(end: &End, run: impl FnOnce() -> R) -> R {
    /// Takes it away, also where `run` panics.
    struct Rest(Option<End>);
    impl Drop for Rest {
        fn drop(&mut self) {
            END.set(self.0.take());
            LOOK.set(0);
        }
    }
    let _rest = Rest(END.replace(Some(end.clone())));
    LOOK.set(u64::MAX);
    TAKEN.set(LEAVE_EVERY);
    run()
}

/// How many are left.
pub fn left() -> u64 {
    LEFT.get()
}

/// Runs something that may take so many steps, and no more than are left here; they count here as well.
pub fn within<R>(most: u64, run: impl FnOnce() -> R) -> R {
    /// Gives back what is left, also where `run` panics.
    struct Rest {
        outer: u64,
        share: u64,
    }
    impl Drop for Rest {
        fn drop(&mut self) {
            let taken = self.share.saturating_sub(LEFT.get());
            LEFT.set(self.outer.saturating_sub(taken));
            LOOK.set(u64::MAX);
        }
    }
    let outer = LEFT.get();
    let share = most.min(outer);
    LEFT.set(share);
    LOOK.set(u64::MAX);
    let _rest = Rest { outer, share };
    run()
}

/// Runs something whose result is kept for all who ask later: it counts for nobody, whoever happens to ask first, and nobody
/// ends it.
pub fn aside<R>(run: impl FnOnce() -> R) -> R {
    /// Gives back what was left, also where `run` panics.
    struct Rest(u64, Option<End>);
    impl Drop for Rest {
        fn drop(&mut self) {
            LEFT.set(self.0);
            END.set(self.1.take());
            LOOK.set(u64::MAX);
        }
    }
    let _rest = Rest(LEFT.replace(u64::MAX), END.take());
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_of_what_is_left() {
        within(100, || {
            count(30);
            assert_eq!(within(50, || (count_items(20), check(), left()).2), 30);
            assert_eq!(left(), 50);
            assert_eq!(within(80, || (count(70), check())).1, Err(Spent), "no more than are left");
            assert_eq!(check(), Err(Spent));
        });
        assert_eq!(check(), Ok(()), "outside of a decision there is no end to them");
    }

    #[test]
    fn what_is_kept_for_others_counts_for_nobody() {
        within(10, || {
            aside(|| count(100));
            assert_eq!(left(), 10);
        });
    }

    #[test]
    fn who_waits_may_end_them() {
        let end = End::default();
        until(&end, || {
            within(1_000_000, || {
                count(10);
                assert_eq!((check(), ended()), (Ok(()), false));
                end.end();
                aside(|| assert_eq!(check(), Ok(()), "what is kept is found to its end"));
                count(LOOK_EVERY);
                assert_eq!((check(), ended()), (Err(Spent), true));
                assert_eq!(within(10, check), Err(Spent));
            });
            assert_eq!(within(1_000, check), Err(Spent), "nor is any left for what comes after");
        });
        assert_eq!((check(), ended()), (Ok(()), false));
    }

    #[test]
    fn who_waits_no_longer_lets_the_thread_unwind() {
        use std::panic::{AssertUnwindSafe, catch_unwind};
        for step in [|| count(1), read, walk] {
            let end = End::default();
            let unwound = until(&end, || {
                catch_unwind(AssertUnwindSafe(|| {
                    within(1_000_000, || {
                        (0..LEAVE_EVERY).for_each(|_| step());
                        end.abandon();
                        aside(|| (0..LEAVE_EVERY).for_each(|_| step()));
                        (0..LEAVE_EVERY).for_each(|_| step());
                    });
                }))
            });
            assert!(unwound.is_err_and(|with| with.is::<Abandoned>()));
            (0..LEAVE_EVERY).for_each(|_| step());
        }
    }

    #[test]
    fn a_panic_leaves_the_outer_steps_as_they_are() {
        let panicked = std::panic::catch_unwind(|| within(1, || panic!("inside")));
        assert!(panicked.is_err());
        assert_eq!(check(), Ok(()));
    }
}
