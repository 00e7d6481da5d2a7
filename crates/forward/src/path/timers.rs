//! In: the time.  Out: entries that ended, and what strategies do on their timers.
//! Drops: none.  Counters: those of finalize and act.

use super::{decide, finalize};
use crate::{Forwarder, fairness};
use onym_link::Outbox;
use onym_tables::Tick;
use onym_tables::pit::Due;

/// Timers that one call runs: the rest waits for the next, so that packets are not kept waiting.
const TIMERS_MAX: usize = 4096;

pub(crate) fn run(fw: &mut Forwarder, now: Tick, out: &mut Outbox) {
    fairness::tick(fw, now);
    for _ in 0..TIMERS_MAX {
        match fw.pit.pop_due(now) {
            Some((slot, Due::Expiry)) => finalize::run(fw, now, slot),
            Some((slot, Due::Strategy)) => {
                let (_, ended) =
                    decide::pending(fw, now, slot, out, |strategy, ctx| strategy.on_timer(ctx));
                if ended {
                    finalize::run(fw, now, slot);
                }
            }
            None => return,
        }
    }
}
