//! Publishers of retained publications that wait for who is behind, in virtual time (P-93).

use onym_pubsub::dispatcher::{Data, Request, RetainedView};
use onym_pubsub::{AppId, Event, Keep};
use onym_sim::PushNetwork;
use onym_wire::push::{Id, Kind, Role, Strategy};
use std::time::Duration;

const PUBLISHER: AppId = AppId(1);
const SLOW: AppId = AppId(2);
const QUICK: AppId = AppId(3);
const STRATEGY: Strategy = Strategy::NODE_LOCAL;
/// Publications of a run, of which a window of 4 MiB holds eleven.
const COUNT: u64 = 200;
const LEN: usize = 400_000;
const MS: Duration = Duration::from_millis(1);

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

fn ask(net: &mut PushNetwork, app: AppId, kind: Kind, child: &str, prefix: &str) {
    let request = Request { kind, id: id(child), prefix: id(prefix), strategy: STRATEGY };
    net.request(0, app, 0, &request);
    net.run_for(10 * MS);
}

fn retain(net: &mut PushNetwork, item: &str, keep: Keep) {
    net.retain(0, PUBLISHER, 0, &id(item), keep);
    net.run_for(10 * MS);
}

/// A node with a publisher of two items, which retains the last `keep` publications of each, and two
/// applications that subscribed to their scope.
fn node(keep: Keep, octets_max: usize) -> PushNetwork {
    let mut net = PushNetwork::new(7);
    net.add_node(1, Role::RENDEZVOUS.and(Role::TOPOLOGY), |config| {
        config.retained_octets_max = octets_max;
    });
    net.run_for(1000 * MS);
    ask(&mut net, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/");
    for item in ["/2", "/3"] {
        ask(&mut net, PUBLISHER, Kind::PUBLISH_ITEM, item, "/1");
    }
    for app in [SLOW, QUICK] {
        ask(&mut net, app, Kind::SUBSCRIBE_SCOPE, "/1", "/");
    }
    for item in ["/1/2", "/1/3"] {
        retain(&mut net, item, keep);
    }
    net
}

fn waiting(count: u64) -> Keep {
    Keep { count, waits: true, ..Keep::default() }
}

fn view(net: &PushNetwork) -> RetainedView {
    net.node(0).expect("it is up").dispatcher.retained()
}

/// Publishes, whether the publisher is to wait or not.
fn publish(net: &mut PushNetwork, item: &str, len: usize) {
    let payload = vec![7; len];
    let sent = net.publish(0, PUBLISHER, &Data::new(id(item), STRATEGY, &payload));
    sent.expect("it is up").expect("it is retained");
    net.run_for(MS);
}

/// Publishes until the publisher is to wait; how often.
fn fill(net: &mut PushNetwork, item: &str) -> u64 {
    let mut sent = 0;
    while sent < COUNT && !net.is_paused(0, PUBLISHER) {
        publish(net, item, LEN);
        sent += 1;
    }
    sent
}

/// Publications that an application hears now, of so many events, and such that it missed.
fn read(net: &mut PushNetwork, app: AppId, most: usize) -> (u64, u64) {
    let (mut came, mut missed) = (0, 0);
    for event in (0..most).map_while(|_| net.event(0, app)) {
        match event {
            Event::Data { .. } => came += 1,
            Event::NoRoom(count) => missed += count,
            _ => {}
        }
    }
    (came, missed)
}

/// What became of a run.
#[derive(Debug)]
struct Run {
    slow: (u64, u64),
    quick: (u64, u64),
    /// Milliseconds for which the publisher waited, and the longest of its stretches.
    paused: u64,
    longest: u64,
    in_vain: u64,
}

/// Publishes as fast as the publisher may, once in a millisecond at most, while one application
/// takes an event every so many milliseconds, or none, and the other all at once.
fn run(keep: Keep, octets_max: usize, pause: Option<u64>) -> Run {
    let mut net = node(keep, octets_max);
    let (mut sent, mut slow, mut quick) = (0, (0, 0), (0, 0));
    let (mut paused, mut longest, mut stretch) = (0, 0, 0);
    let add = |sum: &mut (u64, u64), more: (u64, u64)| {
        (sum.0, sum.1) = (sum.0 + more.0, sum.1 + more.1);
    };
    for ms in 0..20_000 {
        if net.is_paused(0, PUBLISHER) {
            (paused, stretch) = (paused + 1, stretch + 1);
            longest = longest.max(stretch);
            net.run_for(MS);
        } else if sent < COUNT {
            (sent, stretch) = (sent + 1, 0);
            publish(&mut net, "/1/2", LEN);
        } else {
            net.run_for(MS);
        }
        add(&mut quick, read(&mut net, QUICK, usize::MAX));
        if pause.is_some_and(|pause| ms % pause == 0) {
            add(&mut slow, read(&mut net, SLOW, 1));
        }
    }
    add(&mut slow, read(&mut net, SLOW, usize::MAX));
    let view = view(&net);
    assert_eq!((sent, view.waiting, view.lagging), (COUNT, 0, 0));
    assert!(view.publications as u64 <= keep.count);
    Run { slow, quick, paused, longest, in_vain: view.in_vain }
}

const ROOM: usize = 16 << 20;

#[test]
fn a_publisher_waits_for_who_reads_and_nothing_is_lost() {
    let run = run(waiting(2), ROOM, Some(20));
    assert_eq!((run.slow, run.quick, run.in_vain), ((COUNT, 0), (COUNT, 0), 0), "{run:?}");
    assert!(run.paused > 1000 && run.longest <= 251, "{run:?}");
}

#[test]
fn without_it_nobody_waits_and_the_oldest_goes() {
    let run = run(Keep::from(2), ROOM, Some(20));
    println!("{run:?}");
    assert_eq!((run.quick, run.paused, run.in_vain), ((COUNT, 0), 0, 0), "{run:?}");
    assert!(run.slow.1 > 100 && run.slow.0 + run.slow.1 == COUNT, "{run:?}");
}

#[test]
fn who_reads_nothing_is_waited_for_once_and_told_what_it_missed() {
    let run = run(waiting(2), ROOM, None);
    assert_eq!((run.slow.0 + run.slow.1, run.quick, run.in_vain), (COUNT, (COUNT, 0), 1));
    assert!(run.slow.1 > 100 && run.paused <= 251, "{run:?}");
}

/// The bound of octets is reached long before that of publications.
#[test]
fn a_publisher_waits_before_there_is_no_room_for_what_is_retained() {
    let run = run(waiting(1000), 8 << 20, Some(20));
    assert_eq!((run.slow, run.quick, run.in_vain), ((COUNT, 0), (COUNT, 0), 0), "{run:?}");
    assert!(run.paused > 1000 && run.longest <= 251, "{run:?}");
}

/// Who is waited for in vain in one item is in no other one, until it has caught up in all.
#[test]
fn a_publisher_of_several_items_waits_once_for_who_reads_nothing() {
    let mut net = node(waiting(2), ROOM);
    fill(&mut net, "/1/2");
    net.run_for(251 * MS);
    assert_eq!((view(&net).in_vain, fill(&mut net, "/1/3")), (1, COUNT));
    assert_eq!((view(&net).in_vain, view(&net).lagging), (1, 4));
    for app in [SLOW, QUICK] {
        read(&mut net, app, usize::MAX);
    }
    assert_eq!(view(&net).lagging, 0);
    assert!(fill(&mut net, "/1/3") < COUNT, "it caught up, so it is waited for");
}

/// As many stretches as items would be one for each, where the first one is not over yet.
#[test]
fn a_publisher_that_waits_for_several_items_goes_on_when_the_first_stretch_is_over() {
    let mut net = node(waiting(2), ROOM);
    fill(&mut net, "/1/2");
    net.run_for(200 * MS);
    // As it was on its way.
    (0..3).for_each(|_| publish(&mut net, "/1/3", LEN));
    assert_eq!(view(&net).waiting, 2);
    net.run_for(50 * MS);
    assert!(!net.is_paused(0, PUBLISHER), "{:?}", view(&net));
}

#[test]
fn an_application_that_goes_is_waited_for_no_more() {
    let mut net = node(waiting(2), ROOM);
    fill(&mut net, "/1/2");
    net.disconnect(0, QUICK);
    net.run_for(MS);
    assert!(net.is_paused(0, PUBLISHER), "the other one is behind, too");
    net.disconnect(0, SLOW);
    net.run_for(MS);
    assert!(!net.is_paused(0, PUBLISHER));
    assert_eq!((view(&net).waiting, view(&net).in_vain, view(&net).publications), (0, 0, 2));
}

#[test]
fn a_publisher_that_goes_while_it_waits_leaves_nothing_behind() {
    let mut net = node(waiting(2), ROOM);
    fill(&mut net, "/1/2");
    net.disconnect(0, PUBLISHER);
    net.run_for(1000 * MS);
    let RetainedView { items, publications, waiting, lagging, in_vain, .. } = view(&net);
    assert_eq!((items, publications, waiting, lagging, in_vain), (0, 0, 0, 0, 0));
    // What was retained was told at the end.
    assert_eq!(read(&mut net, SLOW, usize::MAX).1, 0);
}

#[test]
fn terms_that_change_end_the_waiting() {
    for keep in [Keep::from(2), Keep::from(0), waiting(9)] {
        let mut net = node(waiting(2), ROOM);
        fill(&mut net, "/1/2");
        retain(&mut net, "/1/2", keep);
        assert!(!net.is_paused(0, PUBLISHER), "{keep:?}");
        assert_eq!((view(&net).waiting, view(&net).in_vain), (0, 0), "{keep:?}");
    }
}

#[test]
fn what_is_too_old_is_not_waited_for() {
    let mut net = node(Keep { lifetime_ms: 100, ..waiting(2) }, ROOM);
    fill(&mut net, "/1/2");
    net.run_for(101 * MS);
    assert!(!net.is_paused(0, PUBLISHER));
    assert_eq!((view(&net).waiting, view(&net).in_vain, view(&net).publications), (0, 0, 0));
}

/// Who subscribes while a publisher waits gets as many as it wants to be retained.
#[test]
fn a_late_subscriber_gets_nothing_of_the_excess() {
    let mut net = node(waiting(2), ROOM);
    fill(&mut net, "/1/2");
    assert!(view(&net).publications > 2);
    let late = AppId(4);
    ask(&mut net, late, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    assert_eq!(read(&mut net, late, usize::MAX), (2, 0));
}
