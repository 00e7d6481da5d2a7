//! Computes the next hops of a name from its routes and those that it inherits.
//!
//! All lists are sorted by face, so each step is one pass.

use super::{Entry, NameValue, RibUpdate, Route};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::Arc;

/// Next hops sorted by face, one for each.
pub(super) type Hops = SmallVec<[NextHop; 2]>;

/// For each face the lowest cost among the routes that `which` picks.
fn cheapest(entry: &Entry, which: impl Fn(&Route) -> bool) -> Hops {
    let mut hops = Hops::new();
    for route in entry.routes.iter().filter(|route| which(route)) {
        match hops.last_mut() {
            Some(hop) if hop.face == route.face => hop.cost = hop.cost.min(route.cost),
            _ => hops.push(NextHop { face: route.face, cost: route.cost }),
        }
    }
    hops
}

fn captures(entry: &Entry) -> bool {
    entry.routes.iter().any(|route| route.flags & Route::CAPTURE != 0)
}

/// The FIB entry of a name with these routes, given what its ancestors pass on.
pub(super) fn next_hops(entry: &Entry, inherited: &Hops) -> Hops {
    if entry.routes.is_empty() {
        return Hops::new();
    }
    let own = cheapest(entry, |_| true);
    if captures(entry) { own } else { joined(own, inherited) }
}

/// What a name with these routes passes on, given what its ancestors pass on.
pub(super) fn inheritable(entry: &Entry, inherited: &Hops) -> Hops {
    let own = cheapest(entry, |route| route.flags & Route::CHILD_INHERIT != 0);
    if captures(entry) { own } else { joined(own, inherited) }
}

/// `own`, and what `inherited` has for other faces.
fn joined(own: Hops, inherited: &Hops) -> Hops {
    if inherited.is_empty() {
        return own;
    }
    let mut hops = Hops::with_capacity(own.len() + inherited.len());
    merge(&own, inherited, |_, own, inherited| hops.extend(own.or(inherited).copied()));
    hops
}

/// Visits the faces of two lists in order, with what each list has for it.
fn merge(
    left: &Hops,
    right: &Hops,
    mut visit: impl FnMut(FaceId, Option<&NextHop>, Option<&NextHop>),
) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(l), Some(r)) => l.face.cmp(&r.face),
        };
        let l = if order.is_le() { left.next() } else { None };
        let r = if order.is_ge() { right.next() } else { None };
        if let Some(hop) = l.or(r) {
            visit(hop.face, l, r);
        }
    }
}

/// Tells how the FIB entry of `name` changes.
pub(super) fn changes(name: &NameValue, old: &Hops, new: &Hops, updates: &mut Vec<RibUpdate>) {
    merge(old, new, |face, old, new| match new {
        Some(hop) if old != new => {
            updates.push(RibUpdate::AddNextHop { name: Arc::clone(name), face, cost: hop.cost })
        }
        Some(_) => {}
        None => updates.push(RibUpdate::RemoveNextHop { name: Arc::clone(name), face }),
    });
}
