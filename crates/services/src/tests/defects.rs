//! Defects of the reference implementation (spec digest of the paper, section 6), each shown not
//! to be here. Those of the manager are tested there, those of sockets in `onym-host` and
//! `bin/onym/tests/services.rs`.

use super::*;

/// 3: the router tells its manager, whoever gave the last command.
#[test]
fn a_producer_that_leaves_is_told_with_its_prefixes() {
    let mut nr = Bed::new(Kind::NameRouter, &[256, 300]);
    nr.set(json!({ "registration": "open" }));
    assert_eq!(nr.register(300, &Signer::digest(), "register", "/a").1, 200);
    nr.gone(300);
    let told = nr.event("producer_disconnected");
    assert_eq!(told[0]["prefixes"], json!(["/a"]));
    assert_eq!(nr.stats()["name_router"]["routes"], 0);
}

/// 4 and 5: a filter speaks of itself, and answers a removal as a removal.
#[test]
fn a_filter_tells_of_rules_and_nothing_else() {
    let mut nf = Bed::new(Kind::NameFilter, &[256, 300]);
    let rule = json!({ "prefix": "/bad", "match": "prefix" });
    assert_eq!(nf.post("rules", json!({ "add": [rule] }))["added"], 1);
    assert_eq!(nf.event("rule_added").len(), 1);
    assert_eq!(nf.post("rules", json!({ "remove": [rule] }))["removed"], 1);
    let stats = nf.stats();
    assert!(stats["name_filter"].is_object() && stats.get("content_store").is_none());
}

/// 6 and 8: any number of keys is one answer of one form.
#[test]
fn adding_and_removing_keys_is_answered_once() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let keys: Vec<Value> = (0..20)
        .map(|n| json!({ "name": format!("/a/KEY/{n}"), "hmac": crate::table::encode(&[n; 32]) }))
        .collect();
    let added = sv.post("keys", json!({ "add": keys }));
    assert_eq!((&added["changed"], &added["added"]), (&json!(true), &json!(20)));
    let names: Vec<String> = (0..20).map(|n| format!("/a/KEY/{n}")).collect();
    let removed = sv.post("keys", json!({ "remove": names }));
    assert_eq!((&removed["changed"], &removed["removed"]), (&json!(true), &json!(20)));
    let again = sv.post("keys", json!({ "remove": names }));
    assert_eq!(again["changed"], false, "the same again changes nothing and is no error");
}

/// 7: no name of a failure is lost where the list is cut.
#[test]
fn every_name_of_a_failure_is_told_by_the_same_member() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (good, spki) = signer(KeyType::Ecdsa, "/a/KEY/1");
    sv.post("keys", json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] }));
    let (other, _) = signer(KeyType::Ecdsa, "/a/KEY/1");
    for n in 0..250 {
        let fake = data_by(&other, &format!("/a/{n}"), 1000, b"fake");
        assert_eq!(sv.take(packet(300, fake, &[], None)).0, Verdict::BadSignature);
    }
    sv.wait(2000);
    let told = sv.event("invalid_signature");
    let names: usize = told.iter().map(|e| e["names"].as_array().unwrap().len()).sum();
    let count: u64 = told.iter().map(|e| e["count"].as_u64().unwrap()).sum();
    assert_eq!((names, count), (250, 250));
    assert!(told.iter().all(|e| e["face"] == "f300"));
    let right = data_by(&good, "/a/x", 1000, b"right");
    assert_eq!(sv.take(packet(300, right, &[], None)).0, Verdict::Forwarded);
}

/// 10 and 11: taking one face's route away leaves the others'; an unknown route is no error.
#[test]
fn routes_of_other_faces_stay_and_unknown_ones_are_no_error() {
    let mut nr = Bed::new(Kind::NameRouter, &[256, 300, 301]);
    let both = json!([{ "prefix": "/a", "face": "f300" }, { "prefix": "/a", "face": "f301" }]);
    nr.post("routes", json!({ "add": both }));
    nr.gone(300);
    assert_eq!(faces(&nr.interest(256, "/a/1", 1).1), [301]);
    let unknown = json!({ "remove": [{ "prefix": "/nowhere", "face": "f301" }] });
    assert_eq!(nr.post("routes", unknown)["changed"], false);
    nr.gone(301);
    assert_eq!(nr.interest(256, "/a/1", 2).0, Verdict::NoRoute);
}

/// 12: an answered Interest leaves no hole, lifetimes end, loops are seen.
#[test]
fn an_answered_name_is_asked_for_again_at_once_and_loops_are_seen() {
    let mut br = Bed::new(Kind::BackwardRouter, &[256, 300]);
    assert_eq!(br.interest(256, "/a", 1).0, Verdict::Forwarded);
    assert_eq!(br.data(300, "/a").0, Verdict::Satisfied);
    assert_eq!(br.interest(256, "/a", 2).0, Verdict::Forwarded, "no black hole of 250 ms");
    br.wait(4001);
    assert_eq!(br.stats()["backward_router"]["entries"], 0, "its lifetime has ended");
    assert_eq!(br.data(300, "/a").0, Verdict::Unsolicited);
    // A slow loop: the Interest comes back after its entry has ended.
    let (verdict, sent) = br.interest(256, "/a", 2);
    assert_eq!((verdict, sent[0].reason), (Verdict::DuplicateNonce, Some(100)));
}

/// 13: the same packet again is one packet, and every branch under a prefix is searched.
#[test]
fn a_cache_keeps_a_packet_once_and_searches_every_branch() {
    let mut cs = Bed::new(Kind::ContentStore, &[256, 300]);
    for _ in 0..3 {
        cs.data(300, "/a/b/c");
    }
    assert_eq!(cs.stats()["content_store"]["entries"], 1);
    cs.data(300, "/a/z/d");
    cs.set(json!({ "capacity": 2 }));
    let ask = |bed: &mut Bed, uri: &str, nonce| {
        bed.take(packet(256, interest_of(uri, nonce, |i| i.can_be_prefix = true), &[], None)).0
    };
    assert_eq!(ask(&mut cs, "/a/z", 1), Verdict::CsHit, "not only the left-most branch");
    assert_eq!(ask(&mut cs, "/a", 2), Verdict::CsHit);
    assert_eq!(ask(&mut cs, "/a/m", 3), Verdict::Forwarded, "a dead branch is a miss");
}

/// 14: a smaller cache is small at once.
#[test]
fn a_cache_that_shrinks_evicts_at_once() {
    let mut cs = Bed::new(Kind::ContentStore, &[256, 300]);
    for n in 0..100 {
        cs.data(300, &format!("/a/{n}"));
    }
    cs.set(json!({ "capacity": 10 }));
    let stats = cs.stats();
    let of = |word: &str| stats["content_store"][word].as_u64().unwrap();
    assert_eq!((of("entries"), of("evicted")), (10, 90));
}

/// 17: a period without lookups has no ratio, rather than one of zero.
#[test]
fn a_pause_is_not_a_period_without_hits() {
    let mut cs = Bed::new(Kind::ContentStore, &[256, 300]);
    cs.data(300, "/a");
    cs.wait(2000);
    assert_eq!(cs.interest(256, "/a", 1).0, Verdict::CsHit);
    cs.wait(2000);
    assert_eq!(cs.stats()["content_store"]["period"]["ratio"], 1.0);
    cs.wait(2000);
    assert_eq!(cs.stats()["content_store"]["period"]["ratio"], Value::Null);
}

/// 18: what tells a clean period apart is reset by every failure.
#[test]
fn a_period_tells_its_own_failures_only() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (_, spki) = signer(KeyType::Ecdsa, "/a/KEY/1");
    sv.post("keys", json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] }));
    let (other, _) = signer(KeyType::Ecdsa, "/a/KEY/1");
    let mut of_period = |fakes: u32| {
        for n in 0..fakes {
            let fake = data_by(&other, &format!("/a/{n}"), 1000, b"fake");
            sv.take(packet(300, fake, &[], None));
        }
        sv.wait(2000);
        sv.stats()["signature_verifier"]["period"]["invalid"].as_u64().unwrap()
    };
    of_period(0);
    assert_eq!([of_period(2), of_period(0), of_period(1), of_period(0)], [2, 0, 1, 0]);
}

/// 19: taking a face away leaves the order of failover as it was.
#[test]
fn removing_a_face_does_not_change_the_order_of_the_others() {
    let mut sf = Bed::new(Kind::StrategyForwarder, &[256, 300, 301, 302, 303]);
    sf.set(json!({ "strategy": "failover" }));
    assert_eq!(faces(&sf.interest(256, "/a/1", 1).1), [300]);
    sf.gone(301);
    assert_eq!(faces(&sf.interest(256, "/a/2", 2).1), [300]);
    sf.gone(300);
    assert_eq!(faces(&sf.interest(256, "/a/3", 3).1), [302]);
    assert_eq!(sf.stats()["strategy_forwarder"]["failovers"], 1);
}

/// 20: a session that ended is gone, and its paths are closed.
#[test]
fn a_session_ends_whole() {
    let mut pd = Bed::new(Kind::PacketDispatcher, &[]);
    pd.set(json!({ "consumer_path": "tcp4://127.0.0.1:1", "producer_path": "tcp4://127.0.0.1:2" }));
    for client in 256..266 {
        pd.face(client);
    }
    assert_eq!(pd.stats()["packet_dispatcher"]["sessions"], 10);
    assert_eq!(pd.effects.len(), 20, "a pair for each client");
    for client in 256..266 {
        pd.gone(client);
    }
    let stats = pd.stats();
    let of = |word: &str| stats["packet_dispatcher"][word].as_u64().unwrap();
    assert_eq!((of("sessions"), of("opened"), of("closed")), (0, 10, 10));
    assert_eq!(pd.get(Request::Sessions), json!({ "sessions": [] }));
}
