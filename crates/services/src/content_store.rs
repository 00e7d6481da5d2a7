//! The content store: answers Interests from cached Data.
//!
//! Stage: that of a node's forwarder (`onym_forward::stage::Cache`).
//! In: both kinds of packets on both sides.  Out: hits to their consumer, the rest to the other side.
//! Tables: the content store of `onym-tables`, bounded in packets and octets; when full, the
//! policy evicts.  Verdicts: `cs_hit` `stored` `unsolicited`
//! `forwarded` `no_face` `malformed`.

use crate::chain::Origin;
use crate::config::{CacheMode as Mode, ContentStore as Config, KindConfig, Order};
use crate::control::{Answer, CachedEntry, Entries, Import, Merged, Page, Request};
use crate::cx::Cx;
use crate::element::Element;
use crate::refusal::Refusal;
use crate::rendezvous;
use crate::stats::{self, CachePeriod, KindStats};
use crate::table;
use crate::transparent;
use crate::verdict::Verdict;
use onym_forward::stage::{Arrival, Cache, CacheStage, query_alone};
use onym_frame::Buf;
use onym_link::{LpOut, Packet, PacketKind, Payload};
use onym_tables::cs::{Body, ContentStore, CsConfig, Demand, Inserted, Policy, Query};
use onym_tables::{HashKey, Tick};
use onym_wire::data::Data;
use onym_wire::interest::Interest;

#[derive(Debug, Default, Clone, Copy)]
struct Lookups {
    hits: u64,
    misses: u64,
}

/// The element.
#[derive(Debug)]
pub(crate) struct ContentCache {
    config: Config,
    cache: Cache,
    lookups: Lookups,
    evicted: u64,
    not_admitted: u64,
    inserted: u64,
    /// At the start of this period, and what the last whole one had.
    period_start: Lookups,
    period: Lookups,
}

impl ContentCache {
    pub(crate) fn new(key: &HashKey) -> Self {
        let config = Config::default();
        Self {
            cache: Cache {
                store: ContentStore::new(limits(&config), key),
                watch: None,
                offers: None,
            },
            config,
            lookups: Lookups::default(),
            evicted: 0,
            not_admitted: 0,
            inserted: 0,
            period_start: Lookups::default(),
            period: Lookups::default(),
        }
    }

    /// Answers `packet` when it can.
    fn lookup(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Option<Verdict> {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return Some(Verdict::Malformed) };
        let paper = self.config.mode == Mode::Paper;
        if paper && interest.must_be_fresh {
            return None;
        }
        let fresh_only = interest.must_be_fresh || paper || !self.config.serve_stale;
        let query = Query { must_be_fresh: fresh_only, ..query_alone(cx.key, &interest) };
        let Some(body) = self.cache.find(cx.now, &query) else {
            self.lookups.misses += 1;
            return None;
        };
        self.lookups.hits += 1;
        let bytes = match body {
            Body::Small(bytes) => cx.out.copy(bytes),
            Body::Shared(buf) => Payload::Shared(buf.clone()),
        };
        let lp = LpOut {
            pit_token: packet.lp.pit_token.clone(),
            incoming_face: Some(Origin::STORE.told()),
            ..LpOut::default()
        };
        cx.emit(packet.face, PacketKind::Data, bytes, lp);
        Some(Verdict::CsHit)
    }

    /// Keeps `packet` when it may be kept; what to do with it then, or its end.
    fn keep(&mut self, cx: &Cx<'_>, packet: &Packet) -> Result<(), Verdict> {
        let Ok(data) = Data::parse(&packet.bytes) else { return Err(Verdict::Malformed) };
        let demand = match Origin::of_packet(&packet.lp).is_some_and(Origin::is_unsolicited) {
            true => Demand::Unsolicited,
            false => Demand::Asked,
        };
        // In mode `paper` it would answer nothing.
        let keeps_unfresh = self.config.admit_unfresh && self.config.mode == Mode::Protocol;
        let unfresh = data.freshness_ms == 0 && !keeps_unfresh;
        let name = data.name.value();
        let before = self.cache.store.len();
        let inserted = if unfresh || !self.is_mine(name) {
            Inserted::Refused
        } else {
            let hash = cx.key.name(name);
            self.cache.admit(cx.now, &Arrival { packet, data: &data.into(), hash, demand })
        };
        match inserted {
            Inserted::New => {
                self.inserted += 1;
                // Whoever left made room for this one.
                self.evicted += (before + 1).saturating_sub(self.cache.store.len()) as u64;
            }
            Inserted::Refreshed => {}
            Inserted::Refused => self.not_admitted += 1,
        }
        match (demand == Demand::Unsolicited, inserted) {
            (false, _) => Ok(()),
            (true, Inserted::Refused) => Err(Verdict::Unsolicited),
            (true, _) => Err(Verdict::Stored),
        }
    }

    /// Whether the siblings leave this name to us.
    fn is_mine(&self, name: &[u8]) -> bool {
        let count = self.config.siblings;
        if count < 2 {
            return true;
        }
        let shares = (0..count).map(|n| (u64::from(n), 1));
        rendezvous::choose(rendezvous::stable_hash(name), shares)
            == Some(self.config.self_index as usize)
    }

    /// Packets with what is left of their freshness, the freshest first: in a cache of one
    /// producer those are the newest.
    fn export(&self, cx: &Cx<'_>, page: Page) -> Answer {
        let mut all: Vec<(&[u8], u64)> = self
            .cache
            .store
            .list()
            .into_iter()
            .map(|(data, until, _)| (data, ms(until.since(cx.now).as_millis())))
            .collect();
        all.sort_by_key(|(_, left)| std::cmp::Reverse(*left));
        let entry = |(data, left): &(&[u8], u64)| CachedEntry {
            data: table::encode(data),
            fresh_ms: *left,
        };
        table::export(page, &all, entry, Entries::Cached)
    }

    fn import(&mut self, cx: &Cx<'_>, table: Import) -> Result<Answer, Refusal> {
        let Entries::Cached(entries) = table.entries else { return Err(Refusal::no_path()) };
        let mut done = Merged::default();
        for entry in entries {
            let bytes = Buf::copy_from(&table::decode("entries/data", &entry.data)?);
            let Ok(data) = Data::parse(&bytes) else {
                done.refused += 1;
                continue;
            };
            let name = data.name.value();
            let hash = cx.key.name(name);
            match self.cache.store.insert(cx.now, &bytes, name, hash, entry.fresh_ms, Demand::Asked)
            {
                Inserted::New => done.add_new(),
                Inserted::Refreshed => done.add_known(),
                Inserted::Refused => done.refused += 1,
            }
        }
        Ok(done.into())
    }
}

fn ms(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn limits(config: &Config) -> CsConfig {
    let policy = match config.policy {
        Order::Lru => Policy::Lru,
        Order::Fifo => Policy::PriorityFifo,
    };
    let (packets_max, bytes_max) = (config.capacity, config.bytes_max);
    CsConfig { packets_max, bytes_max, policy, admit: config.admit, serve: config.serve }
}

impl Element for ContentCache {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        match packet.kind() {
            PacketKind::Interest => {
                if let Some(verdict) = self.lookup(cx, &packet) {
                    return Some(verdict);
                }
            }
            PacketKind::Data => {
                if let Err(verdict) = self.keep(cx, &packet) {
                    return Some(verdict);
                }
            }
            PacketKind::Nack => {}
        }
        Some(transparent::cross(cx, packet))
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        transparent::cross(cx, packet);
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.cache.handle_timeout(cx.now);
    }

    fn poll_timeout(&self) -> Option<Tick> {
        Some(self.cache.poll_timeout()).filter(|due| *due != Tick::NEVER)
    }

    fn config(&self) -> KindConfig {
        KindConfig::ContentStore(self.config.clone())
    }

    fn configure(&mut self, cx: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::ContentStore(config) = config else { return Err(Refusal::no_path()) };
        if config.siblings == 0 || config.self_index >= config.siblings {
            let text = "self_index counts from 0 and is below siblings, which is at least 1";
            return Err(Refusal::field("self_index", text));
        }
        self.cache.store.set_config(cx.now, limits(&config));
        // At once: a smaller cache must not stay large until the next insertions.
        self.evicted += self.cache.store.evict(usize::MAX) as u64;
        self.config = config;
        Ok(())
    }

    fn stats(&self, cx: &Cx<'_>) -> KindStats {
        let period = self.period;
        let all = period.hits + period.misses;
        #[allow(clippy::cast_precision_loss)]
        let ratio = (all > 0).then(|| period.hits as f64 / all as f64);
        let ms = cx.settings.report_ms;
        KindStats::ContentStore(stats::ContentStore {
            hits: self.lookups.hits,
            misses: self.lookups.misses,
            entries: self.cache.store.len() as u64,
            bytes: self.cache.store.octets() as u64,
            inserted: self.inserted,
            evicted: self.evicted,
            not_admitted: self.not_admitted,
            period: CachePeriod { ms, hits: period.hits, misses: period.misses, ratio },
        })
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Export(page) => Ok(self.export(cx, page)),
            Request::Import(table) => self.import(cx, table),
            _ => Err(Refusal::no_path()),
        }
    }

    fn period(&mut self, _: &mut Cx<'_>) {
        let (now, then) = (self.lookups, self.period_start);
        self.period = Lookups { hits: now.hits - then.hits, misses: now.misses - then.misses };
        self.period_start = now;
    }
}
