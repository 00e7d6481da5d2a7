//! The pipelines, rule by rule (sections of the digest of NFD's behaviour in comments).

mod support;

use onym_forward::{Config, FaceInfo, Unsent, UnsolicitedPolicy, Verdict};
use onym_link::LpIn;
use onym_link::PacketKind;
use onym_tables::FaceId;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::{LinkType, Scope};
use support::{Bench, I, data_bytes, name};

fn two() -> Bench {
    Bench::new().faces(2).route("/a", 257, 0)
}

#[test]
fn an_interest_goes_up_and_its_data_comes_back_with_the_downstreams_token() {
    let mut b = two();
    assert_eq!(b.interest(256, &I::new("/a/b", 1).token(&[7, 8, 9])), Verdict::Forwarded);
    let left = b.left();
    assert_eq!((left[0].face, left[0].name.as_str(), left[0].token.len()), (257, "/a/b", 6));
    assert_eq!(b.data_with(257, "/a/b", 0, &left[0].token), Verdict::Satisfied);
    let left = b.left();
    assert_eq!((left[0].face, left[0].name.as_str()), (256, "/a/b"));
    assert_eq!(left[0].token, [7, 8, 9]);
    assert_eq!(b.fw.pit_len(), 0);
    assert_eq!(b.interest(256, &I::new("/a/b", 2).token(&[5])), Verdict::CsHit);
    assert_eq!(b.left()[0].token, [5], "a cache hit echoes the token as well");
    b.check();
}

#[test]
fn a_missing_nonce_is_added_and_a_hop_limit_is_decremented() {
    let mut b = two();
    let mut interest = I::new("/a/b", 0).hop_limit(5);
    interest.nonce = None;
    assert_eq!(b.interest(256, &interest), Verdict::Forwarded);
    assert_eq!(b.left()[0].hop_limit, Some(4));
}

#[test]
fn the_default_hop_limit_is_added_where_there_is_none() {
    let config = Config { default_hop_limit: 20, ..Config::default() };
    let mut b = Bench::with(config).faces(2).route("/a", 257, 0);
    b.interest(256, &I::new("/a/b", 1));
    assert_eq!(b.left()[0].hop_limit, Some(20));
}

#[test]
fn hop_limit_zero_is_dropped_and_one_reaches_local_faces_and_the_cache_only() {
    let mut b = two().local(300).route("/l", 300, 0);
    assert_eq!(b.interest(256, &I::new("/a/b", 1).hop_limit(0)), Verdict::HopLimitZero);
    assert_eq!(b.interest(256, &I::new("/l/b", 2).hop_limit(1)), Verdict::Forwarded);
    assert_eq!(b.left()[0].hop_limit, Some(0));
    assert_eq!(b.interest(256, &I::new("/a/b", 3).hop_limit(1)), Verdict::NoEligibleNextHop);
    assert!(b.left().is_empty());
    assert_eq!(b.fw.counters().unsent[Unsent::OutHopLimit as usize], 1);
    b.check();
}

#[test]
fn localhost_stays_on_this_host_in_both_directions() {
    let mut b = Bench::new().faces(1).local(300).local(301).route("/localhost/x", 301, 0);
    assert_eq!(b.interest(256, &I::new("/localhost/x", 1)), Verdict::Scope);
    assert_eq!(b.data(256, "/localhost/x", 0), Verdict::Scope);
    assert_eq!(b.interest(300, &I::new("/localhost/x", 1)), Verdict::Forwarded);
    b.add_route("/localhost/y", 256, 0);
    assert_eq!(b.interest(300, &I::new("/localhost/y", 2)), Verdict::NoEligibleNextHop);
    b.check();
}

#[test]
fn localhop_from_another_node_only_goes_to_local_faces() {
    let mut b = two().local(300).route("/localhop/x", 257, 0);
    assert_eq!(b.interest(256, &I::new("/localhop/x", 1)), Verdict::NoEligibleNextHop);
    assert_eq!(b.short(), ["256 nack150 /localhop/x"]);
    assert_eq!(b.interest(300, &I::new("/localhop/x", 2)), Verdict::Forwarded);
    assert_eq!(b.short(), ["257 interest /localhop/x"]);
    b.add_route("/localhop/y", 300, 0);
    assert_eq!(b.interest(256, &I::new("/localhop/y", 3)), Verdict::Forwarded);
}

#[test]
fn no_route_is_answered_with_a_nack_and_leaves_no_entry() {
    let mut b = two();
    assert_eq!(b.interest(256, &I::new("/z", 1).token(&[1, 2])), Verdict::NoRoute);
    let left = b.left();
    assert_eq!(
        (left[0].face, left[0].nack, &left[0].token[..]),
        (256, Some(NackReason(150)), &[1, 2][..])
    );
    assert_eq!(b.fw.pit_len(), 0);
    b.check();
}

#[test]
fn interests_of_one_name_are_aggregated_and_each_downstream_gets_its_own_token() {
    let mut b = Bench::new().faces(3).route("/a", 258, 0);
    assert_eq!(b.interest(256, &I::new("/a/b", 1).token(&[1])), Verdict::Forwarded);
    b.left();
    // A second downstream while the Interest is under way.
    assert_eq!(b.interest(257, &I::new("/a/b", 2).token(&[2, 2])), Verdict::Aggregated);
    assert!(b.left().is_empty());
    assert_eq!(b.data(258, "/a/b", 0), Verdict::Satisfied);
    let mut left: Vec<_> = b.left().into_iter().map(|l| (l.face, l.token)).collect();
    left.sort();
    assert_eq!(left, [(256, vec![1]), (257, vec![2, 2])]);
}

#[test]
fn must_be_fresh_and_can_be_prefix_make_entries_of_their_own_and_one_data_satisfies_all() {
    let mut b = Bench::new().faces(6).route("/a", 257, 0);
    b.interest(256, &I::new("/a/b", 1));
    b.interest(258, &I::new("/a/b", 2).fresh());
    b.interest(259, &I::new("/a/b", 3).prefix());
    b.interest(260, &I::new("/a", 4).prefix());
    b.interest(261, &I::new("/a", 5));
    assert_eq!((b.fw.pit_len(), b.left().len()), (5, 5));
    assert_ne!(b.fw.changed_prefixes().unwrap().lengths(), 0);
    assert_eq!(b.data(257, "/a/b", 0), Verdict::Satisfied);
    let mut left = b.short();
    left.sort();
    assert_eq!(left, ["256 data /a/b", "258 data /a/b", "259 data /a/b", "260 data /a/b"]);
    assert_eq!(b.fw.pit_len(), 1, "the exact Interest for /a waits on");
    assert_eq!(b.fw.changed_prefixes().unwrap().lengths(), 0);
    b.check();
}

#[test]
fn several_entries_of_one_face_are_answered_by_one_copy() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1));
    b.interest(256, &I::new("/a", 2).prefix());
    b.left();
    assert_eq!(b.data(257, "/a/b", 0), Verdict::Satisfied);
    assert_eq!(b.short(), ["256 data /a/b"]);
}

#[test]
fn an_implicit_digest_is_satisfied_by_that_packet_only() {
    let mut b = two();
    let data = data_bytes("/a/b", 0, b"right");
    let digest = onym_crypto::digest::hex(&onym_crypto::digest::implicit_digest(&data));
    let full = format!("/a/b/sha256digest={digest}");
    assert_eq!(b.interest(256, &I::new(&full, 1)), Verdict::Forwarded);
    b.left();
    let wrong = data_bytes("/a/b", 0, b"wrong");
    assert_eq!(b.receive(257, wrong, LpIn::default()), Verdict::Unsolicited);
    assert_eq!(b.receive(257, data, LpIn::default()), Verdict::Satisfied);
    assert_eq!(b.short(), ["256 data /a/b"]);
    assert_eq!(b.interest(256, &I::new(&full, 2)), Verdict::CsHit);
    let other = format!("/a/b/sha256digest={}", "00".repeat(32));
    assert_eq!(b.interest(256, &I::new(&other, 3)), Verdict::Forwarded, "another packet");
}

#[test]
fn data_nobody_asked_for_is_dropped_or_stored_by_policy() {
    for (policy, from_network, from_local) in [
        (UnsolicitedPolicy::DropAll, false, false),
        (UnsolicitedPolicy::AdmitLocal, false, true),
        (UnsolicitedPolicy::AdmitNetwork, true, false),
        (UnsolicitedPolicy::AdmitAll, true, true),
    ] {
        let mut b = two().local(300);
        b.fw.set_unsolicited(policy);
        let verdict = |stored| if stored { Verdict::Stored } else { Verdict::Unsolicited };
        assert_eq!(b.data(256, "/a/1", 0), verdict(from_network));
        assert_eq!(b.data(300, "/a/2", 0), verdict(from_local));
        assert_eq!(b.fw.cs().len(), usize::from(from_network) + usize::from(from_local));
    }
}

/// NFD's rule; the kernel module takes Data from faces that were asked only.
#[test]
fn data_satisfies_whoever_sent_it_even_a_face_that_was_not_asked() {
    let mut b = Bench::new().faces(3).route("/a", 257, 0);
    assert_eq!(b.interest(256, &I::new("/a/b", 1)), Verdict::Forwarded);
    assert_eq!(b.short(), ["257 interest /a/b"]);
    assert_eq!(b.data(258, "/a/b", 0), Verdict::Satisfied);
    assert_eq!(b.short(), ["256 data /a/b"]);
}

#[test]
fn no_cache_data_is_forwarded_and_not_cached() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1));
    let lp = LpIn { no_cache: true, ..LpIn::default() };
    assert_eq!(b.receive(257, data_bytes("/a/b", 0, b""), lp), Verdict::Satisfied);
    assert_eq!((b.left().len(), b.fw.cs().len()), (2, 0));
}

#[test]
fn must_be_fresh_is_answered_from_the_cache_while_the_data_is_fresh() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1));
    b.data(257, "/a/b", 1000);
    b.left();
    b.wait(900);
    assert_eq!(b.interest(256, &I::new("/a/b", 2).fresh()), Verdict::CsHit);
    b.wait(200);
    assert_eq!(b.interest(256, &I::new("/a/b", 3).fresh()), Verdict::Forwarded);
    assert_eq!(b.interest(256, &I::new("/a/b", 4)), Verdict::CsHit);
}

#[test]
fn data_does_not_return_to_the_face_it_came_from_unless_that_is_ad_hoc() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1));
    b.left();
    assert_eq!(b.data(256, "/a/b", 0), Verdict::Satisfied, "no out-record is required");
    assert!(b.left().is_empty());

    let mut b = two();
    let info = FaceInfo { link: LinkType::AdHoc, ..FaceInfo::point_to_point() };
    b.fw.face_add(FaceId(256), info);
    b.interest(256, &I::new("/a/b", 1));
    b.left();
    b.data(256, "/a/b", 0);
    assert_eq!(b.short(), ["256 data /a/b"]);
}

#[test]
fn a_looped_nonce_is_answered_with_duplicate_and_leaves_the_entry_alone() {
    let mut b = Bench::new().faces(3).route("/a", 257, 0);
    b.interest(256, &I::new("/a/b", 1));
    b.left();
    // From another downstream, and back from the upstream.
    assert_eq!(b.interest(258, &I::new("/a/b", 1)), Verdict::DuplicateNonce);
    assert_eq!(b.interest(257, &I::new("/a/b", 1)), Verdict::DuplicateNonce);
    assert_eq!(b.short(), ["258 nack100 /a/b", "257 nack100 /a/b"]);
    // The same downstream with the same Nonce sends it again: a retransmission, not a loop, though
    // the Nonce is upstream as well.
    assert_eq!(b.interest(256, &I::new("/a/b", 1)), Verdict::Suppressed);
    b.left();
    b.data(257, "/a/b", 0);
    assert_eq!(b.short(), ["256 data /a/b"]);
    b.check();
}

#[test]
fn on_a_multi_access_face_a_loop_is_dropped_in_silence() {
    let mut b = Bench::new().faces(2).route("/a", 257, 0);
    let info = FaceInfo { link: LinkType::MultiAccess, ..FaceInfo::point_to_point() };
    b.fw.face_add(FaceId(256), info);
    b.interest(256, &I::new("/a/b", 1));
    b.left();
    assert_eq!(b.interest(256, &I::new("/a/b", 1)), Verdict::DuplicateNonce);
    assert!(b.left().is_empty());
}

#[test]
fn a_nonce_of_an_unsatisfied_interest_is_dead_for_six_seconds() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1).lifetime(100));
    b.wait(102);
    assert_eq!(b.fw.pit_len(), 0);
    b.left();
    assert_eq!(b.interest(256, &I::new("/a/b", 1)), Verdict::DeadNonce);
    assert_eq!(b.short(), ["256 nack100 /a/b"]);
    b.wait(6001);
    assert_eq!(b.interest(256, &I::new("/a/b", 1)), Verdict::Forwarded);
    assert_eq!(b.fw.counters().unsatisfied_interests, 1);
}

/// Law: what only this node's management was asked cannot come back, and no later Interest is looked up
/// for its sake.
#[test]
fn a_nonce_that_only_management_saw_does_not_die() {
    let mut b = two().route("/own", FaceId::INTERNAL.0, 0);
    for _ in 0..2 {
        b.interest(256, &I::new("/own/x", 1).lifetime(100));
        b.left();
        b.wait(102);
        assert_eq!(b.fw.pit_len(), 0);
    }
    assert_eq!(b.fw.counters().unsatisfied_interests, 2);
}

#[test]
fn a_nonce_dies_with_fresh_data_only_when_the_cache_will_soon_not_answer() {
    for (fresh, freshness_ms, dies) in
        [(false, 0, false), (true, 10_000, false), (true, 5_999, true)]
    {
        let mut b = two();
        b.fw.cs_configure(b.now, onym_tables::cs::CsConfig { admit: false, ..*b.fw.cs().config() });
        let mut interest = I::new("/a/b", 1);
        interest.must_be_fresh = fresh;
        b.interest(256, &interest);
        b.data(257, "/a/b", freshness_ms);
        let expected = if dies { Verdict::DeadNonce } else { Verdict::Forwarded };
        assert_eq!(b.interest(256, &interest), expected);
    }
}

#[test]
fn an_entry_lives_as_long_as_its_latest_downstream() {
    let mut b = Bench::new().faces(3).route("/a", 258, 0);
    b.interest(256, &I::new("/a/b", 1).lifetime(4000));
    b.interest(257, &I::new("/a/b", 2).lifetime(100));
    b.left();
    b.wait(150);
    assert_eq!(b.data(258, "/a/b", 0), Verdict::Satisfied);
    assert_eq!(b.short(), ["256 data /a/b"], "the other one has expired");
}

#[test]
fn a_retransmission_takes_another_next_hop_once_the_interval_is_over() {
    let mut b = Bench::new().faces(3).route("/a", 257, 1).route("/a", 258, 2);
    b.interest(256, &I::new("/a/b", 1));
    assert_eq!(b.short(), ["257 interest /a/b"]);
    b.wait(5);
    assert_eq!(b.interest(256, &I::new("/a/b", 2)), Verdict::Suppressed);
    b.wait(6);
    assert_eq!(b.interest(256, &I::new("/a/b", 3)), Verdict::Forwarded);
    assert_eq!(b.short(), ["258 interest /a/b"]);
    b.wait(15);
    assert_eq!(b.interest(256, &I::new("/a/b", 4)), Verdict::Suppressed, "the interval doubled");
    b.wait(6);
    assert_eq!(b.interest(256, &I::new("/a/b", 5)), Verdict::Forwarded);
    assert_eq!(b.short(), ["257 interest /a/b"], "the one used longest ago");
}

#[test]
fn a_nack_of_the_only_upstream_reaches_the_downstream_with_its_token() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 7).token(&[3]));
    b.left();
    assert_eq!(b.nack(257, &I::new("/a/b", 8), 150), Verdict::NackStaleNonce);
    assert_eq!(b.nack(257, &I::new("/a/c", 7), 150), Verdict::NackNoEntry);
    assert_eq!(b.nack(256, &I::new("/a/b", 7), 150), Verdict::NackNoEntry, "no out-record");
    assert_eq!(b.nack(257, &I::new("/a/b", 7), 50), Verdict::NackForwarded);
    let left = b.left();
    assert_eq!(
        (left[0].face, left[0].nack, &left[0].token[..]),
        (256, Some(NackReason(50)), &[3][..])
    );
    assert_eq!(b.fw.pit_len(), 0);
    b.check();
}

#[test]
fn nacks_are_merged_and_the_least_severe_reason_is_passed_on() {
    let mut b = Bench::new().faces(3).route("/a", 257, 1).route("/a", 258, 2);
    b.interest(256, &I::new("/a/b", 1));
    b.wait(11);
    b.interest(256, &I::new("/a/b", 2));
    b.left();
    assert_eq!(b.nack(257, &I::new("/a/b", 1), 150), Verdict::NackAbsorbed);
    assert!(b.left().is_empty());
    assert_eq!(b.nack(258, &I::new("/a/b", 2), 50), Verdict::NackForwarded);
    assert_eq!(b.short(), ["256 nack50 /a/b"]);
}

#[test]
fn a_nack_from_a_link_with_several_peers_is_dropped() {
    let mut b = two();
    let info = FaceInfo { link: LinkType::MultiAccess, ..FaceInfo::point_to_point() };
    b.fw.face_add(FaceId(257), info);
    b.interest(256, &I::new("/a/b", 1));
    assert_eq!(b.nack(257, &I::new("/a/b", 1), 150), Verdict::NackNotPointToPoint);
}

#[test]
fn a_wrong_or_foreign_token_falls_back_to_the_name() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1));
    b.interest(256, &I::new("/a/c", 2));
    let left = b.left();
    let (for_b, for_c) = (left[0].token.clone(), left[1].token.clone());
    assert_eq!(b.data_with(257, "/a/b", 0, &for_c), Verdict::Satisfied, "names the other entry");
    assert_eq!(b.data_with(257, "/a/c", 0, &[9; 8]), Verdict::Satisfied, "not ours");
    assert_eq!(b.short(), ["256 data /a/b", "256 data /a/c"]);
    assert_eq!(b.data_with(257, "/a/b", 0, &for_b), Verdict::Unsolicited, "an entry that ended");
    assert_eq!((b.fw.counters().foreign_tokens, b.fw.counters().stale_tokens), (1, 1));
}

#[test]
fn without_tokens_of_ours_interests_carry_none() {
    let config = Config { originate_tokens: false, ..Config::default() };
    let mut b = Bench::with(config).faces(2).route("/a", 257, 0);
    b.interest(256, &I::new("/a/b", 1).token(&[1]));
    assert!(b.left()[0].token.is_empty(), "never the downstream's");
}

#[test]
fn a_forwarding_hint_leads_until_its_region_is_reached() {
    let mut b = Bench::new().faces(3).route("/isp", 257, 0).route("/a", 258, 0);
    let interest = I::new("/a/b", 1).hint("/none").hint("/isp/x");
    assert_eq!(b.interest(256, &interest), Verdict::Forwarded);
    assert_eq!(b.short(), ["257 interest /a/b"]);
    b.data(257, "/a/b", 0);
    assert_eq!(b.short(), ["256 data /a/b"]);
    b.fw.set_regions(vec![name("/isp/x/here")]);
    let interest = I::new("/a/c", 2).hint("/none").hint("/isp/x");
    b.interest(256, &interest);
    assert_eq!(b.short(), ["258 interest /a/c"]);
    let mut sent = I::new("/a/c", 2);
    sent.hint.clear();
    assert_eq!(b.nack(258, &sent, 150), Verdict::NackForwarded, "it was sent without the hint");
}

#[test]
fn next_hop_face_id_is_obeyed_where_local_fields_are_on_and_refused_elsewhere() {
    let mut b = two();
    let info = FaceInfo { local_fields: true, ..FaceInfo::local() };
    b.fw.face_add(FaceId(300), info);
    let mut interest = I::new("/z", 1);
    interest.lp.next_hop_face = FaceId(257).told();
    assert_eq!(b.interest(256, &interest), Verdict::UnexpectedField);
    assert_eq!(b.interest(300, &interest), Verdict::Forwarded);
    assert_eq!(b.short(), ["257 interest /z"]);
    interest = I::new("/y", 2);
    interest.lp.next_hop_face = FaceId(999).told();
    assert_eq!(b.interest(300, &interest), Verdict::NextHopFaceInvalid);
    b.check();
}

/// NFD's rule; the kernel module keeps /localhost on the host on this path as well.
#[test]
fn a_chosen_next_hop_is_obeyed_whatever_the_scope_of_the_name() {
    let mut b = two();
    b.fw.face_add(FaceId(300), FaceInfo { local_fields: true, ..FaceInfo::local() });
    let mut interest = I::new("/localhost/secret", 1);
    interest.lp.next_hop_face = FaceId(257).told();
    assert_eq!(b.interest(300, &interest), Verdict::Forwarded);
    assert_eq!(b.short(), ["257 interest /localhost/secret"]);
}

#[test]
fn fields_on_the_wrong_kind_of_packet_are_refused() {
    let mut b = two();
    let no_cache = LpIn { no_cache: true, ..LpIn::default() };
    let interest = I::new("/a/b", 1).bytes();
    assert_eq!(b.receive(256, interest.clone(), no_cache.clone()), Verdict::UnexpectedField);
    let mut nack = no_cache;
    nack.nack = Some(NackReason::CONGESTION);
    assert_eq!(b.receive(257, interest, nack.clone()), Verdict::UnexpectedField);
    assert_eq!(b.receive(257, data_bytes("/a/b", 0, b""), nack), Verdict::UnexpectedField);
    let discovery = LpIn { non_discovery: true, ..LpIn::default() };
    assert_eq!(b.receive(257, data_bytes("/a/b", 0, b""), discovery), Verdict::UnexpectedField);
    b.check();
}

#[test]
fn what_is_no_packet_or_too_long_or_from_a_closed_face_is_dropped() {
    let mut b = two();
    let garbage = onym_frame::Buf::copy_from(&[5, 3, 7, 1, 8]);
    assert_eq!(b.receive(256, garbage, LpIn::default()), Verdict::Malformed);
    assert_eq!(
        b.receive(256, onym_frame::Buf::copy_from(&[]), LpIn::default()),
        Verdict::Malformed
    );
    let long = data_bytes("/a/b", 0, &vec![0; 9000]);
    assert_eq!(b.receive(256, long, LpIn::default()), Verdict::TooLarge);
    assert_eq!(b.interest(999, &I::new("/a/b", 1)), Verdict::IngressGone);
    let deep = "/c".repeat(129);
    assert_eq!(b.interest(256, &I::new(&deep, 1)), Verdict::NameTooLong);
    b.check();
}

#[test]
fn a_face_that_goes_takes_its_routes_and_its_part_in_pending_interests() {
    let mut b = Bench::new().faces(3).route("/a", 257, 0);
    b.interest(256, &I::new("/a/b", 1));
    b.interest(256, &I::new("/a/c", 2));
    b.interest(258, &I::new("/a/c", 3));
    b.left();
    let counters = b.fw.face_remove(b.now, FaceId(256)).expect("was there");
    assert_eq!(counters.in_interests, 2);
    assert_eq!(b.fw.pit_len(), 1, "nobody waits for /a/b any more");
    assert_eq!(b.data(257, "/a/c", 0), Verdict::Satisfied);
    assert_eq!(b.short(), ["258 data /a/c"]);
    b.fw.face_remove(b.now, FaceId(257));
    assert!(b.fw.fib().is_empty());
    assert_eq!(b.interest(258, &I::new("/a/d", 4)), Verdict::NoRoute);
    b.check();
}

#[test]
fn multicast_sends_to_all_and_to_a_next_hop_that_comes_while_it_waits() {
    let mut b = Bench::new().faces(4).route("/a", 257, 0).route("/a", 258, 9);
    b = b.strategy("/a", "multicast");
    b.interest(256, &I::new("/a/b", 1));
    let mut left = b.short();
    left.sort();
    assert_eq!(left, ["257 interest /a/b", "258 interest /a/b"]);
    b.add_route("/a", 259, 0);
    assert_eq!(b.short(), ["259 interest /a/b"]);
    b.add_route("/a/c", 259, 0);
    assert!(b.short().is_empty(), "the prefix covers nothing that waits");
    assert_eq!(b.nack(257, &I::new("/a/b", 1), 150), Verdict::NackAbsorbed);
    assert!(b.left().is_empty());
    b.check();
}

#[test]
fn multicast_without_next_hop_keeps_the_entry_and_sends_no_nack() {
    let mut b = Bench::new().faces(2).strategy("/", "multicast");
    assert_eq!(b.interest(256, &I::new("/a/b", 1)), Verdict::NoRoute);
    assert!(b.left().is_empty());
    assert_eq!(b.fw.pit_len(), 1);
    b.add_route("/a", 257, 0);
    assert_eq!(b.short(), ["257 interest /a/b"]);
}

#[test]
fn management_gets_its_interests_and_its_answers_go_back() {
    let mut b = Bench::new().faces(1).local(300).route("/localhost/nfd", 1, 0);
    assert_eq!(b.interest(300, &I::new("/localhost/nfd/status", 1)), Verdict::Delivered);
    assert_eq!(b.short(), ["1 interest /localhost/nfd/status"]);
    assert_eq!(b.data(1, "/localhost/nfd/status", 1000), Verdict::Satisfied);
    assert_eq!(b.short(), ["300 data /localhost/nfd/status"]);
    // And the other way: management asks, for a certificate say.
    b.add_route("/key", 300, 0);
    assert_eq!(b.interest(1, &I::new("/key/1", 2)), Verdict::Forwarded);
    b.left();
    assert_eq!(b.data(300, "/key/1", 0), Verdict::Delivered);
    assert_eq!(b.short(), ["1 data /key/1"]);
    b.check();
}

#[test]
fn a_full_pit_refuses_new_names_and_keeps_what_it_has() {
    let config = Config { pit_entries_max: 2, ..Config::default() };
    let mut b = Bench::with(config).faces(2).route("/a", 257, 0);
    b.interest(256, &I::new("/a/1", 1));
    b.interest(256, &I::new("/a/2", 2));
    let verdict = b.interest(256, &I::new("/a/3", 3));
    assert!(matches!(verdict, Verdict::PitFull | Verdict::PitShare), "{verdict:?}");
    assert_eq!(b.data(257, "/a/1", 0), Verdict::Satisfied);
    b.check();
}

#[test]
fn the_strategy_of_the_longest_prefix_decides() {
    let mut b = Bench::new().faces(4).route("/", 257, 0).route("/", 258, 1);
    b = b.strategy("/m", "multicast").strategy("/m/b", "best-route");
    b.interest(256, &I::new("/m/x", 1));
    assert_eq!(b.left().len(), 2);
    b.interest(256, &I::new("/m/b/x", 2));
    assert_eq!(b.left().len(), 1);
    assert!(b.fw.strategy_unset(name("/m/b").as_ref()));
    assert!(!b.fw.strategy_unset(name("/").as_ref()), "the root keeps its own");
    b.interest(256, &I::new("/m/b/y", 3));
    assert_eq!(b.left().len(), 2);
}

#[test]
fn erasing_from_the_cache_takes_the_prefix_and_no_more_than_256_at_once() {
    let mut b = two();
    b.fw.set_unsolicited(UnsolicitedPolicy::AdmitAll);
    for n in 0..300 {
        b.data(256, &format!("/e/{n}"), 0);
    }
    b.data(256, "/f", 0);
    assert_eq!(b.fw.cs_erase(name("/e").as_ref(), 1000), 256);
    assert_eq!(b.fw.cs_erase(name("/e").as_ref(), 10), 10);
    assert_eq!(b.fw.cs_erase(name("/e").as_ref(), 1000), 34);
    assert_eq!(b.fw.cs().len(), 1);
}

#[test]
fn another_shard_finds_cached_data_by_prefix() {
    let mut b = two();
    b.fw.set_unsolicited(UnsolicitedPolicy::AdmitAll);
    b.data(256, "/a/c", 0);
    b.data(256, "/a/b/x", 0);
    let found = b.fw.cs_find(b.now, &I::new("/a", 1).prefix().bytes()).expect("a hit");
    let data = onym_wire::data::Data::parse(&found).unwrap();
    assert_eq!(data.name.to_string(), "/a/b/x", "the canonically smallest");
    assert!(b.fw.cs_find(b.now, &I::new("/a", 1).bytes()).is_none());
}

#[test]
fn a_face_counts_what_passes_it() {
    let mut b = two();
    b.interest(256, &I::new("/a/b", 1));
    b.data(257, "/a/b", 0);
    b.interest(256, &I::new("/a/c", 2).lifetime(10));
    b.wait(20);
    let face = |id| b.fw.faces().get(FaceId(id)).unwrap().counters;
    let (down, up) = (face(256), face(257));
    assert_eq!((down.in_interests, down.out_data, down.satisfied, down.unsatisfied), (2, 1, 1, 1));
    assert_eq!((up.out_interests, up.in_data), (2, 1));
    assert_eq!(b.fw.counters().verdict(PacketKind::Interest, Verdict::Forwarded), 2);
    assert_eq!(b.fw.faces().get(FaceId(256)).unwrap().info.scope, Scope::NonLocal);
}
