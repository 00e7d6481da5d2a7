//! Caches, filters, strategies, dispatcher, freezes and the way back.

use super::*;

#[test]
fn the_modes_of_freshness_are_the_paper_and_the_protocol() {
    let ask = |bed: &mut Bed, fresh: bool, nonce: u32| {
        let wire = interest_of("/a", nonce, |i| i.must_be_fresh = fresh);
        bed.take(packet(256, wire, &[], None)).0
    };
    use Verdict::{CsHit, Forwarded};
    for (mode, unfresh, now, later) in [
        ("protocol", CsHit, [CsHit, CsHit], [Forwarded, CsHit]),
        ("paper", Forwarded, [Forwarded, CsHit], [Forwarded, Forwarded]),
    ] {
        let mut cs = Bed::new(Kind::ContentStore, &[256, 300]);
        cs.set(json!({ "mode": mode }));
        cs.take(packet(300, data_of("/unfresh", 0), &[], None));
        assert_eq!(cs.interest(256, "/unfresh", 9).0, unfresh, "{mode}, without freshness");
        cs.set(json!({ "admit_unfresh": false }));
        cs.take(packet(300, data_of("/never", 0), &[], None));
        assert_eq!(cs.interest(256, "/never", 10).0, Forwarded, "{mode}, not admitted");
        cs.take(packet(300, data_of("/a", 1000), &[], None));
        assert_eq!([ask(&mut cs, true, 1), ask(&mut cs, false, 2)], now, "{mode}, fresh");
        cs.wait(1500);
        assert_eq!([ask(&mut cs, true, 3), ask(&mut cs, false, 4)], later, "{mode}, stale");
    }
}

#[test]
fn sibling_caches_share_the_names_and_keep_nothing_twice() {
    let mut kept = 0;
    for index in 0..3 {
        let mut cs = Bed::new(Kind::ContentStore, &[256, 300]);
        cs.set(json!({ "siblings": 3, "self_index": index }));
        for n in 0..300 {
            cs.data(300, &format!("/a/{n}"));
        }
        let entries = cs.stats()["content_store"]["entries"].as_u64().unwrap();
        assert!((60..140).contains(&entries), "{entries}");
        kept += entries;
    }
    assert_eq!(kept, 300);
}

#[test]
fn a_cache_hands_its_packets_over_with_what_is_left_of_their_freshness() {
    let mut old = Bed::new(Kind::ContentStore, &[256, 300]);
    for n in 0..5 {
        old.data(300, &format!("/a/{n}"));
    }
    old.wait(4000);
    let table = old.export();
    let Entries::Cached(entries) = &table.entries else { panic!("{table:?}") };
    assert_eq!((entries.len(), table.last, entries[0].fresh_ms), (5, true, 6000));
    let mut new = Bed::new(Kind::ContentStore, &[256, 300]);
    assert_eq!(new.import(&table, &[])["new"], 5);
    assert_eq!(new.import(&table, &[])["changed"], false, "the same part again");
    let fresh = |bed: &mut Bed, nonce| {
        let wire = interest_of("/a/1", nonce, |i| i.must_be_fresh = true);
        bed.take(packet(256, wire, &[], None)).0
    };
    assert_eq!(fresh(&mut new, 1), Verdict::CsHit);
    new.wait(6001);
    assert_eq!(fresh(&mut new, 2), Verdict::Forwarded);
}

#[test]
fn answers_go_to_the_one_that_asked_and_without_a_token_to_all() {
    let mut sv = Bed::new(Kind::NameFilter, &[256, 257, 300]);
    let asked = sv.take(packet(257, interest_of("/a", 1, |_| ()), &[1, 2], None)).1;
    let token = asked[0].token.clone();
    assert_eq!((asked[0].face, token.len(), &token[3..]), (300, 5, &[1, 2][..]));
    let answer = sv.take(packet(300, data_of("/a", 1), &token, None)).1;
    assert_eq!((faces(&answer), &answer[0].token), (vec![257], &vec![1, 2]));
    let bare = sv.take(packet(300, data_of("/a", 1), &[], None)).1;
    assert_eq!(faces(&bare), [256, 257]);
    let foreign = sv.take(packet(300, data_of("/a", 1), &[9, 9, 9, 9], None)).1;
    assert!(faces(&foreign) == [256, 257] && foreign.iter().all(|s| s.token.is_empty()));
    sv.set(json!({ "return": "multicast" }));
    assert!(sv.interest(256, "/b", 2).1[0].token.is_empty());
    sv.set(json!({ "return": "hash" }));
    let ways: Vec<u32> = (0..40).flat_map(|n| faces(&sv.data(300, &format!("/a/{n}")).1)).collect();
    assert_eq!(ways.len(), 40, "each to one");
    assert!(ways.contains(&256) && ways.contains(&257));
}

#[test]
fn a_filter_decides_by_the_deepest_rule_and_rules_end() {
    let mut nf = Bed::new(Kind::NameFilter, &[256, 300]);
    let rules = json!({ "rules": [
        { "prefix": "/bad" },
        { "prefix": "/bad/good", "action": "accept" },
        { "prefix": "/bad/good/one", "match": "exact", "action": "nack", "applies": "interest" },
        { "prefix": "^/re/.*secret", "match": "regex", "lifetime_ms": 1000 },
    ] });
    assert_eq!(nf.put("rules", rules.clone())["added"], 4);
    assert_eq!(nf.put("rules", rules)["changed"], false);
    assert_eq!(nf.interest(256, "/bad/x", 1), (Verdict::Filtered, vec![]));
    assert_eq!(nf.data(300, "/bad/x").0, Verdict::Filtered);
    assert_eq!(nf.interest(256, "/bad/good/x", 2).0, Verdict::Forwarded);
    let (verdict, sent) = nf.interest(256, "/bad/good/one", 3);
    assert_eq!((verdict, sent[0].reason), (Verdict::Filtered, Some(150)));
    assert_eq!(nf.interest(256, "/bad/good/one/more", 4).0, Verdict::Forwarded);
    assert_eq!(nf.data(300, "/bad/good/one").0, Verdict::Forwarded, "it is for Interests");
    assert_eq!(nf.interest(256, "/re/the-secret", 5).0, Verdict::Filtered);
    nf.wait(1001);
    assert_eq!(nf.event("rule_expired").len(), 1);
    assert_eq!(nf.interest(256, "/re/the-secret", 6).0, Verdict::Forwarded);
    nf.set(json!({ "drop_interest": false }));
    assert_eq!(nf.interest(256, "/bad/x", 7).0, Verdict::Forwarded);
    let twice = json!({ "add": [{ "prefix": "/x" }, { "prefix": "(", "match": "regex" }] });
    assert_eq!(nf.try_post("rules", twice).unwrap_err().reason, Reason::Invalid);
    let listed = nf.get(Request::Rules(SetRequest::List));
    assert_eq!(listed["rules"].as_array().unwrap().len(), 3, "all or nothing: {listed}");
}

#[test]
fn each_strategy_chooses_as_it_says() {
    let shares = |strategy: &str, weights: [u32; 3]| {
        let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300, 301, 302]);
        for (face, weight) in (300..).zip(weights) {
            sf.function.change_face(FaceId(face), |p| p.weight = weight);
        }
        sf.set(json!({ "strategy": strategy }));
        let mut shares = [0; 3];
        for n in 0..600 {
            for sent in sf.interest(256, &format!("/a/{n}"), n).1 {
                shares[sent.face as usize - 300] += 1;
            }
        }
        shares
    };
    assert_eq!(shares("multicast", [1, 1, 1]), [600, 600, 600]);
    assert_eq!(shares("round-robin", [1, 1, 1]), [200, 200, 200]);
    assert_eq!(shares("weighted", [1, 2, 3]), [100, 200, 300]);
    assert_eq!(shares("least-outstanding", [1, 1, 1]), [200, 200, 200]);
    for random in ["random", "hash-name"] {
        let got = shares(random, [1, 1, 1]);
        assert!(got.iter().all(|n| (140..260).contains(n)), "{random}: {got:?}");
        assert_eq!(got.iter().sum::<i32>(), 600);
    }
}

#[test]
fn a_name_has_one_clone_and_a_draining_face_gets_no_new_interests() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300, 301]);
    sf.set(json!({ "strategy": "hash-name" }));
    let first = faces(&sf.interest(256, "/a/1", 1).1);
    assert_eq!(faces(&sf.interest(256, "/a/1", 2).1), first, "a retransmission too");
    sf.function.change_face(FaceId(300), |p| p.draining = true);
    let all: Vec<u32> =
        (0..20).flat_map(|n| faces(&sf.interest(256, &format!("/b/{n}"), n).1)).collect();
    assert_eq!(all, [301; 20]);
    assert_eq!(faces(&sf.data(300, "/a/1").1), [256], "what returns is taken");
}

#[test]
fn what_is_asked_for_already_goes_where_it_waits_and_the_rest_to_who_has_least() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 257, 300, 301]);
    sf.set(json!({ "strategy": "least-outstanding" }));
    let waits: Vec<u32> = (0..4).flat_map(|n| faces(&sf.interest(256, &at(n), n).1)).collect();
    for n in 0..4 {
        let again = sf.interest(257, &at(n), 100 + n).1;
        assert_eq!(faces(&again), [waits[n as usize]], "somebody else asks for {}", at(n));
    }
    // One of them answers all it has; what is new goes there, what waits stays.
    for n in (0..4).filter(|n| waits[*n as usize] == 300) {
        sf.data(300, &at(n));
    }
    let fresh: Vec<u32> = (4..6).flat_map(|n| faces(&sf.interest(256, &at(n), n).1)).collect();
    assert_eq!(fresh, [300, 300]);
    let held = (0..4).find(|n| waits[*n as usize] == 301).unwrap();
    assert_eq!(faces(&sf.interest(256, &at(held), 200).1), [301]);
    // A face that drains is left for those that wait too: its table is handed over.
    sf.function.change_face(FaceId(301), |p| p.draining = true);
    assert_eq!(faces(&sf.interest(256, &at(held), 300).1), [300]);
}

fn at(n: u32) -> String {
    format!("/a/{n}")
}

#[test]
fn failover_leaves_a_silent_face_and_comes_back_when_it_answers() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300, 301]);
    sf.set(json!({ "strategy": "failover", "strategies": { "/all": "multicast" } }));
    for n in 0..3 {
        let wire = interest_of(&format!("/a/{n}"), n, |i| i.lifetime_ms = Some(100));
        assert_eq!(faces(&sf.take(packet(256, wire, &[], None)).1), [300]);
        sf.wait(150);
    }
    assert_eq!(faces(&sf.interest(256, "/a/9", 9).1), [301]);
    assert_eq!(sf.event("failover")[0]["to"], "f301");
    assert_eq!(faces(&sf.interest(256, "/all/1", 8).1), [300, 301], "by prefix");
    sf.data(301, "/a/9");
    sf.wait(5000);
    let probed = sf.interest(256, "/a/10", 10).1;
    assert_eq!(faces(&probed), [301, 300], "the dead one is tried beside the living");
    sf.data(300, "/a/10");
    assert_eq!(faces(&sf.interest(256, "/a/11", 11).1), [300]);
}

#[test]
fn best_route_takes_the_quicker_face() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300, 301]);
    sf.set(json!({ "strategy": "best-route" }));
    for n in 0..6 {
        let uri = format!("/a/{n}");
        let mut asked = faces(&sf.interest(256, &uri, n).1);
        asked.sort_unstable_by_key(|face| std::cmp::Reverse(*face));
        for face in asked {
            sf.wait(if face == 300 { 50 } else { 5 });
            sf.data(face, &uri);
        }
        sf.wait(1000);
    }
    sf.wait(10);
    assert_eq!(sf.interest(256, "/b", 99).1[0].face, 301);
}

#[test]
fn the_duplicate_filter_drops_the_same_name_and_nonce_for_its_time() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300]);
    sf.set(json!({ "duplicate_filter_ms": 250 }));
    let verdicts = [(1, 0), (1, 0), (2, 0), (1, 300)].map(|(nonce, wait)| {
        sf.wait(wait);
        sf.interest(256, "/a", nonce).0
    });
    let (pass, drop) = (Verdict::Forwarded, Verdict::Duplicate);
    assert_eq!(verdicts, [pass, drop, pass, pass]);
}

#[test]
fn a_frozen_side_keeps_packets_in_order_within_its_bounds_and_sends_them_where_it_leads_then() {
    for kind in
        [Kind::StrategyForwarder, Kind::NameFilter, Kind::BackwardRouter, Kind::ContentStore]
    {
        let mut bed = Bed::new(kind, &[256, 300]);
        let limits = crate::freeze::Limits { packets_max: 3, ..Default::default() };
        let now = bed.now();
        assert!(bed.function.start_freeze(now, Side::Producer, limits));
        let held: Vec<Verdict> =
            (0..4).map(|n| bed.interest(256, &format!("/a/{n}"), n).0).collect();
        let (keep, full) = (Verdict::Held, Verdict::FreezeFull);
        assert_eq!(held, [keep, keep, keep, full], "{}", kind.word());
        // The link is another one when it ends.
        bed.gone(300);
        bed.face(301);
        let now = bed.now();
        assert!(bed.function.unfreeze(now, Side::Producer, &mut bed.out));
        let sent = bed.sent();
        let names: Vec<&str> = sent.iter().map(|s| s.name.as_str()).collect();
        assert_eq!((names, faces(&sent)), (vec!["/a/0", "/a/1", "/a/2"], vec![301; 3]));
        let state = bed.function.freeze_state(Side::Producer);
        assert_eq!((state.frozen, state.sent, state.dropped), (false, 3, 1));
        assert_eq!(bed.interest(256, "/b", 9).0, Verdict::Forwarded);
    }
}

#[test]
fn a_freeze_ends_by_itself() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300]);
    let now = sf.now();
    sf.function.start_freeze(now, Side::Producer, crate::freeze::Limits::default());
    assert_eq!(sf.interest(256, "/a", 1).0, Verdict::Held);
    assert!(sf.wait(4999).is_empty());
    assert_eq!(faces(&sf.wait(2)), [300]);
}

#[test]
fn a_client_has_a_path_for_asking_and_one_for_answering() {
    let mut pd = Bed::new(Kind::PacketDispatcher, &[]);
    pd.set(json!({ "consumer_path": "tcp4://127.0.0.1:1", "producer_path": "tcp4://127.0.0.1:2" }));
    pd.face(256);
    let labels: Vec<String> = pd
        .effects
        .drain(..)
        .map(|w| match w {
            Effect::Connect { label, .. } => label,
            other => panic!("{other:?}"),
        })
        .collect();
    for (number, label) in (300..).zip(&labels) {
        let now = pd.now();
        let port = Port::new(FaceId(number), label.clone(), Side::Producer);
        pd.function.face_added(now, port, &mut pd.out);
    }
    let take =
        |pd: &mut Bed, bytes: Buf, from: u32| faces(&pd.take(packet(from, bytes, &[], None)).1);
    assert_eq!(take(&mut pd, interest_of("/a", 1, |_| ()), 256), [300]);
    assert_eq!(take(&mut pd, interest_of("/localhost/nfd/rib/register/x", 1, |_| ()), 256), [301]);
    assert_eq!(take(&mut pd, interest_of("/localhop/nfd/rib/register/x", 1, |_| ()), 256), [301]);
    assert_eq!(take(&mut pd, data_of("/a", 1), 256), [301]);
    assert_eq!(take(&mut pd, data_of("/a", 1), 300), [256]);
    assert_eq!(take(&mut pd, interest_of("/b", 1, |_| ()), 301), [256]);
    // Another place for the consumer path: made first, then used, then the old one is closed.
    pd.set(json!({ "consumer_path": "tcp4://127.0.0.1:3" }));
    let Some(Effect::Connect { label, .. }) = pd.effects.pop() else { panic!("no new path") };
    let now = pd.now();
    pd.function.face_added(now, Port::new(FaceId(302), label, Side::Producer), &mut pd.out);
    assert_eq!(take(&mut pd, interest_of("/a", 2, |_| ()), 256), [300], "not connected yet");
    let now = pd.now();
    pd.function.face_up(now, FaceId(302), &mut pd.out);
    assert_eq!(take(&mut pd, interest_of("/a", 3, |_| ()), 256), [302]);
    assert_eq!(take(&mut pd, data_of("/a", 1), 300), [256], "what is under way still returns");
    pd.wait(1001);
    assert_eq!(pd.effects, [Effect::Close(FaceId(300))]);
}

#[test]
fn what_was_sent_by_a_face_that_is_gone_stays_counted() {
    let mut cs = Bed::new(Kind::ContentStore, &[256, 300]);
    cs.interest(256, "/a", 1);
    cs.data(300, "/a");
    let before = cs.stats()["sent"].clone();
    assert_eq!(before, json!({ "interests": 1, "data": 1, "nacks": 0 }));
    cs.gone(256);
    assert_eq!(cs.stats()["sent"], before);
}
