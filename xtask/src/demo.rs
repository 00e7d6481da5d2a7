//! The main job, shown: three nodes in a line, a file published on one end and fetched on the other.
//!
//! Nodes live in network namespaces of a namespace made for the run, so that nothing is left behind
//! when it ends, however it ends. Without root the same is tried in a user namespace; where the
//! system forbids that too, three daemons on loopback do, and the run says so.

use crate::tidy;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const NAME: &str = "/demo/file";
const MARK: &str = "ONYM_DEMO_INSIDE";
const READY_WITHIN: Duration = Duration::from_secs(15);

/// Where the nodes run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Namespaces,
    Loopback,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut size_mb = 100;
    let mut place = Place::Namespaces;
    let mut program = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--size" => {
                let text = words.next().context("--size needs a number of megabytes")?;
                size_mb = text.parse().with_context(|| format!("--size {text}"))?;
            }
            "--loopback" => place = Place::Loopback,
            "--program" => {
                program = Some(PathBuf::from(words.next().context("--program needs a path")?));
            }
            other => {
                bail!("{other}: the demonstration takes --size MB, --program PATH and --loopback")
            }
        }
    }
    if place == Place::Namespaces && std::env::var_os(MARK).is_none() {
        if let Some(status) = inside_namespaces(arguments)? {
            std::process::exit(status);
        }
        println!("This system allows no network namespaces here: three nodes on loopback instead.");
        place = Place::Loopback;
    }
    Demo::new(place, size_mb, program.map_or_else(released, Ok)?)?.run()
}

/// The program of the release build.
fn released() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| tidy::root().map(|r| r.join("target")), |t| Ok(PathBuf::from(t)))?;
    Ok(target.join("release/onym"))
}

/// Runs the demonstration again inside namespaces of its own; `None` when they cannot be had.
fn inside_namespaces(arguments: &[String]) -> Result<Option<i32>> {
    let root = Command::new("id").arg("-u").output()?.stdout == b"0\n";
    let mut flags = vec!["--net", "--mount", "--fork", "--kill-child"];
    if !root {
        flags.splice(0..0, ["--user", "--map-root-user"]);
    }
    // What `ip netns add` needs: a /run of our own and the right to make namespaces and veth.
    let probe = "mount -t tmpfs none /run && ip netns add onym-probe && \
                 ip link add p0 type veth peer name p1 && ip link set p1 netns onym-probe";
    let possible = Command::new("unshare")
        .args(&flags)
        .args(["sh", "-c", probe])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|o| o.status.success());
    if !possible {
        return Ok(None);
    }
    let status = Command::new("unshare")
        .args(&flags)
        .args(["sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "demo"])
        .arg(std::env::current_exe()?)
        .arg("demo")
        .args(arguments)
        .env(MARK, "1")
        .status()
        .context("unshare")?;
    Ok(Some(status.code().unwrap_or(1)))
}

/// One node of the line.
struct Node {
    name: &'static str,
    socket: PathBuf,
    /// UDP addresses by which its neighbours reach it.
    listen: Vec<String>,
    child: Child,
    /// Counters when the second fetch began.
    before: Value,
}

struct Demo {
    place: Place,
    size_mb: u64,
    onym: PathBuf,
    folder: tempdir::Folder,
    nodes: Vec<Node>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            end(&mut node.child);
        }
    }
}

/// Ends a program that this run started: politely, then surely.
fn end(child: &mut Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    let deadline = Instant::now() + Duration::from_secs(3);
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::yield_now();
    }
    let _ = child.kill();
    let _ = child.wait();
}

impl Demo {
    fn new(place: Place, size_mb: u64, onym: PathBuf) -> Result<Self> {
        ensure!(
            onym.exists(),
            "{} is not there: `make build` makes target/release/onym",
            onym.display()
        );
        Ok(Self { place, size_mb, onym, folder: tempdir::Folder::new(place)?, nodes: Vec::new() })
    }

    fn run(&mut self) -> Result<()> {
        println!(
            "Three nodes in a line: n1 - n2 - n3, {}.",
            match self.place {
                Place::Namespaces => "each in a network namespace of its own, joined by veth",
                Place::Loopback => "three daemons on loopback",
            }
        );
        if self.place == Place::Namespaces {
            links()?;
        }
        self.start_nodes()?;
        self.connect()?;
        let (file, digest) = self.make_file()?;
        println!(
            "n3 publishes {NAME}: {} MB of random bytes, SHA-256 {}…",
            self.size_mb,
            &digest[..16]
        );
        let mut publisher = self.publish(&file)?;
        let result = self.fetch_twice(&digest);
        end(&mut publisher);
        result?;
        self.tables()?;
        println!("Everything was ended and removed; nothing stays behind.");
        Ok(())
    }

    fn start_nodes(&mut self) -> Result<()> {
        for (index, name) in ["n1", "n2", "n3"].into_iter().enumerate() {
            let socket = self.folder.path().join(format!("{name}.sock"));
            let listen = self.addresses(index)?;
            let list = listen.iter().map(|a| format!("\"{a}\"")).collect::<Vec<_>>().join(",");
            let mut command = self.on(name, &self.onym);
            command.arg("daemon");
            for setting in [
                format!("faces.unix.path=\"{}\"", socket.display()),
                format!("faces.udp.listen=[{list}]"),
                "faces.tcp.listen=[]".into(),
                "faces.websocket.listen=[]".into(),
                format!("cs.bytes_max={}", (self.size_mb + 64) * 2_000_000),
            ] {
                command.arg("--set").arg(setting);
            }
            let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let pipe = child.stderr.take().context("standard error is not piped")?;
            self.nodes.push(Node { name, socket, listen, child, before: Value::Null });
            wait_for_line(pipe, "ready").with_context(|| format!("node {name}"))?;
        }
        Ok(())
    }

    /// UDP addresses of node `index`: one on each of its links.
    fn addresses(&self, index: usize) -> Result<Vec<String>> {
        if self.place == Place::Loopback {
            let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
            return Ok(vec![format!("127.0.0.1:{port}")]);
        }
        Ok(match index {
            0 => vec!["10.81.1.1:6363".into()],
            1 => vec!["10.81.1.2:6363".into(), "10.81.2.2:6363".into()],
            _ => vec!["10.81.2.3:6363".into()],
        })
    }

    /// A command that runs where the node `name` lives.
    fn on(&self, name: &str, program: &Path) -> Command {
        if self.place == Place::Loopback {
            return Command::new(program);
        }
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{name}")).arg(program);
        command
    }

    /// Routes toward the publisher: n1 asks n2, n2 asks n3.
    fn connect(&self) -> Result<()> {
        for (from, to) in [(0, 1), (1, 2)] {
            let address = &self.nodes[to].listen[0];
            let address = match (self.place, to) {
                (Place::Namespaces, 2) => "10.81.2.3:6363".to_owned(),
                _ => address.clone(),
            };
            let uri = format!("udp4://{address}");
            self.onym(from, &["face", "create", &uri])?;
            self.onym(from, &["route", "add", "/demo", "--via", &uri])?;
        }
        Ok(())
    }

    /// Runs one `onym` command at a node and returns what it printed.
    fn onym(&self, at: usize, words: &[&str]) -> Result<String> {
        let node = &self.nodes[at];
        let out = self
            .on(node.name, &self.onym)
            .args(words)
            .arg("--node")
            .arg(format!("unix://{}", node.socket.display()))
            .output()?;
        let said = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "{} at {}: {said}", words.join(" "), node.name);
        Ok(String::from_utf8(out.stdout)?)
    }

    fn make_file(&self) -> Result<(PathBuf, String)> {
        let path = self.folder.path().join("published");
        let mut source = fs::File::open("/dev/urandom")?.take(self.size_mb * 1_000_000);
        std::io::copy(&mut source, &mut fs::File::create(&path)?)?;
        let digest = sha256(&path)?;
        Ok((path, digest))
    }

    fn publish(&self, file: &Path) -> Result<Child> {
        let node = &self.nodes[2];
        let mut child = self
            .on(node.name, &self.onym)
            .args(["put", NAME])
            .arg(file)
            .arg("--node")
            .arg(format!("unix://{}", node.socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipe = child.stdout.take().context("standard output is not piped")?;
        if let Err(error) = wait_for_line(pipe, "ready").context("onym put") {
            end(&mut child);
            return Err(error);
        }
        Ok(child)
    }

    fn fetch_twice(&mut self, digest: &str) -> Result<()> {
        println!("\nn1 fetches it:");
        let _ = self.fetch(digest)?;
        for index in 0..self.nodes.len() {
            self.nodes[index].before = self.status(index)?;
        }
        println!("\nn1 fetches it again:");
        let again = self.fetch(digest)?;
        let near = self.since(0, "cs_hit")?;
        let far = self.since(1, "interests")?;
        println!("Served by the cache of n1: {near} segments; Interests that reached n2: {far}.");
        ensure!(near > far, "the cache of the nearest node should have served the second fetch");
        // Nothing is lost there: what is asked again was there and not read yet. A machine that
        // stands still for a moment may make some of it late.
        ensure!(again * 500 <= near, "{again} segments were asked again that were never lost");
        Ok(())
    }

    /// Fetches the file; how many segments were asked for again.
    fn fetch(&self, digest: &str) -> Result<u64> {
        let node = &self.nodes[0];
        let out = self.folder.path().join("fetched");
        let began = Instant::now();
        let got = self
            .on(node.name, &self.onym)
            .args(["get", NAME, "-o"])
            .arg(&out)
            .arg("--node")
            .arg(format!("unix://{}", node.socket.display()))
            .stderr(Stdio::inherit())
            .output()?;
        let seconds = began.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&got.stdout);
        print!("{said}");
        ensure!(got.status.success(), "onym get failed");
        ensure!(sha256(&out)? == *digest, "the fetched file differs from the published one");
        #[allow(clippy::cast_precision_loss)]
        let goodput = (self.size_mb * 8) as f64 / seconds / 1000.0;
        println!("SHA-256 agrees. {seconds:.2} s, goodput {goodput:.2} Gbit/s.");
        asked_again(&said).with_context(|| format!("onym get tells no retransmissions: {said}"))
    }

    /// The state of a node now: its caches may answer with one of up to a second ago.
    fn status(&self, at: usize) -> Result<Value> {
        let asked = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let status: Value = serde_json::from_str(&self.onym(at, &["status", "--json"])?)?;
            let told = status["node"]["now_ms"].as_u64().context("status has no node.now_ms")?;
            if u128::from(told) >= asked {
                return Ok(status);
            }
            ensure!(Instant::now() < deadline, "the status of a node stays old");
        }
    }

    /// How much a counter of a node grew since the first fetch ended.
    fn since(&self, at: usize, counter: &str) -> Result<u64> {
        let now = self.status(at)?;
        Ok(counted(&now, counter).saturating_sub(counted(&self.nodes[at].before, counter)))
    }

    /// One table per node.
    fn tables(&self) -> Result<()> {
        for (index, node) in self.nodes.iter().enumerate() {
            let status = self.status(index)?;
            let (cpu, memory) = resources(node.child.id())?;
            println!("\n{}", node.name);
            let row = |what: &str, value: String| println!("  {what:28} {value:>12}");
            row("Interests in", counted(&status, "interests").to_string());
            row("Data in", counted(&status, "data").to_string());
            row("cache hits", counted(&status, "cs_hit").to_string());
            let drops = dropped(&status);
            if drops.is_empty() {
                row("dropped", "0".into());
            }
            for (reason, count) in drops {
                row(&format!("dropped: {reason}"), count.to_string());
            }
            // Told also when it is nothing: what an application or a neighbour did not get for want of
            // room.
            let unsent = status["node"]["unsent"][QUEUE_FULL].as_u64().unwrap_or(0);
            ensure!(
                index > 0 || unsent == 0,
                "{}: {unsent} packets found no room toward its application",
                node.name
            );
            row(&format!("not sent: {QUEUE_FULL}"), unsent.to_string());
            row("CPU", format!("{cpu:.2} s"));
            row("memory", format!("{memory} MB"));
        }
        println!();
        Ok(())
    }
}

/// Two veth pairs between three namespaces, 10.81.1.0/24 and 10.81.2.0/24.
fn links() -> Result<()> {
    let script = "set -e
        ip link set lo up
        for n in n1 n2 n3; do ip netns add $n; ip -n $n link set lo up; done
        ip link add east netns n1 type veth peer name east netns n2
        ip link add west netns n2 type veth peer name west netns n3
        ip -n n1 addr add 10.81.1.1/24 dev east; ip -n n2 addr add 10.81.1.2/24 dev east
        ip -n n2 addr add 10.81.2.2/24 dev west; ip -n n3 addr add 10.81.2.3/24 dev west
        ip -n n1 link set east up; ip -n n2 link set east up; ip -n n2 link set west up; ip -n n3 link set west up";
    let out = Command::new("sh").args(["-c", script]).output()?;
    ensure!(out.status.success(), "namespaces: {}", String::from_utf8_lossy(&out.stderr));
    Ok(())
}

/// Reads what a program says until a line contains `text`; errors said later are passed on.
fn wait_for_line(pipe: impl Read + Send + 'static, text: &str) -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line.clone()).is_err() && line.contains("ERROR") {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    });
    let deadline = Instant::now() + READY_WITHIN;
    let mut said = String::new();
    while let Ok(line) = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if line.contains(text) {
            return Ok(());
        }
        said.push_str(&line);
        said.push('\n');
    }
    bail!("it did not say {text:?}; it said:\n{said}")
}

/// How many segments `onym get` says to have asked for again.
fn asked_again(said: &str) -> Option<u64> {
    said.split(',').find_map(|part| part.trim().strip_suffix(" retransmitted")?.parse().ok())
}

fn sha256(file: &Path) -> Result<String> {
    let out = Command::new("sha256sum").arg(file).output().context("sha256sum")?;
    let text = String::from_utf8(out.stdout)?;
    Ok(text.split_whitespace().next().context("sha256sum printed nothing")?.to_owned())
}

/// Frames for which a send queue had no room, as the status calls them.
const QUEUE_FULL: &str = "queue_full";

/// A counter of the node's status: a verdict by its name, or packets received by kind.
fn counted(status: &Value, counter: &str) -> u64 {
    match counter {
        "interests" => status["general"]["in_interests"].as_u64().unwrap_or(0),
        "data" => status["general"]["in_data"].as_u64().unwrap_or(0),
        verdict => status["node"]["interests"][verdict].as_u64().unwrap_or(0),
    }
}

/// Reasons for which packets were dropped, with their counts.
fn dropped(status: &Value) -> Vec<(String, u64)> {
    let counts = status["node"]["dropped"].as_object();
    counts
        .into_iter()
        .flatten()
        .filter_map(|(reason, count)| Some((reason.clone(), count.as_u64()?)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// CPU seconds and resident megabytes of a process, from /proc.
fn resources(pid: u32) -> Result<(f64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).context("VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).context("VmRSS")?.parse()?;
    // USER_HZ is 100 on every Linux that Rust supports.
    Ok((ticks / 100.0, kilobytes / 1000))
}

/// A folder that goes when the run ends.
mod tempdir {
    use anyhow::Result;
    use std::path::{Path, PathBuf};

    pub(super) struct Folder(PathBuf);

    impl Folder {
        /// In namespaces under their own /run, which vanishes with them however the run ends.
        pub(super) fn new(place: super::Place) -> Result<Self> {
            let parent = match place {
                super::Place::Namespaces => PathBuf::from("/run"),
                super::Place::Loopback => std::env::temp_dir(),
            };
            let path = parent.join(format!("onym-demo-{}", std::process::id()));
            std::fs::create_dir_all(&path)?;
            Ok(Self(path))
        }

        pub(super) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
