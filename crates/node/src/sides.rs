//! What shards have of the push half at start, with the lanes between all threads.

use crate::cross::direction;
use crate::push::{self, Settings};
use crate::shard::{About, Peer, PushParts, PushSide};
use onym_engine::Bell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What shards have of the push half, the ends of the push thread's lanes to them, and until when
/// each held faces back.
pub(crate) type Sides = (Vec<PushSide>, Vec<push::PushLanes>, Vec<Arc<AtomicU64>>);

/// The push half of each shard, with the lanes between them and to the push thread.
pub(crate) fn sides(
    settings: &Settings,
    plane: &onym_pubsub::ControlPlane,
    bells: &[Arc<Bell>],
    bell: &Arc<Bell>,
) -> Sides {
    let about = About {
        node: plane.label(),
        role: settings.node.role,
        boot: settings.node.boot,
        publication_bytes_max: settings.publication_bytes_max,
        apps_max: settings.apps_max,
        count: Arc::new(AtomicUsize::new(0)),
    };
    let (mut sides, mut all, mut held_until) = <Sides>::default();
    for (index, peers) in peers(bells).into_iter().enumerate() {
        let index_u16 = u16::try_from(index).expect("invariant: at most 64 shards");
        let (lanes, theirs) = push::lanes(&bells[index], bell);
        let until = Arc::new(AtomicU64::new(0));
        sides.push(PushSide::new(PushParts {
            index: index_u16,
            forwarder: plane.forwarder.clone(),
            fib: plane.fib(index_u16),
            about: about.clone(),
            lanes,
            peers,
            held_until: Arc::clone(&until),
            is_caching: settings.node.cache_octets_max > 0,
            app_queue_bytes_max: settings.app_queue_bytes_max,
            hold: settings.hold,
        }));
        all.push(theirs);
        held_until.push(until);
    }
    (sides, all, held_until)
}

/// The lanes of publications between the shards of these bells, by shard and then by the other.
fn peers(bells: &[Arc<Bell>]) -> Vec<Vec<Option<Peer>>> {
    let count = bells.len();
    let mut all: Vec<Vec<Option<Peer>>> = (0..count).map(|_| Vec::new()).collect();
    all.iter_mut().for_each(|peers| peers.resize_with(count, || None));
    for a in 0..count {
        for b in a + 1..count {
            let (parcels_to, their_parcels) = direction(&bells[a], &bells[b]);
            let (parcels_back, parcels_from) = direction(&bells[b], &bells[a]);
            let (rows_to, their_rows) = direction(&bells[a], &bells[b]);
            let (rows_back, rows_from) = direction(&bells[b], &bells[a]);
            all[a][b] = Some(Peer { parcels_to, parcels_from, rows_to, rows_from });
            all[b][a] = Some(Peer {
                parcels_to: parcels_back,
                parcels_from: their_parcels,
                rows_to: rows_back,
                rows_from: their_rows,
            });
        }
    }
    all
}
