//! Slots in the canonical order of their names: a skip list without keys of its own.
//!
//! Every level is doubly linked, so that an entry leaves without a search, and an entry whose
//! neighbour is known (the next segment of a file) enters without one.

use crate::{Rng, room};

pub(super) const NONE: u32 = u32::MAX;
const LEVELS: usize = 12;

/// The place of a slot. The fields serve those that do not stand in the order, too (`deferred`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Base {
    pub(super) left: u32,
    pub(super) right: u32,
    /// Lowest tower above this slot.
    pub(super) tower: u32,
}

#[derive(Debug, Clone, Copy)]
struct Tower {
    left: u32,
    right: u32,
    up: u32,
    /// Tower below; `NONE` on the lowest level, which stands on the slot.
    down: u32,
    slot: u32,
}

/// The order of slots, one in four with a tower.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) bases: Vec<Base>,
    towers: Vec<Tower>,
    free: Vec<u32>,
    first: u32,
    heads: [u32; LEVELS],
    rng: Rng,
}

impl Order {
    /// An empty order; `seed` decides the shape of the list, which strangers should not know.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            bases: Vec::new(),
            towers: Vec::new(),
            free: Vec::new(),
            first: NONE,
            heads: [NONE; LEVELS],
            rng: Rng::new(seed),
        }
    }

    pub(super) fn left(&self, slot: u32) -> u32 {
        self.bases[slot as usize].left
    }

    pub(super) fn right(&self, slot: u32) -> u32 {
        if slot == NONE { self.first } else { self.bases[slot as usize].right }
    }

    /// The last slot for which `less` holds (it holds for a first part of the order); `NONE` when
    /// it holds for none.
    pub(super) fn last_where(&self, mut less: impl FnMut(u32) -> bool) -> u32 {
        let mut tower = NONE;
        for level in (0..LEVELS).rev() {
            loop {
                let next = match tower {
                    NONE => self.heads[level],
                    t => self.towers[t as usize].right,
                };
                if next == NONE || !less(self.towers[next as usize].slot) {
                    break;
                }
                tower = next;
            }
            if level > 0 && tower != NONE {
                tower = self.towers[tower as usize].down;
            }
        }
        let mut at = if tower == NONE { NONE } else { self.towers[tower as usize].slot };
        loop {
            let next = self.right(at);
            if next == NONE || !less(next) {
                return at;
            }
            at = next;
        }
    }

    /// Makes the place of the next slot; `tower` says that nobody stands there.
    pub(super) fn add_place(&mut self, tower: u32) {
        room::push(&mut self.bases, Base { left: NONE, right: NONE, tower });
    }

    /// Puts `slot`, which has a place, behind `left` (`NONE`: in front of all).
    pub(super) fn insert_behind(&mut self, left: u32, slot: u32) {
        let right = self.right(left);
        self.bases[slot as usize] = Base { left, right, tower: NONE };
        match left {
            NONE => self.first = slot,
            l => self.bases[l as usize].right = slot,
        }
        if right != NONE {
            self.bases[right as usize].left = slot;
        }
        let mut bits = self.rng.next_u64();
        if bits & 3 != 0 {
            return;
        }
        let mut neighbour = self.tower_left_of(slot);
        let mut down = NONE;
        for level in 0..LEVELS {
            down = self.raise(slot, level, neighbour, down);
            bits >>= 2;
            if bits & 3 != 0 {
                return;
            }
            while neighbour != NONE && self.towers[neighbour as usize].up == NONE {
                neighbour = self.towers[neighbour as usize].left;
            }
            if neighbour != NONE {
                neighbour = self.towers[neighbour as usize].up;
            }
        }
    }

    /// The nearest tower of the lowest level to the left of `slot`.
    fn tower_left_of(&self, slot: u32) -> u32 {
        let mut at = self.bases[slot as usize].left;
        while at != NONE {
            let base = self.bases[at as usize];
            if base.tower != NONE {
                return base.tower;
            }
            at = base.left;
        }
        NONE
    }

    /// Adds the tower of `slot` on `level` to the right of `left` and on top of `down`.
    fn raise(&mut self, slot: u32, level: usize, left: u32, down: u32) -> u32 {
        let right = match left {
            NONE => self.heads[level],
            l => self.towers[l as usize].right,
        };
        let tower = Tower { left, right, up: NONE, down, slot };
        let id = match self.free.pop() {
            Some(id) => {
                self.towers[id as usize] = tower;
                id
            }
            None => {
                room::push(&mut self.towers, tower);
                room::match_free(&self.towers, &mut self.free);
                u32::try_from(self.towers.len() - 1).expect("invariant: fewer than 2^32 towers")
            }
        };
        match left {
            NONE => self.heads[level] = id,
            l => self.towers[l as usize].right = id,
        }
        if right != NONE {
            self.towers[right as usize].left = id;
        }
        match down {
            NONE => self.bases[slot as usize].tower = id,
            d => self.towers[d as usize].up = id,
        }
        id
    }

    /// Takes `slot` out.
    pub(super) fn remove(&mut self, slot: u32) {
        let Base { left, right, tower } = self.bases[slot as usize];
        match left {
            NONE => self.first = right,
            l => self.bases[l as usize].right = right,
        }
        if right != NONE {
            self.bases[right as usize].left = left;
        }
        let (mut id, mut level) = (tower, 0);
        while id != NONE {
            let Tower { left, right, up, .. } = self.towers[id as usize];
            match left {
                NONE => self.heads[level] = right,
                l => self.towers[l as usize].right = right,
            }
            if right != NONE {
                self.towers[right as usize].left = left;
            }
            self.free.push(id);
            (id, level) = (up, level + 1);
        }
    }

    /// Makes `to` stand where `slot` stands.
    pub(super) fn replace(&mut self, slot: u32, to: u32) {
        let left = self.bases[slot as usize].left;
        self.remove(slot);
        self.insert_behind(left, to);
    }
}
