//! The slow path (Fig. 6 of the Blackadder paper): subscribers ask for random items of many that
//! are advertised, one after the other; timed is each subscription until its publication is there.
//!
//! Every subscription goes through the rendezvous and starts the publisher, which publishes once;
//! then it is taken back. No item has two subscribers at once, so that each starts it anew.

mod domain;

use crate::push::{Link, Nodes, Way};
use crate::report::{Report, human, human_time};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use onym_client::push::{App, Event};
use onym_sys::epoll::{Epoll, Interest};
use onym_tables::Rng;
use onym_wire::push::{Id, Kind, Label, Status, Strategy};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Requests under way while items are advertised.
const WINDOW: usize = 512;
/// A run in which nothing comes for so long is broken.
const PATIENCE: Duration = Duration::from_secs(20);
const SCOPE: u64 = 0xb1;
const BENCH: &str = "rendezvous";

/// The benchmark.
#[derive(Debug, Args)]
pub struct RendezvousArgs {
    /// Items that are advertised.
    #[arg(long, default_value_t = 100_000)]
    pub items: u64,
    /// Subscribers, each an application.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 500])]
    pub subscribers: Vec<usize>,
    /// How often each subscribes.
    #[arg(long, default_value_t = 500)]
    pub times: u32,
    /// A whole domain in virtual time, its subscribers spread over the nodes at its edge, and a node
    /// more with the publisher, the rendezvous and the topology manager.
    #[arg(long)]
    pub simulate: bool,
    /// Nodes of that domain.
    #[arg(long, default_value_t = 106)]
    pub nodes: usize,
    /// Those of them at its edge.
    #[arg(long, default_value_t = 73)]
    pub edges: usize,
    /// Nodes besides that are rendezvous, topology manager and publisher, and share the items.
    #[arg(long, default_value_t = 1)]
    pub rendezvous: usize,
    /// Other nodes around the one with the rendezvous, in processes, over which subscribers are spread;
    /// 0: they are at the same node.
    #[arg(long, default_value_t = 0)]
    pub satellites: usize,
    /// Octets of a publication.
    #[arg(long, default_value_t = 64)]
    pub payload: usize,
    /// Strategies.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["node-local", "domain-local"])]
    pub strategies: Vec<Kept>,
    /// Where items are drawn from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
    /// Where this run's rows go as CSV.
    #[arg(long)]
    pub csv: Option<PathBuf>,
}

/// Where rendezvous and publications are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kept {
    /// Within the node.
    NodeLocal,
    /// By way of the rendezvous and the topology manager of a domain, which are the same node.
    DomainLocal,
}

impl Kept {
    const fn strategy(self) -> Strategy {
        match self {
            Self::NodeLocal => Strategy::NODE_LOCAL,
            Self::DomainLocal => Strategy::DOMAIN_LOCAL,
        }
    }
}

/// Runs the benchmark, prints a table and writes rows.
///
/// # Errors
/// When the node does not start, refuses something or falls silent.
pub fn run(args: &RendezvousArgs) -> Result<()> {
    let mut report = Report::default();
    println!("{:52} {:>10} {:>10} {:>10} {:>12}", "case", "mean", "p50", "p99", "rounds, 1/s");
    for subscribers in args.subscribers.iter().filter(|_| args.simulate) {
        domain::measure(args, *subscribers, &mut report)?;
    }
    for strategy in args.strategies.iter().filter(|_| !args.simulate) {
        for subscribers in &args.subscribers {
            measure(args, strategy.strategy(), *subscribers, &mut report)?;
        }
    }
    if let Some(path) = &args.csv {
        report.write_csv(path)?;
    }
    report.write(&args.json)
}

fn item(number: u64) -> Id {
    Id::root(Label::from_u64(SCOPE)).child(Label::from_u64(number))
}

fn measure(
    args: &RendezvousArgs,
    strategy: Strategy,
    subscribers: usize,
    report: &mut Report,
) -> Result<()> {
    let nodes = match args.satellites {
        0 => Nodes::start(Way::Onym, 1, Link::Tcp, args.payload)?,
        count => Nodes::star(count + 1)?,
    };
    let (place, others) = nodes.places().split_first().context("no node was started")?;
    let places = if others.is_empty() { std::slice::from_ref(place) } else { others };
    let publisher = advertise(place, args, strategy)?;
    let done = Arc::new(AtomicBool::new(false));
    let (told, payload) = (Arc::clone(&done), vec![7; args.payload]);
    let publishing = std::thread::spawn(move || answer(publisher, strategy, &payload, &told));
    let began = Instant::now();
    let found = subscribe(places, args, strategy, subscribers);
    let seconds = began.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    publishing.join().ok().context("the publisher broke")??;
    let found = found?;
    let rate = found.len() as f64 / seconds;
    let times = Times::of(found);
    let name = format!(
        "strategy={strategy},items={},subscribers={subscribers},times={},satellites={}",
        args.items, args.times, args.satellites
    );
    println!(
        "{name:52} {:>10} {:>10} {:>10} {:>12}",
        human_time(times.mean),
        human_time(times.p50),
        human_time(times.p99),
        human(rate)
    );
    times.add(report, BENCH, &name, "onym", rate);
    Ok(())
}

/// What many times come to, in seconds.
#[derive(Debug)]
struct Times {
    mean: f64,
    p50: f64,
    p99: f64,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let at = (times.len() as f64 * share) as usize;
            times.get(at).map_or(0.0, Duration::as_secs_f64)
        };
        let sum: f64 = times.iter().map(Duration::as_secs_f64).sum();
        Self { mean: sum / times.len().max(1) as f64, p50: at(0.5), p99: at(0.99) }
    }

    /// Adds the rows of a case in which so many came in a second.
    fn add(
        &self,
        report: &mut Report,
        bench: &'static str,
        case: &str,
        who: &'static str,
        rate: f64,
    ) {
        report.add(bench, case, who, "latency_mean_s", self.mean);
        report.add(bench, case, who, "latency_p50_s", self.p50);
        report.add(bench, case, who, "latency_p99_s", self.p99);
        report.add(bench, case, who, "exchanges_per_second", rate);
    }
}

/// An application that has published the scope and all items.
fn advertise(place: &str, args: &RendezvousArgs, strategy: Strategy) -> Result<App> {
    let mut app = App::open(Some(place), "bench publisher")?;
    let scope = Id::root(Label::from_u64(SCOPE));
    app.publish_scope(&scope, strategy)?;
    let mut next = 0;
    while next < args.items {
        let end = args.items.min(next + WINDOW as u64);
        let ask = |number| {
            app.ask(Kind::PUBLISH_ITEM, &Id::root(Label::from_u64(number)), &scope, strategy)
        };
        let tags: Vec<u32> = (next..end).map(ask).collect::<Result<_, _>>()?;
        for tag in tags {
            let (status, _) = app.wait_answer(tag, || "an item".to_owned())?;
            ensure!(status == Status::OK, "an item is refused: {status}");
        }
        next = end;
    }
    Ok(app)
}

/// Publishes each item when it is started.
fn answer(mut app: App, strategy: Strategy, payload: &[u8], done: &AtomicBool) -> Result<()> {
    // What is started together leaves together.
    let look = Duration::from_millis(50);
    let mut patience = look;
    while !done.load(Ordering::Relaxed) {
        match app.event(Some(patience))? {
            Some(Event::StartPublish(id)) => app.publish(&id, strategy, payload)?,
            Some(Event::Refused { id, status }) => anyhow::bail!("{id} is refused: {status}"),
            Some(_) => {}
            None => {
                app.drain()?;
                patience = look;
                continue;
            }
        }
        patience = Duration::ZERO;
    }
    Ok(())
}

/// One subscriber.
struct Subscriber {
    app: App,
    /// The item that is waited for, the one before, and since when.
    item: u64,
    before: Option<u64>,
    since: Instant,
    left: u32,
}

impl Subscriber {
    /// Asks for another item that nobody asks for now.
    fn ask(
        &mut self,
        items: u64,
        busy: &mut HashSet<u64>,
        rng: &mut Rng,
        s: Strategy,
    ) -> Result<()> {
        self.item = std::iter::repeat_with(|| rng.below(items))
            .find(|item| busy.insert(*item))
            .context("there are more items than subscribers")?;
        self.left -= 1;
        self.since = Instant::now();
        request(&mut self.app, Kind::SUBSCRIBE_ITEM, self.item, s)
    }
}

fn request(app: &mut App, kind: Kind, number: u64, strategy: Strategy) -> Result<()> {
    let (label, scope) = (Label::from_u64(number), Id::root(Label::from_u64(SCOPE)));
    app.ask(kind, &Id::root(label), &scope, strategy)?;
    Ok(())
}

/// All subscribers, one after the other as they hear; how long each subscription took.
fn subscribe(
    places: &[String],
    args: &RendezvousArgs,
    strategy: Strategy,
    count: usize,
) -> Result<Vec<Duration>> {
    ensure!(args.items > 2 * count as u64, "more items than twice the subscribers are needed");
    let (mut rng, mut busy) = (Rng::new(args.seed), HashSet::new());
    let epoll = Epoll::new()?;
    let mut all = Vec::with_capacity(count);
    for number in 0..count {
        let place = &places[number % places.len()];
        let app = App::open(Some(place), "bench subscriber")?;
        epoll.add(app.fd(), number as u64, Interest::Read)?;
        all.push(Subscriber {
            app,
            item: 0,
            before: None,
            since: Instant::now(),
            left: args.times,
        });
    }
    for subscriber in &mut all {
        subscriber.ask(args.items, &mut busy, &mut rng, strategy)?;
        subscriber.app.drain()?;
    }
    let total = count * args.times as usize;
    let mut times = Vec::with_capacity(total);
    let mut ready = Vec::new();
    while times.len() < total {
        ready.clear();
        epoll.wait(Some(PATIENCE), &mut ready)?;
        ensure!(!ready.is_empty(), "nothing came for {} s", PATIENCE.as_secs());
        for event in &ready {
            let subscriber = &mut all[event.token as usize];
            while let Some(event) = subscriber.app.event(Some(Duration::ZERO))? {
                let Event::Data { id, .. } = event else { continue };
                ensure!(id == item(subscriber.item), "{id} came, not {}", item(subscriber.item));
                times.push(subscriber.since.elapsed());
                request(&mut subscriber.app, Kind::UNSUBSCRIBE_ITEM, subscriber.item, strategy)?;
                // What was before is certainly taken back: it was asked before this one.
                if let Some(before) = subscriber.before.replace(subscriber.item) {
                    busy.remove(&before);
                }
                if subscriber.left > 0 {
                    subscriber.ask(args.items, &mut busy, &mut rng, strategy)?;
                }
            }
            while let Some((_, status)) = subscriber.app.poll_answer() {
                ensure!(status == Status::OK, "a request is refused: {status}");
            }
        }
    }
    Ok(times)
}
