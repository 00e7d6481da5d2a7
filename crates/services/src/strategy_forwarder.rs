//! The strategy forwarder: chooses which faces of the producer side a packet leaves by.
//!
//! In: both kinds of packets on both sides.  Out: to the producer side as the strategy of the name
//! says, to the consumer side back to who asked.  Tables: strategies by prefix; what is asked and
//! not answered yet, for strategies that need it, bounded by [`watch::PENDING_MAX`], the oldest is
//! forgotten; the duplicate filter.  Verdicts: `forwarded` `nack_forwarded` `duplicate` `no_face`
//! `malformed`.

mod choose;
mod staged;
mod state;
mod watch;

use crate::chain::NextHops;
use crate::config::{KindConfig, Strategy, StrategyForwarder as Config};
use crate::cx::{Cx, name_of};
use crate::element::Element;
use crate::names;
use crate::ports::Side;
use crate::refusal::Refusal;
use crate::stats::{self, KindStats, Upstream};
use crate::transparent;
use crate::verdict::Verdict;
use choose::{Chooser, Named};
use onym_link::{Packet, PacketKind};
use onym_tables::dead_nonces::DeadNonces;
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{FaceId, HashKey, NameHashes, Tick};
use onym_wire::interest::Interest;
use staged::Staged;
use watch::Watch;

/// Prefixes with a strategy of their own.
const STRATEGIES_MAX: usize = 1024;
/// Nonces that the duplicate filter remembers.
const FILTER_MAX: usize = 1 << 16;

/// The element.
#[derive(Debug)]
pub(crate) struct StrategyForwarder {
    config: Config,
    by_prefix: PrefixMap<Strategy>,
    chooser: Chooser,
    watch: Watch,
    staged: Staged,
    filter: DeadNonces,
    duplicates: u64,
    chosen: Vec<FaceId>,
}

impl StrategyForwarder {
    pub(crate) fn new(key: &HashKey, seed: u64) -> Self {
        Self {
            config: Config::default(),
            by_prefix: PrefixMap::default(),
            chooser: Chooser::default(),
            watch: Watch::default(),
            staged: Staged::new(key, seed),
            filter: DeadNonces::new(FILTER_MAX, 1),
            duplicates: 0,
            chosen: Vec::new(),
        }
    }

    fn strategy_of(&self, cx: &Cx<'_>, name: &[u8]) -> Strategy {
        if self.by_prefix.is_empty() {
            return self.config.strategy;
        }
        let hashes = NameHashes::new(cx.key, name, self.by_prefix.lengths());
        let found = self.by_prefix.longest_match(&hashes, name, |_| true);
        found.map_or(self.config.strategy, |(_, strategy)| *strategy)
    }

    fn is_duplicate(&mut self, cx: &Cx<'_>, packet: &Packet) -> bool {
        if self.config.duplicate_filter_ms == 0 {
            return false;
        }
        let Ok(interest) = Interest::parse(&packet.bytes) else { return false };
        let Some(nonce) = interest.nonce.map(u32::from_be_bytes) else { return false };
        let hash = cx.key.name(interest.name.value());
        let known = self.filter.contains(cx.now, hash, nonce);
        self.filter.insert(cx.now, hash, nonce);
        known
    }

    /// Sends what leaves on the producer side.
    fn onward(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        let kind = packet.kind();
        if let (PacketKind::Interest, Some(octets)) = (kind, &packet.lp.prefix_announcement) {
            let Some(next) = NextHops::parse(octets) else { return Verdict::Malformed };
            return self.staged.interest(cx, packet, &next);
        }
        if kind != PacketKind::Interest
            && cx.ports.untag(&packet.lp.pit_token, Side::Producer).is_some()
        {
            return transparent::send(cx, packet, Side::Producer);
        }
        let Some(name) = name_of(packet) else { return Verdict::Malformed };
        let strategy = self.strategy_of(cx, name);
        let hash = if strategy.is_watched() { cx.key.name(name) } else { 0 };
        self.watch.expire(cx.now, self.config.fail_after, self.config.hold_down_ms);
        self.chosen.clear();
        let mut chosen = std::mem::take(&mut self.chosen);
        let named = Named { value: name, hash };
        self.chooser.choose(cx, strategy, named, &mut self.watch, &self.config, &mut chosen);
        let token = match kind {
            PacketKind::Interest => cx.token_onward(packet.face, &packet.lp.pit_token),
            _ => onym_tables::pit::Token::new(),
        };
        for face in &chosen {
            cx.pass(*face, packet, token.clone());
            self.watch.sent(*face, kind);
            if kind == PacketKind::Interest && strategy.is_watched() {
                let interest = Interest::parse(&packet.bytes).ok();
                let lifetime = interest.map_or(4000, |i| i.lifetime_or_default());
                self.watch.asked(cx.now, hash, *face, lifetime);
            }
        }
        let count = chosen.len();
        self.chosen = chosen;
        if count == 0 { Verdict::NoFace } else { Verdict::Forwarded }
    }

    /// What comes from the producer side goes to who waits for it; where nobody does, the rest of
    /// the chain judges.
    fn back(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Verdict {
        let kind = packet.kind();
        if kind != PacketKind::Interest {
            match self.staged.answer(cx, &packet) {
                Some(Verdict::NackNoEntry) if !self.staged.is_used() => {}
                Some(verdict) => return verdict,
                None => {}
            }
        }
        transparent::cross(cx, packet)
    }

    /// Something came from the producer side.
    fn heard(&mut self, cx: &Cx<'_>, packet: &Packet) {
        let kind = packet.kind();
        if self.watch.is_idle() || kind == PacketKind::Interest {
            return;
        }
        let Some(name) = name_of(packet) else { return };
        let hashes = NameHashes::new(cx.key, name, u64::MAX);
        if kind == PacketKind::Nack {
            self.watch.refused(
                packet.face,
                hashes.whole,
                self.config.fail_after,
                cx.now,
                self.config.hold_down_ms,
            );
        } else {
            self.watch.answered(cx.now, packet.face, name, &hashes);
        }
    }
}

impl Element for StrategyForwarder {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        let side = cx.side_of(packet.face)?;
        if side == Side::Producer {
            self.heard(cx, &packet);
            self.staged.learn(cx, &packet);
            return Some(self.back(cx, packet));
        }
        if packet.kind() == PacketKind::Interest && self.is_duplicate(cx, &packet) {
            self.duplicates += 1;
            return Some(Verdict::Duplicate);
        }
        Some(match cx.hold(Side::Producer, packet) {
            Ok(packet) => self.onward(cx, &packet),
            Err(verdict) => verdict,
        })
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        match cx.side_of(packet.face) {
            Some(Side::Consumer) => self.onward(cx, &packet),
            _ => transparent::cross(cx, packet),
        };
    }

    fn face_added(&mut self, cx: &mut Cx<'_>, face: FaceId) {
        self.staged.face_added(cx, face);
    }

    fn face_removed(&mut self, cx: &mut Cx<'_>, face: FaceId, _: &str) {
        self.staged.face_removed(cx.now, face);
        self.watch.forget(face);
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.watch.expire(cx.now, self.config.fail_after, self.config.hold_down_ms);
        self.staged.handle_timeout(cx);
    }

    fn poll_timeout(&self) -> Option<Tick> {
        self.watch.next_end().into_iter().chain(self.staged.poll_timeout()).min()
    }

    fn config(&self) -> KindConfig {
        KindConfig::StrategyForwarder(self.config.clone())
    }

    fn configure(&mut self, cx: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::StrategyForwarder(config) = config else { return Err(Refusal::no_path()) };
        if config.strategies.len() > STRATEGIES_MAX {
            let text = format!("at most {STRATEGIES_MAX} prefixes have a strategy of their own");
            return Err(Refusal::field("strategies", text));
        }
        let mut by_prefix = PrefixMap::default();
        for (prefix, strategy) in &config.strategies {
            let name = names::prefix("strategies", prefix)?;
            by_prefix.insert(&names::key(cx.key, name.value()), *strategy);
        }
        self.staged.configure(&config.route_strategies, &config.regions)?;
        if config.duplicate_filter_ms != self.config.duplicate_filter_ms {
            self.filter = DeadNonces::new(FILTER_MAX, config.duplicate_filter_ms.max(1));
        }
        self.by_prefix = by_prefix;
        self.config = config;
        Ok(())
    }

    fn stats(&self, cx: &Cx<'_>) -> KindStats {
        let one = |id: &FaceId| {
            let state = self.watch.state(*id);
            Upstream {
                label: cx.ports.label(*id).to_owned(),
                interests: state.interests,
                data: state.data,
                outstanding: state.outstanding.into(),
                rtt_ms: state
                    .smoothed_rtt()
                    .map(|rtt| u64::try_from(rtt.as_millis()).unwrap_or(u64::MAX)),
                alive: !state.is_dead(),
            }
        };
        KindStats::StrategyForwarder(stats::StrategyForwarder {
            faces: cx.ports.side(Side::Producer).iter().map(one).collect(),
            failovers: self.chooser.failovers(),
            duplicates: self.duplicates,
        })
    }
}
