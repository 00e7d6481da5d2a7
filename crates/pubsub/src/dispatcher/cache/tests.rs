use super::*;

const BY: Strategy = Strategy::ALGORITHMIC_DOMAIN;
const FACE: Holder = Holder::Face(FaceId(256));

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

fn insert(cache: &mut Cache, text: &str, payload: &[u8], holder: Holder, lifetime_ms: u64) {
    cache.insert(Tick(0), &id(text), payload, BY, holder, lifetime_ms);
}

fn found(cache: &Cache, beneath: &str) -> Vec<(String, Vec<u8>)> {
    let kept = cache.beneath(&id(beneath), AppId(1));
    let each = kept.into_iter().map(|event| match event {
        Event::Data { id, payload, came_by: Some(BY) } => (id.to_string(), payload.to_vec()),
        other => panic!("{other:?}"),
    });
    each.collect()
}

/// Fragment `index` of `count` of publication `number` of an item comes.
fn piece(
    cache: &mut Cache,
    now: u64,
    from: Sender,
    (item, number): (&str, u64),
    (index, count): (u64, u64),
) {
    let item = id(item);
    let label = |n| onym_wire::push::Label::from_u64(n);
    let own = algorithmic_scope(&item).child(label(number)).child(label(count << 32 | index));
    let piece = Piece::new(&[], &[number as u8; 1000]);
    cache.insert_piece(Tick::from_ms(now), from, &[own, item], 1000, piece);
}

/// A whole one of three fragments.
fn long(cache: &mut Cache, now: u64, from: Sender, what: (&str, u64)) {
    (0..3).for_each(|index| piece(cache, now, from, what, (index, 3)));
}

const LIVE: Sender = Sender { holder: FACE, flags: Flags::KEEP };

/// The numbers of the publications that are found for a subscription.
fn numbers(cache: &Cache, name: &str) -> Vec<u8> {
    let found = cache.find(&id(name), None, 100);
    found.iter().map(|(_, whole)| whole.payload()[0]).collect()
}

#[test]
fn what_is_kept_is_found_by_its_identifier_and_by_those_above_until_it_is_too_old() {
    let mut cache = Cache::new(100_000);
    for (text, ms) in [("/1/2", 50), ("/1/2/3", 100), ("/1/20", 100), ("/2", 100), ("/3", 0)] {
        insert(&mut cache, text, text.as_bytes(), FACE, ms);
    }
    let ids = |cache: &mut Cache, now, beneath: &str| -> Vec<String> {
        cache.expire(Tick::from_ms(now));
        found(cache, beneath).into_iter().map(|f| f.0).collect()
    };
    assert_eq!(ids(&mut cache, 10, "/1/2"), ["/0001/0002", "/0001/0002/0003"]);
    assert_eq!(cache.next_timeout(), Some(Tick::from_ms(50)));
    assert_eq!(ids(&mut cache, 60, "/1/2"), ["/0001/0002/0003"]);
    assert_eq!(ids(&mut cache, 60, "/1").len(), 2);
    assert!(ids(&mut cache, 60, "/3").is_empty() && ids(&mut cache, 200, "/2").is_empty());
    assert_eq!((cache.view().octets, cache.view().expired), (0, 4));
}

#[test]
fn a_newer_publication_takes_the_place_of_the_older_one() {
    let mut cache = Cache::new(100_000);
    for n in 0..1000_u32 {
        insert(&mut cache, "/1/2", &n.to_be_bytes(), FACE, 1000);
        insert(&mut cache, "/1/3", b"x", Holder::App(AppId(1)), 1000);
    }
    assert_eq!(found(&cache, "/1"), [("/0001/0002".into(), 999_u32.to_be_bytes().into())]);
    assert!(cache.view().octets < 1000 && cache.shares.is_sound());
}

#[test]
fn the_oldest_makes_room_and_what_has_none_at_all_is_not_kept() {
    let mut cache = Cache::new(3000);
    for n in 1..=20_u64 {
        insert(&mut cache, &format!("/1/{n:x}"), &[0; 100], FACE, 1000);
        assert!(cache.view().octets <= 3000);
    }
    let kept = found(&cache, "/1");
    assert_eq!((kept.len(), cache.view().evicted), (7, 13));
    assert_eq!(kept.last().map(|k| k.0.as_str()), Some("/0001/0014"));
    insert(&mut cache, "/2", &[0; 4000], FACE, 1000);
    assert_eq!(found(&cache, "/1").len(), 7);
}

#[test]
fn a_long_publication_is_found_when_it_is_whole_by_its_name_and_the_one_above() {
    let mut cache = Cache::new(1 << 20);
    piece(&mut cache, 1, LIVE, ("/1/2", 7), (2, 3));
    piece(&mut cache, 1, LIVE, ("/1/2", 7), (0, 3));
    piece(&mut cache, 1, LIVE, ("/1/2", 7), (0, 3));
    assert!(numbers(&cache, "/1/2").is_empty());
    assert_eq!((cache.view().publications, cache.view().partial), (0, 1));
    piece(&mut cache, 1, LIVE, ("/1/2", 7), (1, 3));
    assert_eq!((numbers(&cache, "/1/2"), numbers(&cache, "/1")), (vec![7], vec![7]));
    assert!(numbers(&cache, "/1/2/3").is_empty() && numbers(&cache, "/2").is_empty());
    assert_eq!(cache.whole(&id("/1/2")).map(|whole| whole.payload().len()), Some(3000));
    // A newer one takes its place once that is whole, and goes with its lifetime.
    piece(&mut cache, 500, LIVE, ("/1/2", 8), (0, 3));
    assert_eq!(numbers(&cache, "/1"), [7]);
    long(&mut cache, 500, LIVE, ("/1/2", 8));
    assert_eq!(numbers(&cache, "/1"), [8]);
    cache.expire(Tick::from_ms(1499));
    assert_eq!(numbers(&cache, "/1"), [8]);
    cache.expire(Tick::from_ms(1500));
    assert!(numbers(&cache, "/1").is_empty() && cache.view().octets == 0);
}

#[test]
fn a_publication_that_has_no_room_leaves_no_older_one_of_its_name() {
    let mut cache = Cache::new(50_000);
    long(&mut cache, 1, LIVE, ("/1/2", 7));
    long(&mut cache, 1, LIVE, ("/1/3", 7));
    piece(&mut cache, 2, LIVE, ("/1/2", 8), (0, 100));
    assert_eq!((numbers(&cache, "/1/2"), numbers(&cache, "/1/3")), (vec![], vec![7]));
    assert_eq!(cache.view().partial, 0);
}

#[test]
fn what_a_cache_sends_is_as_old_as_it_was_there_and_replaces_nothing() {
    let mut cache = Cache::new(1 << 20);
    long(&mut cache, 0, LIVE, ("/1/2", 7));
    let whole = Arc::clone(cache.whole(&id("/1/2")).unwrap());
    let flags = whole.flags(Tick::from_ms(500)).unwrap();
    assert_eq!(whole.flags(Tick::from_ms(999)), None);
    let mut next = Cache::new(1 << 20);
    long(&mut next, 10_000, Sender { holder: FACE, flags }, ("/1/2", 7));
    assert_eq!(next.next_timeout(), Some(Tick(0)), "it is told");
    next.expire(Tick::from_ms(10_499));
    assert_eq!(numbers(&next, "/1"), [7]);
    next.expire(Tick::from_ms(10_500));
    assert!(numbers(&next, "/1").is_empty());
    // Whatever a cache sends, what came from the publisher itself is not older.
    long(&mut cache, 1, Sender { holder: FACE, flags }, ("/1/2", 6));
    assert_eq!(numbers(&cache, "/1"), [7]);
}

#[test]
fn a_neighbour_that_sends_without_end_pushes_out_what_it_sent_itself() {
    let mut cache = Cache::new(40_000);
    let other = Sender { holder: Holder::Face(FaceId(257)), ..LIVE };
    long(&mut cache, 0, other, ("/9/9", 9));
    insert(&mut cache, "/8/8", b"short", Holder::App(AppId(7)), 1000);
    for n in 0..1000 {
        let item = format!("/1/{n:x}");
        if n % 2 == 0 {
            long(&mut cache, 0, LIVE, (&item, n));
        } else {
            piece(&mut cache, 0, LIVE, (&item, n), (0, 5));
        }
        assert!(cache.view().octets <= 40_000 && cache.shares.is_sound());
    }
    assert_eq!((numbers(&cache, "/9"), found(&cache, "/8").len()), (vec![9], 1));
    assert!(cache.view().evicted > 900);
    // Tiny ones count as the share of one: they are no more than so many.
    let mut cache = Cache::new(LONG_MAX * 2000);
    for n in 0..6000_u64 {
        piece(&mut cache, 0, LIVE, (&format!("/1/{n:x}"), n), (0, 2));
    }
    assert!(cache.view().partial <= LONG_MAX && cache.view().partial > 1000);
}

#[test]
fn what_is_not_sound_is_passed_over() {
    let mut cache = Cache::new(1 << 20);
    let label = |n| onym_wire::push::Label::from_u64(n);
    let item = id("/1/2");
    let own = |scope: Id, count: u64, index: u64| scope.child(label(count << 32 | index));
    let scope = algorithmic_scope(&item).child(label(1));
    let mut insert = |ids: &[Id], lifetime, payload: &[u8]| {
        let piece = Piece::new(&[], payload);
        cache.insert_piece(Tick(0), LIVE, ids, lifetime, piece);
        cache.view().partial
    };
    let first = own(scope.clone(), 3, 0);
    assert_eq!(insert(&[], 9, b"x"), 0);
    assert_eq!(insert(std::slice::from_ref(&first), 9, b"x"), 0, "no item");
    assert_eq!(insert(&[first.clone(), id("/1/3")], 9, b"x"), 0, "beneath another one's scope");
    assert_eq!(insert(&[own(scope.clone(), 3, 3), item.clone()], 9, b"x"), 0, "wrong index");
    assert_eq!(insert(&[own(scope.clone(), u32::MAX.into(), 0), item.clone()], 9, b"x"), 0);
    assert_eq!(insert(&[first.clone(), item.clone()], 0, b"x"), 0, "no lifetime");
    assert_eq!(insert(&[first.clone(), item.clone()], 9, b""), 0, "nothing in it");
    assert_eq!(insert(&[first, item.clone()], 9, b"x"), 1);
    // Fragments of another count, or with other names, are none of it.
    insert(&[own(scope.clone(), 4, 1), item.clone()], 9, b"x");
    insert(&[own(scope.clone(), 3, 1), item.clone(), id("/2/2")], 9, b"x");
    insert(&[own(scope.clone(), 3, 2), item.clone()], 9, b"x");
    assert!(numbers(&cache, "/1").is_empty());
}

#[test]
fn what_changed_is_told_together_and_once() {
    let mut cache = Cache::new(1 << 20);
    long(&mut cache, 0, LIVE, ("/1/2", 7));
    assert_eq!(cache.news.take(Tick::from_ms(5)), None);
    long(&mut cache, 0, LIVE, ("/1/3", 7));
    let (came, went) = cache.news.take(Tick::from_ms(60)).unwrap();
    assert_eq!((came, went), (vec![id("/1/2"), id("/1/3")], vec![]));
    // Another publication of an item is no news.
    long(&mut cache, 0, LIVE, ("/1/3", 8));
    assert_eq!((cache.news.due(), cache.held().len()), (None, 2));
    // All is told every ten seconds.
    assert!(!cache.is_repeated(Tick::from_ms(100)) && !cache.is_repeated(Tick::from_ms(10_099)));
    assert!(cache.is_repeated(Tick::from_ms(10_100)) && !cache.is_repeated(Tick::from_ms(10_101)));
    cache.expire(Tick::from_ms(2000));
    assert_eq!(cache.news.take(Tick::from_ms(2000)), None);
    let (came, went) = cache.news.take(Tick::from_ms(2050)).unwrap();
    assert_eq!((came, went), (vec![], vec![id("/1/2"), id("/1/3")]));
    assert!(!cache.is_repeated(Tick::from_ms(90_000)) && cache.next_timeout().is_none());
}
