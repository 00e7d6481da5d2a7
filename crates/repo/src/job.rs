//! What a command asks for, and how far it is: no packets, no clock.

use crate::admission::Act;
use crate::command::{self, ObjectParam, ObjectResult};
use onym_wire::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Segments that are asked for at a time.
const WINDOW: usize = 10;
/// Packets that may wait for the store.
const STORING_MAX: u64 = 256;

/// One object of a job, as it is noted in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectJob {
    /// Its name, as a URI.
    pub name: String,
    /// Forwarding hint.
    pub hint: Vec<String>,
    /// First segment; none with no `end`: one packet of exactly this name.
    pub start: Option<u64>,
    /// Last segment asked for.
    pub end: Option<u64>,
    /// All before it are on the disk.
    pub next: u64,
    /// Its status.
    pub status: u64,
    /// Packets inserted.
    pub inserted: u64,
    /// Packets deleted.
    pub deleted: u64,
}

/// A job, as it is noted in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Inserts, or deletes.
    pub inserts: bool,
    /// Whose the packets are, as a URI.
    pub owner: String,
    /// Its objects.
    pub objects: Vec<ObjectJob>,
    /// Its status.
    pub status: u64,
    /// When it ended, in milliseconds since the Unix epoch.
    pub ended_ms: Option<u64>,
}

impl ObjectJob {
    /// Whether it is one packet of exactly this name.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }
}

impl Job {
    /// A job for what `objects` ask; those under or above `own` are refused.
    #[must_use]
    pub fn new(act: Act, owner: &Name, own: &Name, objects: &[ObjectParam]) -> Self {
        let mut job = Self {
            inserts: act == Act::Insert,
            owner: owner.to_string(),
            objects: Vec::new(),
            status: command::RUNNING,
            ended_ms: None,
        };
        for object in objects {
            let (own, name) = (own.as_ref(), object.name.as_ref());
            let is_own = own.is_prefix_of(name) || name.is_prefix_of(own);
            job.objects.push(ObjectJob {
                name: object.name.to_string(),
                hint: object.hint.iter().map(Name::to_string).collect(),
                start: object.start,
                end: object.end,
                next: object.start.unwrap_or(0),
                status: if is_own { command::REFUSED } else { command::QUEUED },
                inserted: 0,
                deleted: 0,
            });
        }
        job
    }

    /// A command that was refused as a whole.
    #[must_use]
    pub fn refused(now_ms: u64) -> Self {
        let (owner, objects) = (String::new(), Vec::new());
        let status = command::REFUSED;
        Self { inserts: true, owner, objects, status, ended_ms: Some(now_ms) }
    }

    /// The object that is worked on.
    #[must_use]
    pub fn current(&self) -> Option<usize> {
        self.objects.iter().position(|o| matches!(o.status, command::QUEUED | command::RUNNING))
    }

    /// Its last object ended.
    pub fn end(&mut self, now_ms: u64) {
        let is_done = self.objects.iter().all(|o| o.status == command::DONE);
        let all_refused = self.objects.iter().all(|o| o.status == command::REFUSED);
        let has_no_room = self.objects.iter().any(|o| o.status == command::NO_ROOM);
        self.status = match (is_done, all_refused, has_no_room) {
            (true, ..) => command::DONE,
            (_, true, _) => command::REFUSED,
            (.., true) => command::NO_ROOM,
            _ => command::FAILED,
        };
        self.ended_ms = Some(now_ms);
    }

    /// The answer to a check.
    #[must_use]
    pub fn result(&self) -> Vec<u8> {
        let results: Vec<ObjectResult> = self
            .objects
            .iter()
            .map(|o| ObjectResult {
                name: o.name.parse().unwrap_or_default(),
                status: o.status,
                inserted: self.inserts.then_some(o.inserted),
                deleted: (!self.inserts).then_some(o.deleted),
            })
            .collect();
        command::write_result(self.status, &results)
    }
}

/// The fetch of one object: which segment next, what came, what the store took.
#[derive(Debug)]
pub struct Fetching {
    /// The next to ask for.
    ask_next: u64,
    /// The next for the store.
    expected: u64,
    /// The last one, once known.
    last: Option<u64>,
    asked: usize,
    storing: u64,
    arrived: BTreeMap<u64, Vec<u8>>,
    /// The first that cannot be had.
    lost: Option<u64>,
    is_refused: bool,
}

impl Fetching {
    /// Begins, or goes on, where `object` is.
    #[must_use]
    pub fn new(object: &ObjectJob) -> Self {
        let last = if object.is_single() { Some(0) } else { object.end };
        Self { last, ..Self::from_segment(object.next) }
    }

    /// All segments from `first` on.
    #[must_use]
    pub fn from_segment(first: u64) -> Self {
        Self {
            ask_next: first,
            expected: first,
            last: None,
            asked: 0,
            storing: 0,
            arrived: BTreeMap::new(),
            lost: None,
            is_refused: false,
        }
    }

    /// Whether it is known which segment is the last one.
    #[must_use]
    pub fn is_end_known(&self) -> bool {
        self.last.is_some()
    }

    /// Up to where segments are wanted.
    fn stop(&self) -> u64 {
        let behind = self.last.map_or(u64::MAX, |last| last.saturating_add(1));
        behind.min(self.lost.unwrap_or(u64::MAX))
    }

    /// The next segment to ask for now.
    pub fn next_ask(&mut self) -> Option<u64> {
        let busy = self.asked + self.arrived.len() >= WINDOW || self.storing >= STORING_MAX;
        if busy || self.ask_next >= self.stop() {
            return None;
        }
        self.asked += 1;
        self.ask_next += 1;
        Some(self.ask_next - 1)
    }

    /// A segment came; `last` is what it says about the end.
    pub fn arrived(&mut self, segment: u64, packet: Vec<u8>, last: Option<u64>) {
        self.asked -= 1;
        if let Some(last) = last {
            self.last = Some(self.last.map_or(last, |known| known.min(last)));
        }
        self.arrived.insert(segment, packet);
    }

    /// A segment cannot be had.
    pub fn lost(&mut self, segment: u64) {
        self.asked -= 1;
        self.lost = Some(self.lost.map_or(segment, |lost| lost.min(segment)));
    }

    /// What is next for the store, in order.
    pub fn take_ready(&mut self) -> Vec<Vec<u8>> {
        let mut ready = Vec::new();
        while self.expected < self.stop()
            && let Some(packet) = self.arrived.remove(&self.expected)
        {
            ready.push(packet);
            self.expected += 1;
            self.storing += 1;
        }
        ready
    }

    /// The store answered for `count` packets.
    pub fn stored(&mut self, count: u64) {
        self.storing -= count;
    }

    /// The store refused a packet: nothing more is wanted.
    pub fn refuse(&mut self) {
        self.lost = Some(0);
        self.is_refused = true;
    }

    /// Whether the object ended, and well.
    #[must_use]
    pub fn ended(&self) -> Option<bool> {
        let over = self.expected >= self.stop() && self.asked == 0 && self.storing == 0;
        let whole = self.lost.is_none_or(|lost| self.last.is_some_and(|last| lost > last));
        over.then_some(whole)
    }

    /// The status of the object, once it ended.
    #[must_use]
    pub fn status(&self) -> Option<u64> {
        self.ended().map(|is_whole| match (is_whole, self.is_refused) {
            (true, _) => command::DONE,
            (false, true) => command::NO_ROOM,
            (false, false) => command::FAILED,
        })
    }

    /// Whether something waits for the store.
    #[must_use]
    pub fn is_storing(&self) -> bool {
        self.storing > 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn job(start: Option<u64>, end: Option<u64>) -> Job {
        let object =
            ObjectParam { name: "/d/f".parse().unwrap(), start, end, ..ObjectParam::default() };
        Job::new(Act::Insert, &Name::new(), &"/repo".parse().unwrap(), &[object])
    }

    #[test]
    fn a_range_of_all_numbers_ends_where_nobody_has_a_segment() {
        let job = job(Some(0), Some(1 << 63));
        let mut fetching = Fetching::new(&job.objects[0]);
        let mut asked = 0;
        while let Some(segment) = fetching.next_ask() {
            asked += 1;
            if segment < 3 {
                fetching.arrived(segment, vec![], None)
            } else {
                fetching.lost(segment)
            }
            let ready = fetching.take_ready().len() as u64;
            fetching.stored(ready);
        }
        assert!(asked <= 4, "{asked}");
        assert_eq!(fetching.ended(), Some(false));
    }

    /// Law: an object of 10 GB takes no more room on its way than a window, in whatever order it comes,
    /// and no more of it waits for the store than may.
    #[test]
    fn an_object_of_ten_gigabytes_has_a_window_on_its_way() {
        let segments = 10_000_000_000_u64 / 8000;
        let mut fetching = Fetching::new(&job(Some(0), None).objects[0]);
        let mut stored = 0;
        while fetching.ended().is_none() {
            let asked: Vec<u64> = std::iter::from_fn(|| fetching.next_ask()).collect();
            assert!(asked.len() <= WINDOW && fetching.arrived.len() <= WINDOW);
            for segment in asked.into_iter().rev() {
                fetching.arrived(segment, Vec::new(), Some(segments - 1));
            }
            let _ = fetching.take_ready();
            assert!(fetching.storing <= STORING_MAX + WINDOW as u64);
            if fetching.storing >= STORING_MAX || fetching.expected >= segments {
                stored += fetching.storing;
                fetching.stored(fetching.storing);
            }
        }
        assert_eq!((fetching.ended(), stored), (Some(true), segments));
    }

    #[test]
    fn packets_reach_the_store_in_order_and_the_end_is_what_the_producer_says() {
        let job = job(Some(0), None);
        let mut fetching = Fetching::new(&job.objects[0]);
        let first: Vec<u64> = std::iter::from_fn(|| fetching.next_ask()).collect();
        assert_eq!(first.len(), 10);
        fetching.arrived(1, vec![1], Some(1));
        assert!(fetching.take_ready().is_empty());
        fetching.arrived(0, vec![0], Some(1));
        assert_eq!(fetching.take_ready(), [vec![0], vec![1]]);
        for segment in 2..10 {
            fetching.lost(segment);
        }
        fetching.stored(2);
        assert_eq!(fetching.next_ask(), None);
        // What is behind the end was not wanted.
        assert_eq!(fetching.ended(), Some(true));
    }

    #[test]
    fn names_of_the_repository_itself_are_refused() {
        for name in ["/repo", "/repo/insert", "/"] {
            let name = if name == "/" { Name::new() } else { name.parse().unwrap() };
            let object = ObjectParam { name, ..ObjectParam::default() };
            let mut job = Job::new(Act::Delete, &Name::new(), &"/repo".parse().unwrap(), &[object]);
            assert_eq!(job.current(), None);
            job.end(7);
            assert_eq!(job.status, command::REFUSED);
        }
    }

    #[test]
    fn a_job_is_noted_and_read_again() {
        let job = job(Some(3), Some(9));
        let text = serde_json::to_vec(&job).unwrap();
        assert_eq!(serde_json::from_slice::<Job>(&text).unwrap(), job);
        assert_eq!(Fetching::new(&job.objects[0]).next_ask(), Some(3));
    }
}
