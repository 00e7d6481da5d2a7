//! Services as processes with a generator around them.

use super::{ServicesArgs, verify};
use crate::load::{LoadResult, SIGNER};
use anyhow::{Context, Result, ensure};
use onym_crypto::{KeyType, PrivateKey};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Core of a service alone and of the relay; the generator has the other.
const SERVICE_CORE: &str = "1";
const LOAD_CORE: &str = "0";
/// Several services, several threads, and the generator beside them have both.
const BOTH: &str = "0,1";
/// Packets in a cache that keeps every Data: so few that it is full before the measurement.
pub(super) const CACHE: usize = 8192;
/// A free port of loopback.
const ANY: &str = "tcp4://127.0.0.1:0";

/// A process of this bench; killed when dropped.
#[derive(Debug)]
struct Running(Child, Value);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program on some cores and waits until it says that it is ready.
    fn start(program: &Path, cores: &str, args: &[String]) -> Result<Self> {
        let mut child = Command::new("taskset")
            .args(["-c", cores])
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

    /// Asks the control interface.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let url = self.1["control"].as_str().context("no control interface")?;
        let place = url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(place)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut answer = String::new();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{method} {path}: {answer}");
        let (_, said) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        Ok(serde_json::from_str(said)?)
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

/// What runs, and between which places the generator stands.
#[derive(Debug, Default)]
pub(super) struct Setup {
    running: Vec<Running>,
    consumer: String,
    producer: String,
    register: bool,
    /// The generator has both cores too.
    spread: bool,
    /// Further words for the generator.
    load: Vec<String>,
}

impl Setup {
    /// The same with further words for the generator.
    pub(super) fn asked(mut self, load: &[&str]) -> Self {
        self.load.extend(words(load));
        self
    }
}

/// What all setups need.
#[derive(Debug)]
pub(super) struct Bed<'a> {
    pub(super) args: &'a ServicesArgs,
    onym: PathBuf,
    own: PathBuf,
    folder: tempfile::TempDir,
}

impl<'a> Bed<'a> {
    pub(super) fn new(args: &'a ServicesArgs) -> Result<Self> {
        let own = std::env::current_exe()?;
        let onym = args.onym.clone().unwrap_or_else(|| own.with_file_name("onym"));
        Ok(Self { args, onym, own, folder: tempfile::tempdir()? })
    }

    fn service_on(&self, cores: &str, kind: &str, args: &[&str]) -> Result<Running> {
        Running::start(&self.onym, cores, &[words(&["service", kind]), words(args)].concat())
    }

    fn service(&self, kind: &str, args: &[&str]) -> Result<Running> {
        self.service_on(SERVICE_CORE, kind, args)
    }

    /// A service with a listener on either side.
    pub(super) fn between(&self, kind: &str, sets: &[&str]) -> Result<Setup> {
        self.between_on(SERVICE_CORE, kind, sets)
    }

    /// A content store of so many packets.
    pub(super) fn store(&self, capacity: usize) -> Result<Setup> {
        self.between("content-store", &[&format!("capacity={capacity}")])
    }

    fn between_on(&self, cores: &str, kind: &str, sets: &[&str]) -> Result<Setup> {
        let (up, down) = (format!("in={ANY}"), format!("out={ANY},side=producer"));
        let mut args = vec!["--listen", &up, "--listen", &down];
        for set in sets {
            args.extend(["--set", set]);
        }
        let service = self.service_on(cores, kind, &args)?;
        let (consumer, producer) = (service.at("in"), service.at("out"));
        let register = matches!(kind, "name-router" | "forwarder");
        Ok(Setup { running: vec![service], consumer, producer, register, ..Setup::default() })
    }

    /// A verifier that knows the generator's key. One of several threads may use both cores.
    pub(super) fn verifier(&self, kind: KeyType, threads: u32) -> Result<Setup> {
        let file = self.folder.path().join(kind.word());
        if !file.exists() {
            std::fs::write(&file, PrivateKey::generate(kind)?.to_pkcs8()?)?;
        }
        let key = PrivateKey::from_pkcs8(&std::fs::read(&file)?)?;
        let threads = format!("threads={threads}");
        let spread = threads != "threads=1";
        let cores = if spread { BOTH } else { SERVICE_CORE };
        let mut setup = self.between_on(cores, "signature-verifier", &[&threads])?;
        setup.spread = spread;
        let spki = verify::base64_of(key.spki());
        let body = json!({ "add": [{ "name": SIGNER, "spki": spki, "prefixes": ["/onym"] }] });
        setup.running[0].ask("POST", "/v1/keys", &body)?;
        Ok(setup.asked(&["--names", "repeated", "--set", "512", "--key", &file.to_string_lossy()]))
    }

    pub(super) fn relay(&self) -> Result<Setup> {
        let place = "tcp4://127.0.0.1:16391";
        let args = words(&["relay", "--unix", place]);
        let running = vec![Running::start(&self.own, SERVICE_CORE, &args)?];
        let (consumer, producer) = (place.to_owned(), place.to_owned());
        Ok(Setup { running, consumer, producer, ..Setup::default() })
    }

    pub(super) fn dispatcher(&self) -> Result<Setup> {
        let sink = "tcp4://127.0.0.1:16392";
        let path = format!("consumer_path={sink}");
        let listen = format!("in={ANY}");
        let service = self.service("packet-dispatcher", &["--listen", &listen, "--set", &path])?;
        let consumer = service.at("in");
        let producer = format!("listen:{sink}");
        Ok(Setup { running: vec![service], consumer, producer, ..Setup::default() })
    }

    pub(super) fn chain(&self, producer_at_router: bool) -> Result<Setup> {
        let (consumer, producer) =
            (format!("consumer={ANY}"), format!("producer={ANY},side=producer"));
        let open = "registration=open";
        let nr = self.service_on(
            BOTH,
            "name-router",
            &["--listen", &consumer, "--listen", &producer, "--set", open],
        )?;
        let listen = format!("in={ANY}");
        let up = format!("up={}", nr.at("consumer"));
        let br = self.service_on(BOTH, "backward-router", &["--listen", &listen, "--face", &up])?;
        let up = format!("up={}", br.at("in"));
        let cs = self.service_on(
            BOTH,
            "content-store",
            &["--listen", &listen, "--face", &up, "--set", &format!("capacity={CACHE}")],
        )?;
        let (c, p) = (
            format!("consumer_path={}", cs.at("in")),
            format!("producer_path={}", nr.at("producer")),
        );
        let pd = self.service_on(
            BOTH,
            "packet-dispatcher",
            &["--listen", &listen, "--set", &c, "--set", &p],
        )?;
        let consumer = pd.at("in");
        let producer = if producer_at_router { nr.at("producer") } else { pd.at("in") };
        Ok(Setup {
            running: vec![pd, cs, br, nr],
            consumer,
            producer,
            register: true,
            spread: true,
            ..Setup::default()
        })
    }

    pub(super) fn daemon(&self) -> Result<Setup> {
        let socket = format!("faces.unix.path={}", self.folder.path().join("sock").display());
        let tcp = "faces.tcp.listen=127.0.0.1:16393";
        let mut args = words(&["daemon", "--set", &socket, "--set", tcp, "--set", "shards=1"]);
        let cache = format!("cs.packets_max={CACHE}");
        for set in ["faces.udp.listen=", "faces.websocket.listen=", "log.filter=warn", &cache] {
            args.extend(words(&["--set", set]));
        }
        let place = "tcp4://127.0.0.1:16393".to_owned();
        let running = vec![Running::start(&self.onym, BOTH, &args)?];
        Ok(Setup {
            running,
            consumer: place.clone(),
            producer: place,
            register: true,
            spread: true,
            ..Setup::default()
        })
    }

    /// Verifications a second of the time that the threads of a verifier spent verifying.
    pub(super) fn verifications(&self, setup: &Setup) -> Result<f64> {
        let verifier = setup.running.first().context("no verifier runs")?;
        let said = verifier.ask("GET", "/v1/stats", &Value::Null)?;
        let stats = &said["signature_verifier"];
        let (count, time) = (stats["valid"].as_f64(), stats["verify_ns"].as_f64());
        let (count, time) = count.zip(time).context("a verifier without statistics")?;
        Ok(count / time * 1e9)
    }

    /// Runs the generator around a setup.
    pub(super) fn load(&self, setup: &Setup) -> Result<LoadResult> {
        let a = self.args;
        let mut command = Command::new(&self.own);
        command.args(["load", "--consumer", &setup.consumer, "--producer", &setup.producer]);
        command.args(["--payload", &a.payload.to_string(), "--window", &a.window.to_string()]);
        command.args(["--seconds", &a.seconds.to_string()]).args(&setup.load);
        if !setup.spread {
            command.args(["--core", LOAD_CORE]);
        }
        if !setup.register {
            command.arg("--no-register");
        }
        for running in &setup.running {
            command.args(["--watch", &running.0.id().to_string()]);
        }
        let out = command.output()?;
        ensure!(out.status.success(), "load: {}", String::from_utf8_lossy(&out.stderr));
        let result: LoadResult = serde_json::from_slice(&out.stdout)?;
        ensure!(result.exchanges > 0, "nothing was answered");
        Ok(result)
    }
}
