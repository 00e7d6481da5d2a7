//! One side of the benchmark `blackboard` by iceoryx2: `onym-bench board` starts it.

use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::time::Instant;

type Fault = Box<dyn Error>;

/// First word of the publication that ends a run.
const END: u64 = u64::MAX;

struct Args {
    publisher: bool,
    path: String,
    words: usize,
    subscribers: usize,
    read: String,
    seconds: f64,
    items: u64,
    core: usize,
    /// Publications that a subscriber may be behind.
    depth: usize,
}

fn args() -> Result<Args, Fault> {
    let mut values = HashMap::new();
    let mut publisher = false;
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        if word == "--publisher" {
            publisher = true;
        } else {
            values.insert(word, given.next().ok_or("an option without value")?);
        }
    }
    let get = |name: &str| values.get(name).cloned().ok_or(format!("{name} is missing"));
    Ok(Args {
        publisher,
        path: get("--path")?,
        words: get("--payload")?.parse::<usize>()? / 8,
        subscribers: get("--subscribers")?.parse()?,
        read: get("--read")?,
        seconds: get("--seconds")?.parse()?,
        items: get("--items")?.parse()?,
        core: get("--core")?.parse()?,
        depth: get("--depth")?.parse()?,
    })
}

fn say(line: &str) -> Result<(), Fault> {
    println!("{line}");
    Ok(std::io::stdout().flush()?)
}

fn main() -> Result<(), Fault> {
    let args = args()?;
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(args.core);
    rustix::thread::sched_setaffinity(None, &cores)?;
    set_log_level(LogLevel::Fatal);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node
        .service_builder(&args.path.as_str().try_into()?)
        .publish_subscribe::<[u64]>()
        .max_publishers(1)
        .max_subscribers(args.subscribers)
        .subscriber_max_buffer_size(args.depth)
        .subscriber_max_borrowed_samples(2)
        .history_size(0)
        .enable_safe_overflow(false)
        .max_nodes(args.subscribers + 2)
        .open_or_create()?;
    if args.publisher {
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(args.words)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        say("open")?;
        while service.dynamic_config().number_of_subscribers() < args.subscribers {
            std::thread::yield_now();
        }
        publisher.update_connections()?;
        say("ready")?;
        std::io::stdin().read_line(&mut String::new())?;
        let payload: Vec<u64> = (0..args.words as u64).collect();
        let began = Instant::now();
        let mut count = 0_u64;
        loop {
            let is_late = || count % 64 == 0 && began.elapsed().as_secs_f64() >= args.seconds;
            let is_last = count >= args.items || is_late();
            let mut sample = publisher.loan_slice_uninit(args.words)?;
            let words = sample.payload_mut();
            words[0].write(if is_last { END } else { count });
            if args.read != "head" {
                for (word, value) in words[1..].iter_mut().zip(&payload[1..]) {
                    word.write(*value);
                }
            }
            // SAFETY: written whole, or (when only heads are read) mapped zeroed memory.
            unsafe { sample.assume_init() }.send()?;
            if is_last {
                break;
            }
            count += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        say(&format!("{{\"count\":{count},\"lost\":0,\"seconds\":{seconds}}}"))?;
        // Until the subscribers have left: what they have not received would go with us.
        while service.dynamic_config().number_of_subscribers() > 0 {
            std::thread::yield_now();
        }
        return Ok(());
    }
    let subscriber = service.subscriber_builder().create()?;
    let expected: u64 = (1..args.words as u64).sum();
    // What is sent before the first receive is lost.
    while !subscriber.has_samples()? {
        static READY: std::sync::Once = std::sync::Once::new();
        READY.call_once(|| drop(say("ready")));
        std::thread::yield_now();
    }
    let (mut count, mut lost, began) = (0_u64, 0, Instant::now());
    loop {
        let Some(sample) = subscriber.receive()? else {
            std::thread::yield_now();
            continue;
        };
        let words = sample.payload();
        if words[0] == END {
            break;
        }
        lost += words[0] - count - lost;
        if args.read == "sum" {
            let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
            assert_eq!(sum, expected.wrapping_add(words[0]), "the payload is not what was sent");
        }
        count += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&format!("{{\"count\":{count},\"lost\":{lost},\"seconds\":{seconds}}}"))
}
