//! Name router, backward router, merged forwarder.

use super::*;

#[test]
fn an_interest_goes_to_every_route_on_its_path_or_to_the_longest_only() {
    let mut nr = Bed::new(Kind::NameRouter, &[256, 300, 301, 302]);
    let routes = json!({ "routes": [
        { "prefix": "/", "face": "f300" },
        { "prefix": "/a", "face": "f301" },
        { "prefix": "/a/b", "face": "f302", "cost": 5 },
        { "prefix": "/a/b", "face": "f301" },
    ] });
    assert_eq!(nr.put("routes", routes.clone())["added"], 4);
    let again = nr.put("routes", routes);
    assert_eq!((&again["changed"], &again["unchanged"]), (&json!(false), &json!(4)));
    assert_eq!(faces(&nr.interest(256, "/a/b/c", 1).1), [301, 302, 300]);
    nr.set(json!({ "match": "longest" }));
    assert_eq!(faces(&nr.interest(256, "/a/b/c", 2).1), [301, 302]);
    assert_eq!(faces(&nr.interest(256, "/x", 3).1), [300]);
    let fewer = json!({ "routes": [{ "prefix": "/a", "face": "f301" }] });
    assert_eq!(nr.put("routes", fewer)["removed"], 3);
    assert_eq!(nr.interest(256, "/x", 4), (Verdict::NoRoute, vec![]));
    nr.set(json!({ "nack": true }));
    assert_eq!(nr.interest(256, "/x", 5).1[0].reason, Some(150));
    let wrong = json!({ "add": [{ "prefix": "/b", "face": "nobody" }] });
    assert_eq!(nr.try_post("routes", wrong).unwrap_err().code, "face_unknown");
}

#[test]
fn a_name_of_local_scope_is_refused_at_once_whatever_the_routes() {
    let mut nr = Bed::new(Kind::NameRouter, &[256, 300]);
    nr.post("routes", json!({ "add": [{ "prefix": "/", "face": "f300" }] }));
    for name in ["/localhost/nlsr/rib/register/x", "/localhop/x"] {
        let (verdict, sent) = nr.interest(256, name, 1);
        assert_eq!((verdict, sent.len()), (Verdict::NoRoute, 1), "{name}");
        assert_eq!((sent[0].face, sent[0].reason), (256, Some(150)), "{name}");
    }
}

#[test]
fn data_of_a_face_that_did_not_register_the_prefix_is_dropped() {
    let mut nr = Bed::new(Kind::NameRouter, &[256, 300, 301]);
    nr.post("routes", json!({ "add": [{ "prefix": "/a", "face": "f300" }] }));
    assert_eq!(faces(&nr.data(300, "/a/1").1), [256]);
    assert_eq!(nr.data(301, "/a/1"), (Verdict::PrefixRejected, vec![]));
    assert_eq!(nr.data(300, "/b/1").0, Verdict::PrefixRejected);
    assert_eq!(nr.data(256, "/a/1").0, Verdict::WrongSide);
    assert_eq!(nr.interest(300, "/a/1", 1).0, Verdict::WrongSide);
    nr.set(json!({ "check_prefix": false }));
    assert_eq!(nr.data(301, "/a/1").0, Verdict::Forwarded);
}

#[test]
fn a_registration_needs_a_known_key_that_is_bound_to_the_prefix() {
    for kind in [Kind::NameRouter, Kind::Forwarder] {
        let mut nr = Bed::new(kind, &[256, 300]);
        let (known, spki) = signer(KeyType::Ecdsa, "/a/KEY/1");
        let (stranger, _) = signer(KeyType::Ecdsa, "/a/KEY/2");
        let (forger, _) = signer(KeyType::Ecdsa, "/a/KEY/1");
        nr.post("keys", json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] }));
        let mut code = |s: &Signer, verb: &str, prefix: &str| nr.register(300, s, verb, prefix);
        assert_eq!(code(&known, "register", "/a/x"), (Verdict::Delivered, 200));
        for (who, prefix) in [(&known, "/b"), (&stranger, "/a"), (&forger, "/a")] {
            assert_eq!(code(who, "register", prefix).1, 403);
        }
        assert_eq!(code(&Signer::digest(), "register", "/a").1, 403);
        assert_eq!(code(&known, "announce", "/a").1, 501);
        assert_eq!(nr.event("registered")[0]["prefix"], "/a/x");
        assert_eq!(nr.event("registration_refused").len(), 5);
        assert_eq!(nr.interest(256, "/a/x/1", 1).0, Verdict::Forwarded);
        assert_eq!(nr.register(300, &known, "unregister", "/a/x").1, 200);
        assert_eq!(nr.interest(256, "/a/x/2", 2).0, Verdict::NoRoute);
    }
}

#[test]
fn a_registration_works_once() {
    let mut nr = Bed::new(Kind::NameRouter, &[256, 300]);
    let (known, spki) = signer(KeyType::Ecdsa, "/a/KEY/1");
    nr.post("keys", json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] }));
    assert_eq!(nr.register(300, &known, "register", "/a").1, 200);
    nr.ms -= 1;
    assert_eq!(nr.register(300, &known, "register", "/a").1, 403, "the same time again");
}

#[test]
fn the_backward_router_is_oriented_and_returns_data_to_everyone_who_asked() {
    let mut br = Bed::new(Kind::BackwardRouter, &[256, 257, 300, 301]);
    assert_eq!(faces(&br.interest(256, "/a", 1).1), [300, 301]);
    assert_eq!(br.interest(257, "/a", 2).0, Verdict::Aggregated);
    // Two clients behind one face are told apart by where they entered the chain.
    let mut third = packet(257, interest_of("/a", 3, |_| ()), &[3], None);
    third.lp.next_hop_face = std::num::NonZeroU64::new(0x30);
    assert_eq!(br.take(third).0, Verdict::Aggregated);
    // So are those behind a neighbour that says no origin, by the tags of its tokens.
    for tag in [[4, 4, 4], [5, 5, 5]] {
        let tagged = packet(257, interest_of("/a", tag[0].into(), |_| ()), &tag, None);
        assert_eq!(br.take(tagged).0, Verdict::Aggregated);
    }
    assert_eq!(br.data(256, "/a").0, Verdict::WrongSide);
    assert_eq!(br.interest(300, "/a", 4).0, Verdict::WrongSide);
    let (verdict, sent) = br.data(300, "/a");
    let mut told: Vec<(u32, &[u8])> = sent.iter().map(|s| (s.face, &*s.token)).collect();
    told.sort_unstable();
    assert_eq!(
        (verdict, told),
        (
            Verdict::Satisfied,
            vec![(256, &[][..]), (257, &[]), (257, &[3]), (257, &[4, 4, 4]), (257, &[5, 5, 5])]
        )
    );
    assert_eq!(br.data(301, "/a").0, Verdict::Unsolicited);
    assert_eq!(br.interest(256, "/long", 5).0, Verdict::Forwarded);
    assert_eq!(br.data(300, "/long/er").0, Verdict::Unsolicited, "it did not ask for a prefix");
}

#[test]
fn retransmissions_are_suppressed_ever_longer_or_by_the_window_of_the_paper() {
    let forwarded = |mode: &str| -> Vec<u64> {
        let mut br = Bed::new(Kind::BackwardRouter, &[256, 300]);
        br.set(json!({ "retransmission": mode }));
        let start = br.ms;
        let mut at = Vec::new();
        for nonce in 1..=100 {
            if br.interest(256, "/a", nonce).0 == Verdict::Forwarded {
                at.push(br.ms - start);
            }
            br.wait(10);
        }
        at
    };
    assert_eq!(forwarded("suppress"), [0, 10, 30, 70, 150, 310, 560, 810]);
    assert_eq!(forwarded("paper"), [0, 250, 500, 750]);
}

#[test]
fn an_active_router_asks_again_by_itself_with_another_nonce() {
    let mut br = Bed::new(Kind::BackwardRouter, &[256, 300]);
    br.set(json!({ "retransmission": "active", "retries": 3 }));
    br.interest(256, "/a", 1);
    let again = br.wait(3999);
    assert_eq!(again.len(), 3);
    let nonces: Vec<Option<u32>> = again.iter().map(|s| s.nonce).collect();
    assert!(!nonces.contains(&Some(1)) && nonces[0] != nonces[1]);
    assert_eq!(br.stats()["backward_router"]["retransmitted"], 3);
    assert_eq!(br.data(300, "/a").0, Verdict::Satisfied);
}

#[test]
fn a_full_table_keeps_what_it_has_and_refuses_who_holds_the_most() {
    let mut br = Bed::new(Kind::BackwardRouter, &[256, 257, 300]);
    br.set(json!({ "capacity": 4 }));
    for (n, uri) in (1..).zip(["/a", "/b", "/c"]) {
        assert_eq!(br.interest(256, uri, n).0, Verdict::Forwarded);
    }
    let (verdict, sent) = br.interest(256, "/d", 4);
    assert_eq!((verdict, sent[0].reason), (Verdict::PitShare, Some(50)));
    assert_eq!(br.interest(257, "/e", 5).0, Verdict::Forwarded, "another one has its share");
    assert_eq!(br.interest(257, "/f", 6).0, Verdict::PitFull);
    for uri in ["/a", "/b", "/c", "/e"] {
        assert_eq!(br.data(300, uri).0, Verdict::Satisfied, "{uri}");
    }
    // What waits longer than answers take gives way to newer ones of its face.
    for (n, uri) in (10..).zip(["/a", "/b", "/c"]) {
        br.interest(256, uri, n);
    }
    br.wait(2000);
    assert_eq!(br.interest(256, "/g", 20).0, Verdict::Forwarded);
    assert_eq!(br.stats()["backward_router"]["evicted"], 1);
}

#[test]
fn a_nack_ends_the_interest_once_every_upstream_sent_one() {
    let mut br = Bed::new(Kind::BackwardRouter, &[256, 300, 301]);
    br.interest(256, "/a", 1);
    let nack = |face| packet(face, interest_of("/a", 1, |_| ()), &[], Some(150));
    assert_eq!(br.take(nack(300)).0, Verdict::NackAbsorbed);
    let (verdict, sent) = br.take(nack(301));
    assert_eq!(
        (verdict, faces(&sent), sent[0].reason),
        (Verdict::NackForwarded, vec![256], Some(150))
    );
    assert_eq!(br.take(nack(301)).0, Verdict::NackNoEntry);
}

/// The other upstream may send it around; where no cache answers it would run in a circle for ever.
#[test]
fn a_nonce_that_went_to_several_upstreams_is_remembered_though_one_of_them_answered() {
    let mut br = Bed::new(Kind::BackwardRouter, &[256, 257, 300, 301]);
    assert_eq!(faces(&br.interest(256, "/a", 1).1), [300, 301]);
    assert_eq!(br.data(300, "/a").0, Verdict::Satisfied);
    let (verdict, sent) = br.interest(257, "/a", 1);
    assert_eq!((verdict, faces(&sent)), (Verdict::DuplicateNonce, vec![257]));
    // A single upstream may be a name router, which sends to several; a strategy forwarder behind
    // knows by itself.
    for (mode, verdict) in [("suppress", Verdict::DuplicateNonce), ("strategy", Verdict::Forwarded)]
    {
        let mut br = Bed::new(Kind::BackwardRouter, &[256, 257, 300]);
        br.set(json!({ "retransmission": mode }));
        br.interest(256, "/a", 1);
        br.data(300, "/a");
        assert_eq!(br.interest(257, "/a", 1).0, verdict, "{mode}");
    }
}

#[test]
fn a_draining_router_refuses_what_is_new_and_hands_the_rest_over() {
    let mut old = Bed::new(Kind::BackwardRouter, &[256, 257, 300]);
    old.interest(256, "/a", 1);
    old.take(packet(257, interest_of("/a", 2, |_| ()), &[5], None));
    assert!(old.function.set_draining(true));
    let (verdict, sent) = old.interest(256, "/b", 3);
    assert_eq!((verdict, sent[0].reason), (Verdict::Draining, Some(50)));
    assert_eq!(old.function.drain_state().pending, 1);
    old.wait(1000);
    let table = old.export();
    let mut new = Bed::new(Kind::BackwardRouter, &[257, 258, 300]);
    let faces = [("f256", "f258")];
    assert_eq!(new.import(&table, &faces)["new"], 1);
    assert_eq!(new.import(&table, &faces)["changed"], false);
    let (verdict, sent) = new.data(300, "/a");
    let mut told: Vec<(u32, &[u8])> = sent.iter().map(|s| (s.face, &*s.token)).collect();
    told.sort_unstable();
    assert_eq!((verdict, told), (Verdict::Satisfied, vec![(257, &[5][..]), (258, &[])]));
}

#[test]
fn the_merged_forwarder_routes_caches_and_checks_prefixes() {
    let mut fw = Bed::new(Kind::Forwarder, &[256, 300, 301]);
    fw.post("routes", json!({ "add": [{ "prefix": "/a", "face": "f300" }] }));
    let asked = fw.interest(256, "/a/1", 1);
    assert_eq!((asked.0, faces(&asked.1)), (Verdict::Forwarded, vec![300]));
    assert_eq!(fw.data(301, "/a/1").0, Verdict::PrefixRejected);
    assert_eq!(faces(&fw.data(300, "/a/1").1), [256]);
    assert_eq!(fw.interest(256, "/a/1", 2).0, Verdict::CsHit);
    assert_eq!(fw.interest(256, "/b", 3).0, Verdict::NoRoute);
    fw.post("routes", json!({ "remove": [{ "prefix": "/a", "face": "f300" }] }));
    assert_eq!(fw.interest(256, "/a/2", 4).0, Verdict::NoRoute);
}
