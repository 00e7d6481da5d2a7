//! What the push half shows of itself, as JSON.

use super::{PushThread, Question};
use crate::counts::PushCounts;
use crate::shard::{PushDropped, PushState};
use onym_pubsub::Verdict;
use onym_pubsub::dispatcher::{CacheView, Counters, RetainedView};
use onym_pubsub::rendezvous::graph::VertexView;
use onym_pubsub::topology::{Federation, Map, MatchView, TreeView};
use onym_tables::FaceId;
use onym_tables::bloom::{Kind, Scheme};
use onym_wire::push::{Id, Kind as MessageKind, Label, Path, Role, Route, RouteBuf, Strategy};
use serde_json::{Value, json};

/// Most scopes and items that are shown at once.
const SHOWN_MAX: usize = 10_000;

impl PushThread {
    /// The dataset that is asked for.
    pub(crate) fn show(&mut self, question: &Question) -> Option<String> {
        let id = Id::from_octets(&question.argument)?;
        let value = match question.what.as_str() {
            "status" => self.status(&question.shards, &question.faces),
            "graph" => self.graph(&id),
            "topology" => self.topology(&id),
            "explain" if !id.is_empty() => self.explain(&id),
            _ => return None,
        };
        Some(value.to_string())
    }

    /// What this thread counted.
    pub(crate) fn counts(&self) -> PushCounts {
        let own = self.plane.forwarder.counters();
        let dispatcher = self.plane.dispatcher.counters;
        let graphs = [Some(&self.plane.inner), self.plane.rendezvous.as_ref()];
        PushCounts {
            verdicts: std::array::from_fn(|i| own.of(Verdict::ALL[i])),
            copies: own.copies,
            dropped: PushDropped::default(),
            app_malformed: 0,
            messages: 0,
            publications: [dispatcher.sent, dispatcher.delivered, dispatcher.missing],
            cache: self.plane.dispatcher.cache(),
            apps: self.apps.len() as u64,
            vertices: graphs.into_iter().flatten().map(|r| r.graph().len() as u64).sum(),
        }
    }

    fn status(&self, shards: &[PushState], faces: &[(FaceId, String)]) -> Value {
        let own = self.plane.forwarder.counters();
        let sum = |verdict: Verdict| {
            own.of(verdict) + shards.iter().map(|s| s.counters.of(verdict)).sum::<u64>()
        };
        let verdicts: Value = Verdict::ALL
            .iter()
            .map(|v| (v.label().to_owned(), Value::from(sum(*v))))
            .filter(|(_, n)| *n != 0)
            .collect();
        let dropped = |of: fn(&PushState) -> u64| shards.iter().map(of).sum::<u64>();
        let uri = |id: FaceId| faces.iter().find(|(f, _)| *f == id).map(|(_, uri)| uri.as_str());
        let links: Vec<Value> = self
            .links
            .iter()
            .map(|link| {
                json!({
                    "face": link.face.0,
                    "uri": uri(link.face),
                    "number": link.number,
                    "cost": link.cost,
                    "neighbour": self.plane.link_state.neighbour(link.face).map(text),
                    "domain": self.plane.link_state.exit(link.face).map(text),
                })
            })
            .collect();
        let apps: Vec<Value> = self
            .apps
            .iter()
            .take(SHOWN_MAX)
            .map(|(app, (face, text))| json!({ "face": face.0, "number": app.0, "text": text }))
            .collect();
        let dispatcher = self.counted(shards);
        json!({
            "enabled": true,
            "node": text(self.plane.label()),
            "inside": self.settings.node.inside,
            "roles": roles(self.settings.node.role),
            "homes": self.plane.dispatcher.homes().iter().map(|home| json!({
                "node": text(home.node), "roles": roles(home.role),
            })).collect::<Vec<_>>(),
            "links": links,
            "apps": apps,
            "received": own.received + shards.iter().map(|s| s.counters.received).sum::<u64>(),
            "copies": own.copies + shards.iter().map(|s| s.counters.copies).sum::<u64>(),
            "verdicts": verdicts,
            "dropped": {
                "push_not_local": dropped(|s| s.dropped.not_local),
                "push_backlog": dropped(|s| s.dropped.backlog),
                "push_app_malformed": dropped(|s| s.malformed),
            },
            "missed": dropped(|s| s.dropped.missed),
            "messages": dropped(|s| s.messages),
            "publications": { "sent": dispatcher.sent, "delivered": dispatcher.delivered,
                "unwanted": dispatcher.unwanted, "missing": dispatcher.missing,
                "duplicates": dispatcher.duplicates, "incomplete": dispatcher.incomplete,
                "repaired": dispatcher.repaired, "repairs_asked": dispatcher.repairs_asked,
                "malformed": dispatcher.malformed, "wrong_flow": dispatcher.wrong_flow },
            "retained": retained_json(&self.plane.dispatcher.retained()),
            "cache": cache_json(&self.plane.dispatcher.cache()),
            "control": self.control(dispatcher.refused),
        })
    }

    /// What dispatcher and push FIBs counted.
    fn counted(&self, shards: &[PushState]) -> Counters {
        let mut sum = self.plane.dispatcher.counters;
        shards.iter().for_each(|shard| sum += &shard.fib);
        sum
    }

    /// What was said between parts of nodes, and what came of it.
    fn control(&self, refused_here: u64) -> Value {
        let (node, traffic) = (&self.plane, self.plane.traffic());
        let taken = |kind: MessageKind| node.taken(kind);
        let topology = node.topology.as_ref();
        let refused = [
            node.rendezvous.as_ref().map_or(0, |r| r.refused),
            topology.map_or(0, |t| t.refused),
            node.link_state.refused,
        ];
        json!({
            "malformed": node.dropped.malformed, "mac": node.dropped.mac,
            "signature": node.dropped.signature, "misdirected": node.dropped.misdirected,
            "refused": refused_here, "doubts": node.link_state.doubts,
            "parts_refused": refused.iter().sum::<u64>(),
            "between": topology.and_then(|t| t.federation()).map_or(0, |f| f.refused),
            "trees": topology.map_or(0, |t| t.trees),
            "requests": (0..8).map(|kind| taken(MessageKind(kind))).sum::<u64>(),
            "matches": taken(MessageKind::MATCH),
            "repairs": taken(MessageKind::REPAIR),
            "domain_repairs": taken(MessageKind::DOMAIN_REPAIR),
            "queued": traffic.queued, "unacknowledged": traffic.unacknowledged,
        })
    }

    /// The information graphs of this node: within the node, and of the domain where this node is
    /// a rendezvous. Beneath `id` only.
    fn graph(&self, id: &Id) -> Value {
        let graphs =
            [("node", Some(&self.plane.inner)), ("domain", self.plane.rendezvous.as_ref())];
        let mut vertices = Vec::new();
        let mut total = 0;
        for (of, rendezvous) in graphs {
            let Some(rendezvous) = rendezvous else { continue };
            total += rendezvous.graph().len();
            for view in rendezvous.graph().views() {
                if vertices.len() >= SHOWN_MAX || !view.ids.iter().any(|i| i.0.starts_with(id)) {
                    continue;
                }
                vertices.push(self.vertex_json(of, &view));
            }
        }
        json!({
            "node": text(self.plane.label()),
            "rendezvous": self.plane.rendezvous.is_some(),
            "rendezvous_nodes": self.homes_with(Role::RENDEZVOUS),
            "total": total,
            "vertices": vertices,
        })
    }

    /// The topology managers that this node knows.
    fn managers(&self) -> Vec<String> {
        self.homes_with(Role::TOPOLOGY)
    }

    /// The nodes that do `role` for this one.
    fn homes_with(&self, role: Role) -> Vec<String> {
        let homes = self.plane.dispatcher.homes().iter();
        homes.filter(|h| h.role.has(role)).map(|h| text(h.node)).collect()
    }

    /// The map of the domain, and the trees of an item when one is named.
    fn topology(&self, id: &Id) -> Value {
        let Some(topology) = &self.plane.topology else {
            return json!({
                "node": text(self.plane.label()),
                "manager": false,
                "managers": self.managers(),
            });
        };
        let nodes: Vec<Value> = topology
            .map()
            .nodes()
            .iter()
            .map(|(label, state)| {
                json!({
                    "node": text(*label),
                    "inside": state.inside,
                    "roles": roles(state.role),
                    "links": state.links.iter().map(|l| {
                        let used = topology.used((*label, l.number));
                        json!({
                            "to": text(l.neighbour), "number": l.number, "cost": l.cost,
                            "capacity_kbit": used.map(|u| u.0), "load_percent": used.map(|u| u.1),
                        })
                    }).collect::<Vec<_>>(),
                })
            })
            .collect();
        let routes = topology.federation().map(Federation::routes).unwrap_or_default();
        let domains: Vec<Value> = routes
            .iter()
            .map(|route| {
                let path = route.path.iter().map(|hop| text(hop.domain)).collect::<Vec<_>>();
                json!({ "domain": text(route.destination), "path": path })
            })
            .collect();
        let matches = topology.match_views(if id.is_empty() { None } else { Some(id) }, SHOWN_MAX);
        json!({
            "node": text(self.plane.label()),
            "manager": true,
            "nodes": nodes,
            "domains": domains,
            "trees_made": topology.trees,
            "matches": self.matches_json(&matches),
        })
    }

    /// What became, and would become, of a publication.
    fn explain(&self, id: &Id) -> Value {
        let here = self.plane.dispatcher.view(id);
        let graphs =
            [("node", Some(&self.plane.inner)), ("domain", self.plane.rendezvous.as_ref())];
        let mut graphs = graphs.into_iter();
        let graph = graphs.find_map(|(of, r)| Some((of, r?.graph().view(id)?)));
        let matches = self.plane.topology.as_ref().map(|t| t.match_views(Some(id), SHOWN_MAX));
        let rendezvous = self.plane.dispatcher.rendezvous_of_root(id).map(text);
        let sentence = match (&here, &graph, &matches) {
            (Some(view), ..) if view.is_matched && view.route.is_some() => {
                "An application of this node publishes it, and it goes to other nodes."
            }
            (Some(view), ..) if view.is_matched => {
                "An application of this node publishes it, for subscribers of this node only."
            }
            (Some(view), ..) if view.retained.is_some() => {
                "An application of this node publishes it; nobody subscribed, and its last \
                 publications are retained for who will."
            }
            (Some(view), ..) if !view.publishers.is_empty() => {
                "An application of this node publishes it; nobody subscribed, so it is stopped."
            }
            (_, Some((_, view)), _) if view.ids.iter().all(|i| i.1.is_empty()) => {
                "There are subscribers and no publisher: publish the item somewhere."
            }
            (_, Some((_, view)), _) if view.ids.iter().all(|i| i.2.is_empty()) => {
                "It is published and nobody subscribed."
            }
            (_, Some(_), _) => "It is known to the rendezvous of this node.",
            (Some(_), None, _) => "It is subscribed to by an application of this node.",
            (None, None, Some(m)) if !m.is_empty() => "Matched by this topology manager.",
            _ => "Nothing is known of it here: ask the node of its rendezvous, or publish it.",
        };
        json!({
            "id": id.to_string(),
            "path": self.path(id),
            "sentence": sentence,
            "rendezvous": rendezvous,
            "managers": self.managers(),
            "here": here.map(|view| json!({
                "strategy": view.strategy.to_string(),
                "aliases": view.aliases.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "publishers": view.publishers.iter().map(|(app, is_started)| json!({
                    "app": app.0, "started": is_started,
                })).collect::<Vec<_>>(),
                "subscribers": view.subscribers.iter().map(|app| app.0).collect::<Vec<_>>(),
                "matched": view.is_matched,
                "route": view.route.as_ref().map(route_json),
                "hops": view.hops,
                "behind": (!view.publishers.is_empty()).then_some(match view.retained {
                    Some(view) if view.waits => "publishers wait, then the oldest goes",
                    Some(_) => "the oldest goes",
                    None => "publishers wait",
                }),
                "retained": view.retained.map(|view| json!({
                    "publications": view.publications, "most": view.most,
                    "lifetime_ms": view.lifetime.map(|lifetime| lifetime.as_millis()),
                    "deadline_ms": view.deadline.map(|deadline| deadline.as_millis()),
                    "priority": view.priority, "waits": view.waits,
                })),
            })),
            "graph": graph.map(|(of, view)| self.vertex_json(of, &view)),
            "matches": matches.map(|m| self.matches_json(&m)),
        })
    }
}

/// What is retained for who subscribes later.
fn retained_json(view: &RetainedView) -> Value {
    json!({
        "items": view.items, "streams": view.streams, "publications": view.publications,
        "octets": view.octets, "octets_max": view.octets_max,
        "evicted": view.evicted, "expired": view.expired, "overdue": view.overdue,
        "told": view.told, "replayed": view.replayed, "unsent": view.unsent,
        "lagging": view.lagging, "replays": view.replays,
        "waiting": view.waiting, "in_vain": view.in_vain,
    })
}

/// What the cache holds for who subscribes later.
fn cache_json(view: &CacheView) -> Value {
    json!({
        "publications": view.publications, "partial": view.partial,
        "octets": view.octets, "octets_max": view.octets_max,
        "evicted": view.evicted, "expired": view.expired,
        "told": view.told, "sent": view.sent, "unsent": view.unsent,
    })
}

impl PushThread {
    /// The words that are known of an identifier (P-72); none: it has none.
    fn path(&self, id: &Id) -> Option<String> {
        let graphs = [self.plane.rendezvous.as_ref(), Some(&self.plane.inner)];
        let graphs = graphs.into_iter().flatten().map(|r| r.graph().path(id));
        let own = (1..=id.len()).map(|depth| {
            let above = Id::from_labels(&id.labels()[..depth]);
            self.plane.dispatcher.word(&above).map(str::to_owned)
        });
        let own = Path { id: id.clone(), words: own.collect() };
        let all = graphs.chain([own]).reduce(|mut known, more| {
            for (word, other) in known.words.iter_mut().zip(more.words) {
                *word = word.take().or(other);
            }
            known
        });
        let all = all.filter(|path| path.words.iter().any(Option::is_some));
        all.map(|path| path.to_string())
    }

    /// Those of several identifiers, in the same order.
    fn paths<'a>(&self, ids: impl Iterator<Item = &'a Id>) -> Vec<Option<String>> {
        ids.map(|id| self.path(id)).collect()
    }

    fn vertex_json(&self, of: &str, view: &VertexView) -> Value {
        let mut publishers: Vec<Label> = view.ids.iter().flat_map(|i| i.1.clone()).collect();
        let mut subscribers: Vec<Label> = view.ids.iter().flat_map(|i| i.2.clone()).collect();
        for labels in [&mut publishers, &mut subscribers] {
            labels.sort_unstable();
            labels.dedup();
        }
        json!({
            "of": of,
            "ids": view.ids.iter().map(|i| i.0.to_string()).collect::<Vec<_>>(),
            "paths": self.paths(view.ids.iter().map(|i| &i.0)),
            "scope": view.is_scope,
            "strategy": view.strategy.to_string(),
            "publishers": texts(&publishers),
            "subscribers": texts(&subscribers),
        })
    }

    /// Ones of a tag, where every tag has as many and filters have false positives by chance.
    fn ones_of_tags(&self) -> Option<i32> {
        match self.settings.node.forwarder.scheme.kind {
            Kind::Tags { k, .. } => Some(k.into()),
            Kind::Bits => None,
        }
    }

    fn matches_json(&self, views: &[MatchView]) -> Value {
        let ones = self.ones_of_tags();
        let Some(topology) = &self.plane.topology else { return json!([]) };
        let one = |view: &MatchView| {
            let tree = |tree: &TreeView| {
                let shape = shape(topology.map(), tree, &view.subscribers);
                tree_json(tree, &shape, self.settings.node.forwarder.scheme, ones)
            };
            json!({
                "ids": view.ids.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "paths": self.paths(view.ids.iter()),
                "publishers": texts(&view.publishers),
                "subscribers": texts(&view.subscribers),
                "around": view.around.iter().map(|(from, number)| json!({
                    "from": text(*from), "number": number,
                })).collect::<Vec<_>>(),
                "trees": view.trees.iter().map(tree).collect::<Vec<_>>(),
            })
        };
        views.iter().map(one).collect()
    }
}

/// A tree on the map.
struct Shape {
    /// Its links: number, node at the beginning, node at the end.
    links: Vec<(u32, Label, Label)>,
    /// Numbers of the links and insides that are tested beside it.
    beside: Vec<u32>,
}

fn shape(map: &Map, tree: &TreeView, subscribers: &[Label]) -> Shape {
    let of = |label: &Label| map.nodes().get(label);
    let all = map.nodes().iter().flat_map(|(from, state)| {
        state.links.iter().map(move |link| (link.number, *from, link.neighbour))
    });
    let links: Vec<_> = all.filter(|(number, ..)| tree.links.contains(number)).collect();
    let mut beside = Vec::new();
    for (node, from) in
        links.iter().map(|(_, from, to)| (*to, Some(*from))).chain([(tree.publisher, None)])
    {
        let Some(state) = of(&node) else { continue };
        let ways = state.links.iter().filter(|l| of(&l.neighbour).is_some());
        let strange = ways.filter(|l| Some(l.neighbour) != from && !tree.links.contains(&l.number));
        beside.extend(strange.map(|link| link.number));
        if from.is_some() && !subscribers.contains(&node) {
            beside.push(state.inside);
        }
    }
    Shape { links, beside }
}

/// How probable it is that a link that is not of the tree matches its filter: each of its ones is
/// set with the share of ones in the filter.
fn false_positives(route: Option<&RouteBuf>, ones: Option<i32>) -> Option<f64> {
    let (Some(route), Some(ones)) = (route, ones) else { return None };
    match route.as_ref() {
        Route::Flat { filter, .. } | Route::Keyed { filter, .. } => {
            Some((f64::from(filter.ones()) / 256.0).powi(ones))
        }
        _ => Some(0.0),
    }
}

/// A tree: its links, and what its filter matches beside them, as the formula says and in fact.
fn tree_json(tree: &TreeView, shape: &Shape, scheme: Scheme, ones: Option<i32>) -> Value {
    let route = tree.route.as_ref();
    let rate = false_positives(route, ones);
    let strays = match route.map(RouteBuf::as_ref) {
        Some(Route::Flat { table, filter }) => {
            let is_hit = |n: &&u32| filter.contains(&scheme.tag(**n, table));
            Some(shape.beside.iter().filter(is_hit).copied().collect::<Vec<u32>>())
        }
        _ => None,
    };
    json!({
        "publisher": text(tree.publisher),
        "links": tree.links,
        "path": shape.links.iter().map(|(number, from, to)| json!({
            "number": number, "from": text(*from), "to": text(*to),
        })).collect::<Vec<_>>(),
        "hops": tree.hops,
        "route": route.map(route_json),
        "beside": shape.beside.len(),
        "false_positives": rate,
        "strays_expected": rate.map(|rate| rate * f64::from(u32::try_from(shape.beside.len()).unwrap_or(u32::MAX))),
        "strays": strays,
    })
}

/// A forwarding part: its form, its ones, and what the formula says of strange links.
fn route_json(route: &RouteBuf) -> Value {
    match route.as_ref() {
        Route::Link => json!({ "form": "link" }),
        Route::Flat { table, filter } => {
            let ones = filter.ones();
            json!({ "form": "flat", "table": table, "ones": ones, "filter": filter.to_string() })
        }
        Route::Keyed { table, epoch, filter, .. } => json!({
            "form": "keyed", "table": table, "epoch": epoch, "ones": filter.ones(),
            "filter": filter.to_string(),
        }),
        Route::Stages(stages) => json!({ "form": "stages", "stages": stages.count() }),
        Route::Domains { stages, .. } => json!({ "form": "domains", "stages": stages.count() }),
    }
}

fn text(label: Label) -> String {
    label.to_string()
}

fn texts<'a>(labels: impl IntoIterator<Item = &'a Label>) -> Vec<String> {
    labels.into_iter().map(|l| l.to_string()).collect()
}

fn roles(role: Role) -> Vec<&'static str> {
    let all = [
        (Role::RENDEZVOUS, "rendezvous"),
        (Role::TOPOLOGY, "topology"),
        (Role::STANDBY, "standby"),
    ];
    all.iter().filter(|(r, _)| role.has(*r)).map(|(_, name)| *name).collect()
}

/// Whether an application publishes, or subscribed to, the node-local item that `told` explains.
pub(crate) fn may_use_board(told: &Value, app: u64, is_publisher: bool) -> bool {
    let here = &told["here"];
    let all = |member: &str| here[member].as_array().map_or(&[][..], Vec::as_slice);
    let is_in = if is_publisher {
        all("publishers").iter().any(|publisher| publisher["app"] == app)
    } else {
        all("subscribers").iter().any(|subscriber| *subscriber == app)
    };
    is_in && here["strategy"] == Strategy::NODE_LOCAL.to_string()
}
