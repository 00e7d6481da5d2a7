//! The configuration applied to a running node: at start, and again by a reload.

use super::Io;
use super::dial::Asked;
use super::faces::NewFace;
use super::plane::Plane;
use super::target::{Target, resolve};
use crate::config::{Changes, Config, StaticFace, changes, gone};
use crate::mgmt::host::FaceProps;
use crate::names;
use crate::shard::Order;
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::mgmt::{FACE_CONGESTION_MARKING, FACE_RELIABILITY, Persistency};
use onym_wire::name::Name;
use std::collections::HashSet;

/// Cost of a route to management where the routes of applications go first.
const COST_LAST: u64 = u32::MAX as u64;

/// Brings the parts to what the configuration in force says.
pub(super) struct Applier<'a> {
    plane: &'a mut Plane,
    io: &'a mut Io,
}

impl<'a> Applier<'a> {
    pub(super) fn new(plane: &'a mut Plane, io: &'a mut Io) -> Self {
        Self { plane, io }
    }

    /// Applies the whole configuration to a node that just started.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(super) fn all(&mut self) -> Result<(), String> {
        self.forwarding();
        self.trace_name("");
        self.regions();
        self.strategy("/", self.everywhere())?;
        self.strategies(&Config::default())?;
        for prefix in ["/localhost/nfd", "/localhost/onym"] {
            self.route_internal(prefix, 0);
        }
        self.localhop();
        self.relink();
        self.faces_and_routes()?;
        self.push_links()
    }

    /// Takes over a new configuration; which keys took effect and which wait for a restart.
    ///
    /// # Errors
    /// A sentence; keys before the one that is wrong have taken effect.
    pub(super) fn reload(&mut self, new: Config) -> Result<Changes, String> {
        for uri in new.face.iter().map(|f| &f.uri).chain(new.route.iter().map(|r| &r.via)) {
            resolve(uri)?;
        }
        let running = &self.plane.settings.config;
        let found = changes(running, &new);
        // What waits for a restart stays as it runs, so that what is shown is what is so.
        let new = new.keeping(running, &found.restart);
        let old = self.plane.settings.replace(new);
        let plane = &mut *self.plane;
        let config = &plane.settings.config;
        if old.cs != config.cs {
            plane.shards.cs_apply(&config.cs);
        }
        plane.routes.set_max(config.tables.rib_routes_max);
        plane.faces.next_idle_check = plane.clock.now();
        self.forwarding();
        self.trace_name(&old.trace.name);
        self.regions();
        self.localhop();
        self.strategies(&old)?;
        self.withdraw(&old);
        self.faces_and_routes()?;
        self.push_links()?;
        Ok(found)
    }

    fn forwarding(&self) {
        let config = &self.plane.settings.config;
        let default_hop_limit = config.forward.default_hop_limit;
        let is_fair = config.forward.fairness;
        let is_traced = !config.trace.from.0.is_empty();
        self.plane.shards.ask_all(|reply| Order::Forwarding {
            default_hop_limit,
            is_fair,
            is_traced,
            reply,
        });
    }

    /// Requests for the name of this node come to management, unless an application has it.
    fn trace_name(&self, old: &str) {
        let new = &self.plane.settings.config.trace.name;
        if old != new
            && let Ok(name) = old.parse::<Name>()
        {
            self.plane.shards.fib_unset(name.as_ref(), FaceId::INTERNAL);
        }
        if !new.is_empty() {
            self.route_internal(new, COST_LAST);
        }
    }

    fn regions(&self) {
        let regions = self.plane.settings.config.forward.network_regions.0.iter();
        let regions: Vec<Name> = regions.filter_map(|r| r.parse().ok()).collect();
        self.plane.shards.ask_all(|reply| Order::Regions { regions: regions.clone(), reply });
    }

    fn route_internal(&self, prefix: &str, cost: u64) {
        let Ok(name) = prefix.parse::<Name>() else { return };
        let hop = NextHop { face: FaceId::INTERNAL, cost };
        if let Err(error) = self.plane.shards.fib_set(&self.plane.faces, name.as_ref(), hop) {
            tracing::error!(prefix, ?error, "the route to management was not added");
        }
    }

    /// Local applications may register under `/localhop/nfd` too. Others may when the
    /// configuration says so; else management turns them away, and a route to a gateway that an
    /// application registered under that name goes first.
    fn localhop(&self) {
        let is_on = self.plane.settings.config.rib.localhop;
        self.route_internal("/localhop/nfd", if is_on { 0 } else { COST_LAST });
    }

    /// The strategy of all names without another one. Routing finds equal ways, so that they share
    /// what there is.
    fn everywhere(&self) -> &'static str {
        let is_routed = !self.plane.settings.config.routing.network.is_empty();
        if is_routed { "best-route/v=5/equal~flow" } else { "best-route" }
    }

    /// Sets the strategies of the configuration and unsets those that only `old` has.
    fn strategies(&self, old: &Config) -> Result<(), String> {
        let new = &self.plane.settings.config.strategy;
        for prefix in old.strategy.keys().filter(|p| !new.contains_key(*p)) {
            if let Ok(name) = prefix.parse::<Name>() {
                if name.as_ref().is_empty() {
                    self.strategy("/", self.everywhere())?;
                } else {
                    self.plane.shards.strategy_unset(name.as_ref());
                }
            }
        }
        new.iter().try_for_each(|(prefix, strategy)| self.strategy(prefix, strategy))
    }

    fn strategy(&self, prefix: &str, strategy: &str) -> Result<(), String> {
        let wrong = |why: &dyn std::fmt::Display| {
            format!("strategy.\"{prefix}\": {strategy}: {why}; {}", names::STRATEGIES_ALLOWED)
        };
        let name: Name = prefix.parse().map_err(|e| wrong(&e))?;
        let full = names::strategy_name(strategy).ok_or_else(|| wrong(&"there is no such one"))?;
        let full: Name = full.parse().map_err(|e| wrong(&e))?;
        let set = self.plane.shards.strategy_set(name.as_ref(), full.as_ref());
        set.map(|_| ()).map_err(|e| wrong(&format!("{e:?}")))
    }

    /// What only `old` has goes: routes, faces, links.
    fn withdraw(&mut self, old: &Config) {
        let plane = &mut *self.plane;
        let new = &plane.settings.config;
        plane.routes.withdraw(&plane.shards, &plane.faces, old, new);
        let gone = gone(&old.face, &new.face, |face| &face.uri);
        let gone = gone.filter_map(|f| plane.faces.to(&resolve(&f.uri).ok()?.to_string()));
        for id in gone.collect::<Vec<_>>() {
            plane.face_remove(id, "no longer in the configuration");
        }
        self.relink();
    }

    /// The links are those of the configuration in force.
    fn relink(&mut self) {
        let plane = &mut *self.plane;
        if let Some(push) = &mut plane.push {
            push.relink(&plane.faces, &plane.settings.config.push.link);
        }
    }

    fn faces_and_routes(&mut self) -> Result<(), String> {
        let config = &self.plane.settings.config;
        let (faces, routes) = (config.face.clone(), config.route.clone());
        // Some of them are not there before their connection is.
        let mut made = HashSet::new();
        for face in &faces {
            made.insert(self.face(face)?);
        }
        for route in &routes {
            let uri = resolve(&route.via).map_err(|e| format!("route: {e}"))?.to_string();
            // A route over a URI that is no face yet makes a permanent one.
            if self.plane.faces.to(&uri).is_none() && !made.contains(&uri) {
                self.face(&StaticFace::permanent(&route.via))?;
            }
        }
        self.plane.reconnect(self.io);
        self.plane.apply_routes();
        Ok(())
    }

    /// Makes a face that is not there yet; where it leads. A permanent one is its record only: its
    /// transport follows when faces are looked over for those to connect, all of them at once.
    fn face(&mut self, face: &StaticFace) -> Result<String, String> {
        let uri = resolve(&face.uri).map_err(|e| format!("face: {e}"))?;
        let to = uri.to_string();
        if let Some(id) = self.plane.faces.to(&to) {
            self.plane.faces.keep(id, face.persistency, Target::of(uri));
            return Ok(to);
        }
        // Not before: it begins a new capture file.
        let target = Target::of_config(face).map_err(|e| format!("face: {e}"))?;
        let new = NewFace { target: Some(target.clone()), ..new_face(face) };
        if face.persistency == Persistency::Permanent {
            self.plane.face_add(new)?;
            return Ok(to);
        }
        let made = self.plane.face_create(self.io, target, Asked::Config, new);
        made.map(|_| to).map_err(|e| format!("face: {}: {e:?}", face.uri))
    }

    /// Makes the faces of the links of the configuration that are not there yet.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(super) fn push_links(&mut self) -> Result<(), String> {
        let Some(push) = &self.plane.push else { return Ok(()) };
        let (faces, mut done) = push.links.faces();
        for uri in faces {
            // One that the neighbour made by sending first is kept, too.
            if let Err(e) = self.face(&StaticFace::permanent(&uri)) {
                done = Err(format!("push.link: {uri}: {e}"));
                break;
            }
        }
        self.plane.reconnect(self.io);
        if let Some(push) = &self.plane.push {
            push.link_all(&self.plane.faces);
        }
        done
    }
}

/// What the configuration says of a face, without its target.
fn new_face(face: &StaticFace) -> NewFace {
    let mut props = FaceProps { mtu: face.mtu.map(|m| m as u64), ..FaceProps::default() };
    if face.reliability {
        props.flags |= FACE_RELIABILITY;
        props.mask |= FACE_RELIABILITY;
    }
    if let Some(marking) = face.congestion_marking {
        props.mask |= FACE_CONGESTION_MARKING;
        props.flags |= if marking { FACE_CONGESTION_MARKING } else { 0 };
    }
    let queue_bytes_max = face.queue_bytes_max;
    NewFace { props, queue_bytes_max, ..NewFace::of(None, face.persistency) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Applier, NewFace, Target, resolve};
    use crate::config::Config;
    use crate::control::{Control, ControlEngine, Parts, REQUESTS_MAX, work};
    use crate::exported::Exported;
    use crate::push::{PushOrder, PushPort};
    use crate::shard::ShardPort;
    use onym_engine::{Bell, Clock, mailbox};
    use onym_wire::mgmt::Persistency;
    use std::fmt::Write as _;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// A control thread with shards and a push half that ended: what they are told is nobody's work.
    fn control_of(text: &str) -> ControlEngine {
        let bell = Bell::new().unwrap();
        control_with(text, PushPort { port: mailbox(&bell, 1).0 })
    }

    /// A control thread with shards that ended.
    fn control_with(text: &str, push: PushPort) -> ControlEngine {
        let bell = Bell::new().unwrap();
        let parts = Parts {
            clock: Clock::start(),
            config: Config::parse(text, "test").unwrap(),
            origin: PathBuf::from("test"),
            ports: vec![ShardPort::new(mailbox(&bell, 1).0)],
            push: Some(push),
            disk: None,
            reports: Vec::new(),
            mailbox: mailbox(&bell, REQUESTS_MAX).1,
            exported: Arc::new(Exported::default()),
        };
        Control::engine(parts).unwrap()
    }

    /// How many records of faces were looked over, and how many URIs were resolved, by `what`.
    fn counted(what: impl FnOnce()) -> [usize; 2] {
        let count = || [work::LOOKED_AT.get(), work::RESOLVED.get()];
        let before = count();
        what();
        let after = count();
        [after[0] - before[0], after[1] - before[1]]
    }

    fn uri(n: usize) -> String {
        format!("udp4://127.0.0.1:{}", 20_000 + n)
    }

    /// What a node counts that applies `faces` faces, as many routes over each of two of them, and as
    /// many over faces of their own.
    fn work_of(faces: usize) -> [usize; 2] {
        let mut text = "shards = 1\n".to_owned();
        for n in 0..faces {
            let (own, next) = (uri(n), uri((n + 1) % faces));
            writeln!(text, "[[face]]\nuri = \"{own}\"").unwrap();
            for (prefix, via) in [("a", &own), ("b", &next), ("c", &uri(faces + n))] {
                writeln!(text, "[[route]]\nprefix = \"/{n}/{prefix}\"\nvia = \"{via}\"").unwrap();
            }
        }
        let mut control = control_of(&text);
        let (plane, io) = (&mut control.driver.plane, &mut control.io);
        let work = counted(|| Applier::new(plane, io).faces_and_routes().unwrap());
        assert_eq!(control.driver.plane.faces.ids().len(), 2 * faces);
        work
    }

    /// What a node counts that makes links of `links` faces that it has and of as many of their own,
    /// awaits as many neighbours, and takes over a configuration without the links that it awaits.
    fn work_of_links(links: usize) -> [usize; 2] {
        let mut text = "shards = 1\n[push]\nenabled = true\n".to_owned();
        for n in 0..links {
            writeln!(text, "[[face]]\nuri = \"{}\"", uri(n)).unwrap();
            let awaited = format!("tcp4://127.0.{}.{}:0", n / 250, 1 + n % 250);
            for face in [uri(n), uri(links + n), awaited] {
                writeln!(text, "[[push.link]]\nface = \"{face}\"").unwrap();
            }
        }
        let mut control = control_of(&text);
        let (plane, io) = (&mut control.driver.plane, &mut control.io);
        let mut fewer = plane.settings.config.clone();
        fewer.push.link.retain(|link| link.face.starts_with("udp4"));
        let work = counted(|| {
            let mut applier = Applier::new(plane, io);
            applier.relink();
            applier.faces_and_routes().unwrap();
            applier.push_links().unwrap();
            applier.reload(fewer).unwrap();
        });
        assert_eq!(control.driver.plane.faces.ids().len(), 2 * links);
        work
    }

    /// Law: what a start does for each face and route does not grow with their number.
    #[test]
    fn a_start_with_twice_the_faces_and_routes_is_twice_the_work() {
        let [looked_at, resolved] = work_of(20);
        assert_eq!(looked_at, 40, "each once");
        assert_eq!(work_of(40), [2 * looked_at, 2 * resolved]);
    }

    /// Law: the shards are not asked for each route of a start or a reload, but once for 256 of them.
    #[test]
    fn many_routes_are_few_orders() {
        let mut text = format!("shards = 1\n[[face]]\nuri = \"{}\"\n", uri(0));
        for n in 0..600 {
            writeln!(text, "[[route]]\nprefix = \"/{n}\"\nvia = \"{}\"", uri(0)).unwrap();
        }
        let mut control = control_of(&text);
        let (plane, io) = (&mut control.driver.plane, &mut control.io);
        let mut applier = Applier::new(plane, io);
        let asked = |what: &mut dyn FnMut()| {
            let before = work::FIB_ASKED.get();
            what();
            work::FIB_ASKED.get() - before
        };
        assert_eq!(asked(&mut || applier.faces_and_routes().unwrap()), 3);
        let none = Config::parse("shards = 1\n", "test").unwrap();
        let taken_out = asked(&mut || applier.reload(none.clone()).map(drop).unwrap());
        assert!((3..=4).contains(&taken_out), "{taken_out}");
    }

    /// Law: what a start and a reload do for each link does not grow with their number, nor with that
    /// of faces.
    #[test]
    fn twice_the_links_are_twice_the_work() {
        let [looked_at, resolved] = work_of_links(20);
        assert_eq!(work_of_links(40), [2 * looked_at, 2 * resolved]);
    }

    /// Law: a face is no link any more when a reload takes its link away, also where its neighbour made
    /// it; with another cost it stays one. Where the configuration has no cost, it is the one that
    /// routing said last.
    #[test]
    fn a_face_is_a_link_for_as_long_as_the_configuration_says() {
        let text = "shards = 1\n[push]\nenabled = true\n";
        let link = |face: &str, cost| format!("[[push.link]]\nface = \"{face}\"\ncost = {cost}\n");
        let awaited = "tcp4://127.0.0.1:0";
        let bell = Bell::new().unwrap();
        let (port, mut told) = mailbox(&bell, 64);
        let start = format!("{text}{}{}", link(awaited, 1), link(&uri(1), 1));
        let mut control = control_with(&start, PushPort { port });
        let (plane, io) = (&mut control.driver.plane, &mut control.io);
        let mut applier = Applier::new(plane, io);
        applier.relink();
        applier.push_links().unwrap();
        let come = Target::of(resolve("tcp4://127.0.0.1:40000").unwrap());
        let come = NewFace { target: Some(come), ..NewFace::of(None, Persistency::Permanent) };
        let come = applier.plane.face_add(come).unwrap();
        let made = applier.plane.faces.to(&uri(1)).unwrap();
        let mut orders = || {
            told.take();
            let each = std::iter::from_fn(|| told.pop());
            let each = each.filter_map(|order| match order {
                PushOrder::LinkAdd(new) => Some((new.face, Some(new.link.cost))),
                PushOrder::LinkRemove(face) => Some((face, None)),
                _ => None,
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(orders().last(), Some(&(come, Some(1))));
        let less = format!("{text}{}", link(&uri(1), 2));
        applier.reload(Config::parse(&less, "test").unwrap()).unwrap();
        assert_eq!(orders(), [(come, None), (made, Some(2))]);

        let found = |applier: &mut Applier<'_>, cost| {
            let push = applier.plane.push.as_mut().unwrap();
            push.found(&applier.plane.faces, &applier.plane.settings.config.push, made, cost);
        };
        found(&mut applier, Some(30));
        assert_eq!(orders(), [], "the configuration has a cost");
        let free = format!("{text}[[push.link]]\nface = \"{}\"\n", uri(1));
        applier.reload(Config::parse(&free, "test").unwrap()).unwrap();
        assert_eq!(orders(), [(made, Some(30))]);
        found(&mut applier, Some(40));
        found(&mut applier, None);
        assert_eq!(orders(), [(made, Some(40))], "a link, whatever routing hears");
        applier.reload(Config::parse(&less, "test").unwrap()).unwrap();
        assert_eq!(orders(), [(made, Some(2))]);
    }
}
