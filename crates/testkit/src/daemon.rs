//! `onym daemon` as a process of its own for each script, behind sockets on loopback.

use crate::script::{Script, StepKind};
use crate::socket::{AtEnd, Keeper, Offers, Reach, SocketSubject, refuses};
use crate::subject::{Bench, Count, Subject};
use crate::wire::name::{Part, uri};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long the daemon may take to be ready.
const READY: Duration = Duration::from_secs(20);
/// Scripts that wait longer are run only when asked.
const SLOW_MS: u64 = 2_000;
/// How often ports are chosen again when another process took one of them.
const TRIES: usize = 5;

/// Starts a daemon for each script.
#[derive(Debug, Clone)]
pub struct Daemon {
    /// The binary.
    pub binary: PathBuf,
    /// Shards of scripts that do not say how many.
    pub shards: usize,
    /// Stretches waits and patience.
    pub factor: u32,
    /// Also run scripts that wait long.
    pub slow: bool,
}

impl Daemon {
    /// The binary beside the running program, or the one that `ONYM_BIN` names.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> Result<Self, String> {
        let beside = || {
            let exe = std::env::current_exe().ok()?;
            exe.ancestors().skip(1).take(2).map(|d| d.join("onym")).find(|p| p.is_file())
        };
        let named = std::env::var_os("ONYM_BIN").map(PathBuf::from);
        let binary = named.or_else(beside).ok_or(
            "no onym binary beside this program; build it (cargo build -p onym) or name it by ONYM_BIN",
        )?;
        Ok(Self { binary, shards: 1, factor: 1, slow: false })
    }
}

/// What a daemon on loopback can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Reachable {
    /// Its shards.
    pub shards: usize,
    /// Scripts that wait long, too.
    pub slow: bool,
    /// Faces of every link type.
    pub links: bool,
}

/// Why a script cannot be asked of a daemon on loopback.
#[must_use]
pub fn cannot(script: &Script, daemon: Reachable) -> Option<String> {
    if daemon.shards > 1 && script.needs.iter().any(|n| n == "one-shard") {
        return Some("is about the order of one table, and each shard has its own".into());
    }
    if !daemon.slow && (script.has_tag("slow") || script.wait_ms() > SLOW_MS) {
        return Some("waits long".into());
    }
    refuses(script, Offers { tcp: true, ws: true, links: daemon.links })
}

/// How often a node must be asked for its counters until it has digested what was in its sockets
/// before. Each question goes through every shard: one until a packet was read, another until it was
/// forwarded, and for several shards more until it went to another one and back; then the control
/// thread, for what shards told it.
#[must_use]
pub fn rounds(script: &Script, shards: usize) -> usize {
    let said = script.config.iter().find(|(k, _)| k == "shards").and_then(|(_, v)| v.parse().ok());
    if said.unwrap_or(shards) > 1 { 8 } else { 4 }
}

/// The settings (`key=value`) of a node for a script, but its listeners beside the Unix socket.
///
/// # Errors
/// A region that is no plain name.
pub fn settings(script: &Script, shards: usize, unix: &Path) -> Result<Vec<String>, String> {
    let mut sets = vec![
        format!("shards={shards}"),
        format!("faces.unix.path=\"{}\"", unix.display()),
        "faces.udp.multicast=[]".into(),
        "faces.udp.mtu=8800".into(),
        // A face of a script is local when it says so, over WebSocket, too.
        "faces.websocket.local=true".into(),
        "log.filter=\"warn\"".into(),
    ];
    sets.extend(script.config.iter().map(|(k, v)| match k.as_str() {
        "rib.localhop_anchors" | "rib.routable_prefixes" => format!("{k}=[\"{v}\"]"),
        _ => format!("{k}={v}"),
    }));
    if !script.regions.is_empty() {
        let names: Vec<String> =
            script.regions.iter().map(|r| plain(r)).collect::<Result<_, _>>()?;
        sets.push(format!("forward.network_regions=[{}]", names.join(",")));
    }
    for step in &script.steps {
        if let StepKind::Cs(spec) = &step.kind {
            sets.extend(
                spec.policy.as_ref().map(|p| format!("cs.policy=\"{}\"", p.replace('_', "-"))),
            );
            sets.extend(spec.unsolicited.as_ref().map(|u| format!("cs.unsolicited=\"{u}\"")));
        }
    }
    Ok(sets)
}

fn plain(parts: &[Part]) -> Result<String, String> {
    let fixed = |p: &Part| match p {
        Part::Fixed(c) => Ok(c.clone()),
        other => Err(format!("{other:?} in a region")),
    };
    let name: Vec<_> = parts.iter().map(fixed).collect::<Result<_, _>>()?;
    Ok(format!("\"{}\"", uri(&name)))
}

impl Bench for Daemon {
    fn name(&self) -> &str {
        "daemon"
    }

    fn refuses(&self, script: &Script) -> Option<String> {
        cannot(script, Reachable { shards: self.shards, slow: self.slow, links: false })
    }

    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String> {
        let mut last = String::new();
        for _ in 0..TRIES {
            match Running::start(self, script) {
                Ok((reach, running)) => {
                    let keeper = Box::new(running);
                    let subject =
                        SocketSubject::new(&reach, script, keeper, self.factor, AtEnd::Gone)?;
                    return Ok(Box::new(subject));
                }
                Err(e) if e.contains("in use") => last = e,
                Err(e) => return Err(e),
            }
        }
        Err(last)
    }
}

/// One daemon; it ends when this is dropped.
#[derive(Debug)]
struct Running {
    child: Child,
    metrics: SocketAddr,
    rounds: usize,
    /// Holds its Unix socket.
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(daemon: &Daemon, script: &Script) -> Result<(Reach, Self), String> {
        let folder = tempfile::tempdir().map_err(|e| format!("a folder for the socket: {e}"))?;
        let unix = folder.path().join("nfd.sock");
        let ports = onym_sys::port::unused(4).map_err(|e| format!("no ports: {e}"))?;
        let [udp, tcp, ws, metrics] =
            [0, 1, 2, 3].map(|n| SocketAddr::from((Ipv4Addr::LOCALHOST, ports[n])));
        let mut sets = settings(script, daemon.shards, &unix)?;
        sets.extend([
            format!("faces.udp.listen=[\"{udp}\"]"),
            format!("faces.tcp.listen=[\"{tcp}\"]"),
            format!("faces.websocket.listen=[\"{ws}\"]"),
            format!("metrics.listen=[\"{metrics}\"]"),
        ]);
        let mut command = Command::new(&daemon.binary);
        command.arg("daemon").env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
        for set in &sets {
            command.args(["--set", set]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| format!("{}: {e}", daemon.binary.display()))?;
        let rounds = rounds(script, daemon.shards);
        let mut running = Self { child, metrics, rounds, _folder: folder };
        running.await_ready()?;
        Ok((Reach { unix: Some(unix), udp, tcp: Some(tcp), ws: Some(ws) }, running))
    }

    /// Reads standard error until `ready`; the rest is read and forgotten, so that no pipe fills.
    fn await_ready(&mut self) -> Result<(), String> {
        let stderr = self.child.stderr.take().ok_or("no standard error")?;
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut said = String::new();
            let mut is_ready = false;
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if !is_ready {
                    is_ready = line.split_ascii_whitespace().any(|w| w == "ready");
                    let _ = writeln!(said, "{line}");
                    if is_ready {
                        let _ = tell.send(Ok(()));
                    }
                }
            }
            if !is_ready {
                let _ = tell.send(Err(said));
            }
        });
        match told.recv_timeout(READY) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(said)) => Err(format!("the daemon did not start: {}", said.trim_end())),
            Err(_) => Err(format!("the daemon was not ready in {} s", READY.as_secs())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Keeper for Running {
    fn verdicts(&mut self) -> Option<Vec<Count>> {
        http_counts(self.metrics)
    }

    fn digest(&mut self) -> bool {
        (0..self.rounds).all(|_| http_get(self.metrics).is_some())
    }
}

/// The verdicts that a node shows at `/metrics`.
#[must_use]
pub fn http_counts(addr: SocketAddr) -> Option<Vec<Count>> {
    http_get(addr).map(|page| counts(&page))
}

fn http_get(addr: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The verdicts in a page of metrics.
#[must_use]
pub fn counts(page: &str) -> Vec<Count> {
    let label = |labels: &str, key: &str| {
        let rest = labels.split_once(&format!("{key}=\""))?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let one = |line: &str| {
        let (metric, rest) = line.split_once('{')?;
        let (labels, value) = rest.split_once('}')?;
        let count = value.trim().parse().ok()?;
        match metric {
            "onym_packets_total" => {
                Some(Count { kind: label(labels, "kind")?, word: label(labels, "verdict")?, count })
            }
            "onym_frames_dropped_total" => {
                Some(Count { kind: "frame".into(), word: label(labels, "reason")?, count })
            }
            _ => None,
        }
    };
    page.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_from_the_metrics_page() {
        let page = "# TYPE onym_packets counter\n\
                    onym_packets_total{verdict=\"no_route\",kind=\"interest\"} 3\n\
                    onym_frames_dropped_total{reason=\"lp_malformed\"} 2\n\
                    onym_faces 5\n";
        let words: Vec<_> = counts(page).into_iter().map(|c| (c.kind, c.word, c.count)).collect();
        let want = [("interest", "no_route", 3), ("frame", "lp_malformed", 2)];
        assert_eq!(words, want.map(|(k, w, n)| (k.to_owned(), w.to_owned(), n)));
    }
}
