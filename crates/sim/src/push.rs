//! A network of push nodes in virtual time: whole `onym_pubsub::Node`s joined by links with delay
//! and loss.
//!
//! The same seed gives the same run, octet by octet.

mod frames;
mod wires;

use frames::messages;
use onym_pubsub::dispatcher::{Data, Refusal, Request, Sent};
use onym_pubsub::node::{Config, Node, Output};
use onym_pubsub::{AppId, Event, Keep};
use onym_tables::{FaceId, Rng, Tick};
use onym_wire::push::{Id, Label, Role};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;
use wires::{Wire, add_link, other_domain};

pub use frames::{is_control, is_hello};
pub use wires::LinkConfig;

/// Time that a node's processor takes.
///
/// A node works in rounds, as the push thread of the daemon does: what comes while it is busy waits,
/// then all of it is done, and what there is to say leaves at the end of the round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// For a frame that comes.
    pub frame: Duration,
    /// Besides, for each control message in it, at least one.
    pub message: Duration,
    /// For a request of an application.
    pub request: Duration,
    /// For a publication of an application.
    pub publication: Duration,
    /// For a look at the timers.
    pub timer: Duration,
    /// Besides, for each frame that leaves on a face.
    pub sent: Duration,
    /// Besides, for each event of an application.
    pub event: Duration,
}

/// Something that a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Frame,
    Request,
    Publication,
    Timer,
    /// The end of a round.
    Turn,
    Free,
}

impl Costs {
    fn of(&self, work: Work, times: u64) -> Duration {
        match work {
            Work::Frame => self.frame + self.message * u32::try_from(times).unwrap_or(u32::MAX),
            Work::Request => self.request,
            Work::Publication => self.publication,
            Work::Timer => self.timer,
            Work::Turn | Work::Free => Duration::ZERO,
        }
    }
}

/// A clock that tells what nodes really take.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// Reads it.
    pub read: fn() -> u64,
    /// What reading it takes: it is no time of the node.
    pub own: u64,
}

/// What a node was seen to take for messages in frames, requests, publications, timers and frames
/// that left, in this order: how many, and units of the meter in all.
pub type Spent = [(u64, u64); 5];

/// What an application was told, and when: the node, the application, the event.
pub type News = (Tick, usize, AppId, Event);

#[derive(Debug)]
struct Slot {
    config: Config,
    node: Option<Node>,
    due: Tick,
    events: BTreeMap<AppId, VecDeque<Event>>,
    /// For how many histories applications wait for who is behind.
    pauses: BTreeMap<AppId, u32>,
    faces: Vec<usize>,
    costs: Costs,
    /// Until when it works.
    busy: Tick,
    /// What it did and has to say in its next round, and how long that round takes besides.
    next: Output,
    debt: Duration,
    has_next: bool,
    spent: Spent,
}

impl Slot {
    fn resume(&mut self, app: AppId) {
        if let Some(pauses) = self.pauses.get_mut(&app) {
            *pauses -= 1;
        }
    }

    fn spend(&mut self, work: Work, times: u64, began: Option<(Meter, u64)>) {
        if let Some((meter, began)) = began
            && let Some((all, units)) = self.spent.get_mut(work as usize)
        {
            let took = ((meter.read)() - began).saturating_sub(meter.own);
            (*all, *units) = (*all + times, *units + took);
        }
    }

    /// When something is to be done: the end of a round for which something waits, or a timer.
    fn wake(&self, has_timers: bool) -> Option<Tick> {
        let timer = (has_timers && self.node.is_some()).then_some(self.due);
        if self.has_next { Some(self.busy) } else { timer }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Tick,
    order: u64,
    node: usize,
    face: FaceId,
    octets: Vec<u8>,
}

/// A network.
#[derive(Debug)]
pub struct PushNetwork {
    slots: Vec<Slot>,
    wires: Vec<Wire>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    now: Tick,
    order: u64,
    numbers: u32,
    rng: Rng,
    /// Whether the timers of nodes run; without them there are forwarders only.
    pub has_timers: bool,
    /// A clock, when the time that nodes really take is to be seen.
    pub meter: Option<Meter>,
    /// Events of all applications in the order of their time, when they are kept here and not for
    /// [`PushNetwork::event`].
    pub news: Option<Vec<News>>,
}

impl PushNetwork {
    /// An empty network.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            wires: Vec::new(),
            arrivals: BinaryHeap::new(),
            now: Tick::from_ms(1),
            order: 0,
            numbers: 0,
            rng: Rng::new(seed),
            has_timers: true,
            meter: None,
            news: None,
        }
    }

    /// Adds a node with the label `label`; `change` may change its settings. Returns its number.
    pub fn add_node(&mut self, label: u64, role: Role, change: impl Fn(&mut Config)) -> usize {
        let mut config = Config::new(Label::from_u64(label), self.numbers, role, 1);
        self.numbers += 1;
        change(&mut config);
        let node = Some(Node::new(config.clone()));
        let (events, faces) = (BTreeMap::new(), Vec::new());
        self.slots.push(Slot {
            config,
            node,
            due: self.now,
            events,
            pauses: BTreeMap::new(),
            faces,
            costs: Costs::default(),
            busy: self.now,
            next: Output::default(),
            debt: Duration::ZERO,
            has_next: false,
            spent: Spent::default(),
        });
        self.slots.len() - 1
    }

    /// Number within the domain of the inside of a node.
    #[must_use]
    pub fn inside(&self, node: usize) -> u32 {
        self.slots[node].config.inside
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A node; `None` while it is down.
    #[must_use]
    pub fn node(&self, node: usize) -> Option<&Node> {
        self.slots[node].node.as_ref()
    }

    /// A node, to be changed.
    pub fn node_mut(&mut self, node: usize) -> Option<&mut Node> {
        self.slots[node].node.as_mut()
    }

    /// What things cost a node from now on; nothing, at first.
    pub fn set_costs(&mut self, node: usize, costs: Costs) {
        self.slots[node].costs = costs;
    }

    /// What a node was seen to take, by the meter.
    #[must_use]
    pub fn spent(&self, node: usize) -> Spent {
        self.slots[node].spent
    }

    /// All nodes start another epoch of keyed tags.
    pub fn start_epoch(&mut self, number: u8) {
        for node in 0..self.slots.len() {
            if let Some(keyed) = &mut self.slots[node].config.routing.keyed {
                keyed.epoch = number;
            }
            self.with(node, Work::Free, 1, |n, now, out| n.epoch_start(now, number, out));
        }
    }

    /// A node dies with all that it knew.
    pub fn crash(&mut self, node: usize) {
        let slot = &mut self.slots[node];
        slot.node = None;
        slot.events.clear();
        slot.pauses.clear();
        (slot.next, slot.debt, slot.has_next) = (Output::default(), Duration::ZERO, false);
    }

    /// A node that died starts anew, knowing nothing.
    pub fn restart(&mut self, node: usize) {
        let domains: Vec<Option<Label>> = self.slots.iter().map(|s| s.config.domain).collect();
        let slot = &mut self.slots[node];
        slot.config.boot += 1;
        let mut fresh = Node::new(slot.config.clone());
        for wire in slot.faces.iter().map(|w| &self.wires[*w]) {
            let side = usize::from(wire.ends[0].0 != node);
            let (face, number) = (wire.ends[side].1, wire.numbers[side]);
            let other = domains[wire.ends[1 - side].0];
            let domain = other_domain([domains[node], other]);
            add_link(&mut fresh, self.now, face, number, wire.config, domain);
        }
        slot.node = Some(fresh);
        slot.due = self.now;
    }

    /// Does something with a node, `times` of it; what it has to say leaves at the end of the round.
    fn with<T: Default>(
        &mut self,
        node: usize,
        work: Work,
        times: u64,
        act: impl FnOnce(&mut Node, Tick, &mut Output) -> T,
    ) -> T {
        let now = self.now;
        let slot = &mut self.slots[node];
        let Some(running) = &mut slot.node else { return T::default() };
        running.hold();
        let began = self.meter.map(|meter| (meter, (meter.read)()));
        let result = act(running, now, &mut slot.next);
        slot.spend(work, times, began);
        slot.debt += slot.costs.of(work, times);
        slot.has_next = true;
        if slot.busy <= now {
            self.turn(node);
        }
        result
    }

    /// Begins the next round of a node: all that waited is done, and leaves when that took its time.
    fn turn(&mut self, node: usize) {
        let now = self.now;
        let slot = &mut self.slots[node];
        let Some(running) = &mut slot.node else { return };
        let began = self.meter.map(|meter| (meter, (meter.read)()));
        running.release(now, &mut slot.next);
        slot.due = running.next_timeout();
        let mut output = std::mem::take(&mut slot.next);
        let told: usize = output.events.iter().map(|(to, _)| to.apps().len()).sum();
        let sent: usize = output.frames.iter().map(|f| f.faces.len()).sum();
        slot.spend(Work::Turn, sent as u64, began);
        let times = |cost: Duration, n: usize| cost * u32::try_from(n).unwrap_or(u32::MAX);
        let (costs, debt) = (slot.costs, std::mem::take(&mut slot.debt));
        slot.busy = now + debt + times(costs.event, told) + times(costs.sent, sent);
        slot.has_next = false;
        let at = slot.busy;
        let mut marks = Vec::new();
        for (to, event) in output.events.drain(..) {
            for app in to.apps() {
                match (&event, &mut self.news) {
                    (Event::Mark, Some(_)) => marks.push(*app),
                    (Event::Wait(true), _) => *slot.pauses.entry(*app).or_default() += 1,
                    (Event::Wait(false), _) => slot.resume(*app),
                    (_, Some(news)) => news.push((at, node, *app, event.clone())),
                    (_, None) => {
                        slot.events.entry(*app).or_default().push_back(event.clone());
                    }
                }
            }
        }
        let mut frames = std::mem::take(&mut output.frames);
        slot.next = output;
        for frames in frames.drain(..) {
            for face in frames.faces {
                self.send(node, face, at, frames.octets.clone());
            }
        }
        self.slots[node].next.frames = frames;
        for app in marks {
            self.with(node, Work::Free, 1, |n, now, out| n.took(now, app, out));
        }
    }

    /// A request of an application.
    pub fn request(&mut self, node: usize, app: AppId, tag: u64, request: &Request) {
        self.with(node, Work::Request, 1, |n, now, out| n.request(now, app, tag, request, out));
    }

    /// A publication of an application; `None` while the node is down.
    pub fn publish(
        &mut self,
        node: usize,
        app: AppId,
        data: &Data<'_>,
    ) -> Option<Result<Sent, Refusal>> {
        self.with(node, Work::Publication, 1, |n, now, out| Some(n.publish(now, app, data, out)))
    }

    /// Whether the node reads nothing from an application now, which waits for who is behind.
    #[must_use]
    pub fn is_paused(&self, node: usize, app: AppId) -> bool {
        self.slots[node].pauses.get(&app).is_some_and(|pauses| *pauses > 0)
    }

    /// An application has the last publications of an item of its own retained.
    pub fn retain(&mut self, node: usize, app: AppId, tag: u64, id: &Id, keep: impl Into<Keep>) {
        let keep = keep.into();
        self.with(node, Work::Request, 1, |n, now, out| n.retain(now, app, tag, id, keep, out));
    }

    /// An application goes.
    pub fn disconnect(&mut self, node: usize, app: AppId) {
        self.with(node, Work::Free, 1, |n, now, out| n.disconnect(now, app, out));
        self.slots[node].events.remove(&app);
        self.slots[node].pauses.remove(&app);
    }

    /// The next event of an application, which has taken what was before it.
    pub fn event(&mut self, node: usize, app: AppId) -> Option<Event> {
        loop {
            match self.slots[node].events.get_mut(&app)?.pop_front()? {
                Event::Mark => self.with(node, Work::Free, 1, |n, now, out| n.took(now, app, out)),
                event => return Some(event),
            }
        }
    }

    /// Octets of publications that an application has not taken.
    #[must_use]
    pub fn waiting(&self, node: usize, app: AppId) -> usize {
        let events = self.slots[node].events.get(&app).into_iter().flatten();
        events
            .map(|event| if let Event::Data { payload, .. } = event { payload.len() } else { 0 })
            .sum()
    }

    /// Lets time go by, until something is so; whether it became so.
    pub fn run_until(&mut self, limit: Duration, mut is_so: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            if is_so(self) {
                return true;
            }
            let of = |n: usize| self.slots[n].wake(self.has_timers).map(|at| (at, n));
            let timer = (0..self.slots.len()).filter_map(of).min();
            let arrival = self.arrivals.peek().map(|a| a.0.at);
            let next = [timer.map(|t| t.0), arrival].into_iter().flatten().min();
            let Some(next) = next.filter(|t| *t <= end) else {
                self.now = end;
                return is_so(self);
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                self.arrive();
            } else if let Some((_, node)) = timer.filter(|(_, node)| self.slots[*node].has_next) {
                self.turn(node);
            } else if let Some((_, node)) = timer {
                self.measure(node);
                self.with(node, Work::Timer, 1, |n, now, out| n.handle_timeout(now, out));
            }
        }
    }

    fn arrive(&mut self) {
        let Some(Reverse(mut arrival)) = self.arrivals.pop() else { return };
        let wire = self.wire_of(arrival.node, arrival.face);
        if wire.is_some_and(|w| self.wires[w].is_up) {
            let times = messages(&arrival.octets);
            self.with(arrival.node, Work::Frame, times, |n, now, out| {
                n.receive(now, arrival.face, &mut arrival.octets, out);
            });
        }
    }

    /// Lets time go by.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }
}
