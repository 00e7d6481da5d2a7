//! Whole advertisements: fetched from neighbours, served to them.

use super::Router;
use super::check::Subject;
use super::neighbour::{Fetch, Said, Segment};
use crate::codec::Advert;
use crate::names;
use crate::table::PeerId;
use onym_endpoint::{Incoming, Packet, Request, RequestId};
use onym_tables::Tick;
use onym_wire::DataBuilder;
use onym_wire::name::Component;
use std::time::Duration;

/// Octets of a segment, as peers cut them.
const SEGMENT_LEN: usize = 8000;
/// Segments of an advertisement, at most.
const SEGMENTS_MAX: u64 = 256;
/// How long advertisements are fresh.
const FRESHNESS_MS: u64 = 10_000;
const LIFETIME: Duration = Duration::from_secs(1);
const TRIES: u32 = 3;
/// Wait after a failure, while the advertisement is still the newest.
const AGAIN_MS: u64 = 500;

impl Router {
    /// Fetches the advertisement `said` of a neighbour.
    pub(super) fn fetch(&mut self, now: Tick, peer: PeerId, said: Said) {
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        match &neighbour.fetch {
            Some(fetch) if fetch.said == said => return,
            // It is not the newest any more.
            Some(fetch) => self.endpoint.cancel(fetch.id),
            None => {}
        }
        neighbour.refetch_at = Tick::NEVER;
        neighbour.fetch = None;
        self.fetch_segment(now, peer, said, 0, Vec::new(), None);
    }

    fn fetch_segment(
        &mut self,
        now: Tick,
        peer: PeerId,
        said: Said,
        segment: u64,
        content: Vec<u8>,
        last: Option<u64>,
    ) {
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        let mut name = names::advert(neighbour.name.as_ref().as_ref(), said.boot, said.seq);
        name.append_segment(segment);
        let interval = neighbour.rtt.map_or(Duration::from_millis(300), |rtt| rtt * 3);
        let interval = interval.clamp(Duration::from_millis(100), LIFETIME);
        let request = Request {
            lifetime: LIFETIME,
            tries: TRIES,
            interval: Some(interval),
            next_hop_face: neighbour.face(),
            ..Request::new(name)
        };
        neighbour.fetch = match self.endpoint.express(now, &request) {
            Ok(id) => Some(Fetch { said, id, content, segment, last }),
            Err(_) => {
                neighbour.refetch_at = now.plus_ms(AGAIN_MS);
                None
            }
        };
    }

    /// A segment arrived: its signature is checked first.
    pub(super) fn on_advert(
        &mut self,
        _: Tick,
        id: RequestId,
        packet: Packet,
        rtt: Option<Duration>,
    ) {
        if self.on_echo(id, &packet, rtt) {
            return;
        }
        let Some(peer) = self.neighbours.fetching(id) else { return };
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        if let Some(rtt) = rtt {
            let smooth = neighbour.rtt.map_or(rtt, |old| (old * 7 + rtt) / 8);
            neighbour.rtt = Some(smooth);
        }
        let face = neighbour.face();
        self.verify(Subject::Segment(Segment { peer, id, packet: packet.clone() }), packet, face);
    }

    pub(super) fn on_segment(&mut self, now: Tick, segment: Segment) {
        let Segment { peer, id, packet } = segment;
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        let Some(mut fetch) = neighbour.fetch.take_if(|fetch| fetch.id == id) else { return };
        let data = packet.data();
        let end = data.final_block_id.and_then(Component::as_segment);
        fetch.content.extend_from_slice(data.content);
        fetch.last = end.or(fetch.last);
        let done = fetch.last.is_none_or(|last| fetch.segment >= last);
        if !done && fetch.segment + 1 < SEGMENTS_MAX {
            let Fetch { said, segment, content, last, .. } = fetch;
            return self.fetch_segment(now, peer, said, segment + 1, content, last);
        }
        match Advert::parse(&fetch.content, self.config.table.destinations_max) {
            Ok(advert) if done => {
                neighbour.taken = Some(fetch.said);
                neighbour.fetches_failed = 0;
                neighbour.ours |= advert.entries.iter().any(|entry| entry.seq.is_some());
                self.counters.fetched += 1;
                self.table.replace(peer, &advert);
                self.take_requests(now, peer, &advert.requests);
                self.publisher.acknowledge(now);
                // More may have been said meanwhile.
                if neighbour_said(self, peer) != Some(fetch.said) {
                    self.refetch_newest(now, peer);
                }
            }
            _ => {
                self.counters.malformed += 1;
                self.counters.fetch_failures += 1;
            }
        }
    }

    pub(super) fn on_no_advert(&mut self, now: Tick, id: RequestId) {
        if !self.on_no_echo(now, id) {
            self.fetch_failed(now, id);
        }
    }

    /// A fetch ended badly; it begins again while its advertisement is the newest.
    pub(super) fn fetch_failed(&mut self, now: Tick, id: RequestId) {
        let Some(peer) = self.neighbours.fetching(id) else { return };
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        neighbour.fetch = None;
        neighbour.fetches_failed = neighbour.fetches_failed.saturating_add(1);
        neighbour.refetch_at = now.plus_ms(AGAIN_MS);
        self.counters.fetch_failures += 1;
    }

    /// Fetches that are due again.
    pub(super) fn refetch(&mut self, now: Tick) {
        let due: Vec<PeerId> =
            self.neighbours.iter().filter(|n| n.refetch_at <= now).map(|n| n.id).collect();
        due.into_iter().for_each(|peer| self.refetch_newest(now, peer));
    }

    fn refetch_newest(&mut self, now: Tick, peer: PeerId) {
        if let Some(said) = neighbour_said(self, peer) {
            self.fetch(now, peer, said);
        }
    }

    /// A neighbour asks for one of our advertisements: the newest, or one that was kept.
    pub(super) fn serve_advert(&mut self, now: Tick, incoming: &Incoming) {
        if self.serve_probe(now, incoming) {
            return;
        }
        let name = incoming.interest().name;
        let rest = name.suffix(self.names.advert.len());
        let (boot, seq) = (rest.get(0), rest.get(1));
        let boot = boot.and_then(Component::as_timestamp);
        let Some(seq) = seq.and_then(Component::as_version) else { return };
        let segment = rest.get(2).and_then(Component::as_segment);
        if boot != Some(self.config.boot) || rest.len() > 3 {
            return;
        }
        let Some(content) = self.publisher.content(seq, &self.table) else { return };
        let segment = segment.unwrap_or(0);
        let Ok(at) = usize::try_from(segment.saturating_mul(SEGMENT_LEN as u64)) else { return };
        let chunks = content.len().div_ceil(SEGMENT_LEN).max(1);
        let Some(piece) = content.get(at..content.len().min(at.saturating_add(SEGMENT_LEN))) else {
            return;
        };
        let mut last = onym_wire::Name::new();
        last.append_segment(chunks as u64 - 1);
        let mut full = names::advert(self.own.as_ref().as_ref(), self.config.boot, seq);
        full.append_segment(segment);
        let builder = DataBuilder {
            freshness_ms: FRESHNESS_MS,
            final_block_id: last.as_ref().last(),
            ..DataBuilder::new(full.as_ref(), piece)
        };
        if let Some(data) = self.sign(now, &builder) {
            self.endpoint.reply(incoming, data);
        }
    }
}

fn neighbour_said(router: &Router, peer: PeerId) -> Option<Said> {
    router.neighbours.get(peer).map(|neighbour| neighbour.words.said)
}
