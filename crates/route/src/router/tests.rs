//! Two routers face to face, and what strangers put between them.

use super::neighbour::Said;
use super::*;
use crate::codec::{AdvEntry, Delta, Hello, PrefixAdd, PrefixOps};
use onym_crypto::signer::write_parameters;
use onym_wire::signature::SignatureInfo;
use onym_wire::{DataBuilder, Interest, InterestBuilder, types};

const UNIX_MS: u64 = 1_700_000_000_000;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn router() -> Router {
    let config = Config::new(name("/net"), name("/net/x"), UNIX_MS / 1000, 7);
    Router::new(Tick(0), config, Signer::digest(), UNIX_MS).unwrap()
}

/// A hello of `/net/p` as a deployed router sends it, signed at `time`.
fn hello(boot: u64, seq: u64, time: u64) -> Vec<u8> {
    hello_of("/net/p", boot, seq, time)
}

fn hello_of(router: &str, boot: u64, seq: u64, time: u64) -> Vec<u8> {
    let router = name(router);
    write_hello(&Hello { router, boot, seq, delta: None, heard: Vec::new(), goodbye: false }, time)
}

fn write_hello(said: &Hello, time: u64) -> Vec<u8> {
    let mut content = Vec::new();
    said.write(&mut content);
    let of = names::sync_data(said.router.as_ref());
    let info = SignatureInfo {
        time: Some(time),
        ..SignatureInfo::of_kind(types::SIGNATURE_DIGEST_SHA256)
    };
    let mut data = Vec::new();
    let builder = DataBuilder::new(of.as_ref(), &content);
    builder.write(&mut data, &info, |part| Ok::<_, ()>(onym_crypto::sha256(&[part]))).unwrap();
    let prefix = name("/localhop/net/32=DV/32=ADS/32=ACT");
    let builder = InterestBuilder { nonce: Some([1; 4]), ..InterestBuilder::new(prefix.as_ref()) };
    let mut interest = Vec::new();
    write_parameters(&builder, &data, &mut interest);
    interest
}

/// Hands a packet in and carries out everything, signatures being good.
fn give(router: &mut Router, now: Tick, wire: &[u8], face: Option<u64>) {
    router.receive(now, &Inbound { wire, incoming_face: face, ..Inbound::default() });
    settle(router, now);
}

fn settle(router: &mut Router, now: Tick) -> Vec<Notice> {
    let mut notices = Vec::new();
    while let Some(output) = router.poll_output() {
        match output {
            Output::Verify { id, .. } => router.verified(now, id, Verdict::Good),
            Output::Command { id, .. } => router.completed(now, id, Ok(None)),
            Output::Notice(notice) => notices.push(notice),
        }
    }
    notices
}

fn neighbours(router: &Router) -> usize {
    router.neighbours.len()
}

#[test]
fn an_old_hello_that_is_repeated_keeps_no_dead_neighbour_alive() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    let last = hello(boot, 3, UNIX_MS + 5);
    give(&mut router, Tick::from_ms(10), &last, Some(300));
    assert_eq!(neighbours(&router), 1);
    for s in (5..=60).step_by(5) {
        let now = Tick::from_ms(s * 1000);
        give(&mut router, now, &last, Some(300));
        router.handle_timeout(now);
        settle(&mut router, now);
    }
    assert_eq!(neighbours(&router), 0);
    assert!(router.counters().replayed >= 10, "{:?}", router.counters());
    // The same words, signed later, are alive; so are newer ones whatever the time.
    give(&mut router, Tick::from_ms(61_000), &hello(boot, 3, UNIX_MS + 61_000), Some(300));
    assert_eq!(neighbours(&router), 1);
    give(&mut router, Tick::from_ms(62_000), &hello(boot, 4, UNIX_MS - 900_000), Some(300));
    assert_eq!(router.neighbours.iter().next().unwrap().words.said.seq, 4);
    // Older ones are not, even from a later moment: ndnd's consequence A.
    give(&mut router, Tick::from_ms(63_000), &hello(boot - 9, 900, UNIX_MS + 63_000), Some(300));
    assert_eq!(router.neighbours.iter().next().unwrap().words.said.boot, boot);
}

#[test]
fn hellos_without_end_cost_a_bounded_number_of_checks() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    for seq in 0..5_000 {
        let now = Tick::from_ms(seq / 5);
        give(&mut router, now, &hello(boot, seq + 1, UNIX_MS + seq), Some(300));
    }
    // One second: the burst, and what a second allows.
    let counters = router.counters();
    assert!(counters.flooded >= 5_000 - 400 - 201, "{counters:?}");
}

#[test]
fn a_router_speaks_for_its_own_prefixes_only() {
    let mut router = router();
    let add = PrefixAdd { name: name("/evil"), cost: 0, through: Vec::new() };
    let ops =
        PrefixOps { exit_router: name("/net/victim"), adds: vec![add], ..PrefixOps::default() };
    let mut content = Vec::new();
    ops.write(&mut content);
    router.on_operations(name("/net/liar"), &content);
    assert_eq!(router.prefixes().remote().count(), 0);
    router.on_operations(name("/net/victim"), &content);
    assert_eq!(router.prefixes().remote().count(), 1);
    // Nor is anything taken that came through this network before.
    let through = vec![name("/other"), name("/net")];
    let add = PrefixAdd { name: name("/around"), cost: 0, through };
    let ops = PrefixOps { exit_router: name("/net/b"), adds: vec![add], ..PrefixOps::default() };
    let mut content = Vec::new();
    ops.write(&mut content);
    router.on_operations(name("/net/b"), &content);
    assert_eq!(router.prefixes().remote().count(), 1);
}

#[test]
fn a_hello_without_face_or_in_the_name_of_another_is_nothing() {
    let mut router = router();
    let good = hello(UNIX_MS / 1000, 1, UNIX_MS);
    give(&mut router, Tick(1), &good, None);
    assert_eq!((neighbours(&router), router.counters().no_face), (0, 1));
    let interest = Interest::parse(&good).unwrap();
    let mut cut = good.clone();
    let at = good.len() - interest.app_parameters.unwrap().len() + 60;
    cut[at] ^= 1;
    give(&mut router, Tick(1), &cut, Some(300));
    assert_eq!((neighbours(&router), router.counters().malformed), (0, 1));
}

#[test]
fn a_neighbour_held_down_stays_down_until_it_is_released() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    give(&mut router, Tick(1), &hello(boot, 1, UNIX_MS), Some(300));
    router.hold(Tick(2), &name("/net/p"));
    assert_eq!(neighbours(&router), 0);
    for seq in 2..20 {
        give(&mut router, Tick::from_ms(seq), &hello(boot, seq, UNIX_MS + seq), Some(301));
    }
    assert_eq!(neighbours(&router), 0);
    router.release(Tick::from_ms(40), &name("/net/p"));
    give(&mut router, Tick::from_ms(50), &hello(boot, 50, UNIX_MS + 50), Some(301));
    assert_eq!(neighbours(&router), 1);
}

#[test]
fn a_readvertised_prefix_is_answered_with_all_that_both_forwarders_want() {
    use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse};
    let mut router = router();
    let parameters = ControlParameters {
        name: Some(name("/app")),
        face_id: Some(300),
        cost: Some(7),
        ..ControlParameters::default()
    };
    let prefix = name("/localhost/nlsr");
    let command = onym_wire::mgmt::command_name(prefix.as_ref(), "rib", "register", &parameters);
    let builder = InterestBuilder { nonce: Some([2; 4]), ..InterestBuilder::new(command.as_ref()) };
    let mut interest = Vec::new();
    write_parameters(&builder, &[], &mut interest);
    while router.poll_transmit(Tick(1)).is_some() {}
    give(&mut router, Tick(1), &interest, Some(300));
    let replies: Vec<_> = std::iter::from_fn(|| router.poll_transmit(Tick(1))).collect();
    let data = replies.iter().find_map(|t| onym_wire::Data::parse(&t.wire).ok()).unwrap();
    let element = onym_wire::tlv::Element::parse(data.content).unwrap();
    let reply = ControlResponse::parse_value(element.value).unwrap();
    let body = reply.body.unwrap();
    assert_eq!((reply.code, body.face_id, body.origin), (200, Some(300), Some(65)));
    assert_eq!((body.cost, body.flags, body.name), (Some(7), Some(1), Some(name("/app"))));
    assert_eq!(router.prefixes().local_cost(&name("/app")), Some(7));
    router.face_down(Tick(2), 300);
    assert_eq!(router.prefixes().local_cost(&name("/app")), None, "it goes with its face");
}

#[test]
fn a_neighbour_held_down_hears_goodbye_and_then_nothing_on_its_link() {
    let mut config = Config::new(name("/net"), name("/net/x"), UNIX_MS / 1000, 7);
    config.held = vec![name("/net/p")];
    config.links = vec![Link { uri: "udp4://192.0.2.1:6363".into(), mtu: None, cost: 1 }];
    let mut router = Router::new(Tick(0), config, Signer::digest(), UNIX_MS).unwrap();
    let mut active = Vec::new();
    let obey = |router: &mut Router, active: &mut Vec<u64>| {
        while let Some(output) = router.poll_output() {
            match output {
                Output::Verify { id, .. } => router.verified(Tick(1), id, Verdict::Good),
                Output::Command { id, command } => {
                    let here = router.names().sync_active.clone();
                    match &command {
                        Command::Register { prefix, face, .. } if *prefix == here => {
                            active.push(*face);
                        }
                        Command::Unregister { prefix, face } if *prefix == here => {
                            active.retain(|known| known != face);
                        }
                        _ => {}
                    }
                    let face = matches!(command, Command::CreateFace { .. }).then_some(300);
                    router.completed(Tick(1), id, Ok(face));
                }
                Output::Notice(_) => {}
            }
        }
    };
    obey(&mut router, &mut active);
    assert_eq!(active, [300], "nobody was heard there yet");
    while router.poll_transmit(Tick(1)).is_some() {}
    let wire = hello(UNIX_MS / 1000, 1, UNIX_MS);
    let inbound = Inbound { wire: &wire, incoming_face: Some(300), ..Inbound::default() };
    router.receive(Tick(1), &inbound);
    obey(&mut router, &mut active);
    assert_eq!((neighbours(&router), active.as_slice()), (0, &[][..]));
    let said = std::iter::from_fn(|| router.poll_transmit(Tick(1)))
        .find(|t| t.next_hop_face == Some(300))
        .expect("a goodbye on its face");
    let interest = Interest::parse(&said.wire).unwrap();
    let data = onym_wire::Data::parse(interest.app_parameters.unwrap()).unwrap();
    assert!(Hello::parse(data.content).unwrap().goodbye);
    router.release(Tick(2), &name("/net/p"));
    obey(&mut router, &mut active);
    assert_eq!(active, [300]);
}

/// A neighbour `/net/p` of ours at the face 300; what waits to be sent is taken.
fn with_neighbour(now: Tick) -> Router {
    let mut router = router();
    let p = name("/net/p");
    let heard = vec![crate::codec::Heard { router: name("/net/x"), seq: 1 }];
    let (boot, seq) = (UNIX_MS / 1000, 1);
    let said = Hello { router: p.clone(), boot, seq, delta: None, heard, goodbye: false };
    let mut content = Vec::new();
    said.write(&mut content);
    let prefix = router.names().sync_active.clone();
    let wire = signed(&names::sync_data(p.as_ref()), &content, UNIX_MS);
    let builder = InterestBuilder { nonce: Some([1; 4]), ..InterestBuilder::new(prefix.as_ref()) };
    let mut interest = Vec::new();
    write_parameters(&builder, &wire, &mut interest);
    give(&mut router, now, &interest, Some(300));
    while router.poll_transmit(now).is_some() {}
    router
}

fn signed(of: &Name, content: &[u8], time: u64) -> Vec<u8> {
    let kind = SignatureInfo::of_kind(types::SIGNATURE_DIGEST_SHA256);
    let info = SignatureInfo { time: Some(time), ..kind };
    let mut data = Vec::new();
    let builder = DataBuilder::new(of.as_ref(), content);
    builder.write(&mut data, &info, |part| Ok::<_, ()>(onym_crypto::sha256(&[part]))).unwrap();
    data
}

/// Passes `ms`, each of them one turn, and answers probes where `is_alive`; how many left.
fn pass(router: &mut Router, from_ms: u64, ms: u64, is_alive: bool) -> usize {
    let mut probes = 0;
    for at in from_ms..from_ms + ms {
        let now = Tick::from_ms(at);
        router.handle_timeout(now);
        while let Some(sent) = router.poll_transmit(now) {
            let Ok(interest) = Interest::parse(&sent.wire) else { continue };
            if !interest.name.components().any(|c| c.is_keyword(b"PING")) {
                continue;
            }
            assert_eq!(sent.next_hop_face, Some(300));
            probes += 1;
            if is_alive {
                let data = signed(&interest.name.to_name(), b"", UNIX_MS + at);
                let pit_token = &sent.pit_token[..];
                let face = Some(300);
                let inbound = Inbound { wire: &data, pit_token, nack: None, incoming_face: face };
                router.receive(now, &inbound);
            }
        }
        settle(router, now);
    }
    probes
}

#[test]
fn a_neighbour_whose_host_refuses_packets_and_that_answers_no_probe_is_gone_at_once() {
    let mut router = with_neighbour(Tick::from_ms(1));
    pass(&mut router, 2, 500, true);
    router.face_refused(Tick::from_ms(502), 300);
    assert_eq!((neighbours(&router), router.counters().doubts), (1, 1), "asked first");
    let probes = pass(&mut router, 502, 201, false);
    assert_eq!((probes, neighbours(&router)), (5, 0), "five probes, 40 ms apart");
}

#[test]
fn forged_refusals_take_no_neighbour_down_and_cost_a_bounded_number_of_probes() {
    let mut router = with_neighbour(Tick::from_ms(1));
    pass(&mut router, 2, 500, true);
    let mut probes = 0;
    for ms in 502..10_502 {
        router.face_refused(Tick::from_ms(ms), 300);
        probes += pass(&mut router, ms, 1, true);
    }
    assert_eq!((neighbours(&router), router.counters().doubts), (1, 10), "one a second");
    assert!(probes <= 10 + 2, "{probes}: the first answer ends a doubt");
    // What it says itself ends a doubt, too.
    router.face_refused(Tick::from_ms(11_000), 300);
    let said = hello(UNIX_MS / 1000, 2, UNIX_MS + 11_010);
    give(&mut router, Tick::from_ms(11_010), &said, Some(300));
    pass(&mut router, 11_011, 2_000, false);
    assert_eq!(neighbours(&router), 1);
}

#[test]
fn a_refused_face_of_a_deployed_router_waits_for_the_dead_interval() {
    let mut router = router();
    give(&mut router, Tick::from_ms(1), &hello(UNIX_MS / 1000, 1, UNIX_MS), Some(300));
    router.face_refused(Tick::from_ms(2), 300);
    assert_eq!(pass(&mut router, 2, 5_000, false), 0, "it knows no probes");
    assert_eq!((neighbours(&router), router.counters().doubts), (1, 0));
}

#[test]
fn somebody_of_our_own_name_is_told_once_and_changes_nothing() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    let mut told = 0;
    for seq in 1..100 {
        let now = Tick::from_ms(seq * 100);
        let wire = hello_of("/net/x", boot + 7, seq, UNIX_MS + seq);
        router
            .receive(now, &Inbound { wire: &wire, incoming_face: Some(300), ..Inbound::default() });
        let notices = settle(&mut router, now);
        told += notices.iter().filter(|n| matches!(n, Notice::Duplicate(_))).count();
    }
    assert_eq!((told, neighbours(&router), router.counters().adverts), (1, 0, 1));
}

#[test]
fn a_refusal_that_repeats_is_told_once_in_a_minute() {
    let mut router = router();
    let mut told = 0;
    for seq in 1..=150 {
        let now = Tick::from_ms(seq * 500);
        let wire = hello(UNIX_MS / 1000, seq, UNIX_MS + seq);
        router
            .receive(now, &Inbound { wire: &wire, incoming_face: Some(300), ..Inbound::default() });
        while let Some(output) = router.poll_output() {
            match output {
                Output::Verify { id, .. } => {
                    router.verified(now, id, Verdict::Bad("no key".into()))
                }
                Output::Command { id, .. } => router.completed(now, id, Ok(None)),
                Output::Notice(_) => told += 1,
            }
        }
    }
    assert_eq!((told, router.counters().refused), (2, 150), "75 seconds");
}

#[test]
fn two_routers_behind_one_face_are_two_neighbours() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    for (of, seq) in [("/net/p", 1), ("/net/q", 1), ("/net/p", 2)] {
        give(&mut router, Tick::from_ms(seq), &hello_of(of, boot, seq, UNIX_MS + seq), Some(300));
    }
    assert_eq!(neighbours(&router), 2);
    router.face_down(Tick::from_ms(5), 300);
    assert_eq!(neighbours(&router), 0);
}

#[test]
fn a_prefix_that_the_forwarder_refuses_is_not_asked_again_soon() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    give(&mut router, Tick(1), &hello(boot, 1, UNIX_MS), Some(300));
    let own = AdvEntry {
        destination: name("/net/p"),
        next_hop: name("/net/p"),
        cost: 0,
        other_cost: 16,
        seq: Some(boot << 16),
        metric: None,
    };
    let advert = crate::codec::Advert { entries: vec![own], requests: Vec::new() };
    let peer = router.neighbours.iter().next().unwrap().id;
    router.table.replace(peer, &advert);
    router.progress(Tick(2));
    settle(&mut router, Tick(2));
    let long: Name =
        (0..40).fold(Name::new(), |name, _| name.with(onym_wire::Component::generic(b"x")));
    let adds = vec![PrefixAdd { name: long.clone(), cost: 0, through: Vec::new() }];
    let ops = PrefixOps { exit_router: name("/net/p"), adds, ..PrefixOps::default() };
    let mut content = Vec::new();
    ops.write(&mut content);
    router.on_operations(name("/net/p"), &content);
    let mut asked = 0;
    for ms in (10..30_000).step_by(100) {
        let now = Tick::from_ms(ms);
        router.handle_timeout(now);
        while let Some(output) = router.poll_output() {
            if let Output::Command { id, command } = output {
                let refused =
                    matches!(&command, Command::Register { prefix, .. } if *prefix == long);
                asked += u32::from(refused);
                let answer = if refused { Err(CommandError::Refused(414)) } else { Ok(None) };
                router.completed(now, id, answer);
            }
        }
        let alive = hello(boot, 1, UNIX_MS + ms);
        router.receive(
            now,
            &Inbound { wire: &alive, incoming_face: Some(300), ..Inbound::default() },
        );
    }
    assert_eq!(asked, 1);
}

#[test]
fn a_registration_that_is_repeated_says_nothing_new() {
    let mut router = router();
    assert!(router.announce(Tick(1), &name("/app"), 300, 0));
    router.handle_timeout(Tick(2));
    let published = router.group.svs().seq();
    for hour in 1..5 {
        let now = Tick::from_ms(hour * 3_600_000);
        assert!(router.announce(now, &name("/app"), 300, 0));
        router.handle_timeout(now);
    }
    assert_eq!(router.group.svs().seq(), published);
    router.withdraw(Tick::from_ms(20_000_000), &name("/app"), 300);
    router.handle_timeout(Tick::from_ms(20_000_001));
    assert_eq!(router.group.svs().seq(), published + 1);
}

#[test]
fn what_changes_together_is_published_together() {
    let mut router = router();
    let before = router.group.svs().seq();
    for i in 0..1000 {
        assert!(router.announce(Tick(1), &name(&format!("/app/{i}")), 300, 0));
    }
    router.handle_timeout(Tick(1));
    assert_eq!(router.group.svs().seq(), before + 1);
    // What came and went before it was told is told as gone.
    assert!(router.announce(Tick(2), &name("/app/brief"), 300, 0));
    router.withdraw(Tick(2), &name("/app/brief"), 300);
    router.handle_timeout(Tick::from_ms(11));
    assert_eq!(router.group.svs().seq(), before + 2);
}

/// What `/net/p` advertises to so many destinations, as a deployed router does.
fn advertised(count: usize) -> Vec<u8> {
    let entry = |destination: Name, cost| AdvEntry {
        destination,
        next_hop: name("/net/p"),
        cost,
        other_cost: 16,
        seq: None,
        metric: None,
    };
    let far = (0..count).map(|i| entry(name(&format!("/net/far-away-{i:04}")), 3));
    let entries = std::iter::once(entry(name("/net/p"), 0)).chain(far).collect();
    let mut content = Vec::new();
    crate::codec::Advert { entries, requests: Vec::new() }.write(&mut content);
    content
}

/// Answers requests for segments of `content` for 300 ms; after each what is no answer: the segment again,
/// and the next one before its turn. How many segments were asked for.
fn serve_segments(router: &mut Router, from_ms: u64, content: &[u8]) -> usize {
    let pieces: Vec<&[u8]> = content.chunks(8000).collect();
    let mut last = Name::new();
    last.append_segment(pieces.len() as u64 - 1);
    let mut asked = 0;
    for at in from_ms..from_ms + 300 {
        let now = Tick::from_ms(at);
        router.handle_timeout(now);
        while let Some(sent) = router.poll_transmit(now) {
            let Ok(interest) = Interest::parse(&sent.wire) else { continue };
            let wanted = interest.name.last().and_then(onym_wire::Component::as_segment);
            let is_advert = interest.name.components().any(|c| c.is_keyword(b"ADV"));
            let Some(wanted) = wanted.filter(|_| is_advert) else { continue };
            asked += 1;
            let base = interest.name.drop_last(1).to_name();
            for segment in [wanted + 1, wanted, wanted] {
                let Some(piece) = pieces.get(usize::try_from(segment).unwrap()) else { continue };
                let mut of = base.clone();
                of.append_segment(segment);
                let kind = SignatureInfo::of_kind(types::SIGNATURE_DIGEST_SHA256);
                let final_block_id = last.as_ref().last();
                let builder =
                    DataBuilder { final_block_id, ..DataBuilder::new(of.as_ref(), piece) };
                let mut wire = Vec::new();
                let digest = |part: &[u8]| Ok::<_, ()>(onym_crypto::sha256(&[part]));
                builder.write(&mut wire, &kind, digest).unwrap();
                let pit_token = &sent.pit_token[..];
                let incoming_face = Some(300);
                let inbound = Inbound { wire: &wire, pit_token, nack: None, incoming_face };
                router.receive(now, &inbound);
                settle(router, now);
            }
        }
        settle(router, now);
    }
    asked
}

#[test]
fn an_advertisement_of_many_segments_is_taken_whole_whatever_comes_twice_or_before_its_turn() {
    let mut router = router();
    let content = advertised(600);
    assert!(content.len() > 2 * 8000);
    give(&mut router, Tick::from_ms(1), &hello(UNIX_MS / 1000, 1, UNIX_MS), Some(300));
    let asked = serve_segments(&mut router, 2, &content);
    assert_eq!((asked, router.table.routes().count()), (content.len().div_ceil(8000), 601));
    // One that was cut changes nothing, and is not asked for again until there is a newer one.
    let said = hello(UNIX_MS / 1000, 2, UNIX_MS + 4_000);
    give(&mut router, Tick::from_ms(4_000), &said, Some(300));
    let cut = &content[..content.len() - 3];
    assert_eq!(serve_segments(&mut router, 4_001, cut), asked);
    assert_eq!((router.counters().malformed, router.table.routes().count()), (1, 601));
    // An empty one withdraws everything.
    let said = hello(UNIX_MS / 1000, 3, UNIX_MS + 8_000);
    give(&mut router, Tick::from_ms(8_000), &said, Some(300));
    serve_segments(&mut router, 8_001, &advertised(0));
    assert_eq!(router.table.routes().count(), 1);
}

/// Law: the group is asked about a router that is reached and that nothing was heard of, at growing
/// intervals, and no more once it was heard of: a vector that is lost costs no periodic interval.
#[test]
fn the_group_is_asked_about_a_router_that_nothing_was_heard_of() {
    let mut router = router();
    let boot = UNIX_MS / 1000;
    give(&mut router, Tick(1), &hello(boot, 1, UNIX_MS), Some(300));
    let peer = router.neighbours.id(&name("/net/p")).unwrap();
    router.neighbours.get_mut(peer).unwrap().taken = Some(Said { boot, seq: 1 });
    let own = AdvEntry {
        destination: name("/net/p"),
        next_hop: name("/net/p"),
        cost: 0,
        other_cost: 16,
        seq: Some(boot << SEQ_BITS),
        metric: Some(0),
    };
    let delta = Delta { base: 1, entries: vec![own], removed: Vec::new(), requests: Vec::new() };
    let said = Hello {
        router: name("/net/p"),
        boot,
        seq: 2,
        delta: Some(delta),
        heard: Vec::new(),
        goodbye: false,
    };
    give(&mut router, Tick::from_ms(400), &write_hello(&said, UNIX_MS + 400), Some(300));
    assert!(router.table.route(&name("/net/p")).is_some(), "a way");
    // What the start and the face of the neighbour bring is over.
    vectors(&mut router, 500, 1500);
    let sent = vectors(&mut router, 1500, 12_000);
    assert_eq!(sent.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [1900, 4900, 10_900]);
    let config = Config::new(name("/net"), name("/net/p"), boot, 8);
    let mut p = Router::new(Tick(0), config, Signer::digest(), UNIX_MS).unwrap();
    let (_, told) = vectors(&mut p, 0, 100).pop().unwrap();
    give(&mut router, Tick::from_ms(12_000), &told, Some(300));
    // It is answered once: the other one lacks this router.
    assert_eq!(vectors(&mut router, 12_000, 13_000).len(), 1);
    assert_eq!(vectors(&mut router, 13_000, 27_000), []);
}

/// Vectors of the prefix group that leave, with their moments.
fn vectors(router: &mut Router, from_ms: u64, to_ms: u64) -> Vec<(u64, Vec<u8>)> {
    let mut sent = Vec::new();
    for ms in (from_ms..to_ms).step_by(100) {
        let now = Tick::from_ms(ms);
        router.handle_timeout(now);
        settle(router, now);
        while let Some(packet) = router.poll_transmit(now) {
            let name = Interest::parse(&packet.wire).unwrap().name;
            if router.names.prefix_sync.as_ref().is_prefix_of(name) {
                sent.push((ms, packet.wire.clone()));
            }
        }
    }
    sent
}
