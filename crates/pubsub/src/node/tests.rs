use super::*;
use crate::forwarder::LinkEntry;
use crate::signature::{Signing, Trusted};
use onym_tables::Rng;
use onym_wire::push::{Control, Kind, Label, Role, Strategy, reserved};
use onym_wire::push::{Filter, FrameBuilder, Link, Route, RouteBuf, Sequence, Status};

fn node(role: Role) -> Node {
    let mut config = Config::new(Label::from_u64(1), 0, role, 1);
    config.domain = Some(Label::from_u64(0xd0));
    let mut node = Node::new(config);
    for number in 0..3 {
        let link =
            LinkEntry { face: FaceId(256 + number), number: 10 + number, is_external: number == 2 };
        node.link_add(Tick(0), link, 1).unwrap();
    }
    node
}

/// A message with some of everything, and a frame around it.
fn a_frame(rng: &mut Rng) -> Vec<u8> {
    let kinds = [0, 1, 2, 3, 4, 5, 6, 7, 55, 100, 101, 102, 105, 106, 107, 160, 161, 162, 163, 164];
    let kinds =
        [&kinds[..], &[165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 177, 178, 179, 200]]
            .concat();
    let label = |rng: &mut Rng| Label::from_u64(rng.below(4));
    let id = |rng: &mut Rng| {
        let depth = 1 + rng.below(3);
        (0..depth).fold(Id::default(), |id, _| id.child(label(rng)))
    };
    let mut message = Control::new(Kind(kinds[rng.below(kinds.len() as u64) as usize]), label(rng));
    message.sequence = Sequence { session: rng.below(3) as u32, number: rng.below(4) as u32 };
    message.request = Sequence { session: rng.below(3) as u32, number: rng.below(4) as u32 };
    message.ids = (0..rng.below(3)).map(|_| id(rng)).collect();
    message.prefix = Id::from_labels(id(rng).parent());
    message.strategy = Strategy(rng.below(9) as u8);
    message.status = Some(Status(rng.below(20) as u8));
    message.item = (rng.below(4) > 0).then(|| rng.below(5));
    message.version = rng.below(4);
    message.is_full = rng.below(2) == 0;
    message.number = rng.below(10);
    message.epoch = Some(rng.below(3));
    message.role = Role(rng.below(4) as u8);
    message.publishers = (0..rng.below(3)).map(|_| label(rng)).collect();
    message.subscribers = (0..rng.below(3)).map(|_| label(rng)).collect();
    message.nodes = (0..rng.below(3)).map(|_| label(rng)).collect();
    message.gone = (0..rng.below(3)).map(|_| label(rng)).collect();
    message.missing = (0..rng.below(3)).map(|_| (rng.below(5) as u32, u32::MAX)).collect();
    message.links = (0..rng.below(4))
        .map(|_| Link { neighbour: label(rng), number: rng.below(20) as u32, cost: 1 })
        .collect();
    message.body = Control::new(Kind(106), label(rng)).octets();
    let roots = [0xff, 0xfe, 0xfd, 0xfc, 0xfa, 0xf9];
    let root = match rng.below(8) {
        6 => reserved::HELLO,
        7 => Label::from_u64(1),
        n => Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, roots[n as usize]]),
    };
    let name = if rng.below(3) == 0 { Label::from_u64(1) } else { message.sender };
    let mut filter = Filter::EMPTY;
    filter.set(0);
    filter.set(10 + rng.below(4) as u8);
    let routes = [RouteBuf::from(Route::Link), RouteBuf::flat(0, &filter)];
    let mut octets = Vec::new();
    FrameBuilder {
        hop_limit: rng.below(4) as u8,
        strategy: Strategy(rng.below(9) as u8),
        route: &routes[rng.below(2) as usize],
        ids: &[reserved::of(root, name)],
        options: &[],
        payload: &message.octets(),
    }
    .write(&mut octets);
    octets
}

#[test]
fn whatever_comes_ends_in_one_verdict_and_nothing_breaks() {
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let mut node = node(Role(3));
        let (mut output, mut now) = (Output::default(), Tick(0));
        for _ in 0..4000 {
            now = now.plus_ms(rng.below(300));
            let mut octets = a_frame(&mut rng);
            for _ in 0..rng.below(3) {
                let at = rng.below(octets.len() as u64) as usize;
                octets[at] = rng.next_u64() as u8;
            }
            octets.truncate(octets.len() - (rng.below(40) / 38) as usize);
            let face = FaceId(256 + rng.below(4) as u32);
            node.receive(now, face, &mut octets, &mut output);
            if node.next_timeout() <= now {
                node.handle_timeout(now, &mut output);
            }
            assert!(node.forwarder.counters().balance(), "seed {seed}");
            output.frames.clear();
            output.events.clear();
        }
        let dropped = node.dropped.malformed + node.dropped.misdirected;
        assert!(dropped > 100, "seed {seed}: {dropped} dropped");
    }
}

#[test]
fn timers_are_never_due_twice_at_the_same_moment() {
    let mut node = node(Role(3));
    let mut output = Output::default();
    let mut now = Tick(0);
    for _ in 0..200 {
        node.handle_timeout(now, &mut output);
        let next = node.next_timeout();
        assert!(next > now, "{next:?} after {now:?}");
        now = next;
    }
}

#[test]
fn only_publications_of_who_is_trusted_are_delivered() {
    use onym_crypto::{KeyType, PrivateKey};
    let key = || PrivateKey::generate(KeyType::Ed25519).unwrap();
    let (known, stranger) = (key(), key());
    let mut config = Config::new(Label::from_u64(1), 0, Role(0), 1);
    config.trusted = Some(Trusted::new([known.public_key().unwrap()]));
    let mut receiver = Node::new(config);
    let link = LinkEntry { face: FaceId(256), number: 10, is_external: false };
    receiver.link_add(Tick(0), link, 1).unwrap();
    let (mut output, app) = (Output::default(), AppId(1));
    let id: Id = "/1".parse().unwrap();
    let request = Request {
        kind: Kind::SUBSCRIBE_SCOPE,
        id: id.clone(),
        prefix: Id::default(),
        strategy: Strategy::BROADCAST,
    };
    receiver.request(Tick(0), app, 1, &request, &mut output);
    output.events.clear();
    let mut wanted = 0;
    for (key, is_good) in [(Some(known), true), (Some(stranger), false), (None, false)] {
        let mut config = Config::new(Label::from_u64(2), 1, Role(0), 1);
        config.signing = key.map(|key| Signing::new(key).unwrap());
        let mut sender = Node::new(config);
        sender.link_add(Tick(0), link, 1).unwrap();
        let mut sent = Output::default();
        let data = Data::new(id.clone(), Strategy::BROADCAST, b"hello");
        sender.publish(Tick(0), app, &data, &mut sent).unwrap();
        let mut octets = sent.frames.remove(0).octets;
        receiver.receive(Tick(0), FaceId(256), &mut octets, &mut output);
        wanted += usize::from(is_good);
        assert_eq!(output.events.len(), wanted);
    }
    assert_eq!(receiver.dropped.signature, 2);
}

/// Lets a key speak to one part of nodes only.
#[derive(Debug)]
struct Part(Label);

impl crate::Rules for Part {
    fn may(&self, _: &[u8; 32], item: &[[u8; 8]]) -> bool {
        item.first() == Some(&self.0.0)
    }
}

#[test]
fn only_control_messages_of_who_is_trusted_are_obeyed() {
    use onym_crypto::{KeyType, PrivateKey};
    let key = || PrivateKey::generate(KeyType::Ed25519).unwrap();
    let (known, stranger, own) = (key(), key(), key());
    let hello = Part(reserved::HELLO);
    let everybody = [known.public_key().unwrap()];
    let trusted = Trusted::new(everybody.clone());
    let control = |key: Option<PrivateKey>, control: Option<Trusted>, label, inside| -> Node {
        let mut config = Config::new(Label::from_u64(label), inside, Role(0), 1);
        config.signing = key.map(|key| Signing::new(key).unwrap());
        config.control = control;
        Node::new(config)
    };
    let link = LinkEntry { face: FaceId(256), number: 10, is_external: false };
    let cases = [
        // Signed by somebody known, by a stranger, not at all, and as the rules do not let it.
        (Some(known), trusted.clone(), true),
        (Some(stranger), trusted.clone(), false),
        (None, trusted.clone(), false),
        (Some(key()), trusted, false),
    ];
    let mut refused = 0;
    for (number, (signer, trusts, is_obeyed)) in cases.into_iter().enumerate() {
        let own = PrivateKey::from_pkcs8(&own.to_pkcs8().unwrap()).unwrap();
        let mut receiver = control(Some(own), Some(trusts), 1, 0);
        receiver.link_add(Tick(0), link, 1).unwrap();
        let signs = signer.is_some().then(|| Trusted::new([]));
        let mut sender = control(signer, signs, 2, 1);
        let mut sent = Output::default();
        sender.link_add(Tick(0), link, 1).unwrap();
        sender.handle_timeout(Tick(0), &mut sent);
        let mut frames = std::mem::take(&mut sent.frames);
        assert!(!frames.is_empty(), "it says hello");
        let mut output = Output::default();
        for frame in &mut frames {
            receiver.receive(Tick(0), FaceId(256), &mut frame.octets, &mut output);
        }
        let taken = receiver.taken(Kind::HELLO);
        assert_eq!(taken > 0, is_obeyed, "case {number}");
        let expected = if is_obeyed { 0 } else { frames.len() as u64 };
        assert_eq!(receiver.dropped.signature, expected, "case {number}");
        refused += expected;
    }
    assert!(refused >= 3);
    // The rules are asked about the part that a message is for.
    let known = key();
    let trusts = Trusted::new([known.public_key().unwrap()]).with_rules(Arc::new(hello));
    let mut receiver = control(Some(own), Some(trusts), 1, 0);
    receiver.link_add(Tick(0), link, 1).unwrap();
    let mut sender = control(Some(known), Some(Trusted::new([])), 2, 1);
    sender.link_add(Tick(0), link, 1).unwrap();
    let mut sent = Output::default();
    sender.handle_timeout(Tick(0), &mut sent);
    for frame in &mut sent.frames {
        receiver.receive(Tick(0), FaceId(256), &mut frame.octets, &mut Output::default());
    }
    let [hello, states] = [Kind::HELLO, Kind::LINK_STATE].map(|kind| receiver.taken(kind));
    assert!(hello > 0 && states == 0, "{hello} hellos, {states} link states");
}

#[test]
fn who_subscribes_later_hears_what_is_still_good() {
    let mut node = node(Role(3));
    let mut output = Output::default();
    let (publisher, early, late) = (AppId(1), AppId(2), AppId(3));
    let strategy = Strategy::NODE_LOCAL;
    let ask = |kind, id: &str, prefix: &str, strategy| Request {
        kind,
        id: id.parse().unwrap(),
        prefix: prefix.parse().unwrap(),
        strategy,
    };
    let local = Strategy::ALGORITHMIC_LOCAL;
    let requests = [
        (publisher, ask(Kind::PUBLISH_SCOPE, "/1", "/", strategy)),
        (publisher, ask(Kind::PUBLISH_ITEM, "/2", "/1", strategy)),
        (early, ask(Kind::SUBSCRIBE_ITEM, "/2", "/1", strategy)),
    ];
    for (app, request) in &requests {
        node.request(Tick(0), *app, 1, request, &mut output);
    }
    let data = |id: &str, payload, lifetime_ms| Data {
        about: Some("/1/2".parse().unwrap()),
        lifetime_ms,
        ..Data::new(id.parse().unwrap(), local, payload)
    };
    for data in [data("/1/9/1", b"kept", 1000), data("/1/9/2", b"not!", 0)] {
        node.publish(Tick(0), publisher, &data, &mut output).unwrap();
    }
    output.events.clear();
    node.request(Tick(1), late, 1, &ask(Kind::SUBSCRIBE_SCOPE, "/9", "/1", local), &mut output);
    let told: Vec<&Event> = output.events.iter().map(|(_, event)| event).collect();
    let (id, payload) = ("/1/9/1".parse().unwrap(), b"kept"[..].into());
    let status = Event::Status { tag: 1, status: Status::OK };
    assert_eq!(told, [&status, &Event::Data { id, payload, came_by: Some(local) }]);
}

#[test]
fn a_node_local_publication_is_ready_as_soon_as_its_item_is_started() {
    let mut node = node(Role::default());
    let mut output = Output::default();
    let (publisher, subscriber, strategy) = (AppId(1), AppId(2), Strategy::NODE_LOCAL);
    let mut ask = |node: &mut Node, app, kind, id: &str, prefix: &str| {
        let (id, prefix) = (id.parse().unwrap(), prefix.parse().unwrap());
        node.request(Tick(0), app, 1, &Request { kind, id, prefix, strategy }, &mut output);
        std::mem::take(&mut output.events)
    };
    ask(&mut node, publisher, Kind::PUBLISH_SCOPE, "/1", "/");
    ask(&mut node, publisher, Kind::PUBLISH_ITEM, "/2", "/1");
    let (id, mut output): (Id, _) = ("/1/2".parse().unwrap(), Output::default());
    // Longer than a frame: it leaves no node.
    let payload = vec![7; 5000];
    let data = Data::new(id.clone(), strategy, &payload);
    let stopped = node.publish(Tick(0), publisher, &data, &mut output);
    assert_eq!(stopped, Err(Refusal::Stopped));
    ask(&mut node, subscriber, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    let other = node.publish(Tick(0), subscriber, &data, &mut output);
    assert_eq!(other, Err(Refusal::NotPublisher));
    let sent = node.publish(Tick(0), publisher, &data, &mut output);
    assert_eq!(sent, Ok(Sent { local: 1, frames: 0 }));
    let told =
        (To::All([subscriber].into()), Event::Data { id, payload: payload.into(), came_by: None });
    assert_eq!((&output.events[..], output.frames.len()), (&[told][..], 0));
}

/// An application of `node` asks for item /1/2, without a rendezvous, which delivery does not ask for.
fn subscribe(node: &mut Node, kind: Kind, output: &mut Output) {
    let (id, prefix) = ("/2".parse().unwrap(), "/1".parse().unwrap());
    let request = Request { kind, id, prefix, strategy: Strategy::IMPLICIT };
    node.request(Tick(0), AppId(1), 1, &request, output);
    output.events.clear();
}

/// A frame of data with its number.
fn numbered(id: &Id, hop_limit: u8, (stream, number): (u8, u32), payload: &[u8]) -> Vec<u8> {
    let mut options = vec![36, 12, 0, 0, 0, 0, 0, 0, 0, stream];
    options.extend_from_slice(&number.to_be_bytes());
    let (route, ids) = (&RouteBuf::flat(0, &Filter::EMPTY), std::slice::from_ref(id));
    let (strategy, options, mut out) = (Strategy::DOMAIN_LOCAL, &options[..], Vec::new());
    FrameBuilder { hop_limit, strategy, route, ids, options, payload }.write(&mut out);
    out
}

#[test]
fn a_publication_like_the_last_one_is_delivered_as_that_unless_anything_differs() {
    let mut node = node(Role::default());
    let mut output = Output::default();
    let id = "/1/2".parse::<Id>().unwrap();
    subscribe(&mut node, Kind::SUBSCRIBE_ITEM, &mut output);
    let frame = |hop_limit, stream, number, payload: &[u8]| {
        numbered(&id, hop_limit, (stream, number), payload)
    };
    let face = FaceId(256);
    let came = |node: &mut Node, octets: &[u8]| {
        let Received::Here { frames: 1, payload_at } = node.take(face, std::iter::once(octets))?
        else {
            panic!("one frame, which is not for the control plane")
        };
        let missed = &node.effects().missed;
        let payload = (!node.effects().is_nobodys()).then(|| octets[payload_at..].to_vec());
        Some((payload, missed.iter().map(|(_, count)| count).sum::<u64>()))
    };
    let got = |payload: &[u8], missed| Some((Some(payload.to_vec()), missed));
    assert_eq!(came(&mut node, &frame(9, 1, 7, b"a")), got(b"a", 0));
    // Another hop limit, length or form of the length makes no difference.
    assert_eq!(came(&mut node, &frame(8, 1, 8, &[5; 400])), got(&[5; 400], 0));
    assert_eq!(came(&mut node, &frame(8, 1, 9, b"")), got(b"", 0));
    // One left out is told, one that came before is not delivered again.
    assert_eq!(came(&mut node, &frame(8, 1, 11, b"b")), got(b"b", 1));
    assert_eq!(came(&mut node, &frame(8, 1, 11, b"b")), Some((None, 0)));
    assert_eq!(came(&mut node, &frame(8, 1, 12, b"c")), got(b"c", 0));
    assert_eq!(came(&mut node, &frame(8, 2, 99, b"d")), got(b"d", 0));
    // Not whole, or more than it says.
    let whole = frame(8, 2, 100, b"e");
    assert_eq!(came(&mut node, &whole[..whole.len() - 2]), Some((None, 0)));
    assert_eq!(came(&mut node, &[&whole[..], b"x"].concat()), Some((None, 0)));
    assert_eq!(node.counters().malformed, 2);
    // From another domain it is looked at by others.
    let external = node.take(FaceId(258), std::iter::once(&whole[..]));
    assert!(matches!(external, Some(Received::Pass(1))), "{external:?}");
    // Nobody has it any more.
    subscribe(&mut node, Kind::UNSUBSCRIBE_ITEM, &mut Output::default());
    assert_eq!(came(&mut node, &whole), Some((None, 0)));
    assert_eq!(node.counters().unwanted, 1);
    subscribe(&mut node, Kind::SUBSCRIBE_ITEM, &mut Output::default());
    assert_eq!(came(&mut node, &frame(8, 2, 101, b"f")), got(b"f", 0));
}

#[test]
fn a_row_is_delivered_as_far_as_each_frame_continues_the_one_before() {
    let (mut node, mut output) = (node(Role::default()), Output::default());
    let id = "/1/2".parse::<Id>().unwrap();
    subscribe(&mut node, Kind::SUBSCRIBE_ITEM, &mut output);
    let frame = |number: u32| numbered(&id, 8, (1, number), &number.to_be_bytes());
    // How many of the frames are delivered at once.
    let mut row = |frames: &[Vec<u8>]| {
        let octets = frames.iter().map(|octets| &octets[..]);
        match node.take(FaceId(256), octets) {
            Some(Received::Here { frames: count, payload_at }) => {
                let first = &frames[0];
                assert_eq!(first[payload_at..], first[first.len() - 4..]);
                if node.effects().is_nobodys() { 0 } else { count }
            }
            other => panic!("{other:?}: data is ready"),
        }
    };
    let of = |numbers: [u32; 3]| numbers.map(frame);
    // The first one is looked up; those behind it are for the next call.
    assert_eq!(row(&of([5, 6, 7])), 1);
    assert_eq!(row(&of([6, 7, 8])), 3);
    // A number left out, and one that comes again.
    assert_eq!(row(&of([9, 11, 12])), 1);
    assert_eq!(row(&of([11, 12, 12])), 1, "10 is missed: looked up");
    assert_eq!(row(&of([12, 12, 13])), 1);
    assert_eq!(row(&of([12, 13, 14])), 0, "known");
    // Another hop limit, length, stream or item ends it.
    let other: Id = "/1/3".parse().unwrap();
    let others = [
        numbered(&id, 7, (1, 14), &[0; 4]),
        numbered(&id, 8, (1, 14), &[0; 5]),
        numbered(&id, 8, (2, 14), &[0; 4]),
        numbered(&other, 8, (1, 14), &[0; 4]),
    ];
    for (number, ending) in (13..).zip(others) {
        let frames = [frame(number), ending, frame(number + 1)];
        assert_eq!(row(&frames), 1, "{number}");
    }
}
