//! Status datasets: what they list, and the segments they are sent in.

use super::command::Refusal;
use super::host::{CsView, FaceView, Host};
use super::policy::Privilege;
use super::reply;
use onym_crypto::signer::{write_digest_data, write_null_data};
use onym_tables::Tick;
use onym_tables::fib::NextHop;
use onym_wire::data::DataBuilder;
use onym_wire::interest::Interest;
use onym_wire::mgmt::{
    Block as _, CS_ADMIT, CS_SERVE, ChannelStatus, CsInfo, FaceQueryFilter, FaceStatus, FibEntry,
    ForwarderStatus, NextHopRecord, RibEntry, Route, StrategyChoice,
};
use onym_wire::name::{Component, Name, NameRef};
use std::collections::VecDeque;

/// How long a version of a dataset is kept, in milliseconds: slow clients have that long.
const KEPT_MS: u64 = 10_000;

/// Most octets of datasets kept; the newest is kept whatever its size.
const KEPT_BYTES: usize = 64 << 20;

/// Most datasets kept.
const KEPT_COUNT: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Channels,
    Cs,
    Faces,
    Fib,
    General,
    Query,
    Rib,
    Strategies,
}

const KINDS: &[(&str, &str, Kind)] = &[
    ("cs", "info", Kind::Cs),
    ("faces", "channels", Kind::Channels),
    ("faces", "list", Kind::Faces),
    ("faces", "query", Kind::Query),
    ("fib", "list", Kind::Fib),
    ("rib", "list", Kind::Rib),
    ("status", "general", Kind::General),
    ("strategy-choice", "list", Kind::Strategies),
];

/// A request for a dataset.
#[derive(Debug)]
pub(super) struct Request<'a> {
    kind: Kind,
    filter: Option<Component<'a>>,
    /// Whether it asks for a version made before. Whatever else stands behind the dataset's name is
    /// answered under that name, as NFD does.
    pub(super) is_past: bool,
}

impl<'a> Request<'a> {
    /// The dataset under `/localhost/nfd` that `name` asks for.
    pub(super) fn of(name: NameRef<'a>) -> Option<Self> {
        let mut parts = name.suffix(2).components();
        let (module, word) = (parts.next()?, parts.next()?);
        let is = |c: Component<'_>, word: &str| c.is_generic() && c.value == word.as_bytes();
        let &(.., kind) = KINDS.iter().find(|row| is(module, row.0) && is(word, row.1))?;
        let filter = if kind == Kind::Query { parts.next() } else { None };
        let is_past = parts.last().is_some_and(is_of_version);
        Some(Self { kind, filter, is_past })
    }

    /// The content of the dataset now.
    pub(super) fn content(&self, host: &mut dyn Host) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        match self.kind {
            Kind::Channels => host
                .channels()
                .into_iter()
                .for_each(|local_uri| ChannelStatus { local_uri }.write(&mut out)),
            Kind::Cs => cs_info(host).write(&mut out),
            Kind::Faces => host.faces().iter().for_each(|f| face_status(f).write(&mut out)),
            Kind::Query => {
                let malformed = |_| Refusal::new(400, "Malformed filter");
                let value = self.filter.map_or(&[][..], |c| c.value);
                let filter = FaceQueryFilter::parse(value).map_err(malformed)?;
                let faces = host.faces();
                let wanted = faces.iter().filter(|face| is_wanted(face, &filter));
                wanted.for_each(|face| face_status(face).write(&mut out));
            }
            Kind::Fib => host.fib().into_iter().for_each(|(name, hops)| {
                let record =
                    |hop: NextHop| NextHopRecord { face_id: u64::from(hop.face.0), cost: hop.cost };
                let next_hops = hops.into_iter().map(record).collect();
                FibEntry { name, next_hops }.write(&mut out);
            }),
            Kind::General => status(host).write_value(&mut out),
            Kind::Rib => write_rib(host, &mut out),
            Kind::Strategies => host
                .strategies()
                .into_iter()
                .for_each(|(name, strategy)| StrategyChoice { name, strategy }.write(&mut out)),
        }
        Ok(out)
    }
}

/// Whether it is a version or a segment of one.
fn is_of_version(component: Component<'_>) -> bool {
    component.as_version().is_some() || component.as_segment().is_some()
}

fn cs_info(host: &mut dyn Host) -> CsInfo {
    let cs = host.cs();
    CsInfo {
        capacity: cs.capacity,
        flags: cs_flags(&cs),
        cs_entries: cs.entries,
        hits: cs.hits,
        misses: cs.misses,
    }
}

/// The flag bits of the content store.
pub(super) fn cs_flags(cs: &CsView) -> u64 {
    (if cs.admit { CS_ADMIT } else { 0 }) | (if cs.serve { CS_SERVE } else { 0 })
}

fn status(host: &mut dyn Host) -> ForwarderStatus {
    let node = host.node();
    let c = node.counters;
    ForwarderStatus {
        nfd_version: node.version,
        start_timestamp_ms: node.start_ms,
        current_timestamp_ms: node.now_ms,
        name_tree_entries: node.name_tree_entries,
        fib_entries: node.fib_entries,
        pit_entries: node.pit_entries,
        measurements_entries: node.measurements_entries,
        cs_entries: node.cs_entries,
        in_interests: c.in_interests,
        in_data: c.in_data,
        in_nacks: c.in_nacks,
        out_interests: c.out_interests,
        out_data: c.out_data,
        out_nacks: c.out_nacks,
        satisfied_interests: node.satisfied_interests,
        unsatisfied_interests: node.unsatisfied_interests,
    }
}

/// One entry for each name; the host lists routes by name.
fn write_rib(host: &mut dyn Host, out: &mut Vec<u8>) {
    let mut entry: Option<RibEntry> = None;
    for route in host.rib() {
        let record = Route {
            face_id: u64::from(route.face.0),
            origin: route.origin,
            cost: route.cost,
            flags: route.flags,
            expiration_period_ms: route.expiration_ms,
        };
        match &mut entry {
            Some(entry) if entry.name == route.name => entry.routes.push(record),
            _ => {
                let next = RibEntry { name: route.name, routes: vec![record] };
                if let Some(done) = entry.replace(next) {
                    done.write(out);
                }
            }
        }
    }
    if let Some(done) = entry {
        done.write(out);
    }
}

fn face_status(face: &FaceView) -> FaceStatus {
    let c = face.counters;
    FaceStatus {
        face_id: u64::from(face.id.0),
        uri: face.remote_uri.clone(),
        local_uri: face.local_uri.clone(),
        expiration_period_ms: face.expiration_ms,
        face_scope: face.scope,
        face_persistency: face.persistency,
        link_type: face.link_type,
        base_congestion_marking_interval_ns: face.congestion_interval_ns,
        default_congestion_threshold: face.congestion_threshold,
        mtu: face.mtu.or(Some(onym_wire::PACKET_LEN_MAX as u64)),
        in_interests: c.in_interests,
        in_data: c.in_data,
        in_nacks: c.in_nacks,
        out_interests: c.out_interests,
        out_data: c.out_data,
        out_nacks: c.out_nacks,
        in_bytes: c.in_bytes,
        out_bytes: c.out_bytes,
        flags: face.flags,
    }
}

fn is_wanted(face: &FaceView, filter: &FaceQueryFilter) -> bool {
    let scheme = |uri: &str| uri.split_once("://").map(|(scheme, _)| scheme.to_owned());
    let has_scheme = |wanted: &String| {
        [&face.remote_uri, &face.local_uri].iter().any(|u| scheme(u).as_ref() == Some(wanted))
    };
    filter.face_id.is_none_or(|id| id == u64::from(face.id.0))
        && filter.uri_scheme.as_ref().is_none_or(has_scheme)
        && filter.uri.as_ref().is_none_or(|uri| *uri == face.remote_uri)
        && filter.local_uri.as_ref().is_none_or(|uri| *uri == face.local_uri)
        && filter.face_scope.is_none_or(|s| s == face.scope)
        && filter.face_persistency.is_none_or(|p| p == face.persistency)
        && filter.link_type.is_none_or(|t| t == face.link_type)
}

/// Whether `name` is `/localhop/nfd/rib/routable-prefixes`, and if so whether it goes on.
pub(super) fn routable_prefixes(name: NameRef<'_>) -> Option<bool> {
    let mut parts = name.suffix(2).components();
    let is = |c: Component<'_>, word: &[u8]| c.is_generic() && c.value == word;
    let (module, word) = (parts.next()?, parts.next()?);
    (is(module, b"rib") && is(word, b"routable-prefixes")).then(|| parts.next().is_some())
}

/// What one must be allowed to for `name` of our own namespace; none: everybody may ask.
pub(super) fn privilege_for(name: NameRef<'_>) -> Option<Privilege> {
    match name.get(2).filter(|c| c.is_generic())?.value {
        b"log" => Some(Privilege::Log),
        b"dump" => Some(Privilege::Watch),
        _ => None,
    }
}

/// Whether `name` is that of packets kept for a viewer, of which there may be many.
fn is_capture(name: NameRef<'_>) -> bool {
    let is = |at, word: &[u8]| name.get(at).is_some_and(|c| c.is_generic() && c.value == word);
    is(0, b"localhost") && is(1, b"onym") && is(2, b"dump")
}

/// The JSON that `name` under `/localhost/onym` means.
pub(super) fn onym_content(name: NameRef<'_>, host: &mut dyn Host) -> Option<String> {
    let mut parts = name.suffix(2).components();
    let (word, argument) = (parts.next()?, parts.next()?);
    let further = parts.next();
    if word.value == b"push" && parts.next().is_none() && argument.is_generic() {
        let what = std::str::from_utf8(argument.value).ok()?;
        return host.push_json(what, further.map_or(&[][..], |c| c.value));
    }
    if further.is_some() || !word.is_generic() || !argument.is_generic() {
        return None;
    }
    match (word.value, argument.value) {
        (b"status", b"node") => Some(host.status_json()),
        (b"log", b"lines") => host.log_json(),
        (b"explain", wire) => Some(host.explain_json(NameRef::parse(wire).ok()?)),
        _ => None,
    }
}

/// One version of a dataset.
#[derive(Debug)]
struct Version {
    /// The name asked for.
    request: Name,
    /// The same with the version.
    name: Name,
    number: u64,
    content: Vec<u8>,
    segment_len: usize,
    freshness_ms: u64,
    fresh_until: Tick,
    expires: Tick,
}

impl Version {
    fn last(&self) -> u64 {
        (self.content.len().div_ceil(self.segment_len).max(1) - 1) as u64
    }

    /// Segments are made when they are asked for; FinalBlockId is on each.
    fn segment(&self, number: u64) -> Option<Vec<u8>> {
        let start = usize::try_from(number).ok()?.checked_mul(self.segment_len)?;
        if number > self.last() {
            return None;
        }
        let end = (start + self.segment_len).min(self.content.len());
        let mut name = self.name.clone();
        name.append_segment(number);
        let mut last = Name::new();
        last.append_segment(self.last());
        let final_block = last.as_ref().last();
        let mut wire = Vec::new();
        let data = DataBuilder {
            freshness_ms: self.freshness_ms,
            final_block_id: final_block,
            ..DataBuilder::new(name.as_ref(), self.content.get(start..end)?)
        };
        match is_capture(self.request.as_ref()) {
            true => write_null_data(&data, &mut wire),
            false => write_digest_data(&data, &mut wire),
        }
        Some(wire)
    }
}

/// The versions kept, oldest first.
#[derive(Debug, Default)]
pub(super) struct Datasets {
    versions: VecDeque<Version>,
    bytes: usize,
}

impl Datasets {
    /// The segment of a kept version that `interest` asks for. A request without version is
    /// answered with a version that is still fresh.
    pub(super) fn segment(&self, interest: &Interest<'_>, now: Tick) -> Option<Vec<u8>> {
        let name = interest.name;
        let mut newest_first = self.versions.iter().rev();
        let version = newest_first.find(|v| {
            if v.request == name {
                return interest.can_be_prefix && now < v.fresh_until;
            }
            v.name.as_ref().is_prefix_of(name) && now < v.expires
        })?;
        let rest = name.strip_prefix(version.name.as_ref());
        match rest.map(|r| (r.len(), r.get(0))) {
            None => version.segment(0),
            Some((0, _)) if interest.can_be_prefix => version.segment(0),
            Some((1, Some(component))) => version.segment(component.as_segment()?),
            _ => None,
        }
    }

    /// Something changed: the next request without version makes a new one. Versions that are being
    /// fetched stay.
    pub(super) fn outdate(&mut self) {
        for version in &mut self.versions {
            version.fresh_until = Tick(0);
        }
    }

    /// Makes a new version of the dataset `request`, fresh for `freshness_ms`, and returns its
    /// first segment; `None` when the name is too long for any.
    pub(super) fn publish(
        &mut self,
        request: NameRef<'_>,
        content: Vec<u8>,
        freshness_ms: u64,
        unix_ms: u64,
        now: Tick,
    ) -> Option<Vec<u8>> {
        self.expire(now);
        let segment_len = reply::content_len_max(request)?;
        let before = self.versions.iter().rev().find(|v| v.request == request);
        // Versions of one dataset rise even when the clock does not.
        let number = before.map_or(unix_ms, |v| unix_ms.max(v.number + 1));
        let mut name = request.to_name();
        name.append_version(number);
        let version = Version {
            request: request.to_name(),
            name,
            number,
            content,
            segment_len,
            freshness_ms,
            fresh_until: now.plus_ms(freshness_ms),
            expires: now.plus_ms(KEPT_MS),
        };
        let first = version.segment(0);
        self.bytes += version.content.len();
        self.versions.push_back(version);
        while self.versions.len() > KEPT_COUNT || self.bytes > KEPT_BYTES && self.versions.len() > 1
        {
            self.forget_oldest();
        }
        first
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.versions.len()
    }

    fn forget_oldest(&mut self) {
        if let Some(version) = self.versions.pop_front() {
            self.bytes -= version.content.len();
        }
    }

    pub(super) fn next_expiry(&self) -> Option<Tick> {
        self.versions.front().map(|v| v.expires)
    }

    /// Forgets versions that are old enough.
    pub(super) fn expire(&mut self, now: Tick) {
        while self.versions.front().is_some_and(|v| v.expires <= now) {
            self.forget_oldest();
        }
    }
}
