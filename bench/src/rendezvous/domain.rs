//! The slow path of a whole domain in virtual time: the subscribers of many edge nodes ask for items of
//! one publisher, whose node is rendezvous and topology manager (Blackadder, section V.B.3).
//!
//! Nodes and messages are the daemon's; links take no time, and a node takes for each operation what a
//! benchmark of the same run said that it takes on this machine. Both are printed.

use super::{BENCH, RendezvousArgs, SCOPE, Times, item};
use crate::report::{Report, human, human_time};
use anyhow::{Context, Result, ensure};
use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::{Costs, LinkConfig, News};
use onym_sys::mmsg::{self, Message, Received};
use onym_sys::thread::process_cpu_time;
use onym_tables::{Rng, Tick};
use onym_wire::push::{Id, Kind, Label, Role, Strategy};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::IoSlice;
use std::net::UdpSocket;
use std::time::Duration;

const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;
/// The node with the publisher.
const HUB: usize = 0;
const PUBLISHER: AppId = AppId(0);
/// Virtual time in which something must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Datagrams that cross by one system call when a daemon is busy.
const BURST: usize = 32;

/// Nanoseconds of a processor that this program has used: what others do meanwhile does not count.
fn meter() -> u64 {
    u64::try_from(process_cpu_time().as_nanos()).unwrap_or(u64::MAX)
}

/// What one datagram of 128 octets takes to send or to receive, in bursts over the loopback.
fn io_cost() -> Result<Duration> {
    const ROUNDS: u32 = 2000;
    let (from, to) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    from.connect(to.local_addr()?)?;
    let octets = [7; 128];
    let parts = [IoSlice::new(&octets)];
    let messages: Vec<Message<'_>> =
        (0..BURST).map(|_| Message { parts: &parts, segment_len: 0 }).collect();
    let mut buffers = vec![vec![0; 2048]; BURST];
    let mut received = [Received::default(); BURST];
    let began = process_cpu_time();
    for _ in 0..ROUNDS {
        let sent = mmsg::send(&from, &messages)?;
        let mut got = 0;
        while got < sent {
            got += mmsg::receive(&to, &mut buffers, &mut received)?;
        }
    }
    Ok((process_cpu_time() - began) / (2 * ROUNDS * BURST as u32))
}

/// A tree of `nodes`, of which `edges` have one link, grown at random, with the hub before it; the
/// numbers of the edge nodes.
fn build(nodes: usize, edges: usize, seed: u64) -> Result<(PushNetwork, Vec<usize>)> {
    ensure!(edges >= 1 && edges < nodes, "some nodes are at the edge, and not all");
    let mut rng = Rng::new(seed);
    let mut net = PushNetwork::new(seed);
    for number in 0..=nodes {
        let is_hub = number == HUB;
        let role = if is_hub { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(number as u64 + 1, role, |_| {});
    }
    let link = LinkConfig { delay: Duration::ZERO, ..LinkConfig::default() };
    let inner = nodes - edges;
    let mut fathers = HashSet::from([HUB]);
    for number in 1..=nodes {
        let below = (number - 1).min(inner) as u64;
        // Inner nodes without a node behind them get one of the edge first.
        let bare = || (1..=inner).find(|node| !fathers.contains(node));
        let father = match (number > inner).then(bare).flatten() {
            Some(bare) => bare,
            None if number == 1 => HUB,
            None => 1 + rng.below(below) as usize,
        };
        fathers.insert(father);
        net.link(father, number, link);
    }
    net.run_for(Duration::from_secs(5));
    Ok((net, (inner + 1..=nodes).collect()))
}

/// An application that asks, waits, and asks again.
#[derive(Debug, Clone, Copy)]
struct Subscriber {
    item: u64,
    before: Option<u64>,
    since: Tick,
    left: u32,
}

struct Domain {
    net: PushNetwork,
    edges: Vec<usize>,
    items: u64,
    payload: Vec<u8>,
    rng: Rng,
    busy: HashSet<u64>,
    all: Vec<Subscriber>,
    /// What applications do next, by time.
    todo: BinaryHeap<Reverse<(Tick, u64)>>,
    news: Vec<Option<News>>,
    times: Vec<Duration>,
}

impl Domain {
    /// Publishes the scope and all items.
    fn advertise(&mut self) -> Result<()> {
        let scope = Request {
            kind: Kind::PUBLISH_SCOPE,
            id: Id::root(Label::from_u64(SCOPE)),
            prefix: Id::default(),
            strategy: STRATEGY,
        };
        self.net.request(HUB, PUBLISHER, 1, &scope);
        for number in 0..self.items {
            self.net.request(HUB, PUBLISHER, 1, &request(Kind::PUBLISH_ITEM, number));
            if number % 128 == 127 {
                self.net.run_for(Duration::from_millis(1));
            }
        }
        self.net.run_for(Duration::from_secs(1));
        let mut done = 0;
        for (.., event) in self.net.news.replace(Vec::new()).unwrap_or_default() {
            let Event::Status { status, .. } = event else { continue };
            ensure!(status.0 == 0, "an item is refused: {status}");
            done += 1;
        }
        ensure!(done == self.items + 1, "{done} of {} requests were answered", self.items + 1);
        Ok(())
    }

    /// Where subscriber `number` is.
    fn place(&self, number: usize) -> (usize, AppId) {
        let count = self.edges.len();
        (self.edges[number % count], AppId(1 + (number / count) as u64))
    }

    fn ask(&mut self, number: usize) -> Result<()> {
        let (items, rng, busy) = (self.items, &mut self.rng, &mut self.busy);
        let item = std::iter::repeat_with(|| rng.below(items))
            .find(|item| busy.insert(*item))
            .context("there are more items than subscribers")?;
        let subscriber = &mut self.all[number];
        subscriber.item = item;
        subscriber.left -= 1;
        subscriber.since = self.net.now();
        let (node, app) = self.place(number);
        self.net.request(node, app, 0, &request(Kind::SUBSCRIBE_ITEM, item));
        Ok(())
    }

    /// Every subscriber asks `times` times; how long each took, and all together.
    fn run(&mut self, count: usize, times: u32) -> Result<(Vec<Duration>, Duration)> {
        ensure!(self.items > 2 * count as u64, "more than {} items are needed", 2 * count);
        let fresh = Subscriber { item: 0, before: None, since: Tick(0), left: times };
        self.all = vec![fresh; count];
        self.times.clear();
        let began = self.net.now();
        for number in 0..count {
            self.ask(number)?;
        }
        while self.times.len() < count * times as usize {
            self.step()?;
        }
        let all = self.net.now().since(began);
        // What was asked last is taken back.
        self.net.run_for(Duration::from_secs(2));
        self.hear();
        while !self.todo.is_empty() {
            self.step()?;
        }
        self.busy.clear();
        Ok((std::mem::take(&mut self.times), all))
    }

    /// Puts what applications were told in its place in time.
    fn hear(&mut self) {
        for news in self.net.news.replace(Vec::new()).unwrap_or_default() {
            self.todo.push(Reverse((news.0, self.news.len() as u64)));
            self.news.push(Some(news));
        }
    }

    /// Until the next application has been told something and did what it does then.
    fn step(&mut self) -> Result<()> {
        let now = self.net.now();
        let next = self.todo.peek().map(|next| next.0.0);
        let limit = next.map_or(PATIENCE, |next| next.since(now));
        let is_told =
            self.net.run_until(limit, |n| n.news.as_ref().is_some_and(|news| !news.is_empty()));
        if is_told {
            self.hear();
            return Ok(());
        }
        let Reverse((_, at)) = self.todo.pop().context("nothing comes any more")?;
        let news = self.news.get_mut(at as usize).and_then(Option::take);
        if self.todo.is_empty() {
            self.news.clear();
        }
        let Some((_, node, app, event)) = news else { return Ok(()) };
        match event {
            Event::StartPublish(id) if node == HUB => {
                let data = Data::new(id, STRATEGY, &self.payload);
                let sent = self.net.publish(HUB, PUBLISHER, &data);
                ensure!(sent.is_some_and(|sent| sent.is_ok()), "a publication is refused");
            }
            Event::Data { id, .. } => self.got(node, app, &id)?,
            Event::Status { status, .. } => ensure!(status.0 == 0, "a request: {status}"),
            _ => {}
        }
        Ok(())
    }

    /// A subscriber has what it asked for: it takes its subscription back and asks for another item.
    fn got(&mut self, node: usize, app: AppId, id: &Id) -> Result<()> {
        let edge = self.edges.iter().position(|e| *e == node).context("an edge node")?;
        let number = (app.0 as usize - 1) * self.edges.len() + edge;
        let subscriber = self.all[number];
        ensure!(*id == item(subscriber.item), "{id} came, not {}", item(subscriber.item));
        self.times.push(self.net.now().since(subscriber.since));
        self.net.request(node, app, 0, &request(Kind::UNSUBSCRIBE_ITEM, subscriber.item));
        if let Some(before) = self.all[number].before.replace(subscriber.item) {
            self.busy.remove(&before);
        }
        if subscriber.left > 0 {
            self.ask(number)?;
        }
        Ok(())
    }
}

fn request(kind: Kind, number: u64) -> Request {
    let (id, prefix) = (Id::root(Label::from_u64(number)), Id::root(Label::from_u64(SCOPE)));
    Request { kind, id, prefix, strategy: STRATEGY }
}

/// What each operation of `nodes` took on average since `before`.
fn seen(net: &PushNetwork, nodes: &[usize], io: Duration) -> Costs {
    let mean = |kind: usize| {
        let all = nodes.iter().map(|n| net.spent(*n)[kind]);
        let (times, units) = all.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        Duration::from_nanos(units / times.max(1))
    };
    Costs {
        frame: mean(0) + io,
        request: mean(1) + io,
        publication: mean(2) + io,
        timer: mean(3),
        sent: io,
        event: io,
    }
}

fn print_costs(who: &str, costs: &Costs) {
    println!(
        "costs of {who}: {:?} a frame, {:?} a request, {:?} a publication, {:?} a look at timers, \
         {:?} more for each frame and message that leaves",
        costs.frame, costs.request, costs.publication, costs.timer, costs.sent
    );
}

/// Measures one number of subscribers.
pub(super) fn measure(args: &RendezvousArgs, count: usize, report: &mut Report) -> Result<()> {
    let (net, edges) = build(args.nodes, args.edges, args.seed)?;
    let mut domain = Domain {
        net,
        edges,
        items: args.items,
        payload: vec![7; args.payload],
        rng: Rng::new(args.seed),
        busy: HashSet::new(),
        all: Vec::new(),
        todo: BinaryHeap::new(),
        news: Vec::new(),
        times: Vec::new(),
    };
    domain.net.news = Some(Vec::new());
    domain.advertise()?;
    // The benchmark: the same requests once, against the clock.
    domain.net.meter = Some(meter);
    domain.run(count, 1)?;
    domain.net.meter = None;
    let io = io_cost()?;
    let inner: Vec<usize> = (1..domain.net.len()).filter(|n| !domain.edges.contains(n)).collect();
    let all = [
        ("the rendezvous", vec![HUB]),
        ("nodes on the way", inner),
        ("nodes at the edge", domain.edges.clone()),
    ];
    for (who, nodes) in &all {
        let costs = seen(&domain.net, nodes, io);
        print_costs(who, &costs);
        nodes.iter().for_each(|node| domain.net.set_costs(*node, costs));
    }
    let (found, all) = domain.run(count, args.times)?;
    let rate = found.len() as f64 / all.as_secs_f64();
    let times = Times::of(found);
    let name = format!(
        "strategy=domain-local,items={},subscribers={count},times={},nodes={},edges={}",
        args.items, args.times, args.nodes, args.edges
    );
    println!(
        "{name:52} {:>10} {:>10} {:>10} {:>12}",
        human_time(times.mean),
        human_time(times.p50),
        human_time(times.p99),
        human(rate)
    );
    times.add(report, BENCH, &name, "onym-sim", rate);
    Ok(())
}
