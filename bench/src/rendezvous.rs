//! The slow path (Fig. 6 of the Blackadder paper): subscribers ask for random items of many that
//! are advertised, one after the other; timed is each subscription until its publication is there.
//!
//! Every subscription goes through the rendezvous and starts the publisher, which publishes once;
//! then it is taken back. No item has two subscribers at once, so that each starts it anew.

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
    for strategy in &args.strategies {
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
    let nodes = Nodes::start(Way::Onym, 1, Link::Tcp, args.payload)?;
    let [place] = nodes.places() else { anyhow::bail!("one node was started") };
    let publisher = advertise(place, args, strategy)?;
    let done = Arc::new(AtomicBool::new(false));
    let (told, payload) = (Arc::clone(&done), vec![7; args.payload]);
    let publishing = std::thread::spawn(move || answer(publisher, strategy, &payload, &told));
    let began = Instant::now();
    let found = subscribe(place, args, strategy, subscribers);
    let seconds = began.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    publishing.join().ok().context("the publisher broke")??;
    let mut times = found?;
    times.sort_unstable();
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64();
    let mean = times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
    let rate = times.len() as f64 / seconds;
    let name = format!(
        "strategy={strategy},items={},subscribers={subscribers},times={}",
        args.items, args.times
    );
    println!(
        "{name:52} {:>10} {:>10} {:>10} {:>12}",
        human_time(mean),
        human_time(at(0.5)),
        human_time(at(0.99)),
        human(rate)
    );
    report.add(BENCH, &name, "onym", "latency_mean_s", mean);
    report.add(BENCH, &name, "onym", "latency_p50_s", at(0.5));
    report.add(BENCH, &name, "onym", "latency_p99_s", at(0.99));
    report.add(BENCH, &name, "onym", "exchanges_per_second", rate);
    Ok(())
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
    place: &str,
    args: &RendezvousArgs,
    strategy: Strategy,
    count: usize,
) -> Result<Vec<Duration>> {
    ensure!(args.items > 2 * count as u64, "more items than twice the subscribers are needed");
    let (mut rng, mut busy) = (Rng::new(args.seed), HashSet::new());
    let epoll = Epoll::new()?;
    let mut all = Vec::with_capacity(count);
    for number in 0..count {
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
        }
    }
    Ok(times)
}
