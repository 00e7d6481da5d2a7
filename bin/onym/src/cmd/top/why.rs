//! What slows a node down, by stated rules over one interval.

use super::model::{Ailing, Face, Node, Snapshot};
use crate::human;
use crate::plain;
use onym_watch::Ailment;
use serde::Serialize;

/// A shard that is busier is the bottleneck.
const BUSY: f64 = 0.95;
/// A table that is fuller is.
const FULL: f64 = 0.9;
/// Lookups a second below which nothing is said about the cache.
const LOOKUPS: f64 = 100.0;

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Reason {
    /// The rule.
    pub(super) rule: &'static str,
    /// What was found, and what to do.
    pub(super) sentence: String,
}

fn reason(rule: &'static str, sentence: String) -> Reason {
    Reason { rule, sentence }
}

/// What is so now; what needs a comparison of counters is told when there is one.
pub(super) fn since(now: &Snapshot, before: Option<&Snapshot>) -> Vec<Reason> {
    let mut found = Vec::new();
    found.extend(now.ailing.iter().flatten().flat_map(of_faces));
    if now.faces_unseen > 0 {
        let unseen = human::count(now.faces_unseen as u64, "face");
        let what = format!(
            "Not looked at: {unseen}. The node is of an older version, which tells its busiest faces only; \
             update it."
        );
        found.push(reason("faces_unseen", what));
    }
    found.extend(tables(&now.node));
    if let Some(before) = before.filter(|before| before.node.start_ms == now.node.start_ms) {
        found.extend(shards(now, &before.node));
        found.extend(counters(now, &before.node));
    }
    found
}

/// The findings as text.
pub(super) fn text(found: &[Reason]) -> String {
    if found.is_empty() {
        return "Nothing: no queue is long, no table nearly full, no face silent, nothing is lost."
            .to_owned();
    }
    let lines: Vec<_> = found.iter().map(|reason| &reason.sentence[..]).collect();
    lines.join("\n")
}

/// What is told of the faces for which a rule holds; nothing by a rule of a newer node.
fn of_faces(found: &Ailing) -> Vec<Reason> {
    let mut rules = Ailment::ALL.into_iter();
    let Some(rule) = rules.find(|rule| rule.word() == found.rule) else { return Vec::new() };
    let told = found.worst.iter().map(|face| sentence(rule, face));
    let others = found.faces.saturating_sub(found.worst.len());
    let others = (others > 0).then(|| {
        let others = human::count(others as u64, "further face");
        format!("The same holds for {others}.")
    });
    told.chain(others).map(|sentence| reason(rule.word(), sentence)).collect()
}

#[allow(clippy::cast_precision_loss)]
fn sentence(rule: Ailment, face: &Face) -> String {
    let name = format!("Face {} ({})", face.face, plain::line(&face.uri));
    match rule {
        Ailment::Down => {
            format!("{name} is down: what is routed to it is lost until it connects again.")
        }
        Ailment::Queue => {
            let percent = fill(face.queue_bytes, face.queue_bytes_max) * 100.0;
            let next = match face.is_local {
                true => "The application reads too slowly",
                false => "The link or the peer is slower than what is sent to it",
            };
            format!("The send queue of {name} is {percent:.0} % full. {next}.")
        }
        Ailment::Losses => format!("{name}: {:.0} packets a second are not sent.", face.losses),
        Ailment::Silent => format!(
            "{name} answers {:.0} of {:.0} Interests a second: the producer behind it is slow, gone, \
             or does not have what it announced.",
            face.in_data + face.in_nacks,
            face.out_interests
        ),
    }
}

#[allow(clippy::cast_precision_loss)]
fn fill(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// How full the PIT is, in entries or octets.
fn pit_fill(node: &Node) -> f64 {
    fill(node.pit.entries, node.pit.entries_max).max(fill(node.pit.bytes, node.pit.bytes_max))
}

fn is_full_of_interests(node: &Node) -> bool {
    node.pit.entries_max > 0 && pit_fill(node) > FULL
}

fn tables(node: &Node) -> Vec<Reason> {
    let mut found = Vec::new();
    if is_full_of_interests(node) {
        let percent = pit_fill(node) * 100.0;
        let what = format!(
            "The PIT is {percent:.0} % full: Interests that nobody answers fill it, or pit.entries_max \
             and pit.bytes_max are too small."
        );
        found.push(reason("pit", what));
    }
    if node.rib.routes_max > 0 && fill(node.rib.routes, node.rib.routes_max) > FULL {
        let what = "Routes are nearly as many as tables.rib_routes_max.".to_owned();
        found.push(reason("routes", what));
    }
    found
}

#[allow(clippy::cast_precision_loss)]
fn shards(now: &Snapshot, before: &Node) -> Vec<Reason> {
    let interval_ns = now.interval_ms as f64 * 1e6;
    if interval_ns <= 0.0 {
        return Vec::new();
    }
    let pairs = now.node.busy_ns.iter().zip(&before.busy_ns).enumerate();
    let busy = pairs
        .map(|(shard, (now, before))| (shard, now.saturating_sub(*before) as f64 / interval_ns));
    let sentence = |(shard, share): (usize, f64)| {
        let percent = (share * 100.0).min(100.0);
        let what = format!(
            "Shard {shard} is busy {percent:.0} % of the time: the processor is the bottleneck. More \
             shards help where there are more cores (key shards)."
        );
        reason("shard", what)
    };
    busy.filter(|(_, share)| *share > BUSY).map(sentence).collect()
}

#[allow(clippy::cast_precision_loss)]
fn counters(now: &Snapshot, before: &Node) -> Vec<Reason> {
    let seconds = now.interval_ms as f64 / 1e3;
    if seconds <= 0.0 {
        return Vec::new();
    }
    let rate =
        |of: &dyn Fn(&Node) -> u64| of(&now.node).saturating_sub(of(before)) as f64 / seconds;
    let mut found = Vec::new();
    let dropped =
        |word: &str| rate(&|n: &Node| n.frames_dropped.get(word).copied().unwrap_or_default());
    let (overflow, late) = (dropped("receive_overflow"), dropped("listener_full"));
    if overflow + late > 0.0 {
        let what = format!(
            "{:.0} datagrams a second are lost before a shard takes them: receive buffers overflow. \
             Enlarge them (faces.udp.receive_buffer_bytes; `onym doctor` says what the kernel \
             grants), or slow the senders down.",
            overflow + late
        );
        found.push(reason("receive", what));
    }
    let refused = rate(&|n| {
        let of = |word: &str| n.dropped.get(word).copied().unwrap_or_default();
        of("pit_full") + of("pit_share")
    });
    if refused > 0.0 && !is_full_of_interests(&now.node) {
        let what = format!(
            "{refused:.0} Interests a second are refused because their face has its share of the PIT: \
             Interests that nobody answers fill it, or pit.entries_max and pit.bytes_max are too small."
        );
        found.push(reason("pit", what));
    }
    let lookups = rate(&|n| n.cs.hits + n.cs.misses);
    let is_full = now.node.cs.packets_max > 0
        && now.node.cs.entries as f64 > FULL * now.node.cs.packets_max as f64
        || now.node.cs.bytes_max > 0
            && now.node.cs.bytes as f64 > FULL * now.node.cs.bytes_max as f64;
    let hits = rate(&|n| n.cs.hits);
    if lookups > LOOKUPS && is_full && hits < 0.1 * lookups && hits > 0.0 {
        let what = format!(
            "The content store is full and answers {:.0} % of the lookups: what is asked again is gone \
             by then. Raise cs.packets_max and cs.bytes_max, or leave it.",
            100.0 * hits / lookups
        );
        found.push(reason("cache", what));
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::model::Tables;
    use super::*;

    fn idle() -> Snapshot {
        let face =
            Face { face: 300, uri: "udp4://192.0.2.1:6363".into(), up: true, ..Face::default() };
        let node = Node {
            busy_ns: vec![0],
            pit: Tables { entries_max: 100, bytes_max: 100, ..Tables::default() },
            cs: Tables { packets_max: 100, ..Tables::default() },
            rib: Tables { routes_max: 100, ..Tables::default() },
            ..Node::default()
        };
        Snapshot {
            interval_ms: 1000,
            node,
            faces: vec![face],
            faces_count: 1,
            ..Snapshot::default()
        }
    }

    /// The rules that hold after `change`, compared with the state before it.
    fn rules(change: impl FnOnce(&mut Snapshot)) -> Vec<&'static str> {
        let before = idle();
        let mut now = idle();
        change(&mut now);
        now.ailing = Some(Ailing::of(&now.faces));
        since(&now, Some(&before)).into_iter().map(|reason| reason.rule).collect()
    }

    #[test]
    fn an_idle_node_has_nothing() {
        assert!(rules(|_| {}).is_empty());
        assert!(text(&[]).starts_with("Nothing: "));
    }

    /// Law: reasons are of the faces that the node found among all of its own, however few it listed; what
    /// is not told of each is counted.
    #[test]
    fn what_is_wrong_with_a_face_is_told_whether_it_is_listed_or_not() {
        let mut now = idle();
        let down = |face| Face { face, uri: "tcp4://192.0.2.2:6363".into(), ..Face::default() };
        now.ailing = Some(Ailing::of(&(301..350).map(down).collect::<Vec<_>>()));
        let found = since(&now, None);
        let told = text(&found);
        assert!(told.starts_with("Face 301 (tcp4://192.0.2.2:6363) is down"), "{told}");
        assert!(told.ends_with("\nThe same holds for 29 further faces."), "{told}");
        assert!(found.iter().all(|reason| reason.rule == "face_down"), "{told}");
        now.ailing = Some(vec![Ailing { rule: "of_next_year".into(), ..Ailing::default() }]);
        assert!(since(&now, None).is_empty());
    }

    #[test]
    fn each_rule_holds_for_what_it_is_about_and_for_nothing_else() {
        assert_eq!(rules(|s| s.faces[0].up = false), ["face_down"]);
        let full =
            |s: &mut Snapshot| (s.faces[0].queue_bytes, s.faces[0].queue_bytes_max) = (60, 100);
        assert_eq!(rules(full), ["queue"]);
        assert_eq!(rules(|s| s.faces[0].losses = 3.0), ["losses"]);
        let silent =
            |s: &mut Snapshot| (s.faces[0].out_interests, s.faces[0].in_data) = (100.0, 20.0);
        assert_eq!(rules(silent), ["silent"]);
        let answers =
            |s: &mut Snapshot| (s.faces[0].out_interests, s.faces[0].in_data) = (100.0, 90.0);
        assert!(rules(answers).is_empty());
        assert_eq!(rules(|s| s.node.pit.entries = 95), ["pit"]);
        assert_eq!(rules(|s| s.node.pit.bytes = 95), ["pit"]);
        let refused = |s: &mut Snapshot| s.node.dropped = [("pit_share".to_owned(), 9)].into();
        assert_eq!(rules(refused), ["pit"], "before the table is full");
        assert_eq!(rules(|s| s.node.rib.routes = 95), ["routes"]);
        assert_eq!(rules(|s| s.node.busy_ns[0] = 990_000_000), ["shard"]);
        assert!(rules(|s| s.node.busy_ns[0] = 900_000_000).is_empty());
        for word in ["listener_full", "receive_overflow"] {
            let late = |s: &mut Snapshot| s.node.frames_dropped = [(word.to_owned(), 9)].into();
            assert_eq!(rules(late), ["receive"]);
        }
        let small = |s: &mut Snapshot| {
            s.node.cs = Tables {
                entries: 100,
                packets_max: 100,
                hits: 5,
                misses: 995,
                ..Tables::default()
            };
        };
        assert_eq!(rules(small), ["cache"]);
    }

    #[test]
    fn a_node_that_started_again_is_not_compared() {
        let mut now = idle();
        (now.node.start_ms, now.node.busy_ns) = (7, vec![990_000_000]);
        assert!(since(&now, Some(&idle())).is_empty());
    }
}
