//! The push FIBs of a node with several shards, and what crosses between them and the control
//! plane.
//!
//! Each pair has a lane that keeps its order. Which lane is served next is drawn from a seeded
//! generator, and a draw may also end the call. This models threads, except that no lane is ever
//! full. As in a real shard, what the control plane tells is obeyed before anything else.

use super::{Faces, Frames, Node, Output};
use crate::control::ControlPlane;
use crate::counters::Counters;
use crate::data::{Above, Data, Handout, Published, Refusal, Sent};
use crate::dispatcher::Origin;
use crate::fib::{Delta, Effects, Fib, LOOKS_MAX, Pass, Received};
use crate::publication::{AppId, Event, Notice, To};
use onym_tables::{FaceId, Rng, Tick};
use onym_wire::push::{Id, Strategy};
use std::collections::VecDeque;
use std::sync::Arc;

/// In so many steps one ends what happens for now.
const PAUSE: u64 = 24;

/// Who does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Control,
    Shard(u16),
}

/// What crosses.
#[derive(Debug)]
enum Thing {
    /// To the control plane: a publication that a push FIB passed.
    Publish(AppId, Owned, Pass),
    /// An item says how far it is.
    Reached(u16, Pass),
    /// A frame that is for the control plane.
    Passed(FaceId, Origin, Vec<u8>),
    /// To a shard: a frame that came, to the shard of its stream.
    Came(FaceId, Vec<u8>),
    /// What the control plane tells.
    Delta(Delta),
    Tell(AppId, Event),
    /// What it has for a shard beside: a frame, a publication, how far it is.
    Leaves(Faces, Vec<u8>),
    Handout(Box<Handout>),
    Done(u64),
    /// A publication of another shard, and how many never came before it.
    Arrives {
        names: Arc<[Id]>,
        above: Above,
        payload: Arc<[u8]>,
        came_by: Option<Strategy>,
    },
    Missed(Arc<[Id]>, u64),
}

/// A publication with its payload.
#[derive(Debug)]
struct Owned {
    data: Data<'static>,
    payload: Vec<u8>,
}

/// What crosses from one to another, in order. What the control plane tells a shard goes in another
/// lane than publications, which may have to wait.
#[derive(Debug)]
struct Lane {
    from: At,
    to: At,
    is_told: bool,
    things: VecDeque<Thing>,
}

/// The push FIBs with what crosses.
#[derive(Debug)]
pub(super) struct Shards {
    fibs: Vec<Fib>,
    lanes: Vec<Lane>,
    rng: Rng,
    effects: Effects,
    /// How far each shard was told that the control plane is.
    done: Vec<u64>,
}

impl Shards {
    /// Of a control plane with several; none: it has one.
    pub(super) fn of(plane: &ControlPlane) -> Option<Self> {
        let count = plane.shards();
        if count <= 1 {
            return None;
        }
        let fibs = (0..count).map(|shard| plane.fib(shard)).collect();
        let mut lanes = Vec::new();
        let mut lane = |from, to, is_told| {
            lanes.push(Lane { from, to, is_told, things: VecDeque::new() });
        };
        for shard in 0..count {
            lane(At::Shard(shard), At::Control, false);
            lane(At::Control, At::Shard(shard), true);
            lane(At::Control, At::Shard(shard), false);
            (0..count).for_each(|other| lane(At::Shard(shard), At::Shard(other), false));
        }
        let rng = Rng::new(plane.label().to_u64() ^ u64::from(count) << 32);
        let done = vec![0; usize::from(count)];
        Some(Self { fibs, lanes, rng, effects: Effects::default(), done })
    }

    pub(super) fn counters(&self) -> impl Iterator<Item = &Counters> {
        self.fibs.iter().map(|fib| &fib.counters)
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        let waits = self.lanes.iter().any(|lane| !lane.things.is_empty());
        if waits { Some(Tick(0)) } else { self.fibs.iter().filter_map(Fib::next_timeout).min() }
    }

    /// Does something go from here to there.
    fn put(&mut self, from: At, to: At, is_told: bool, thing: Thing) {
        let is_it = |lane: &&mut Lane| (lane.from, lane.to, lane.is_told) == (from, to, is_told);
        if let Some(lane) = self.lanes.iter_mut().find(is_it) {
            lane.things.push_back(thing);
        }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.fibs.len()).unwrap_or(1)
    }

    /// The shard of a face.
    fn shard_of(&self, face: FaceId) -> u16 {
        u16::try_from(face.0 % self.count()).unwrap_or(0)
    }

    /// A frame for this node came over a face.
    pub(super) fn came(&mut self, face: FaceId, octets: &[u8]) {
        let shard = self.shard_of(face);
        let owner = self.fibs[usize::from(shard)].owner(octets).unwrap_or(shard);
        let thing = Thing::Came(face, octets.to_vec());
        self.put(At::Shard(shard), At::Shard(owner), false, thing);
    }

    /// What comes next: `None`, nothing waits, or nothing more happens for now.
    fn next(&mut self) -> Option<(At, Thing)> {
        let waiting: Vec<usize> =
            (0..self.lanes.len()).filter(|n| !self.lanes[*n].things.is_empty()).collect();
        if waiting.is_empty() || self.rng.below(PAUSE) == 0 {
            return None;
        }
        let drawn = waiting[usize::try_from(self.rng.below(waiting.len() as u64)).unwrap_or(0)];
        // What it is told comes first, whatever it takes.
        let to = self.lanes[drawn].to;
        let told = waiting.iter().find(|n| self.lanes[**n].to == to && self.lanes[**n].is_told);
        let lane = &mut self.lanes[told.copied().unwrap_or(drawn)];
        Some((to, lane.things.pop_front()?))
    }
}

impl Node {
    /// As [`Node::publish`] at the shard of an application.
    pub(super) fn publish_by_shard(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        output: &mut Output,
    ) -> Result<Sent, Refusal> {
        let Some(shards) = &self.shards else { return Err(Refusal::NotPublisher) };
        let at = app.shard(u16::try_from(shards.fibs.len()).unwrap_or(1));
        self.obey_told(at, output);
        let Some(shards) = &mut self.shards else { return Err(Refusal::NotPublisher) };
        let fib = &mut shards.fibs[usize::from(at)];
        let sent =
            fib.publish(now, app, data, &mut shards.effects).map_err(|refusal| match refusal {
                Refusal::NotPublisher => self.plane.refusal(app, &data.id),
                other => other,
            })?;
        let head = &shards.effects.head;
        let frame = (!head.is_empty()).then(|| [&head[..], data.payload].concat());
        if let Some(pass) = shards.effects.pass.take() {
            let owned = Owned {
                data: Data {
                    id: data.id.clone(),
                    payload: &[],
                    route: data.route.clone(),
                    about: data.about.clone(),
                    ..*data
                },
                payload: data.payload.to_vec(),
            };
            shards.put(At::Shard(at), At::Control, false, Thing::Publish(app, owned, pass));
        }
        if let Some(octets) = frame {
            self.own_leaves(at, octets, output);
        }
        self.hand(at, data.payload, output);
        self.obey(now, output);
        Ok(sent)
    }

    /// Obeys what the control plane says, and does what waits as far as that goes now.
    pub(super) fn obey_by_shards(&mut self, now: Tick, output: &mut Output) {
        self.told(output);
        while let Some((at, thing)) = self.shards.as_mut().and_then(|shards| shards.next()) {
            match at {
                At::Control => self.control_takes(now, thing, output),
                At::Shard(shard) => self.shard_takes(shard, thing, output),
            }
            self.told(output);
        }
    }

    /// A shard does what it was told.
    fn obey_told(&mut self, at: u16, output: &mut Output) {
        let is_it = |lane: &&mut Lane| lane.to == At::Shard(at) && lane.is_told;
        let next =
            |shards: &mut Box<Shards>| shards.lanes.iter_mut().find(is_it)?.things.pop_front();
        while let Some(thing) = self.shards.as_mut().and_then(next) {
            self.shard_takes(at, thing, output);
        }
    }

    /// Puts what the control plane says into the lanes: what stands before all that announces it
    /// first, and then the rest.
    fn told(&mut self, output: &mut Output) {
        let Some(shards) = &mut self.shards else { return };
        let (first, then): (Vec<_>, Vec<_>) = output.notices.drain(..).partition(Notice::is_first);
        let count = u16::try_from(shards.fibs.len()).unwrap_or(1);
        for notice in first.into_iter().chain(then) {
            let (to, is_told, thing) = match notice {
                Notice::Delta(delta) => (delta.shard(count), true, Thing::Delta(delta)),
                Notice::Tell(app, event) => (app.shard(count), true, Thing::Tell(app, event)),
                Notice::Data(handout) => (handout.shard, false, Thing::Handout(handout)),
            };
            shards.put(At::Control, At::Shard(to), is_told, thing);
        }
        let mut at = 0;
        while at < output.frames.len() {
            match output.frames[at].by {
                Some(shard) => {
                    let Frames { faces, octets, .. } = output.frames.remove(at);
                    let thing = Thing::Leaves(faces, octets);
                    shards.put(At::Control, At::Shard(shard), false, thing);
                }
                None => at += 1,
            }
        }
        for shard in 0..count {
            let done = self.plane.dispatcher.done(shard);
            let told = &mut shards.done[usize::from(shard)];
            if std::mem::replace(told, done) != done {
                shards.put(At::Control, At::Shard(shard), false, Thing::Done(done));
            }
        }
    }

    fn control_takes(&mut self, now: Tick, thing: Thing, output: &mut Output) {
        match thing {
            Thing::Publish(app, Owned { data, payload }, pass) => {
                let data = Data { payload: &payload, ..data };
                let shard = app.shard(self.plane.shards());
                let done = self.plane.publish(now, app, &data, &pass, shard, output);
                if let Ok(Published { handout: Some(handout), .. }) = done {
                    output.notices.push(Notice::Data(Box::new(handout)));
                }
            }
            Thing::Reached(shard, pass) => self.plane.reached(now, &pass, shard, output),
            Thing::Passed(face, origin, octets) => {
                self.plane.deliver_frame(now, (face, origin), &octets, output);
            }
            _ => {}
        }
    }

    fn shard_takes(&mut self, at: u16, thing: Thing, output: &mut Output) {
        let Some(shards) = &mut self.shards else { return };
        let (fib, effects) = (&mut shards.fibs[usize::from(at)], &mut shards.effects);
        match thing {
            Thing::Came(face, octets) => {
                let is_external = self.plane.forwarder.is_external(face);
                match fib.receive(std::iter::once(&octets[..]), is_external, effects) {
                    Some(Received::Pass(number)) => {
                        let origin = Origin { shard: at, number };
                        let thing = Thing::Passed(face, origin, octets);
                        shards.put(At::Shard(at), At::Control, false, thing);
                    }
                    Some(Received::Here { payload_at, .. }) => {
                        self.hand(at, &octets[payload_at..], output);
                    }
                    None => {}
                }
            }
            Thing::Delta(delta) => {
                for (ids, payload) in fib.apply(delta) {
                    let handout = Handout::kept(&ids, &payload);
                    let fib = &mut shards.fibs[usize::from(at)];
                    let who = fib.arrive(&handout.ids, Above::Parent, &mut shards.effects);
                    fib.delivered(who);
                    Self::tell_of(&mut shards.effects, &payload, output);
                }
            }
            Thing::Tell(app, event) => output.events.push((To::One(app), event)),
            Thing::Leaves(faces, octets) => self.leaves(at, faces, octets, output),
            Thing::Handout(handout) => {
                fib.hand_out(&handout, effects);
                let payload = handout.payload.as_deref().unwrap_or_default();
                self.hand(at, payload, output);
            }
            Thing::Done(done) => fib.done(done),
            Thing::Arrives { names, above, payload, came_by } => {
                let count = fib.arrive(&names, above, effects);
                effects.came_by = came_by;
                fib.delivered(count);
                if count == 0 {
                    fib.nobody(&names, &payload);
                }
                Self::tell_of(effects, &payload, output);
            }
            Thing::Missed(names, count) => {
                fib.arrive_missed(&names, count, effects);
                Self::tell_of(effects, &[], output);
            }
            Thing::Publish(..) | Thing::Reached(..) | Thing::Passed(..) => {}
        }
    }

    /// Items that were published and are quiet say how far they are.
    pub(super) fn reached_by_shards(&mut self, now: Tick, output: &mut Output) {
        for at in 0..self.plane.shards() {
            let mut left = LOOKS_MAX;
            while let Some(shards) = &mut self.shards {
                let (fib, effects) = (&mut shards.fibs[usize::from(at)], &mut shards.effects);
                if !fib.next_reached(now, &mut left, effects) {
                    break;
                }
                let octets = effects.head.clone();
                match effects.pass.take() {
                    Some(pass) => {
                        shards.put(At::Shard(at), At::Control, false, Thing::Reached(at, pass));
                    }
                    None => self.own_leaves(at, octets, output),
                }
            }
        }
    }

    /// A frame of a shard leaves where its filter says.
    fn own_leaves(&mut self, at: u16, octets: Vec<u8>, output: &mut Output) {
        let before = output.frames.len();
        self.plane.send_own(octets, Some(at), output);
        for Frames { faces, octets, .. } in output.frames.split_off(before) {
            self.leaves(at, faces, octets, output);
        }
    }

    /// A frame leaves by a shard, for these faces.
    fn leaves(&mut self, at: u16, faces: Faces, octets: Vec<u8>, output: &mut Output) {
        let Some(shards) = &mut self.shards else { return };
        // A face of another shard has the frame behind what this one sent it before.
        for face in faces {
            let shard = shards.shard_of(face);
            if shard == at {
                let (faces, octets) = (Faces::from_slice(&[face]), octets.clone());
                output.frames.push(Frames { faces, octets, by: None });
            } else {
                let thing = Thing::Leaves(Faces::from_slice(&[face]), octets.clone());
                shards.put(At::Shard(at), At::Shard(shard), false, thing);
            }
        }
    }

    /// Hands a publication out as the effects say: here, and to the other shards that get it.
    fn hand(&mut self, at: u16, payload: &[u8], output: &mut Output) {
        let Some(shards) = &mut self.shards else { return };
        let effects = &mut shards.effects;
        let (above, came_by) = (effects.above, effects.came_by);
        let (lost, of_lost, of_data) = (effects.lost, effects.of_lost(), effects.others());
        if let Some(names) = effects.names.take() {
            let payload: Arc<[u8]> = payload.into();
            for other in of_lost {
                let missed = Thing::Missed(Arc::clone(&names), lost);
                shards.put(At::Shard(at), At::Shard(other), false, missed);
            }
            for other in of_data {
                let (names, payload) = (Arc::clone(&names), Arc::clone(&payload));
                let arrives = Thing::Arrives { names, above, payload, came_by };
                shards.put(At::Shard(at), At::Shard(other), false, arrives);
            }
        }
        Self::tell_of(&mut shards.effects, payload, output);
    }
}
