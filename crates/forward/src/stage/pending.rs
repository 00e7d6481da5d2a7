//! The state of the PIT stage: pending Interests, dead nonces, faces and counters.

use super::Attention;
use crate::fairness::Window;
use crate::path::ahead::Ahead;
use crate::strategy::Info;
use crate::trace::Gate;
use crate::{Config, Counters, FaceInfo, Faces};
use onym_tables::dead_nonces::DeadNonces;
use onym_tables::hash::NameHashes;
use onym_tables::pit::Token;
use onym_tables::pit::{InRecord, Key, Pit, TokenCodec};
use onym_tables::{FaceId, HashKey, Rng, Tick};
use onym_wire::interest::Interest;
use onym_wire::name::{Name, Tail};

/// The state of the PIT stage.
#[derive(Debug)]
pub struct Pending {
    pub(crate) config: Config,
    pub(crate) key: HashKey,
    pub(crate) rng: Rng,
    pub(crate) tokens: TokenCodec,
    pub(crate) faces: Faces,
    pub(crate) pit: Pit<Info>,
    pub(crate) dead: DeadNonces,
    pub(crate) regions: Vec<Name>,
    pub(crate) counters: Counters,
    pub(crate) window: Window,
    /// Absent while nobody may trace.
    pub(crate) traces: Option<Box<Gate>>,
    /// Who the Data that is being taken in comes from, where several stand behind its face.
    pub(crate) behind: Option<FaceId>,
    /// How long the upstream took that answered last, in nanoseconds.
    pub(crate) waited_ns: u64,
    /// Whether somebody looks at what was taken in ([`crate::Forwarder::is_due`]).
    pub(crate) attention: Attention,
    /// The names of Interests that somebody looks at.
    pub(crate) looked_at: Tail,
    /// Names of up to so many components are neither too long nor looked at.
    pub(crate) unseen_components: usize,
    /// Whether Interests may come with the context of a trace.
    pub(crate) takes_contexts: bool,
    /// Room used again for each packet.
    pub(crate) matched: Vec<u32>,
    pub(crate) told: Vec<FaceId>,
    /// Milliseconds that Data must stay fresh, so that no Nonce sent to the one upstream need be kept.
    pub(crate) lasting_ms: u64,
    /// What is known of packets that come next.
    pub(crate) ahead: Ahead,
}

const fn lasting_ms(spreads: bool, dead_nonce_lifetime_ms: u64) -> u64 {
    if spreads { u64::MAX } else { dead_nonce_lifetime_ms }
}

/// A pending Interest with those that wait for it.
#[derive(Debug)]
pub struct Waiting<'a> {
    /// The Interest, as it was received first.
    pub interest: &'a [u8],
    /// When it was.
    pub since: Tick,
    /// Who waits.
    pub downstreams: &'a [InRecord],
}

impl Pending {
    /// An empty table with the management face and the null face.
    pub(crate) fn new(config: Config) -> Self {
        let key = config.hash_key;
        let mut faces = Faces::default();
        faces.add(FaceId::INTERNAL, FaceInfo { local_fields: true, ..FaceInfo::local() });
        faces.add(FaceId::NULL, FaceInfo::local());
        Self {
            key,
            rng: Rng::new(config.seed),
            tokens: TokenCodec::new(&key, config.shard),
            faces,
            pit: Pit::new(config.pit_entries_max).with_octets_max(config.pit_octets_max),
            dead: DeadNonces::new(config.dead_nonces_max, config.dead_nonce_lifetime_ms),
            regions: Vec::new(),
            counters: Counters::default(),
            window: Window::default(),
            traces: None,
            behind: None,
            waited_ns: 0,
            attention: Attention::NONE,
            takes_contexts: false,
            looked_at: Tail::NONE,
            unseen_components: config.name_components_max,
            matched: Vec::new(),
            told: Vec::new(),
            ahead: Ahead::default(),
            lasting_ms: lasting_ms(config.spreads, config.dead_nonce_lifetime_ms),
            config,
        }
    }

    /// Whether one upstream may send an Interest to several, from now on.
    pub(crate) fn set_spreads(&mut self, on: bool) {
        self.config.spreads = on;
        self.lasting_ms = lasting_ms(on, self.config.dead_nonce_lifetime_ms);
    }

    /// The token by which Data finds the entry in `slot` again.
    #[inline]
    pub(crate) fn own_token(&self, slot: u32) -> Token {
        Token::from(self.tokens.encode(slot, self.pit.generation(slot)))
    }

    /// Says who the Data that are taken in next come from, where several stand behind a face: it
    /// does not go back there. `None`: from their face.
    pub fn answered_by(&mut self, source: Option<FaceId>) {
        self.behind = source;
    }

    /// How long the upstream took that answered last, in nanoseconds; 0 when it was not asked.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns
    }

    /// Pending Interests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pit.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pit.is_empty()
    }

    /// What tells the hint of an Interest from others in the PIT; 0 for none.
    #[inline(always)]
    pub(crate) fn hint_of(&self, interest: &Interest<'_>) -> u64 {
        let hint = &interest.forwarding_hint;
        if hint.is_empty() { 0 } else { super::rules::hint_key(&self.key, &self.regions, hint) }
    }

    /// What an Interest is found by.
    pub(crate) fn key_of<'a>(&self, interest: &Interest<'a>, hashes: &NameHashes) -> Key<'a> {
        Key {
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            hint: self.hint_of(interest),
            ..Key::new(interest.name.value(), hashes)
        }
    }

    /// The face from which the latest Interest of `slot` came, and its Nonce.
    pub(crate) fn latest_downstream(&self, slot: u32) -> Option<(FaceId, u32)> {
        self.pit.entry(slot).ins.iter().max_by_key(|r| r.expiry).map(|r| (r.face, r.nonce))
    }

    /// Everything that is pending, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Waiting<'_>> {
        self.pit.iter().map(|slot| {
            let entry = self.pit.entry(slot);
            let (interest, since) = (self.pit.interest(slot), entry.since);
            Waiting { interest, since, downstreams: &entry.ins }
        })
    }

    /// Takes over what waits elsewhere: the union of downstreams, each until the later time.
    /// Whether all of it was known; `None` when the table cannot take it.
    pub fn join(
        &mut self,
        now: Tick,
        interest: &Interest<'_>,
        downstreams: Vec<InRecord>,
    ) -> Option<bool> {
        let hashes = NameHashes::new(&self.key, interest.name.value(), 0);
        let key = self.key_of(interest, &hashes);
        let look = self.pit.look(&key);
        let slot = match look.found {
            Some(slot) => slot,
            None => {
                let slot = self.pit.insert(&look, &key, interest.wire).ok()?;
                self.pit.entry_mut(slot).since = now;
                slot
            }
        };
        let mut all_known = look.found.is_some();
        for record in downstreams {
            let entry = self.pit.entry_mut(slot);
            match entry.ins.iter_mut().find(|r| r.face == record.face) {
                Some(known) => {
                    let expiry = known.expiry.max(record.expiry);
                    all_known &= known.token == record.token;
                    *known = InRecord { expiry, ..record };
                }
                None => {
                    all_known = false;
                    if let Some(face) = self.faces.get_mut(record.face) {
                        face.load.pending += 1;
                    }
                    entry.ins.push(record);
                }
            }
        }
        let latest = self.pit.entry(slot).ins.iter().map(|r| r.expiry).max();
        self.pit.set_expiry(slot, latest.unwrap_or(now));
        Some(all_known)
    }
}
