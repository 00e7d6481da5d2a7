//! Services between a generator and a sink: each alone beside a bare relay, the chain that equals a
//! node beside the node, and the verifier beside a loop that only verifies.

use crate::load::LoadResult;
use crate::report::{Report, median};
use anyhow::{Context, Result, ensure};
use clap::Args;
use onym_crypto::{KeyType, PrivateKey, Signer};
use onym_forward::packet::{LpIn, Outbox, Packet};
use onym_services::verify::Job;
use onym_services::{Function, Kind, Method, Now, Port, Request, Side};
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::Buf;
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BENCH: &str = "services";
/// Core of the services and of the relay; the generator has the other.
const SERVICE_CORE: &str = "1";
const LOAD_CORE: &str = "0";

/// Measures the services.
#[derive(Debug, Args)]
pub struct ServicesArgs {
    /// Octets of content.
    #[arg(long, default_value_t = 8192)]
    pub payload: usize,
    /// Interests in flight.
    #[arg(long, default_value_t = 32)]
    pub window: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Rounds; medians are told.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub out: PathBuf,
}

/// A process of this bench; killed when dropped.
struct Running(Child, Value);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program on the services' core and waits until it says that it is ready.
    fn start(program: &Path, args: &[String]) -> Result<Self> {
        let mut child = Command::new("taskset")
            .args(["-c", SERVICE_CORE])
            .arg(program)
            .args(args)
            .env("ONYM_LOG", "warn")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("taskset (util-linux) is needed")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let mut said = String::new();
        let mut reader = BufReader::new(stderr);
        loop {
            let mut line = String::new();
            ensure!(reader.read_line(&mut line)? > 0, "{args:?} did not start: {said}");
            if let Some(rest) = line.strip_prefix("ready") {
                let ready = serde_json::from_str(rest.trim()).unwrap_or(Value::Null);
                // Nobody reads on: it must not fill its pipe.
                std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
                return Ok(Self(child, ready));
            }
            said.push_str(&line);
        }
    }

    fn at(&self, label: &str) -> String {
        let all = self.1["listeners"].as_array();
        let mut all = all.into_iter().flatten();
        let found = all.find(|l| l["label"] == label).and_then(|l| l["uri"].as_str());
        found.unwrap_or_default().to_owned()
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

/// What runs, and between which places the generator stands.
struct Setup {
    running: Vec<Running>,
    consumer: String,
    producer: String,
    register: bool,
    names: &'static str,
}

struct Bed<'a> {
    args: &'a ServicesArgs,
    onym: PathBuf,
    own: PathBuf,
}

const ANY: &str = "tcp4://127.0.0.1:0";

impl Bed<'_> {
    fn service(&self, kind: &str, args: &[&str]) -> Result<Running> {
        Running::start(&self.onym, &[words(&["service", kind]), words(args)].concat())
    }

    /// A service with a listener on either side.
    fn between(&self, kind: &str, sets: &[&str], names: &'static str) -> Result<Setup> {
        let (up, down) = (format!("in={ANY}"), format!("out={ANY},side=producer"));
        let mut args = vec!["--listen", &up, "--listen", &down];
        for set in sets {
            args.extend(["--set", set]);
        }
        let service = self.service(kind, &args)?;
        let (consumer, producer) = (service.at("in"), service.at("out"));
        let register = matches!(kind, "name-router" | "forwarder");
        Ok(Setup { running: vec![service], consumer, producer, register, names })
    }

    fn relay(&self) -> Result<Setup> {
        let place = "tcp4://127.0.0.1:16391";
        let args = words(&["relay", "--unix", place]);
        let running = vec![Running::start(&self.own, &args)?];
        let (consumer, producer) = (place.to_owned(), place.to_owned());
        Ok(Setup { running, consumer, producer, register: false, names: "distinct" })
    }

    fn dispatcher(&self) -> Result<Setup> {
        let sink = "tcp4://127.0.0.1:16392";
        let path = format!("consumer_path={sink}");
        let listen = format!("in={ANY}");
        let service = self.service("packet-dispatcher", &["--listen", &listen, "--set", &path])?;
        let consumer = service.at("in");
        let producer = format!("listen:{sink}");
        Ok(Setup { running: vec![service], consumer, producer, register: false, names: "distinct" })
    }

    fn chain(&self, producer_at_router: bool) -> Result<Setup> {
        let (consumer, producer) =
            (format!("consumer={ANY}"), format!("producer={ANY},side=producer"));
        let open = "registration=open";
        let nr = self.service(
            "name-router",
            &["--listen", &consumer, "--listen", &producer, "--set", open],
        )?;
        let up = format!("up={}", nr.at("consumer"));
        let br = self.service("backward-router", &["--listen", ANY, "--face", &up])?;
        let up = format!("up={}", br.at("in"));
        let cs = self.service("content-store", &["--listen", ANY, "--face", &up])?;
        let (c, p) = (
            format!("consumer_path={}", cs.at("in")),
            format!("producer_path={}", nr.at("producer")),
        );
        let pd = self.service("packet-dispatcher", &["--listen", ANY, "--set", &c, "--set", &p])?;
        let consumer = pd.at("in");
        let producer = if producer_at_router { nr.at("producer") } else { pd.at("in") };
        let running = vec![pd, cs, br, nr];
        Ok(Setup { running, consumer, producer, register: true, names: "distinct" })
    }

    fn daemon(&self) -> Result<Setup> {
        let dir = std::env::temp_dir().join(format!("onym-bench-{}.sock", std::process::id()));
        let socket = format!("faces.unix.path={}", dir.display());
        let tcp = "faces.tcp.listen=127.0.0.1:16393";
        let mut args = words(&["daemon", "--set", &socket, "--set", tcp, "--set", "shards=1"]);
        for off in ["faces.udp.listen=", "faces.websocket.listen=", "log.filter=warn"] {
            args.extend(words(&["--set", off]));
        }
        let place = "tcp4://127.0.0.1:16393".to_owned();
        let running = vec![Running::start(&self.onym, &args)?];
        Ok(Setup {
            running,
            consumer: place.clone(),
            producer: place,
            register: true,
            names: "distinct",
        })
    }

    fn load(&self, setup: &Setup) -> Result<LoadResult> {
        let a = self.args;
        let mut command = Command::new(&self.own);
        command.args(["load", "--consumer", &setup.consumer, "--producer", &setup.producer]);
        command.args(["--payload", &a.payload.to_string(), "--window", &a.window.to_string()]);
        command.args(["--seconds", &a.seconds.to_string(), "--core", LOAD_CORE]);
        command.args(["--names", setup.names]);
        if !setup.register {
            command.arg("--no-register");
        }
        for running in &setup.running {
            command.args(["--watch", &running.0.id().to_string()]);
        }
        let out = command.output()?;
        ensure!(out.status.success(), "load: {}", String::from_utf8_lossy(&out.stderr));
        Ok(serde_json::from_slice(&out.stdout)?)
    }

    /// Medians of some rounds, told and noted.
    fn measure(
        &self,
        report: &mut Report,
        case: &str,
        subject: &'static str,
        setup: impl Fn() -> Result<Setup>,
    ) -> Result<f64> {
        let (mut bps, mut latency, mut cpu, mut lost) = (vec![], vec![], vec![], 0);
        for _ in 0..self.args.rounds {
            let setup = setup().with_context(|| case.to_owned())?;
            let r = self.load(&setup).with_context(|| case.to_owned())?;
            #[allow(clippy::cast_precision_loss)]
            let bits = r.content_octets as f64 * 8.0;
            bps.push(bits / r.seconds);
            latency.push(r.latency_p50_s);
            cpu.push(r.cpu_s.iter().sum::<f64>() / (bits / 1e9));
            lost += r.lost;
        }
        let (bps, latency, cpu) = (median(&bps), median(&latency), median(&cpu));
        let case = format!("{case},payload={},window={}", self.args.payload, self.args.window);
        report.add(BENCH, &case, subject, "goodput_bps", bps);
        report.add(BENCH, &case, subject, "latency_p50_s", latency);
        report.add(BENCH, &case, subject, "cpu_s", cpu);
        #[allow(clippy::cast_precision_loss)]
        report.add(BENCH, &case, subject, "lost", lost as f64);
        let (mbps, ms) = (bps / 1e6, latency * 1e3);
        println!("{case:<52} {mbps:>9.0} Mbit/s {ms:>8.3} ms {cpu:>7.3} CPU s/Gbit  lost {lost}");
        Ok(bps)
    }
}

/// Runs all.
///
/// # Errors
/// When a program does not start or a face breaks.
pub fn run(args: &ServicesArgs) -> Result<()> {
    let own = std::env::current_exe()?;
    let onym = own.with_file_name("onym");
    let bed = Bed { args, onym, own };
    let mut report = Report::default();
    bed.measure(&mut report, "place=one", "relay", || bed.relay())?;
    bed.measure(&mut report, "kind=NR", "onym", || {
        bed.between("name-router", &["registration=open"], "distinct")
    })?;
    bed.measure(&mut report, "kind=BR", "onym", || {
        bed.between("backward-router", &[], "distinct")
    })?;
    bed.measure(&mut report, "kind=PD", "onym", || bed.dispatcher())?;
    for (case, set, names) in [
        ("kind=CS,mode=pass", "capacity=0", "distinct"),
        ("kind=CS,mode=insert", "capacity=65536", "distinct"),
        ("kind=CS,mode=hit", "capacity=65536", "repeated"),
    ] {
        bed.measure(&mut report, case, "onym", || bed.between("content-store", &[set], names))?;
    }
    bed.measure(&mut report, "kind=SF", "onym", || {
        bed.between("strategy-forwarder", &["strategy=round-robin"], "distinct")
    })?;
    bed.measure(&mut report, "kind=NF", "onym", || bed.between("name-filter", &[], "distinct"))?;
    bed.measure(&mut report, "kind=FW", "onym", || {
        bed.between("forwarder", &["registration=open"], "distinct")
    })?;
    bed.measure(&mut report, "chain=preset", "onym", || bed.chain(false))?;
    bed.measure(&mut report, "chain=producer-at-router", "onym", || bed.chain(true))?;
    bed.measure(&mut report, "chain=fused", "onym", || bed.daemon())?;
    for kind in [KeyType::Rsa, KeyType::Ecdsa] {
        verifying(&mut report, kind, args)?;
    }
    report.write(&args.out)
}

/// Signed Data through the element, beside a loop that only verifies them.
fn verifying(report: &mut Report, kind: KeyType, args: &ServicesArgs) -> Result<()> {
    const COUNT: u64 = 256;
    let key = PrivateKey::generate(kind)?;
    let spki = base64_of(key.spki());
    let name: Name = "/bench/KEY/1".parse()?;
    let signer = Signer::key(key, name);
    let content = vec![0x58; args.payload];
    let mut packets = Vec::new();
    for n in 0..COUNT {
        let mut name: Name = "/bench".parse()?;
        name.append_segment(n);
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), &content), &mut wire)?;
        let bytes = Buf::copy_from(&wire);
        packets.push(Packet { face: FaceId(300), bytes, lp: LpIn::default() });
    }
    let now = Now { tick: Tick::from_ms(1000), unix_ms: 1_700_000_000_000 };
    let mut out = Outbox::default();
    let mut sv = Function::new(Kind::SignatureVerifier, HashKey::new(1, 2), 3);
    sv.face_added(now, Port::new(FaceId(256), "in", Side::Consumer), &mut out);
    sv.face_added(now, Port::new(FaceId(300), "out", Side::Producer), &mut out);
    let body = json!({ "add": [{ "name": "/bench/KEY/1", "spki": spki }] });
    let request = Request { method: Method::Post, resource: "keys", query: &[], body: &body };
    sv.control(now, &request, &mut out).map_err(|e| anyhow::anyhow!(e.message))?;
    let job = |sv: &mut Function, packet: &Packet, out: &mut Outbox| -> Option<Job> {
        sv.receive(now, packet.clone(), out);
        sv.jobs().pop()
    };
    let (mut whole, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let part = Duration::from_secs_f64(args.seconds / 2.0);
        whole.push(rate(part, &packets, |packet| {
            let Some(mut job) = job(&mut sv, packet, &mut out) else { return false };
            job.run();
            let verdict = sv.verified(now, job, &mut out);
            out.clear();
            verdict == Some(onym_services::Verdict::Forwarded)
        })?);
        let mut jobs: Vec<Job> = packets.iter().filter_map(|p| job(&mut sv, p, &mut out)).collect();
        let mut at = 0;
        bare.push(rate(part, &packets, |_| {
            at = (at + 1) % jobs.len();
            jobs[at].run();
            jobs[at].valid == Some(true)
        })?);
    }
    #[allow(clippy::cast_precision_loss)]
    let bits = args.payload as f64 * 8.0;
    let case = format!("kind=SV,key={},threads=1,payload={}", kind.word(), args.payload);
    let (whole, bare) = (median(&whole), median(&bare));
    report.add(BENCH, &case, "onym", "exchanges_per_second", whole);
    report.add(BENCH, &case, "onym", "goodput_bps", whole * bits);
    report.add(BENCH, &case, "relay", "exchanges_per_second", bare);
    let (mbps, share) = (whole * bits / 1e6, whole / bare * 100.0);
    println!("{case:<52} {mbps:>9.0} Mbit/s in memory, {share:.1} % of a loop that only verifies");
    Ok(())
}

/// How often per second `work` is done, which must always succeed.
fn rate(time: Duration, packets: &[Packet], mut work: impl FnMut(&Packet) -> bool) -> Result<f64> {
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        for packet in packets {
            ensure!(work(packet), "a good signature was not accepted");
            count += 1;
        }
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
