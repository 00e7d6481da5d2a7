//! The last hour of the node: a row every five seconds, of counters that exist, in a ring of fixed size.

use super::viewers::Counted;
use onym_engine::clock::unix_ms;
use onym_tables::{FaceId, Tick};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// The time of a row, in milliseconds.
const STEP_MS: u64 = 5000;
/// Rows that are kept: an hour.
const ROWS_MAX: usize = 720;
/// Faces of a row: those with most packets.
const BUSIEST: usize = 8;

/// What the first numbers of a row are. The first is a moment, in milliseconds of Unix time; the next
/// [`COUNTS`] were counted since the row before, the others are so at the moment.
const COLUMNS: [&str; 15] = [
    "at_ms",
    "in_interests",
    "in_data",
    "out_interests",
    "out_data",
    "in_bytes",
    "out_bytes",
    "dropped",
    "unsent",
    "cs_hits",
    "cs_misses",
    "pit_entries",
    "cs_entries",
    "queue_bytes",
    "faces",
];
/// How many columns are counted.
pub(super) const COUNTS: usize = 10;
/// Columns that are so at the moment.
pub(super) const LEVELS: usize = COLUMNS.len() - 1 - COUNTS;

/// What the numbers of a face in a row are; as above, but for its number.
const FACE_COLUMNS: [&str; 7] =
    ["face", "in_packets", "out_packets", "in_bytes", "out_bytes", "losses", "queue_bytes"];

/// A face, since the row before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Busy {
    in_packets: u64,
    out_packets: u64,
    in_bytes: u64,
    out_bytes: u64,
    losses: u64,
    queue_bytes: u64,
}

impl Busy {
    /// What it counted since it is there.
    pub(super) fn of(counted: &Counted) -> Self {
        let (p, o) = (&counted.packets, &counted.owner);
        Self {
            in_packets: p.in_interests + p.in_data + p.in_nacks,
            out_packets: p.out_interests + p.out_data + p.out_nacks,
            in_bytes: o.traffic.in_bytes,
            out_bytes: o.traffic.out_bytes,
            losses: counted.losses(),
            queue_bytes: o.queued as u64,
        }
    }

    /// What came since `before`.
    fn since(self, before: Self) -> Self {
        Self {
            in_packets: self.in_packets.saturating_sub(before.in_packets),
            out_packets: self.out_packets.saturating_sub(before.out_packets),
            in_bytes: self.in_bytes.saturating_sub(before.in_bytes),
            out_bytes: self.out_bytes.saturating_sub(before.out_bytes),
            losses: self.losses.saturating_sub(before.losses),
            queue_bytes: self.queue_bytes,
        }
    }

    fn packets(&self) -> u64 {
        self.in_packets + self.out_packets
    }

    fn numbers(&self, face: FaceId) -> [u64; FACE_COLUMNS.len()] {
        let Self { in_packets, out_packets, in_bytes, out_bytes, losses, queue_bytes } = *self;
        [face.0.into(), in_packets, out_packets, in_bytes, out_bytes, losses, queue_bytes]
    }
}

/// The node at one moment.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) at_ms: u64,
    pub(super) counts: [u64; COUNTS],
    pub(super) levels: [u64; LEVELS],
    pub(super) faces: HashMap<FaceId, Busy>,
}

#[derive(Debug)]
struct Row {
    at_ms: u64,
    counts: [u64; COUNTS],
    levels: [u64; LEVELS],
    busiest: Vec<(FaceId, Busy)>,
}

impl Row {
    /// What `now` has over `before`.
    fn between(before: &Moment, now: &Moment) -> Self {
        let mut counts = now.counts;
        for (count, past) in counts.iter_mut().zip(before.counts) {
            *count = count.saturating_sub(past);
        }
        let each = now.faces.iter().map(|(id, busy)| {
            // A face that came since began with nothing.
            (*id, busy.since(before.faces.get(id).copied().unwrap_or_default()))
        });
        let mut busiest: Vec<_> = each.filter(|(_, b)| b.packets() + b.losses > 0).collect();
        busiest.sort_unstable_by_key(|(id, busy)| (Reverse(busy.packets()), id.0));
        busiest.truncate(BUSIEST);
        busiest.shrink_to_fit();
        Self { at_ms: now.at_ms, counts, levels: now.levels, busiest }
    }

    fn numbers(&self) -> Vec<u64> {
        [self.at_ms].into_iter().chain(self.counts).chain(self.levels).collect()
    }
}

/// The ring.
#[derive(Debug)]
pub(super) struct History {
    rows: VecDeque<Row>,
    /// The moment of the last row; none before the first.
    last: Option<Moment>,
    due: Tick,
}

impl History {
    /// Empty; the first row ends a step after `now`.
    pub(super) const fn new(now: Tick) -> Self {
        Self { rows: VecDeque::new(), last: None, due: now }
    }

    pub(super) const fn poll_timeout(&self) -> Tick {
        self.due
    }

    /// Whether a row is due; then the next one is in a step.
    pub(super) fn is_due(&mut self, now: Tick) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = now + Duration::from_millis(STEP_MS);
        }
        is_due
    }

    /// Takes the moment of now; the row since the one before is kept in place of the oldest.
    pub(super) fn take(&mut self, now: Moment) {
        if let Some(before) = &self.last {
            if self.rows.len() == ROWS_MAX {
                self.rows.pop_front();
            }
            self.rows.push_back(Row::between(before, &now));
        }
        self.last = Some(now);
    }

    /// Rows after the moment `since`, in order.
    fn after(&self, since: u64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.at_ms > since)
    }

    /// `/localhost/onym/history`: the rows after `since`, of a node that started at `start_ms`; `uri`
    /// is where a face leads, while it is there.
    pub(super) fn json(
        &self,
        since: u64,
        start_ms: u64,
        uri: impl Fn(FaceId) -> Option<String>,
    ) -> String {
        let mut uris: BTreeMap<String, Option<String>> = BTreeMap::new();
        let (mut rows, mut busiest) = (Vec::new(), Vec::new());
        for row in self.after(since) {
            rows.push(row.numbers());
            for (id, _) in &row.busiest {
                uris.entry(id.0.to_string()).or_insert_with(|| uri(*id));
            }
            busiest.push(row.busiest.iter().map(|(id, b)| b.numbers(*id)).collect::<Vec<_>>());
        }
        uris.retain(|_, uri| uri.is_some());
        json!({
            "now_ms": unix_ms(),
            "start_ms": start_ms,
            "step_ms": STEP_MS,
            "rows_max": ROWS_MAX,
            "columns": COLUMNS,
            "counts": COUNTS,
            "rows": rows,
            "face_columns": FACE_COLUMNS,
            "busiest": busiest,
            "uris": uris,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at: u64, count: u64, faces: &[(u32, u64)]) -> Moment {
        let busy = |packets| Busy { in_packets: packets, ..Busy::default() };
        Moment {
            at_ms: at,
            counts: [count; COUNTS],
            levels: [at; LEVELS],
            faces: faces.iter().map(|(id, n)| (FaceId(*id), busy(*n))).collect(),
        }
    }

    #[test]
    fn a_row_has_what_came_since_the_one_before_and_the_faces_with_most() {
        let mut history = History::new(Tick::default());
        history.take(moment(1, 10, &[(300, 5)]));
        assert_eq!(history.after(0).count(), 0, "nothing to compare with");
        let many: Vec<(u32, u64)> = (0..20).map(|n| (300 + n, 5 + u64::from(n))).collect();
        history.take(moment(2, 14, &many));
        let row = history.after(0).next().unwrap();
        assert_eq!((row.counts, row.levels), ([4; COUNTS], [2; LEVELS]));
        assert_eq!(row.numbers().len(), COLUMNS.len());
        let ids: Vec<u32> = row.busiest.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [319, 318, 317, 316, 315, 314, 313, 312]);
        // Nothing came by face 300, which had been there.
        assert_eq!(row.busiest[0].1.numbers(FaceId(319))[1], 24);
        let uri = |id: FaceId| (id.0 != 318).then(|| format!("udp4://192.0.2.{}:6363", id.0 - 300));
        let told: serde_json::Value = serde_json::from_str(&history.json(1, 9, uri)).unwrap();
        assert_eq!((&told["rows"][0][1], &told["start_ms"]), (&4.into(), &9.into()), "{told}");
        assert_eq!(told["busiest"][0][0][0], 319);
        assert_eq!(told["uris"]["319"], "udp4://192.0.2.19:6363");
        assert!(told["uris"]["318"].is_null(), "it is gone: {told}");
    }

    #[test]
    fn an_hour_is_kept_and_then_the_oldest_goes() {
        let mut history = History::new(Tick::default());
        for at in 0..=ROWS_MAX as u64 + 10 {
            history.take(moment(at, at, &[]));
        }
        assert_eq!(history.after(0).count(), ROWS_MAX);
        assert_eq!(history.after(0).next().unwrap().at_ms, 11);
        assert_eq!(history.after(ROWS_MAX as u64 + 7).count(), 3);
    }
}
