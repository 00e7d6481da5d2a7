use super::*;
use onym_wire::Name;
use proptest::prelude::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn route(face: u32, origin: u16, cost: u64, flags: u8) -> Route {
    Route { face: FaceId(face), origin, cost, flags, expiry: Tick::NEVER, announcement: None }
}

/// The FIB that the updates make; each must change something.
#[derive(Debug, Default, PartialEq)]
struct Fib(BTreeMap<Vec<u8>, BTreeMap<u32, u64>>);

impl Fib {
    fn apply(&mut self, updates: &mut Vec<RibUpdate>) {
        for update in updates.drain(..) {
            match update {
                RibUpdate::AddNextHop { name, face, cost } => {
                    let old = self.0.entry(name.to_vec()).or_default().insert(face.0, cost);
                    assert_ne!(old, Some(cost), "only what changes is told");
                }
                RibUpdate::RemoveNextHop { name, face } => {
                    let hops = self.0.get_mut(&*name).unwrap();
                    assert!(hops.remove(&face.0).is_some(), "only what is there is removed");
                    if hops.is_empty() {
                        self.0.remove(&*name);
                    }
                }
                RibUpdate::Announcement { .. } => {}
            }
        }
    }

    fn at(&self, uri: &str) -> Vec<(u32, u64)> {
        let hops = self.0.get(name(uri).value());
        hops.map(|hops| hops.iter().map(|(f, c)| (*f, *c)).collect()).unwrap_or_default()
    }
}

const INHERIT: u8 = Route::CHILD_INHERIT;
const CAPTURE: u8 = Route::CAPTURE;

#[test]
fn the_worked_example_of_nfd_holds_in_any_order_of_registration() {
    let routes = [
        ("/A", route(1, 255, 10, 0)),
        ("/A", route(1, 128, 20, INHERIT)),
        ("/A", route(2, 255, 30, 0)),
        ("/A/B", route(1, 255, 40, INHERIT)),
        ("/A/B", route(2, 255, 50, INHERIT)),
        ("/A/B/C", route(3, 255, 60, INHERIT)),
        ("/A/B/C/D", route(4, 255, 70, INHERIT | CAPTURE)),
    ];
    for start in 0..routes.len() {
        let mut rib = Rib::new(100);
        let (mut fib, mut updates) = (Fib::default(), Vec::new());
        for (uri, route) in routes[start..].iter().chain(&routes[..start]) {
            rib.register(name(uri).as_ref(), route.clone(), &mut updates).unwrap();
            fib.apply(&mut updates);
        }
        assert_eq!(fib.at("/A"), [(1, 10), (2, 30)]);
        assert_eq!(fib.at("/A/B"), [(1, 40), (2, 50)]);
        assert_eq!(fib.at("/A/B/C"), [(1, 40), (2, 50), (3, 60)]);
        assert_eq!(fib.at("/A/B/C/D"), [(4, 70)]);
    }
}

#[test]
fn registering_again_changes_the_route_and_tells_only_a_changed_cost() {
    let mut rib = Rib::new(1);
    let mut updates = Vec::new();
    rib.register(name("/A").as_ref(), route(1, 0, 10, INHERIT), &mut updates).unwrap();
    updates.clear();
    rib.register(name("/A").as_ref(), route(1, 0, 10, 0), &mut updates).unwrap();
    assert_eq!(updates, []);
    rib.register(name("/A").as_ref(), route(1, 0, 11, 0), &mut updates).unwrap();
    let value: NameValue = name("/A").value().into();
    let face = FaceId(1);
    assert_eq!(updates, [RibUpdate::AddNextHop { name: value, face, cost: 11 }]);
    assert_eq!(rib.len(), 1);
}

#[test]
fn a_route_beyond_the_bound_is_refused_and_changes_nothing() {
    let mut rib = Rib::new(2);
    let mut updates = Vec::new();
    rib.register(name("/A").as_ref(), route(1, 0, 1, 0), &mut updates).unwrap();
    rib.register(name("/A").as_ref(), route(1, 1, 1, 0), &mut updates).unwrap();
    updates.clear();
    let refused = rib.register(name("/B").as_ref(), route(1, 0, 1, 0), &mut updates);
    assert_eq!(refused, Err(RibError::Full(2)));
    assert!(updates.is_empty() && rib.get(name("/B").as_ref()).is_empty());
    assert!(rib.unregister(name("/A").as_ref(), FaceId(1), 0, &mut updates));
    rib.register(name("/B").as_ref(), route(1, 0, 1, 0), &mut updates).unwrap();
}

#[test]
fn a_route_ends_when_it_expires_unless_it_was_renewed() {
    let mut rib = Rib::new(10);
    let (mut fib, mut updates) = (Fib::default(), Vec::new());
    let until = |ms| Route { expiry: Tick::from_ms(ms), ..route(1, 0, 1, 0) };
    assert_eq!(rib.poll_timeout(), Tick::NEVER);
    rib.register(name("/A").as_ref(), until(100), &mut updates).unwrap();
    rib.register(name("/B").as_ref(), until(200), &mut updates).unwrap();
    rib.register(name("/A").as_ref(), until(300), &mut updates).unwrap();
    fib.apply(&mut updates);
    assert_eq!(rib.poll_timeout(), Tick::from_ms(200));
    rib.handle_timeout(Tick::from_ms(299), &mut updates);
    fib.apply(&mut updates);
    assert_eq!((fib.at("/A"), fib.at("/B")), (vec![(1, 1)], vec![]));
    rib.handle_timeout(Tick::from_ms(300), &mut updates);
    fib.apply(&mut updates);
    assert_eq!((fib, rib.len(), rib.poll_timeout()), (Fib::default(), 0, Tick::NEVER));
}

#[test]
fn a_face_that_goes_takes_its_routes_and_what_was_inherited_from_them() {
    let mut rib = Rib::new(10);
    let (mut fib, mut updates) = (Fib::default(), Vec::new());
    for (uri, route) in [
        ("/", route(1, 0, 9, INHERIT)),
        ("/A", route(1, 255, 8, 0)),
        ("/A", route(2, 0, 7, 0)),
        ("/A/B", route(3, 0, 6, 0)),
    ] {
        rib.register(name(uri).as_ref(), route, &mut updates).unwrap();
    }
    fib.apply(&mut updates);
    assert_eq!(fib.at("/A/B"), [(1, 9), (3, 6)]);
    rib.remove_face(FaceId(1), &mut updates);
    fib.apply(&mut updates);
    assert_eq!(fib.at("/"), []);
    assert_eq!((fib.at("/A"), fib.at("/A/B")), (vec![(2, 7)], vec![(3, 6)]));
    rib.remove_face(FaceId(1), &mut updates);
    assert!(updates.is_empty());
    assert_eq!(rib.len(), 2);
}

#[test]
fn the_announcement_of_the_longest_prefix_is_known_until_its_route_ends() {
    let mut rib = Rib::new(10);
    let mut updates = Vec::new();
    let data = Buf::copy_from(&[6, 0]);
    let learned = Route { announcement: Some(data.clone()), ..route(1, 129, 2048, INHERIT) };
    rib.register(name("/A").as_ref(), learned, &mut updates).unwrap();
    rib.register(name("/A/B").as_ref(), route(2, 0, 0, 0), &mut updates).unwrap();
    let told: NameValue = name("/A").value().into();
    let update = RibUpdate::Announcement { name: Arc::clone(&told), data: Some(data.clone()) };
    assert!(updates.contains(&update));
    assert_eq!(rib.announcement(name("/A/B/1").as_ref()), Some(&data));
    assert_eq!(rib.announcement(name("/B").as_ref()), None);
    updates.clear();
    rib.unregister(name("/A").as_ref(), FaceId(1), 129, &mut updates);
    assert!(updates.contains(&RibUpdate::Announcement { name: told, data: None }));
    assert_eq!(rib.announcement(name("/A/B/1").as_ref()), None);
}

/// The rules as they are written, computed for every name from nothing.
fn naive(routes: &BTreeMap<(String, u32, u16), Route>) -> Fib {
    let at = |uri: &str| -> Vec<&Route> {
        routes.iter().filter(|((n, ..), _)| n == uri).map(|(_, route)| route).collect()
    };
    let captures = |routes: &[&Route]| routes.iter().any(|r| r.flags & CAPTURE != 0);
    let mut fib = Fib::default();
    for (uri, ..) in routes.keys() {
        let own = at(uri);
        let mut hops: BTreeMap<u32, u64> = BTreeMap::new();
        for route in &own {
            let cost = hops.entry(route.face.0).or_insert(route.cost);
            *cost = route.cost.min(*cost);
        }
        let mut above = name(uri);
        let mut stop = captures(&own) || above.is_empty();
        while !stop {
            above.pop();
            let ancestors = at(&above.to_string());
            let mut nearest: BTreeMap<u32, u64> = BTreeMap::new();
            for route in ancestors.iter().filter(|r| r.flags & INHERIT != 0) {
                let cost = nearest.entry(route.face.0).or_insert(route.cost);
                *cost = route.cost.min(*cost);
            }
            for (face, cost) in nearest {
                hops.entry(face).or_insert(cost);
            }
            stop = captures(&ancestors) || above.is_empty();
        }
        fib.0.insert(name(uri).value().to_vec(), hops);
    }
    fib
}

#[derive(Debug, Clone)]
enum Step {
    Register(String, Route),
    Unregister(String, u32, u16),
    RemoveFace(u32),
    Time(u64),
}

#[test]
fn what_changes_is_counted_but_for_the_routes_of_routing() {
    let mut rib = Rib::new(100);
    let mut updates = Vec::new();
    let add = |rib: &mut Rib, route: Route| {
        rib.register(name("/A").as_ref(), route, &mut Vec::new()).unwrap();
        rib.changes()
    };
    assert_eq!(add(&mut rib, route(1, ORIGIN_APP, 1, 0)), 1);
    assert_eq!(add(&mut rib, route(1, ORIGIN_APP, 1, 0)), 1, "the same once more");
    let lasting = Route { expiry: Tick::from_ms(9), ..route(1, ORIGIN_APP, 1, 0) };
    assert_eq!(add(&mut rib, lasting), 1, "only its end is another");
    assert_eq!(add(&mut rib, route(1, ORIGIN_APP, 2, 0)), 2, "another cost");
    assert_eq!(add(&mut rib, route(1, ORIGIN_ROUTING, 1, 0)), 2);
    let short = Route { expiry: Tick::from_ms(5), ..route(2, ORIGIN_PREFIX_ANNOUNCEMENT, 1, 0) };
    assert_eq!(add(&mut rib, short), 3);
    rib.handle_timeout(Tick::from_ms(5), &mut updates);
    assert_eq!(rib.changes(), 4, "it ended");
    rib.remove_face(FaceId(1), &mut updates);
    assert_eq!(rib.changes(), 5, "of two routes one is routing's");
    rib.unregister(name("/A").as_ref(), FaceId(1), ORIGIN_APP, &mut updates);
    assert_eq!(rib.changes(), 5, "what is not there does not go");
}

fn any_uri() -> impl Strategy<Value = String> {
    // Short, long and 0xff components, so that neighbours in octets are met.
    let component = prop_oneof![Just("A"), Just("B"), Just("AA"), Just("%FF"), Just("%FF%FF")];
    proptest::collection::vec(component, 0..5).prop_map(|parts| {
        if parts.is_empty() { "/".to_owned() } else { format!("/{}", parts.join("/")) }
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let route = (1_u32..4, 0_u16..2, 0_u64..5, 0_u8..4, proptest::option::of(0_u64..50)).prop_map(
        |(face, origin, cost, flags, expiry)| Route {
            expiry: expiry.map_or(Tick::NEVER, Tick::from_ms),
            ..route(face, origin, cost, flags)
        },
    );
    prop_oneof![
        8 => (any_uri(), route).prop_map(|(uri, route)| Step::Register(uri, route)),
        4 => (any_uri(), 1_u32..4, 0_u16..2).prop_map(|(u, f, o)| Step::Unregister(u, f, o)),
        1 => (1_u32..4).prop_map(Step::RemoveFace),
        1 => (0_u64..50).prop_map(Step::Time),
    ]
}

proptest! {
    #[test]
    fn the_fib_made_of_updates_is_the_one_computed_from_nothing(
        steps in proptest::collection::vec(any_step(), 1..60),
    ) {
        let mut rib = Rib::new(1000);
        let mut routes: BTreeMap<(String, u32, u16), Route> = BTreeMap::new();
        let (mut fib, mut updates, mut now) = (Fib::default(), Vec::new(), Tick::default());
        for step in steps {
            match step {
                Step::Register(uri, route) => {
                    rib.register(name(&uri).as_ref(), route.clone(), &mut updates).unwrap();
                    routes.insert((uri, route.face.0, route.origin), route);
                }
                Step::Unregister(uri, face, origin) => {
                    let there = routes.remove(&(uri.clone(), face, origin)).is_some();
                    let uri = name(&uri);
                    let was = rib.unregister(uri.as_ref(), FaceId(face), origin, &mut updates);
                    prop_assert_eq!(was, there);
                }
                Step::RemoveFace(face) => {
                    rib.remove_face(FaceId(face), &mut updates);
                    routes.retain(|(_, f, _), _| *f != face);
                }
                Step::Time(ms) => {
                    now = now.max(Tick::from_ms(ms));
                    rib.handle_timeout(now, &mut updates);
                    routes.retain(|_, route| route.expiry > now);
                }
            }
            fib.apply(&mut updates);
            prop_assert_eq!(&fib, &naive(&routes));
            prop_assert_eq!(rib.len(), routes.len());
            prop_assert_eq!(rib.iter().map(|(_, r)| r.len()).sum::<usize>(), routes.len());
        }
    }
}
