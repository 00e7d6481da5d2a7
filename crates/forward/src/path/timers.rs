//! In: the time.  Out: entries that ended, what strategies do on their timers, and what the cache put off.
//! Drops: none.  Counters: those of finalize and act.

use super::{decide, finalize};
use crate::stage::{CacheStage, RouteStage};
use crate::{Forwarder, fairness};
use onym_link::Outbox;
use onym_tables::Tick;
use onym_tables::pit::Due;

/// Timers that one call runs: the rest waits for the next, so that packets are not kept waiting.
const TIMERS_MAX: usize = 4096;

pub(crate) fn run<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    out: &mut Outbox,
) {
    let Forwarder { pending, strategies, routes, cache, .. } = fw;
    cache.handle_timeout(now);
    fairness::tick(pending, now);
    for _ in 0..TIMERS_MAX {
        match pending.pit.pop_due(now) {
            Some((slot, Due::Expiry)) => finalize::run(pending, now, slot),
            Some((slot, Due::Strategy)) => {
                let (_, ended) = decide::pending(
                    pending,
                    strategies,
                    routes,
                    now,
                    slot,
                    out,
                    |strategy, ctx| {
                        strategy.on_timer(ctx);
                    },
                );
                if ended {
                    finalize::run(pending, now, slot);
                }
            }
            None => return,
        }
    }
}
