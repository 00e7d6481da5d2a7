//! Those who look at the node that is counted: `onym top`, `onym dump`, and a collector of spans.

use crate::link::connect_unix;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::name::Name;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Looks of a run, whatever its rounds: so they are in both runs, and subtracted.
pub(super) const LOOKS: u32 = 10;
/// The names of one place of the window.
const PLACE: &str = "/onym/bench/load/alpha/bravo/charlie/%00%00%00%07";
/// Octets that a packet has at least in a capture.
const RECORD_LEN_MIN: u64 = 90;

/// Who may watch a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Watcher {
    /// A collector of spans, of one Interest in a hundred.
    Spans,
    /// `onym top`.
    Top,
    /// `onym dump` of the prefix of one exchange in as many as there are in flight.
    Dump,
    /// `onym dump` of every packet.
    DumpAll,
}

/// A collector that takes everything.
#[derive(Debug)]
pub(super) struct Collector {
    address: SocketAddr,
    came: Arc<AtomicU64>,
}

impl Collector {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, came) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&came);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || answer(socket, &count));
            }
        });
        Ok(Self { address, came })
    }

    /// What the node's configuration says of it: one Interest in a hundred is recorded, however fast
    /// they come.
    pub(super) fn section(&self) -> String {
        let collector = self.address;
        format!(
            "[telemetry]\ncollector = \"http://{collector}\"\nsample = 100\nspans_per_second = 1000000\n"
        )
    }

    /// Octets that came.
    pub(super) fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }
}

/// Answers requests until the other end closes.
fn answer(socket: TcpStream, came: &AtomicU64) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let mut len = 0;
        loop {
            let mut line = String::new();
            socket.read_line(&mut line).ok().filter(|octets| *octets > 0)?;
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().ok()?;
            }
        }
        std::io::copy(&mut socket.by_ref().take(len), &mut std::io::sink()).ok()?;
        came.fetch_add(len, Ordering::Relaxed);
        socket.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").ok()?;
    }
}

/// Somebody who runs `onym top` and `onym dump`.
#[derive(Debug)]
pub(super) struct Viewer {
    client: Client,
    asked: u32,
    watched: Vec<Watcher>,
    /// Octets that `onym dump` got.
    dumped: u64,
}

impl Viewer {
    pub(super) fn connect(socket: &Path, watched: &[Watcher]) -> Result<Self> {
        let client = Client::over(connect_unix(socket)?);
        Ok(Self { client, asked: 0, watched: watched.to_vec(), dumped: 0 })
    }

    /// One look of those who watch.
    pub(super) fn look(&mut self) -> Result<()> {
        if self.watched.contains(&Watcher::Top) {
            self.poll()?;
        }
        let filters =
            [(Watcher::Dump, format!("prefix={PLACE}")), (Watcher::DumpAll, String::new())];
        for (watcher, filter) in filters {
            if self.watched.contains(&watcher) {
                let batch = self.ask("dump", &format!("viewer=1&n={}&{filter}", self.asked))?;
                self.dumped += batch.len() as u64;
            }
        }
        Ok(())
    }

    /// As `onym top` asks once a second.
    pub(super) fn poll(&mut self) -> Result<()> {
        let n = self.asked;
        self.ask("top", &format!("viewer=1&n={n}&faces=50&order=packets&depth=3")).map(drop)
    }

    fn ask(&mut self, what: &str, question: &str) -> Result<Vec<u8>> {
        self.asked += 1;
        let mut name: Name = format!("/localhost/onym/{what}").parse()?;
        name.append_generic(question);
        mgmt::fetch_dataset(&mut self.client, name).with_context(|| format!("asking {what}"))
    }

    /// Whether what was dumped is as much as so many rounds have: four packets of an exchange.
    pub(super) fn check(&self, rounds: u32, window: u32) -> Result<()> {
        let exchanges = match (self.is(Watcher::DumpAll), self.is(Watcher::Dump)) {
            (true, _) => u64::from(rounds) * u64::from(window),
            (false, true) => rounds.into(),
            (false, false) => 0,
        };
        let least = exchanges * 4 * RECORD_LEN_MIN;
        ensure!(self.dumped >= least, "{} octets were dumped, not {least}", self.dumped);
        Ok(())
    }

    fn is(&self, watcher: Watcher) -> bool {
        self.watched.contains(&watcher)
    }
}
