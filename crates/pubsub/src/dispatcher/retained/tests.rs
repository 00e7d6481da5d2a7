use super::*;
use onym_tables::Rng;

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

fn depth(depth: u32) -> Terms {
    Terms { depth, ..Terms::default() }
}

/// What the frames of another node say that retains three.
fn told(first: u32) -> Told {
    Told { depth: 3, first, lifetime_ms: 0, deadline_ms: 0, priority: 0 }
}

fn publish(retained: &mut Retained, item: &str, number: u32, len: usize) -> (u32, u32) {
    let source = Source::Own(id(item));
    let (ids, payload) = (Aliases::from_elem(id(item), 1), vec![number as u8; len].into());
    let now = Tick(number.into());
    let (told, _) = retained.push(now, &source, Place::Number(7, number), ids, payload).unwrap();
    (told.depth, told.first)
}

fn numbers(retained: &Retained, item: &str) -> Vec<u8> {
    let history = retained.get(&Source::Own(id(item))).unwrap();
    history.entries.iter().map(|entry| entry.payload[0]).collect()
}

#[test]
fn so_many_are_retained_in_order_and_their_frames_say_which() {
    let mut retained = Retained::new(1 << 20);
    assert!(retained.open(&id("/1/2"), AppId(1), depth(3)));
    let told: Vec<_> = (5..10).map(|n| publish(&mut retained, "/1/2", n, 1)).collect();
    assert_eq!(told, [(3, 5), (3, 5), (3, 5), (3, 6), (3, 7)]);
    assert_eq!(numbers(&retained, "/1/2"), [7, 8, 9]);
    // A number that is left out was not retained: what is must have no holes.
    publish(&mut retained, "/1/2", 11, 1);
    assert_eq!(numbers(&retained, "/1/2"), [11]);
    assert!(retained.open(&id("/1/2"), AppId(1), depth(1)));
    publish(&mut retained, "/1/2", 12, 1);
    assert_eq!(numbers(&retained, "/1/2"), [12]);
    // Another application begins anew.
    assert!(retained.open(&id("/1/2"), AppId(2), depth(1)));
    assert!(numbers(&retained, "/1/2").is_empty());
}

#[test]
fn at_the_bound_who_holds_most_loses_the_oldest_and_nobody_else_anything() {
    let mut retained = Retained::new(20_000);
    for (item, app) in [("/1/1", 1), ("/1/2", 1), ("/1/3", 2)] {
        assert!(retained.open(&id(item), AppId(app), depth(1000)));
    }
    publish(&mut retained, "/1/3", 0, 500);
    for number in 0..200 {
        publish(&mut retained, ["/1/1", "/1/2"][number as usize % 2], number / 2, 500);
        assert!(retained.shares.octets() <= 20_000);
    }
    assert_eq!(numbers(&retained, "/1/3"), [0]);
    let (one, two) = (numbers(&retained, "/1/1"), numbers(&retained, "/1/2"));
    assert!(one.len() + two.len() > 20 && one.len().abs_diff(two.len()) <= 1);
    assert_eq!((one.last(), two.last()), (Some(&99), Some(&99)));
    assert_eq!(retained.evicted, 200 - (one.len() + two.len()) as u64);
    // What has no room at all leaves no old value behind.
    let (_, first) = publish(&mut retained, "/1/3", 1, 30_000);
    assert!(numbers(&retained, "/1/3").is_empty());
    assert_eq!(first, 2);
    publish(&mut retained, "/1/3", 2, 10);
    assert_eq!(numbers(&retained, "/1/3"), [2]);
}

#[test]
fn what_another_node_retains_comes_first_once_and_what_is_lost_of_it_is_missed() {
    let mut retained = Retained::new(1 << 20);
    let ids = [id("/1/2")];
    let mut note =
        |stream, number, first| retained.note(stream, number, Came::Publication, told(first), &ids);
    // All of it comes; twice; and what is new.
    assert_eq!([7, 8, 7, 8, 9].map(|n| note(1, n, 7).unwrap().1), [true, true, false, false, true]);
    // The first two of three are lost.
    assert_eq!(note(2, 9, 7), Some((2, true)));
    // The numbers go round.
    assert_eq!(note(3, 1, u32::MAX), Some((2, true)));
    // What its publisher retains has no room there: nothing comes before.
    assert_eq!(note(4, 9, 10), Some((0, true)));
    // How far it is.
    assert_eq!(retained.note(4, 12, Came::Word, told(10), &ids), Some((2, false)));
    assert_eq!(retained.note(4, 12, Came::Publication, told(10), &ids), Some((0, true)));
}

#[test]
fn subscriptions_find_items_by_all_names_and_those_right_beneath() {
    let mut retained = Retained::new(1 << 20);
    for item in ["/1/2", "/1/2/3", "/1/20", "/2"] {
        assert!(retained.open(&id(item), AppId(1), depth(1)));
    }
    retained.name(&Source::Own(id("/1/2")), &[id("/7/8")]);
    let found = |name: &str| -> Vec<String> {
        let all = retained.find(&id(name)).into_iter();
        all.map(|source| if let Source::Own(id) = source { id.to_string() } else { String::new() })
            .collect()
    };
    assert_eq!(found("/1"), ["/0001/0002", "/0001/0020"]);
    assert_eq!(found("/1/2"), ["/0001/0002", "/0001/0002/0003"]);
    assert_eq!(found("/1/2/9"), ["/0001/0002"]);
    assert_eq!(
        (found("/7"), found("/7/8")),
        (vec!["/0001/0002".into()], vec!["/0001/0002".into()])
    );
    assert!(found("/3").is_empty());
    retained.remove(&Source::Own(id("/1/2")));
    assert!(retained.find(&id("/7/8")).is_empty());
}

#[test]
fn octets_and_order_are_those_of_what_is_there_whatever_happens() {
    let seed = 5;
    println!("seed {seed}");
    let (mut retained, mut rng) = (Retained::new(6000), Rng::new(seed));
    let items: Vec<String> = (1..6).map(|n| format!("/1/{n}")).collect();
    let mut next = [0_u32; 5];
    for _ in 0..5000 {
        let at = rng.below(5) as usize;
        let source = Source::Own(id(&items[at]));
        match rng.below(20) {
            0 => retained.remove(&source),
            1 => retained.unpush(&source),
            6 => _ = retained.expire(Tick(next[at].into())),
            2..6 => {
                let (app, most) = (AppId(1 + rng.below(2)), 1 + rng.below(9) as u32);
                let lifetime = (rng.below(2) > 0).then(|| Duration::from_nanos(rng.below(50)));
                assert!(retained.open(&id(&items[at]), app, Terms { lifetime, ..depth(most) }));
            }
            _ if retained.get(&source).is_some() => {
                next[at] += 1;
                publish(&mut retained, &items[at], next[at], rng.below(2000) as usize + 1);
            }
            _ => {}
        }
        let entries = || retained.histories.values().flat_map(|h| &h.entries);
        let octets: usize = entries().map(|e| size(&e.ids, &e.payload)).sum();
        let shares = &retained.shares;
        assert_eq!((shares.octets(), shares.len()), (octets, entries().count()));
        assert!(shares.octets() <= 6000 && shares.is_sound());
        let due = retained.histories.iter().filter_map(|(source, history)| {
            Some((history.entries.front()?.until?, source.clone()))
        });
        assert_eq!(retained.due, due.collect::<BTreeSet<_>>());
    }
}

#[test]
fn what_is_too_old_is_forgotten_from_the_front_and_leaves_no_hole() {
    let mut retained = Retained::new(1 << 20);
    let lifetime = Some(Duration::from_nanos(10));
    assert!(retained.open(&id("/1/2"), AppId(1), Terms { lifetime, ..depth(9) }));
    assert!(retained.open(&id("/1/3"), AppId(1), depth(9)));
    // Each is published at the time that is its number.
    for number in 0..4 {
        publish(&mut retained, "/1/2", number, 1);
        publish(&mut retained, "/1/3", number, 1);
    }
    assert_eq!(retained.next_timeout(), Some(Tick(10)));
    retained.expire(Tick(11));
    assert_eq!((numbers(&retained, "/1/2"), retained.view().expired), (vec![2, 3], 2));
    assert_eq!(publish(&mut retained, "/1/2", 4, 1), (9, 2), "its frames say which is first");
    // What it asks for from now on is for what is published from now on.
    assert!(retained.open(&id("/1/2"), AppId(1), depth(9)));
    publish(&mut retained, "/1/2", 5, 1);
    retained.expire(Tick(99));
    assert_eq!((numbers(&retained, "/1/2"), retained.next_timeout()), (vec![5], None));
    assert_eq!(numbers(&retained, "/1/3"), [0, 1, 2, 3]);
}

/// Law: what a publisher waits with is not forgotten for its number, and who comes later gets none of
/// it (P-93).
#[test]
fn what_somebody_needs_stays_beyond_the_number_that_is_retained() {
    let mut retained = Retained::new(1 << 20);
    let source = Source::Own(id("/1/2"));
    assert!(retained.open(&id("/1/2"), AppId(1), Terms { waits: true, ..depth(2) }));
    let told: Vec<_> = (5..10).map(|n| publish(&mut retained, "/1/2", n, 1)).collect();
    assert_eq!(told, [(2, 5), (2, 5), (2, 6), (2, 7), (2, 8)]);
    assert!(retained.trim(&source, Some(1)), "two of them are too many");
    assert_eq!(numbers(&retained, "/1/2"), [6, 7, 8, 9]);
    let history = retained.get(&source).unwrap();
    assert_eq!((history.popped(), history.start(), history.end()), (1, 3, 5));
    assert!(!retained.trim(&source, Some(3)));
    assert_eq!(numbers(&retained, "/1/2"), [8, 9]);
    assert!(!retained.trim(&source, None));
    publish(&mut retained, "/1/2", 10, 1);
    // Who does not want to wait any more keeps no more than it wants.
    assert!(retained.open(&id("/1/2"), AppId(1), depth(2)));
    assert_eq!(numbers(&retained, "/1/2"), [9, 10]);
}

/// Law: a publisher waits before there is no room, with what would be forgotten next.
#[test]
fn what_somebody_needs_stays_while_a_quarter_of_the_room_is_left() {
    let mut retained = Retained::new(20_000);
    let (source, other) = (Source::Own(id("/1/2")), Source::Own(id("/1/3")));
    for item in ["/1/2", "/1/3"] {
        assert!(retained.open(&id(item), AppId(1), Terms { waits: true, ..depth(1000) }));
    }
    publish(&mut retained, "/1/2", 0, 1000 - OVERHEAD - 16);
    for number in 0..15 {
        assert!(!retained.trim(&source, Some(0)) && !retained.trim(&other, Some(0)));
        publish(&mut retained, "/1/3", number, 1000 - OVERHEAD - 16);
    }
    publish(&mut retained, "/1/2", 1, 1000 - OVERHEAD - 16);
    assert!(retained.trim(&source, Some(0)), "its first one is the oldest");
    assert!(!retained.trim(&other, Some(0)), "nothing of it goes next");
    assert_eq!((retained.trim(&source, Some(1)), retained.evicted), (false, 1));
    // Now one of the other would.
    assert!(retained.trim(&other, Some(0)));
    assert!(!retained.trim(&other, None));
    assert_eq!((numbers(&retained, "/1/2"), retained.evicted), (vec![1], 2));
    assert!(retained.shares.octets() <= 15_000 && retained.shares.is_sound());
}
