//! Segmented fetch: discovery of the version, then the segments in a pipeline, handed out in order.

mod bounds;
mod discovery;
mod part;
pub(crate) mod pipeline;
mod report;

pub use discovery::Find;
pub use part::Part;
pub use pipeline::{PipelineCounters, PipelineOptions};
pub use report::{
    FetchBounds, FetchError, FetchId, FetchOptions, Progress, SEGMENT_OCTETS_MIN, Segments,
};

use crate::request::{Packet, Unanswered};
use crate::verify::{Verified, Verify};
use bounds::Taken;
use discovery::{Discovery, Refused};
use onym_frame::Buf;
use onym_tables::Tick;
use onym_wire::data::Data;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::{Name, NameRef};
use onym_wire::{NackReason, types};
use pipeline::{Arrival, Mark, Pipeline};
use std::time::Duration;

/// What a fetch is doing.
#[derive(Debug)]
enum Phase {
    Discovering(Discovery),
    Segments,
    Failed(FetchError),
}

/// After the connection came back, a refusal is taken as "not yet" for this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Refusals of one segment before they are taken as final, once segments have come.
const REFUSALS_MAX: u32 = 12;

/// Times in a row that the face may be lost before a segment comes.
const OUTAGES_MAX: u32 = 100;

#[derive(Debug)]
pub(crate) struct Fetch {
    options: FetchOptions,
    name: Name,
    phase: Phase,
    /// The versioned name; empty while discovering.
    prefix: Name,
    pipeline: Pipeline<Buf>,
    patient_until: Tick,
    bytes: u64,
    unverified: u64,
    taken: Taken,
    /// Times in a row that the face was lost before a segment came.
    outages: u32,
    /// When a segment came last, and the longest time without any.
    came: Option<Tick>,
    gap: Duration,
    /// Scratch for the name of an Interest.
    scratch: Name,
}

/// What a fetch wants to be sent as a request of its own.
pub(crate) use discovery::Ask;

impl Fetch {
    pub(crate) fn new(now: Tick, name: Name, options: FetchOptions) -> Self {
        let versioned = name.as_ref().last().is_some_and(|c| c.as_version().is_some());
        let mut fetch = Self {
            phase: Phase::Discovering(Discovery::new(now, options.find)),
            prefix: Name::new(),
            pipeline: Pipeline::new(options.pipeline, options.segments.first),
            patient_until: Tick(0),
            bytes: 0,
            unverified: 0,
            taken: Taken::new(options.bounds, options.segments),
            outages: 0,
            came: None,
            gap: Duration::ZERO,
            scratch: Name::new(),
            name,
            options,
        };
        if let Some(last) = fetch.options.segments.last {
            let last = last.max(fetch.options.segments.first);
            let _ = fetch.pipeline.set_last(last);
        }
        let find = fetch.options.find;
        if find == Find::Nothing || (find == Find::Auto && versioned) {
            fetch.start(fetch.name.clone());
        }
        fetch
    }

    fn start(&mut self, prefix: Name) {
        self.scratch = prefix.clone();
        self.prefix = prefix;
        self.phase = Phase::Segments;
    }

    fn fail(&mut self, error: FetchError) {
        self.phase = Phase::Failed(error);
    }

    pub(crate) fn progress(&self) -> Progress {
        let first = self.options.segments.first;
        Progress {
            name: matches!(self.phase, Phase::Segments).then(|| self.prefix.clone()),
            segments: self.pipeline.base() - first,
            segments_total: self.pipeline.last().map(|last| (last + 1).saturating_sub(first)),
            bytes: self.bytes,
            unverified: self.unverified,
            gap: self.gap,
            counters: self.pipeline.counters(),
            rtt: self.pipeline.rtt().summary(),
            window: self.pipeline.window(),
        }
    }

    /// The next piece of content in order, once it is there.
    pub(crate) fn read(&mut self) -> Option<Buf> {
        let content = self.pipeline.pop_ready()?;
        self.bytes += content.len() as u64;
        Some(content)
    }

    /// All was handed out.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Segments) && self.pipeline.is_done()
    }

    /// The error, once failed.
    pub(crate) fn take_error(&mut self) -> Option<FetchError> {
        if !matches!(self.phase, Phase::Failed(_)) {
            return None;
        }
        match std::mem::replace(&mut self.phase, Phase::Failed(FetchError::Disconnected)) {
            Phase::Failed(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Failed(_)) || self.is_done()
    }

    /// The request to send for discovery now, if one is due.
    pub(crate) fn next_ask(&mut self, now: Tick) -> Option<Ask> {
        let lifetime = self.options.pipeline.lifetime;
        match &mut self.phase {
            Phase::Discovering(discovery) => discovery.next_ask(now, &self.name, lifetime),
            _ => None,
        }
    }

    /// Writes the Interest for the next segment into `out`, if the window allows one.
    pub(crate) fn next_interest(&mut self, now: Tick, nonce: [u8; 4], out: &mut Vec<u8>) -> bool {
        if !matches!(self.phase, Phase::Segments) {
            return false;
        }
        let Some(segment) = self.pipeline.next_send(now) else { return false };
        self.scratch.append_segment(segment);
        let interest = InterestBuilder {
            must_be_fresh: self.options.must_be_fresh,
            nonce: Some(nonce),
            lifetime_ms: Some(crate::request::millis(self.options.pipeline.lifetime)),
            ..InterestBuilder::new(self.scratch.as_ref())
        };
        interest.write(out);
        self.scratch.pop();
        true
    }

    /// The segment number of `name` when it is one of this object.
    fn segment_of(&self, name: NameRef<'_>) -> Option<u64> {
        if !matches!(self.phase, Phase::Segments) || name.len() != self.prefix.len() + 1 {
            return None;
        }
        let rest = name.value().strip_prefix(self.prefix.value())?;
        NameRef::parse_value(rest).ok()?.last()?.as_segment()
    }

    /// Takes `data` if it is a segment of this object.
    pub(crate) fn on_data(&mut self, now: Tick, data: &Data<'_>, bytes: &Buf, mark: u8) -> bool {
        let Some(segment) = self.segment_of(data.name) else { return false };
        match self.take_segment(now, segment, data, bytes, mark) {
            Ok(()) => {}
            Err(error) => self.fail(error),
        }
        true
    }

    fn take_segment(
        &mut self,
        now: Tick,
        segment: u64,
        data: &Data<'_>,
        bytes: &Buf,
        mark: u8,
    ) -> Result<(), FetchError> {
        let verified = self.check(data)?;
        let content = self.content(data, bytes)?;
        self.check_length(segment, data, content.len() as u64)?;
        if let Some(last) = data.final_block_id.and_then(|c| c.as_segment()) {
            self.end_at(last)?;
        }
        let mark = if mark > 0 { Mark::Congested } else { Mark::None };
        if self.pipeline.on_data(now, segment, content, mark) == Arrival::New {
            self.unverified += u64::from(verified == Verified::No);
            self.outages = 0;
            self.gap =
                self.gap.max(self.came.replace(now).map_or(Duration::ZERO, |at| now.since(at)));
            let len = data.content.len() as u64;
            self.taken.segment(&self.prefix, segment, len, self.pipeline.last())?;
        }
        Ok(())
    }

    /// What a segment that was verified holds.
    fn content(&self, data: &Data<'_>, bytes: &Buf) -> Result<Buf, FetchError> {
        let opened = self.options.open.as_ref().map_or(Ok(None), |opener| opener.open(data));
        match opened {
            Ok(Some(plain)) => Ok(Buf::copy_from(&plain)),
            Ok(None) => Ok(bytes.slice_of(data.content)),
            Err(source) => Err(FetchError::NotOpened { name: data.name.to_name(), source }),
        }
    }

    fn check_length(&self, segment: u64, data: &Data<'_>, octets: u64) -> Result<(), FetchError> {
        let wanted = self.options.segments;
        let Some(size) = wanted.size else { return Ok(()) };
        let ends = data.final_block_id.and_then(|c| c.as_segment()) == Some(segment);
        let may_be_short = ends || wanted.last == Some(segment);
        if octets == size || (may_be_short && octets < size) {
            return Ok(());
        }
        Err(FetchError::Uneven { name: self.prefix.clone(), segment, octets, size })
    }

    /// The object ends with segment `last`; what is asked for may end before.
    fn end_at(&mut self, last: u64) -> Result<(), FetchError> {
        let last = self.options.segments.last.map_or(last, |wanted| wanted.min(last));
        let name = &self.prefix;
        self.taken.end(name, self.pipeline.last(), last)?;
        self.pipeline
            .set_last(last)
            .map_err(|end| FetchError::EndMoved { name: name.clone(), segment: end.0 - 1 })
    }

    fn check(&self, data: &Data<'_>) -> Result<Verified, FetchError> {
        let name = || data.name.to_name();
        let verified = self
            .options
            .verify
            .check(data)
            .map_err(|source| FetchError::NotVerified { name: name(), source })?;
        if data.content_type == types::CONTENT_NACK {
            return Err(FetchError::ProducerNack { name: name() });
        }
        Ok(verified)
    }

    /// Takes the Nack of `name` if it is of a segment of this object.
    pub(crate) fn on_nack(&mut self, now: Tick, name: NameRef<'_>, reason: NackReason) -> bool {
        let Some(segment) = self.segment_of(name) else { return false };
        match reason {
            NackReason::CONGESTION => {
                if let Err(exhausted) = self.pipeline.on_congestion_nack(now, segment) {
                    self.exhausted(exhausted);
                }
            }
            // Our own retransmission met the first Interest: the answer is under way.
            NackReason::DUPLICATE => self.pipeline.on_ignored_nack(),
            _ => {
                let started = self.pipeline.counters().received > 0;
                let refusals = self.pipeline.on_refusal(now, segment);
                let patient = now < self.patient_until || (started && refusals <= REFUSALS_MAX);
                if !patient {
                    let name = self.prefix.clone();
                    self.fail(FetchError::Refused { name, segment, reason });
                }
            }
        }
        true
    }

    /// The answer to a request of discovery.
    pub(crate) fn on_answer(&mut self, now: Tick, answer: Result<Packet, Unanswered>) {
        let Phase::Discovering(discovery) = &mut self.phase else { return };
        match answer {
            Ok(packet) => {
                if let Err(error) = self.discovered(now, &packet) {
                    self.fail(error);
                }
            }
            Err(why) => {
                let is_patient = now < self.patient_until;
                let refused = if is_patient { Refused::MayPass } else { Refused::Final };
                if discovery.on_failure(now, why, refused) {
                    let name = self.name.clone();
                    self.fail(FetchError::NotFound { name, why });
                }
            }
        }
    }

    /// Metadata, a segment, or a whole object in one Data.
    fn discovered(&mut self, now: Tick, packet: &Packet) -> Result<(), FetchError> {
        let data = packet.data();
        let below = data.name.strip_prefix(self.name.as_ref()).unwrap_or_default();
        if below.get(0).is_some_and(|c| c.is_keyword(b"metadata")) {
            self.check(&data)?;
            let metadata = crate::metadata::Metadata::parse(data.content)
                .map_err(|_| FetchError::Metadata { name: data.name.to_name() })?;
            let within = self.name.as_ref().is_prefix_of(metadata.name.as_ref());
            let trusted = matches!(self.options.verify, Verify::With(_));
            if !within && !trusted && !self.options.bounds.follow {
                let name = self.name.clone();
                return Err(FetchError::Redirected { name, to: metadata.name });
            }
            self.start(metadata.name);
            self.taken.announced(&self.prefix, metadata.size, metadata.last_segment)?;
            return match metadata.last_segment {
                Some(last) => self.end_at(last),
                None => Ok(()),
            };
        }
        let segment = data.name.last().and_then(|c| c.as_segment());
        let (prefix, segment) = match segment {
            Some(segment) => (data.name.drop_last(1), segment),
            // No segments at all: the Data is the object.
            None => (data.name, 0),
        };
        let whole = prefix.len() == data.name.len();
        self.start(prefix.to_name());
        if whole {
            self.end_at(0)?;
        }
        if segment == self.options.segments.first {
            // It was not asked for by the pipeline; ask and answer at once.
            let _ = self.pipeline.next_send(now);
            self.take_segment(now, segment, &data, packet.bytes(), packet.congestion_mark)?;
        }
        Ok(())
    }

    pub(crate) fn next_timer(&self) -> Tick {
        match &self.phase {
            Phase::Discovering(discovery) => discovery.next_timer(),
            Phase::Segments => self.pipeline.next_timer(),
            Phase::Failed(_) => Tick::NEVER,
        }
    }

    pub(crate) fn on_timer(&mut self, now: Tick) {
        if matches!(self.phase, Phase::Segments)
            && let Err(exhausted) = self.pipeline.on_timer(now)
        {
            self.exhausted(exhausted);
        }
    }

    fn exhausted(&mut self, pipeline::Exhausted(segment): pipeline::Exhausted) {
        let name = self.prefix.clone();
        let tries = self.options.pipeline.retries_max.saturating_add(1);
        self.fail(FetchError::Exhausted { name, segment, tries });
    }

    pub(crate) fn on_disconnected(&mut self) {
        self.pipeline.pause();
        self.outages += 1;
        if self.outages > OUTAGES_MAX && !self.is_over() {
            self.fail(FetchError::Disconnected);
        }
    }

    pub(crate) fn on_connected(&mut self, now: Tick) {
        self.patient_until = now + PATIENCE;
        self.pipeline.resume();
        if let Phase::Discovering(discovery) = &mut self.phase {
            *discovery = Discovery::new(now, self.options.find);
        }
    }

    pub(crate) fn on_closed(&mut self) {
        if !self.is_over() {
            self.fail(FetchError::Disconnected);
        }
    }
}
