//! Strategies through the whole data path: what really leaves, and when.

mod support;

use onym_forward::{Event, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, PacketKind};
use onym_tables::FaceId;
use onym_wire::lp::NackReason;
use support::{Bench, I, data_bytes, name};

/// Faces 256 (downstream) to 259, with routes for `/a` over the last three.
fn four(strategy: &str) -> Bench {
    Bench::new()
        .faces(4)
        .route("/a", 257, 1)
        .route("/a", 258, 2)
        .route("/a", 259, 3)
        .strategy("/a", strategy)
}

/// Faces to which Interests left.
fn went(b: &mut Bench) -> Vec<u32> {
    b.left().iter().filter(|l| l.kind == PacketKind::Interest).map(|l| l.face).collect()
}

#[test]
fn access_asks_the_others_when_the_last_working_next_hop_is_silent() {
    let mut b = four("access");
    b.interest(256, &I::new("/a/1", 1));
    assert_eq!(went(&mut b), [257, 258, 259]);
    b.wait(20);
    assert_eq!(b.data(258, "/a/1", 0), Verdict::Satisfied);
    b.left();
    b.interest(256, &I::new("/a/2", 2));
    assert_eq!(went(&mut b), [258]);
    b.wait(199);
    assert_eq!(went(&mut b), []);
    // Timers are as exact as the wheel's slots.
    b.wait(9);
    assert_eq!(went(&mut b), [257, 259]);
    b.check();
}

#[test]
fn asf_sends_to_the_fastest_next_hop_after_probes_and_measures_late_answers() {
    let mut b = four("asf/v=5/probing-interval~1000");
    let delays = [(257, 60), (258, 20), (259, 90)];
    let mut last = Vec::new();
    for number in 0..200_u32 {
        let uri = format!("/a/{number}");
        b.interest(256, &I::new(&uri, number + 1));
        last = went(&mut b);
        let mut passed = 0;
        let mut due: Vec<_> = delays.iter().filter(|(face, _)| last.contains(face)).collect();
        due.sort_by_key(|(_, delay)| *delay);
        for (face, delay) in due {
            b.wait(delay - passed);
            passed = *delay;
            // A probe's answer within 50 ms of the first finds the entry still.
            b.data(*face, &uri, 0);
        }
        b.wait(100 - passed);
        assert_eq!(b.fw.pit_len(), 0, "no entry lingers longer than 50 ms");
    }
    assert_eq!(last[0], 258);
    b.check();
}

#[test]
fn asf_leaves_a_next_hop_whose_link_gave_the_interest_up() {
    let mut b = four("asf");
    let interest = I::new("/a/1", 1);
    b.interest(256, &interest);
    assert_eq!(went(&mut b), [257]);
    let stale = I::new("/a/1", 99).bytes();
    b.fw.interest_lost(b.now, FaceId(257), &stale, &mut b.out);
    b.interest(256, &I::new("/a/2", 2));
    assert_eq!(went(&mut b), [257], "another Nonce tells of an older sending");
    b.fw.interest_lost(b.now, FaceId(257), &interest.bytes(), &mut b.out);
    b.interest(256, &I::new("/a/3", 3));
    assert_eq!(went(&mut b), [258]);
    b.check();
}

#[test]
fn random_uses_every_next_hop() {
    let mut b = four("random");
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..100_u32 {
        b.interest(256, &I::new(&format!("/a/{number}"), number + 1));
        seen.extend(went(&mut b));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [257, 258, 259]);
}

#[test]
fn a_discovery_is_broadcast_and_its_announcement_is_told_to_the_shell() {
    let mut b = Bench::new().faces(3).local(300).strategy("/", "self-learning");
    assert_eq!(b.interest(256, &I::new("/s/1", 1)), Verdict::Forwarded);
    let mut faces = went(&mut b);
    faces.sort_unstable();
    assert_eq!(faces, [257, 258]);
    let announcement: Buf = data_bytes("/s/32=PA/v=1/seg=0", 0, b"");
    let lp = LpIn { prefix_announcement: Some(announcement.clone()), ..LpIn::default() };
    assert_eq!(b.receive(258, data_bytes("/s/1", 0, b""), lp), Verdict::Satisfied);
    assert_eq!(b.fw.take_events(), [Event::Learn { face: FaceId(258), announcement }]);
    b.check();
}

#[test]
fn a_learned_route_is_used_without_discovery_and_told_when_it_fails() {
    let mut b = Bench::new().faces(3).strategy("/", "self-learning").route("/s", 258, 2048);
    let interest = I::new("/s/1", 1);
    b.interest(256, &interest);
    assert!(b.out.items[0].as_pull().expect("a packet").1.non_discovery);
    assert_eq!(went(&mut b), [258]);
    assert_eq!(b.nack(258, &interest, 150), Verdict::NackForwarded);
    assert_eq!(b.short(), ["256 nack150 /s/1"]);
    let unlearn = Event::Unlearn { face: FaceId(258), name: name("/s/1") };
    assert_eq!(b.fw.take_events(), [unlearn]);
    b.check();
}

#[test]
fn data_for_a_discovery_carries_the_announcement_that_is_known_here() {
    let mut b = Bench::new().faces(2).local(300).strategy("/", "self-learning").route("/s", 300, 0);
    let announcement = data_bytes("/s/32=PA/v=1/seg=0", 0, b"");
    assert!(b.fw.announcement_set(name("/s").as_ref(), Some(announcement.clone())));
    b.interest(256, &I::new("/s/1", 1));
    let mut known = I::new("/s/1", 2);
    known.lp.non_discovery = true;
    b.interest(257, &known);
    b.left();
    b.data(300, "/s/1", 0);
    let told = |face: u32| {
        let item = b.out.items.iter().find(|t| t.face == FaceId(face)).expect("sent");
        item.as_pull().and_then(|(_, lp)| lp.prefix_announcement.clone())
    };
    assert_eq!(told(256), Some(announcement));
    assert_eq!(told(257), None);
    b.check();
}

#[test]
fn a_loop_is_nacked_by_all_strategies_but_multicast() {
    for (strategy, nacks) in [
        ("access", true),
        ("asf", true),
        ("best-route", true),
        ("multicast", false),
        ("random", true),
        ("self-learning", true),
    ] {
        let mut b = four(strategy);
        b.interest(256, &I::new("/a/1", 1));
        b.left();
        b.interest(258, &I::new("/a/1", 1));
        let nacked =
            b.left().iter().any(|l| l.face == 258 && l.nack == Some(NackReason::DUPLICATE));
        assert_eq!(nacked, nacks, "{strategy}");
        b.check();
    }
}

#[test]
fn no_strategy_sends_back_on_a_point_to_point_face_and_all_may_on_an_ad_hoc_one() {
    use onym_forward::FaceInfo;
    use onym_wire::mgmt::{LinkType, Scope};
    for strategy in ["access", "asf", "best-route", "multicast", "random", "self-learning"] {
        let mut b = Bench::new().faces(1).route("/a", 256, 0).strategy("/a", strategy);
        b.interest(256, &I::new("/a/1", 1));
        assert_eq!(went(&mut b), [], "{strategy}");
        let ad_hoc =
            FaceInfo { scope: Scope::NonLocal, link: LinkType::AdHoc, local_fields: false };
        b.fw.face_add(FaceId(256), ad_hoc);
        b.interest(256, &I::new("/a/2", 2));
        assert_eq!(went(&mut b), [256], "{strategy}");
        b.check();
    }
}
