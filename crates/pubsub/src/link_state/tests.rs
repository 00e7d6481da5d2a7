//! Silence and floods.

use super::*;
use onym_wire::push::Load;

/// A node that heard its neighbour once, now; and what it does with an outbox.
fn heard_once() -> (LinkState, Outbox) {
    let [own, other] = [1, 2].map(Label::from_u64);
    let mut node = LinkState::new(Config::new(own, 0, Role::default(), 1));
    node.link_add(Tick(0), FaceId(300), 1, 1);
    let mut out = Outbox::default();
    node.receive(Tick(0), FaceId(300), Control::new(Kind::HELLO, other), &mut out);
    assert_eq!(node.neighbour(FaceId(300)), Some(other));
    (node, out)
}

fn is_there_after(node: &mut LinkState, out: &mut Outbox, ms: u64) -> bool {
    node.handle_timeout(Tick(0).plus_ms(ms), out);
    node.neighbour(FaceId(300)).is_some()
}

#[test]
fn a_silent_neighbour_is_gone_later_on_a_connection_and_not_while_nobody_listens() {
    let (mut node, mut out) = heard_once();
    assert!(is_there_after(&mut node, &mut out, 3400));
    assert!(!is_there_after(&mut node, &mut out, 3600));

    let (mut node, mut out) = heard_once();
    node.link_connected(FaceId(300));
    assert!(is_there_after(&mut node, &mut out, 10_000));
    assert!(!is_there_after(&mut node, &mut out, 11_000));

    let (mut node, mut out) = heard_once();
    node.not_listened(FaceId(300), Tick(0).plus_ms(3000));
    assert!(is_there_after(&mut node, &mut out, 6400));
    assert!(!is_there_after(&mut node, &mut out, 6600));
}

/// What node `n` says of itself, with so many links.
fn says(n: u64, number: u64, links: u32) -> Control {
    let link = |number| Link { neighbour: Label::from_u64(n + 1), number, cost: 1 };
    let links = (0..links).map(link).collect();
    let kind = Control::new(Kind::LINK_STATE, Label::from_u64(n));
    Control { number, epoch: Some(1), item: Some(n), links, body: vec![7; 500], ..kind }
}

#[test]
fn a_neighbour_that_floods_leaves_room_for_others_and_nothing_but_links_is_kept() {
    let mut config = Config::new(Label::from_u64(1), 0, Role::default(), 1);
    config.octets_max = 1 << 20;
    let mut node = LinkState::new(config);
    let (flooder, honest) = (FaceId(300), FaceId(301));
    node.link_add(Tick(0), flooder, 1, 1);
    node.link_add(Tick(0), honest, 2, 1);
    let mut out = Outbox::default();
    for n in 0..4000 {
        node.receive(Tick(0), flooder, says(10 + n, 1, 20), &mut out);
    }
    assert!(node.octets <= (1 << 20) * 3 / 4, "{}", node.octets);
    assert!(node.refused > 3000);
    for n in 0..20 {
        node.receive(Tick(0), honest, says(10_000 + n, 1, 4), &mut out);
        assert!(node.known.contains_key(&Label::from_u64(10_000 + n)), "{n}");
    }
    assert!(node.known.values().all(|state| state.octets.body.is_empty()));
    // What grows is refused like what is new, and what shrinks is not.
    node.receive(Tick(0), flooder, says(10, 2, 300), &mut out);
    assert_eq!(node.known[&Label::from_u64(10)].number, 1);
    node.receive(Tick(0), flooder, says(10, 3, 1), &mut out);
    assert_eq!(node.known[&Label::from_u64(10)].number, 3);
    node.handle_timeout(Tick(0).plus_ms(1_000_000), &mut out);
    assert_eq!(node.octets_via.len(), 0);
    assert_eq!(node.octets, STATE_OCTETS, "of this node alone");
}

/// Law: a node says loads of its own links alone, each once; what else it says is neither kept nor
/// passed on, and takes no room.
#[test]
fn loads_of_links_of_others_are_left_out() {
    let mut node = LinkState::new(Config::new(Label::from_u64(1), 0, Role::default(), 1));
    let face = FaceId(300);
    node.link_add(Tick(0), face, 1, 1);
    let load = |link, percent| Load { link, capacity: 1000, percent };
    let loads = vec![load(0, 90), load(77, 255), load(0, 5), load(1, 20), load(u32::MAX, 255)];
    let mut out = Outbox::default();
    node.receive(Tick(0), face, Control { loads, ..says(10, 1, 2) }, &mut out);
    let kept = &node.known[&Label::from_u64(10)].octets;
    assert_eq!(kept.loads, [load(0, 90), load(1, 20)]);
    assert_eq!(node.octets, STATE_OCTETS + 4 * LINK_OCTETS);
}
