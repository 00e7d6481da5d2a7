//! Router, publisher or subscriber of the benchmark `push` by Zenoh: `onym-bench push` starts it.

// What every subject does is the same code.
#[path = "../../src/push/latency.rs"]
#[allow(dead_code)]
mod latency;
#[path = "../../src/part.rs"]
#[allow(dead_code)]
mod part;
#[path = "../../src/push/side.rs"]
#[allow(dead_code)]
mod side;

use anyhow::{Result, anyhow};
use clap::Parser;
use side::{PartResult, Seen, SideArgs};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use zenoh::qos::CongestionControl;
use zenoh::{Config, Session, Wait};

const KEY: &str = "bench/item";
/// Of a place: the publisher listens there, and subscribers connect to it, without a router.
const PEER: &str = "peer/";

/// Which part.
#[derive(Debug, Parser)]
enum Args {
    Router {
        #[arg(long)]
        listen: String,
        /// The router before it.
        #[arg(long)]
        connect: Option<String>,
    },
    Publisher(Side),
    Subscriber(Side),
}

#[derive(Debug, clap::Args)]
struct Side {
    /// Where its router is.
    #[arg(long)]
    at: String,
    #[command(flatten)]
    side: SideArgs,
}

fn open(mode: &str, listen: Option<&str>, connect: Option<&str>) -> Result<Session> {
    let list = |end: Option<&str>| end.map_or("[]".into(), |end| format!("[\"{end}\"]"));
    let mut config = Config::default();
    let settings = [
        ("mode", format!("\"{mode}\"")),
        ("listen/endpoints", list(listen)),
        ("connect/endpoints", list(connect)),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
    ];
    for (key, value) in settings {
        config.insert_json5(key, &value).map_err(|error| anyhow!("{key}: {error}"))?;
    }
    zenoh::open(config).wait().map_err(|error| anyhow!(error))
}

fn main() -> Result<()> {
    let result = match Args::parse() {
        Args::Router { listen, connect } => {
            let _session = open("router", Some(&listen), connect.as_deref())?;
            part::say("ready")?;
            loop {
                std::thread::park();
            }
        }
        Args::Publisher(Side { at, side }) => {
            let session = match at.strip_prefix(PEER) {
                None => open("client", None, Some(&at))?,
                Some(at) => open("peer", Some(&format!("tcp/{at}")), None)?,
            };
            publish(&session, &side)?
        }
        Args::Subscriber(Side { at, side }) => {
            let session = match at.strip_prefix(PEER) {
                None => open("client", None, Some(&at))?,
                Some(at) => open("peer", None, Some(&format!("tcp/{at}")))?,
            };
            subscribe(&session, &side)?
        }
    };
    part::say(&serde_json::to_string(&result)?)
}

fn publish(session: &Session, args: &SideArgs) -> Result<PartResult> {
    let publisher = session.declare_publisher(KEY).congestion_control(CongestionControl::Block);
    let mut publisher = publisher.wait().map_err(|error| anyhow!(error))?;
    let put = |publisher: &mut zenoh::pubsub::Publisher<'_>, octets: &[u8]| {
        publisher.put(octets).wait().map_err(|error| anyhow!(error))
    };
    let pause = |_: &mut zenoh::pubsub::Publisher<'_>, patience| {
        std::thread::sleep(patience);
        Ok(())
    };
    side::publish(args, &mut publisher, put, pause)
}

fn subscribe(session: &Session, args: &SideArgs) -> Result<PartResult> {
    let (tx, rx) = mpsc::channel();
    let seen = Arc::new(Mutex::new(Seen::new(args)));
    let (of, length) = (Arc::clone(&seen), args.payload);
    let take = move |sample: zenoh::sample::Sample| {
        let octets = sample.payload().to_bytes();
        let mut seen = of.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.take(&octets, length) {
            Ok(false) => {}
            end => drop(tx.send(end)),
        }
    };
    let subscriber = session.declare_subscriber(KEY).callback(take).wait();
    let _subscriber = subscriber.map_err(|error| anyhow!(error))?;
    rx.recv()??;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::replace(&mut *seen, Seen::new(args)).result())
}
