use super::request::Request;
use super::*;
use onym_tables::KeyedMap;
use onym_wire::push::Kind;

const DOMAIN: Strategy = Strategy::DOMAIN_LOCAL;

fn node(n: u64) -> Label {
    Label::from_u64(n)
}

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

fn ask(
    graph: &mut Graph,
    n: u64,
    kind: Kind,
    child: &str,
    prefix: &str,
) -> Result<Changes, Status> {
    let request = Request { kind, id: id(child), prefix: id(prefix), strategy: DOMAIN };
    let before = graph.views();
    let result = graph.request(node(n), &request);
    if result.is_err() {
        assert_eq!(graph.views(), before, "a refused request changes nothing");
    }
    check(graph);
    result
}

/// What holds at every moment.
fn check(graph: &Graph) {
    for (id, v) in &graph.index {
        let vertex = graph.at(*v);
        assert!(vertex.path(id).is_some(), "{id} is an id of its vertex");
        assert_eq!(graph.by_number.get(&vertex.number), Some(v));
    }
    let ids: usize = graph.vertices.iter().flatten().map(|v| v.paths.len()).sum();
    assert_eq!(ids, graph.index.len(), "every id is in the index once");
    let octets: usize = graph.index.keys().map(path_octets).sum();
    assert_eq!(graph.octets(), octets + graph.len() * VERTEX_OCTETS);
    for (v, vertex) in graph.vertices.iter().enumerate() {
        let Some(vertex) = vertex else { continue };
        for path in &vertex.paths {
            let parent = match path.id.parent() {
                [] => None,
                parent => graph.scope(&Id::from_labels(parent)),
            };
            assert_eq!(path.parent, parent, "{} hangs under its parent", path.id);
            if let Some(f) = parent {
                assert_eq!(graph.at(f).children.get(&path.id.last().unwrap().0), Some(&v));
                assert_eq!(graph.at(f).strategy, vertex.strategy);
            }
        }
    }
    for (n, holder) in &graph.held {
        let digest = holder.held.iter().fold(0, |all, h| all ^ digest_of(h));
        assert_eq!(holder.digest, digest, "digest of {n}");
    }
}

fn names(graph: &Graph, of: &str) -> Vec<String> {
    let view = graph.view(&id(of)).unwrap();
    view.ids.iter().map(|(id, _, _)| id.to_string()).collect()
}

/// The information structure of Fig. 1 of the Blackadder paper.
fn figure_1() -> Graph {
    let mut graph = Graph::new(Limits::default());
    let g = &mut graph;
    for (child, prefix) in
        [("/0000", "/"), ("/0001", "/"), ("/0000", "/0000"), ("/1111", "/0000"), ("/2222", "/0000")]
    {
        ask(g, 1, Kind::PUBLISH_SCOPE, child, prefix).unwrap();
    }
    ask(g, 1, Kind::PUBLISH_SCOPE, "/3333", "/0000/2222").unwrap();
    ask(g, 1, Kind::PUBLISH_ITEM, "/0000", "/0000/1111").unwrap();
    ask(g, 1, Kind::PUBLISH_SCOPE, "/0000/2222/3333", "/0001").unwrap();
    ask(g, 1, Kind::PUBLISH_ITEM, "/000a", "/0000/2222/3333").unwrap();
    graph
}

#[test]
fn figure_1_of_the_paper_gives_its_identifiers() {
    let mut g = figure_1();
    assert_eq!(names(&g, "/0001/3333"), ["/0000/2222/3333", "/0001/3333"]);
    let two = ["/0000/2222/3333/000a", "/0001/3333/000a"];
    assert_eq!(names(&g, "/0001/3333/000a"), two);
    ask(&mut g, 1, Kind::PUBLISH_ITEM, "/0000/2222/3333/000a", "/0001").unwrap();
    assert_eq!(names(&g, "/0001/000a"), [two[0], "/0001/000a", two[1]]);
    assert!(!g.view(&id("/0000/1111/0000")).unwrap().is_scope);
    assert!(g.view(&id("/0000/0000")).unwrap().is_scope);
    assert_eq!(g.len(), 8);
}

#[test]
fn a_subscriber_of_a_root_is_told_its_own_ids_of_the_scope() {
    let mut g = figure_1();
    let changes = ask(&mut g, 5, Kind::SUBSCRIBE_SCOPE, "/0001", "/").unwrap();
    let told: Vec<String> =
        changes.scopes.iter().flat_map(|s| &s.ids).map(ToString::to_string).collect();
    assert_eq!(told, ["/0001/3333"]);
}

#[test]
fn items_of_every_parent_are_matched_once() {
    let mut g = figure_1();
    ask(&mut g, 1, Kind::PUBLISH_ITEM, "/0000/2222/3333/000a", "/0001").unwrap();
    let first = ask(&mut g, 5, Kind::SUBSCRIBE_SCOPE, "/3333", "/0001").unwrap();
    let told: Vec<_> = first.in_order();
    assert_eq!(told.len(), 1);
    assert_eq!(*told[0].1.subscribers, [node(5)]);
    let again = ask(&mut g, 5, Kind::SUBSCRIBE_ITEM, "/000a", "/0001").unwrap();
    assert!(again.in_order().is_empty(), "the node is served already");
    let less = ask(&mut g, 5, Kind::UNSUBSCRIBE_SCOPE, "/3333", "/0001").unwrap();
    assert!(less.in_order().is_empty(), "and still is");
    let none = ask(&mut g, 5, Kind::UNSUBSCRIBE_ITEM, "/000a", "/0001").unwrap();
    assert_eq!(*none.in_order()[0].1.subscribers_gone, [node(5)]);
}

#[test]
fn statuses_come_in_the_order_of_the_checks() {
    let mut g = figure_1();
    let other = |kind, child: &str, prefix: &str| {
        let strategy = Strategy::NODE_LOCAL;
        Request { kind, id: id(child), prefix: id(prefix), strategy }
    };
    for (kind, child, prefix, status) in [
        (Kind::PUBLISH_SCOPE, "/", "/", Status::WRONG_IDS),
        (Kind::PUBLISH_SCOPE, "/0000", "/", Status::EXISTS),
        (Kind::PUBLISH_SCOPE, "/9", "/8", Status::NO_PARENT),
        (Kind::PUBLISH_SCOPE, "/9", "/0000/1111/0000", Status::NO_PARENT),
        (Kind::PUBLISH_SCOPE, "/0000", "/0000/1111", Status::IS_ITEM),
        (Kind::PUBLISH_SCOPE, "/0000/9", "/0001", Status::NO_SCOPE),
        (Kind::PUBLISH_SCOPE, "/0000/2222/3333", "/0001", Status::EXISTS),
        (Kind::PUBLISH_SCOPE, "/0000/2222", "/8", Status::NO_PARENT),
        (Kind::PUBLISH_SCOPE, "/0000/2222", "/0000/2222/3333", Status::WRONG_IDS),
        (Kind::PUBLISH_SCOPE, "/0000/2222", "/", Status::WRONG_IDS),
        (Kind::PUBLISH_ITEM, "/1111", "/0000", Status::IS_SCOPE),
        (Kind::PUBLISH_ITEM, "/7", "/", Status::WRONG_IDS),
        (Kind::PUBLISH_ITEM, "/7", "/8", Status::NO_PARENT),
        (Kind::PUBLISH_ITEM, "/0000", "/0000/1111", Status::EXISTS),
        (Kind::PUBLISH_ITEM, "/0000/7", "/0001", Status::NO_ITEM),
        (Kind::SUBSCRIBE_SCOPE, "/0000", "/0000/1111", Status::IS_ITEM),
        (Kind::SUBSCRIBE_SCOPE, "/9", "/8", Status::NO_PARENT),
        (Kind::SUBSCRIBE_SCOPE, "/9/9", "/", Status::WRONG_IDS),
        (Kind::SUBSCRIBE_ITEM, "/7", "/", Status::WRONG_IDS),
        (Kind::SUBSCRIBE_ITEM, "/1111", "/0000", Status::IS_SCOPE),
        (Kind::UNPUBLISH_SCOPE, "/9", "/", Status::NO_SCOPE),
        (Kind::UNPUBLISH_ITEM, "/9", "/0000", Status::NO_ITEM),
        (Kind::UNPUBLISH_ITEM, "/1111", "/0000", Status::NO_ITEM),
        (Kind::UNSUBSCRIBE_SCOPE, "/0000", "/", Status::NOT_THERE),
        (Kind::UNSUBSCRIBE_ITEM, "/0000", "/0000/1111", Status::NOT_THERE),
        (Kind::START, "/9", "/", Status::UNKNOWN),
    ] {
        assert_eq!(ask(&mut g, 1, kind, child, prefix), Err(status), "{kind:?} {child} {prefix}");
    }
    for (kind, child, prefix) in [
        (Kind::PUBLISH_SCOPE, "/0000", "/"),
        (Kind::PUBLISH_SCOPE, "/77", "/0000"),
        (Kind::PUBLISH_ITEM, "/77", "/0000"),
        (Kind::SUBSCRIBE_SCOPE, "/77", "/0000"),
        (Kind::SUBSCRIBE_ITEM, "/77", "/0000"),
        (Kind::UNPUBLISH_SCOPE, "/0000", "/"),
        (Kind::UNPUBLISH_ITEM, "/0000", "/0000/1111"),
    ] {
        let status = g.request(node(1), &other(kind, child, prefix));
        assert_eq!(status, Err(Status::STRATEGY), "{kind:?} {child} {prefix}");
    }
}

#[test]
fn an_unpublished_scope_takes_its_publishers_items_along() {
    let mut g = figure_1();
    ask(&mut g, 2, Kind::PUBLISH_ITEM, "/000a", "/0001/3333").unwrap();
    ask(&mut g, 5, Kind::SUBSCRIBE_SCOPE, "/0000", "/").unwrap();
    ask(&mut g, 1, Kind::UNPUBLISH_SCOPE, "/3333", "/0000/2222").unwrap();
    let view = g.view(&id("/0001/3333/000a")).unwrap();
    let publishers: Vec<Label> = view.ids.iter().flat_map(|(_, p, _)| p.clone()).collect();
    assert_eq!(publishers, [node(2)]);
    assert!(g.view(&id("/0000/2222/3333")).is_some(), "the other publisher's item holds it");
}

#[test]
fn a_branch_goes_and_the_other_stays() {
    let mut g = figure_1();
    ask(&mut g, 1, Kind::UNPUBLISH_ITEM, "/000a", "/0000/2222/3333").unwrap();
    ask(&mut g, 5, Kind::SUBSCRIBE_SCOPE, "/0001", "/").unwrap();
    ask(&mut g, 6, Kind::SUBSCRIBE_SCOPE, "/2222", "/0000").unwrap();
    let changes = ask(&mut g, 1, Kind::UNPUBLISH_SCOPE, "/3333", "/0001").unwrap();
    assert_eq!(changes.scopes.len(), 1);
    let news = &changes.scopes[0];
    assert_eq!((news.is_published, &news.nodes[..]), (false, &[node(5)][..]));
    assert_eq!(news.ids, [id("/0001/3333")]);
    assert_eq!(names(&g, "/0000/2222/3333"), ["/0000/2222/3333"]);
}

#[test]
fn what_a_silent_node_held_goes_items_first() {
    let mut g = figure_1();
    ask(&mut g, 5, Kind::SUBSCRIBE_SCOPE, "/0000", "/").unwrap();
    let changes = g.forget(node(1));
    check(&g);
    let ids: Vec<String> = g.views().iter().map(|v| v.ids[0].0.to_string()).collect();
    assert_eq!(ids, ["/0000"], "only the subscriber's scope is left");
    assert!(changes.scopes.iter().all(|s| !s.is_published));
    g.forget(node(5));
    assert!(g.is_empty());
    check(&g);
}

#[test]
fn bounds_are_statuses() {
    let mut g =
        Graph::new(Limits { vertices_max: 2, ids_max: 1, nodes_max: 2, ..Limits::default() });
    ask(&mut g, 1, Kind::PUBLISH_SCOPE, "/1", "/").unwrap();
    ask(&mut g, 2, Kind::PUBLISH_SCOPE, "/2", "/").unwrap();
    assert_eq!(ask(&mut g, 1, Kind::PUBLISH_SCOPE, "/3", "/"), Err(Status::FULL), "vertices");
    assert_eq!(ask(&mut g, 3, Kind::PUBLISH_SCOPE, "/2", "/"), Err(Status::FULL), "nodes");
    assert_eq!(ask(&mut g, 1, Kind::PUBLISH_SCOPE, "/2", "/1"), Err(Status::FULL));
    ask(&mut g, 2, Kind::UNPUBLISH_SCOPE, "/2", "/").unwrap();
    ask(&mut g, 1, Kind::PUBLISH_SCOPE, "/2", "/1").unwrap();
    let twice = ask(&mut g, 1, Kind::PUBLISH_SCOPE, "/1/2", "/1");
    assert_eq!(twice, Err(Status::EXISTS));
}

#[test]
fn octets_are_bounded_and_one_node_leaves_room_for_others() {
    let limits = Limits { vertices_max: 1000, octets_max: 600 << 10, ..Limits::default() };
    let mut g = Graph::new(limits);
    let mut publish = |by: u64, n: usize| {
        let (kind, id) = (Kind::PUBLISH_SCOPE, id(&format!("/{n:x}")));
        let request = Request { kind, id, prefix: Id::default(), strategy: DOMAIN };
        g.request(node(by), &request).map(drop)
    };
    let greedy = (1..2000).take_while(|n| publish(1, *n).is_ok()).count();
    assert!((400..700).contains(&greedy), "{greedy}");
    let modest = (3000..3050).filter(|n| publish(2, *n).is_ok()).count();
    assert_eq!(modest, 50, "room for others");
    assert!(g.octets() <= 600 << 10);
    check(&g);
    g.forget(node(1));
    g.forget(node(2));
    assert_eq!(g.octets(), 0);
}

#[test]
fn a_walk_up_the_graph_visits_a_parent_once_whatever_number_of_names_it_has() {
    let mut g = Graph::new(Limits::default());
    // Not by `ask`, which looks at all of the graph each time.
    let mut publish = |child: &str, prefix: &str| {
        let (kind, id, prefix) = (Kind::PUBLISH_SCOPE, id(child), id(prefix));
        let request = Request { kind, id, prefix, strategy: DOMAIN };
        g.request(node(1), &request).map(drop)
    };
    assert_eq!([publish("/1", "/"), publish("/6", "/1")], [Ok(()); 2]);
    let mut above = "/1".to_owned();
    // Each scope has two parents with all names of the one above: 64 names at last.
    for _ in 0..6 {
        let (left, right) = (format!("{above}/2"), format!("{above}/3"));
        assert_eq!([publish("/2", &above), publish("/3", &above)], [Ok(()); 2]);
        assert_eq!([publish("/4", &left), publish(&format!("{left}/4"), &right)], [Ok(()); 2]);
        above += "/2/4";
    }
    for _ in 0..8 {
        assert_eq!(publish("/5", &above), Ok(()));
        above += "/5";
    }
    // Whether it would be above itself is asked all the way up: for each name there were 64 to the
    // eighth ways.
    assert_eq!(publish("/1/6", &above), Err(Status::FULL));
    assert_eq!(publish("/1/2", &above), Err(Status::WRONG_IDS), "it would be above itself");
}

mod random {
    use super::*;
    use onym_tables::Rng;

    /// Matches as someone sees them who is only told changes.
    type Told = KeyedMap<u64, (BTreeSet<Label>, BTreeSet<Label>)>;

    fn set(nodes: &Nodes) -> BTreeSet<Label> {
        nodes.iter().copied().collect()
    }

    fn follow(told: &mut Told, changes: &Changes) {
        for (number, change) in changes.in_order() {
            let (publishers, subscribers) = told.entry(number).or_default();
            publishers.extend(change.publishers.iter());
            publishers.retain(|p| !change.publishers_gone.contains(*p));
            subscribers.extend(change.subscribers.iter());
            subscribers.retain(|p| !change.subscribers_gone.contains(*p));
            if change.vertex.is_none() {
                told.remove(&number);
            }
        }
    }

    #[test]
    fn changes_add_up_to_the_matches() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut g = Graph::new(Limits { ids_max: 8, ..Limits::default() });
            let mut told = Told::default();
            for step in 0..400 {
                let mut known: Vec<Id> = g.index.keys().cloned().collect();
                known.sort();
                known.push(Id::default());
                let prefix = known[rng.below(known.len() as u64) as usize].clone();
                let child = if rng.below(4) == 0 {
                    known[rng.below(known.len() as u64) as usize].clone()
                } else {
                    Id::root(Label::from_u64(rng.below(3)))
                };
                let kind = Kind(u8::try_from(rng.below(8)).unwrap());
                let request = Request { kind, id: child, prefix, strategy: DOMAIN };
                let who = node(rng.below(4));
                let changes = if rng.below(50) == 0 {
                    g.forget(who)
                } else {
                    g.request(who, &request).unwrap_or_default()
                };
                check(&g);
                follow(&mut told, &changes);
                for v in (0..g.vertices.len()).filter(|v| g.vertices[*v].is_some()) {
                    if g.at(v).is_scope {
                        continue;
                    }
                    let (publishers, subscribers) =
                        told.get(&g.at(v).number).cloned().unwrap_or_default();
                    let at = format!("seed {seed}, step {step}, {:?}", g.at(v).ids());
                    assert_eq!(publishers, set(&g.publishers(v)), "{at}");
                    assert_eq!(subscribers, set(&g.effective_subscribers(v)), "{at}");
                }
            }
            (0..4).for_each(|n| drop(g.forget(node(n))));
            assert!(g.is_empty(), "seed {seed}: nothing is held and {} are left", g.len());
        }
    }
}
