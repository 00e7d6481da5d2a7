//! Publisher or subscriber of the benchmark `push` by iceoryx2: `onym-bench push` starts it.

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

use anyhow::{Result, anyhow, bail};
use clap::Parser;
use iceoryx2::prelude::*;
use side::{PartResult, Seen, SideArgs};
use std::fmt::Debug;
use std::time::Duration;

/// Of a place: its subscribers look again and again and do not sleep.
const POLL: &str = "poll/";
/// Publications that a subscriber may be behind before the publisher waits.
const DEPTH: usize = 1024;
const SUBSCRIBERS_MAX: usize = 128;
/// After which a subscriber looks without having been woken.
const LOOK: Duration = Duration::from_secs(1);

/// Which part.
#[derive(Debug, Parser)]
enum Args {
    Publisher(Side),
    Subscriber(Side),
}

#[derive(Debug, clap::Args)]
struct Side {
    /// The name of its service.
    #[arg(long)]
    at: String,
    #[command(flatten)]
    side: SideArgs,
}

fn wrong(error: impl Debug) -> anyhow::Error {
    anyhow!("iceoryx2: {error:?}")
}

type Samples =
    iceoryx2::service::port_factory::publish_subscribe::PortFactory<ipc::Service, [u8], ()>;
type Wakes = iceoryx2::service::port_factory::event::PortFactory<ipc::Service>;

/// What carries publications, and what wakes subscribers; none: nothing does.
fn services(node: &Node<ipc::Service>, at: &str) -> Result<(Samples, Option<Wakes>)> {
    let name = at.strip_prefix(POLL).unwrap_or(at);
    let samples = node
        .service_builder(&name.try_into().map_err(wrong)?)
        .publish_subscribe::<[u8]>()
        .max_publishers(1)
        .max_subscribers(SUBSCRIBERS_MAX)
        .subscriber_max_buffer_size(DEPTH)
        .history_size(0)
        .enable_safe_overflow(false)
        .max_nodes(SUBSCRIBERS_MAX + 2)
        .open_or_create()
        .map_err(wrong)?;
    if at.starts_with(POLL) {
        return Ok((samples, None));
    }
    let wakes = node
        .service_builder(&format!("{name}/wake").as_str().try_into().map_err(wrong)?)
        .event()
        .max_listeners(SUBSCRIBERS_MAX)
        .max_nodes(SUBSCRIBERS_MAX + 2)
        .open_or_create()
        .map_err(wrong)?;
    Ok((samples, Some(wakes)))
}

fn main() -> Result<()> {
    set_log_level(LogLevel::Fatal);
    let node = NodeBuilder::new().create::<ipc::Service>().map_err(wrong)?;
    let result = match Args::parse() {
        Args::Publisher(Side { at, side }) => publish(services(&node, &at)?, &side)?,
        Args::Subscriber(Side { at, side }) => subscribe(services(&node, &at)?, &side)?,
    };
    part::say(&serde_json::to_string(&result)?)
}

fn publish((samples, wakes): (Samples, Option<Wakes>), args: &SideArgs) -> Result<PartResult> {
    let publisher = samples
        .publisher_builder()
        .initial_max_slice_len(args.payload)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .map_err(wrong)?;
    let notifier =
        wakes.map(|wakes| wakes.notifier_builder().create()).transpose().map_err(wrong)?;
    let mut to = (publisher, notifier);
    side::publish(
        args,
        &mut to,
        |(publisher, notifier), octets| {
            let sample = publisher.loan_slice_uninit(octets.len()).map_err(wrong)?;
            sample.write_from_slice(octets).send().map_err(wrong)?;
            if let Some(notifier) = notifier {
                // Who cannot be woken any more is awake.
                let _ = notifier.notify();
            }
            Ok(())
        },
        |_, patience| {
            std::thread::sleep(patience);
            Ok(())
        },
    )
}

fn subscribe((samples, wakes): (Samples, Option<Wakes>), args: &SideArgs) -> Result<PartResult> {
    let listener =
        wakes.map(|wakes| wakes.listener_builder().create()).transpose().map_err(wrong)?;
    let subscriber = samples.subscriber_builder().create().map_err(wrong)?;
    let mut seen = Seen::new(args);
    loop {
        while let Some(sample) = subscriber.receive().map_err(wrong)? {
            if seen.take(sample.payload(), args.payload)? {
                return Ok(seen.result());
            }
        }
        match &listener {
            None => std::thread::yield_now(),
            Some(listener) => match listener.timed_wait(|_| {}, LOOK) {
                Ok(_) => {}
                Err(error) => bail!("iceoryx2: {error:?}"),
            },
        }
    }
}
