//! `onym sim`: a network of forwarders in virtual time.

pub(crate) mod record;
pub(crate) mod show;

use crate::exit::{Exit, Failure};
use crate::output::Context;
use onym_sim::record::{self as sim, Limits};
use onym_sim::topology::{duration, rate, share};
use onym_sim::{
    ChannelConfig, ConsumerConfig, Ended, Network, NodeConfig, ProducerConfig, Report, Routing,
    Scenario, Shape, Topology, Workload,
};
use onym_wire::name::Name;
use std::path::PathBuf;
use std::time::Duration;

/// Run a network of forwarders in virtual time and show what each node and link did.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Run a network of forwarders in virtual time and show what each node and link did.\n\n\
        The nodes are the code of the daemon; links have rate, delay, loss and a queue; applications \
        produce and consume. The same network and seed give the same run.",
    after_help = "Examples:\n  \
        onym sim scenario.toml\n  \
        onym sim --topology grid:4x4 --consumers 4 --count 500 --rate 50mbit --loss 0.1%\n  \
        onym sim --topology ring:6 --strategy asf --routes downhill --json\n  \
        onym sim scenario.toml --record out --every 100ms --capture n1:n2\n\n\
        A scenario is TOML (crates/sim/README.md); a file that does not end in .toml is read as \
        lines like those of Mini-NDN, such as `a:b delay=10ms bw=50`."
)]
pub(crate) struct Args {
    /// Scenario to run.
    #[arg(value_name = "FILE", required_unless_present = "topology", conflicts_with = "topology")]
    file: Option<PathBuf>,
    /// Built-in network: line:N, ring:N, star:N, mesh:N, grid:CxR, tree:BxL or random:N.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<Shape>,
    /// Seed of all randomness; overrides that of the file.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Maximum virtual time, such as 60s; overrides the file's.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Maximum number of events.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    events: u64,
    /// Stop as soon as every consumer is done.
    #[arg(long)]
    until_done: bool,
    #[command(flatten)]
    built: Built,
    #[command(flatten)]
    recorded: Recorded,
}

/// What is written down while it runs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Recording")]
struct Recorded {
    /// Existing folder for samples.csv (each node), transfers.csv (each object) and captures.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Virtual time between two samples.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration, requires = "record")]
    every: Duration,
    /// Capture the link between two nodes into A-B.pcap; may be repeated.
    #[arg(long, value_name = "A:B", value_parser = record::ends, requires = "record")]
    capture: Vec<(String, String)>,
    /// Octets of each frame that are captured.
    #[arg(long, value_name = "N", default_value_t = 500, requires = "record")]
    snaplen: usize,
}

/// What goes on in a built-in network: one producer at the last node.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "With --topology")]
struct Built {
    /// Delay of each link.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration, conflicts_with = "file")]
    delay: Duration,
    /// Rate of each link, such as 50mbit; unlimited without it.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "file")]
    rate: Option<u64>,
    /// Frames lost on each link, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share, conflicts_with = "file")]
    loss: f64,
    /// Frames that wait for each link at most.
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "file")]
    queue: usize,
    /// Packets that each node caches.
    #[arg(long, value_name = "N", default_value_t = 1024, conflicts_with = "file")]
    cs: usize,
    /// Consumers, spread over the nodes.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "file")]
    consumers: usize,
    /// Segments that each consumer fetches.
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "file")]
    count: u64,
    /// Interests that each consumer has in flight.
    #[arg(long, value_name = "N", default_value_t = 16, conflicts_with = "file", value_parser = window)]
    window: usize,
    /// Octets of content in each Data.
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "file", value_parser = clap::value_parser!(u16).range(0..=8192))]
    size: u16,
    /// Strategy of every node, such as multicast.
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    strategy: Option<String>,
    /// Routes: shortest, downhill, flood or local.
    #[arg(long, value_name = "WORD", default_value = "shortest", conflicts_with = "file")]
    routes: Routing,
}

fn window(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("a number of at least 1 is expected".to_owned()),
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut scenario = scenario(&args)?;
    scenario.duration = args.duration.unwrap_or(scenario.duration);
    let wrong = |error: onym_sim::TopologyError| {
        Failure::new(Exit::Usage, "the network cannot be built").why(error)
    };
    let mut network = scenario.topology.build(scenario.seed).map_err(wrong)?;
    let limits = Limits {
        until: scenario.duration,
        events_max: args.events,
        stop_when_done: args.until_done,
    };
    let ended = play(&mut network, limits, &args.recorded)?;
    let report = Report::of(&network);
    // A law that does not hold is a defect of the program: better told than counted.
    network
        .check()
        .map_err(|law| Failure::new(Exit::Failed, "an invariant was violated").why(law))?;
    cx.print(&show::Shown::of(&report, scenario.seed, ended), show::text)
}

/// Runs the network, with what is to be recorded.
fn play(network: &mut Network, limits: Limits, recorded: &Recorded) -> anyhow::Result<Ended> {
    let Some(dir) = &recorded.record else {
        // Nobody looks at the samples; they are where a run that is done is noticed.
        let every = if limits.stop_when_done { recorded.every } else { limits.until };
        return Ok(sim::run(network, limits, every, |_| {}));
    };
    let names: Vec<_> = network.nodes().iter().map(|node| node.name.clone()).collect();
    let mut samples = record::Samples::create(dir)?;
    let tapped = record::tap(network, dir, &recorded.capture, recorded.snaplen)?;
    let mut failed = None;
    let ended = sim::run(network, limits, recorded.every, |sample| {
        let name = names.get(sample.node).map_or("", String::as_str);
        if let Err(error) = samples.write(name, &sample) {
            failed.get_or_insert(error);
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    samples.finish()?;
    tapped.finish()?;
    let apps = network.apps().enumerate();
    let rows = apps.map(|(number, (node, app))| (number, names[node].as_str(), app.transfers()));
    record::transfers(&dir.join("transfers.csv"), rows)?;
    Ok(ended)
}

fn scenario(args: &Args) -> Result<Scenario, Failure> {
    let seed = args.seed;
    if let Some(shape) = args.topology {
        let seed = seed.unwrap_or(1);
        let duration = Duration::from_secs(60);
        return Ok(Scenario { topology: args.built.topology(shape, seed), seed, duration });
    }
    let path = args.file.clone().unwrap_or_default();
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("{} is not a scenario", path.display())).why(why)
    };
    let text = std::fs::read_to_string(&path).map_err(|e| {
        Failure::new(Exit::Failed, format!("{} cannot be read", path.display())).why(e)
    })?;
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Scenario::parse(&text, seed).map_err(|e| failed(&e));
    }
    let topology = text.parse::<Topology>().map_err(|e| {
        failed(&e).next("give a TOML scenario the ending .toml; see crates/sim/README.md")
    })?;
    Ok(Scenario { topology, seed: seed.unwrap_or(1), duration: Duration::from_secs(60) })
}

impl Built {
    fn topology(&self, shape: Shape, seed: u64) -> Topology {
        let link = ChannelConfig {
            delay: self.delay,
            rate_bps: self.rate,
            loss: self.loss,
            queue_max: self.queue,
            ..ChannelConfig::default()
        };
        let mut topology = shape.topology(link, seed);
        let prefix = Name::new().with(onym_wire::Component::generic(b"data"));
        let consumer = ConsumerConfig {
            count: self.count,
            window: self.window,
            ..ConsumerConfig::new(prefix.clone())
        };
        let workload = Workload {
            producer: ProducerConfig {
                prefix,
                size: self.size.into(),
                freshness_ms: 10_000,
                answers: true,
            },
            consumer,
            consumers: self.consumers,
            node: NodeConfig { cs_packets_max: self.cs, ..NodeConfig::default() },
        };
        workload.put_on(&mut topology);
        topology.set_routing(self.routes);
        if let Some(strategy) = &self.strategy {
            topology.add_strategy(Name::new(), strategy);
        }
        topology
    }
}
