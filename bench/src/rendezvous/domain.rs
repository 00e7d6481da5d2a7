//! The slow path of a whole domain in virtual time: the subscribers of many edge nodes ask for items of
//! a publisher whose node is rendezvous and topology manager (Blackadder, section V.B.3), or of several
//! such nodes, each with its share of the root scopes.
//!
//! Nodes and messages are the daemon's; links take no time, and a node takes for each operation what a
//! benchmark of the same run said that it takes on this machine. Both are printed.

use super::{BENCH, RendezvousArgs, SCOPE, Times};
use crate::report::{Report, human, human_time};
use anyhow::{Context, Result, ensure};
use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::{Costs, LinkConfig, Meter, News, Spent};
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
/// Root scopes for each rendezvous, where there are several: they share them out by hashes.
const SCOPES_EACH: u64 = 64;
/// Tag of requests that take nothing back; those that do have the item's number.
const NO_ITEM: u64 = u64::MAX;
const PUBLISHER: AppId = AppId(0);
/// Virtual time in which something must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Datagrams that cross by one system call when a daemon is busy.
const BURST: usize = 32;

/// Nanoseconds of a processor that this program has used: what others do meanwhile does not count.
fn read() -> u64 {
    u64::try_from(process_cpu_time().as_nanos()).unwrap_or(u64::MAX)
}

/// A meter by that clock; what reading takes is the median of many times.
fn meter() -> Meter {
    let mut own: Vec<u64> = (0..1001).map(|_| (read(), read())).map(|(a, b)| b - a).collect();
    own.sort_unstable();
    Meter { read, own: own[own.len() / 2] }
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

/// Hubs, then a tree of nodes grown at random, of which some have one link; the numbers of these.
fn build(args: &RendezvousArgs) -> Result<(PushNetwork, Vec<usize>)> {
    let RendezvousArgs { nodes, edges, rendezvous: hubs, seed, .. } = *args;
    ensure!(edges >= 1 && edges < nodes, "some nodes are at the edge, and not all");
    let inner = nodes - edges;
    ensure!(hubs >= 1 && hubs <= inner, "at least one rendezvous, at most {inner}");
    let mut rng = Rng::new(seed);
    let mut net = PushNetwork::new(seed);
    for number in 0..hubs + nodes {
        let is_hub = number < hubs;
        let role = if is_hub { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(number as u64 + 1, role, |_| {});
    }
    let link = LinkConfig { delay: Duration::ZERO, ..LinkConfig::default() };
    for hub in 0..hubs {
        net.link(hub, hubs + hub * inner / hubs, link);
    }
    let mut parents = HashSet::from([0]);
    for number in 1..nodes {
        // Inner nodes without a node behind them get one of the edge first.
        let bare = || (0..inner).find(|node| !parents.contains(node));
        let parent = match (number >= inner).then(bare).flatten() {
            Some(bare) => bare,
            None => rng.below(number.min(inner) as u64) as usize,
        };
        parents.insert(parent);
        net.link(hubs + parent, hubs + number, link);
    }
    net.run_for(Duration::from_secs(5));
    Ok((net, (hubs + inner..hubs + nodes).collect()))
}

/// An application that asks, waits, and asks again.
#[derive(Debug, Clone, Copy)]
struct Subscriber {
    item: u64,
    since: Tick,
    left: u32,
}

struct Domain {
    net: PushNetwork,
    edges: Vec<usize>,
    /// Nodes with a publisher, a rendezvous and a topology manager: the first ones.
    hubs: usize,
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
    /// Number of root scopes.
    fn scopes(&self) -> u64 {
        if self.hubs == 1 { 1 } else { self.hubs as u64 * SCOPES_EACH }
    }

    /// The root scope of an item.
    fn scope_of(&self, item: u64) -> Id {
        Id::root(Label::from_u64(SCOPE + item % self.scopes()))
    }

    fn request(&self, kind: Kind, item: u64) -> Request {
        let (id, prefix) = (Id::root(Label::from_u64(item)), self.scope_of(item));
        Request { kind, id, prefix, strategy: STRATEGY }
    }

    /// Publishes the scopes and all items.
    fn advertise(&mut self) -> Result<()> {
        let (scopes, hubs) = (self.scopes(), self.hubs as u64);
        let publisher = |item: u64| (item % scopes % hubs) as usize;
        for number in 0..scopes {
            let (kind, id, prefix) = (Kind::PUBLISH_SCOPE, self.scope_of(number), Id::default());
            let scope = Request { kind, id, prefix, strategy: STRATEGY };
            self.net.request(publisher(number), PUBLISHER, 1, &scope);
        }
        self.net.run_for(Duration::from_secs(1));
        for number in 0..self.items {
            let item = self.request(Kind::PUBLISH_ITEM, number);
            self.net.request(publisher(number), PUBLISHER, 1, &item);
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
        let all = self.items + scopes;
        ensure!(done == all, "{done} of {all} requests were answered");
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
        let request = self.request(Kind::SUBSCRIBE_ITEM, item);
        self.net.request(node, app, NO_ITEM, &request);
        Ok(())
    }

    /// Every subscriber asks `times` times; how long each took, and all together.
    fn run(&mut self, count: usize, times: u32) -> Result<(Vec<Duration>, Duration)> {
        ensure!(self.items > 2 * count as u64, "more than {} items are needed", 2 * count);
        let fresh = Subscriber { item: 0, since: Tick(0), left: times };
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
            Event::StartPublish(id) => {
                let data = Data::new(id, STRATEGY, &self.payload);
                let sent = self.net.publish(node, app, &data);
                ensure!(sent.is_some_and(|sent| sent.is_ok()), "a publication is refused");
            }
            Event::Data { id, .. } => self.got(node, app, &id)?,
            Event::Status { tag, status } => {
                ensure!(status.0 == 0, "a request: {status}");
                // Now it is taken back at its rendezvous, whatever others have to do.
                self.busy.remove(&tag);
            }
            _ => {}
        }
        Ok(())
    }

    /// A subscriber has what it asked for: it takes its subscription back and asks for another item.
    fn got(&mut self, node: usize, app: AppId, id: &Id) -> Result<()> {
        let edge = self.edges.iter().position(|e| *e == node).context("an edge node")?;
        let number = (app.0 as usize - 1) * self.edges.len() + edge;
        let subscriber = self.all[number];
        let item = self.scope_of(subscriber.item).child(Label::from_u64(subscriber.item));
        ensure!(*id == item, "{id} came, not {item}");
        self.times.push(self.net.now().since(subscriber.since));
        let request = self.request(Kind::UNSUBSCRIBE_ITEM, subscriber.item);
        self.net.request(node, app, subscriber.item, &request);
        if subscriber.left > 0 {
            self.ask(number)?;
        }
        Ok(())
    }
}

/// What each operation of `nodes` took on average; `before` is what was spent before.
fn seen(net: &PushNetwork, nodes: &[usize], before: &[Spent], io: Duration) -> Costs {
    let mean = |kind: usize| {
        let all = nodes.iter().map(|n| (net.spent(*n)[kind], before[*n][kind]));
        let (times, units) =
            all.fold((0, 0), |sum, (now, was)| (sum.0 + now.0 - was.0, sum.1 + now.1 - was.1));
        Duration::from_nanos(units / times.max(1))
    };
    Costs {
        frame: io,
        message: mean(0),
        request: mean(1) + io,
        publication: mean(2) + io,
        timer: mean(3),
        sent: mean(4) + io,
        event: io,
    }
}

fn print_costs(who: &str, costs: &Costs) {
    println!(
        "costs of {who}: {:?} a frame that comes and {:?} a message in it, {:?} a request, \
         {:?} a publication, {:?} a look at timers, {:?} a frame that leaves, {:?} a message to an \
         application",
        costs.frame,
        costs.message,
        costs.request,
        costs.publication,
        costs.timer,
        costs.sent,
        costs.event
    );
}

/// The same requests against the clock, twice: the first time as if everything took what a datagram
/// takes, the second time with the costs of the first, so that as much waits at once as in the run
/// that counts.
fn calibrate(domain: &mut Domain, count: usize) -> Result<()> {
    let inner = (domain.hubs..domain.net.len()).filter(|n| !domain.edges.contains(n)).collect();
    let all: [(&str, Vec<usize>); 3] = [
        ("a rendezvous", (0..domain.hubs).collect()),
        ("a node on the way", inner),
        ("a node at the edge", domain.edges.clone()),
    ];
    let (io, meter) = (io_cost()?, meter());
    let first = Costs { frame: io, sent: io, request: io, publication: io, ..Costs::default() };
    (0..domain.net.len()).for_each(|node| domain.net.set_costs(node, first));
    for is_last in [false, true] {
        let before: Vec<Spent> = (0..domain.net.len()).map(|n| domain.net.spent(n)).collect();
        domain.net.meter = Some(meter);
        domain.run(count, 1)?;
        domain.net.meter = None;
        for (who, nodes) in &all {
            let costs = seen(&domain.net, nodes, &before, io);
            nodes.iter().for_each(|node| domain.net.set_costs(*node, costs));
            if is_last {
                print_costs(who, &costs);
            }
        }
    }
    Ok(())
}

/// Measures one number of subscribers.
pub(super) fn measure(args: &RendezvousArgs, count: usize, report: &mut Report) -> Result<()> {
    let (net, edges) = build(args)?;
    let mut domain = Domain {
        net,
        edges,
        hubs: args.rendezvous,
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
    calibrate(&mut domain, count)?;
    let (found, all) = domain.run(count, args.times)?;
    let rate = found.len() as f64 / all.as_secs_f64();
    let times = Times::of(found);
    let name = format!(
        "strategy=domain-local,items={},subscribers={count},times={},nodes={},edges={},\
         rendezvous={}",
        args.items, args.times, args.nodes, args.edges, args.rendezvous
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
