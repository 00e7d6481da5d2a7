//! Router, publisher or subscriber of the benchmark `push` by Zenoh: `onym-bench push` starts it.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use zenoh::qos::CongestionControl;
use zenoh::{Config, Wait};

type Fault = Box<dyn Error + Send + Sync>;

/// First word of publications that end a run, and of those before it; others count from 0.
const END: u64 = u64::MAX;
const PROBE: u64 = u64::MAX - 1;
const KEY: &str = "bench/item";

fn say(line: &str) -> Result<(), Fault> {
    println!("{line}");
    Ok(std::io::stdout().flush()?)
}

fn config(mode: &str, listen: Option<&String>, connect: Option<&String>) -> Result<Config, Fault> {
    let list = |end: Option<&String>| end.map_or("[]".into(), |end| format!("[\"{end}\"]"));
    let mut config = Config::default();
    config.insert_json5("mode", &format!("\"{mode}\""))?;
    config.insert_json5("listen/endpoints", &list(listen))?;
    config.insert_json5("connect/endpoints", &list(connect))?;
    config.insert_json5("scouting/multicast/enabled", "false")?;
    config.insert_json5("scouting/gossip/enabled", "false")?;
    Ok(config)
}

fn main() -> Result<(), Fault> {
    let mut values = HashMap::new();
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        values.insert(word, given.next().ok_or("an option without value")?);
    }
    let get = |name: &str| values.get(name).ok_or(format!("{name} is missing"));
    let role = get("--role")?.as_str();
    if role == "router" {
        let config = config("router", values.get("--listen"), values.get("--connect"))?;
        let _session = zenoh::open(config).wait()?;
        say("ready")?;
        loop {
            std::thread::park();
        }
    }
    let payload: usize = get("--payload")?.parse()?;
    let session = zenoh::open(config("client", None, Some(get("--at")?))?).wait()?;
    if role == "publisher" {
        publish(&session, payload, get("--seconds")?.parse()?)
    } else {
        subscribe(&session, payload)
    }
}

fn publish(session: &zenoh::Session, payload: usize, seconds: f64) -> Result<(), Fault> {
    let publisher =
        session.declare_publisher(KEY).congestion_control(CongestionControl::Block).wait()?;
    let mut octets = vec![7_u8; payload];
    let mut put = |number: u64| {
        octets[..8].copy_from_slice(&number.to_le_bytes());
        publisher.put(octets.as_slice()).wait()
    };
    let go = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&go);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        told.store(true, Ordering::Relaxed);
    });
    say("open")?;
    while !go.load(Ordering::Relaxed) {
        put(PROBE)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    let (mut count, began) = (0_u64, Instant::now());
    while count % 64 != 0 || began.elapsed().as_secs_f64() < seconds {
        put(count)?;
        count += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&format!("{{\"count\":{count},\"told\":0,\"seconds\":{seconds}}}"))?;
    loop {
        put(END)?;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What a subscriber has seen.
#[derive(Default)]
struct Seen {
    count: u64,
    began: Option<Instant>,
    last: Option<Instant>,
    is_ready: bool,
}

fn subscribe(session: &zenoh::Session, payload: usize) -> Result<(), Fault> {
    let (tx, rx) = mpsc::channel();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let of = Arc::clone(&seen);
    let take = move |sample: zenoh::sample::Sample| {
        let octets = sample.payload().to_bytes();
        assert_eq!(octets.len(), payload, "the payload is not what was sent");
        let number = u64::from_le_bytes(octets[..8].try_into().expect("eight octets"));
        let mut seen = of.lock().expect("not poisoned");
        match number {
            PROBE if seen.is_ready => {}
            PROBE => {
                seen.is_ready = true;
                let _ = say("ready");
            }
            END => drop(tx.send(())),
            _ => {
                if seen.began.is_none() {
                    seen.began = Some(Instant::now());
                }
                seen.count += 1;
                if seen.count % 64 == 0 {
                    seen.last = Some(Instant::now());
                }
            }
        }
    };
    let _subscriber = session.declare_subscriber(KEY).callback(take).wait()?;
    rx.recv()?;
    let seen = seen.lock().expect("not poisoned");
    let seconds = match (seen.began, seen.last) {
        (Some(began), Some(last)) => last.duration_since(began).as_secs_f64(),
        _ => 0.0,
    };
    say(&format!("{{\"count\":{},\"told\":0,\"seconds\":{seconds}}}", seen.count))
}
