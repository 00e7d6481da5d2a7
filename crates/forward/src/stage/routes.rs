//! The route stage: where an Interest may go, lowest cost first.

use onym_tables::fib::{Fib, NextHop};
use onym_tables::hash::NameHashes;
use onym_tables::{FaceId, HashKey, Prefix};
use onym_wire::interest::{ForwardingHint, Interest};
use onym_wire::name::NameRef;
use smallvec::SmallVec;

const NO_PREFIX: Prefix<'static> = Prefix { bytes: &[], len: 0, hash: 0 };

/// The Interest about which is decided.
#[derive(Debug)]
pub struct Target<'a> {
    /// Its view.
    pub interest: &'a Interest<'a>,
    /// The hashes of its name, for [`RouteStage::lengths`] and those of the strategy choices.
    pub hashes: &'a NameHashes,
    /// Whether its forwarding hint leads, not its name.
    pub by_hint: bool,
}

/// What the path asks of the routes.
pub trait RouteStage {
    /// Prefix lengths that [`Target::hashes`] must cover, as bits.
    fn lengths(&self) -> u64;

    /// The prefix that decides and its next hops, lowest cost first; none when nothing leads there.
    /// `slot` is the PIT entry.
    fn next_hops<'a>(
        &self,
        key: &HashKey,
        target: &Target<'a>,
        slot: u32,
    ) -> (Prefix<'a>, &[NextHop]);

    /// Has the processor fetch what [`RouteStage::next_hops`] will look at for a name.
    #[inline(always)]
    fn prefetch(&self, _hashes: &NameHashes) {}

    /// Whether the processor may not have that; then the following two, each when the one before it is
    /// done for a whole batch, have it fetch what is behind.
    #[inline(always)]
    fn is_large(&self) -> bool {
        false
    }

    /// The entries of a name's prefixes.
    #[inline(always)]
    fn prefetch_found(&self, _hashes: &NameHashes) {}

    /// The names of these.
    #[inline(always)]
    fn prefetch_names(&self, _hashes: &NameHashes) {}

    /// A face has gone.
    fn remove_face(&mut self, _face: FaceId) {}

    /// The Interest that is being taken in got the PIT entry `slot`.
    #[inline(always)]
    fn pending_at(&mut self, _slot: u32) {}
}

/// The routes of a node.
#[derive(Debug)]
pub struct Routes {
    /// The table.
    pub fib: Fib,
}

impl Routes {
    /// The longest prefix of the name and its next hops; by a forwarding hint, those of the first
    /// delegation that has any.
    #[inline(always)]
    pub fn find<'a>(&self, key: &HashKey, target: &Target<'a>) -> (Prefix<'a>, &[NextHop]) {
        if target.by_hint {
            return self.by_delegation(key, target.interest);
        }
        let name = target.interest.name.value();
        self.fib.lookup(target.hashes, name).unwrap_or((NO_PREFIX, &[]))
    }

    #[cold]
    fn by_delegation<'a>(
        &self,
        key: &HashKey,
        interest: &Interest<'a>,
    ) -> (Prefix<'a>, &[NextHop]) {
        let found = first_delegation(&interest.forwarding_hint, |name| {
            let hashes = NameHashes::new(key, name.value(), self.fib.lengths());
            self.fib.lookup(&hashes, name.value())
        });
        found.unwrap_or((NO_PREFIX, &[]))
    }
}

/// What `look` finds for the first delegation of a hint for which it finds anything.
pub fn first_delegation<'a, T>(
    hint: &ForwardingHint<'a>,
    look: impl FnMut(NameRef<'a>) -> Option<T>,
) -> Option<T> {
    hint.iter().find_map(look)
}

impl RouteStage for Routes {
    #[inline(always)]
    fn prefetch(&self, hashes: &NameHashes) {
        self.fib.prefetch(hashes);
    }

    #[inline(always)]
    fn is_large(&self) -> bool {
        self.fib.is_large()
    }

    #[inline(always)]
    fn prefetch_found(&self, hashes: &NameHashes) {
        self.fib.prefetch_found(hashes);
    }

    #[inline(always)]
    fn prefetch_names(&self, hashes: &NameHashes) {
        self.fib.prefetch_names(hashes);
    }

    #[inline(always)]
    fn lengths(&self) -> u64 {
        self.fib.lengths()
    }

    #[inline(always)]
    fn next_hops<'a>(
        &self,
        key: &HashKey,
        target: &Target<'a>,
        _slot: u32,
    ) -> (Prefix<'a>, &[NextHop]) {
        self.find(key, target)
    }

    fn remove_face(&mut self, face: FaceId) {
        self.fib.remove_face(face);
    }
}

/// The same next hops for every name: who has no FIB sends to all its upstreams.
#[derive(Debug, Default)]
pub struct Upstreams {
    /// The next hops, lowest cost first.
    pub hops: Vec<NextHop>,
}

impl RouteStage for Upstreams {
    fn lengths(&self) -> u64 {
        0
    }

    fn next_hops<'a>(&self, _: &HashKey, _: &Target<'a>, _: u32) -> (Prefix<'a>, &[NextHop]) {
        (NO_PREFIX, &self.hops)
    }

    fn remove_face(&mut self, face: FaceId) {
        self.hops.retain(|hop| hop.face != face);
    }
}

/// The next hops of one Interest, and how many components the prefix has that leads to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hops {
    /// Components of the prefix of the name.
    pub components: usize,
    /// The next hops, lowest cost first.
    pub list: SmallVec<[NextHop; 2]>,
}

/// Next hops that come with each Interest, from who has the FIB. Bounded as the PIT is: each
/// pending Interest keeps those that came last.
#[derive(Debug, Default)]
pub struct Handed {
    /// Those of the Interest that is being taken in.
    pub coming: Hops,
    by_slot: Vec<Hops>,
}

impl RouteStage for Handed {
    fn lengths(&self) -> u64 {
        u64::MAX >> (63 - onym_wire::NAME_COMPONENTS_MAX)
    }

    fn next_hops<'a>(
        &self,
        _: &HashKey,
        target: &Target<'a>,
        slot: u32,
    ) -> (Prefix<'a>, &[NextHop]) {
        let Some(hops) = self.by_slot.get(slot as usize) else { return (NO_PREFIX, &[]) };
        let name = target.interest.name.value();
        let prefix = target.hashes.prefix(name, hops.components);
        (prefix.unwrap_or(NO_PREFIX), &hops.list)
    }

    fn pending_at(&mut self, slot: u32) {
        let at = slot as usize;
        if self.by_slot.len() <= at {
            self.by_slot.resize_with(at + 1, Hops::default);
        }
        std::mem::swap(&mut self.by_slot[at], &mut self.coming);
    }
}
