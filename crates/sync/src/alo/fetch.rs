//! Fetching objects: one Data, segments, or the newest version by its metadata.

use super::key::Key;
use super::{Alo, AloEvent, VerifyId, object};
use crate::Judged;
use onym_endpoint::{Packet, Request, RequestId};
use onym_tables::Tick;
use onym_wire::{Name, types};
use std::collections::BTreeMap;
use std::time::Duration;

/// Segments of one object that are asked for at the same time.
const WINDOW: usize = 8;
const LIFETIME: Duration = Duration::from_secs(1);
const TRIES: u32 = 4;

/// What is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Publication(u64),
    /// Metadata of the newest snapshot, then the snapshot of that version.
    SnapshotName,
    Snapshot(u64),
    IndexName,
    Index,
    Bundle(u64),
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: Key,
    pub(crate) what: What,
    /// Name without the segment number.
    base: Name,
    parts: BTreeMap<u64, Vec<u8>>,
    octets: usize,
    /// Next segment to ask for.
    next: u64,
    last: Option<u64>,
}

/// Objects under way.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    jobs: BTreeMap<u64, Job>,
    requests: BTreeMap<RequestId, (u64, u64)>,
    verifying: BTreeMap<u64, (u64, u64, Packet)>,
    next: u64,
}

impl Fetches {
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }
}

impl Alo {
    /// Starts to fetch `what` under `base`. Its end is `on_object` or `on_failure`.
    pub(crate) fn fetch(&mut self, now: Tick, key: &Key, what: What, base: Name) {
        let id = self.fetches.next;
        self.fetches.next += 1;
        let parts = BTreeMap::new();
        let job = Job { key: key.clone(), what, base, parts, octets: 0, next: 0, last: None };
        self.fetches.jobs.insert(id, job);
        self.ask_more(now, id);
    }

    fn request(&self, job: &Job) -> Request {
        let mut name = job.base.clone();
        let by_metadata = matches!(job.what, What::SnapshotName | What::IndexName);
        let is_single = matches!(job.what, What::Publication(_)) && self.config.layout.is_single();
        if by_metadata {
            name.append_keyword("metadata");
        } else if !is_single {
            name.append_segment(job.next);
        }
        Request {
            can_be_prefix: by_metadata,
            must_be_fresh: by_metadata,
            lifetime: LIFETIME,
            tries: TRIES,
            ..Request::new(name)
        }
    }

    fn ask_more(&mut self, now: Tick, id: u64) {
        loop {
            let waiting = self.fetches.requests.values().filter(|(job, _)| *job == id).count()
                + self.fetches.verifying.values().filter(|(job, ..)| *job == id).count();
            let Some(job) = self.fetches.jobs.get(&id) else { return };
            // The number of segments is in the first one that comes.
            let window = if job.last.is_some() { WINDOW } else { 1 };
            if waiting >= window || job.next > job.last.unwrap_or(0) {
                return;
            }
            let (segment, request) = (job.next, self.request(job));
            let Ok(asked) = self.endpoint.express(now, &request) else {
                return self.fail(now, id);
            };
            self.fetches.requests.insert(asked, (id, segment));
            if let Some(job) = self.fetches.jobs.get_mut(&id) {
                job.next += 1;
            }
        }
    }

    pub(crate) fn on_data(&mut self, now: Tick, asked: RequestId, packet: Packet) {
        let Some((id, segment)) = self.fetches.requests.remove(&asked) else { return };
        if !self.checks() {
            return self.on_part(now, id, segment, &packet);
        }
        let verify = self.fetches.next;
        self.fetches.next += 1;
        let wire = packet.wire().to_vec();
        self.fetches.verifying.insert(verify, (id, segment, packet));
        self.events.push_back(AloEvent::Verify { id: VerifyId::Data(verify), packet: wire });
    }

    pub(crate) fn data_verified(&mut self, now: Tick, verify: u64, judged: Judged) {
        let Some((id, segment, packet)) = self.fetches.verifying.remove(&verify) else { return };
        if judged == Judged::Good {
            self.on_part(now, id, segment, &packet);
        } else {
            self.fail(now, id);
        }
    }

    pub(crate) fn on_unanswered(&mut self, now: Tick, asked: RequestId) {
        if let Some((id, _)) = self.fetches.requests.remove(&asked) {
            self.fail(now, id);
        }
    }

    fn on_part(&mut self, now: Tick, id: u64, segment: u64, packet: &Packet) {
        let limits = self.config.limits;
        let Some(job) = self.fetches.jobs.get_mut(&id) else { return };
        let data = packet.data();
        let content = data.content;
        let last = data.final_block_id.and_then(|c| c.as_segment());
        // An application-level Nack holds nothing; without FinalBlockId there is no end to segments.
        let is_object = data.content_type != types::CONTENT_NACK;
        let is_whole = matches!(job.what, What::SnapshotName | What::IndexName)
            || data.name.value() == job.base.value();
        job.last = if is_whole { Some(0) } else { last.or(job.last) };
        job.octets += content.len();
        self.held += content.len();
        job.parts.insert(segment, content.to_vec());
        let is_short = job.octets <= limits.object_octets_max
            && job.last.is_some_and(|last| last <= (limits.object_octets_max / 64) as u64)
            && self.held <= limits.held_octets_max;
        if !is_object || !is_short {
            return self.fail(now, id);
        }
        if job.last.is_some_and(|last| job.parts.len() as u64 > last) {
            self.finish(now, id);
        } else {
            self.ask_more(now, id);
        }
    }

    fn finish(&mut self, now: Tick, id: u64) {
        let Some(job) = self.forget_job(id) else { return };
        let mut content = Vec::with_capacity(job.octets);
        job.parts.values().for_each(|part| content.extend_from_slice(part));
        self.counters.fetched += 1;
        let key = job.key;
        let taken = match job.what {
            What::Publication(seq) => {
                self.on_publication(now, &key, seq, content);
                Ok(())
            }
            What::SnapshotName | What::IndexName => {
                object::read_metadata(&content, &job.base).map(|(name, version)| {
                    let snapshot = job.what == What::SnapshotName;
                    let what = if snapshot { What::Snapshot(version) } else { What::Index };
                    self.fetch(now, &key, what, name);
                })
            }
            What::Snapshot(version) => {
                self.on_snapshot(now, &key, version, content);
                Ok(())
            }
            What::Index => {
                object::read_index(&content).map(|index| self.on_index(now, &key, &index))
            }
            What::Bundle(last) => {
                object::read_history(&content).map(|all| self.on_bundle(now, &key, last, all))
            }
        };
        if taken.is_err() {
            self.counters.failed += 1;
            self.on_failure(now, &key, job.what);
        }
    }

    fn fail(&mut self, now: Tick, id: u64) {
        let Some(job) = self.forget_job(id) else { return };
        self.counters.failed += 1;
        self.on_failure(now, &job.key, job.what);
    }

    fn forget_job(&mut self, id: u64) -> Option<Job> {
        let job = self.fetches.jobs.remove(&id)?;
        self.held -= job.octets;
        let of_job = self.fetches.requests.iter().filter(|(_, (job, _))| *job == id);
        let asked: Vec<RequestId> = of_job.map(|(asked, _)| *asked).collect();
        for asked in asked {
            self.endpoint.cancel(asked);
            self.fetches.requests.remove(&asked);
        }
        self.fetches.verifying.retain(|_, (job, ..)| *job != id);
        Some(job)
    }

    /// Ends what is fetched of `key` and `chosen`, without a word.
    pub(crate) fn abandon(&mut self, key: &Key, chosen: impl Fn(What) -> bool) {
        let jobs = self.fetches.jobs.iter();
        let ids: Vec<u64> = jobs
            .filter(|(_, job)| job.key == *key && chosen(job.what))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.forget_job(id);
        }
    }
}
