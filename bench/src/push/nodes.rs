//! The nodes of each subject, in a line.

use super::{Link, Way};
use crate::part::{Part, rival};
use crate::subject::Subject;
use crate::veth::Namespaces;
use anyhow::{Context, Result, ensure};
use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_sys::port::unused;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NATS: &str = "nats-server";
const MOSQUITTO: &str = "mosquitto";
const PATIENCE: Duration = Duration::from_secs(20);

/// What a subject lacks; `None` when it can run.
pub(super) fn missing(way: Way) -> Option<&'static str> {
    let is_there = match (way, way.rival()) {
        (_, Some(name)) => rival(name).is_ok_and(|program| program.is_some()),
        (Way::Onym, _) => Subject::Onym.program().is_some(),
        (Way::Nats, _) => Command::new(NATS).arg("--version").output().is_ok(),
        (Way::Mqtt, _) => Command::new(MOSQUITTO).arg("-h").output().is_ok(),
        _ => true,
    };
    let what = match way {
        Way::Relay | Way::Frames => "this program",
        Way::Onym => "cargo build --release -p onym",
        Way::Nats => "Debian's package nats-server",
        Way::Mqtt => "Debian's package mosquitto",
        _ => "cargo build --release in bench/rivals",
    };
    (!is_there).then_some(what)
}

/// A process that is ended when dropped.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nodes that are joined to a chain.
#[derive(Debug)]
pub(crate) struct Nodes {
    way: Way,
    places: Vec<String>,
    processes: Vec<Process>,
    parts: Vec<Part>,
    folder: TempDir,
    namespaces: Option<Namespaces>,
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !done() {
        ensure!(began.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

impl Nodes {
    /// Starts a star of `count` nodes of ours, the first one in the middle.
    ///
    /// # Errors
    /// When one does not start.
    pub(crate) fn star(count: usize) -> Result<Self> {
        let mut nodes = Self::none(Way::Onym)?;
        nodes.onym(count, Link::Tcp, Shape::Star)?;
        Ok(nodes)
    }

    fn none(way: Way) -> Result<Self> {
        let (places, processes, parts) = (Vec::new(), Vec::new(), Vec::new());
        let (folder, namespaces) = (tempfile::tempdir()?, None);
        Ok(Self { way, places, processes, parts, folder, namespaces })
    }

    /// Starts a chain of `count` nodes and waits until they know each other.
    ///
    /// # Errors
    /// When one does not start.
    pub(crate) fn start(way: Way, count: usize, link: Link, payload: usize) -> Result<Self> {
        let mut nodes = Self::none(way)?;
        match way {
            Way::Relay => nodes.relays(count, payload)?,
            Way::Frames => nodes.frames_relays(count, link, payload)?,
            Way::Onym => nodes.onym(count, link, Shape::Chain)?,
            Way::Zenoh => nodes.zenoh(count)?,
            // The publisher listens itself.
            Way::ZenohPeer => {
                nodes.places.extend(unused(1)?.iter().map(|port| format!("peer/127.0.0.1:{port}")));
            }
            Way::Iceoryx2 | Way::Iceoryx2Poll => nodes.services(),
            Way::Nats => nodes.nats(count)?,
            Way::Mqtt => nodes.mosquitto(count)?,
        }
        Ok(nodes)
    }

    /// Where applications connect to.
    pub(crate) fn places(&self) -> &[String] {
        &self.places
    }

    fn process(&mut self, mut command: Command, log: &str) -> Result<()> {
        let log = fs::File::create(self.folder.path().join(log))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let program = command.get_program().to_owned();
        let child = command.spawn().with_context(|| program.display().to_string())?;
        self.processes.push(Process(child));
        Ok(())
    }

    fn onym(&mut self, count: usize, link: Link, shape: Shape) -> Result<()> {
        let program = Subject::Onym.program().context("onym is not built")?;
        let ports = unused(count)?;
        let folder = self.folder.path().to_owned();
        if link == Link::Veth {
            self.namespaces = Some(Namespaces::new(count)?);
        }
        for at in 0..count {
            let socket = folder.join(format!("{at}.sock"));
            let config = folder.join(format!("{at}.toml"));
            fs::write(&config, onym_config(link, shape, &ports, at, &socket))?;
            let mut command = match &self.namespaces {
                Some(namespaces) => namespaces.command(at, &program),
                None => Command::new(&program),
            };
            command.args(["daemon", "--config"]).arg(&config);
            self.process(command, &format!("{at}.log"))?;
            self.places.push(format!("unix://{}", socket.display()));
        }
        // The others hear of the rendezvous over their links.
        wait_until("the link between the nodes", || {
            let home = |node: &str| Some(status(node).ok()?["homes"].as_array()?.len());
            self.places.iter().all(|node| home(node).is_some_and(|homes| homes > 0))
        })
    }

    /// The last one first: each connects to the one behind it.
    fn relays(&mut self, count: usize, payload: usize) -> Result<()> {
        let program = std::env::current_exe()?;
        let ports = unused(count)?;
        for (at, port) in ports.iter().enumerate().rev() {
            let socket = self.folder.path().join(format!("{at}.sock")).display().to_string();
            let mut command = Command::new(&program);
            command.args(["push-part", "--way", "relay", "--role", "node", "--at", &socket]);
            command.args(["--payload", &payload.to_string()]);
            if at > 0 {
                command.args(["--listen", &format!("127.0.0.1:{port}")]);
            }
            if let Some(next) = ports.get(at + 1) {
                command.args(["--next", &format!("127.0.0.1:{next}")]);
            }
            let mut part = Part::start(command)?;
            part.wait_for("ready")?;
            self.parts.push(part);
            self.places.insert(0, socket);
        }
        Ok(())
    }

    /// The last one first, for TCP.
    fn frames_relays(&mut self, count: usize, link: Link, payload: usize) -> Result<()> {
        let program = std::env::current_exe()?;
        let ports = unused(2 * count)?;
        if link == Link::Veth {
            self.namespaces = Some(Namespaces::new(count)?);
        }
        // The end of relay `at` toward its neighbour `other`: the even port is toward the one before.
        let end = |at: usize, other: usize| {
            format!("{}:{}", host(link, at, other), ports[2 * at + usize::from(other > at)])
        };
        for at in (0..count).rev() {
            let socket = self.folder.path().join(format!("{at}.sock")).display().to_string();
            let mut command = match &self.namespaces {
                Some(namespaces) => namespaces.command(at, &program),
                None => Command::new(&program),
            };
            command.args(["push-part", "--way", "frames", "--role", "node", "--at", &socket]);
            command.args(["--payload", &payload.to_string()]);
            let is_udp = link != Link::Tcp;
            if let Some(before) = at.checked_sub(1) {
                command.args(["--listen", &end(at, before)]);
                if is_udp {
                    command.args(["--before", &end(before, at)]);
                }
            }
            if at + 1 < count {
                command.args(["--next", &end(at + 1, at)]);
                if is_udp {
                    command.args(["--own", &end(at, at + 1)]);
                }
            }
            let mut part = Part::start(command)?;
            part.wait_for("ready")?;
            self.parts.push(part);
            self.places.insert(0, socket);
        }
        Ok(())
    }

    fn zenoh(&mut self, count: usize) -> Result<()> {
        let name = Way::Zenoh.rival().context("it has a program")?;
        let program = rival(name)?.with_context(|| format!("{name} is not built"))?;
        for port in unused(count)? {
            let end = format!("tcp/127.0.0.1:{port}");
            let mut command = Command::new(&program);
            command.args(["router", "--listen", &end]);
            if let Some(before) = self.places.last() {
                command.args(["--connect", before]);
            }
            let mut part = Part::start(command)?;
            part.wait_for("ready")?;
            self.parts.push(part);
            self.places.push(end);
        }
        Ok(())
    }

    /// The name of a service, which is for all of the machine, and has to be another one in each run.
    fn services(&mut self) {
        let run = self.folder.path().file_name().unwrap_or_default().display();
        let looks = if self.way == Way::Iceoryx2Poll { "poll/" } else { "" };
        self.places.push(format!("{looks}onym-bench/{run}"));
    }

    /// Servers of a NATS cluster are all joined to each other: more than two are no chain.
    fn nats(&mut self, count: usize) -> Result<()> {
        let ports = unused(4)?;
        for at in 0..count.min(2) {
            let mut command = Command::new(NATS);
            command.args(["-a", "127.0.0.1", "-p", &ports[at].to_string()]);
            command.args(["--cluster_name", "bench", "--cluster"]);
            command.arg(format!("nats://127.0.0.1:{}", ports[2 + at]));
            if at == 1 {
                command.arg("--routes").arg(format!("nats://127.0.0.1:{}", ports[2]));
            }
            self.process(command, &format!("{at}.log"))?;
            self.places.push(format!("127.0.0.1:{}", ports[at]));
        }
        wait_until("a NATS server", || self.places.iter().all(|at| TcpStream::connect(at).is_ok()))
    }

    /// Each has a bridge to the one before.
    fn mosquitto(&mut self, count: usize) -> Result<()> {
        let ports = unused(count)?;
        for at in 0..count {
            let mut config = format!(
                "listener {} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n",
                ports[at]
            );
            if let Some(before) = at.checked_sub(1) {
                let before = ports[before];
                config += &format!(
                    "connection bridge{at}\naddress 127.0.0.1:{before}\ntopic bench in 0\nrestart_timeout 1\n"
                );
            }
            let path = self.folder.path().join(format!("{at}.conf"));
            fs::write(&path, config)?;
            let mut command = Command::new(MOSQUITTO);
            command.arg("-c").arg(&path);
            self.process(command, &format!("{at}.log"))?;
            let place = format!("127.0.0.1:{}", ports[at]);
            wait_until("an MQTT broker", || TcpStream::connect(&place).is_ok())?;
            self.places.push(place);
        }
        Ok(())
    }

    /// Frames of the push half that the last node received until now, where it tells.
    pub(super) fn frames(&self) -> Result<Option<u64>> {
        if self.way != Way::Onym {
            return Ok(None);
        }
        Ok(status(self.places.last().context("no node")?)?["received"].as_u64())
    }
}

/// What a node says of its push half.
fn status(node: &str) -> Result<serde_json::Value> {
    let options = ClientOptions { node: Some(node.to_owned()), ..ClientOptions::default() };
    let mut client = Client::open(options)?;
    let text = mgmt::fetch_dataset(&mut client, "/localhost/onym/push/status".parse()?)?;
    Ok(serde_json::from_slice(&text)?)
}

/// How our nodes are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Chain,
    Star,
}

impl Shape {
    /// The nodes that connect to node `at`, and those that it connects to.
    fn neighbours(self, at: usize, count: usize) -> (Vec<usize>, Vec<usize>) {
        let next = if at + 1 < count { vec![at + 1] } else { Vec::new() };
        match self {
            Self::Chain => (at.checked_sub(1).into_iter().collect(), next),
            Self::Star if at == 0 => (Vec::new(), (1..count).collect()),
            Self::Star => (vec![0], Vec::new()),
        }
    }
}

/// The address of node `at` toward its neighbour `other`.
fn host(link: Link, at: usize, other: usize) -> String {
    match link {
        Link::Veth => Namespaces::address(at, other),
        Link::Udp | Link::Tcp => "127.0.0.1".to_owned(),
    }
}

fn onym_config(link: Link, shape: Shape, ports: &[u16], at: usize, socket: &Path) -> String {
    let scheme = if link == Link::Tcp { "tcp4" } else { "udp4" };
    let (before, behind) = shape.neighbours(at, ports.len());
    let mut ends: Vec<String> = before
        .iter()
        .chain(&behind)
        .map(|other| format!("\"{}:{}\"", host(link, at, *other), ports[at]))
        .collect();
    ends.dedup();
    let ends = ends.join(", ");
    let (udp, tcp) = if link == Link::Tcp { ("", &ends[..]) } else { (&ends[..], "") };
    let mut links = String::new();
    for node in before {
        // Over TCP the node before this one connects.
        let port = if link == Link::Tcp { 0 } else { ports[node] };
        let there = host(link, node, at);
        links += &format!("[[push.link]]\nface = \"{scheme}://{there}:{port}\"\n");
    }
    for node in behind {
        let there = host(link, node, at);
        links += &format!("[[push.link]]\nface = \"{scheme}://{there}:{}\"\n", ports[node]);
    }
    let roles = if at == 0 { "[\"rendezvous\", \"topology\"]" } else { "[]" };
    format!(
        "shards = 1\n\
         [faces.unix]\npath = \"{socket}\"\n\
         [faces.udp]\nlisten = [{udp}]\n\
         [faces.tcp]\nlisten = [{tcp}]\n\
         [faces.websocket]\nlisten = []\n\
         [push]\nenabled = true\nnode = \"{node}\"\nroles = {roles}\nframe_bytes_max = 8800\n\
         {links}",
        socket = socket.display(),
        node = at + 1,
    )
}
